"""When what was rendered is no longer what would be rendered now, though Git says the same."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from twgen.model.plan import VersionAction, WorkerPlan, WorkerVersions
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import OwnerReferences
from twgen.planning.rollout import NEEDS_ANOTHER_INTENT
from twgen.planning.sentences import listed

REFRESH_PAUSE = timedelta(minutes=10)
"""Between two refreshes of one application."""
RERUN_PAUSE = timedelta(minutes=10)
"""From the end of a Job until another one may take its place."""


def plan_hash(worker: WorkerVersions) -> str:
    """Changes when the world makes the worker's manifests other ones: a SHA-256 in hex digits.

    What a version is rendered from stays out, since Git and what is live already say the same of it; so does
    what no manifest tells, such as why it is kept. The UID of a Deployment counts where an attached object
    holds it.
    """
    owns = worker.spec.policy.owner_references is OwnerReferences.RENDER
    told = [
        (
            version.build_id,
            version.is_rendered,
            version.replicas,
            version.protected,
            version.action is VersionAction.SCALE_DOWN,
            version.live.uid if owns and version.attached and version.live else "",
        )
        for version in worker.versions
        if version.is_rendered or version.attached
    ]
    return sha256(repr(told).encode()).hexdigest()


class Rendered(NamedTuple):
    """One worker as Argo CD rendered it last, beside what a render would say now."""

    worker: str
    application: str
    """As Argo CD tracks it: `name`, or `namespace_name` outside its own namespace."""
    wanted: frozenset[str]
    """The plan hashes that a render could have now; empty: one of them is that of the applied intent."""


class ApplicationState(NamedTuple):
    """What Argo CD says of an application."""

    is_syncing: bool
    render_error: str
    """Of twgen, as Argo CD keeps it; empty: its last render worked."""


def refresh_reason(
    workers: Iterable[Rendered], state: ApplicationState, refreshed: datetime | None, now: datetime
) -> str:
    """Why an application is to be rendered anew now; empty: it is not.

    A running sync would go on with other manifests than it began with. What one render did not change, the
    next may: it is asked for again, but not soon.
    """
    if state.is_syncing or (refreshed and now - refreshed < REFRESH_PAUSE):
        return ""
    if state.render_error:
        return f"its last render failed: {state.render_error}"
    outdated = [item.worker for item in workers if item.wanted]
    return f"a render of {listed(outdated)} would be another one" if outdated else ""


def runs_again(plan: WorkerPlan, ended_at: datetime, now: datetime) -> bool:
    """A Job that has ended has something to do again, and would not only fail again.

    A target that has all of the traffic and does not serve needs a person, and no rollout.
    """
    idle = {*NEEDS_ANOTHER_INTENT, Reason.SETTLED, Reason.CURRENT_NOT_SERVING, Reason.SUPERSEDED}
    return plan.routing.reason not in idle and now - ended_at >= RERUN_PAUSE
