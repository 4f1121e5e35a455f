"""The page of a fleet as it is served: rendered anew when something was read, and refreshed in place."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from twgen.cli.serving import Answer, Request
from twgen.model.status import RolloutStatus

_PAGE = "text/html; charset=utf-8"
_PART = "application/json"
_GUARDED = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)


@dataclass(slots=True)
class Board:
    """What was read last, and what went wrong since."""

    refreshed_every: float
    """Seconds."""
    statuses: Sequence[RolloutStatus] = ()
    read_at: datetime | None = None
    """None: nothing was read yet."""
    failure: str = ""
    """Why the newest look failed; empty: it did not."""
    _made: dict[str, tuple[datetime, str]] = field(default_factory=dict)

    def show(self, statuses: Sequence[RolloutStatus], now: datetime) -> None:
        """Take in what was read."""
        self.statuses, self.read_at, self.failure = statuses, now, ""

    def answer(self, request: Request) -> Answer:
        """The page; for itself, when it is open already, what of it is another one by now."""
        if not self.read_at:
            return Answer("503 Service Unavailable", "text/plain", b"nothing was read yet\n")
        if request.get("HTTP_ACCEPT") != _PART:
            return Answer("200 OK", _PAGE, self._rendered("page", self.read_at).encode(), _GUARDED)
        told = {
            "asOf": f"{self.read_at:%Y-%m-%d %H:%M:%S} UTC",
            "failure": self.failure,
            "fleet": self._rendered("part", self.read_at),
        }
        return Answer("200 OK", _PART, json.dumps(told).encode(), _GUARDED)

    def _rendered(self, what: str, read_at: datetime) -> str:
        from twgen.reporting.page.pages import fleet_page, fleet_part

        made_at, text = self._made.get(what, (None, ""))
        if made_at != read_at:
            text = (
                fleet_page(self.statuses, read_at, refreshed_every=self.refreshed_every)
                if what == "page"
                else fleet_part(self.statuses, read_at)
            )
            self._made[what] = read_at, text
        return text
