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
    """None: nothing has been read yet."""
    failure: str = ""
    """Why the newest look failed; empty: it did not."""
    _made: dict[str, str] = field(default_factory=dict)
    """What was rendered of it, for who asks next, by type."""

    def show(self, statuses: Sequence[RolloutStatus], now: datetime) -> None:
        """Take in what was read."""
        self.statuses, self.read_at, self.failure, self._made = statuses, now, "", {}

    def answer(self, request: Request) -> Answer:
        """The page; for itself, when it is open already, what of it is another one by now."""
        from twgen.reporting.page.pages import fleet_page, fleet_part

        if not (now := self.read_at):
            return Answer("503 Service Unavailable", "text/plain", b"nothing has been read yet\n")
        is_page = request.get("HTTP_ACCEPT") != _PART
        made, kind = self._made, _PAGE if is_page else _PART
        if kind not in made and is_page:
            made[kind] = fleet_page(self.statuses, now, refreshed_every=self.refreshed_every)
        elif kind not in made:
            made[kind] = fleet_part(self.statuses, now)
        if is_page:
            return Answer("200 OK", _PAGE, made[kind].encode(), _GUARDED)
        told = {"asOf": f"{now:%Y-%m-%d %H:%M:%S} UTC", "failure": self.failure, "fleet": made[kind]}
        return Answer("200 OK", _PART, json.dumps(told).encode(), _GUARDED)
