"""Asking Argo CD to render applications again."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from twgen.clients.argocd import AT_ONCE, ArgoCD
from twgen.clients.deadline import Deadline
from twgen.cluster.applications import asked_since, refused_objects
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.paths import value_at
from twgen.planning.attached_status import NamedObject
from twgen.planning.refresh import (
    ApplicationState,
    Refresh,
    Rendered,
    RenderedBy,
    due_refresh,
    needs_last_render,
    not_looked_at,
    rendered_by,
)
from twgen.versioning.names import PLAN_HASH, ROLLOUT, rollout_name


class Refreshes:
    """The hard refreshes that were asked for, and when; each takes a render of the whole application."""

    def __init__(self, argocd: ArgoCD, timeout: float, say: Callable[[str], None]) -> None:
        self._argocd = argocd
        self._timeout = timeout
        self._say = say
        self._asked: dict[str, Refresh] = {}
        self._left: set[tuple[str, str]] = set()
        """Applications, and workers that they do not render any more: it has been said."""
        self.refused: dict[NamedObject, str] = {}
        """Why the last syncs could not apply objects, as of the newest look."""
        self.made = 0
        """How many were asked for."""

    async def ask(self, applications: Mapping[str, Sequence[Rendered]], now: datetime) -> list[str]:
        """Ask for each refresh that is due, by what an application's workers have rendered; the failures.

        An intent that its application does not render is a failure, or said once if it did so before.
        """
        turns = asyncio.Semaphore(AT_ONCE)
        failures: list[str] = []
        self.refused = {}

        async def one(name: str, workers: Sequence[Rendered]) -> None:
            async with turns:
                application = await self._argocd.application(name, Deadline(self._timeout))
                own, foreign = self._sorted(name, workers, application)
                failures.extend(foreign)
                state = _state(application)
                if late := not_looked_at(state.asked_since, now):
                    failures.append(
                        f"{name}: {late}: restart its repo-server, which may be waiting for the plugin"
                    )
                elif own:
                    self.refused |= refused_objects(application)
                    await self._refresh(name, own, state, now)

        asked = (one(name, workers) for name, workers in sorted(applications.items()))
        for end in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(end, StateUnavailable | OutOfTime):
                failures.append(str(end))
            elif isinstance(end, BaseException):
                raise end
        return list(dict.fromkeys(failures))

    def _sorted(
        self, name: str, workers: Sequence[Rendered], application: Mapping[str, Any]
    ) -> tuple[list[Rendered], list[str]]:
        """The workers whose intents the application renders, and why it is not refreshed for others."""
        told, own, foreign = _intents(application), [], []
        for item in workers:
            namespace, _, worker = item.worker.partition("/")
            intent = told.get((namespace, rollout_name(worker)), {})
            status = str(intent.get("status") or "")
            by = rendered_by(status, requires_pruning=bool(intent.get("requiresPruning")))
            if by is RenderedBy.APPLICATION:
                own.append(item)
            elif by is RenderedBy.NOBODY_KNOWN:
                foreign.append(
                    f"ConfigMap {namespace}/{rollout_name(worker)} names application {name}, but Argo CD does"
                    f" not list it as an object of {name}: {name} is not refreshed for it"
                )
            elif (name, item.worker) not in self._left:
                self._left.add((name, item.worker))
                self._say(f"{name}: not refreshed for {item.worker}, which it no longer renders")
        return own, foreign

    async def _refresh(
        self, name: str, workers: Sequence[Rendered], state: ApplicationState, now: datetime
    ) -> None:
        last = self._asked.get(name)
        due = due_refresh(workers, state, last, now)
        if needs_last_render(due, state):
            rendered = _rendered(await self._argocd.config_maps(name, Deadline(self._timeout)))
            due = due_refresh(workers, state._replace(rendered=rendered), last, now)
        if not due:
            return
        # one that Argo CD refuses is asked for again, and not in vain
        self._asked[name] = (last or due)._replace(at=now, in_vain=0)
        with suppress(OutOfTime):
            # Argo CD answers once it has rendered, and continues if no client waits for that
            await self._argocd.application(name, Deadline(self._timeout), hard_refresh=True)
        self._asked[name] = due._replace(at=now)
        self.made += 1
        self._say(f"{name}: refreshed, because {due.because}")


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
        asked_since=asked_since(application),
    )


def _intents(application: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """What Argo CD says of each ConfigMap that an application has, by namespace and name."""
    resources = value_at(application, "status", "resources")
    return {
        (str(item.get("namespace")), str(item.get("name"))): item
        for item in (resources if isinstance(resources, list) else ())
        if value_at(item, "kind") == "ConfigMap" and not value_at(item, "group")
    }


def _rendered(config_maps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The plan hash of each intent among these manifests, by its worker."""
    found = {}
    for manifest in config_maps:
        metadata = value_at(manifest, "metadata")
        worker, told = value_at(metadata, "labels", ROLLOUT), value_at(metadata, "annotations", PLAN_HASH)
        if worker and told:
            found[f"{value_at(metadata, 'namespace')}/{worker}"] = str(told)
    return found
