"""What `twgen tick --metrics` serves: how rollouts go, and whether it still looks."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from twgen.errors import InvalidInput
from twgen.reporting.status.metrics import CONTENT_TYPE

_PATIENCE = 10
"""Seconds until a client that says nothing, or takes nothing, is hung up on: each holds a thread."""


@dataclass(slots=True)
class Exposed:
    """What whoever asks next is told."""

    metrics: bytes = b"# EOF\n"
    healthy_until: float = 0
    """On the monotonic clock: a look has to be done by then."""
    port: int = 0
    """Where it is served."""

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """The status, the type and the body for a path."""
        match path.partition("?")[0]:
            case "/metrics":
                return 200, CONTENT_TYPE, self.metrics
            case "/healthz" if time.monotonic() <= self.healthy_until:
                return 200, "text/plain", b"ok\n"
            case "/healthz":
                return 503, "text/plain", b"no look was done for too long: see its log\n"
        return 404, "text/plain", b"there are /metrics and /healthz\n"


class _IPv6Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Take the address for IPv4 too, where the system lets one."""
        with suppress(OSError):
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


@contextmanager
def exposing(address: str, exposed: Exposed) -> Iterator[None]:
    """Serve it at HOST:PORT, or at :PORT of every address; raises InvalidInput where that cannot be.

    An IPv6 address stands in brackets, and `[::]` is every address of IPv4 too.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            status, kind, body = exposed.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or ("::" if socket.has_dualstack_ipv6() else "")
    try:
        server = (_IPv6Server if ":" in host else ThreadingHTTPServer)((host, int(port)), Handler)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"--metrics {address}: nothing can be served there ({error})") from error
    exposed.port = server.server_port
    with server:
        Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
