"""Sends requests to one Kubernetes API server."""

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlencode

from twgen.clients.deadline import Deadline, in_thread, monotonic
from twgen.clients.http import HttpAnswer, HttpRequest, Unreachable, Unreadable, answer_to
from twgen.clients.kubeconfig import ClusterAccess
from twgen.cluster.deployments import DEPLOYMENT, METADATA
from twgen.errors import StateUnavailable
from twgen.model.paths import value_at
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import FLAG, TEXT, TEXTS, TIME, Findings, Shape, listing, whole_number
from twgen.versioning.names import DEPLOYMENT_API, resource_of_kind
from twgen.yaml.source import WORLD, Budget

if TYPE_CHECKING:
    from twgen.clients.logins import Login, Session

MOST_LISTED = 100_000
"""The maximum number of objects in one list, because a faulty server might never stop sending pages."""
_PAGE = 500
_AT_ONCE = 8
_PASSING = (429, 502, 503, 504)
"""The HTTP statuses of transient errors, after which the same request may succeed."""
_MOST_ATTEMPTS = 7
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_ONLY = "application/json;as={};g=meta.k8s.io;v=v1,application/json"
"""An Accept header for only a part of each listed object, or for whole objects from older servers."""
_ADVICE = {
    401: "requires valid credentials: check the user of the context",
    403: "does not permit this request: the account needs the verb list on {resource} in this namespace",
}
_NOT_SECURE = (
    "requires credentials, but twgen sends no credentials to a server without https://: check its address"
)
_OTHER_ADVICE = "did not answer with a list: try again, or check its log"


def path_of(api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
    """The path of an object or a list.

    Without `namespace`, the path is for all namespaces or for a cluster-scoped kind.
    """
    within = f"/namespaces/{namespace}" if namespace else ""
    served = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{served}{within}/{resource_of_kind(kind)}{f'/{name}' if name else ''}"


def listed(path: str, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The objects in a list. Raises StateUnavailable if the response is not a list."""
    items = answer.get("items", "")
    if not isinstance(items, list | None):
        raise StateUnavailable(
            f"{path} cannot be read: the answer of the API server is not a list of objects"
        )
    for item in items or ():
        if wrong := wrong_object(path, item):
            raise StateUnavailable(f"{path} cannot be read: {wrong}")
    return items or []


class Heard(NamedTuple):
    """The time on a server's clock, and the time on the monotonic clock when it was received."""

    server_time: datetime
    at: float


class Forbidden(StateUnavailable):
    """The account lacks a permission."""


class Conflict(StateUnavailable):
    """The object has changed since it was read."""


def error_of(status: int) -> type[StateUnavailable]:
    """The error class for an HTTP status."""
    if status == HTTPStatus.CONFLICT:
        return Conflict
    return Forbidden if status == HTTPStatus.FORBIDDEN else StateUnavailable


class Part(StrEnum):
    """The requested part of each listed object. The value is the response's kind."""

    METADATA = "PartialObjectMetadataList"
    NAME = "Table"
    """Only the name of each object, in the first cell of each table row."""


class MergePatch(dict[str, Any]):
    """The body of a PATCH that changes individual fields, no matter which client applied the object."""


class KubernetesClient:
    """Sends requests to one cluster, over reused connections that belong to one event loop.

    Every method may raise StateUnavailable, and OutOfTime after the deadline.
    """

    def __init__(self, access: ClusterAccess, *, asks: bool = True) -> None:
        """`asks` allows a credential plugin to prompt the user at the terminal."""
        self._access = access
        self._asks = asks
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._login: Login | None = None
        self.heard: Heard | None = None
        """The time in the server's newest response, or None before the first response."""

    def close(self) -> None:
        """Close the connections to the server."""
        if self._login:
            self._login.close()

    @property
    def reached(self) -> ClusterAccess:
        """The access for another client, limited to the server that this client has reached."""
        return self._login.access if self._login else self._access

    async def deployments(
        self, namespace: str, label_selector: str, deadline: Deadline
    ) -> list[Mapping[str, Any]]:
        """The Deployments in a namespace that match the selector, as the API server returns them."""
        items = await self._listed(DEPLOYMENT_API, "Deployment", namespace, label_selector, deadline)
        # the API server omits the kind of listed objects
        return [{"apiVersion": DEPLOYMENT_API, "kind": "Deployment", **item} for item in items]

    async def pods(self, namespace: str, label_selector: str, deadline: Deadline) -> list[Mapping[str, Any]]:
        """The Pods in a namespace that match the selector.

        Raises Forbidden if the account lacks permission.
        """
        return await self._listed("v1", "Pod", namespace, label_selector, deadline)

    async def data(
        self, kind: Literal["ConfigMap", "Secret"], namespace: str, name: str, key: str, deadline: Deadline
    ) -> bytes:
        """The value of one key of a ConfigMap or a Secret."""
        subject = f"Kubernetes ({self._access.described}), {kind} {namespace}/{name}"
        status, answer = await self.ask("GET", path_of("v1", kind, namespace, name), deadline)
        if status != HTTPStatus.OK:
            why = answer.get("message") or status
            raise StateUnavailable(f"{subject} cannot be read: the API server answers {why}")
        texts = {} if kind == "Secret" else answer.get("data") or {}
        if key in texts:
            return str(texts[key]).encode()
        binary = answer.get("data" if kind == "Secret" else "binaryData") or {}
        if key not in binary:
            raise StateUnavailable(f"{subject} has no key {key}")
        try:
            return base64.b64decode(binary[key])
        except ValueError:
            raise StateUnavailable(f"{subject} cannot be read: key {key} is not base64") from None

    async def ask(  # noqa: PLR0913 - each is a part of a request
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        only: Part | None = None,
        budget: Budget | None = None,
        about: str = "",
    ) -> tuple[int, Mapping[str, Any]]:
        """Send a request, and return the response's status and document.

        A PATCH is a server-side apply unless the body is a MergePatch. `only` requests a part of each listed
        object, but an old server may still return whole objects. Raises Unreadable if the response exceeds
        the `budget` or is not JSON. Errors contain `about`, or the path if `about` is empty.
        """
        subject = f"Kubernetes ({self._access.described}), {about or path}"
        deadline, budget = deadline.for_answer(), budget or Budget(WORLD)
        patch = "merge-patch+json" if isinstance(body, MergePatch) else "apply-patch+yaml"
        headers = {"Content-Type": f"application/{patch if method == 'PATCH' else 'json'}"}
        request = HttpRequest(
            subject=subject,
            method=method,
            url=f"{path}{f'?{urlencode(query)}' if query else ''}",
            headers=headers | ({"Accept": _ONLY.format(only)} if only else {}),
            body=None if body is None else json.dumps(body).encode(),
            deadline=deadline,
            most_bytes=budget.limits.bytes,
            to_reach_it=f": check the context{self._access.or_without}",
        )
        answer, document = await self._answered(request, budget)
        # a response from another kind of server must not be mistaken for a response from an API server
        if answer.status < HTTPStatus.BAD_REQUEST:
            if document is None:
                why = f"check its address ({answer.message(None, 'message')})"
                raise Unreadable(f"{subject}: the answer is not from an API server: {why}")
            is_partial = only is not None and document.get("kind") == only
            if method in {"GET", "PATCH"} and not is_partial and (wrong := wrong_answer(path, document)):
                raise StateUnavailable(f"{path} cannot be read: {wrong}")
        elif document is None or document.get("message"):
            document = {**(document or {}), "message": answer.message(document, "message")}
        return answer.status, document

    async def _listed(
        self, api_version: str, kind: str, namespace: str, label_selector: str, deadline: Deadline
    ) -> list[Mapping[str, Any]]:
        path, about = path_of(api_version, kind, namespace), f"namespace {namespace!r}"
        query = {"labelSelector": label_selector, "limit": str(_PAGE)}
        budget, items = Budget(WORLD), dict[str, Mapping[str, Any]]()
        async with self._free:
            for _ in range(MOST_LISTED // _PAGE):
                status, page = await self.ask("GET", path, deadline, query=query, budget=budget, about=about)
                if status != HTTPStatus.OK:
                    is_open = self.reached.server.startswith("http:") and status == HTTPStatus.UNAUTHORIZED
                    advice = _NOT_SECURE if is_open else _ADVICE.get(status, _OTHER_ADVICE)
                    resource = f"{resource_of_kind(kind)}.{api_version.rpartition('/')[0]}".rstrip(".")
                    raise error_of(status)(
                        f"Kubernetes ({self._access.described}), {about}: the API server"
                        f" {advice.format(resource=resource)} ({status}: {page.get('message') or ''})"
                    )
                for item in listed(path, page):
                    if (name := item["metadata"]["name"]) in items:
                        raise StateUnavailable(f"{path} cannot be read: {name} is listed twice")
                    items[name] = item
                if not (token := value_at(page, "metadata", "continue")):
                    return list(items.values())
                query["continue"] = str(token)
        raise StateUnavailable(f"{path} cannot be read: its list has more than {MOST_LISTED} objects")

    async def _answered(
        self, request: HttpRequest, budget: Budget
    ) -> tuple[HttpAnswer, dict[str, Any] | None]:
        """Send a request. If the server rejects the login, renew the login and send the request again."""
        from twgen.clients.logins import Login

        deadline, login = request.deadline, self._login or Login(self._access, asks=self._asks)
        self._login = login

        def asked(session: "Session") -> Awaitable[tuple[HttpAnswer, dict[str, Any] | None]]:
            return deadline.bound(request.subject, in_thread(lambda: self._answer(session, request, budget)))

        session = await deadline.uncounted(login.session(deadline.timeout))
        answer, document = await asked(session)
        if answer.status != HTTPStatus.UNAUTHORIZED:
            return answer, document
        renewed = await deadline.uncounted(login.session(deadline.timeout, refused=session))
        if (renewed.headers, renewed.made_of) == (session.headers, session.made_of):
            return answer, document
        return await asked(renewed)

    def _answer(
        self, session: "Session", request: HttpRequest, budget: Budget
    ) -> tuple[HttpAnswer, dict[str, Any] | None]:
        """Send a request. After a transient error, retry a repeatable request."""
        from tenacity import RetryCallState, Retrying, wait_random_exponential

        request = request._replace(
            url=f"{session.server}{request.url}",
            headers={**request.headers, **session.headers},
            bytes_before=budget.bytes,
        )
        is_repeatable = request.method in {"GET", "DELETE"}  # a deletion contains the object's UID

        def is_passing(state: RetryCallState) -> bool:
            outcome = state.outcome
            if outcome and (failed := outcome.exception()):
                is_unsent = isinstance(failed, Unreachable) and (is_repeatable or failed.is_refused)
                return is_unsent and state.attempt_number == 1
            return is_repeatable and outcome is not None and outcome.result().status in _PASSING

        def pause(state: RetryCallState) -> float:
            wait = wait_random_exponential(_FIRST_PAUSE, _LONGEST_PAUSE)(state)
            if not state.outcome or state.outcome.failed:
                return wait
            seconds = state.outcome.result().headers.get("Retry-After", "")
            return max(wait, int(seconds)) if re.fullmatch("[0-9]{1,6}", seconds) else wait

        attempts = Retrying(
            retry=is_passing,
            wait=pause,
            stop=lambda state: (
                state.attempt_number >= _MOST_ATTEMPTS or state.upcoming_sleep >= request.deadline.remaining
            ),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        answer: HttpAnswer = attempts(lambda: answer_to(request, session.pool))
        budget.bytes += len(answer.content)
        with suppress(ValueError):
            date = parsedate_to_datetime(answer.headers.get("Date") or "")
            # the zone -0000 (unknown) is parsed as a time without a zone; an API server sends GMT
            self.heard = Heard(date if date.tzinfo else date.replace(tzinfo=UTC), monotonic())
        return answer, answer.document(budget)


_PATH = re.compile(
    r"/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+/[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?"
)
_LIST = "List"
_CREATED = Field("metadata", excerpt(Field("creationTimestamp", TIME, required=True)), required=True)
_STATE = excerpt("reason", "message", Field("exitCode", whole_number()))
_STATES = excerpt(Field("waiting", _STATE), Field("terminated", _STATE))
_CONTAINER = excerpt(Field("state", _STATES), Field("lastState", _STATES))
_CONDITION = excerpt(
    Field("type", TEXT, required=True),
    Field("status", TEXT, required=True),
    *("reason", "message", "lastTransitionTime"),
)
_POD_STATUS = excerpt(
    "phase",
    Field("conditions", listing(_CONDITION)),
    Field("initContainerStatuses", listing(_CONTAINER)),
    Field("containerStatuses", listing(_CONTAINER)),
)
_JOB_STATUS = excerpt(Field("conditions", listing(_CONDITION)))
_RESOURCE = excerpt(Field("kind", TEXT, required=True), Field("namespaced", FLAG))
_OBJECT = excerpt(Field("metadata", METADATA, required=True))
_SHAPES: Mapping[str, Shape] = {
    "Deployment": DEPLOYMENT,
    "Pod": excerpt(_CREATED, Field("status", _POD_STATUS)),
    "Job": excerpt(_CREATED, Field("status", _JOB_STATUS)),
    "ConfigMap": excerpt(Field("data", TEXTS), Field("binaryData", TEXTS)),
    "Secret": excerpt(Field("data", TEXTS)),
}
"""The fields that twgen reads in addition to the metadata, by kind. Deployments in a snapshot have the same
fields."""
_VERSIONS = listing(excerpt(Field("groupVersion", TEXT, required=True)))
_SERVED: Mapping[str, tuple[re.Pattern[str], Shape]] = {
    "APIGroup": (re.compile("/apis/[^/]+"), excerpt(Field("versions", _VERSIONS, required=True))),
    "APIResourceList": (
        re.compile("/(api|apis/[^/]+)/[^/]+"),
        excerpt(Field("resources", listing(_RESOURCE), required=True)),
    ),
}
"""The paths and fields of an API server's discovery responses, by kind."""


def wrong_answer(path: str, answer: Mapping[str, Any]) -> str:
    """The reason why a response does not fit the path, or empty if it fits. List items are not checked."""
    kind, api_version = answer.get("kind"), answer.get("apiVersion")
    if not (parts := _PATH.fullmatch(path)):
        for expected, (form, shape) in _SERVED.items():
            if form.fullmatch(path):
                return (
                    _problem(shape, answer) if kind == expected else f"it is of kind {kind!r}, not {expected}"
                )
        return ""
    is_list, version = not parts["name"], parts["core"] or parts["group"]
    item_kind = str(kind).removesuffix(_LIST) if is_list else str(kind)
    is_kind = resource_of_kind(item_kind) == parts["resource"] and (not is_list or str(kind) != item_kind)
    if not is_kind or api_version != version:
        expected = f"{'a list of ' if is_list else ''}{parts['resource']} of {version}"
        return f"it is of kind {kind!r} of {api_version!r}, not {expected}"
    return "" if is_list else wrong_object(path, answer)


def wrong_object(path: str, value: Any) -> str:
    """The reason why an object or a list item does not fit the path, or empty if it fits."""
    parts = _PATH.fullmatch(path)
    resource = parts["resource"] if parts else ""
    if problem := _problem(_OBJECT, value):
        name = value_at(value, "metadata", "name")
        return f"{f'{name!r} of ' if isinstance(name, str) else ''}{resource}: {problem}"
    metadata = value["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")
    place = f"{namespace}/{name}" if namespace else name
    if parts and parts["namespace"] and namespace != parts["namespace"]:
        return f"{place} is not in namespace {parts['namespace']}"
    if parts and parts["name"] and name != parts["name"]:
        return f"{place} is another object"
    # list items have no kind
    if (kind := value.get("kind")) is not None and resource_of_kind(str(kind)) != resource:
        return f"{place} is of kind {kind!r}, not one of {resource}"
    for shape_kind, shape in _SHAPES.items():
        if resource_of_kind(shape_kind) == resource and (problem := _problem(shape, value)):
            return f"{shape_kind} {place}: {problem}"
    return ""


def _problem(shape: Shape, value: Any) -> str:
    """The first problem, or empty if there is none."""
    findings = Findings()
    shape.read(value, None, findings)
    return next((f"{path} {message}".strip() for path, message, *_ in findings.problems), "")
