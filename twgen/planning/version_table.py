"""The version table: what becomes of a version's Deployment. The first row that fits decides.

A version that may have work is never scaled down or dropped: only an inactive version that was never
active, a drained one after its delay, and one that Temporal has not known for a while can be, and in two
steps: first to zero replicas and unprotected, then, once a sync has done that, out of the output.
"""

from collections.abc import Callable
from dataclasses import dataclass

from twgen.model.plan import VersionAction
from twgen.model.world import VersionStatus
from twgen.planning.facts import UNREGISTERED_DELAY, Facts, longer_than

_IN_ROUTING = {VersionStatus.CURRENT, VersionStatus.RAMPING}
_KEEPS_PODS = {VersionStatus.DRAINING, VersionStatus.CREATED, VersionStatus.UNSPECIFIED}


@dataclass(frozen=True, slots=True)
class Row:
    """When a version is so, this becomes of it, because."""

    when: Callable[[Facts], bool]
    action: VersionAction
    replicas: Callable[[Facts], int | None]
    because: str
    protected: bool = True
    warning: bool = False


def _drifted(version: Facts) -> bool:
    return version.is_target and version.spec.has_custom_build_id and version.template_differs


def _is_target(version: Facts) -> bool:
    return version.is_target


def _lives_elsewhere(version: Facts) -> bool:
    return version.lives_elsewhere


def _in_routing(version: Facts) -> bool:
    return version.status in _IN_ROUTING


def _keeps_pods(version: Facts) -> bool:
    return version.status in _KEEPS_PODS


def _unknown_worker(version: Facts) -> bool:
    return version.is_unknown_worker


def _has_open_workflows(version: Facts) -> bool:
    return version.status in {VersionStatus.INACTIVE, VersionStatus.DRAINED} and version.has_open_workflows


def _inactive(version: Facts) -> bool:
    return version.status is VersionStatus.INACTIVE and version.never_active


def _inactive_for_long(version: Facts) -> bool:
    limit = version.spec.sunset.scaledown_delay + version.spec.sunset.delete_delay
    return _inactive(version) and version.may_be_dropped and longer_than(version.registered_for, limit)


def _drained(version: Facts) -> bool:
    return version.status is VersionStatus.DRAINED


def _drained_past_scaledown(version: Facts) -> bool:
    return longer_than(version.drained_for, version.spec.sunset.scaledown_delay)


def _drained_past_both(version: Facts) -> bool:
    sunset = version.spec.sunset
    return longer_than(version.drained_for, sunset.scaledown_delay + sunset.delete_delay)


def _drained_for_long(version: Facts) -> bool:
    return version.may_be_dropped and _drained_past_both(version)


def _unregistered_for_long(version: Facts) -> bool:
    return version.status is VersionStatus.NOT_REGISTERED and longer_than(
        version.deployed_for, UNREGISTERED_DELAY
    )


def _unregistered_at_zero(version: Facts) -> bool:
    return _unregistered_for_long(version) and version.may_be_dropped


def _gone(version: Facts) -> bool:
    cluster_was_read = version.world.deployments is not None
    return (
        version.status is VersionStatus.INACTIVE
        or (_drained(version) and cluster_was_read)
        or _drained_past_both(version)
    )


def _always(_: Facts) -> bool:
    return True


def _none(_: Facts) -> int | None:
    return None


def _zero(_: Facts) -> int | None:
    return 0


def _live(version: Facts) -> int | None:
    return None if _is_external(version) else version.live_replicas


def _live_or_one(version: Facts) -> int | None:
    return None if _is_external(version) else max(version.live_replicas, 1)


def _live_or_spec(version: Facts) -> int | None:
    return None if _is_external(version) else version.live_replicas or max(version.spec.replicas or 1, 1)


def _spec(version: Facts) -> int | None:
    if not version.spec.replicas_are_external:
        return version.spec.replicas
    return _live_or_one(version)


def _spec_of_new(version: Facts) -> int | None:
    return None if version.spec.replicas_are_external else version.spec.replicas


def _recorded(version: Facts) -> int | None:
    recorded = version.recorded.manifest["spec"].get("replicas") if version.recorded else None
    if recorded is None or version.spec.replicas_are_external:
        return None
    return max(int(recorded), 1)


def _is_external(version: Facts) -> bool:
    # leaving replicas out changes nothing only while another manager holds the value
    external = version.spec.replicas_are_external
    return external and version.live is not None and version.live.replicas_are_external


_CREATE, _KEEP, _UPDATE = VersionAction.CREATE, VersionAction.KEEP, VersionAction.UPDATE
_SCALE_DOWN, _DROP = VersionAction.SCALE_DOWN, VersionAction.DROP

# fmt: off
LIVE: tuple[Row, ...] = (
    Row(_drifted, _UPDATE, _spec, "its pod template changed under its custom build ID"),
    Row(_is_target, _KEEP, _spec, "it is the target"),
    Row(_lives_elsewhere, _KEEP, _live,
        "its pods talk to {address} {namespace}, for which this answer does not speak", warning=True),
    Row(_in_routing, _KEEP, _spec, "it is {status}: new workflows go to it"),
    Row(_keeps_pods, _KEEP, _live_or_spec, "it is {status}: workflows may still need it"),
    Row(_unknown_worker, _KEEP, _live, "Temporal does not know the worker, so nothing speaks against it"),
    Row(_has_open_workflows, _KEEP, _live_or_one, "it is {status}, yet {open} open workflows need it"),
    Row(_inactive_for_long, _DROP, _none,
        "it was never active, is at zero, and Temporal has known it for {registered}", protected=False),
    Row(_inactive, _SCALE_DOWN, _zero, "it was never active and is not the target", protected=False),
    Row(_drained_for_long, _DROP, _none,
        "it is at zero and drained for {drained}, longer than both sunset delays ({both})", protected=False),
    Row(_drained_past_scaledown, _SCALE_DOWN, _zero,
        "it is drained for {drained}, longer than scaledownDelay ({scaledown})", protected=False),
    Row(_drained, _KEEP, _live, "it is drained, but not yet longer than scaledownDelay ({scaledown})"),
    Row(_unregistered_at_zero, _DROP, _none,
        "it is at zero, and Temporal has not known it in {deployed}", protected=False),
    Row(_unregistered_for_long, _SCALE_DOWN, _zero,
        "Temporal has not known it in {deployed}", protected=False),
    Row(_always, _KEEP, _live, "Temporal does not know it yet"),
)

WITHOUT_DEPLOYMENT: tuple[Row, ...] = (
    Row(_is_target, _CREATE, _spec_of_new, "it is the target{absence}"),
    Row(_has_open_workflows, _CREATE, _recorded,
        "it is {status}{absence}, yet {open} open workflows need it"),
    Row(_gone, _DROP, _none, "it has no Deployment and needs none", protected=False),
    Row(_drained_past_scaledown, _SCALE_DOWN, _zero,
        "it is drained for {drained}, longer than scaledownDelay ({scaledown})", protected=False),
    Row(_always, _CREATE, _recorded, "it is {status}{absence}: workflows may still need it"),
)
# fmt: on


def row_for(version: Facts) -> Row:
    """The row that decides about a version."""
    table = LIVE if version.live else WITHOUT_DEPLOYMENT
    return next(row for row in table if row.when(version))
