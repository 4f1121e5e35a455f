"""Asks one Kubernetes API server, within the deadline."""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess, load_configuration
from twgen.errors import StateUnavailable

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_PAGE = 500
_DEPLOYMENTS = "/apis/apps/v1/namespaces/{namespace}/deployments"
_OK = 200
_ADVICE = {
    401: "asks for other credentials: check the user of the context",
    403: "does not permit it: the account needs the verb list on deployments.apps in this namespace",
}
_OTHER_ADVICE = "did not answer with a list: try again, or look into its log"


class KubernetesClient:
    """Reads from one cluster; every method raises StateUnavailable, or OutOfTime after the deadline.

    Leaving the context removes the files that its credentials were written to.
    """

    def __init__(self, access: ClusterAccess, deadline: Deadline) -> None:
        self._access = access
        self._deadline = deadline
        self._files = TemporaryDirectory(prefix="twgen-", ignore_cleanup_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.cleanup()

    def deployments(self, namespace: str, label_selector: str) -> list[Mapping[str, Any]]:
        """The Deployments of a namespace that the selector takes, as the API server returns them."""
        who = f"Kubernetes ({self._access.described}), namespace {namespace!r}"
        return self._deadline.cut(who, lambda: list(self._pages(who, namespace, label_selector)))

    def _pages(self, who: str, namespace: str, label_selector: str) -> Iterator[Mapping[str, Any]]:
        query = {"labelSelector": label_selector, "limit": str(_PAGE)}
        while True:
            items, token = self._page(who, namespace, query)
            # an API server leaves the kind of a list's items out
            yield from ({"apiVersion": "apps/v1", "kind": "Deployment", **item} for item in items)
            if not token:
                return
            query = {**query, "continue": token}

    def _page(
        self, who: str, namespace: str, query: Mapping[str, str]
    ) -> tuple[list[dict[str, Any]], str | None]:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        try:
            request = self._api.param_serialize(
                "GET",
                _DEPLOYMENTS,
                path_params={"namespace": namespace},
                query_params=list(query.items()),
                header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
            )
            response = self._api.call_api(*request)
            body = response.read()
        except (ApiException, HTTPError, OSError) as error:
            raise _unreachable(who, error) from error
        if response.status != _OK:
            raise _refusal(who, response.status, body)
        try:
            page = json.loads(body)
            return page["items"] or [], page["metadata"].get("continue")
        except (ValueError, KeyError, TypeError) as error:
            raise _refusal(who, response.status, body) from error

    @cached_property
    def _api(self) -> "ApiClient":
        from kubernetes.client import ApiClient

        return ApiClient(load_configuration(self._access, self._files.name))


def _unreachable(who: str, error: Exception) -> StateUnavailable:
    innermost: BaseException = error
    while isinstance(reason := getattr(innermost, "reason", None), BaseException):
        innermost = reason
    said = " ".join(str(innermost).split())
    return StateUnavailable(f"{who} cannot be reached: check the context, or pass --no-cluster ({said})")


def _refusal(who: str, status: int, body: bytes) -> StateUnavailable:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body[:200].decode(errors="replace")
    advice = _ADVICE.get(status, _OTHER_ADVICE)
    return StateUnavailable(f"{who}: the API server {advice} ({status}: {' '.join(message.split())})")
