"""The version table: what becomes of a version's Deployment. The first row that fits decides.

Two rules hold the table together:

1. A version that may have work is never scaled down or dropped. Only three kinds ever are: an inactive
   version that was never active, a drained one after its delay, and one that Temporal does not know.
2. Nothing goes in one step. A Deployment is first rendered with zero replicas and without protection; only
   once a sync has made it so may it be left out of the output.

A version with a Deployment is looked up in LIVE, any other in WITHOUT_DEPLOYMENT. `plan` applies the row, and
afterwards turns a Keep into an Update where the pods themselves have to change.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from twgen.model.plan import VersionAction
from twgen.model.problem import counted
from twgen.model.reasons.versions import VersionReason as Reason
from twgen.model.temporal import VersionStatus
from twgen.model.world import RecordedDeployment
from twgen.planning.row import Row, first_match
from twgen.planning.sentences import in_days, spoken
from twgen.planning.version_status import IN_ROUTING, LOOKS_IDLE, may_have_work
from twgen.planning.versions.attached import autoscalers_of, replicas_are_external
from twgen.planning.versions.facts import VersionFacts


class VersionOutcome(NamedTuple):
    """What a row says of a version's Deployment."""

    action: VersionAction
    replicas: int | None
    """None: left out."""
    because: str


class Decision(NamedTuple):
    """What becomes of a version's Deployment, and why."""

    reason: Reason
    action: VersionAction
    replicas: int | None
    """None: left out."""
    because: str
    recorded: RecordedDeployment | None = None
    """The manifest to render again, once it is known; None: as the spec describes it."""
    replaced_injection: frozenset[str] | None = None
    """The injected names of that manifest that make room for the spec's connection; None: it stays."""
    patch: tuple[Mapping[str, Any], ...] = ()
    """The containers that its pods are patched with."""

    @property
    def protected(self) -> bool:
        """Argo CD must not prune it."""
        return self.action not in {VersionAction.SCALE_DOWN, VersionAction.DROP, VersionAction.NONE}


_Table = tuple[Row[Reason, VersionFacts, VersionOutcome], ...]
_KEEPS_PODS = {VersionStatus.DRAINING, VersionStatus.CREATED, VersionStatus.UNSPECIFIED}

# fmt: off
LIVE: _Table = (
    Row(Reason.TEMPLATE_CHANGED,
        lambda v: v.is_target and v.spec.has_custom_build_id and v.template_differs,
        lambda v: VersionOutcome(VersionAction.UPDATE, _spec(v),
                       "its pod template changed under its custom build ID")),
    Row(Reason.TARGET,
        lambda v: v.is_target,
        lambda v: _keep(_spec(v), "it is the target")),
    Row(Reason.OF_OTHERS,
        lambda v: v.is_of_others,
        lambda v: _of_others(v)),
    Row(Reason.LIVES_ELSEWHERE,
        lambda v: v.lives_elsewhere,
        lambda v: _keep(_live_elsewhere(v),
                        f"its pods connect to {v.place}, which twgen did not read")),
    Row(Reason.IN_USE,
        lambda v: v.status in IN_ROUTING,
        lambda v: _keep(_spec(v), f"{_state(v)}: new workflows go to it")),
    Row(Reason.MAY_BE_NEEDED,
        lambda v: v.status in _KEEPS_PODS,
        lambda v: _keep(_while_draining(v) or _live_or_spec(v),
                        f"{_state(v)}: {_need(v)}{_as_draining(v)}")),
    Row(Reason.WORKER_UNKNOWN,
        lambda v: v.world.temporal is None,
        lambda v: _keep(_live(v), "Temporal does not know the worker, so the version may be needed")),
    Row(Reason.OPEN_WORKFLOWS,
        lambda v: v.status in LOOKS_IDLE and v.open_workflows > 0,
        lambda v: _keep(_live(v, least=1), f"{_state(v)}, but {_open_workflows(v)}")),
    Row(Reason.RUNS_ANOTHER_BUILD,
        lambda v: v.live is not None and bool(v.live.other_build_id and v.live.replicas),
        lambda v: _keep(_live(v), f"its pods run as version {_other_build_id(v)}, which may need them")),
    Row(Reason.NEVER_ACTIVE_FOR_LONG,
        lambda v: v.never_active and v.is_at_rest and _longer(v.registered_for, v.both_delays),
        lambda v: _drop("it was never active, has zero replicas,"
                        f" and Temporal has known it for {_age(v.registered_for)}")),
    Row(Reason.NEVER_ACTIVE,
        lambda v: v.never_active,
        lambda v: _scale_down("it was never active and is not the target")),
    Row(Reason.DRAINED_PAST_BOTH_DELAYS,
        lambda v: v.is_at_rest and _longer(v.drained_for, v.both_delays),
        lambda v: _drop(f"it has zero replicas and has been drained for {_age(v.drained_for)}, longer than"
                        f" both sunset delays together ({spoken(v.both_delays)})")),
    Row(Reason.DRAINED_PAST_SCALEDOWN,
        lambda v: _longer(v.drained_for, v.sunset.scaledown_delay),
        lambda v: _scale_down(f"it has been drained for {_age(v.drained_for)},"
                              f" longer than {_scaledown_delay(v)}")),
    Row(Reason.DRAINED,
        lambda v: v.status is VersionStatus.DRAINED,
        lambda v: _keep(_live(v), _drained(v))),
    Row(Reason.MAY_BE_ANOTHER,
        lambda v: v.status is VersionStatus.NOT_REGISTERED and bool(v.namesake),
        lambda v: _keep(_live(v), f"Temporal does not know it, but knows {v.namesake}, whose Deployment would"
                        " have the same name: they may be the same version")),
    Row(Reason.UNREGISTERED_AT_ZERO,
        lambda v: v.is_unregistered_for_long and v.is_at_rest,
        lambda v: _drop("Temporal does not know it,"
                        f" and its Deployment has zero replicas and is {_age(v.deployed_for)} old")),
    Row(Reason.UNREGISTERED,
        lambda v: v.is_unregistered_for_long,
        lambda v: _scale_down("Temporal does not know it,"
                              f" and its Deployment is {_age(v.deployed_for)} old")),
    Row(Reason.AWAITS_REGISTRATION,
        lambda _: True,
        lambda v: _keep(_live(v), "Temporal does not know it yet")),
)

WITHOUT_DEPLOYMENT: _Table = (
    Row(Reason.TARGET,
        lambda v: v.is_target,
        lambda v: _create(_spec(v), f"it is the target{_absence(v)}")),
    Row(Reason.OF_OTHERS,
        lambda v: may_have_work(v.status, v.version) and v.is_of_others,
        lambda v: _of_others(v)),
    Row(Reason.OPEN_WORKFLOWS,
        lambda v: v.status in LOOKS_IDLE and v.open_workflows > 0,
        lambda v: _create(_recorded(v), f"{_state(v)}, but {_open_workflows(v)}{_absence(v)}")),
    Row(Reason.NOT_NEEDED,
        lambda v: v.is_of_others
        or (v.status in LOOKS_IDLE and v.world.deployments is not None)
        or (v.is_left_over and not (v.recorded and v.is_among_newest)),
        lambda _: _drop("it has no Deployment and needs none")),
    Row(Reason.NEVER_ACTIVE_FOR_LONG,
        lambda v: v.never_active and _longer(v.registered_for, v.both_delays),
        lambda v: _scale_down("it was never active, and Temporal has known it for"
                              f" {_age(v.registered_for)}{_may_be_there(v)}")),
    Row(Reason.NEVER_ACTIVE,
        lambda v: v.never_active,
        lambda _: _scale_down("it was never active and is not the target")),
    Row(Reason.DRAINED_PAST_BOTH_DELAYS,
        lambda v: _longer(v.drained_for, v.both_delays),
        lambda v: _scale_down(f"it has been drained for {_age(v.drained_for)}{_may_be_there(v)}")),
    Row(Reason.DRAINED_PAST_SCALEDOWN,
        lambda v: _longer(v.drained_for, v.sunset.scaledown_delay),
        lambda v: _scale_down(f"it has been drained for {_age(v.drained_for)},"
                              f" longer than {_scaledown_delay(v)}")),
    Row(Reason.AWAITS_REGISTRATION,
        lambda v: v.status is VersionStatus.NOT_REGISTERED,
        lambda v: _create(_recorded(v), "Temporal does not know it, and its Deployment is being deleted")),
    Row(Reason.IN_USE,
        lambda v: v.status in IN_ROUTING,
        lambda v: _create(_recorded(v), f"{_state(v)}: new workflows go to it{_absence(v)}")),
    Row(Reason.DRAINED,
        lambda v: v.status is VersionStatus.DRAINED,
        lambda v: _create(_recorded(v), f"{_drained(v)}{_absence(v)}")),
    Row(Reason.MAY_BE_NEEDED,
        lambda _: True,
        lambda v: _create(_while_draining(v) or _recorded(v),
                          f"{_state(v)}: {_need(v)}{_as_draining(v)}{_absence(v)}")),
)
# fmt: on


def decide(version: VersionFacts) -> Decision:
    """What becomes of a version, and why."""
    row = first_match(LIVE if version.live else WITHOUT_DEPLOYMENT, version)
    return Decision(row.reason, *row.then(version))


def _keep(replicas: int | None, because: str) -> VersionOutcome:
    return VersionOutcome(VersionAction.KEEP, replicas, because)


def _create(replicas: int | None, because: str) -> VersionOutcome:
    return VersionOutcome(VersionAction.CREATE, replicas, because)


def _scale_down(because: str) -> VersionOutcome:
    return VersionOutcome(VersionAction.SCALE_DOWN, 0, because)


def _drop(because: str) -> VersionOutcome:
    return VersionOutcome(VersionAction.DROP, None, because)


def _of_others(v: VersionFacts) -> VersionOutcome:
    state = "Temporal does not know it" if v.status is VersionStatus.NOT_REGISTERED else _state(v)
    return VersionOutcome(
        VersionAction.NONE,
        None,
        f"{state}, and its build ID is not a valid label, so twgen did not create it",
    )


def _live(v: VersionFacts, least: int = 0) -> int | None:
    """The live replicas, and no fewer than `least`; left out where an autoscaler or a person holds them."""
    if not v.live:
        return None
    stays_at_zero = v.live.replicas < least and not any(item.scales_from_zero for item in autoscalers_of(v))
    if v.live.replicas_are_external and replicas_are_external(v) and not stays_at_zero:
        return None
    return max(v.live.replicas, least)


def _spec(v: VersionFacts) -> int | None:
    """The spec's replicas; where it leaves them out, the live ones, at least one."""
    return _live(v, least=1) if replicas_are_external(v) else v.spec.replicas


def _live_or_spec(v: VersionFacts) -> int | None:
    """The live replicas, and the spec's where none are left."""
    return _live(v, least=0 if v.live and v.live.replicas else max(v.spec.replicas or 1, 1))


def _live_elsewhere(v: VersionFacts) -> int | None:
    """The live replicas; of one that is put right and may have work, as many as it would have here."""
    if not v.was_moved_by_hand or v.status in LOOKS_IDLE | {VersionStatus.NOT_REGISTERED}:
        return _live(v)
    return _spec(v) if v.status in IN_ROUTING else _live_or_spec(v)


def _recorded(v: VersionFacts) -> int | None:
    """At least one: of a version that takes traffic as the spec says, of others as their own did."""
    own = v.recorded.replicas if v.recorded else None
    said = v.spec.replicas if v.status in IN_ROUTING else own
    return None if said is None or replicas_are_external(v) else max(said, 1)


def _while_draining(v: VersionFacts) -> int | None:
    """What the policy gives a version that Temporal itself calls draining; None: nothing of its own.

    One of which Temporal contradicts itself is only taken for draining, and keeps what it has.
    """
    said = v.spec.policy.draining_replicas
    return said if said and v.is_told_to_drain and not autoscalers_of(v) else None


def _longer(age: timedelta | None, limit: timedelta) -> bool:
    """The age is known, and above the limit."""
    return age is not None and age > limit


def _age(length: timedelta | None) -> str:
    return spoken(length or timedelta())


def _scaledown_delay(v: VersionFacts) -> str:
    return f"scaledownDelay ({spoken(v.sunset.scaledown_delay)})"


def _drained(v: VersionFacts) -> str:
    if v.drained_for is None:
        return "it is drained, but Temporal does not report when it drained"
    return f"it is drained, but {_scaledown_delay(v)} is not over yet"


def _state(v: VersionFacts) -> str:
    return f"it is {v.status.value.lower()}"


def _need(v: VersionFacts) -> str:
    """The open workflows that a draining version keeps its pods for, if they were counted."""
    if not v.open_workflows:
        return "workflows may still need it"
    oldest = v.version.oldest_open_at if v.version else None
    aged = f", the oldest {in_days(v.now - oldest)} old" if oldest else ""
    # the number of its pods is shown with its replicas
    held = f"it keeps its pods for {counted(v.open_workflows, 'open workflow')}"
    return f"{held if v.live else _open_workflows(v)}{aged}"


def _as_draining(v: VersionFacts) -> str:
    """What decides the replicas of a draining version, as the end of a sentence; empty: what it has."""
    said = _while_draining(v)
    return f", with {counted(said, 'replica')} (drainingReplicas)" if said else ""


def _other_build_id(v: VersionFacts) -> str:
    return v.live.other_build_id if v.live else ""


def _open_workflows(v: VersionFacts) -> str:
    return f"{counted(v.open_workflows, 'open workflow')} {'needs' if v.open_workflows == 1 else 'need'} it"


def _may_be_there(v: VersionFacts) -> str:
    """Why a version is still rendered when both sunset delays are over, as the end of a sentence."""
    return (
        f", longer than both sunset delays together ({spoken(v.both_delays)}); the cluster was not read, so"
        " its Deployment may still exist"
    )


def _absence(v: VersionFacts) -> str:
    """Why a version has no live Deployment, as the end of a sentence."""
    if v.terminating:
        return "; its Deployment is being deleted, and will then be created again"
    return "; the cluster was not read" if v.world.deployments is None else "; it has no Deployment"
