"""Asks one Kubernetes API server, inside the deadline."""

import asyncio
import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from twgen.clients.deadline import Deadline, in_thread, monotonic
from twgen.clients.kubeconfig import ClusterAccess, load_configuration
from twgen.errors import StateUnavailable
from twgen.model.paths import value_at
from twgen.versioning.names import DEPLOYMENT_API

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_PAGE = 500
_NAMES = ("name", "namespace")
"""What every object of a namespace has."""
_AT_ONCE = 8
_DEPLOYMENTS = f"/apis/{DEPLOYMENT_API}/namespaces/{{namespace}}/deployments"
_PODS = "/api/v1/namespaces/{namespace}/pods"
_RESOURCES = {_DEPLOYMENTS: "deployments.apps", _PODS: "pods"}
_ADVICE = {
    401: "asks for other credentials: check the user of the context",
    403: "does not permit it: the account needs the verb list on {resource} in this namespace",
}
_OTHER_ADVICE = "did not answer with a list: try again, or look into its log"


def jobs_path(namespace: str) -> str:
    """The Jobs of a namespace, in the API; of an empty one, those of all."""
    return f"/apis/batch/v1{f'/namespaces/{namespace}' if namespace else ''}/jobs"


def listed(path: str, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The objects of a list; raises StateUnavailable for another answer: nobody knows then what there is."""
    items = answer.get("items", "")
    if not isinstance(items, list | None) or not all(
        isinstance(value_at(item, "metadata", name), str) for item in items or () for name in _NAMES
    ):
        raise StateUnavailable(f"{path} cannot be read: what the API server answers is no list of objects")
    return items or []


def deletion_of(uid: str) -> dict[str, Any]:
    """The body of a request that deletes this very object with all that it owns, and no other of its name."""
    return {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}


class _Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    body: Any = None


class Heard(NamedTuple):
    """What somebody else's clock said, and when that was on the monotonic clock."""

    said: datetime
    at: float


class Forbidden(StateUnavailable):
    """The account may not make a change."""


class PodsForbidden(StateUnavailable):
    """The account may not list the Pods of a namespace."""


class KubernetesClient:
    """Reads from one cluster; its connections outlive a reading, and belong to one event loop.

    Every method raises StateUnavailable, or OutOfTime after the deadline.
    """

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._files = TemporaryDirectory(prefix="twgen-", ignore_cleanup_errors=True)
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._loading: asyncio.Task[ApiClient] | None = None
        self.heard: Heard | None = None
        """The time that its newest answer told; None: none did."""

    def close(self) -> None:
        """Remove the files that its credentials were written to."""
        self._files.cleanup()

    async def deployments(
        self, namespace: str, label_selector: str, deadline: Deadline
    ) -> list[Mapping[str, Any]]:
        """The Deployments of a namespace that the selector takes, as the API server returns them."""
        items = await self._listed(_DEPLOYMENTS, namespace, label_selector, deadline)
        # an API server leaves the kind of a list's items out
        return [{"apiVersion": DEPLOYMENT_API, "kind": "Deployment", **item} for item in items]

    async def pods(self, namespace: str, label_selector: str, deadline: Deadline) -> list[Mapping[str, Any]]:
        """The Pods of a namespace that the selector takes; raises PodsForbidden when it may not."""
        return await self._listed(_PODS, namespace, label_selector, deadline)

    async def data(
        self, kind: Literal["ConfigMap", "Secret"], namespace: str, name: str, key: str, deadline: Deadline
    ) -> bytes:
        """What one key of a ConfigMap or a Secret holds."""
        path = f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}"
        who = f"Kubernetes ({self._access.described}), {kind} {namespace}/{name}"
        status, found = await self.ask("GET", path, deadline)
        if status != HTTPStatus.OK:
            why = found.get("message") or status
            raise StateUnavailable(f"{who} cannot be read: the API server answers {why}")
        entries = found.get("data") or {}
        if key not in entries:
            raise StateUnavailable(f"{who} has no key {key}")
        return base64.b64decode(entries[key]) if kind == "Secret" else str(entries[key]).encode()

    async def ask(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """The status and the document that one request is answered with; a PATCH is a server-side apply."""
        who = f"Kubernetes ({self._access.described}), {path}"

        async def answer() -> tuple[int, Mapping[str, Any]]:
            api = await self._api()
            request = _Request(method, path, query or {}, body)
            status, content = await in_thread(lambda: _answer(api, who, request, self._hear))
            try:
                document = json.loads(content)
            except ValueError:
                document = None
            if isinstance(document, dict):
                return status, document
            said = " ".join(content[:200].decode(errors="replace").split())
            if status < HTTPStatus.BAD_REQUEST:  # nothing was read or done, whatever it is that answers
                raise StateUnavailable(f"{who}: what answers is no API server: check its address ({said})")
            return status, {"message": said}

        return await deadline.for_answer().bound(who, answer())

    async def _listed(
        self, path: str, namespace: str, label_selector: str, deadline: Deadline
    ) -> list[Mapping[str, Any]]:
        who = f"Kubernetes ({self._access.described}), namespace {namespace!r}"

        async def pages() -> list[Mapping[str, Any]]:
            async with self._free:
                api = await self._api()
                return await in_thread(lambda: list(self._pages(api, who, path, namespace, label_selector)))

        return await deadline.for_answer().bound(who, pages())

    async def _api(self) -> "ApiClient":
        loading = self._loading
        # a login that failed is tried again: what it lacked may be there by now
        if not loading or (loading.done() and (loading.cancelled() or loading.exception())):
            loading = self._loading = asyncio.create_task(in_thread(self._load))
        # one LIST that is cut must not cut the login of the others
        return await asyncio.shield(loading)

    def _load(self) -> "ApiClient":
        from kubernetes.client import ApiClient

        return ApiClient(load_configuration(self._access, self._files.name))

    def _pages(
        self, api: "ApiClient", who: str, path: str, namespace: str, label_selector: str
    ) -> Iterator[Mapping[str, Any]]:
        query = {"labelSelector": label_selector, "limit": str(_PAGE)}
        while True:
            request = _Request("GET", path.format(namespace=namespace), query)
            status, body = _answer(api, who, request, self._hear)
            if status != HTTPStatus.OK:
                raise _refusal(who, path, status, body)
            try:
                page = json.loads(body)
                token = page["metadata"].get("continue")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise _refusal(who, path, status, body) from error
            yield from listed(request.path, page)
            if not token:
                return
            query = {**query, "continue": token}

    def _hear(self, date: str | None) -> None:
        """Take in the Date that an answer came with."""
        try:
            said = parsedate_to_datetime(date or "")
        except ValueError:
            return
        # -0000, for a zone that is not told, gives a time without one; an API server's is GMT
        self.heard = Heard(said if said.tzinfo else said.replace(tzinfo=UTC), monotonic())


def _answer(
    api: "ApiClient", who: str, request: _Request, hear: Callable[[str | None], None]
) -> tuple[int, bytes]:
    """The status and the body of an answer; `hear` gets the date that it came with."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    is_applied = request.method == "PATCH"
    content_type = "application/apply-patch+yaml" if is_applied else "application/json"
    try:
        serialized = api.param_serialize(
            request.method,
            request.path,
            query_params=list(request.query.items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=json.dumps(request.body) if is_applied else request.body,
            auth_settings=["BearerToken"],
        )
        response = api.call_api(*serialized)
        hear(response.headers.get("Date"))
        return response.status, response.read()
    except (ApiException, HTTPError, OSError) as error:
        innermost: BaseException = error
        while isinstance(reason := getattr(innermost, "reason", None), BaseException):
            innermost = reason
        said = " ".join(str(innermost).split())
        if "IncompleteRead" in said:
            said = "its answer was cut short"  # after how many bytes would be news at every look
        raise StateUnavailable(
            f"{who} cannot be reached: check the context, or pass --no-cluster ({said})"
        ) from error


def _refusal(who: str, path: str, status: int, body: bytes) -> StateUnavailable:
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = body[:200].decode(errors="replace")
    advice = _ADVICE.get(status, _OTHER_ADVICE).format(resource=_RESOURCES[path])
    refused = PodsForbidden if (status, path) == (HTTPStatus.FORBIDDEN, _PODS) else StateUnavailable
    return refused(f"{who}: the API server {advice} ({status}: {' '.join(message.split())})")
