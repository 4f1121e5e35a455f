"""The page of `make demo-live`: the shares of new workflows, the open orders, and a log of what happened."""

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
    """Seconds since the beginning."""
    text: str
    kind: str
    """`commit`, `good`, `bad`, `step` or `proof`."""


@dataclass
class Story:
    """The state of the demonstration, which its page shows while it runs and afterwards."""

    began: float = field(default_factory=time.monotonic)
    log: list[Line] = field(default_factory=list)
    shares: Mapping[str, float] = field(default_factory=dict)
    """The share of each version in the new workflows, in percent."""
    current: str = ""
    """The current version."""
    began_on: dict[str, str] = field(default_factory=dict)
    """The version that each order began on."""
    open: frozenset[str] = frozenset()
    """The orders that are open."""
    failures: dict[str, str] = field(default_factory=dict)
    """The versions that got no workflow, and why."""
    committed: set[str] = field(default_factory=set)
    started: int = 0
    completed: int = 0
    lost: int | None = None
    """None: it is not counted yet."""
    over_after: float | None = None

    def say(self, text: str, kind: str = "step") -> None:
        """Add a line to the log, and print it."""
        at = time.monotonic() - self.began
        self.log.append(Line(at, text, kind))
        sys.stdout.write(f"{at:5.0f} s  {text}\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Stop the clock: nothing follows."""
        self.over_after = time.monotonic() - self.began

    def state(self) -> Mapping[str, Any]:
        """All that the page shows."""
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
        """The page with the state as it is now, as a file that needs no other."""
        # a text with </script> would end the element that it is in
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
    """The page at an address of this machine, which is given, until the block ends."""

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
            """Nothing: the log of the story is on the same terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
