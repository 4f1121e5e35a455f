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
from twgen.planning.refresh import ApplicationState, Refresh, Rendered, due_refresh
from twgen.versioning.names import PLAN_HASH, ROLLOUT


class Refreshes:
    """The hard refreshes that were asked for, and when; each takes a render of the whole application."""

    def __init__(self, argocd: ArgoCD, timeout: float, say: Callable[[str], None]) -> None:
        self._argocd = argocd
        self._timeout = timeout
        self._say = say
        self._asked: dict[str, Refresh] = {}
        self.made = 0
        """How many were asked for."""

    async def ask(self, applications: Mapping[str, Sequence[Rendered]], now: datetime) -> list[str]:
        """Ask for each refresh that is due, by what an application's workers have rendered; the failures."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(name: str, workers: Sequence[Rendered]) -> None:
            async with turns:
                await self._refresh(name, workers, now)

        asked = (one(name, workers) for name, workers in sorted(applications.items()))
        failures = []
        for end in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(end, StateUnavailable | OutOfTime):
                failures.append(str(end))
            elif isinstance(end, BaseException):
                raise end
        return list(dict.fromkeys(failures))

    async def _refresh(self, name: str, workers: Sequence[Rendered], now: datetime) -> None:
        last = self._asked.get(name)
        state = _state(await self._argocd.application(name, Deadline(self._timeout)))
        due = due_refresh(workers, state, last, now)
        if due.outdated if due else state.may_wait and not state.is_syncing:
            # what waits to be applied may be right already, or wrong while what is applied is right again
            rendered = _rendered(await self._argocd.config_maps(name, Deadline(self._timeout)))
            due = due_refresh(workers, state._replace(rendered=rendered), last, now)
        if not due:
            return
        # one that Argo CD refuses is asked for again, and not in vain
        self._asked[name] = (last or due)._replace(at=now, in_vain=0)
        with suppress(OutOfTime):
            # Argo CD answers once it has rendered, and goes on when nobody waits for that
            await self._argocd.application(name, Deadline(self._timeout), hard_refresh=True)
        self._asked[name] = due._replace(at=now)
        self.made += 1
        self._say(f"{name}: refreshed, since {due.because}")


def _state(application: Mapping[str, Any]) -> ApplicationState:
    conditions = value_at(application, "status", "conditions")
    errors = [
        " ".join(str(value_at(item, "message")).split())
        for item in (conditions if isinstance(conditions, list) else ())
        if value_at(item, "type") == "ComparisonError"
    ]
    is_running = value_at(application, "status", "operationState", "phase") == "Running"
    return ApplicationState(
        is_syncing="operation" in application or is_running,
        # Argo CD keeps an error for an hour
        render_error=next((error for error in errors if "twgen" in error), ""),
        may_wait=value_at(application, "status", "sync", "status") != "Synced",
    )


def _rendered(config_maps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The plan hash of each intent among these manifests, by its worker."""
    found = {}
    for manifest in config_maps:
        metadata = value_at(manifest, "metadata")
        worker, told = value_at(metadata, "labels", ROLLOUT), value_at(metadata, "annotations", PLAN_HASH)
        if worker and told:
            found[f"{value_at(metadata, 'namespace')}/{worker}"] = str(told)
    return found
