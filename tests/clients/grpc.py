"""A Temporal over HTTP/2 that refuses every call in the words that it is given."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import socket
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

NOT_FOUND = 5
_PREFACE = 24
_HEADER = 9
_DATA, _HEADERS, _SETTINGS, _PING = 0, 1, 4, 6
_ENDS, _IS_ANSWER, _WHOLE = 1, 1, 4
_NOTHING = bytes(5)
"""A message without fields."""
_LONGEST_IN_A_BYTE = 127


@contextmanager
def refusing(said: str = "", code: int = NOT_FOUND, *, connects: bool = True) -> Iterator[str]:
    """The address of such a server; `connects`: the first call, which asks what it can do, is answered."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, EOFError):
                _answer(self.request, said, code, connects=connects)

    ThreadingTCPServer.allow_reuse_address = True
    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _answer(connection: socket, said: str, code: int, *, connects: bool) -> None:
    _read(connection, _PREFACE)
    connection.sendall(_frame(_SETTINGS, 0, 0, b""))
    while True:
        header = _read(connection, _HEADER)
        kind, flags, stream = header[3], header[4], int.from_bytes(header[5:])
        content = _read(connection, int.from_bytes(header[:3]))
        if kind in {_SETTINGS, _PING} and not flags & _IS_ANSWER:
            connection.sendall(_frame(kind, _IS_ANSWER, 0, content if kind == _PING else b""))
        if kind not in {_DATA, _HEADERS} or not flags & _ENDS:
            continue
        answer = b"\x88" + _field("content-type", "application/grpc")  # 0x88: status 200
        if connects and stream == 1:
            connection.sendall(_frame(_HEADERS, _WHOLE, stream, answer) + _frame(_DATA, 0, stream, _NOTHING))
            answer = _field("grpc-status", "0")
        else:
            answer += _field("grpc-status", str(code)) + _field("grpc-message", said)
        connection.sendall(_frame(_HEADERS, _WHOLE | _ENDS, stream, answer))


def _read(connection: socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        more = connection.recv(length - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3) + bytes([kind, flags]) + struct.pack(">I", stream) + content


def _field(name: str, text: str) -> bytes:
    """A header without Huffman's code: https://www.rfc-editor.org/rfc/rfc7541#section-6.2.2."""
    return b"\0" + _text(name) + _text(text)


def _text(text: str) -> bytes:
    content, left = text.encode(), len(text.encode()) - _LONGEST_IN_A_BYTE
    if left < 0:
        return bytes([len(content)]) + content
    length = bytearray([_LONGEST_IN_A_BYTE])
    while left > _LONGEST_IN_A_BYTE:
        length.append(left % 128 + 128)
        left //= 128
    return bytes(length) + bytes([left]) + content
