"""Any history of a worker: whatever people, other tools, pods and servers do, twgen's promises hold."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.simulating.history import MAIN, MISSPELT, Health, LivingWorker, Past
from tests.simulating.workers import ASSUMED, DAY, HOUR, ME, MINUTE, SECOND
from tests.strategies import AUTOSCALER, BUDGET, NOW, a_spec, with_policy, world
from twgen.errors import TwgenError
from twgen.model.analysis import Analysis, ClosedStatus, Metric, OnFailure, WorkflowFailures
from twgen.model.draining import BatchAction, DrainingAction, DrainingEntry
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.policy import PolicyStep
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.reasons import Until
from twgen.model.rollout import RolloutInCluster
from twgen.model.spec import AttachedResource, Gate, Rollout, RolloutStep, Strategy, Sunset, WorkerSpec
from twgen.model.temporal import GateStatus, TaskQueue, TaskQueueType
from twgen.planning import interventions
from twgen.planning.draining.actions import is_due
from twgen.planning.plan import plan_worker
from twgen.planning.rollout import next_write
from twgen.simulating.servers import server_of
from twgen.simulating.simulate import initial_state
from twgen.versioning.names import MarkKey

MOMENT = timedelta(seconds=10)
"""Between what two people do: what happens within five seconds is one change to a server that tells less."""
LOOKS = 5
"""So many looks it may take until a version that was reverted has lost its share."""
ANALYSIS = Analysis(
    (Metric("failures", WorkflowFailures(0.01, (ClosedStatus.FAILED,), (), 0.01, 10)),),
    OnFailure.ABORT,
    30 * SECOND,
)
STEPS = {
    "5, 50": (RolloutStep(5, MINUTE), RolloutStep(50, 30 * MINUTE)),
    "50, 75": (RolloutStep(50, 30 * MINUTE), RolloutStep(75, HOUR)),
    "1, 25, 75": (RolloutStep(1, 31 * SECOND), RolloutStep(25, MINUTE), RolloutStep(75, HOUR)),
    "none": (),
}
POLICIES: dict[str, dict[str, Any]] = {
    "gate before 50": {"steps": (PolicyStep(50, gate="SmokeAt50"),)},
    "gate before 75": {"steps": (PolicyStep(25, until_promoted=True), PolicyStep(75, gate="SmokeAt75"))},
    "until promoted": {"steps": (PolicyStep(5, until_promoted=True),)},
    "no step": {"steps": ()},
    "abort": {"analysis": ANALYSIS},
    "pause": {"analysis": replace(ANALYSIS, on_failure=OnFailure.PAUSE)},
    "no analysis": {"analysis": None},
    "no window": {"rollback_window": timedelta()},
    "window": {"rollback_window": HOUR},
    "adopt": {"adopt_from": ("somebody",)},
    "do not adopt": {"adopt_from": ()},
    "draining": {"draining": (DrainingEntry(HOUR, DrainingAction(BatchAction.CANCEL)),)},
}
ACTIVITIES = TaskQueue("extra", TaskQueueType.ACTIVITY, pollers=True, unversioned_pollers=False)
SHARED = replace(MAIN, unversioned_pollers=True)
QUEUES = {
    "own": (MAIN,),
    "shared": (SHARED,),
    "shared, one new": (SHARED, ACTIVITIES),
    "two": (MAIN, ACTIVITIES),
}
KEDA = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {"scaleTargetRef": {}}}
ATTACHED = {
    "none": (),
    "budget": (BUDGET,),
    "autoscaler": (AUTOSCALER, BUDGET),
    "renamed": (replace(AUTOSCALER, name="scaling"), replace(BUDGET, name="disruptions")),
    "of another kind": (AttachedResource("cpu", KEDA, autoscales=True, scales_from_zero=True), BUDGET),
}
COMMANDS = {
    "promote": partial(interventions.promote, full=False, skip_gate=False),
    "promote --full": partial(interventions.promote, full=True, skip_gate=False),
    "promote --full --skip-gate": partial(interventions.promote, full=True, skip_gate=True),
    "abort": interventions.abort,
    "retry": interventions.retry,
    "pause": interventions.pause,
    "resume": interventions.resume,
    "retire": interventions.retire,
}
PASSING = st.sampled_from((10 * SECOND, 32 * SECOND, 2 * MINUTE, 31 * MINUTE, 61 * MINUTE, 26 * HOUR))
BUILDS = tuple(f"v{number}" for number in range(8))
numbers = st.integers(0, 7)
strategies = st.sampled_from(
    (*[Strategy.PROGRESSIVE.value] * 4, Strategy.ALL_AT_ONCE.value, Strategy.MANUAL.value)
)
steps = st.sampled_from(sorted(STEPS))
queues = st.sampled_from(sorted(QUEUES))
commits = rule(strategy=strategies, steps=steps, is_gated=st.booleans(), looks=st.integers(0, 4))


def a_worker(build_id: str) -> LivingWorker:
    """One that has never been deployed."""
    spec = replace(a_spec(), build_id=build_id, sunset=Sunset(HOUR, DAY))
    return LivingWorker.of(initial_state(spec, world(None, []), NOW, ME, ASSUMED))


class Histories(RuleBasedStateMachine):
    """One worker, and all who have to do with it."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = a_worker(BUILDS[0])
        self.described: list[str] = [BUILDS[0]]
        self.late: tuple[WorkerSpec, WorkerPlan, object] | None = None

    @initialize(
        polled=queues,
        earlier=st.integers(0, 3),
        length=PASSING,
        release=st.sampled_from(("1.29.1", "1.32.0")),
    )
    def begin(self, polled: str, earlier: int, length: timedelta, release: str) -> None:
        """Some versions were current, one after the other."""
        self.worker.temporal.server = server_of(release)
        self.worker.queues = QUEUES[polled]
        for build_id in BUILDS[:earlier]:
            self.commit(build_id)
            self.settle()
            self.worker.advance(self.worker.now + length)

    @commits
    def commit_a_new_build(self, strategy: str, steps: str, looks: int, *, is_gated: bool) -> None:
        fresh = [build_id for build_id in BUILDS if build_id not in self.described]
        if fresh:
            self.commit(fresh[0])
            self.edit(strategy, steps, looks, is_gated=is_gated)

    @commits
    def edit(self, strategy: str, steps: str, looks: int, *, is_gated: bool) -> None:
        gate = Gate("Smoke") if is_gated else None
        self.worker.spec = replace(self.worker.spec, rollout=Rollout(Strategy(strategy), STEPS[steps], gate))
        self.time_passes(32 * SECOND, looks)

    @rule(name=st.sampled_from((None, "Smoke", "Smoke", "Proof", MISSPELT)))
    def name_another_gate(self, name: str | None) -> None:
        """The workflow type of the gate is misspelt, corrected or changed, or there is no gate any more."""
        rollout = replace(self.worker.spec.rollout, gate=Gate(name) if name else None)
        self.worker.spec = replace(self.worker.spec, rollout=rollout)

    @rule(ahead=st.sampled_from((timedelta(), timedelta(), -HOUR, -MINUTE, MINUTE, HOUR)))
    def set_clocks(self, ahead: timedelta) -> None:
        """The clocks of people and Jobs are ahead of Temporal's, or behind it."""
        self.worker.clock = ahead

    @rule(name=st.sampled_from(sorted(POLICIES)))
    def change_policy(self, name: str) -> None:
        self.worker.spec = with_policy(self.worker.spec, **POLICIES[name])

    @precondition(lambda self: self.worker.syncs > 1)
    @rule(name=st.sampled_from(sorted(ATTACHED)))
    def attach(self, name: str) -> None:
        """Other resources are attached, once the last ones are in place."""
        self.worker.spec = replace(self.worker.spec, attached=ATTACHED[name])

    @precondition(lambda self: len(set(self.described)) > 1)
    @rule(number=numbers)
    def revert(self, number: int) -> None:
        """The spec describes an earlier build once more, and that is all that anybody does."""
        worker, bad = self.worker, self.worker.spec.build_id
        earlier = sorted({*self.described} - {bad})
        good = earlier[number % len(earlier)]
        self.commit(good)
        for _ in range(LOOKS):
            plan = self.look()
            if not self.past(bad).share or self.is_excused(bad, plan):
                return
            worker.advance(worker.now + 31 * SECOND)
        raise AssertionError(f"{bad} keeps {self.past(bad).share}%: {plan.routing}")

    def is_excused(self, bad: str, plan: WorkerPlan) -> bool:
        """Nobody has promised that the version of before has lost its share by now."""
        worker, spec, reason = self.worker, self.worker.spec, plan.routing.reason
        if worker.is_frozen or spec.rollout.strategy is Strategy.MANUAL or reason is Reason.FOREIGN_MANAGER:
            return True
        past = self.past(spec.build_id)
        if reason.until is Until.READINESS and reason is not Reason.GATE_RUNNING:
            return True  # it says which pods or task queues it waits for
        ramping = worker.temporal.routing.ramping
        if ramping and ramping.build_id == bad:
            # nothing is known to take its share
            return self.current not in worker.cluster.serving()
        if ramping and ramping.build_id == spec.build_id:
            return True  # a server forgets when a version was replaced, once it has a share again
        # what was never current, or long ago, takes all of the steps again, and was stopped for a reason
        if past.left is None:
            return True
        key = {Reason.PAUSED: MarkKey.PAUSED, Reason.ABORTED: MarkKey.ABORTED}.get(reason)
        # an older server does not tell that what ramps was current before
        is_told = worker.temporal.server.reports_when_current
        return (
            key not in past.old_marks - worker.unknown_marks()
            if key
            else not (is_told and worker.is_rollback(is_certain=True))
        )

    @rule(length=PASSING, looks=st.integers(0, 3))
    def time_passes(self, length: timedelta, looks: int) -> None:
        self.look()
        for _ in range(looks):
            self.worker.advance(self.worker.now + length)
            self.look()

    @rule()
    def nothing_else_happens(self) -> None:
        self.worker.is_frozen = False
        self.settle()

    @rule(name=st.sampled_from(("pause", "abort")))
    def stop(self, name: str) -> None:
        self.command(name)

    @rule(name=st.sampled_from(("promote", "promote --full", "promote --full --skip-gate")))
    def promote(self, name: str) -> None:
        self.command(name)

    @rule(name=st.sampled_from(("retry", "resume", "retire")))
    def change_ones_mind(self, name: str) -> None:
        self.command(name)

    @rule(
        number=numbers,
        percentage=st.sampled_from((None, 0.0, 3.0, 5.0, 50.0, 60.0)),
        manager=st.sampled_from(("", "me", "me", "somebody")),
    )
    def move_by_hand(self, number: int, percentage: float | None, manager: str) -> None:
        """Another tool moves traffic, for which nobody may manage the worker, or it itself."""
        model = self.worker.temporal
        known = [one for one in ("", *model.versions) if one != self.current]
        if not known:
            return
        build_id = known[number % len(known)]
        self.worker.advance(self.worker.now + MOMENT)
        model.manager = manager
        if percentage is None:
            model.set_current(build_id)
        else:
            model.set_ramp(build_id, percentage)
        self.worker.observe()

    @rule(manager=st.sampled_from(("", "me", "me", "somebody")))
    def manage(self, manager: str) -> None:
        self.worker.temporal.manager = manager

    @rule(is_frozen=st.booleans())
    def freeze(self, *, is_frozen: bool) -> None:
        self.worker.is_frozen = is_frozen

    @rule(number=numbers, length=st.sampled_from((10 * SECOND, 2 * MINUTE, 31 * MINUTE)))
    def crash(self, number: int, length: timedelta) -> None:
        if serving := self.worker.cluster.serving():
            self.worker.crash(serving[number % len(serving)], length)

    @rule(health=st.sampled_from(get_args(Health)), gate_passes=st.booleans(), polled=queues)
    def write_code(self, health: Health, polled: str, *, gate_passes: bool) -> None:
        """What the code of new versions is like, and what it polls."""
        self.worker.health = health
        self.worker.assumed = replace(self.worker.assumed, gate_passes=gate_passes)
        self.worker.queues = QUEUES[polled]

    @rule()
    def forget(self) -> None:
        """Temporal has no run any more that has ended, and for one look does not know the worker."""
        for version in self.worker.temporal.versions.values():
            kept = tuple(run for run in version.gate_runs or () if run.status is GateStatus.RUNNING)
            self.worker.temporal.versions[version.build_id] = replace(version, gate_runs=kept)
        self.worker.is_forgotten = True
        plan = self.worker.plan()
        self.worker.sync(plan)
        assert next_write(plan) is None
        self.worker.is_forgotten = False

    @rule()
    def job_looks(self) -> None:
        """A Job looks, and is slow to act."""
        self.late = (self.worker.spec, self.worker.plan(), self.worker.token())

    @precondition(lambda self: self.late is not None)
    @rule()
    def late_job_acts(self) -> None:
        """It may have been killed since, or another one runs beside it; its next look tells."""
        assert self.late
        spec, plan, token = self.late
        self.late = None
        self.worker.act_late(spec, plan, token)
        if spec != self.worker.spec:
            superseded = replace(self.worker.world(), rollout=RolloutInCluster(is_superseded=True))
            assert next_write(plan_worker(spec, superseded, self.worker.now, self.worker.caller)) is None

    @rule(number=numbers, length=PASSING)
    def start_workflow(self, number: int, length: timedelta) -> None:
        if known := list(self.worker.temporal.versions):
            self.worker.temporal.start_pinned(known[number % len(known)], self.worker.now + length)

    def teardown(self) -> None:
        """Once all is well and nobody does anything more, it settles, or says who has to do what."""
        worker = self.worker
        worker.recover()
        worker.is_frozen = worker.is_forgotten = False
        worker.health, worker.assumed = "well", replace(worker.assumed, gate_passes=True)
        plan = self.settle()
        is_persons = plan.routing.reason.until in {Until.SOMEBODY, Until.ANOTHER_INTENT}
        ends = plan.routing.phase in {Phase.SETTLED, Phase.BLOCKED} or is_persons
        assert ends, f"it stops without a word: {plan.routing}"

    @property
    def current(self) -> str:
        current = self.worker.temporal.routing.current
        return current.build_id if current else ""

    def command(self, name: str) -> None:
        """A person runs a command, which may be refused."""
        self.worker.advance(self.worker.now + MOMENT)
        with suppress(TwgenError):
            self.worker.command(COMMANDS[name])

    def past(self, build_id: str) -> Past:
        return self.worker.pasts.get(build_id) or Past()

    def commit(self, build_id: str) -> None:
        self.worker.spec = replace(self.worker.spec, build_id=build_id)
        self.described.append(build_id)

    def look(self) -> WorkerPlan:
        """Render, sync, roll out, and do what is due to the workflows of versions that drain."""
        self.worker.sync(self.worker.plan())
        plan = self.worker.roll_out()
        if self.worker.end_workflows(plan):
            plan = self.worker.plan()
        late = [one for one in plan.scheduled_actions if not one.is_begun and is_due(one, self.worker.now)]
        assert not late or plan.manager not in {"", plan.identity}, f"it promises what nobody does: {late}"
        self.end_of_the_wait(plan)
        return plan

    def end_of_the_wait(self, plan: WorkerPlan) -> None:
        """What a stop says that it waits for ends it."""
        routing, other = plan.routing, self.worker.fork()
        match routing.reason:
            case Reason.FROZEN:
                other.is_frozen = False
            case Reason.PAUSED | Reason.RETIRED:
                other.command(interventions.resume)
            case Reason.ABORTED | Reason.GATE_FAILED if routing.phase is Phase.BLOCKED:
                other.command(interventions.retry)
            case Reason.FOREIGN_MANAGER:
                other.temporal.manager = other.caller.identity
            case Reason.UNTIL_PROMOTED:
                other.command(COMMANDS["promote"])
            case _ if routing.due_at:
                other.advance(routing.due_at + SECOND)
            case _:
                return
        after = other.plan().routing
        assert (
            after.reason is not routing.reason
            or after.due_at != routing.due_at
            or (after.because != routing.because)
        ), f"it waits for ever: {routing}"

    def settle(self) -> WorkerPlan:
        """Look as time passes, until a rollout has nothing to wait for but a person."""
        plan = self.look()
        for _ in range(20):
            if not plan.routing.phase.goes_on:
                break
            due = plan.routing.due_at
            self.worker.advance(due + SECOND if due else self.worker.now + 31 * SECOND)
            before, plan = plan, self.look()
            until = plan.routing.reason.until
            if until in {Until.SOMEBODY, Until.ANOTHER_INTENT} and before.routing == plan.routing:
                break
        return plan


TestHistories = Histories.TestCase
TestHistories.settings = settings(stateful_step_count=25)
