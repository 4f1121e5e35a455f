"""The one path of a Prometheus' API that twgen asks, served over HTTP."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs

from twgen.clients.prometheus import RangeQuery

ASKED = RangeQuery("sum(a)", 1000.25, 1060.25, 30)


@dataclass
class Served:
    """What is answered, and what was asked."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stops: float = 0
    """Seconds before each byte of the body."""
    paths: list[str] = field(default_factory=list)
    forms: list[Mapping[str, str]] = field(default_factory=list)
    asked_with: list[Mapping[str, str]] = field(default_factory=list)
    """The headers, by name in small letters."""
    address: str = ""

    def answers(self, *series: Any, kind: str = "matrix") -> None:
        """These series, each the pairs of a time and a text."""
        result = [{"metric": {"n": str(n)}, "values": values} for n, values in enumerate(series)]
        document = {"status": "success", "data": {"resultType": kind, "result": result}}
        self.status, self.body = 200, json.dumps(document).encode()


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    """Serve it, at its `address`."""
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            served.paths.append(self.path)
            served.forms.append({name: texts[0] for name, texts in form.items()})
            served.asked_with.append({name.lower(): text for name, text in self.headers.items()})
            self.send_response(served.status)
            for name, text in served.headers.items():
                self.send_header(name, text)
            self.end_headers()
            with suppress(OSError):  # whoever asked may be gone
                if not served.stops:
                    self.wfile.write(served.body)
                for byte in served.body if served.stops else ():
                    if ended.wait(served.stops):
                        break
                    self.wfile.write(bytes([byte]))

        def do_GET(self) -> None:  # of whoever followed a redirect
            served.paths.append(self.path)
            self.send_error(400)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield served
        ended.set()
        server.shutdown()
