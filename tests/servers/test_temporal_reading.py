"""Two versions of a real worker live through a rollout; what is read at each point is kept and looked at."""

import json
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC

import pytest

from testing.processes import eventually
from testing.servers import FOUR_PARTITIONS, NEWEST, OLDEST, TemporalServer, temporal_server
from testing.workers import IDENTITY, DeployedWorker
from tests.servers.reading import read
from tests.servers.specs import worker_spec
from twgen.model.spec import Gate
from twgen.model.temporal import (
    GateStatus,
    RampingVersion,
    TaskQueue,
    TaskQueueType,
    Version,
    VersionStatus,
    WorkerDeployment,
)
from twgen.versioning.names import Mark, MarkKey, write_mark

pytestmark = pytest.mark.server

OWNER = "payments/prod-eu"


@dataclass
class Story:
    """A worker whose spec wants v2."""

    worker: DeployedWorker

    def read(self, *, for_routing: bool = False, due: Collection[str] = ()) -> WorkerDeployment | None:
        gate = Gate("GateWorkflow")
        spec = worker_spec(self.worker.task_queue, "v2", self.worker.server.connection, gate=gate)
        return read(spec, for_routing=for_routing, due=due)

    def known(self, *, for_routing: bool = False, due: Collection[str] = ()) -> WorkerDeployment:
        """What is read once the server knows it, which the oldest forgets for a moment after a change."""
        found = eventually(lambda: self.read(for_routing=for_routing, due=due))
        assert found
        return found

    def when(self, build_id: str, status: VersionStatus) -> WorkerDeployment:
        def reached() -> WorkerDeployment:
            deployment = self.known()
            assert version(deployment, build_id).status is status
            return deployment

        return eventually(reached)

    def when_polled(self, build_id: str, *, unversioned: bool = False) -> WorkerDeployment:
        def polled() -> WorkerDeployment:
            deployment = self.known(for_routing=True)
            queues = version(deployment, build_id).task_queues or ()
            assert len(queues) == 2
            assert all(queue.pollers for queue in queues)
            assert all(queue.unversioned_pollers for queue in queues) or not unversioned
            return deployment

        return eventually(polled)

    def when_gate_ended(self) -> WorkerDeployment:
        def ended() -> WorkerDeployment:
            deployment = self.known(for_routing=True)
            runs = version(deployment, "v2").gate_runs
            assert runs
            assert runs[0].status is not GateStatus.RUNNING
            return deployment

        return eventually(ended)

    def start_gate(self, workflow: str = "GateWorkflow") -> None:
        queue = self.worker.task_queue
        self.worker.start(workflow, f"test-{self.worker.name}:v2-{queue}", pinned_to="v2")


def version(deployment: WorkerDeployment, build_id: str) -> Version:
    found = [item for item in deployment.versions if item.build_id == build_id]
    assert found, f"{build_id} is not registered"
    return found[0]


def story_of(temporal: TemporalServer, name: str) -> Story:
    return Story(DeployedWorker(temporal, f"default/{name}", name))


@pytest.fixture(scope="session")
def chapters_of_all(
    oldest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Mapping[str, WorkerDeployment | None]]:
    with (
        temporal_server(tmp_path_factory.mktemp("partitions"), NEWEST, settings=FOUR_PARTITIONS) as newest,
        ThreadPoolExecutor(2) as pool,
    ):
        told = pool.map(tell, (oldest_temporal, newest))
        return dict(zip((OLDEST, NEWEST), told, strict=True))


@pytest.fixture
def chapters(
    temporal: TemporalServer, chapters_of_all: Mapping[str, Mapping[str, WorkerDeployment | None]]
) -> Mapping[str, WorkerDeployment | None]:
    return chapters_of_all[temporal.version]


def tell(temporal: TemporalServer) -> Mapping[str, WorkerDeployment | None]:
    story = story_of(temporal, "pay")
    worker = story.worker
    found: dict[str, WorkerDeployment | None] = {"unknown": story.read(for_routing=True)}
    with worker.version("v1"):
        found["registered"] = story.when("v1", VersionStatus.INACTIVE)
        worker.set_current("v1")
        found["current"] = story.when("v1", VersionStatus.CURRENT)
        worker.start("WaitingWorkflow", "pay-waits")
        worker.start("WaitingWorkflow", "pay-is-pinned", pinned_to="v1")
        with worker.version("v2"):
            story.when("v2", VersionStatus.INACTIVE)
            found["two versions"] = story.when_polled("v2")
            found["not for routing"] = story.known()
            story.start_gate()
            found["gate passed"] = story.when_gate_ended()
            stay = version(found["gate passed"], "v2").created_at
            retried = write_mark(Mark(MarkKey.GATE_ATTEMPT, stay=stay, details={"attempt": 2}))
            worker.mark("v2", MarkKey.GATE_ATTEMPT, json.dumps(retried).encode())
            worker.mark("v2", "note", b"by hand")
            found["gate retried"] = story.known(for_routing=True)
            worker.set_ramp("v2", 33.3)
            found["ramping"] = story.known()
            worker.set_ramp("", 5)
            found["ramp to unversioned"] = story.known()
            worker.set_current("v2")
            found["target current, ramping"] = story.known(for_routing=True)
            worker.set_ramp("", 0)
            found["settled"] = story.known(for_routing=True)
            story.when("v1", VersionStatus.DRAINING)
            found["draining"] = eventually(lambda: counted(story, 2))
            worker.finish("pay-waits")
            worker.finish("pay-is-pinned")
            found["drained"] = story.when("v1", VersionStatus.DRAINED)
            found["drained, counted"] = eventually(lambda: counted(story, 0))
            worker.set_manager(OWNER)
            found["owned"] = story.known()
    return found


def counted(story: Story, expected: int) -> WorkerDeployment:
    deployment = story.known(due=["v1"])
    assert version(deployment, "v1").open_workflows == expected
    return deployment


@pytest.fixture(scope="module")
def broken(temporal: TemporalServer) -> Iterator[WorkerDeployment]:
    story = story_of(temporal, "broken")
    with story.worker.version("v2", gate_fails=True), story.worker.unversioned():
        story.when_polled("v2", unversioned=True)
        story.start_gate()
        yield story.when_gate_ended()


Chapters = Mapping[str, WorkerDeployment]


def test_worker_without_a_version_is_unknown(chapters: Chapters) -> None:
    assert chapters["unknown"] is None


def test_first_version_is_registered_and_unversioned_workers_are_current(chapters: Chapters) -> None:
    registered = chapters["registered"]
    assert registered.routing.current is None
    assert registered.routing.ramping is None
    [first] = registered.versions
    assert first.status is VersionStatus.INACTIVE
    assert first.drainage is None
    assert first.first_activated_at is None
    assert first.last_current_at is None
    assert first.last_deactivated_at is None
    assert first.created_at
    assert first.created_at.tzinfo is UTC


def test_current_version_is_current_since_the_change(chapters: Chapters) -> None:
    current = chapters["current"]
    assert current.routing.current
    assert current.routing.current.build_id == "v1"
    assert current.routing.current.since == current.routing.changed_at is not None
    assert version(current, "v1").first_activated_at
    assert current.last_modifier_identity == IDENTITY
    assert current.conflict_token != chapters["registered"].conflict_token


def test_percentage_is_read_as_it_was_set(chapters: Chapters) -> None:
    routing = chapters["ramping"].routing
    assert routing.ramping
    assert (routing.ramping.build_id, routing.ramping.percentage) == ("v2", 33.3)
    assert routing.ramping.since == routing.ramping.percentage_changed_at == routing.changed_at
    assert version(chapters["ramping"], "v2").status is VersionStatus.RAMPING


def test_ramp_to_unversioned_workers_has_an_empty_build_id(chapters: Chapters) -> None:
    ramping = chapters["ramp to unversioned"].routing.ramping
    assert isinstance(ramping, RampingVersion)
    assert (ramping.build_id, ramping.percentage) == ("", 5)


def test_pinned_workflows_hold_a_draining_version(chapters: Chapters) -> None:
    draining = version(chapters["draining"], "v1")
    assert draining.drainage
    assert draining.drainage.status is VersionStatus.DRAINING
    assert draining.drainage.changed_at
    assert draining.last_deactivated_at
    assert draining.open_workflows == 2
    assert version(chapters["draining"], "v2").open_workflows is None


def test_version_is_drained_when_its_workflows_have_ended(chapters: Chapters) -> None:
    drained = version(chapters["drained"], "v1")
    assert drained.drainage
    assert drained.drainage.status is VersionStatus.DRAINED
    assert version(chapters["drained, counted"], "v1").open_workflows == 0


def test_manager_is_read(chapters: Chapters) -> None:
    assert chapters["drained"].manager_identity == ""
    assert chapters["owned"].manager_identity == OWNER


@pytest.mark.parametrize("build_id", ["v1", "v2"])
def test_task_queues_of_current_and_target_have_pollers(chapters: Chapters, build_id: str) -> None:
    assert version(chapters["two versions"], build_id).task_queues == (
        TaskQueue("pay", TaskQueueType.ACTIVITY, pollers=True, unversioned_pollers=False),
        TaskQueue("pay", TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=False),
    )


def test_render_reads_nothing_but_the_deployment(chapters: Chapters) -> None:
    read_for_render = chapters["not for routing"]
    assert read_for_render.server_version == ""
    assert {(item.task_queues, item.metadata, item.gate_runs) for item in read_for_render.versions} == {
        (None, None, None)
    }


def test_of_a_settled_worker_only_the_target_is_read_further(
    chapters: Chapters, temporal: TemporalServer
) -> None:
    assert chapters["settled"].server_version == temporal.version
    assert version(chapters["settled"], "v1").task_queues is None
    target = version(chapters["settled"], "v2")
    assert target.metadata
    assert target.metadata["note"] == "by hand"
    assert target.metadata["twgen.io/gate-attempt"]["attempt"] == 2
    assert [queue.pollers for queue in target.task_queues or ()] == [True, True]
    assert target.gate_runs is None


def test_ramp_beside_a_current_target_is_read_further(chapters: Chapters) -> None:
    assert version(chapters["target current, ramping"], "v2").task_queues


def test_gate_without_a_run_is_read_as_none(chapters: Chapters) -> None:
    assert version(chapters["two versions"], "v2").gate_runs == ()
    assert version(chapters["two versions"], "v1").gate_runs is None


def test_completed_gate_is_read(chapters: Chapters) -> None:
    [run] = version(chapters["gate passed"], "v2").gate_runs or ()
    assert (run.task_queue, run.workflow_id) == ("pay", "test-default/pay:v2-pay")
    assert run.status is GateStatus.COMPLETED
    created = version(chapters["gate passed"], "v2").created_at
    assert run.started_at
    assert created
    assert run.started_at > created


def test_retried_gate_has_no_run_yet(chapters: Chapters) -> None:
    target = version(chapters["gate retried"], "v2")
    assert target.metadata
    assert target.metadata["note"] == "by hand"
    assert target.metadata["twgen.io/gate-attempt"]["attempt"] == 2
    assert target.gate_runs == ()


def test_failed_gate_is_read_with_what_its_workflow_failed_with(broken: WorkerDeployment) -> None:
    [run] = version(broken, "v2").gate_runs or ()
    assert (run.status, run.failure) == (GateStatus.FAILED, "this version is broken")


@pytest.mark.parametrize(
    ("settings", "workflow", "said"),
    [
        ({}, "UnknownWorkflow", "Workflow class UnknownWorkflow is not registered on this worker"),
        ({"GATE_IS_STUCK": "1"}, "GateWorkflow", "this code is broken"),
    ],
    ids=["type not registered", "code that breaks"],
)
def test_gate_whose_workflow_tasks_fail_is_read_with_why(
    temporal: TemporalServer, settings: Mapping[str, str], workflow: str, said: str
) -> None:
    story = story_of(temporal, f"stuck-{workflow.lower()}")
    with story.worker.version("v2", **settings):
        story.when_polled("v2")
        story.start_gate(workflow)

        def fails() -> str:
            [run] = version(story.known(for_routing=True), "v2").gate_runs or ()
            assert run.status is GateStatus.RUNNING
            assert run.failure
            return run.failure

        assert said in eventually(fails)


def test_unversioned_pollers_are_seen_beside_versioned_ones(broken: WorkerDeployment) -> None:
    assert version(broken, "v2").task_queues == (
        TaskQueue("broken", TaskQueueType.ACTIVITY, pollers=True, unversioned_pollers=True),
        TaskQueue("broken", TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=True),
    )
