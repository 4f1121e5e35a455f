"""The effects of a person's commands on a rollout: promote, abort, retry, pause, resume and retire."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.analysis import Verdict
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.values import dataclass
from twgen.planning.analysis.verdicts import metrics_sentence
from twgen.planning.rollout import is_made
from twgen.planning.routing import gates, polling
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed, plain_percentage, spoken, version_name
from twgen.versioning.names import MarkKey


@dataclass(frozen=True, slots=True)
class Intervention:
    """The changes that a person's command makes to the target's metadata and to the traffic."""

    will: str
    """The command's effect in the imperative, such as `pause the rollout of v2`."""
    marks: Mapping[str, Any]
    """The metadata to write: values by key. The value False cancels an entry."""
    change: RoutingPlan | None = None
    ends: tuple[str, ...] = ()
    """The workflow IDs of gates to terminate before the change."""
    replays: bool = False
    """Whether the command restarts the replay."""
    goes_on: bool = False
    """Whether the rollout continues after the command. If its Job has ended, the Job is restarted."""

    @property
    def first_marks(self) -> Mapping[str, Any]:
        """The metadata to write before the change, so that a rollout does not undo the change.

        If the change gives the target traffic, the metadata is written last. Such metadata speeds up the
        rollout, so it must not remain if Temporal rejects the change.
        """
        return {} if self.change and self.change.build_id else self.marks

    @property
    def last_marks(self) -> Mapping[str, Any]:
        """The metadata to write after the change."""
        return {} if self.first_marks else self.marks


def promote(target: Target, *, full: bool, skip_gate: bool) -> Intervention:
    """Give the target its next share, or all traffic with `full`, without waiting for a pause to end.

    Raises NegativeAnswer, with the reason, if the target must not get the traffic.
    """
    _refuse_foreign_or_unknown(target)
    ramp = target.other_ramp
    if target.is_current and not ramp:
        raise refused(target, "it already has all traffic")
    if target.is_aborted:
        raise refused(target, "it is marked aborted; run `twgen retry` first")
    if target.obstacle:
        raise refused(target, target.obstacle.because)
    if target.is_current and ramp:
        change = _change(target, RoutingAction.CLEAR_RAMP)
        return Intervention(f"end the ramp to {version_name(ramp.build_id)}", {}, change, goes_on=True)
    asked = gates.asked_gates(target, 100 if full else target.next_percentage)
    missing = gates.first_not_passed(target, asked)
    replay = gates.missing_replay(target)
    waits_for = str(missing or "") or ("replay" if replay else "")
    if waits_for and not skip_gate:
        raise refused(target, f"its {waits_for} has not passed; to continue without it, use --skip-gate")
    share, change = "all", _change(target, RoutingAction.SET_CURRENT)
    if target.following_step and not full:
        percentage = plain_percentage(target.following_step.percentage)
        share, change = f"{percentage}%", _change(target, RoutingAction.SET_RAMP, percentage)
    will = f"send {share} of the new workflows to {target.build_id}"
    if queue := polling.missing_queue(target):
        lacks = f"it does not poll {queue}"
        if until := polling.polls_until(target):
            waits = f"the rollout continues anyway in {spoken(until - target.now)}"
            raise refused(target, f"{lacks}, but {target.current} does; {waits}")
        will = f"{will}, although {lacks} of {target.current}"
    if failing := metrics_sentence(target.judgements, Verdict.FAILS):
        will = f"{will}, although its analysis fails ({failing})"
    marks = _measured_from_now(target, because=failing) if failing else {}
    if waits_for:
        # the metadata about this change will record these gates as passed
        will = f"{will}, without its {'gate' if missing else 'replay'}"
    return Intervention(will, marks, change, goes_on=True)


def abort(target: Target) -> Intervention:
    """End the target's ramp and stop its rollout until a person runs `twgen retry`."""
    _refuse_foreign_or_unknown(target)
    if target.is_current:
        raise refused(target, "it is current: to go back, commit the spec of an older version")
    if target.is_aborted and not target.ramp:
        raise refused(target, "it is already aborted")
    stop, change = "send no traffic", None
    if target.ramp:
        stop = f"stop sending {plain_percentage(target.ramp.percentage)}% of new workflows"
        change = _change(target, RoutingAction.CLEAR_RAMP)
    will = f"{stop} to {target.build_id}, until `twgen retry` or a new build ID"
    return Intervention(will, target.new_mark(MarkKey.ABORTED), change)


def retry(target: Target) -> Intervention:
    """Let the rollout continue after an abort, a failed gate or replay, or a gate that cannot complete."""
    _refuse_foreign_or_unknown(target)
    ends = tuple(gate.workflow_id for gate in gates.hopeless_gates(target))
    replays = gates.may_replay_again(target)
    failed = bool(ends or gates.failed_gate(target))
    if not target.is_aborted and not failed and not replays:
        of_replay = "neither its gate nor its replay" if target.spec.policy.replay else "no gate"
        raise refused(target, f"it is not aborted, and {of_replay} failed")
    marks: dict[str, Any] = {}
    if target.is_aborted:
        # after `retry`, a person should not have to run `resume` too
        marks = {key.value: False for key in (MarkKey.ABORTED, MarkKey.PAUSED) if key in target.marks}
        marks |= _measured_from_now(target)
    actions = [f"let the rollout of {target.build_id} continue"] if target.is_aborted else []
    actions += [f"end {listed(ends)}, which cannot complete,"] if ends else []
    if failed:
        attempt = gates.next_attempt(target)
        marks |= target.new_mark(MarkKey.GATE_ATTEMPT, attempt=attempt)
        actions.append(f"start its gate again (attempt {attempt})")
    if replays:
        actions.append("replay histories on it again")
    return Intervention(" and ".join(actions), marks, ends=ends, replays=replays, goes_on=True)


def pause(target: Target) -> Intervention:
    """Stop all traffic changes until a person runs `twgen resume`."""
    _refuse_foreign_or_unknown(target)
    if target.is_paused:
        raise refused(target, "it is already paused")
    if target.is_current:
        raise refused(target, "it is current: there is nothing left to pause")
    will = f"pause the rollout of {target.build_id}, until `twgen resume` or a new build ID"
    return Intervention(will, target.new_mark(MarkKey.PAUSED))


def resume(target: Target) -> Intervention:
    """End a pause."""
    _refuse_foreign_or_unknown(target)
    if not target.is_paused:
        is_frozen = target.world.rollout.is_paused
        why = ", but its intent has the annotation twgen.io/paused: remove it first" if is_frozen else ""
        raise refused(target, f"it is not paused{why}")
    # earlier measurements still count if a person paused the rollout, but not if the rollout paused itself
    marks = {key.value: False for key in (MarkKey.PAUSED, MarkKey.RETIRED) if key in target.marks}
    marks |= _measured_from_now(target) if target.why_marked(MarkKey.PAUSED) else {}
    return Intervention(f"let the rollout of {target.build_id} continue", marks, goes_on=True)


def retire(target: Target) -> Intervention:
    """Send all new workflows to unversioned workers, so that all versions drain.

    The metadata is written first. Without the metadata, a rollout of the spec that is still in Git would take
    the traffic back. Only the target's metadata is changed, so a new build ID can get traffic again.
    """
    _refuse_foreign_or_unknown(target)
    if target.current is None:
        raise refused(
            target,
            "no version is current; `twgen drain` lists the workflows that still need the other versions, and"
            " docs/upgrade.md describes the next steps",
        )
    if target.temporal.routing.ramping:
        raise refused(target, "a version ramps; run `twgen abort` first")
    current = target.versions.get(target.current)
    queues = current.own_task_queues if current else ()
    lacking = [queue for queue in queues if queue.unversioned_pollers is not True]
    if lacking or not queues:
        name = f"{lacking[0].type.lower()} task queue {lacking[0].name}" if lacking else "its task queues"
        raise refused(
            target,
            f"no worker without a version is known to poll {name}, so new workflows would wait there"
            " forever. Run an unversioned worker that polls it, or start no more workflows there and remove"
            " this worker from Git (docs/upgrade.md)",
        )
    change = replace(_change(target, RoutingAction.SET_CURRENT), build_id="")
    will = f"send all new workflows to workers without a version, and drain {target.current}"
    return Intervention(will, target.new_mark(MarkKey.RETIRED), change)


def refuse_other_traffic(decided_on: Target, target: Target) -> None:
    """Raise OwnedBySomebodyElse if the traffic has changed between the decision and the claim.

    Before the claim, any client could change the traffic. After the claim, another manager might have claimed
    the worker.
    """
    before = decided_on.temporal.routing
    # a new update state is not new traffic: it says whether all task queues have received the last change
    after = replace(target.temporal.routing, update_state=before.update_state)
    if target.is_foreign or after != before:
        raise OwnedBySomebodyElse(
            f"{target.spec.worker_deployment}: another client changed its traffic at the same time"
        )


def is_done(target: Target, intervention: Intervention) -> bool:
    """Whether a new read of the target shows the change and the metadata that is written before it."""
    metadata = (target.version.metadata or {}) if target.version else {}
    if any(metadata.get(key) != value for key, value in intervention.first_marks.items()):
        return False
    return not intervention.change or is_made(intervention.change, target.temporal.routing)


def refuse_other_manager(target: Target) -> None:
    """Raise OwnedBySomebodyElse if another manager owns the worker, unless the policy adopts its workers."""
    if target.is_foreign:
        raise OwnedBySomebodyElse(
            f"{target.spec.worker_deployment}: its manager is {target.temporal.manager_identity}, and you"
            f" act as {target.identity}: take the worker over with `twgen ownership claim`, or set --identity"
        )


def _refuse_foreign_or_unknown(target: Target) -> None:
    refuse_other_manager(target)
    if not target.is_registered:
        raise refused(
            target,
            "Temporal does not know it yet, so nothing can be changed; `twgen status` shows the reason",
        )


def refused(target: Target, because: str) -> NegativeAnswer:
    """The error for a command or a request that twgen refuses."""
    return NegativeAnswer(f"{target.spec.worker_deployment}, target {target.build_id}: {because}")


def _measured_from_now(target: Target, because: str = "") -> dict[str, Any]:
    """The metadata that invalidates earlier measurements, because a person let the rollout continue."""
    is_measured = target.spec.policy.analysis and target.ramp
    return target.new_mark(MarkKey.MEASURED_SINCE, because) if is_measured else {}


def _change(target: Target, action: RoutingAction, percentage: float | None = None) -> RoutingPlan:
    ends_ramp = action is RoutingAction.CLEAR_RAMP
    return RoutingPlan(
        action=action,
        because=f"requested by {target.identity}",
        phase=Phase.MOVING,
        reason=Reason.ABORTED if ends_ramp else Reason.MANUAL,
        build_id="" if ends_ramp else target.build_id,
        percentage=0 if ends_ramp else percentage,
        claim_manager=target.temporal.manager_identity != target.identity,
        ignores_missing_queues=polling.ignores_missing_queues(target),
    )
