"""Decides whether a new render of the same commit would differ, and when to request one from Argo CD."""

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
"""The shortest time until an application's next refresh if the last refresh changed nothing."""
_SHORTEST_PAUSE = timedelta(seconds=30)
"""The shortest time between two refreshes of an application, so that Argo CD can apply the first render."""
MOST_A_MINUTE = 20
"""The maximum total number of refreshes per minute, because each refresh renders a whole application."""
_LONGEST_PAUSE = timedelta(days=1)
"""The longest pause after refreshes that changed nothing."""
_DOUBLED = 8
"""The maximum number of times that a pause is doubled. More doublings could overflow."""
_REFRESHES_WITHIN = timedelta(minutes=10)
"""Argo CD should carry out a refresh within this time of the request. A render can take minutes."""
RERUN_PAUSE = timedelta(minutes=10)
"""The shortest time from the end of a Job until another Job may replace it."""
RERUN_PAUSE_OF_TICK = timedelta(minutes=1)
"""The shortest time between the end of tick's rollout of a worker and the start of its next rollout."""


def plan_hash(worker: WorkerVersions) -> str:
    """A SHA-256 hash in hex digits, which changes whenever new facts change the worker's manifests.

    The hash does not cover the content of a version's manifest, because Git and the live objects already
    agree on that content. It does not cover data that no manifest contains either, such as the reason for
    keeping a version. It covers the UID of a Deployment that owns attached objects.
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
            # without a Deployment, renders that read the cluster omit the version; others render it at zero
            version.action is VersionAction.SCALE_DOWN and version.live is None,
            version.live.uid if owns and version.attached and version.live else "",
            *((version.attached, version.leaving) if by_status or version.replaced else ()),
        )
        for version in worker.versions
        if version.is_rendered or version.attached or version.leaving
    ]
    return sha256(repr(rendered).encode()).hexdigest()


def possible_renders(plan: WorkerPlan, world: World, caller: Caller) -> Iterator[WorkerVersions]:
    """The versions of one worker, once for each kind of render that is possible in the present state.

    A render may or may not read the cluster, and may or may not have a ledger with the live Deployments.
    """
    yield plan.versions
    [(key, own_world)] = world.workers.items()
    applied = {live.build_id: live.recorded for live in own_world.deployments or ()}
    for deployments, ledger in ((own_world.deployments, applied), (None, {}), (None, applied)):
        render = World(world.taken_at, {key: replace(own_world, deployments=deployments, ledger=ledger)})
        yield from plan_versions([plan.spec], render, world.taken_at, caller).workers


class Rendered(NamedTuple):
    """The plan hashes of one worker, from Argo CD's last render and from a new render."""

    worker: str
    application: str
    """The name in Argo CD's tracking IDs: `name`, or `namespace_name` outside Argo CD's namespace."""
    stamped: str
    """The plan hash of the applied intent, or empty if the intent has no plan hash."""
    wanted: frozenset[str]
    """The plan hashes that a render could have now."""


class RenderedBy(StrEnum):
    """Whether the application that is named in an intent renders the intent."""

    APPLICATION = "Application"
    APPLICATION_BEFORE = "ApplicationBefore"
    NOBODY_KNOWN = "NobodyKnown"


def rendered_by(status: str, *, requires_pruning: bool) -> RenderedBy:
    """Whether the application that is named in an intent renders the intent, according to Argo CD.

    This is checked because anyone can write an intent that names an application. `status` is the intent's
    state in the application. It is empty if the intent is not among the resources of the application.
    """
    # after a failed render, Argo CD knows neither the rendered objects nor the objects to prune
    if status == "Unknown" or (status and not requires_pruning):
        return RenderedBy.APPLICATION
    return RenderedBy.APPLICATION_BEFORE if requires_pruning else RenderedBy.NOBODY_KNOWN


class ApplicationState(NamedTuple):
    """The state of an application in Argo CD."""

    is_syncing: bool
    render_error: str
    """twgen's error in the last render, as Argo CD reports the error, or empty if there was no error."""
    rendered: Mapping[str, str] = MappingProxyType({})
    """The known plan hashes of the last render, by worker, whether the render was applied or not."""
    may_wait: bool = True
    """Whether the last render might not be applied yet."""
    asked_since: datetime | None = None
    """When a pending refresh was requested. None if no refresh is pending, or if unknown."""


def not_refreshed(asked_since: datetime | None, now: datetime) -> str:
    """The problem if Argo CD no longer refreshes an application. Otherwise empty.

    Argo CD then still shows the application's last state, such as Synced, but applies no commit.
    """
    if asked_since is None or now - asked_since < _REFRESHES_WITHIN:
        return ""
    return f"Argo CD was asked {spoken(now - asked_since)} ago to refresh it, but has not done so"


class Refresh(NamedTuple):
    """A hard refresh that is due or was requested."""

    because: str
    outdated: frozenset[Rendered] = frozenset()
    """The workers whose manifests the refresh should change. Empty if the refresh repeats a failed render."""
    at: datetime | None = None
    """The time of the request, or None if no refresh has been requested yet."""
    in_vain: int = 0
    """The number of earlier, identical requests that changed nothing."""


def due_refresh(
    workers: Iterable[Rendered], state: ApplicationState, last: Refresh | None, now: datetime
) -> Refresh | None:
    """The hard refresh that an application needs now, if any. `last` is the previous refresh.

    No refresh is due during a sync, because the refresh would change the manifests of the sync. If the last
    render is correct but not applied, a person or a sync window delays the sync, and a refresh would not
    help. If the last render is outdated, it must be replaced before it is applied.

    A refresh can change nothing, for example because tick does not know which versions are in the ledger. The
    next refresh then comes after a pause, which doubles each time.
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
    """Whether a pause is over. `since` is the time since the pause began, or None if it never began.

    If a pause begins further in the future than its length, the clock was set back, and the pause is over.
    """
    return since is None or not -pause < since < pause


def within_a_minute(made: Iterable[datetime], now: datetime) -> list[datetime]:
    """The times that count towards the limit of refreshes per minute."""
    return [at for at in made if not pause_is_over(now - at, timedelta(minutes=1))]


def kept_refreshes(requested: Mapping[str, Refresh], now: datetime) -> dict[str, Refresh]:
    """The refreshes that still delay the next refresh of an application."""
    pause = 2 * _LONGEST_PAUSE
    return {key: it for key, it in requested.items() if it.at and not pause_is_over(now - it.at, pause)}


def needs_last_render(due: Refresh | None, state: ApplicationState) -> bool:
    """Whether Argo CD's last render must be read too. `due` is based only on the applied objects.

    A render that has not been applied yet can be correct while the applied render is outdated, or the
    reverse.
    """
    if due:
        return bool(due.outdated)
    return state.may_wait and not state.is_syncing


def runs_again(plan: WorkerPlan, ended_at: datetime, now: datetime, driver: Driver) -> bool:
    """Whether a rollout that has ended has work again and would not fail for the same reason again.

    A target that has all traffic but is not serving needs a person, not a rollout.
    """
    routing = plan.routing
    is_idle = routing.phase is Phase.SETTLED or routing.reason is Reason.CURRENT_NOT_SERVING
    is_in_vain = routing.reason.until is Until.ANOTHER_INTENT
    pause = RERUN_PAUSE_OF_TICK if driver is Driver.TICK else RERUN_PAUSE
    return not is_idle and not is_in_vain and pause_is_over(now - ended_at, pause)
