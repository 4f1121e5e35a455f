"""Network faults on loopback: addresses that refuse, hang, are slow, cut answers, or die at a given call."""

import asyncio
import gzip
import math
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from testing.background import Background
from testing.processes import free_ports

_CHUNK = 65536
_PREFACE = 24
_FRAME_HEADER = 9
_WRAPPING = 5
_FOR_EVER = 3600.0
_DATA = 0
_HEADERS = 1


@dataclass(frozen=True, slots=True)
class Trouble:
    """The faults between a client and a server; by default, there are none."""

    pause: float = 0.0
    """Seconds before each part of the answer."""
    answer_bytes: int | None = None
    """Each connection's answer ends after this many bytes."""
    slow_every: int | None = None
    """One of this many requests reaches the server late, while others on its connection continue."""
    slow_by: float = 0.0
    """How many seconds late."""
    last_request: int | None = None
    """The server is gone after this request, counted from 1 over all connections."""
    lost_answer: int | None = None
    """The request with this number is carried out, but its answer and its connection are lost."""
    lost_body: bytes | None = None
    """The same for the first request that contains these bytes."""
    lost_turn: int | None = None
    """The server receives the client's data in this turn, counted from 1 over all connections, but its answer
    is lost. A turn begins when the client sends data first, or after the server has. This is for encrypted
    connections: every request begins a turn, and so does every part of a handshake."""
    lost_every: int | None = None
    """From then on, or from the start, this is repeated after this many more requests."""
    hangs: bool = False
    """The connection stays open without an answer."""


class Forwarder:
    """Forwards data until a fault occurs."""

    def __init__(self, target: str, trouble: Trouble) -> None:
        self._target = target.rsplit(":", 1)
        self._trouble = trouble
        self._writers: list[asyncio.StreamWriter] = []
        self._passing: dict[socket.socket, asyncio.Task[None]] = {}
        self._listening: socket.socket
        self._background = Background()
        self._begun = 0
        self._turns = 0
        self._heard: set[asyncio.StreamWriter] = set()
        """The clients whose turn is in progress."""
        self._loses_at = trouble.lost_answer or trouble.lost_every or math.inf
        self._late: set[tuple[asyncio.StreamWriter, int]] = set()
        self.connections = 0
        """The number of connections so far."""
        self.requests = 0
        """The number of requests so far. The SDK's first request on a connection is GetSystemInfo."""
        self.bodies = 0
        """The number of requests that contained `lost_body`."""
        self.lost = 0
        """The number of lost answers so far."""
        # no outgoing connection must take its port while it is dead
        [self._port] = free_ports(1)
        self._background.run(self._listen())
        self.address = f"127.0.0.1:{self._port}"

    def die(self) -> None:
        """Refuse new connections, and break existing ones."""
        self._background.run(self._die())

    def revive(self) -> None:
        """Accept connections again at the same address."""
        self._background.run(self._listen())

    def turn(self, target: str) -> None:
        """Forward to another server from now on; existing connections break."""
        self.die()
        self._target = target.rsplit(":", 1)
        self.revive()

    def close(self) -> None:
        """Stop permanently."""
        self.die()
        self._background.run(self._end())
        self._background.close()
        for accepted in self._passing:
            accepted.close()

    async def _listen(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._listening.settimeout(0)
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def _die(self) -> None:
        if self._listening.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _end(self) -> None:
        for task in self._passing.values():
            task.cancel()
        await asyncio.gather(*self._passing.values(), return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    def _accept(self) -> None:
        """Accept a connection. A server of asyncio would lose accepted connections when it is closed."""
        with suppress(BlockingIOError, ConnectionAbortedError):
            accepted, _ = self._listening.accept()
            self.connections += 1
            self._passing[accepted] = asyncio.create_task(self._pass(accepted))

    async def _pass(self, accepted: socket.socket) -> None:
        with suppress(OSError, asyncio.CancelledError):
            reader, writer = await asyncio.open_connection(sock=accepted)
            self._writers.append(writer)
            answers, onward = await asyncio.open_connection(*self._target)
            self._writers.append(onward)
            if self._trouble.lost_turn:
                passing = self._pass_turns(reader, onward, writer), self._answer_turns(answers, writer)
            else:
                passing = self._pass_requests(reader, onward), self._pass_answers(answers, writer)
            await asyncio.gather(*passing)

    async def _pass_turns(
        self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK):
            self._turns += writer not in self._heard
            self._heard.add(writer)
            onward.write(data)
            await onward.drain()
        onward.close()

    async def _answer_turns(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await answers.read(_CHUNK):
            if self._turns >= (self._trouble.lost_turn or 0):
                self.lost += 1
                await asyncio.sleep(_FOR_EVER if self._trouble.hangs else 0)
                break
            self._heard.discard(writer)
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    async def _pass_requests(self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter) -> None:
        frames = _Frames()
        while data := await reader.read(_CHUNK):
            arrived = list(frames.whole_in(data))
            self.requests += sum(frame.begins_request for frame in arrived)
            if self._trouble.last_request is not None and self.requests > self._trouble.last_request:
                await self._die()
                return
            if body := self._trouble.lost_body:
                self.bodies += (found := sum(body in frame.message for frame in arrived))
                self._loses_at = self.requests if found and not self.lost else self._loses_at
            if self._trouble.slow_every:
                self._pass_late(arrived, onward)
            else:
                onward.write(data)
            await onward.drain()
        onward.close()

    def _pass_late(self, frames: Iterable["_Frame"], onward: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        for frame in frames:
            if frame.begins_request:
                self._begun += 1
                if self._begun % (self._trouble.slow_every or 1) == 0:
                    self._late.add((onward, frame.stream))
            # headers must arrive in order, because their compression depends on earlier headers
            if frame.is_body and (onward, frame.stream) in self._late:
                loop.call_later(self._trouble.slow_by, onward.write, frame.data)
            else:
                onward.write(frame.data)

    async def _pass_answers(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left, frames = self._trouble.answer_bytes, _Frames(is_first=False)
        while data := await answers.read(_CHUNK):
            arrived = list(frames.whole_in(data))
            if self.requests >= self._loses_at:
                # data before the headers only confirms that the request arrived
                if any(frame.begins_request for frame in arrived):
                    self._loses_at = self.requests + (self._trouble.lost_every or math.inf)
                    self.lost += 1
                    await asyncio.sleep(_FOR_EVER if self._trouble.hangs else 0)
                    writer.transport.abort()
                    return
                continue
            await asyncio.sleep(self._trouble.pause)
            writer.write(data[:left])
            await writer.drain()
            if left is not None and (left := left - len(data)) <= 0:
                break
        writer.close()


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of an HTTP/2 connection: https://www.rfc-editor.org/rfc/rfc9113#name-frame-format."""

    data: bytes

    @property
    def begins_request(self) -> bool:
        return self._kind == _HEADERS

    @property
    def is_body(self) -> bool:
        return self._kind == _DATA

    @property
    def message(self) -> bytes:
        """The gRPC message of a request that fits in one frame; empty for other frames."""
        if not self.is_body:
            return b""
        is_compressed, message = (
            self.data[_FRAME_HEADER:][:1] == b"\1",
            self.data[_FRAME_HEADER + _WRAPPING :],
        )
        return gzip.decompress(message) if is_compressed else message

    @property
    def stream(self) -> int:
        return int.from_bytes(self.data[5:_FRAME_HEADER], "big") & 0x7FFFFFFF

    @property
    def _kind(self) -> int:
        return self.data[3]


class _Frames:
    """Splits a client's data into frames, after the preface of the connection."""

    def __init__(self, *, is_first: bool = True) -> None:
        self._pending = b""
        self._is_first = is_first

    def whole_in(self, data: bytes) -> Iterator[_Frame]:
        """The frames that become complete with this data."""
        self._pending += data
        if self._is_first:
            if len(self._pending) < _PREFACE:
                return
            yield _Frame(self._pending[:_PREFACE])
            self._pending, self._is_first = self._pending[_PREFACE:], False
        while len(self._pending) >= _FRAME_HEADER:
            end = _FRAME_HEADER + int.from_bytes(self._pending[:3], "big")
            if len(self._pending) < end:
                return
            yield _Frame(self._pending[:end])
            self._pending = self._pending[end:]


@contextmanager
def forwarding(target: str, trouble: Trouble) -> Iterator[Forwarder]:
    """An address that forwards to the target, with faults."""
    with closing(Forwarder(target, trouble)) as forwarder:
        yield forwarder


@contextmanager
def refusing() -> Iterator[str]:
    """An address that refuses all connections, and that no other process can use."""
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
