"""The gate: what starts, what counts, what fails."""

from dataclasses import replace
from datetime import timedelta
from time import process_time
from typing import Any

import pytest

from tests.planning.situations import (
    MAIN,
    SPEC,
    live,
    mark,
    planned,
    routing,
    serving,
    situation,
    target_in,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, SECOND, ago
from twgen.errors import NegativeAnswer
from twgen.model.plan import Phase, RoutingAction, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.spec import Gate, Rollout, Strategy, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, Routing, TaskQueue, TaskQueueType, VersionStatus
from twgen.model.times import format_time
from twgen.planning.interventions import Intervention, retry

GATED = replace(SPEC, rollout=Rollout(Strategy.ALL_AT_ONCE, gate=Gate("Smoke")))
BILLING = TaskQueue("billing", TaskQueueType.WORKFLOW, pollers=True)
CHORES = TaskQueue("chores", TaskQueueType.ACTIVITY, pollers=True)
OLD = version("v1", VersionStatus.CURRENT, task_queues=None)
COMPLETED = GateStatus.COMPLETED
SECOND_ATTEMPT = mark(attempt=2, stay=format_time(ago(HOUR)))


def run(
    queue: str = "main",
    status: GateStatus = COMPLETED,
    *,
    attempt: str = "",
    age: timedelta | None = MINUTE,
    build_id: str = "v3",
) -> GateRun:
    started = ago(age) if age is not None else None
    return GateRun(queue, f"test-shop/payments:{build_id}-{queue}{attempt}", status, started)


def gated(
    *runs: GateRun, spec: WorkerSpec = GATED, traffic: Routing | None = None, **target: Any
) -> WorkerPlan:
    facts = {"gate_runs": runs, "task_queues": (MAIN, BILLING, CHORES)} | target
    says = temporal(OLD, version(**facts), traffic=traffic or routing("v1"))
    return planned(serving(says), spec)


def started(plan: WorkerPlan) -> list[tuple[str, str, str]]:
    return [(gate.task_queue, gate.workflow_id, gate.workflow_type) for gate in plan.gates]


def moves(plan: WorkerPlan) -> bool:
    return plan.routing.action is RoutingAction.SET_CURRENT


def test_gate_starts_once_on_every_workflow_task_queue() -> None:
    plan = gated()
    assert started(plan) == [
        ("billing", "test-shop/payments:v3-billing", "Smoke"),
        ("main", "test-shop/payments:v3-main", "Smoke"),
    ]
    assert plan.routing.phase is Phase.WAITING
    assert plan.routing.because == "the gate has not completed on every task queue (billing and main)"


@pytest.mark.parametrize(("missing", "done"), [("main", "billing"), ("billing", "main")])
def test_gate_lets_traffic_through_once_it_has_completed_on_every_task_queue(missing: str, done: str) -> None:
    assert not moves(gated(run(done)))
    running = gated(run(done), run(missing, GateStatus.RUNNING))
    assert (running.gates, running.routing.phase) == ((), Phase.WAITING), "it is not started again"
    passed = gated(run(done), run(missing))
    assert (moves(passed), passed.gates) == (True, ())


@pytest.mark.parametrize(
    "status", [GateStatus.FAILED, GateStatus.CANCELED, GateStatus.TERMINATED, GateStatus.TIMED_OUT]
)
def test_gate_that_ended_without_completing_blocks_and_is_named(status: GateStatus) -> None:
    for failure, why in (("", ""), ("no such shop", " (no such shop)")):
        plan = gated(replace(run("main", status), failure=failure), run("billing"))
        assert (plan.routing.action, plan.routing.phase) == (RoutingAction.NONE, Phase.BLOCKED)
        assert plan.routing.because == (
            f"the gate on task queue main ended as {status.value}: test-shop/payments:v3-main{why};"
            " to continue, run `twgen retry` or commit a new build"
        )
        assert plan.gates == ()


def test_gate_whose_workflow_tasks_fail_blocks_and_says_why() -> None:
    failing = replace(run("main", GateStatus.RUNNING), failure="Smoke is not registered")
    plan = gated(failing, run("billing"))
    assert (plan.routing.reason, plan.routing.phase) == (RoutingReason.GATE_RUNNING, Phase.BLOCKED)
    assert plan.routing.because == (
        "the gate runs on task queue main, but all of its workflow tasks fail (Smoke is not registered):"
        " test-shop/payments:v3-main. Commit a build that can run it, or end it with `twgen retry`"
    )


def of_type(workflow_type: str, **told: Any) -> GateRun:
    return replace(run(**told), workflow_type=workflow_type)


@pytest.mark.parametrize("status", [*GateStatus])
@pytest.mark.parametrize("failure", ["", "Smokee is not registered"])
def test_run_of_another_workflow_type_is_not_the_gate_which_starts_under_the_next_attempt(
    status: GateStatus, failure: str
) -> None:
    wrong = replace(of_type("Smokee", status=status), failure=failure)
    plan = gated(wrong, of_type("Smoke", queue="billing"))
    assert started(plan) == [("main", "test-shop/payments:v3-main-2", "Smoke")]
    assert (plan.routing.reason, plan.routing.phase) == (RoutingReason.GATE_RUNNING, Phase.WAITING)
    assert plan.routing.because == (
        "the gate has not completed on every task queue (billing and main); test-shop/payments:v3-main does"
        " not count: its workflow type is Smokee, not Smoke"
    )
    assert moves(gated(of_type(""), of_type("Smoke", queue="billing"))), "an unknown type is the gate's"
    right = of_type("Smoke", attempt="-2")
    assert moves(gated(wrong, right, of_type("Smoke", queue="billing")))
    again = of_type("Smoke", attempt="-2", status=GateStatus.RUNNING)
    because = gated(wrong, again, run("billing")).routing.because
    assert "; test-shop/payments:v3-main-2 is running; " in because


def retried(*runs: GateRun) -> Intervention:
    says = temporal(OLD, version(gate_runs=runs), traffic=routing("v1"))
    return retry(target_in(serving(says), GATED))


def test_attempt_after_a_failure_has_an_id_that_no_other_workflow_type_has_used() -> None:
    failed = of_type("Smoke", attempt="-2", status=GateStatus.FAILED)
    assert retried(of_type("Smokee"), failed).marks["twgen.io/gate-attempt"]["attempt"] == 3


def test_retry_ends_a_gate_whose_workflow_tasks_all_fail_and_starts_it_again() -> None:
    hopeless = replace(run(status=GateStatus.RUNNING), failure="Smoke is not registered")
    done = retried(hopeless)
    assert done.ends == ("test-shop/payments:v3-main",)
    assert done.marks["twgen.io/gate-attempt"]["attempt"] == 2
    assert done.will == (
        "end test-shop/payments:v3-main, which cannot complete, and start its gate again (attempt 2)"
    )
    with pytest.raises(NegativeAnswer, match="no gate failed"):
        retried(replace(hopeless, failure=""))


def test_retry_starts_the_next_attempt_and_forgets_the_failed_one() -> None:
    metadata = {"twgen.io/gate-attempt": SECOND_ATTEMPT}
    plan = gated(run("main", GateStatus.FAILED), run("billing"), metadata=metadata)
    started_ids = [gate.workflow_id for gate in plan.gates]
    assert started_ids == ["test-shop/payments:v3-billing-2", "test-shop/payments:v3-main-2"]
    assert plan.routing.phase is Phase.WAITING


def test_later_attempt_that_completed_lets_traffic_through() -> None:
    runs = run("main", GateStatus.FAILED), run("main", attempt="-2"), run("billing", attempt="-2")
    assert moves(gated(*runs, metadata={"twgen.io/gate-attempt": SECOND_ATTEMPT}))


@pytest.mark.parametrize("attempt", ["2", 0, -1, None, 2.5])
def test_attempt_that_is_no_number_from_1_counts_as_the_first(attempt: Any) -> None:
    marked = SECOND_ATTEMPT | {"attempt": attempt}
    assert moves(gated(run("main"), run("billing"), metadata={"twgen.io/gate-attempt": marked}))
    assert moves(gated(run("main"), run("billing"), metadata={"twgen.io/gate-attempt": attempt}))


@pytest.mark.parametrize(
    ("known", "counts"),
    [
        pytest.param(run(age=HOUR + SECOND), False, id="from before the version was registered"),
        pytest.param(run(age=HOUR), True, id="from when it was registered"),
        pytest.param(run(age=None), True, id="of an unknown time"),
        pytest.param(run(build_id="v1"), False, id="of another version"),
    ],
)
def test_run_counts(known: GateRun, *, counts: bool) -> None:
    assert moves(gated(known, run("billing"))) is counts


def moved(**details: Any) -> dict[str, Any]:
    """The mark of a change of traffic in the stay that began with the ramp, a day ago."""
    return mark(stay=format_time(ago(DAY)), **details)


@pytest.mark.parametrize(
    ("told", "percentage", "asked"),
    [
        (moved(percentage=5, gates=["Smoke"]), 5, False),
        (moved(percentage=5, gates=["Another"]), 5, True),
        (moved(percentage=5, gates="Smoke"), 5, True),
        (moved(percentage=25, gates=["Smoke"]), 5, True),
        (moved(), 5, True),
        (None, 5, True),
        (True, 5, True),
        (moved(percentage=0), 0, True),
    ],
)
def test_gate_that_temporal_has_forgotten_does_not_run_again_after_traffic_was_moved(
    told: Any, percentage: float, *, asked: bool
) -> None:
    metadata = {} if told is None else {"twgen.io/moved-by": told}
    plan = gated(traffic=routing("v1", ("v3", percentage)), metadata=metadata)
    assert (bool(plan.gates), moves(plan)) == (asked, not asked)


@pytest.mark.parametrize("status", [GateStatus.RUNNING, GateStatus.FAILED])
def test_gate_that_temporal_remembers_counts_also_after_traffic_was_moved(status: GateStatus) -> None:
    metadata = {"twgen.io/moved-by": moved(percentage=5)}
    assert not moves(gated(run(status=status), traffic=routing("v1", ("v3", 5)), metadata=metadata))


@pytest.mark.parametrize("queues", [None, (), (CHORES,)])
def test_gate_without_a_known_workflow_task_queue_is_not_passed(queues: tuple[TaskQueue, ...] | None) -> None:
    plan = gated(task_queues=queues, created_at=ago(MINUTE))
    assert (plan.routing.phase, plan.routing.due_at) == (Phase.WAITING, ago(-4 * MINUTE))
    assert plan.routing.because == "the gate cannot start: no workflow task queue is known yet"
    assert plan.gates == ()
    for created in (None, ago(5 * MINUTE)):
        late = gated(task_queues=queues, created_at=created)
        assert late.routing.phase is Phase.BLOCKED
        assert late.routing.because.endswith("or remove the gate from its spec")


STARTING = live("v3") | {"status": {"observedGeneration": 1}}
PAUSED = live("v3") | {"spec": {**live("v3")["spec"], "paused": True}}


@pytest.mark.parametrize(
    ("deployment", "queues"),
    [
        pytest.param(STARTING, ["main"], id="its pods start"),
        pytest.param(live("v3", 0), [], id="it is at zero: the gate would only run into its timeout"),
        pytest.param(PAUSED, [], id="it is paused by hand"),
    ],
)
def test_gate_starts_where_pods_will_run_it(deployment: dict[str, Any], queues: list[str]) -> None:
    says = temporal(OLD, version(), traffic=routing("v1"))
    plan = planned(situation(says, [deployment]), GATED)
    assert [gate.task_queue for gate in plan.gates] == queues


@pytest.mark.parametrize(
    ("spec", "traffic", "target"),
    [
        pytest.param(GATED, routing("v3"), {}, id="that is current"),
        pytest.param(GATED, None, {"status": VersionStatus.CREATED}, id="that has not polled"),
        pytest.param(
            GATED, None, {"metadata": {"twgen.io/aborted": {"by": "a person"}}}, id="that is aborted"
        ),
        pytest.param(
            GATED,
            routing("v1", age=MINUTE),
            {"created_at": ago(9 * DAY), "last_current_at": ago(DAY), "last_deactivated_at": ago(MINUTE)},
            id="that is a rollback",
        ),
        pytest.param(SPEC, None, {}, id="without a gate"),
    ],
)
def test_no_gate_starts_on_a_target(
    spec: WorkerSpec, traffic: Routing | None, target: dict[str, Any]
) -> None:
    old = replace(OLD, created_at=ago(9 * DAY))
    says = temporal(old, version(**target), traffic=traffic or routing("v1"))
    assert planned(serving(says), spec).gates == ()


def test_gate_starts_for_people_who_move_the_traffic_by_hand() -> None:
    plan = gated(spec=replace(GATED, rollout=replace(GATED.rollout, strategy=Strategy.MANUAL)))
    assert [gate.task_queue for gate in plan.gates] == ["billing", "main"]
    assert plan.routing.because.startswith("the gate has not completed")


def test_no_gate_starts_while_somebody_else_manages_the_worker() -> None:
    says = temporal(OLD, version(), traffic=routing("v1"), manager_identity="somebody else")
    plan = planned(serving(says), GATED)
    assert plan.gates == ()
    assert (plan.routing.phase, plan.routing.reason) == (Phase.BLOCKED, "ForeignManager")


def test_many_task_queues_are_not_each_looked_for_in_all_runs() -> None:
    def seconds(queues: int) -> float:
        return min(once(queues) for _ in range(3))

    def once(queues: int) -> float:
        names = [f"q{number}" for number in range(queues)]
        polled = tuple(TaskQueue(name, TaskQueueType.WORKFLOW, pollers=True) for name in names)
        runs = [run(name) for name in names]
        started = process_time()
        assert moves(gated(*runs, task_queues=polled))
        return process_time() - started

    assert seconds(4000) < 10 * seconds(1000)
