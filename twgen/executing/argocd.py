"""Asking Argo CD to render applications anew."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from twgen.clients.argocd import AT_ONCE, ArgoCD
from twgen.clients.deadline import Deadline
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.paths import value_at
from twgen.planning.refresh import ApplicationState, Rendered, refresh_reason


class Refreshes:
    """The hard refreshes that were asked for, and when; each takes a render of the whole application."""

    def __init__(self, argocd: ArgoCD, timeout: float, say: Callable[[str], None]) -> None:
        self._argocd = argocd
        self._timeout = timeout
        self._say = say
        self._asked: dict[str, datetime] = {}
        self.made = 0
        """How many were asked for."""

    async def ask(self, applications: Mapping[str, Sequence[Rendered]], now: datetime) -> list[str]:
        """Ask for what is due of these applications, by their workers; what failed, once all were asked."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(name: str, workers: Sequence[Rendered]) -> None:
            async with turns:
                found = await self._argocd.application(name, Deadline(self._timeout))
                reason = refresh_reason(workers, _state(found), self._asked.get(name), now)
                if not reason:
                    return
                self._asked[name] = now
                self.made += 1
                # Argo CD answers once it has rendered, and goes on when nobody waits for that
                with suppress(OutOfTime):
                    await self._argocd.application(name, Deadline(self._timeout), hard_refresh=True)
                self._say(f"{name}: refreshed, since {reason}")

        asked = (one(name, workers) for name, workers in sorted(applications.items()))
        failures = []
        for end in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(end, StateUnavailable | OutOfTime):
                failures.append(str(end))
            elif isinstance(end, BaseException):
                raise end
        return failures


def _state(application: Mapping[str, Any]) -> ApplicationState:
    status = application.get("status") or {}
    errors = [
        " ".join(str(item.get("message", "")).split())
        for item in status.get("conditions") or ()
        if item.get("type") == "ComparisonError"
    ]
    return ApplicationState(
        is_syncing="operation" in application or value_at(status, "operationState", "phase") == "Running",
        # Argo CD keeps an error for an hour
        render_error=next((error for error in errors if "twgen" in error), ""),
    )
