"""What a person may do to a rollout, and what comes of it: promote, abort, retry, pause and resume."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import RolloutStep
from twgen.model.times import format_time
from twgen.planning.routing.gates import gate_attempt, gate_failures, gate_passed
from twgen.planning.routing.plan import is_foreign
from twgen.planning.routing.serving import obstacle
from twgen.planning.routing.table import missing_queue
from twgen.planning.routing.target import Target
from twgen.planning.sentences import plain_percentage, rounded_percentage
from twgen.versioning.names import ABORTED, GATE_ATTEMPT, GATE_SKIPPED, PAUSED


@dataclass(frozen=True, slots=True)
class Intervention:
    """What a person's command changes: marks in the metadata of the target, and then traffic."""

    will: str
    """What it will do, after the name of the worker."""
    marks: Mapping[str, Any]
    """By key; None: the mark is removed."""
    change: RoutingPlan | None = None


def promote(target: Target, identity: str, *, full: bool, skip_gate: bool) -> Intervention:
    """The next step of the rollout, or with `full` the last one, without waiting for a pause to end.

    Raises NegativeAnswer, with the reason, when the target may not have the traffic.
    """
    _refuse_what_nobody_may(target, identity)
    if target.has_all_traffic:
        raise _refused(target, "it has all of the traffic")
    if target.is_aborted:
        raise _refused(target, "it is marked aborted: `twgen retry` first")
    if found := obstacle(target):
        raise _refused(target, found.because)
    skips = skip_gate and not gate_passed(target)
    if not skips and not gate_passed(target):
        raise _refused(target, "its gate has not passed: --skip-gate goes on without it")
    if queue := missing_queue(target):
        raise _refused(target, f"it does not poll {queue}, which {target.current} does")
    live = rounded_percentage(target.ramp.percentage) if target.ramp else 0.0
    steps = [step for step in target.spec.rollout.steps if rounded_percentage(step.percentage) > live]
    change = _change(target, identity, None if full or not steps else steps[0])
    share = "all" if change.percentage is None else f"{plain_percentage(change.percentage)} %"
    without = ", without its gate" if skips else ""
    marks = {GATE_SKIPPED: _mark(target, identity)} if skips else {}
    return Intervention(f"send {share} of the new workflows to {target.build_id}{without}", marks, change)


def abort(target: Target, identity: str) -> Intervention:
    """The end of the target's ramp, for as long as nobody retries."""
    _refuse_what_nobody_may(target, identity)
    if target.is_current:
        raise _refused(target, "it is current: to go back, let the spec describe an older version again")
    if target.is_aborted and not target.ramp:
        raise _refused(target, "it is aborted already")
    change = None
    if target.ramp:
        change = RoutingPlan(
            RoutingAction.CLEAR_RAMP,
            "a person aborted it",
            Phase.MOVING,
            Reason.ABORTED,
            build_id="",
            percentage=0,
            claim_manager=target.temporal.manager_identity != identity,
        )
    ending = (
        f"take its {plain_percentage(target.ramp.percentage)} % from" if target.ramp else "keep traffic from"
    )
    will = f"{ending} {target.build_id}, until `twgen retry` or a new build ID"
    return Intervention(will, {ABORTED: _mark(target, identity)}, change)


def retry(target: Target, identity: str) -> Intervention:
    """Another attempt after an abort or a failed gate."""
    _refuse_what_nobody_may(target, identity)
    failed = bool(gate_failures(target))
    if not target.is_aborted and not failed:
        raise _refused(target, "it is not aborted and no gate of it failed")
    marks: dict[str, Any] = {ABORTED: None} if target.is_aborted else {}
    what = [f"let {target.build_id} go on"] if target.is_aborted else []
    if failed:
        attempt = gate_attempt(target) + 1
        marks[GATE_ATTEMPT] = attempt
        what.append(f"start its gate again (attempt {attempt})")
    return Intervention(" and ".join(what), marks)


def pause(target: Target, identity: str) -> Intervention:
    """No change of traffic until somebody resumes."""
    _refuse_what_nobody_may(target, identity)
    if target.is_paused:
        raise _refused(target, "it is paused already")
    if target.has_all_traffic:
        raise _refused(target, "it has all of the traffic: nothing is left to pause")
    will = f"pause the rollout of {target.build_id}, until `twgen resume` or a new build ID"
    return Intervention(will, {PAUSED: _mark(target, identity)})


def resume(target: Target, identity: str) -> Intervention:
    """The end of a pause."""
    _refuse_what_nobody_may(target, identity)
    if not target.is_paused:
        raise _refused(target, "it is not paused")
    return Intervention(f"let the rollout of {target.build_id} go on", {PAUSED: None})


def is_done(target: Target, intervention: Intervention) -> bool:
    """Temporal has all that the intervention changes, as far as a new look at the target tells."""
    metadata = (target.version.metadata or {}) if target.version else {}
    if any(metadata.get(key) != value for key, value in intervention.marks.items()):
        return False
    match intervention.change:
        case RoutingPlan(action=RoutingAction.SET_CURRENT):
            return target.is_current
        case RoutingPlan(action=RoutingAction.SET_RAMP, percentage=percentage):
            return target.ramp is not None and rounded_percentage(target.ramp.percentage) == percentage
        case RoutingPlan():
            return target.ramp is None
    return True


def _refuse_what_nobody_may(target: Target, identity: str) -> None:
    if is_foreign(target, identity):
        raise OwnedBySomebodyElse(
            f"{target.spec.worker_deployment}: {target.temporal.manager_identity} manages it, and this is"
            f" {identity}: --identity says as whom to act"
        )
    if not target.is_registered:
        raise _refused(target, "Temporal does not know it yet: no worker of it has polled")


def _refused(target: Target, because: str) -> NegativeAnswer:
    return NegativeAnswer(f"{target.spec.worker_deployment}: {target.build_id}: {because}")


def _mark(target: Target, identity: str) -> dict[str, str]:
    return {"by": identity, "at": format_time(target.now)}


def _change(target: Target, identity: str, step: RolloutStep | None) -> RoutingPlan:
    """To a step, or to all of the traffic."""
    return RoutingPlan(
        action=RoutingAction.SET_RAMP if step else RoutingAction.SET_CURRENT,
        because="a person promoted it",
        phase=Phase.MOVING,
        reason=Reason.PROMOTED,
        build_id=target.build_id,
        percentage=plain_percentage(step.percentage) if step else None,
        claim_manager=target.temporal.manager_identity != identity,
    )
