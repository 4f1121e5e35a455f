"""The routing table: selects the next change of traffic. The first row that matches decides.

All rows follow three rules:

1. A row selects one change, or explains why there is none. After each change, all input is read again.
2. Traffic moves only to a target with running workers. Without them, even a current target is not settled.
3. Missing information makes a rollout slower, never faster.

Rows that hold traffic are above the rows that move traffic. If the spec requires a person to make a change,
the plan only describes the change.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from shlex import quote
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from twgen.model.analysis import OnFailure, Verdict
from twgen.model.plan import Phase, RoutingAction, RoutingPlan
from twgen.model.policy import WhenNoPollers
from twgen.model.problem import counted
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.rollout import Driver
from twgen.model.spec import RolloutStep, Strategy
from twgen.model.temporal import Routing, UpdateState
from twgen.model.world import ReplayState
from twgen.planning.analysis.verdicts import metrics_sentence
from twgen.planning.routing import gates, polling
from twgen.planning.routing.target import Target
from twgen.planning.sentences import (
    described_change,
    listed,
    plain_percentage,
    rounded_percentage,
    shares_sentence,
    spoken,
    version_name,
)
from twgen.planning.version_status import IN_ROUTING, routed_build_ids, shares
from twgen.versioning.build_ids import may_be_ours
from twgen.versioning.names import MarkKey

_UPDATE_LIMIT = timedelta(minutes=2)
"""The longest time that a rollout waits for a routing update to reach every task queue."""
_REPORTED_FROM = timedelta(seconds=30)
"""If clocks differ by more than this, the reason mentions the difference."""


_Change = partial[RoutingPlan]
"""The next traffic change, or why there is none. `wanted_change` adds the row's reason."""
_MOVE = partial(RoutingPlan, phase=Phase.MOVING)
_BLOCKED = Phase.BLOCKED
_PAUSES = {WhenNoPollers.PAUSE, OnFailure.PAUSE}
_Fact = TypeVar("_Fact")


class Row(NamedTuple, Generic[_Fact]):
    """A condition and the resulting traffic change."""

    reason: Reason
    when: Callable[[Target], _Fact | Literal[False] | None]
    """Returns the fact to pass to `then`. If the result is falsy, the row does not match."""
    then: Callable[[Target, _Fact], _Change]


# fmt: off
TABLE = (
    Row(Reason.SUPERSEDED,
        lambda t: t.world.rollout.is_superseded,
        lambda *_: _none("its intent has changed: another rollout continues", Phase.SETTLED)),
    Row(Reason.OLDER_ROLLOUT,
        lambda t: t.world.rollout.older_pods,
        lambda _, pods: _none(f"an earlier rollout has not ended: Pod {listed(pods)}")),
    Row(Reason.FOREIGN_MANAGER,
        lambda t: t.is_foreign and not t.has_all_traffic and t.temporal.manager_identity,
        lambda _, manager: _none(f"its manager is {manager}. To take it over, run `twgen ownership claim"
                                 f" --from {quote(manager)}`, or add this manager to spec.adoptFrom of a"
                                 " RolloutPolicy", _BLOCKED)),
    Row(Reason.FROZEN,
        lambda t: t.world.rollout.is_paused and not t.has_all_traffic,
        lambda t, _: _none("its intent is annotated as paused, so nothing is changed. To continue, remove the"
                           " annotation twgen.io/paused. Meanwhile,"
                           f" {shares_sentence(shares(t.temporal.routing))}")),
    Row(Reason.RETIRED,
        lambda t: t.is_retired,
        lambda *_: _none("the worker is retired: workers without a version take its new workflows. To undo"
                         " this, run `twgen resume`", Phase.SETTLED)),
    Row(Reason.REPLACED_RAMP,
        lambda t: _replaced(t),
        lambda t, replaced: _clear_ramp(f"the spec no longer describes {replaced}: its share goes back to"
                                        f" {t.current} until {t.build_id} can take traffic")),
    Row(Reason.VERSION_CAP_REACHED,
        lambda t: t.not_created,
        lambda _, why: _none(why, _BLOCKED)),
    Row(Reason.ABORTED,
        lambda t: t.is_aborted and f"it is marked aborted{t.why_marked(MarkKey.ABORTED)}",
        lambda t, aborted: _clear_ramp(aborted) if t.ramp
        else _none(f"{aborted}; to continue, run `twgen retry` or commit a new build", _BLOCKED)),
    Row(Reason.OTHER_RAMP,
        lambda t: t.is_current and t.other_ramp,
        lambda _, ramp: _clear_ramp(f"it is current, so the ramp to {version_name(ramp.build_id)} must end")),
    Row(Reason.CURRENT_NOT_SERVING,
        lambda t: t.is_current and t.spec.replicas != 0
        and (found := t.obstacle) and not found.older_pods_serve and found,
        lambda _, obstacle: _none(obstacle.because, obstacle.phase)),
    Row(Reason.SETTLED,
        lambda t: t.is_current,
        lambda *_: _none("it is current and nothing ramps", Phase.SETTLED)),
    Row(Reason.UNSERVED,
        lambda t: t.spec.rollout.strategy is not Strategy.MANUAL
        and _is_news(t, t.spec.policy.unserved.action) and t.unserved,
        lambda t, why: _take_back(t, why, t.spec.policy.unserved.action)),
    Row(Reason.ANALYSIS_FAILED,
        lambda t: _is_news(t, t.on_failure) and metrics_sentence(t.judgements, Verdict.FAILS),
        lambda t, failing: _take_back(t, failing, t.on_failure)),
    # below the rows that take traffic back, because a pause only stops a version from getting more traffic
    Row(Reason.PAUSED,
        lambda t: t.is_paused,
        lambda t, _: _none((f"it was paused{why}" if (why := t.why_marked(MarkKey.PAUSED))
                            else "a person paused it") + "; run `twgen resume` to continue")),
    Row(Reason.WAITING_FOR_REGISTRATION,
        lambda t: not t.is_registered,
        lambda t, _: _none(*polling.why_unregistered(t))),
    Row(Reason.NOT_SERVING,
        lambda t: t.obstacle,
        lambda _, obstacle: _none(obstacle.because, obstacle.phase)),
    Row(Reason.ROLLBACK,
        lambda t: t.is_rollback,
        lambda t, _: _set_current(t, "it was current until recently: a rollback skips gates and steps")),
    Row(Reason.UPDATE_IN_PROGRESS,
        lambda t: is_updating(t.temporal.routing, t.now),
        lambda t, _: _none("the last change has not reached every task queue yet", due=ends)
        if (ends := _update_ends(t.temporal.routing))
        else _none("the last change, made at an unknown time, has not reached every task queue yet")),
    Row(Reason.REPLAY_FAILED,
        lambda t: (run := gates.missing_replay(t)) and run.state is ReplayState.FAILED and run,
        lambda t, run: _none(gates.replay_sentence(t, run), _BLOCKED)),
    Row(Reason.REPLAY_MISSING,
        lambda t: (run := gates.missing_replay(t)) and run.state is ReplayState.MISSING and run,
        lambda t, run: _none(gates.replay_sentence(t, run), due=due)
        if (due := gates.replay_may_come_until(t))
        else _none(gates.replay_sentence(t, run), _BLOCKED)),
    Row(Reason.REPLAY_RUNNING,
        lambda t: gates.missing_replay(t),
        lambda t, run: _none(gates.replay_sentence(t, run))),
    Row(Reason.STEP_GATE_FAILED,
        lambda t: t.ramp is not None and t.spec.rollout.strategy is not Strategy.MANUAL
        and (failed := gates.failed_gate(t)) and failed.gate.percentage is not None and failed,
        lambda t, gate: _take_back(t, gate.failure, t.on_failure,
                                   t.new_mark(MarkKey.GATE_ATTEMPT, attempt=gates.next_attempt(t)))),
    Row(Reason.GATE_FAILED,
        lambda t: gates.failed_gate(t),
        lambda _, gate: _none(f"{gate.failure}; to continue, run `twgen retry` or commit a new build",
                              _BLOCKED)),
    Row(Reason.GATE_RUNNING,
        lambda t: gates.first_not_passed(t, gates.asked_gates(t)),
        lambda t, gate: _none(f"{hopeless[0].hindrance}. Commit a build that can run it, or end it with"
                              " `twgen retry`", _BLOCKED) if (hopeless := gates.hopeless_gates(t))
        else _none(gates.open_gate_sentence(t, gate)) if t.workflow_task_queues
        else _until_queues_are_known(t, "the gate cannot start: no workflow task queue is known yet",
                                     "a gate is a workflow: deploy a worker that polls for workflows, or"
                                     " remove the gate from its spec")),
    Row(Reason.MISSING_TASK_QUEUE,
        lambda t: polling.missing_queue(t),
        lambda t, queue: _until_queues_are_known(t, f"it does not poll {queue}, but {t.current} does",
                                                 "deploy a worker that polls it. If it is no longer used,"
                                                 " add it to spec.ignoreMissingTaskQueues of a"
                                                 " RolloutPolicy")),
    Row(Reason.NO_TASK_QUEUES,
        lambda t: t.current is None and t.ramp is None and (not t.task_queues or polling.first_polls_end(t)),
        lambda t, _: _none("none of its workflow task queues is known yet", due=polling.first_polls_end(t))
        if t.task_queues else _none("none of its task queues is known yet")),
    Row(Reason.FIRST_VERSION,
        lambda t: t.current is None and t.temporal.routing.ramping is None
        and not any(version.status in IN_ROUTING for version in t.temporal.versions)
        and polling.has_no_unversioned_pollers(t),
        lambda t, _: _set_current(t, "there is no current version")),
    Row(Reason.ALL_AT_ONCE,
        lambda t: t.spec.rollout.strategy is Strategy.ALL_AT_ONCE or not t.spec.rollout.steps,
        lambda t, _: _set_current(t, "it is ready, and its strategy has no steps")),
    Row(Reason.FIRST_STEP,
        lambda t: not t.live_percentage,
        lambda t, _: _set_ramp(t, t.spec.rollout.steps[0], "it is ready for its first share of the traffic")),
    Row(Reason.ANALYSIS_UNDECIDED,
        lambda t: rounded_percentage(t.due_percentage or 0) > t.live_percentage
        and not t.waits_for_a_person and metrics_sentence(t.judgements, Verdict.UNDECIDED),
        lambda _, undecided: _none(f"its pause is over, but its analysis is undecided: {undecided}")),
    Row(Reason.OFF_STEP,
        lambda t: t.is_above_its_step,
        lambda t, _: _set_ramp(t, t.step,
                               f"its share of {plain_percentage(t.live_percentage)}% matches no step;"
                               f" the next lower step is {plain_percentage(t.step.percentage)}%")),
    Row(Reason.RAMP_PAUSED,
        lambda t: (ends := t.step_ends) is None or t.now <= ends,
        lambda t, _: _wait_for_pause(t)),
    Row(Reason.UNTIL_PROMOTED,
        lambda t: t.waits_for_a_person,
        lambda t, _: _none(f"its pause at {plain_percentage(t.step.percentage)}% is over, and its policy"
                           " waits for `twgen promote`")),
    Row(Reason.NEXT_STEP,
        lambda t: f"its pause of {spoken(t.step.pause)} at {plain_percentage(t.live_percentage)}% is over",
        lambda t, over: _set_ramp(t, t.following_step, over) if t.following_step
        else _set_current(t, f"{over}, and this was the last step")),
)
# fmt: on


def wanted_change(target: Target) -> RoutingPlan:
    """The next traffic change and its reason, or the reason why traffic does not change."""
    rows: tuple[Row[Any], ...] = TABLE
    reason, change = next((row.reason, row.then(target, fact)) for row in rows if (fact := row.when(target)))
    return change(reason=reason, ignores_missing_queues=polling.ignores_missing_queues(target))


def _none(because: str, phase: Phase = Phase.WAITING, *, due: datetime | None = None) -> _Change:
    return partial(RoutingPlan, RoutingAction.NONE, because, phase, due_at=due)


def _set_current(target: Target, because: str) -> _Change:
    return partial(_MOVE, RoutingAction.SET_CURRENT, because, build_id=target.build_id)


def _set_ramp(target: Target, step: RolloutStep, because: str) -> _Change:
    share = plain_percentage(step.percentage)
    return partial(_MOVE, RoutingAction.SET_RAMP, because, build_id=target.build_id, percentage=share)


def _clear_ramp(because: str) -> _Change:
    return partial(_MOVE, RoutingAction.CLEAR_RAMP, because, build_id="", percentage=0)


def _take_back(
    target: Target, because: str, action: WhenNoPollers | OnFailure, marks: Mapping[str, Any] | None = None
) -> _Change:
    """End or pause a ramp automatically. The rollout first records the reason in the version's metadata."""
    if action in _PAUSES:
        pause = target.new_mark(MarkKey.PAUSED, because)
        return partial(_none(f"{because}: it is paused"), marks={**pause, **(marks or {})})
    return partial(_clear_ramp(because), marks={**target.new_mark(MarkKey.ABORTED, because), **(marks or {})})


def _is_news(target: Target, action: WhenNoPollers | OnFailure) -> bool:
    """Whether a failure requires a change: pausing a rollout that is already paused changes nothing."""
    return not target.is_paused or action not in _PAUSES


def _replaced(target: Target) -> str:
    """The ramping version if the spec no longer describes it, otherwise empty.

    twgen no longer checks that version's metrics. The ramp only ends if the current version has pods.
    """
    ramp, is_moved_by_hand = target.other_ramp, target.spec.rollout.strategy is Strategy.MANUAL
    if not ramp or is_moved_by_hand or not target.current or target.is_current:
        return ""
    goes_back_at_once = target.is_rollback and target.obstacle is None and not target.is_paused
    # if maxVersions is reached, the target would have to wait until the ramping version is removed
    if goes_back_at_once or not (target.not_created or target.has_replaced(ramp.build_id)):
        return ""
    serves = target.deployments.get(target.current)
    may_serve = target.world.deployments is None or (serves and serves.available_replicas)
    return ramp.build_id if may_serve else ""


def is_updating(routing: Routing, now: datetime) -> bool:
    """Whether the rollout waits until the last routing change has reached every task queue."""
    ends = _update_ends(routing)
    return routing.update_state is UpdateState.IN_PROGRESS and (ends is None or now < ends)


def _update_ends(routing: Routing) -> datetime | None:
    """When the rollout stops waiting for a routing update, or None if the update's start time is unknown."""
    return routing.changed_at + _UPDATE_LIMIT if routing.changed_at else None


def _until_queues_are_known(target: Target, because: str, advice: str) -> _Change:
    """Wait a few minutes for a new version to poll its task queues. After that, a person must act."""
    due = polling.polls_until(target)
    return _none(because, due=due) if due else _none(f"{because}; {advice}", _BLOCKED)


def _wait_for_pause(target: Target) -> _Change:
    ends, stays = target.step_ends, f"it stays at {plain_percentage(target.live_percentage)}%"
    if not ends:
        why = "Temporal does not report when this step began; run `twgen promote` to continue"
        return _none(f"{stays}: {why}", _BLOCKED)
    apart = target.world.clocks_apart
    clocks = f" (by the slowest clock; clocks differ by {spoken(apart)})" if apart > _REPORTED_FROM else ""
    return _none(f"{stays} for {spoken(ends - target.now)} more{clocks}", due=ends)


def plan_worker_routing(target: Target, *, drives: bool = False) -> RoutingPlan:
    """The next change of a worker's traffic. The class `Caller` explains `drives`."""
    routing, spec, manager = wanted_change(target), target.spec, target.temporal.manager_identity
    if routing.action is RoutingAction.NONE and not routing.marks:
        return routing
    # after a person aborts a version, the ramp ends without a promotion
    if spec.rollout.strategy is Strategy.MANUAL and routing.reason is not Reason.ABORTED:
        in_words = described_change(routing.action, routing.build_id, routing.percentage)
        because = f"the strategy is Manual: run `twgen promote` to {in_words} ({routing.because})"
        return RoutingPlan(RoutingAction.NONE, because, Phase.WAITING, Reason.MANUAL)
    claims = manager != target.identity or not manager
    change = replace(routing, claim_manager=claims) if claims else routing
    if spec.policy.driver is not Driver.NONE or drives:
        return change
    by_hand = f"{routing.because}; the driver is None: run `twgen rollout` to make the change"
    return replace(change, phase=Phase.WAITING, because=by_hand)


def unserved_traffic(target: Target) -> str:
    """An alarm if new workflows go to a version without running workers, otherwise empty."""
    obstacle = target.obstacle
    if obstacle and obstacle.is_known and not obstacle.older_pods_serve:
        alarm = f"new workflows go to {target.build_id}, but no worker serves them: {obstacle.because}"
        if target.is_current and target.spec.replicas != 0:
            return alarm
        if target.ramp and target.ramp.percentage > 0:
            return f"{plain_percentage(target.ramp.percentage)}% of {alarm}"
    # if twgen did not create a version, its workers may run outside this cluster
    for build_id in sorted(filter(may_be_ours, routed_build_ids(target.temporal) - {target.build_id})):
        live, version = target.deployments.get(build_id), target.versions.get(build_id)
        if live is None and version and version.serverless:
            continue
        if target.world.deployments is not None and (live is None or not live.available_replicas):
            lacks = "none of its pods is available" if live else "it has no Deployment"
            return f"new workflows go to {build_id}, but {lacks}"
    return ""


def rollback_warnings(target: Target) -> tuple[str, ...]:
    """A warning if a rollback moves auto-upgrade workflows that already run on the newer version."""
    if target.is_foreign or not target.goes_back:
        return ()
    current = target.versions.get(target.current or "")
    moved = current.auto_upgrade_workflows if current else None
    if moved == 0:
        return ()
    how_many = counted(moved, "auto-upgrade workflow") if moved else "all auto-upgrade workflows"
    warning = (
        f"the rollback moves {how_many} from {target.current} back to the older code of {target.build_id}:"
        " workflows that cannot be replayed there break"
    )
    return (warning,)


def change_when_due(target: Target, routing: RoutingPlan) -> RoutingPlan | None:
    """The traffic change at the end of the plan's wait, or None if the traffic does not change then."""
    if not routing.due_at:
        return None
    later = plan_worker_routing(replace(target, now=routing.due_at + datetime.resolution))
    return later if later.action is not RoutingAction.NONE else None
