"""Answering over HTTP what this process knows: the metrics of `twgen tick`, and the page."""

import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Thread
from typing import Any, NamedTuple

from twgen.errors import InvalidInput
from twgen.model.status import RolloutStatus
from twgen.reporting.status.metrics import CONTENT_TYPE

_PATIENCE = 10
"""Seconds until a client that says nothing, or takes nothing, is hung up on."""
_PAGE = "text/html; charset=utf-8"
_PART = "application/json"
_GUARDED = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)

Request = Mapping[str, Any]
"""As WSGI has it (https://peps.python.org/pep-3333/#environ-variables)."""


class Answer(NamedTuple):
    """What a client gets."""

    status: str
    """Number and words: `200 OK`."""
    kind: str
    """Its content type."""
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """Beside type and length."""


@contextmanager
def serving(option: str, address: str, answer: Callable[[Request], Answer]) -> Iterator[int]:
    """Answer each GET at HOST:PORT, or at :PORT of every address; the port, which may be asked for as 0.

    An IPv6 address stands in brackets, and `[::]` is every address of IPv4 too. Raises InvalidInput, which
    names the option, where nothing can be served.
    """
    # it has threads of its own, and drops clients that send nothing
    from waitress.server import create_server
    from waitress.wasyncore import close_all

    def application(request: Request, start: Callable[..., Any]) -> Iterable[bytes]:
        is_read = request["REQUEST_METHOD"] in {"GET", "HEAD"}
        told = answer(request) if is_read else Answer("405 Method Not Allowed", "text/plain", b"only GET\n")
        start(
            told.status, [("Content-Type", told.kind), ("Content-Length", str(len(told.body))), *told.headers]
        )
        return [told.body]

    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or ("::" if socket.has_dualstack_ipv6() else "")
    try:
        is_newer = ":" in host
        family = socket.AF_INET6 if is_newer else socket.AF_INET
        both = is_newer and socket.has_dualstack_ipv6()
        listening = socket.create_server((host, int(port)), family=family, dualstack_ipv6=both)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"{option} {address}: cannot listen there ({error})") from error
    channels: dict[int, Any] = {}
    # of one socket it is the server itself, which its types do not tell
    server: Any = create_server(
        application,
        map=channels,
        sockets=[listening],
        threads=4,
        ident=None,
        channel_timeout=_PATIENCE,
        cleanup_interval=_PATIENCE,
    )
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        # in its own thread: it ends when nothing is left that it could wait for
        with suppress(OSError):  # an answer that is being sent may have pulled it first: all is closed then
            server.trigger.pull_trigger(lambda: close_all(channels, ignore_all=True))
        thread.join(_PATIENCE)
        server.task_dispatcher.shutdown()


@dataclass(slots=True)
class Board:
    """What was read last, and what went wrong since."""

    refreshed_every: float
    """Seconds."""
    statuses: Sequence[RolloutStatus] = ()
    read_at: datetime | None = None
    """None: nothing has been read yet."""
    failure: str = ""
    """Why the newest look failed; empty: it did not."""
    _made: dict[str, str] = field(default_factory=dict)
    """What was rendered of it, for who asks next, by type."""

    def show(self, statuses: Sequence[RolloutStatus], now: datetime) -> None:
        """Take in what was read."""
        self.statuses, self.read_at, self.failure, self._made = statuses, now, "", {}

    def answer(self, request: Request) -> Answer:
        """The page; for itself, when it is open already, what of it is another one by now."""
        from twgen.reporting.page.pages import fleet_page, fleet_part

        if not (now := self.read_at):
            return Answer("503 Service Unavailable", "text/plain", b"nothing has been read yet\n")
        is_page = request.get("HTTP_ACCEPT") != _PART
        made, kind = self._made, _PAGE if is_page else _PART
        if kind not in made and is_page:
            made[kind] = fleet_page(self.statuses, now, refreshed_every=self.refreshed_every)
        elif kind not in made:
            made[kind] = fleet_part(self.statuses, now)
        if is_page:
            return Answer("200 OK", _PAGE, made[kind].encode(), _GUARDED)
        told = {"asOf": f"{now:%Y-%m-%d %H:%M:%S} UTC", "failure": self.failure, "fleet": made[kind]}
        return Answer("200 OK", _PART, json.dumps(told).encode(), _GUARDED)


@dataclass(slots=True)
class Exposed:
    """What whoever asks next is told."""

    board: Board
    metrics: bytes = b"# EOF\n"
    healthy_until: float = 0
    """On the monotonic clock: a look has to be done by then."""

    def answer(self, request: Request) -> Answer:
        """What is at the path that is asked for."""
        match request["PATH_INFO"]:
            case "/":
                return self.board.answer(request)
            case "/metrics":
                return Answer("200 OK", CONTENT_TYPE, self.metrics)
            case "/healthz" if time.monotonic() <= self.healthy_until:
                return Answer("200 OK", "text/plain", b"ok\n")
            case "/healthz":
                why = b"no check has succeeded for too long: see the log\n"
                return Answer("503 Service Unavailable", "text/plain", why)
        return Answer("404 Not Found", "text/plain", b"the pages are /, /metrics and /healthz\n")
