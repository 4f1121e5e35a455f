"""Requests hard refreshes, so that Argo CD renders applications again."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from twgen.clients.argocd import AT_ONCE, ArgoCD, asked_since, last_sync, listed_config_maps, refused_objects
from twgen.clients.deadline import Deadline
from twgen.errors import OutOfTime, TwgenError
from twgen.model.paths import list_at, value_at
from twgen.planning.refresh import (
    MOST_A_MINUTE,
    ApplicationState,
    Refresh,
    Rendered,
    RenderedBy,
    due_refresh,
    kept_refreshes,
    needs_last_render,
    not_refreshed,
    rendered_by,
    within_a_minute,
)
from twgen.planning.worker_status import NamedObject
from twgen.reporting.bugs import Bug
from twgen.versioning.names import PLAN_HASH, ROLLOUT, rollout_name


class Refreshes:
    """Requests hard refreshes, and remembers their times. A hard refresh renders a whole application."""

    def __init__(self, argocd: ArgoCD, timeout: float, say: Callable[[str], None]) -> None:
        self._argocd = argocd
        self._timeout = timeout
        self._say = say
        self._requested: dict[str, Refresh] = {}
        """The newest refresh of each application."""
        self._made_at: list[datetime] = []
        """The times of the refreshes that were requested in the last minute."""
        self._waiting = 0
        """The number of applications that the last check postponed because of the limit per minute."""
        self._reported: set[tuple[str, str]] = set()
        """Reported pairs of an application and a worker that the application no longer renders."""
        self.projects: dict[str, str] = {}
        """The Argo CD project of each worker. Empty if the application does not render the worker."""
        self.refused: dict[NamedObject, str] = {}
        """Argo CD's error messages about objects that the last syncs could not apply."""
        self.made = 0

    def close(self) -> None:
        """Close the connections to Argo CD."""
        self._argocd.close()

    async def applications(self, tracked_as: str, deadline: Deadline) -> Sequence[Mapping[str, Any]]:
        """Read an application, and return it in a list. `tracked_as` is its name in tracking annotations."""
        return [await self._argocd.application(tracked_as, deadline)]

    async def ask(
        self, applications: Mapping[str, Sequence[Rendered]], now: datetime, steady: datetime
    ) -> list[str]:
        """Request the refreshes that are due, and return the failures.

        `applications` maps each application to its workers and their renders. If Argo CD does not list a
        worker's intent in the application, that is a failure. If the application no longer renders a worker,
        this is reported only once. `steady` is the time of the monotonic clock.
        """
        turns = asyncio.Semaphore(AT_ONCE)
        failures: list[str] = []
        self.refused = {}

        async def ask(name: str, workers: Sequence[Rendered]) -> None:
            async with turns:
                application = await self._argocd.application(name, Deadline(self._timeout))
                own_workers, foreign = self._own_and_foreign(name, workers, application)
                failures.extend(foreign)
                project = str(value_at(application, "spec", "project") or "")
                for worker in workers:
                    self.projects[worker.worker] = project if worker in own_workers else ""
                state = _state(application)
                if late := not_refreshed(state.asked_since, now):
                    remedy = "restart its repo-server, which may be waiting for the plugin"
                    failures.append(f"{name}: {late}: {remedy}")
                elif own_workers:
                    self.refused |= refused_objects(application)
                    await self._refresh(name, own_workers, state, steady)

        self._requested = kept_refreshes(self._requested, steady)
        self._waiting = 0

        # applications that were postponed come first
        last_time = {name: str(last.at) for name, last in self._requested.items()}
        in_turn = sorted(applications, key=lambda name: (last_time.get(name, ""), name))
        requests = [ask(name, applications[name]) for name in in_turn]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        for name, outcome in zip(in_turn, outcomes, strict=True):
            if isinstance(outcome, TwgenError):
                failures.append(str(outcome))
            elif isinstance(outcome, Exception):
                failures.append(Bug.of(f"application {name}", outcome))
            elif outcome:
                raise outcome
        if self._waiting:
            more = f"at most {MOST_A_MINUTE} applications are refreshed per minute"
            self._say(f"{more}: {self._waiting} more must wait for the next check")
        return list(dict.fromkeys(failures))

    def _own_and_foreign(
        self, name: str, workers: Sequence[Rendered], application: Mapping[str, Any]
    ) -> tuple[list[Rendered], list[str]]:
        """The workers whose intents the application renders, and messages about the other workers."""
        config_maps, own_workers, foreign = listed_config_maps(application), [], []
        for item in workers:
            namespace, _, worker = item.worker.partition("/")
            intent = config_maps.get((namespace, rollout_name(worker)), {})
            status = str(intent.get("status") or "")
            by = rendered_by(status, requires_pruning=bool(intent.get("requiresPruning")))
            if by is RenderedBy.APPLICATION:
                own_workers.append(item)
            elif by is RenderedBy.NOBODY_KNOWN:
                names = f"ConfigMap {namespace}/{rollout_name(worker)} names application {name}"
                unlisted = f"Argo CD does not list it as an object of {name}"
                foreign.append(f"{names}, but {unlisted}: {name} is not refreshed for it")
            elif (name, item.worker) not in self._reported:
                self._reported.add((name, item.worker))
                self._say(f"{name}: not refreshed for {item.worker}, which it no longer renders")
        return own_workers, foreign

    async def _refresh(
        self, name: str, workers: Sequence[Rendered], state: ApplicationState, now: datetime
    ) -> None:
        last = self._requested.get(name)
        due = due_refresh(workers, state, last, now)
        if needs_last_render(due, state):
            rendered = _rendered(await self._argocd.config_maps(name, Deadline(self._timeout)))
            due = due_refresh(workers, state._replace(rendered=rendered), last, now)
        if not due:
            return
        self._made_at = within_a_minute(self._made_at, now)
        if len(self._made_at) >= MOST_A_MINUTE:
            self._waiting += 1
            return
        self._made_at.append(now)
        # recorded before the request: if Argo CD rejects the refresh, twgen requests it again, and does not
        # count the rejected refresh as `in_vain`
        self._requested[name] = (last or due)._replace(at=now, in_vain=0)
        with suppress(OutOfTime):
            # Argo CD responds after the render, which continues even if this request times out
            await self._argocd.application(name, Deadline(self._timeout), hard_refresh=True)
        self._requested[name] = due._replace(at=now)
        self.made += 1
        self._say(f"{name}: refreshed, because {due.because}")


def _state(application: Mapping[str, Any]) -> ApplicationState:
    errors = [
        " ".join(str(value_at(item, "message")).split())
        for item in list_at(application, "status", "conditions")
        if value_at(item, "type") == "ComparisonError"
    ]
    return ApplicationState(
        is_syncing=last_sync(application).is_running,
        # Argo CD keeps the ComparisonError condition for an hour after the error
        render_error=next((error for error in errors if "twgen" in error), ""),
        may_wait=value_at(application, "status", "sync", "status") != "Synced",
        asked_since=asked_since(application),
    )


def _rendered(config_maps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The plan hash of each worker's intent among these manifests."""
    rendered = {}
    for manifest in config_maps:
        metadata = value_at(manifest, "metadata")
        worker, plan = value_at(metadata, "labels", ROLLOUT), value_at(metadata, "annotations", PLAN_HASH)
        if worker and plan:
            rendered[f"{value_at(metadata, 'namespace')}/{worker}"] = str(plan)
    return rendered
