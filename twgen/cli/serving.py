"""Answering over HTTP what this process knows: the metrics of `twgen tick`, and the page."""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, NamedTuple

from twgen.errors import InvalidInput

_PATIENCE = 10
"""Seconds until a client that says nothing, or takes nothing, is hung up on."""

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
