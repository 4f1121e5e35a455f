"""Serves the metrics of `twgen tick` and the page over HTTP."""

import gzip
import json
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from threading import Thread
from typing import Any, NamedTuple, Self

from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import WSGITask
from waitress.wasyncore import close_all

from twgen.errors import InvalidInput
from twgen.model.operator import Links
from twgen.model.rollout import Verb
from twgen.model.status import RolloutStatus
from twgen.reporting.status.metrics import CONTENT_TYPE

_PATIENCE = 10
"""The number of seconds after which the connection of an idle or slow client is closed."""
_LONGEST = 4096
"""The maximum size of a request's body in bytes."""
_LONGEST_HEAD = 16 * 1024
"""The maximum size of a request's first line and headers in bytes.

The limit leaves room for cookies, because a browser sends a host's cookies to all of its ports.
"""
_CONNECTIONS = 100
"""The maximum number of connections without a complete request. A further connection closes the oldest."""
_PAGE = "text/html; charset=utf-8"
_PART = "application/json"
_GUARDED = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)

Request = Mapping[str, Any]
"""WSGI's environ dictionary (https://peps.python.org/pep-3333/#environ-variables)."""


class Response(NamedTuple):
    """A response to a client."""

    status: str
    """The code and the reason, such as `200 OK`."""
    kind: str
    """The content type."""
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """The headers in addition to Content-Type and Content-Length."""


class _OnlyTask(WSGITask):
    """Answers only one request per connection, because a client could send more without reading responses."""

    def build_response_header(self) -> bytes:
        self.set_close_on_finish()
        return super().build_response_header()


class _Connection(HTTPChannel):
    """A client's connection. A client that sends or reads slowly does not block other clients."""

    task_class = _OnlyTask
    _begun = 0.0

    def __init__(self, server: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(server, *args, **kwargs)
        waiting = [client for client in server.active_channels.values() if not client.requests]
        if len(waiting) > _CONNECTIONS:
            min(waiting, key=attrgetter("creation_time")).handle_close()

    def received(self, data: bytes) -> bool:
        """Read the available part of a request, and close the connection of a slow client.

        waitress itself closes only the connections of clients that send nothing.
        """
        if not self.request:
            self._begun = time.monotonic()
        elif time.monotonic() - self._begun > _PATIENCE:
            self.will_close = True
            return False
        return bool(super().received(data))


@contextmanager
def serving(
    option: str,
    address: str,
    answer: Callable[[Request], Response],
    methods: Collection[str] = ("GET", "HEAD"),
) -> Iterator[int]:
    """Serve requests on HOST:PORT, and yield the port.

    Port 0 chooses a free port. `:PORT` listens on all addresses. An IPv6 address is in brackets, and `[::]`
    includes all IPv4 addresses. If the server cannot listen on the address, this raises InvalidInput with the
    name of the option.
    """

    def application(request: Request, start: Callable[..., Any]) -> Iterable[bytes]:
        method = request["REQUEST_METHOD"]
        refused = Response("405 Method Not Allowed", "text/plain", b"only GET\n")
        page = answer(request) if method in methods else refused
        length = str(len(page.body))
        start(page.status, [("Content-Type", page.kind), ("Content-Length", length), *page.headers])
        # a body after HEAD would be read as the next response on the connection
        return [] if method == "HEAD" else [page.body]

    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or ("::" if socket.has_dualstack_ipv6() else "")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        is_dual_stack = ":" in host and socket.has_dualstack_ipv6()
        listening = socket.create_server((host, int(port)), family=family, dualstack_ipv6=is_dual_stack)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"{option} {address}: cannot listen there ({error})") from error
    channels: dict[int, Any] = {}
    # with one socket, create_server returns the server itself; its type annotations say otherwise
    server: Any = create_server(
        application,
        map=channels,
        sockets=[listening],
        threads=4,
        ident=None,
        channel_timeout=_PATIENCE,
        cleanup_interval=_PATIENCE,
        connection_limit=2 * _CONNECTIONS,
        max_request_header_size=_LONGEST_HEAD,
        max_request_body_size=_LONGEST,
    )
    server.channel_class = _Connection
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        # close the sockets in the server's own thread, which ends when no socket is left
        with suppress(OSError):  # the sockets may already be closed
            server.trigger.pull_trigger(lambda: close_all(channels, ignore_all=True))
        thread.join(_PATIENCE)
        server.task_dispatcher.shutdown()


@dataclass(slots=True)
class Board:
    """The last successful read, the error of a newer read, and the page that shows both."""

    refreshed_every: float
    """The time between two reads, in seconds."""
    title: str = ""
    statuses: Sequence[RolloutStatus] = ()
    read_at: datetime | None = None
    """The time of the last successful read, or None before the first."""
    failure: str = ""
    """The error of the newest read, or empty if the read succeeded."""
    offers: Callable[[RolloutStatus], Collection[Verb]] = lambda _: ()
    """The buttons of a worker."""
    links: Links = field(default_factory=Links)
    """The external pages that the page's rows link to."""
    _shown: tuple[object, ...] = ()
    """Everything that the rendered bodies depend on. Times are rounded down to the minute."""
    _rendered: dict[tuple[str, bool], tuple[str, "_Body"]] = field(default_factory=dict)
    """The newest rendered body and the error that it shows, by content type and whether there is an error."""

    def show(self, statuses: Sequence[RolloutStatus], now: datetime) -> None:
        """Replace the last read. If nothing changed, rendered bodies are reused until the minute ends."""
        buttons = [tuple(self.offers(status)) for status in statuses]
        # statuses compare as equal even if their requests differ
        requests = [(status.pending, status.resource_version) for status in statuses]
        shown = (list(statuses), requests, buttons, now.replace(second=0, microsecond=0))
        self.statuses, self.read_at, self.failure = statuses, now, ""
        if shown != self._shown:
            # replace the dictionary last: a thread that still renders older statuses writes into the old one
            self._shown, self._rendered = shown, {}

    def answer(self, request: Request) -> Response:
        """The page, or only its current content if the already open page sends the request."""
        from twgen.reporting.page.pages import fleet_page, fleet_part

        if not (now := self.read_at):
            return Response("503 Service Unavailable", "text/plain", b"nothing has been read yet\n")
        kind = _PART if request.get("HTTP_ACCEPT") == _PART else _PAGE
        rendered, failure = self._rendered, self.failure
        rendered_with, body = rendered.get((kind, bool(failure)), ("", None))
        if not body or rendered_with != failure:
            shown = (self.statuses, now, self.offers, self.links)
            if kind == _PAGE:
                text = fleet_page(*shown, title=self.title, refreshed_every=self.refreshed_every)
            else:
                text = json.dumps({"failure": failure, "fleet": fleet_part(*shown)}, ensure_ascii=False)
            body = _Body.of(text.encode())
            rendered[kind, bool(failure)] = failure, body
        # the time of the read is in a header, because it changes even if the body does not
        as_of = ("As-Of", f"{now:%Y-%m-%d %H:%M:%S} UTC")
        headers = (*_GUARDED, as_of, ("ETag", body.tag), ("Vary", "Accept, Accept-Encoding"))
        known = request.get("HTTP_IF_NONE_MATCH", "").split(",")
        if body.tag in map(str.strip, known):
            return Response("304 Not Modified", kind, b"", headers)
        if not _takes_gzip(request):
            return Response("200 OK", kind, body.plain, headers)
        return Response("200 OK", kind, body.zipped, (*headers, ("Content-Encoding", "gzip")))


class _Body(NamedTuple):
    """A rendered body, which is compressed once for all viewers."""

    plain: bytes
    zipped: bytes
    tag: str
    """The body's ETag. It is weak, because compression does not change the ETag."""

    @classmethod
    def of(cls, plain: bytes) -> Self:
        """Compress the body, and compute its ETag."""
        return cls(plain, gzip.compress(plain, mtime=0), f'W/"{sha256(plain).hexdigest()[:32]}"')


def _takes_gzip(request: Request) -> bool:
    """Whether the client accepts gzip (https://www.rfc-editor.org/rfc/rfc9110#name-accept-encoding)."""
    accepted = {}
    for item in request.get("HTTP_ACCEPT_ENCODING", "").lower().split(","):
        coding, _, weight = item.replace(" ", "").partition(";q=")
        accepted[coding] = not weight or weight.strip("0.") != ""
    # `*` applies only to encodings that the header does not name
    return accepted.get("gzip", accepted.get("*", False))


@dataclass(slots=True)
class Exposed:
    """The data that `twgen tick` serves over HTTP."""

    board: Board
    metrics: bytes = b"# EOF\n"
    healthy_until: float = 0
    """The monotonic time by which the next check must succeed."""

    def answer(self, request: Request) -> Response:
        """The response for the request's path."""
        match request["PATH_INFO"]:
            case "/":
                return self.board.answer(request)
            case "/metrics":
                return Response("200 OK", CONTENT_TYPE, self.metrics)
            case "/healthz" if time.monotonic() <= self.healthy_until:
                return Response("200 OK", "text/plain", b"ok\n")
            case "/healthz":
                why = b"no check has succeeded for too long: see the log\n"
                return Response("503 Service Unavailable", "text/plain", why)
        return Response("404 Not Found", "text/plain", b"the pages are /, /metrics and /healthz\n")
