"""Reads applications through the API of one Argo CD server."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from twgen.clients.deadline import Deadline, in_thread
from twgen.clients.http import TOKEN, HttpAnswer, HttpRequest, address_of, answer_to, json_of, pool_trusting
from twgen.cluster.field_managers import holders_wrote_at
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.paths import list_at, value_at
from twgen.model.record_shapes import Field, excerpt
from twgen.model.rollout import LastSync
from twgen.model.shapes import Findings, listing
from twgen.model.times import parse_time
from twgen.versioning.names import REFRESH
from twgen.yaml.source import WORLD, Budget

if TYPE_CHECKING:
    from urllib3 import PoolManager

AT_ONCE = 4
"""The maximum number of concurrent requests to Argo CD. Each request can start a render."""
_ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "rejects the token: is it still valid?",
    HTTPStatus.FORBIDDEN: "does not permit this request: the token's account needs `applications, get`",
    HTTPStatus.NOT_FOUND: "does not have this application: is it the right Argo CD?",
    HTTPStatus.TOO_MANY_REQUESTS: "limits the rate of requests: the next check tries again; increase --every",
}
_FAILED = "failed: the next check tries again; check the argocd-server log"
_OTHER_ADVICE = "rejects the request: check that it is Argo CD 2.14 or newer"
_CONFIG_MAP = "ConfigMap"
_MANAGED = excerpt(Field("items", listing(excerpt("targetState"))))
_SOMETHING_ELSE = "the answer is not from Argo CD: is the address right?"


@dataclass(slots=True)
class ArgoCD:
    """An Argo CD server. The token's account only needs permission to get applications."""

    server: str
    """The address, such as `https://argocd.example.com`, with the root path if Argo CD has one."""
    token: str = field(repr=False)
    token_file: str = ""
    """A token file, which is read for each request because tokens are renewed. If empty, `token` is used."""
    ca_file: str = ""
    """A file of trusted certificates. If it is empty, the system's certificate authorities are trusted."""
    _pool: "PoolManager" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise InvalidInput if the address is invalid."""
        if not self.server.startswith(("https://", "http://")) or not address_of(self.server):
            such_as = "an address such as https://argocd.example.com"
            raise InvalidInput(f"--argocd-server: {self.server!r} is not {such_as}")
        self._pool = pool_trusting(self.server, self.ca_file)

    def close(self) -> None:
        """Close the connections to the server."""
        self._pool.clear()

    async def application(
        self, tracked_as: str, deadline: Deadline, *, hard_refresh: bool = False
    ) -> Mapping[str, Any]:
        """Read an application. `tracked_as` is the application's name in its objects' tracking annotation.

        With `hard_refresh`, Argo CD renders the application again first. Raises StateUnavailable if Argo CD
        rejects the request or cannot be reached, and OutOfTime after the deadline.
        """
        query = {"refresh": "hard"} if hard_refresh else {}
        document = await self._answer(tracked_as, "", query, deadline, Budget(WORLD))
        # Argo CD may omit the kind
        name_and_kind = value_at(document, "metadata", "name"), document.get("kind") or "Application"
        if name_and_kind != (tracked_as.rpartition("_")[2], "Application"):
            raise StateUnavailable(f"{self._subject(tracked_as)}: {_SOMETHING_ELSE}")
        return document

    async def config_maps(self, tracked_as: str, deadline: Deadline) -> list[Mapping[str, Any]]:
        """The ConfigMaps in an application's last render, applied or not.

        Raises the same errors as `application`.
        """
        budget, query = Budget(WORLD), {"kind": _CONFIG_MAP}
        document = await self._answer(tracked_as, "/managed-resources", query, deadline, budget)
        findings = Findings()
        _MANAGED.read(document, None, findings)
        items = () if findings.problems else document.get("items") or ()
        # objects that are applied but not rendered have no target state
        states = (item.get("targetState") or "null" for item in items)
        manifests = [json_of(text, budget) for text in states if text != "null"]
        if findings.problems or any(value_at(manifest, "kind") != _CONFIG_MAP for manifest in manifests):
            raise StateUnavailable(f"{self._subject(tracked_as)}: {_SOMETHING_ELSE}")
        return manifests

    def _subject(self, tracked_as: str) -> str:
        return f"Argo CD at {self.server}, application {tracked_as}"

    async def _answer(
        self, tracked_as: str, below: str, query: Mapping[str, str], deadline: Deadline, budget: Budget
    ) -> Mapping[str, Any]:
        # an application outside Argo CD's own namespace is tracked as <namespace>_<name>, and neither part
        # can contain _
        namespace, _, name = tracked_as.rpartition("_")
        query = ({"appNamespace": namespace} if namespace else {}) | dict(query)
        subject, place = self._subject(tracked_as), f"/api/v1/applications/{quote(name, safe='')}{below}"

        def get() -> HttpAnswer:
            request = HttpRequest(
                subject=subject,
                method="GET",
                url=f"{self.server.rstrip('/')}{place}{f'?{urlencode(query)}' if query else ''}",
                headers={"Authorization": f"Bearer {self._current_token()}"},
                deadline=deadline,
                most_bytes=WORLD.bytes,
            )
            return answer_to(request, self._pool)

        answer = await deadline.bound(subject, in_thread(get))
        document, status = answer.document(budget), answer.status
        if status != HTTPStatus.OK:
            other = _FAILED if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _OTHER_ADVICE
            why = f"{status}: {answer.message(document, 'message')}"
            raise StateUnavailable(f"{subject}: it {_ADVICE.get(status, other)} ({why})")
        return document or {}

    def _current_token(self) -> str:
        try:
            content = Path(self.token_file).read_bytes() if self.token_file else self.token.encode()
        except OSError as error:
            raise StateUnavailable(f"{self.token_file} cannot be read ({error.strerror})") from error
        token = content.strip().decode("latin-1")
        if not TOKEN.fullmatch(token):
            raise StateUnavailable(
                f"{self.token_file or 'ARGOCD_AUTH_TOKEN'} does not contain a token of Argo CD"
            )
        return token


def asked_since(application: Mapping[str, Any]) -> datetime | None:
    """When the pending refresh was requested, or None if no refresh is pending or the time is unknown.

    Argo CD removes the annotation once it has refreshed the application.
    """
    metadata = value_at(application, "metadata")
    if not value_at(metadata, "annotations", REFRESH):
        return None
    request_times = holders_wrote_at(metadata, REFRESH)
    if not request_times:
        return None
    with suppress(ValueError):
        request_times.append(parse_time(str(value_at(application, "status", "reconciledAt"))))
    return max(request_times)


def listed_config_maps(application: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The ConfigMaps among the resources that an application lists, by namespace and name."""
    return {
        (str(item.get("namespace")), str(item.get("name"))): item
        for item in list_at(application, "status", "resources")
        if value_at(item, "kind") == "ConfigMap" and not value_at(item, "group")
    }


def last_sync(application: Mapping[str, Any]) -> LastSync:
    """The state of an application's last sync, if there was one."""
    operation = value_at(application, "status", "operationState")
    phase = value_at(operation, "phase")
    is_partial = bool(value_at(operation, "operation", "sync", "resources"))
    is_running = "operation" in application or phase == "Running"
    return LastSync(is_running, phase == "Succeeded" and is_partial)


def refused_objects(application: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """Argo CD's message for each object that the last sync failed to apply, by namespace, kind and name."""
    return {
        (str(item.get("namespace")), str(item.get("kind")), str(item.get("name"))): " ".join(
            str(item.get("message") or "it was rejected").split()
        )
        for item in list_at(application, "status", "operationState", "syncResult", "resources")
        if isinstance(item, dict) and item.get("status") == "SyncFailed"
    }
