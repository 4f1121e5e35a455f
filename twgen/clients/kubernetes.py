"""Asks one Kubernetes API server, within the deadline."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from twgen.clients.deadline import Deadline
from twgen.errors import StateUnavailable

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration

_PAGE = 500
_DEPLOYMENTS = "/apis/apps/v1/namespaces/{namespace}/deployments"
_OK = 200
_ADVICE = {
    401: "asks for other credentials: check the user of the context",
    403: "does not permit it: the account needs the verb list on deployments.apps in this namespace",
}
_OTHER_ADVICE = "answered with an error: try again, or look into its log"
_PASSING = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Which cluster, and as whom: a kubeconfig's context, or the account of the Pod that this runs in."""

    kubeconfig: str = ""
    """Files joined by `:`, as KUBECONFIG has them; empty: the Pod's own account."""
    context: str = ""
    """Empty: the current one."""

    @property
    def described(self) -> str:
        """The cluster, for people."""
        if not self.kubeconfig:
            return "the cluster of this Pod"
        return f"context {self.context!r} of {self.kubeconfig}" if self.context else self.kubeconfig


class KubernetesClient:
    """Reads from one cluster; every method raises StateUnavailable, or OutOfTime after the deadline."""

    def __init__(self, access: ClusterAccess, deadline: Deadline) -> None:
        self._access = access
        self._deadline = deadline

    def deployments(self, namespace: str, label_selector: str) -> list[Mapping[str, Any]]:
        """The Deployments of a namespace that the selector takes, as the API server returns them."""
        who = f"Kubernetes ({self._access.described}), namespace {namespace!r}"
        return self._deadline.cut(who, lambda: list(self._pages(who, namespace, label_selector)))

    def _pages(self, who: str, namespace: str, label_selector: str) -> Iterator[Mapping[str, Any]]:
        query = {"labelSelector": label_selector, "limit": str(_PAGE)}
        while True:
            page = self._get(who, namespace, query)
            # an API server leaves the kind of a list's items out
            yield from ({"apiVersion": "apps/v1", "kind": "Deployment", **item} for item in page["items"])
            if not (token := page["metadata"].get("continue")):
                return
            query = {**query, "continue": token}

    def _get(self, who: str, namespace: str, query: Mapping[str, str]) -> Any:
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
            response = self._api.call_api(*request, _request_timeout=max(self._deadline.remaining, 0.001))
            body = response.read()
        except (ApiException, HTTPError, OSError) as error:
            raise _unreachable(who, error) from error
        if response.status != _OK:
            raise _refusal(who, response.status, body)
        return json.loads(body)

    @cached_property
    def _api(self) -> "ApiClient":
        from kubernetes.client import ApiClient

        return ApiClient(_configuration(self._access))


def _configuration(access: ClusterAccess) -> "Configuration":
    import urllib3
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
    from yaml import YAMLError

    configuration = Configuration()
    configuration.retries = urllib3.Retry(
        total=6,
        connect=1,
        read=1,
        other=0,
        backoff_factor=0.1,
        backoff_max=2,
        backoff_jitter=0.1,
        status_forcelist=_PASSING,
        raise_on_status=False,
    )
    try:
        if access.kubeconfig:
            load_kube_config(
                access.kubeconfig,
                access.context or None,
                client_configuration=configuration,
                persist_config=False,
            )
        else:
            load_incluster_config(client_configuration=configuration)
    except (ConfigException, YAMLError, OSError, TypeError, AttributeError) as error:
        raise StateUnavailable(
            f"Kubernetes ({access.described}) is not configured: {_reason(error)}; "
            "correct it, or pass --no-cluster"
        ) from None
    return configuration


def _reason(error: Exception) -> str:
    from yaml import YAMLError

    # the parser quotes the line that it cannot read, and that may be a token
    if isinstance(error, YAMLError):
        mark = getattr(error, "problem_mark", None)
        return f"not YAML at line {mark.line + 1}" if mark else "not YAML"
    if isinstance(error, TypeError | AttributeError):
        return "not a kubeconfig"
    return " ".join(str(error).split())


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
