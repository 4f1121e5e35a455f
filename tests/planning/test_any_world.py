"""From any world, plan and apply again and again: it settles or says what blocks it, and strands nothing."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.simulating.workers import a_worker, act, wait
from tests.strategies import may_have_work, routed_versions, specs, worlds
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.spec import Strategy, WorkerSpec
from twgen.model.temporal import TaskQueueType
from twgen.model.world import World
from twgen.simulating.worker import SimulatedWorker

ENDS = {Phase.SETTLED, Phase.BLOCKED}
LOOKS = 20
"""Enough for every step of a rollout, a gate, and a first registration."""


def waits_for_a_person(plan: WorkerPlan, worker: SimulatedWorker) -> bool:
    """The plan names what only a person can change.

    Strategy Manual, a gate of a worker that runs no workflow.
    """
    spec = plan.spec
    by_hand = spec.rollout.strategy is Strategy.MANUAL
    version = worker.temporal.versions.get(spec.build_id)
    queues = (version.task_queues if version else None) or ()
    no_workflow = all(queue.type is not TaskQueueType.WORKFLOW for queue in queues)
    gateless = spec.rollout.gate is not None and no_workflow
    return plan.routing.phase is Phase.WAITING and (by_hand or gateless)


@given(specs, worlds(), st.integers(20, 300))
def test_it_settles_or_says_what_blocks_it_and_strands_no_workflow(
    spec: WorkerSpec, found: World, minutes: int
) -> None:
    worker = a_worker(spec, found)
    for _ in range(LOOKS):
        before = World(worker.now, {spec.key: worker.world()})
        needed = {build_id for build_id in worker.cluster.serving() if may_have_work(build_id, before)}
        if spec.replicas == 0:
            needed -= {spec.build_id, *routed_versions(worker.world().temporal)}
        plan = act(worker)
        assert needed <= set(worker.cluster.serving())
        wait(worker, timedelta(minutes=minutes))
    assert plan.routing.because
    assert plan.routing.phase in ENDS or waits_for_a_person(plan, worker)


@given(specs, worlds())
def test_settled_worker_stays_settled(spec: WorkerSpec, found: World) -> None:
    rollout = replace(spec.rollout, strategy=Strategy.ALL_AT_ONCE)
    worker = a_worker(replace(spec, replicas=2, rollout=rollout), found)
    settled = False
    for _ in range(LOOKS):
        phase = act(worker).routing.phase
        assert not (settled and phase is not Phase.SETTLED)
        settled = phase is Phase.SETTLED
        wait(worker, timedelta(hours=13))
