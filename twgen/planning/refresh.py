"""When what was rendered is no longer what would be rendered now, though Git says the same."""

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
from twgen.model.reasons.routing import RoutingReason as Reason
from twgen.model.reasons.routing import Until
from twgen.model.world import World
from twgen.planning.plan import plan_versions
from twgen.planning.sentences import listed, spoken

REFRESH_PAUSE = timedelta(minutes=10)
"""Between two refreshes of one application."""
_LONGEST_PAUSE = timedelta(days=1)
"""Between two refreshes that both found the same."""
_DOUBLED = 8
"""How often a pause is doubled at most: by then it is over the longest, and a timedelta still holds it."""
_LOOKS_WITHIN = timedelta(minutes=10)
"""Argo CD, at an application that it was asked to look at again: a render may take some minutes."""
RERUN_PAUSE = timedelta(minutes=10)
"""From the end of a Job until another one may take its place."""


def plan_hash(worker: WorkerVersions) -> str:
    """Changes when the world makes the worker's manifests other ones: a SHA-256 in hex digits.

    What a version is rendered from stays out, since Git and what is live already say the same of it; so does
    what no manifest tells, such as why it is kept. The UID of a Deployment counts where an attached object
    holds it.
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
            # a render without the cluster keeps it so, and one that reads it takes it away at last
            version.action is VersionAction.SCALE_DOWN and version.live is None,
            version.live.uid if owns and version.attached and version.live else "",
            *((version.attached, version.leaving) if by_status or version.replaced else ()),
        )
        for version in worker.versions
        if version.is_rendered or version.attached or version.leaving
    ]
    return sha256(repr(rendered).encode()).hexdigest()


def possible_renders(plan: WorkerPlan, world: World, caller: Caller) -> Iterator[WorkerVersions]:
    """What a render of this one worker could make of the world that it was planned for.

    One that reads the cluster, and one that does not; each may have a ledger of what is live.
    """
    yield plan.versions
    [(key, found)] = world.workers.items()
    applied = {live.build_id: live.recorded for live in found.deployments or ()}
    for deployments, ledger in ((found.deployments, applied), (None, {}), (None, applied)):
        render = World(world.taken_at, {key: replace(found, deployments=deployments, ledger=ledger)})
        yield from plan_versions([plan.spec], render, world.taken_at, caller).workers


class Rendered(NamedTuple):
    """One worker as Argo CD rendered it last, and as a render would have it now."""

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
    """Who renders an intent, by what Argo CD says of it among the resources of the application that it names.

    Anybody can write an intent that names an application. An empty `status`: Argo CD has none there.
    """
    # of a render that failed Argo CD knows neither what it would have nor what it would prune
    if status == "Unknown" or (status and not requires_pruning):
        return RenderedBy.APPLICATION
    return RenderedBy.APPLICATION_BEFORE if requires_pruning else RenderedBy.NOBODY_KNOWN


class ApplicationState(NamedTuple):
    """What Argo CD says of an application."""

    is_syncing: bool
    render_error: str
    """Of twgen, as Argo CD keeps it; empty: its last render worked."""
    rendered: Mapping[str, str] = MappingProxyType({})
    """The known plan hashes of its last render, by worker, whether it was applied or not."""
    may_wait: bool = True
    """What was rendered last may not be what is applied."""
    asked_since: datetime | None = None
    """Since when Argo CD has been asked to refresh it and has not; None: it has, or this is unknown."""


def not_looked_at(asked_since: datetime | None, now: datetime) -> str:
    """The problem of an application that Argo CD may never refresh again; empty: none, or unknown.

    Argo CD continues to show its last state, such as Synced, and applies no commit.
    """
    if asked_since is None or now - asked_since < _LOOKS_WITHIN:
        return ""
    return f"Argo CD was asked {spoken(now - asked_since)} ago to refresh it, and has not done so"


class Refresh(NamedTuple):
    """A hard refresh that is due, or was asked for."""

    because: str
    outdated: frozenset[Rendered] = frozenset()
    """What it was asked for; none: a render that failed."""
    at: datetime | None = None
    """When; None: it is not asked for yet."""
    in_vain: int = 0
    """How often the same was asked for before, and nothing came of it."""


def due_refresh(
    workers: Iterable[Rendered], state: ApplicationState, last: Refresh | None, now: datetime
) -> Refresh | None:
    """The hard refresh that an application needs now; `last` is the one before.

    A refresh would change the manifests of a running sync, so it waits. A correct render that is not applied
    waits for a person or a sync window; an outdated one would be applied as it is. If a render changed
    nothing, the next one is asked for after twice the time. So it is if the ledger has only some of the
    versions, which tick cannot know.
    """
    since = now - last.at if last and last.at else timedelta.max
    if state.is_syncing or since < REFRESH_PAUSE:
        return None
    if state.render_error:
        return Refresh(f"its last render failed: {state.render_error}")
    found = [item._replace(stamped=state.rendered.get(item.worker, item.stamped)) for item in workers]
    outdated = [item for item in found if item.stamped not in item.wanted]
    if not outdated:
        return None
    because = f"a new render of {listed([item.worker for item in outdated])} would differ"
    due = Refresh(because, frozenset(outdated))
    if not last or last.outdated != due.outdated:
        return due
    pause = min(REFRESH_PAUSE * 2 ** min(last.in_vain, _DOUBLED), _LONGEST_PAUSE)
    return due._replace(in_vain=last.in_vain + 1) if since >= pause else None


def needs_last_render(due: Refresh | None, state: ApplicationState) -> bool:
    """What Argo CD rendered last must be read too, by what is `due` for what is applied.

    It may wait to be applied: right already, or wrong while what is applied is right again.
    """
    if due:
        return bool(due.outdated)
    return state.may_wait and not state.is_syncing


def runs_again(plan: WorkerPlan, ended_at: datetime, now: datetime) -> bool:
    """A Job that has ended has something to do again, and would not only fail again.

    A target that has all of the traffic and does not serve needs a person, and no rollout.
    """
    routing = plan.routing
    is_idle = routing.phase is Phase.SETTLED or routing.reason is Reason.CURRENT_NOT_SERVING
    is_in_vain = routing.reason.until is Until.ANOTHER_INTENT
    return not is_idle and not is_in_vain and now - ended_at >= RERUN_PAUSE
