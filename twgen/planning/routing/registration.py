"""Why no worker of the target has polled yet, as far as Temporal and the cluster tell."""

from datetime import timedelta

from twgen.model.policy import MOST_VERSIONS
from twgen.model.temporal import VersionStatus
from twgen.planning.namespaces import why_full
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed

_LATELY = timedelta(hours=1)


def why_unregistered(t: Target) -> tuple[str, bool]:
    """What a target lacks that Temporal does not know by a worker, and whether it needs a person for that."""
    found, others = t.obstacle, len(t.temporal.versions)
    if t.ramp and not t.version:
        return "it ramps, yet Temporal does not list it: nothing tells whether a worker of it polls", False
    told = "Temporal only has it as Created" if t.version else "Temporal does not know it yet"
    if not t.version and others >= MOST_VERSIONS:
        return (
            f"{told}, and knows {others} other versions. At its cap (by default {MOST_VERSIONS}) it refuses"
            " the polls of a new one until one of those is deleted"
        ), False
    if t.deployment and found:
        return f"{told}, since {found.because}", found.needs_a_person
    if not t.deployment and t.world.deployments is not None:
        return "it has no Deployment yet: apply what `twgen render` prints", False
    never_polled = f"{told}: no worker of it has polled{_polls_instead(t)}"
    if not t.deployment:
        return never_polled, False
    available = "though its Deployment is available"
    full = "" if t.world.temporal else why_full(t.world.worker_deployments)
    why = f"{told}, {available}: {full}. Where it is higher" if full else f"{never_polled}, {available}"
    return (
        f"{why}: does the worker turn versioning on in its SDK, with the deployment name of"
        " TEMPORAL_DEPLOYMENT_NAME and the build ID of TEMPORAL_WORKER_BUILD_ID, and does it connect to"
        " TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE?"
    ), False


def _polls_instead(t: Target) -> str:
    """What Temporal has heard of in the last hour and nobody made: a typo may have named it."""
    if t.world.deployments is None:
        return ""
    known = t.deployments.keys() | t.world.ledger.keys() | {t.build_id}
    strangers = [
        version.build_id
        for version in t.temporal.versions
        if version.build_id not in known
        and version.status is VersionStatus.INACTIVE
        and version.created_at is not None
        and t.now - version.created_at < _LATELY
    ]
    if not strangers:
        return ""
    polls = f"{listed(strangers)} has" if len(strangers) == 1 else f"{listed(strangers)} have"
    return f" (but {polls}, and nothing here deploys that: is it the build ID that the worker was given?)"
