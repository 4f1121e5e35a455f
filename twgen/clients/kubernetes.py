"""Asks one Kubernetes API server, inside the deadline."""

import asyncio
import base64
import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from twgen.clients.deadline import Deadline, in_thread, monotonic
from twgen.clients.http import Answer, Request, Unreachable, answer_to
from twgen.clients.kubeconfig import ClusterAccess, Session, open_session
from twgen.cluster.objects import wrong_answer, wrong_object
from twgen.errors import StateUnavailable
from twgen.model.paths import value_at
from twgen.versioning.names import DEPLOYMENT_API
from twgen.yaml.limits import WORLD, Budget

MOST_LISTED = 100_000
"""Objects of one list: a server that always has another page is not followed for ever."""
_PAGE = 500
_AT_ONCE = 8
_PASSING = (429, 502, 503, 504)
"""Statuses of an API server that may be gone in a moment."""
_MOST_ATTEMPTS = 7
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_DEPLOYMENTS = f"/apis/{DEPLOYMENT_API}/namespaces/{{namespace}}/deployments"
_PODS = "/api/v1/namespaces/{namespace}/pods"
_RESOURCES = {_DEPLOYMENTS: "deployments.apps", _PODS: "pods"}
_ADVICE = {
    401: "requires valid credentials: check the user of the context",
    403: "does not permit it: the account needs the verb list on {resource} in this namespace",
}
_OTHER_ADVICE = "did not answer with a list: try again, or look at its log"


def jobs_path(namespace: str) -> str:
    """The Jobs of a namespace, in the API; of an empty one, those of all."""
    return f"/apis/batch/v1{f'/namespaces/{namespace}' if namespace else ''}/jobs"


def listed(path: str, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The objects of a list; raises StateUnavailable for another answer: nobody knows then what there is."""
    items = answer.get("items", "")
    if not isinstance(items, list | None):
        raise StateUnavailable(
            f"{path} cannot be read: the answer of the API server is not a list of objects"
        )
    for item in items or ():
        if wrong := wrong_object(path, item):
            raise StateUnavailable(f"{path} cannot be read: {wrong}")
    return items or []


def deletion_of(uid: str) -> dict[str, Any]:
    """The body of a request that deletes this very object with all that it owns, and no other of its name."""
    return {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}


class _Asked(NamedTuple):
    who: str
    deadline: Deadline
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
        self._loading: asyncio.Task[Session] | None = None
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
        texts = {} if kind == "Secret" else found.get("data") or {}
        if key in texts:
            return str(texts[key]).encode()
        binary = found.get("data" if kind == "Secret" else "binaryData") or {}
        if key not in binary:
            raise StateUnavailable(f"{who} has no key {key}")
        try:
            return base64.b64decode(binary[key])
        except ValueError:
            raise StateUnavailable(f"{who} cannot be read: key {key} is not base64") from None

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
        asked = _Asked(who, deadline := deadline.for_answer(), method, path, query or {}, body)
        budget = Budget(WORLD)

        async def ask() -> tuple[int, Mapping[str, Any]]:
            session = await self._session()
            answer = await in_thread(lambda: self._answer(session, asked, budget))
            document = answer.document(budget)
            # where it is no refusal, nothing was read or done, whatever it is that answers
            if answer.status < HTTPStatus.BAD_REQUEST:
                if document is None:
                    said = answer.told(None, "message")
                    why = f"the answer is not from an API server: check its address ({said})"
                    raise StateUnavailable(f"{who}: {why}")
                if method in {"GET", "PATCH"} and (wrong := wrong_answer(path, document)):
                    raise StateUnavailable(f"{path} cannot be read: {wrong}")
            elif document is None or document.get("message"):
                document = {**(document or {}), "message": answer.told(document, "message")}
            return answer.status, document

        return await deadline.bound(who, ask())

    async def _listed(
        self, path: str, namespace: str, label_selector: str, deadline: Deadline
    ) -> list[Mapping[str, Any]]:
        who = f"Kubernetes ({self._access.described}), namespace {namespace!r}"
        deadline = deadline.for_answer()
        query = {"labelSelector": label_selector, "limit": str(_PAGE)}
        asked = _Asked(who, deadline, "GET", path.format(namespace=namespace), query)

        async def pages() -> list[Mapping[str, Any]]:
            async with self._free:
                session = await self._session()
                return await in_thread(lambda: list(self._pages(session, path, asked)))

        return await deadline.bound(who, pages())

    async def _session(self) -> Session:
        loading = self._loading
        # a login that failed is tried again: what it lacked may be there by now
        if not loading or (loading.done() and (loading.cancelled() or loading.exception())):
            loading = self._loading = asyncio.create_task(
                in_thread(lambda: open_session(self._access, self._files.name))
            )
        # one LIST that is cut must not cut the login of the others
        return await asyncio.shield(loading)

    def _pages(self, session: Session, path: str, asked: _Asked) -> Iterator[Mapping[str, Any]]:
        place, budget, names = asked.path, Budget(WORLD), set[str]()
        for _ in range(MOST_LISTED // _PAGE):
            answer = self._answer(session, asked, budget)
            page = answer.document(budget)
            if answer.status != HTTPStatus.OK or page is None:
                raise _refusal(asked.who, path, answer, page)
            if wrong := wrong_answer(place, page):
                raise StateUnavailable(f"{place} cannot be read: {wrong}")
            for item in listed(place, page):
                if (name := item["metadata"]["name"]) in names:
                    raise StateUnavailable(f"{place} cannot be read: {name} is listed twice")
                names.add(name)
                yield item
            token = value_at(page, "metadata", "continue")
            if not token:
                return
            asked = asked._replace(query={**asked.query, "continue": str(token)})
        raise StateUnavailable(f"{place} cannot be read: its list has more than {MOST_LISTED} objects")

    def _answer(self, session: Session, asked: _Asked, budget: Budget) -> Answer:
        """The answer, once it is more than "not now"; what may be asked twice is, while there is time."""
        from tenacity import RetryCallState, Retrying, wait_random_exponential

        is_applied = asked.method == "PATCH"
        content_type = "application/apply-patch+yaml" if is_applied else "application/json"
        request = Request(
            who=asked.who,
            method=asked.method,
            url=f"{session.host}{asked.path}{f'?{urlencode(asked.query)}' if asked.query else ''}",
            headers={"Content-Type": content_type, **session.authorization()},
            body=None if asked.body is None else json.dumps(asked.body).encode(),
            ends=time.monotonic() + asked.deadline.remaining,
            late=asked.deadline.missed(asked.who),
            most_bytes=budget.limits.bytes,
            bytes_before=budget.bytes,
            to_reach_it=": check the context, or pass --no-cluster",
        )

        def is_passing(state: RetryCallState) -> bool:
            # a deletion is of one UID
            is_repeatable, outcome = asked.method in {"GET", "DELETE"}, state.outcome
            if outcome and (failed := outcome.exception()):
                is_unsent = isinstance(failed, Unreachable) and (is_repeatable or failed.is_refused)
                return is_unsent and state.attempt_number == 1
            return is_repeatable and outcome is not None and outcome.result().status in _PASSING

        def told_or_random(state: RetryCallState) -> float:
            wait = wait_random_exponential(_FIRST_PAUSE, _LONGEST_PAUSE)(state)
            if state.outcome and not state.outcome.failed:
                told = state.outcome.result().headers.get("Retry-After", "")
                return max(wait, int(told)) if re.fullmatch("[0-9]{1,6}", told) else wait
            return wait

        attempts = Retrying(
            retry=is_passing,
            wait=told_or_random,
            stop=lambda state: (
                state.attempt_number >= _MOST_ATTEMPTS
                or time.monotonic() + state.upcoming_sleep >= request.ends
            ),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        answer: Answer = attempts(lambda: answer_to(request, session.pool))
        budget.bytes += len(answer.content)
        self._hear(answer.headers.get("Date"))
        return answer

    def _hear(self, date: str | None) -> None:
        """Take in the Date that an answer came with."""
        try:
            said = parsedate_to_datetime(date or "")
        except ValueError:
            return
        # -0000, for a zone that is not told, gives a time without one; an API server's is GMT
        self.heard = Heard(said if said.tzinfo else said.replace(tzinfo=UTC), monotonic())


def _refusal(who: str, path: str, answer: Answer, document: Any) -> StateUnavailable:
    status = answer.status
    advice = _ADVICE.get(status, _OTHER_ADVICE).format(resource=_RESOURCES[path])
    refused = PodsForbidden if (status, path) == (HTTPStatus.FORBIDDEN, _PODS) else StateUnavailable
    said = answer.told(document, "message")
    return refused(f"{who}: the API server {advice} ({status}: {said})")
