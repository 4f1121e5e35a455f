"""What `twgen tick --metrics` serves: how rollouts go, for programs and for people, and whether it looks."""

import time
from dataclasses import dataclass

from twgen.cli.board import Board
from twgen.cli.serving import Answer, Request
from twgen.reporting.status.metrics import CONTENT_TYPE


@dataclass(slots=True)
class Exposed:
    """What whoever asks next is told."""

    board: Board
    metrics: bytes = b"# EOF\n"
    healthy_until: float = 0
    """On the monotonic clock: a look has to be done by then."""

    def answer(self, request: Request) -> Answer:
        """What is at the path that is asked for."""
        match request["PATH_INFO"]:
            case "/":
                return self.board.answer(request)
            case "/metrics":
                return Answer("200 OK", CONTENT_TYPE, self.metrics)
            case "/healthz" if time.monotonic() <= self.healthy_until:
                return Answer("200 OK", "text/plain", b"ok\n")
            case "/healthz":
                why = b"no check has succeeded for too long: see the log\n"
                return Answer("503 Service Unavailable", "text/plain", why)
        return Answer("404 Not Found", "text/plain", b"the pages are /, /metrics and /healthz\n")
