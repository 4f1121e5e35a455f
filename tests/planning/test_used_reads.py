"""Nothing is read that decides, warns of or reports nothing: whatever is withheld would be missed."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.planning.situations import (
    MAIN,
    NOW,
    RAMPS,
    SPEC,
    drained,
    live,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.strategies import analysis_of, with_policy
from twgen.model.analysis import Measurement, OnFailure, StuckWorkflows
from twgen.model.operator import Caller
from twgen.model.policy import Replay, ReplayBefore, Sample
from twgen.model.spec import Gate, Rollout, Strategy, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, OtherWorker, TaskQueue, TaskQueueType, Version
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import ReplayRun, ReplayState, WorkerWorld, World
from twgen.planning.plan import make_plan, plan_versions, worker_world
from twgen.planning.reads import Reads, further_reads
from twgen.planning.worker_status import make_status
from twgen.records.rollout_status import STATUS
from twgen.reporting.plan.document import PLAN

ME = Caller("me", forced=True)
UNREAD = {"pollers": None, "unversioned_pollers": None, "silent_seconds": None}
Withheld = Callable[[Reads, Version], dict[str, Any]]
OF_VERSIONS: dict[str, Withheld] = {
    "open_workflows": lambda reads, version: (
        {"open_workflows": None} if version.build_id in reads.open_workflows else {}
    ),
    "held": lambda reads, version: (
        {"open_workflows": None, "oldest_open_at": None} if version.build_id in reads.held else {}
    ),
    "auto_upgrade_workflows": lambda reads, version: (
        {"auto_upgrade_workflows": None} if version.build_id in reads.auto_upgrade_workflows else {}
    ),
    "task_queues": lambda _, version: {
        "task_queues": version.task_queues
        and tuple(replace(queue, **UNREAD) for queue in version.task_queues)
    },
    "tasks_of": lambda reads, version: {
        "task_queues": version.task_queues
        and tuple(
            replace(queue, has_tasks=None) if (version.build_id, queue) in reads.tasks_of else queue
            for queue in version.task_queues
        )
    },
    "gate_runs": lambda reads, _: {"gate_runs": None} if reads.gate_runs else {},
    "metrics": lambda reads, _: {"measurements": None} if reads.metrics else {},
}
OF_THE_WORKER: dict[str, Callable[[Reads], dict[str, Any]]] = {
    "other_workers": lambda reads: {"other_workers": ()} if reads.other_workers else {},
    "worker_deployments": lambda reads: {"worker_deployments": None} if reads.worker_deployments else {},
    "pods_of": lambda reads: {"pod_problems": {}} if reads.pods_of else {},
    "replay": lambda reads: {"replay": None} if reads.replay else {},
}
WITH_ANOTHER = {"measured_since": "metrics", "task_queue_of_variables": "other_workers"}
"""What is read beside something else, and means nothing without it."""


def withheld(kind: str, found: WorkerWorld, reads: Reads) -> WorkerWorld:
    """The world as it would be without the answers to what one of the fields asks for."""
    if kind in OF_THE_WORKER:
        return replace(found, **OF_THE_WORKER[kind](reads))
    temporal = found.temporal
    if not temporal:
        return found
    versions = tuple(replace(version, **OF_VERSIONS[kind](reads, version)) for version in temporal.versions)
    return replace(found, temporal=replace(temporal, versions=versions))


def reported(spec: WorkerSpec, found: WorkerWorld) -> object:
    """Whatever is decided, warned of and reported of a world."""
    world = World(NOW, {found.key: found})
    plan = make_plan([spec], world, NOW, ME)
    (worker,) = plan.workers
    status = STATUS.write(make_status(plan, world, ME))
    return PLAN.write(plan), status, worker.routing.marks, worker.routing.ignores_missing_queues


def rendered(spec: WorkerSpec, found: WorkerWorld) -> object:
    return plan_versions([spec], World(NOW, {found.key: found}), NOW, ME)


TARGET = version("v3", S.CURRENT)
OLD = version("v1", S.CURRENT, created_at=ago(9 * DAY))
LEFT = {"last_current_at": ago(HOUR), "last_deactivated_at": ago(MINUTE), "created_at": ago(2 * DAY)}
GATED = replace(SPEC, rollout=Rollout(Strategy.ALL_AT_ONCE, gate=Gate("Smoke")))
REPLAYED = with_policy(SPEC, replay=Replay(("replay",), Sample(5, 1000), ReplayBefore.RAMP))
MEASURED = with_policy(RAMPS, analysis=analysis_of(OnFailure.ABORT))
BULK = TaskQueue("bulk", TaskQueueType.ACTIVITY, pollers=True, has_tasks=False)
PASSED = GateRun("main", "test-shop/payments:v3-main", GateStatus.COMPLETED)
BOTH = [live("v3"), live("v1")]
STUCK = Measurement("stuck", ago(DAY), stuck=StuckWorkflows(2, ("order-1",)))


def starting() -> dict[str, Any]:
    manifest = live("v3")
    manifest["status"] = {"observedGeneration": 1, "replicas": 3}
    return manifest


def running(*versions: Version, current: str = "v1", ramping: tuple[str, float] | None = None) -> World:
    return situation(temporal(*versions, traffic=routing(current, ramping)), BOTH)


SITUATIONS: Mapping[str, tuple[WorkerSpec, World]] = {
    "open_workflows": (SPEC, running(TARGET, drained(2 * HOUR, open_workflows=1), current="v3")),
    "held": (SPEC, running(TARGET, version("v1", S.DRAINING, open_workflows=3), current="v3")),
    "auto_upgrade_workflows": (
        SPEC,
        serving(
            temporal(
                version("v3", S.DRAINING, **LEFT),
                version("v4", S.CURRENT, created_at=ago(HOUR), auto_upgrade_workflows=3),
                traffic=routing("v4", age=MINUTE),
            ),
            "v3",
            "v4",
        ),
    ),
    "task_queues": (SPEC, serving(temporal(version()), "v3")),
    "tasks_of": (SPEC, running(replace(OLD, task_queues=(MAIN, BULK)), version())),
    "gate_runs": (GATED, running(OLD, version(gate_runs=(PASSED,)))),
    "metrics": (MEASURED, running(OLD, version(status=S.RAMPING, measurements=(STUCK,)), ramping=("v3", 5))),
    "other_workers": (SPEC, situation(None, None)),
    "worker_deployments": (SPEC, serving(None, "v3")),
    "pods_of": (SPEC, situation(temporal(OLD, version(), traffic=routing("v1")), [starting(), live("v1")])),
    "replay": (REPLAYED, running(OLD, version())),
}


def the_world(kind: str) -> tuple[WorkerSpec, WorkerWorld]:
    spec, world = SITUATIONS[kind]
    return spec, replace(
        worker_world(spec, world),
        pod_problems={"v3": "waits (ImagePullBackOff)"},
        worker_deployments=100,
        other_workers=(OtherWorker("payments"),),
        replay=ReplayRun(ReplayState.FAILED, "replay-1"),
    )


def not_counted(found: WorkerWorld) -> WorkerWorld:
    """The world as it is before anything further is read of it."""
    if not found.temporal:
        return found
    versions = tuple(replace(version, open_workflows=None) for version in found.temporal.versions)
    return replace(found, temporal=replace(found.temporal, versions=versions))


def test_every_kind_of_read_is_looked_at_here() -> None:
    assert {field.name for field in fields(Reads)} == {*OF_VERSIONS, *OF_THE_WORKER, *WITH_ANOTHER}


@pytest.mark.parametrize("kind", [*OF_VERSIONS, *OF_THE_WORKER])
def test_what_is_read_of_a_worker_changes_what_is_told_of_it(kind: str) -> None:
    spec, found = the_world(kind)
    reads = further_reads(spec, not_counted(found), NOW, for_routing=True, for_people=True)
    assert reported(spec, found) != reported(spec, withheld(kind, found, reads))


def test_what_a_render_reads_changes_what_it_renders() -> None:
    spec, found = the_world("open_workflows")
    reads = further_reads(spec, not_counted(found), NOW, for_routing=False)
    assert rendered(spec, found) != rendered(spec, withheld("open_workflows", found, reads))


@pytest.mark.parametrize("metadata", [{}, {"twgen.io/aborted": {"by": "a person"}}])
def test_workflows_that_a_rollback_would_move_are_not_counted_where_there_is_none(
    metadata: dict[str, Any],
) -> None:
    was_current = version("v3", S.DRAINING, metadata=metadata, **LEFT)
    newer = version("v4", S.CURRENT, created_at=ago(HOUR), last_current_at=ago(MINUTE))
    says = temporal(was_current, newer, traffic=routing("v4", age=MINUTE))
    for build_id in ("v3", "v4") if metadata else ("v4",):
        spec = replace(SPEC, build_id=build_id)
        found = worker_world(spec, serving(says, "v3", "v4"))
        assert further_reads(spec, found, NOW, for_routing=True).auto_upgrade_workflows == ()
