"""The page of `make demo-live`: shares of new workflows, open orders, and a log of events."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

_TEMPLATE = Path(__file__).with_name("demo_live.html")
VERSIONS = ("v1", "v2", "v3", "v4")


class Line(NamedTuple):
    """A line of the log."""

    at: float
    """Seconds since the start."""
    text: str
    kind: str
    """`commit`, `good`, `bad`, `step` or `proof`."""


@dataclass
class Story:
    """The state of the demonstration, which the page shows."""

    began: float = field(default_factory=time.monotonic)
    log: list[Line] = field(default_factory=list)
    shares: Mapping[str, float] = field(default_factory=dict)
    """Each version's share of new workflows, in percent."""
    current: str = ""
    """The current version."""
    began_on: dict[str, str] = field(default_factory=dict)
    """The version on which each order started."""
    open: frozenset[str] = frozenset()
    """The open orders."""
    failures: dict[str, str] = field(default_factory=dict)
    """The failed versions, with the reasons."""
    committed: set[str] = field(default_factory=set)
    started: int = 0
    completed: int = 0
    lost: int | None = None
    """None until they are counted."""
    over_after: float | None = None

    def say(self, text: str, kind: str = "step") -> None:
        """Add a line to the log, and print it."""
        at = time.monotonic() - self.began
        self.log.append(Line(at, text, kind))
        sys.stdout.write(f"{at:5.0f} s  {text}\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Stop the clock."""
        self.over_after = time.monotonic() - self.began

    def state(self) -> Mapping[str, Any]:
        """The data for the page."""
        open_on = Counter(self.began_on[name] for name in self.open if name in self.began_on)
        over = self.over_after
        return {
            "seconds": time.monotonic() - self.began if over is None else over,
            "isOver": over is not None,
            "shares": {version: round(self.shares.get(version, 0)) for version in VERSIONS},
            "open": {version: open_on[version] for version in VERSIONS},
            "versions": {version: self._says(version, open_on[version]) for version in VERSIONS},
            "started": self.started,
            "completed": self.completed,
            "lost": self.lost,
            "log": [line._asdict() for line in list(self.log)],
        }

    def page(self) -> str:
        """The page with the current state, as a self-contained file."""
        # </script> in a text would end the element
        state = json.dumps(self.state()).replace("<", "\\u003c")
        return _TEMPLATE.read_text().replace("@STATE@", state)

    def _says(self, version: str, open_orders: int) -> str:
        if version not in self.committed:
            return ""
        if version in self.failures:
            return f"{self.failures[version]}: it got no workflow"
        share = self.shares.get(version, 0)
        held = f", {open_orders} open" if open_orders else ""
        if version == self.current:
            return f"current: {share:g}%{held}"
        if share:
            return f"ramping: {share:g}%{held}"
        if open_orders:
            return f"draining: {open_orders} open"
        has_run = version in self.began_on.values()
        return "drained: its last order has ended" if has_run else "starting"


@contextmanager
def served(story: Story) -> Iterator[str]:
    """Serve the page on this machine until the block ends; returns its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in {"/", "/state"}:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            is_page = self.path == "/"
            text = story.page() if is_page else json.dumps(story.state())
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8" if is_page else "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing, because the story's log is on the same terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
