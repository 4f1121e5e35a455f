"""The routing table: the one change of traffic that is wanted next. The first row that fits decides.

Three rules hold the table together:

1. A row asks for one change, or says why there is none. After a change everything is read again.
2. Traffic moves only to a target that serves, and a target that has all traffic is watched until it serves.
3. A missing fact makes a rollout slower, never faster.

A condition under which traffic must not move is a row above the changes, with its reason and its sentence.
If the spec leaves a change to a person, `plan` only says which one is wanted.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from shlex import quote
from typing import Any, NamedTuple

from twgen.model.analysis import OnFailure, Verdict
from twgen.model.histories import ReplayState
from twgen.model.marks import MarkKey
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.policy import WhenNoPollers
from twgen.model.reasons.routing import RoutingReason as Reason
from twgen.model.spec import RolloutStep, Strategy
from twgen.model.temporal import Routing, UpdateState
from twgen.planning.analysis.verdicts import metrics_sentence
from twgen.planning.routing.gates import (
    asked_gates,
    failed_gate_sentence,
    failing_gate_sentence,
    first_not_passed,
    gate_failures,
    next_attempt,
    open_gate_sentence,
)
from twgen.planning.routing.registration import why_unregistered
from twgen.planning.routing.replay import missing_replay, open_replay_sentence, replay_may_come_until
from twgen.planning.routing.target import Target
from twgen.planning.routing.task_queues import (
    first_polls_end,
    has_no_unversioned_pollers,
    ignores_missing_queues,
    may_poll_more,
    missing_queue,
    polls_until,
)
from twgen.planning.row import Row, first_match
from twgen.planning.sentences import listed, plain_percentage, shares_sentence, spoken
from twgen.planning.version_status import IN_ROUTING, shares

_UPDATE_LIMIT = timedelta(minutes=2)
"""The rollout waits no longer than this for a routing update."""
_REPORTED_FROM = timedelta(seconds=30)
"""If clocks differ by more, the sentence says so."""


class WantedChange(NamedTuple):
    """The next change of traffic by a row, or why there is none."""

    action: RoutingAction
    because: str
    phase: Phase = Phase.MOVING
    build_id: str | None = None
    percentage: float | None = None
    due_at: datetime | None = None
    marks: Mapping[str, Any] = {}


_Table = tuple[Row[Reason, Target, WantedChange], ...]
_BLOCKED = Phase.BLOCKED
_PAUSES = {WhenNoPollers.PAUSE, OnFailure.PAUSE}

# fmt: off
TABLE: _Table = (
    Row(Reason.SUPERSEDED,
        lambda t: t.world.rollout.is_superseded,
        lambda _: _none("its intent has changed: another rollout continues", Phase.SETTLED)),
    Row(Reason.OLDER_ROLLOUT,
        lambda t: bool(t.world.rollout.older_pods),
        lambda t: _none(f"an earlier rollout has not ended: Pod {listed(t.world.rollout.older_pods)}")),
    Row(Reason.FOREIGN_MANAGER,
        lambda t: t.is_foreign and not t.has_all_traffic,
        lambda t: _none(f"its manager is {t.temporal.manager_identity}. To take it over, run `twgen ownership"
                        f" claim --from {quote(t.temporal.manager_identity)}`, or add this manager to"
                        " spec.adoptFrom of a RolloutPolicy", _BLOCKED)),
    Row(Reason.FROZEN,
        lambda t: t.is_frozen,
        lambda t: _none("its intent is annotated as paused, so nothing is changed; to continue, remove the"
                        " annotation twgen.io/paused. Meanwhile,"
                        f" {shares_sentence(shares(t.temporal.routing))}")),
    Row(Reason.RETIRED,
        lambda t: t.is_retired,
        lambda _: _none("the worker is retired: workers without a version take its new workflows. To undo"
                        " this, run `twgen resume`", Phase.SETTLED)),
    Row(Reason.REPLACED_RAMP,
        lambda t: _is_replaced(t),
        lambda t: _clear_ramp(f"the spec no longer describes {t.other_ramp_name}: its share goes back to"
                              f" {t.current} until {t.build_id} can take traffic")),
    Row(Reason.VERSION_CAP_REACHED,
        lambda t: bool(t.not_created),
        lambda t: _none(t.not_created, _BLOCKED)),
    Row(Reason.ABORTED,
        lambda t: t.is_aborted,
        lambda t: _clear_ramp(f"it is marked aborted{t.why_marked(MarkKey.ABORTED)}") if t.ramp
        else _none(f"it is marked aborted{t.why_marked(MarkKey.ABORTED)}; to continue, run `twgen retry` or"
                   " commit a new build", _BLOCKED)),
    Row(Reason.OTHER_RAMP,
        lambda t: t.is_current and t.other_ramp is not None,
        lambda t: _clear_ramp(f"it is current, so {t.other_ramp_name} must not keep a share of the traffic")),
    Row(Reason.CURRENT_NOT_SERVING,
        lambda t: t.is_current and t.spec.replicas != 0
        and t.obstacle is not None and not t.obstacle.older_pods_serve,
        lambda t: _wait_for_serving(t)),
    Row(Reason.SETTLED,
        lambda t: t.is_current,
        lambda _: _none("it is current and nothing ramps", Phase.SETTLED)),
    Row(Reason.UNSERVED,
        lambda t: bool(t.unserved) and t.spec.rollout.strategy is not Strategy.MANUAL
        and _is_news(t, t.spec.policy.unserved.action),
        lambda t: _take_back(t, t.unserved, t.spec.policy.unserved.action)),
    Row(Reason.ANALYSIS_FAILED,
        lambda t: bool(metrics_sentence(t.judgements, Verdict.FAILS)) and _is_news(t, t.on_failure),
        lambda t: _take_back(t, metrics_sentence(t.judgements, Verdict.FAILS), t.on_failure)),
    # below the rows that take a share back: a pause only stops a version from getting more
    Row(Reason.PAUSED,
        lambda t: t.is_paused,
        lambda t: _none(_paused(t))),
    Row(Reason.WAITING_FOR_REGISTRATION,
        lambda t: not t.is_registered,
        lambda t: _wait_for_registration(t)),
    Row(Reason.NOT_SERVING,
        lambda t: t.obstacle is not None,
        lambda t: _wait_for_serving(t)),
    Row(Reason.ROLLBACK,
        lambda t: t.is_rollback,
        lambda t: _set_current(t, "it was current until recently: a rollback needs no gate and no steps")),
    Row(Reason.UPDATE_IN_PROGRESS,
        lambda t: is_updating(t.temporal.routing, t.now),
        lambda t: _none("the last change has not reached every task queue yet"
                        + ("" if (ends := _update_ends(t.temporal.routing)) else ", and its time is unknown"),
                        due=ends)),
    Row(Reason.REPLAY_FAILED,
        lambda t: (run := missing_replay(t)) is not None and run.state is ReplayState.FAILED,
        lambda t: _none(open_replay_sentence(t), _BLOCKED)),
    Row(Reason.REPLAY_MISSING,
        lambda t: (run := missing_replay(t)) is not None and run.state is ReplayState.MISSING,
        lambda t: _none(open_replay_sentence(t), due=due) if (due := replay_may_come_until(t))
        else _none(open_replay_sentence(t), _BLOCKED)),
    Row(Reason.REPLAY_RUNNING,
        lambda t: missing_replay(t) is not None,
        lambda t: _none(open_replay_sentence(t))),
    Row(Reason.STEP_GATE_FAILED,
        lambda t: t.ramp is not None and t.spec.rollout.strategy is not Strategy.MANUAL
        and any(failure.gate.percentage is not None for failure in gate_failures(t)),
        lambda t: _take_back(t, failed_gate_sentence(t), t.on_failure,
                             t.new_mark(MarkKey.GATE_ATTEMPT, attempt=next_attempt(t)))),
    Row(Reason.GATE_FAILED,
        lambda t: bool(gate_failures(t)),
        lambda t: _none(f"{failed_gate_sentence(t)}; to continue, run `twgen retry` or commit a new build",
                        _BLOCKED)),
    Row(Reason.GATE_RUNNING,
        lambda t: first_not_passed(t, asked_gates(t)) is not None,
        lambda t: _none(f"{failing}; commit a build whose worker can run it, or end it with `twgen retry`",
                        _BLOCKED)
        if (failing := failing_gate_sentence(t))
        else _none(open_gate_sentence(t)) if t.workflow_task_queues
        else _until_queues_are_known(t, "the gate cannot start: no workflow task queue is known yet",
                                     "a gate is a workflow: deploy a worker that polls for workflows, or"
                                     " remove the gate from its spec")),
    Row(Reason.MISSING_TASK_QUEUE,
        lambda t: bool(missing_queue(t)),
        lambda t: _until_queues_are_known(t, f"it does not poll {missing_queue(t)}, but {t.current} does",
                                          "deploy a worker that polls it, or, if it is no longer used, add it"
                                          " to spec.ignoreMissingTaskQueues of a RolloutPolicy")),
    Row(Reason.NO_TASK_QUEUES,
        lambda t: t.current is None and t.ramp is None and (not t.task_queues or may_poll_more(t)),
        lambda t: _none("none of its workflow task queues is known yet", due=first_polls_end(t))
        if t.task_queues else _none("none of its task queues is known yet")),
    Row(Reason.FIRST_VERSION,
        lambda t: t.current is None and t.temporal.routing.ramping is None
        and not any(version.status in IN_ROUTING for version in t.temporal.versions)
        and has_no_unversioned_pollers(t),
        lambda t: _set_current(t, "there is no current version")),
    Row(Reason.ALL_AT_ONCE,
        lambda t: t.spec.rollout.strategy is Strategy.ALL_AT_ONCE or not t.spec.rollout.steps,
        lambda t: _set_current(t, "it is ready, and its strategy has no steps")),
    Row(Reason.FIRST_STEP,
        lambda t: not t.live_percentage,
        lambda t: _set_ramp(t, t.spec.rollout.steps[0], "it can take its first share of the traffic")),
    Row(Reason.ANALYSIS_UNDECIDED,
        lambda t: t.may_go_up and bool(metrics_sentence(t.judgements, Verdict.UNDECIDED)),
        lambda t: _none("its pause is over, but its analysis holds the ramp: "
                        + metrics_sentence(t.judgements, Verdict.UNDECIDED))),
    Row(Reason.OFF_STEP,
        lambda t: t.is_above_its_step,
        lambda t: _set_ramp(t, t.step, f"its share of {plain_percentage(t.live_percentage)}% matches no step;"
                                       f" the next lower step is {plain_percentage(t.step.percentage)}%")),
    Row(Reason.RAMP_PAUSED,
        lambda t: (ends := t.step_ends) is None or t.now <= ends,
        lambda t: _wait_for_pause(t)),
    Row(Reason.UNTIL_PROMOTED,
        lambda t: t.waits_for_a_person,
        lambda t: _none(f"its pause at {plain_percentage(t.step.percentage)}% is over, and its policy waits"
                        " for `twgen promote`")),
    Row(Reason.NEXT_STEP,
        lambda _: True,
        lambda t: _next_step(t)),
)
# fmt: on


def wanted_change(target: Target) -> RoutingPlan:
    """The change of traffic that is wanted next, or none, and why."""
    row = first_match(TABLE, target)
    ignores = ignores_missing_queues(target)
    return RoutingPlan(**row.then(target)._asdict(), reason=row.reason, ignores_missing_queues=ignores)


def _none(because: str, phase: Phase = Phase.WAITING, *, due: datetime | None = None) -> WantedChange:
    return WantedChange(RoutingAction.NONE, because, phase, due_at=due)


def _set_current(target: Target, because: str) -> WantedChange:
    return WantedChange(RoutingAction.SET_CURRENT, because, build_id=target.build_id)


def _set_ramp(target: Target, step: RolloutStep, because: str) -> WantedChange:
    percentage = plain_percentage(step.percentage)
    return WantedChange(RoutingAction.SET_RAMP, because, build_id=target.build_id, percentage=percentage)


def _clear_ramp(because: str) -> WantedChange:
    return WantedChange(RoutingAction.CLEAR_RAMP, because, build_id="", percentage=0)


def _take_back(
    target: Target, because: str, action: WhenNoPollers | OnFailure, marks: Mapping[str, Any] | None = None
) -> WantedChange:
    """The end of a ramp, or a pause, that no person decided: a mark with the reason is written first."""
    if action in _PAUSES:
        pause = target.new_mark(MarkKey.PAUSED, because)
        return _none(f"{because}: it is paused")._replace(marks={**pause, **(marks or {})})
    return _clear_ramp(because)._replace(marks={**target.new_mark(MarkKey.ABORTED, because), **(marks or {})})


def _is_news(target: Target, action: WhenNoPollers | OnFailure) -> bool:
    """False: the failure only pauses the rollout, and it is paused already."""
    return not target.is_paused or action not in _PAUSES


def _paused(target: Target) -> str:
    why = target.why_marked(MarkKey.PAUSED)
    paused = f"it was paused{why}" if why else "a person paused it"
    return f"{paused}; run `twgen resume` to continue"


def _is_replaced(target: Target) -> bool:
    """A version ramps that no spec describes any more, so nothing judges it, and the current one has pods."""
    ramp, is_moved_by_hand = target.other_ramp, target.spec.rollout.strategy is Strategy.MANUAL
    if not ramp or not ramp.build_id or is_moved_by_hand or not target.current or target.is_current:
        return False
    goes_back_at_once = target.is_rollback and target.obstacle is None and not target.is_paused
    # at the limit of versions, the target would wait for the very version that ramps
    if goes_back_at_once or not (target.not_created or target.has_replaced(ramp.build_id)):
        return False
    serves = target.deployments.get(target.current)
    return target.world.deployments is None or bool(serves and serves.available_replicas)


def _wait_for_registration(target: Target) -> WantedChange:
    because, needs_a_person = why_unregistered(target)
    return _none(because, _BLOCKED if needs_a_person else Phase.WAITING)


def _wait_for_serving(target: Target) -> WantedChange:
    obstacle = target.obstacle
    if not obstacle:
        raise AssertionError("the row asks for an obstacle")
    return _none(obstacle.because, Phase.BLOCKED if obstacle.needs_a_person else Phase.WAITING)


def is_updating(routing: Routing, now: datetime) -> bool:
    """The last change has not reached every task queue, and the rollout still waits for that."""
    ends = _update_ends(routing)
    return routing.update_state is UpdateState.IN_PROGRESS and (ends is None or now < ends)


def _update_ends(routing: Routing) -> datetime | None:
    """When the rollout stops waiting for an update; None: it is unknown when the update began."""
    return routing.changed_at + _UPDATE_LIMIT if routing.changed_at else None


def _until_queues_are_known(target: Target, because: str, advice: str) -> WantedChange:
    """A new version has some minutes to poll; after that a person must act."""
    due = polls_until(target)
    return _none(because, due=due) if due else _none(f"{because}; {advice}", _BLOCKED)


def _wait_for_pause(target: Target) -> WantedChange:
    ends, stays = target.step_ends, f"it stays at {plain_percentage(target.live_percentage)}%"
    if not ends:
        return _none(
            f"{stays}: Temporal does not report when this step began; run `twgen promote` to continue",
            _BLOCKED,
        )
    apart = target.world.clocks_apart
    clocks = f" (by the slowest clock; clocks differ by {spoken(apart)})" if apart > _REPORTED_FROM else ""
    return _none(f"{stays} for {spoken(ends - target.now)} more{clocks}", due=ends)


def _next_step(target: Target) -> WantedChange:
    over = f"its {spoken(target.step.pause)} at {plain_percentage(target.live_percentage)}% are over"
    if target.following_step:
        return _set_ramp(target, target.following_step, over)
    return _set_current(target, f"{over}, and this was the last step")
