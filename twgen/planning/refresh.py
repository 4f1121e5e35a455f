"""Whether a new render of the same commit would differ from the last one, and when to ask Argo CD for it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from twgen.model.operator import Caller
from twgen.model.plan import Phase, VersionAction, WorkerPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.reasons import Until
from twgen.model.rollout import Driver
from twgen.model.world import World
from twgen.planning.plan import plan_versions
from twgen.planning.sentences import listed, spoken

REFRESH_PAUSE = timedelta(minutes=10)
"""The time from a refresh of an application that changed nothing to the next one."""
_SHORTEST_PAUSE = timedelta(seconds=30)
"""The time from any refresh of an application to the next one: Argo CD applies its output."""
MOST_A_MINUTE = 20
"""Refreshes of all applications: each is a render of a whole application."""
_LONGEST_PAUSE = timedelta(days=1)
"""The longest time between two refreshes if the first changed nothing."""
_DOUBLED = 8
"""A pause is doubled at most this often: then it is over the longest one, and a timedelta still holds it."""
_LOOKS_WITHIN = timedelta(minutes=10)
"""Argo CD refreshes an application within this time after it was asked to: a render may take some minutes."""
RERUN_PAUSE = timedelta(minutes=10)
"""The time from the end of a Job until another one may replace it."""
RERUN_PAUSE_OF_TICK = timedelta(minutes=1)
"""The same for a rollout that needs no Job."""


def plan_hash(worker: WorkerVersions) -> str:
    """A SHA-256 in hex digits, which changes when the world changes the worker's manifests.

    It leaves out the sources of a version, since Git and the live objects already agree on them, and all that
    is in no manifest, such as the reason for keeping it. It includes the UID of a Deployment if an attached
    object has it as owner.
    """
    owns = worker.spec.policy.owner_references is OwnerReferences.RENDER
    by_status = any(resource.when for resource in worker.spec.attached)
    rendered = [
        (
            version.build_id,
            version.is_rendered,
            version.replicas,
            version.protected,
            version.action is VersionAction.SCALE_DOWN,
            # a render without the cluster keeps it like this; a render that reads the cluster removes it
            version.action is VersionAction.SCALE_DOWN and version.live is None,
            version.live.uid if owns and version.attached and version.live else "",
            *((version.attached, version.leaving) if by_status or version.replaced else ()),
        )
        for version in worker.versions
        if version.is_rendered or version.attached or version.leaving
    ]
    return sha256(repr(rendered).encode()).hexdigest()


def possible_renders(plan: WorkerPlan, world: World, caller: Caller) -> Iterator[WorkerVersions]:
    """The versions of this one worker in all renders that are possible in the world of its plan.

    A render may read the cluster or not, and it may have a ledger of the live Deployments.
    """
    yield plan.versions
    [(key, own_world)] = world.workers.items()
    applied = {live.build_id: live.recorded for live in own_world.deployments or ()}
    for deployments, ledger in ((own_world.deployments, applied), (None, {}), (None, applied)):
        render = World(world.taken_at, {key: replace(own_world, deployments=deployments, ledger=ledger)})
        yield from plan_versions([plan.spec], render, world.taken_at, caller).workers


class Rendered(NamedTuple):
    """The plan hashes of one worker: in the last render of Argo CD, and in a render now."""

    worker: str
    application: str
    """As Argo CD tracks it: `name`, or `namespace_name` outside its own namespace."""
    stamped: str
    """The plan hash of the applied intent; empty: none."""
    wanted: frozenset[str]
    """The plan hashes that a render could have now."""


class RenderedBy(StrEnum):
    """Whether the application that an intent names renders it."""

    APPLICATION = "Application"
    APPLICATION_BEFORE = "ApplicationBefore"
    NOBODY_KNOWN = "NobodyKnown"


def rendered_by(status: str, *, requires_pruning: bool) -> RenderedBy:
    """Whether the application that an intent names renders it: by the state of the intent in the application.

    Anyone can write an intent that names an application. Empty `status`: it is not among its resources.
    """
    # after a failed render, Argo CD knows neither the objects of the render nor those to prune
    if status == "Unknown" or (status and not requires_pruning):
        return RenderedBy.APPLICATION
    return RenderedBy.APPLICATION_BEFORE if requires_pruning else RenderedBy.NOBODY_KNOWN


class ApplicationState(NamedTuple):
    """The state of an application in Argo CD."""

    is_syncing: bool
    render_error: str
    """The error of twgen in its last render, as Argo CD keeps it; empty: there was none."""
    rendered: Mapping[str, str] = MappingProxyType({})
    """The known plan hashes of its last render, by worker, whether it was applied or not."""
    may_wait: bool = True
    """Its last render may not be applied yet."""
    asked_since: datetime | None = None
    """When Argo CD was asked for a refresh that it has not done; None: it has done it, or this is unknown."""


def not_looked_at(asked_since: datetime | None, now: datetime) -> str:
    """The problem of an application that Argo CD may never refresh again; empty: none, or unknown.

    Argo CD continues to show its last state, such as Synced, and applies no commit.
    """
    if asked_since is None or now - asked_since < _LOOKS_WITHIN:
        return ""
    return f"Argo CD was asked {spoken(now - asked_since)} ago to refresh it, and has not done so"


class Refresh(NamedTuple):
    """A hard refresh that is due, or was requested."""

    because: str
    outdated: frozenset[Rendered] = frozenset()
    """The workers that it renders again; empty: it repeats a render that failed."""
    at: datetime | None = None
    """The time of the request; None: it is not requested yet."""
    in_vain: int = 0
    """The number of earlier requests for the same that changed nothing."""


def due_refresh(
    workers: Iterable[Rendered], state: ApplicationState, last: Refresh | None, now: datetime
) -> Refresh | None:
    """The hard refresh that an application needs now; `last` is the one before.

    A refresh would change the manifests of a running sync, so it waits. A correct render that is not applied
    waits for a person or a sync window; an outdated one would be applied as it is. If the last refresh was in
    vain for each worker, the next one comes after a pause that doubles. For example, the ledger may have only
    some of the versions, which tick cannot know.
    """
    since = now - last.at if last and last.at else None
    if state.is_syncing or not pause_is_over(since, _SHORTEST_PAUSE):
        return None
    if state.render_error:
        because = f"its last render failed: {state.render_error}"
        return Refresh(because) if pause_is_over(since, REFRESH_PAUSE) else None
    applied = [item._replace(stamped=state.rendered.get(item.worker, item.stamped)) for item in workers]
    outdated = [item for item in applied if item.stamped not in item.wanted]
    if not outdated:
        return None
    because = f"a new render of {listed([item.worker for item in outdated])} would differ"
    due = Refresh(because, frozenset(outdated))
    wanted = {item.worker: item.wanted for item in last.outdated} if last else {}
    if not last or any(item.stamped in wanted.get(item.worker, {item.stamped}) for item in outdated):
        return due
    in_vain = last.in_vain if last.outdated == due.outdated else 0
    pause = min(REFRESH_PAUSE * 2 ** min(in_vain, _DOUBLED), _LONGEST_PAUSE)
    return due._replace(in_vain=in_vain + 1) if pause_is_over(since, pause) else None


def pause_is_over(since: timedelta | None, pause: timedelta) -> bool:
    """The time since a moment (None: there was none) is longer than a pause.

    A moment that is further in the future than the pause is long comes from a clock that was set back.
    """
    return since is None or not -pause < since < pause


def within_a_minute(made: Iterable[datetime], now: datetime) -> list[datetime]:
    """The moments that count for the limit of refreshes a minute."""
    return [at for at in made if not pause_is_over(now - at, timedelta(minutes=1))]


def kept_refreshes(requested: Mapping[str, Refresh], now: datetime) -> dict[str, Refresh]:
    """The refreshes that still delay a next one of their application."""
    pause = 2 * _LONGEST_PAUSE
    return {key: it for key, it in requested.items() if it.at and not pause_is_over(now - it.at, pause)}


def needs_last_render(due: Refresh | None, state: ApplicationState) -> bool:
    """The last render of Argo CD must be read too; `due` is the refresh by the applied objects.

    A render may wait to be applied: it may be correct already, or wrong although the applied one is correct.
    """
    if due:
        return bool(due.outdated)
    return state.may_wait and not state.is_syncing


def runs_again(plan: WorkerPlan, ended_at: datetime, now: datetime, driver: Driver) -> bool:
    """A rollout that has ended, with its Job if it has one, has work again, and would not just fail again.

    A target that has all traffic but does not serve needs a person, not a rollout.
    """
    routing = plan.routing
    is_idle = routing.phase is Phase.SETTLED or routing.reason is Reason.CURRENT_NOT_SERVING
    is_in_vain = routing.reason.until is Until.ANOTHER_INTENT
    pause = RERUN_PAUSE_OF_TICK if driver is Driver.TICK else RERUN_PAUSE
    return not is_idle and not is_in_vain and pause_is_over(now - ended_at, pause)
