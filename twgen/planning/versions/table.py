"""The version table: selects the action on a version's Deployment. The first row that matches decides.

All rows follow two rules:

1. A version that may have work is never scaled down or dropped. Only these versions are scaled down or
   dropped: versions that were never active, drained versions after a delay, and versions that Temporal does
   not know.
2. No Deployment is removed in one step. It is first rendered with zero replicas and without prune protection,
   and is omitted from the render only after a sync has applied this.

LIVE is the table for versions with a Deployment, and WITHOUT_DEPLOYMENT is the table for all other versions.
`plan` applies the row, and then changes a Keep into an Update if the pods must change.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from twgen.cluster.field_managers import DEFAULT_REPLICAS
from twgen.model.plan import VersionAction
from twgen.model.problem import counted
from twgen.model.reasons import VersionReason as Reason
from twgen.model.temporal import VersionStatus
from twgen.model.world import RecordedDeployment
from twgen.planning.sentences import in_days, spoken
from twgen.planning.version_status import IN_ROUTING, LOOKS_IDLE, may_have_work
from twgen.planning.versions.facts import (
    UNREGISTERED_DELAY,
    VersionFacts,
    autoscalers_of,
    replicas_are_external,
)


class Decision(NamedTuple):
    """The action on a version's Deployment, and why."""

    reason: Reason
    action: VersionAction
    replicas: int | None
    """The replicas in the manifest, or None if it omits them."""
    because: str
    recorded: RecordedDeployment | None = None
    """The manifest to render again, or None if it is not known yet or the spec describes the version."""
    replaced_injection: frozenset[str] | None = None
    """The injected names to replace with the spec's connection, or None to keep the old connection."""
    patch: tuple[Mapping[str, Any], ...] = ()
    """The patches to the version's containers."""


_Outcome = tuple[VersionAction, int | None, str]
"""The action on a version's Deployment, its replicas, and the reason as a sentence."""
_KEEPS_PODS = {VersionStatus.DRAINING, VersionStatus.CREATED, VersionStatus.UNSPECIFIED}
_Fact = TypeVar("_Fact")


class Row(NamedTuple, Generic[_Fact]):
    """A condition and the resulting decision about a Deployment."""

    reason: Reason
    when: Callable[[VersionFacts], _Fact | Literal[False] | None]
    """Returns the fact to pass to `then`. If the result is falsy, the row does not match."""
    then: Callable[[VersionFacts, _Fact], _Outcome]


# fmt: off
LIVE = (
    Row(Reason.TEMPLATE_CHANGED,
        lambda v: v.is_target and v.spec.has_custom_build_id and v.recorded is not None
        and v.recorded.template_hash not in {"", v.spec.template.hash},
        lambda v, _: (VersionAction.UPDATE, _spec(v), "its pod template changed under its custom build ID")),
    Row(Reason.TARGET,
        lambda v: v.is_target,
        lambda v, _: _keep(_spec(v), "it is the target")),
    Row(Reason.OF_OTHERS,
        lambda v: v.is_of_others,
        lambda v, _: _of_others(v)),
    Row(Reason.LIVES_ELSEWHERE,
        lambda v: v.lives_elsewhere,
        lambda v, _: _keep(_live_elsewhere(v),
                           f"its pods connect to {v.place}, which twgen did not read")),
    Row(Reason.IN_USE,
        lambda v: v.status in IN_ROUTING,
        lambda v, _: _keep(_spec(v), f"{_state(v)}: new workflows go to it")),
    Row(Reason.MAY_BE_NEEDED,
        lambda v: v.status in _KEEPS_PODS,
        lambda v, _: _keep(_while_draining(v) or _live_or_spec(v), f"{_state(v)}: {_need(v)}")),
    Row(Reason.WORKER_UNKNOWN,
        lambda v: v.world.temporal is None,
        lambda v, _: _keep(_live(v), "Temporal does not know the worker, so the version may be needed")),
    Row(Reason.OPEN_WORKFLOWS,
        lambda v: v.status in LOOKS_IDLE and v.open_workflows,
        lambda v, number: _keep(_live(v, least=1), f"{_state(v)}, but {_needing(number)}")),
    Row(Reason.RUNS_ANOTHER_BUILD,
        lambda v: v.live is not None and v.live.replicas > 0 and v.live.other_build_id,
        lambda v, other: _keep(_live(v), f"its pods run as version {other}, which may need them")),
    Row(Reason.NEVER_ACTIVE_FOR_LONG,
        lambda v: v.never_active and v.is_at_rest and _if_above(v.both_delays, v.registered_for),
        lambda _, age: _drop("it was never active, has zero replicas,"
                             f" and Temporal has known it for {spoken(age)}")),
    Row(Reason.NEVER_ACTIVE,
        lambda v: v.never_active,
        lambda *_: _scale_down("it was never active and is not the target")),
    Row(Reason.DRAINED_PAST_BOTH_DELAYS,
        lambda v: v.is_at_rest and _if_above(v.both_delays, v.drained_for),
        lambda v, age: _drop(f"it has zero replicas and has been drained for {spoken(age)}, longer than"
                             f" both sunset delays together ({spoken(v.both_delays)})")),
    Row(Reason.DRAINED_PAST_SCALEDOWN,
        lambda v: _if_above(v.sunset.scaledown_delay, v.drained_for),
        lambda v, age: _scale_down(f"it has been drained for {spoken(age)},"
                                   f" longer than {_scaledown_delay(v)}")),
    Row(Reason.DRAINED,
        lambda v: v.status is VersionStatus.DRAINED,
        lambda v, _: _keep(_live(v), _drained(v))),
    Row(Reason.MAY_BE_ANOTHER,
        lambda v: v.status is VersionStatus.NOT_REGISTERED and v.namesake,
        lambda v, other: _keep(_live(v), f"Temporal does not know it, but knows {other}, whose Deployment"
                               " would have the same name: they may be the same version")),
    Row(Reason.UNREGISTERED_AT_ZERO,
        lambda v: v.is_at_rest and _if_above(UNREGISTERED_DELAY, v.unregistered_for),
        lambda _, age: _drop("Temporal does not know it,"
                             f" and its Deployment has zero replicas and is {spoken(age)} old")),
    Row(Reason.UNREGISTERED,
        lambda v: _if_above(UNREGISTERED_DELAY, v.unregistered_for),
        lambda _, age: _scale_down(f"Temporal does not know it, and its Deployment is {spoken(age)} old")),
    Row(Reason.AWAITS_REGISTRATION,
        lambda _: True,
        lambda v, _: _keep(_live(v), "Temporal does not know it yet")),
)

WITHOUT_DEPLOYMENT = (
    Row(Reason.TARGET,
        lambda v: v.is_target,
        lambda v, _: _create(v, _spec(v), "it is the target")),
    Row(Reason.OF_OTHERS,
        lambda v: may_have_work(v.status, v.version) and v.is_of_others,
        lambda v, _: _of_others(v)),
    Row(Reason.SERVERLESS,
        # if a version has a manifest, it also had pods, and its workflows may need them
        lambda v: v.version is not None and v.version.serverless and not v.recorded,
        lambda v, _: (VersionAction.NONE, None,
                      f"{_state(v)}, and Temporal starts its workers: it needs no pods")),
    Row(Reason.OPEN_WORKFLOWS,
        lambda v: v.status in LOOKS_IDLE and v.open_workflows,
        lambda v, number: _create(v, _recorded(v), f"{_state(v)}, but {_needing(number)}")),
    Row(Reason.NOT_NEEDED,
        lambda v: v.is_of_others
        or (v.status in LOOKS_IDLE and v.world.deployments is not None)
        or (v.is_left_over and not (v.recorded and v.is_among_newest)),
        lambda *_: _drop("it has no Deployment and needs none")),
    Row(Reason.NEVER_ACTIVE_FOR_LONG,
        lambda v: v.never_active and _if_above(v.both_delays, v.registered_for),
        lambda v, age: _scale_down("it was never active, and Temporal has known it for"
                                   f" {spoken(age)}{_may_still_exist(v)}")),
    Row(Reason.NEVER_ACTIVE,
        lambda v: v.never_active,
        lambda *_: _scale_down("it was never active and is not the target")),
    Row(Reason.DRAINED_PAST_BOTH_DELAYS,
        lambda v: _if_above(v.both_delays, v.drained_for),
        lambda v, age: _scale_down(f"it has been drained for {spoken(age)}{_may_still_exist(v)}")),
    Row(Reason.DRAINED_PAST_SCALEDOWN,
        lambda v: _if_above(v.sunset.scaledown_delay, v.drained_for),
        lambda v, age: _scale_down(f"it has been drained for {spoken(age)},"
                                   f" longer than {_scaledown_delay(v)}")),
    Row(Reason.AWAITS_REGISTRATION,
        lambda v: v.status is VersionStatus.NOT_REGISTERED,
        lambda v, _: (VersionAction.CREATE, _recorded(v),
                      "Temporal does not know it, and its Deployment is being deleted")),
    Row(Reason.IN_USE,
        lambda v: v.status in IN_ROUTING,
        lambda v, _: _create(v, _recorded(v), f"{_state(v)}: new workflows go to it")),
    Row(Reason.DRAINED,
        lambda v: v.status is VersionStatus.DRAINED,
        lambda v, _: _create(v, _recorded(v), _drained(v))),
    Row(Reason.MAY_BE_NEEDED,
        lambda _: True,
        lambda v, _: _create(v, _while_draining(v) or _recorded(v), f"{_state(v)}: {_need(v)}")),
)
# fmt: on


def decide(version: VersionFacts) -> Decision:
    """Find the first row that matches a version."""
    rows: tuple[Row[Any], ...] = LIVE if version.live else WITHOUT_DEPLOYMENT
    return next(Decision(row.reason, *row.then(version, fact)) for row in rows if (fact := row.when(version)))


def _keep(replicas: int | None, because: str) -> _Outcome:
    return VersionAction.KEEP, replicas, because


def _create(version: VersionFacts, replicas: int | None, because: str) -> _Outcome:
    absence = "the cluster was not read" if version.world.deployments is None else "it has no Deployment"
    if version.terminating:
        absence = "its Deployment is being deleted, and will be recreated"
    return VersionAction.CREATE, replicas, f"{because}; {absence}"


def _scale_down(because: str) -> _Outcome:
    return VersionAction.SCALE_DOWN, 0, because


def _drop(because: str) -> _Outcome:
    return VersionAction.DROP, None, because


def _of_others(version: VersionFacts) -> _Outcome:
    state = "Temporal does not know it" if version.status is VersionStatus.NOT_REGISTERED else _state(version)
    because = f"{state}, and its build ID is not a valid label, so twgen did not create it"
    return VersionAction.NONE, None, because


def _live(version: VersionFacts, least: int = 0) -> int | None:
    """The live replicas, but at least `least`, or None if an autoscaler or a person sets the replicas."""
    if not version.live:
        return None
    live, replicas = version.live, max(version.live.replicas, least)
    has_enough = live.replicas >= least or any(item.scales_from_zero for item in autoscalers_of(version))
    is_left = live.replicas_are_external and has_enough
    if live.falls_to_one:
        # if a render omits a field without another change, Argo CD does not sync. A Deployment with zero
        # replicas then gets a pod only if its prune protection changes too
        is_left = replicas == DEFAULT_REPLICAS and bool(live.replicas or not live.protected)
    return None if is_left and replicas_are_external(version) else replicas


def _spec(version: VersionFacts) -> int | None:
    """The spec's replicas. If the spec omits them, the live replicas, but at least one."""
    return _live(version, least=1) if replicas_are_external(version) else version.spec.replicas


def _live_or_spec(version: VersionFacts) -> int | None:
    """The live replicas, or else the spec's replicas, or one replica if an autoscaler sets them."""
    if version.live is not None and version.live.replicas:
        return _live(version)
    is_external = replicas_are_external(version)
    return _live(version, least=1 if is_external else max(version.spec.replicas or 1, 1))


def _live_elsewhere(version: VersionFacts) -> int | None:
    """The live replicas, unless twgen restores the connection of a version that may have work."""
    if not version.was_moved_by_hand or version.status in LOOKS_IDLE | {VersionStatus.NOT_REGISTERED}:
        return _live(version)
    return _spec(version) if version.status in IN_ROUTING else _live_or_spec(version)


def _recorded(version: VersionFacts) -> int | None:
    """The spec's replicas for a version with traffic, or else the recorded replicas, but at least one."""
    own_replicas = version.recorded.replicas if version.recorded else None
    replicas = version.spec.replicas if version.status in IN_ROUTING else own_replicas
    return None if replicas is None or replicas_are_external(version) else max(replicas, 1)


def _while_draining(version: VersionFacts) -> int | None:
    """The policy's `drainingReplicas` if they apply to the version, otherwise None.

    If a version is treated as draining only because Temporal contradicts itself, its replicas do not change.
    """
    replicas, reported = version.spec.policy.draining_replicas, version.version
    if not replicas or not reported or version.status is not VersionStatus.DRAINING:
        return None
    checked = reported.drainage.status if reported.drainage else VersionStatus.DRAINING
    is_certain = reported.status is checked is VersionStatus.DRAINING
    return replicas if is_certain and not autoscalers_of(version) else None


def _if_above(limit: timedelta, age: timedelta | None) -> timedelta | None:
    """The age if it is known and above the limit, otherwise None."""
    return age if age and age > limit else None


def _scaledown_delay(version: VersionFacts) -> str:
    return f"scaledownDelay ({spoken(version.sunset.scaledown_delay)})"


def _drained(version: VersionFacts) -> str:
    if version.drained_for is None:
        return "it is drained, but Temporal does not report when it drained"
    return f"it is drained, but {_scaledown_delay(version)} is not over yet"


def _state(version: VersionFacts) -> str:
    return f"it is {version.status.value.lower()}"


def _need(version: VersionFacts) -> str:
    """A clause about the workflows that still need a version, and the replicas that its policy sets."""
    replicas = _while_draining(version)
    by_policy = f", with {counted(replicas, 'replica')} (drainingReplicas)" if replicas else ""
    if not version.open_workflows:
        return f"workflows may still need it{by_policy}"
    oldest = version.version.oldest_open_at if version.version else None
    aged = f", the oldest {in_days(version.now - oldest)} old" if oldest else ""
    # the replica count is shown in its own column
    keeps_pods = f"it keeps its pods for {counted(version.open_workflows, 'open workflow')}"
    return f"{keeps_pods if version.live else _needing(version.open_workflows)}{aged}{by_policy}"


def _needing(number: int) -> str:
    return f"{counted(number, 'open workflow')} {'needs' if number == 1 else 'need'} it"


def _may_still_exist(version: VersionFacts) -> str:
    """Why a version is still rendered although both sunset delays are over, as the end of a sentence."""
    return (
        f", longer than both sunset delays together ({spoken(version.both_delays)}); the cluster was not"
        " read, so its Deployment may still exist"
    )
