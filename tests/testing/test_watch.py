"""A watch of an API server, which the server, or whoever watches, may end first."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from testing.kubernetes.api import Api

EVENT = b'{"type": "ADDED", "object": {}}\n'


class _EndsAfterAnEvent(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(EVENT)))
        self.end_headers()
        self.wfile.write(EVENT)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    with HTTPServer(("127.0.0.1", 0), _EndsAfterAnEvent) as server:
        Thread(target=server.serve_forever).start()
        yield Api(f"http://127.0.0.1:{server.server_port}", Path(), "")
        server.shutdown()


def test_watch_that_its_server_has_ended_can_still_be_ended_by_another_thread(api: Api) -> None:
    watch = api.watch("/")
    events = iter(watch)
    assert next(events)["type"] == "ADDED"
    watch.close()
    assert list(events) == []
