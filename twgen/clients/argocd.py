"""Asks one Argo CD about its applications, over its API, inside the deadline."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from twgen.clients.deadline import Deadline, in_thread
from twgen.errors import InvalidInput, StateUnavailable

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

AT_ONCE = 4
"""Requests, so that an Argo CD is asked for no more renders than that."""
_LONGEST_MESSAGE = 200
_TOKEN = re.compile("[!-~]+")
"""What a header may hold."""
_ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "asks for another token: is it still valid?",
    HTTPStatus.FORBIDDEN: "does not permit it: the account of the token needs `applications, get`",
    HTTPStatus.NOT_FOUND: "does not know it: is it the right Argo CD?",
    HTTPStatus.TOO_MANY_REQUESTS: "limits the rate of requests: the next look asks again; make --every"
    " longer",
}
_SOMETHING_ELSE = "it answers with something else: is that its address?"


def _advice(status: int) -> str:
    if status in _ADVICE:
        return _ADVICE[status]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "is in trouble: the next look asks again; look into the log of argocd-server"
    if status >= HTTPStatus.BAD_REQUEST:
        return "refuses: is it an Argo CD of 2.14 or later?"
    return "sends one elsewhere: give the address of its API itself"


@dataclass(slots=True)
class ArgoCD:
    """An Argo CD and an account of it, which needs no right but to get applications."""

    server: str
    """`https://argocd.example.com`, with a path where it is served under one."""
    token: str = field(repr=False)
    token_file: str = ""
    """Read for every request, since tokens are renewed; empty: the token is `token`."""
    ca_file: str = ""
    """Empty: whom the system trusts."""
    _pool: "PoolManager" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse an address of which nobody can tell how to reach it."""
        from urllib3 import PoolManager

        self._pool = PoolManager(maxsize=AT_ONCE, ca_certs=self.ca_file or None)
        if not self.server.startswith(("https://", "http://")):
            raise InvalidInput(f"--argocd-server: {self.server!r} begins with neither https:// nor http://")

    async def application(
        self, tracked_as: str, deadline: Deadline, *, hard_refresh: bool = False
    ) -> Mapping[str, Any]:
        """An application, by the name that its objects are tracked by; rendered anew if that is wanted.

        Raises StateUnavailable when Argo CD refuses or cannot be reached, OutOfTime after the deadline.
        """
        query = {"refresh": "hard"} if hard_refresh else {}
        document = await self._answer(tracked_as, "", query, deadline)
        if "metadata" not in document:
            raise StateUnavailable(f"{self._who(tracked_as)}: {_SOMETHING_ELSE}")
        return document

    async def config_maps(self, tracked_as: str, deadline: Deadline) -> list[Mapping[str, Any]]:
        """The ConfigMaps of an application as it was rendered last, be they applied or not; raises alike."""
        document = await self._answer(tracked_as, "/managed-resources", {"kind": "ConfigMap"}, deadline)
        try:
            texts = [item.get("targetState") for item in document.get("items") or ()]
            found = [json.loads(text) for text in texts if text]
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise StateUnavailable(f"{self._who(tracked_as)}: {_SOMETHING_ELSE}") from error
        return [manifest for manifest in found if isinstance(manifest, dict)]

    def _who(self, tracked_as: str) -> str:
        return f"Argo CD at {self.server}, application {tracked_as}"

    async def _answer(
        self, tracked_as: str, below: str, query: Mapping[str, str], deadline: Deadline
    ) -> Mapping[str, Any]:
        # outside Argo CD's own namespace: <namespace>_<name>, and neither may hold a _
        namespace, _, name = tracked_as.rpartition("_")
        query = ({"appNamespace": namespace} if namespace else {}) | dict(query)
        who, place = self._who(tracked_as), f"/api/v1/applications/{quote(name, safe='')}{below}"
        url = f"{self.server.rstrip('/')}{place}"
        answer = await deadline.bound(who, in_thread(lambda: self._get(who, url, query, deadline.remaining)))
        try:
            document = json.loads(answer.data)
        except (ValueError, RecursionError):
            document = {"message": answer.data[:_LONGEST_MESSAGE].decode(errors="replace")}
        if not isinstance(document, dict):
            document = {}
        if answer.status != HTTPStatus.OK:
            said = " ".join(str(document.get("message", "")).split())[:_LONGEST_MESSAGE]
            raise StateUnavailable(f"{who}: it {_advice(answer.status)} ({answer.status}: {said})")
        return document

    def _get(self, who: str, url: str, query: Mapping[str, str], seconds: float) -> "BaseHTTPResponse":
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        try:
            told = Path(self.token_file).read_bytes() if self.token_file else self.token.encode()
        except OSError as error:
            raise StateUnavailable(f"{self.token_file} cannot be read ({error.strerror})") from error
        token = told.strip().decode("latin-1")
        if not _TOKEN.fullmatch(token):
            raise StateUnavailable(f"{self.token_file or 'ARGOCD_AUTH_TOKEN'} holds no token of Argo CD")
        try:
            # a redirect could take the token to another host
            return self._pool.request(
                "GET",
                url,
                fields=dict(query),
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
                timeout=Timeout(total=max(seconds, 0.1)),
                redirect=False,
                retries=False,
            )
        except (HTTPError, OSError) as error:
            raise StateUnavailable(f"{who} cannot be reached ({' '.join(str(error).split())})") from error
