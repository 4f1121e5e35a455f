"""Real trouble on loopback: addresses that refuse, hang, are slow, answer half, or die at a given call."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from testing.background import Background

_CHUNK = 65536
_PREFACE = 24
_FRAME_HEADER = 9
_HEADERS = 1


@dataclass(frozen=True, slots=True)
class Trouble:
    """What goes wrong on the way to a server; by default nothing does."""

    pause: float = 0.0
    """Seconds before each part of the answer."""
    answer_bytes: int | None = None
    """The answer of each connection ends after so many bytes."""
    last_request: int | None = None
    """The server is gone when the request after this one comes, counted from 1 over all connections."""


class Forwarder:
    """Passes on what it is sent, until the trouble begins."""

    def __init__(self, target: str, trouble: Trouble) -> None:
        self._target = target.rsplit(":", 1)
        self._trouble = trouble
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self._background = Background()
        self.requests = 0
        """How many requests came so far; the SDK's first one in a connection is GetSystemInfo."""
        self.address = f"127.0.0.1:{self._background.run(self._listen())}"

    def die(self) -> None:
        """Refuse every connection from now on, and break those that there are."""
        self._background.run(self._die())

    def close(self) -> None:
        """Stop for good."""
        self.die()
        self._background.close()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _die(self) -> None:
        if self._server:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with suppress(OSError, asyncio.CancelledError):
            answers, onward = await asyncio.open_connection(*self._target)
            self._writers.append(onward)
            await asyncio.gather(self._pass_requests(reader, onward), self._pass_answers(answers, writer))

    async def _pass_requests(self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter) -> None:
        frames = _Frames()
        while data := await reader.read(_CHUNK):
            self.requests += frames.requests_in(data)
            if self._trouble.last_request is not None and self.requests > self._trouble.last_request:
                await self._die()
                return
            onward.write(data)
            await onward.drain()
        onward.close()

    async def _pass_answers(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._trouble.answer_bytes
        while data := await answers.read(_CHUNK):
            await asyncio.sleep(self._trouble.pause)
            writer.write(data[:left])
            await writer.drain()
            if left is not None and (left := left - len(data)) <= 0:
                break
        writer.close()


class _Frames:
    """Counts the requests in one direction of an HTTP/2 connection: frames of the type HEADERS.

    https://www.rfc-editor.org/rfc/rfc9113#name-frame-format
    """

    def __init__(self) -> None:
        self._skipped = _PREFACE
        self._pending = b""

    def requests_in(self, data: bytes) -> int:
        """How many requests begin in the next bytes of the connection."""
        self._pending += data
        count = 0
        while len(self._pending) >= self._skipped + _FRAME_HEADER:
            header = self._pending[self._skipped : self._skipped + _FRAME_HEADER]
            count += header[3] == _HEADERS
            self._pending = self._pending[self._skipped + _FRAME_HEADER :]
            self._skipped = int.from_bytes(header[:3], "big")
        return count


@contextmanager
def forwarding(target: str, trouble: Trouble) -> Iterator[Forwarder]:
    """An address that leads to the target, troubled."""
    with closing(Forwarder(target, trouble)) as forwarder:
        yield forwarder


@contextmanager
def refusing() -> Iterator[str]:
    """An address where every connection is refused, and which nobody else can take."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield _address(bound)


@contextmanager
def hanging() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield _address(listening)


def _address(bound: socket.socket) -> str:
    return f"127.0.0.1:{bound.getsockname()[1]}"
