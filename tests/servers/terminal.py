"""A worker that is rolled out from a terminal; the cluster is not read."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import NEWEST, OLDEST, TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    ALONE,
    ENVIRONMENT,
    MANAGER,
    TWGEN,
    Document,
    Ended,
    killed,
    planned_once_known,
    policy_document,
    run,
    worker_document,
    write_specs,
)
from tests.servers.side_by_side import side_by_side

SOON = 600.0
_LONGEST_LIFE = 8.0
"""Seconds of a rollout that is killed; its first look takes two."""
OPTIONS = (*ALONE, "--identity", MANAGER)
UNKNOWN = "Temporal does not know it"
LOST = "make this change: try again"
"""A server lost a task of its own."""


@dataclass(frozen=True, slots=True)
class Story:
    """A worker and the folder of its specs; versions run for as long as the story lasts."""

    worker: DeployedWorker
    folder: Path
    running: ExitStack

    def start(self, build_id: str, *, gate_fails: bool = False, **settings: str) -> None:
        self.running.enter_context(self.worker.version(build_id, gate_fails=gate_fails, **settings))
        # 1.29.1 lists a version some moments after it knows what polls for it
        eventually(lambda: self.is_polled(build_id) and build_id in self.shares(), SOON)

    def describe(
        self, build_id: str, *, address: str = "", policy: Document | None = None, **options: Any
    ) -> None:
        name = self.worker.name.removeprefix("live/")
        documents = [worker_document(name, build_id, **options)]
        documents += [policy_document(name, **policy)] if policy else []
        write_specs(self.folder, address or self.worker.server.address, *documents)

    def run(self, *command: str) -> Ended:
        """What a person runs, and again while the oldest server has forgotten the worker or lost a task."""

        def ran() -> Ended:
            ended = run(self.folder, *command, options=OPTIONS)
            # a rollout waits for a worker that is not known, and may be told to wait for seconds only
            is_forgotten = UNKNOWN in ended.stderr and command[0] != "rollout"
            assert not is_forgotten, ended
            assert LOST not in ended.stderr, ended
            return ended

        return eventually(ran, SOON)

    def planned(self, *options: str) -> Document:
        """The plan of the worker, which Temporal knows."""
        return planned_once_known(self.folder, *options)

    def once(self, *options: str) -> Ended:
        """One look of a rollout, and its change.

        The newest server may say for two minutes that it is busy.
        """
        not_yet = ("has not reached every task queue yet", f"{UNKNOWN} yet")

        def looked() -> Ended | None:
            ended = self.run("rollout", "--once", *options)
            return None if any(said in ended.stdout for said in not_yet) else ended

        return eventually(looked, SOON)

    def goes_to(self, shares: Mapping[str, float], *options: str) -> None:
        """Where a story begins: looks follow each other until these are the shares of the new workflows."""

        def made() -> bool:
            ended = self.once(*options)
            assert (ended.code, self.shares()) == (0, shares), ended
            return True

        eventually(made, SOON)

    def is_heard(self) -> None:
        """Wait until the last change of traffic has reached every task queue, and is obeyed."""
        eventually(lambda: self.planned()["routing"]["reason"] != "UpdateInProgress", SOON)

    @contextmanager
    def rolling(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        """A rollout that goes on beside the test; a server may say for two minutes that it is still busy."""
        command = [TWGEN, "rollout", self.folder, "--within", "15m", *OPTIONS, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            yield process
            process.terminate()

    def begun(self, workflow_type: str, number: int = 24) -> list[str]:
        """The IDs of so many workflows that have just been started; of two versions each has some of them."""
        name = self.worker.name.removeprefix("live/")
        names = [f"{name}-{each}" for each in range(number)]
        for each in names:
            self.worker.start(workflow_type, each)
        return names

    def tries(self, workflow_id: str) -> int:
        """How often the workflow task of a workflow has been tried that waits for its end; 0: none waits."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

        execution = WorkflowExecution(workflow_id=workflow_id)
        request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
        answer = self.worker.server.ask("describe_workflow_execution", request)
        return int(answer.pending_workflow_task.attempt)

    def described(self) -> Any:
        """What the server says of the worker, without the program."""
        return self.worker.described()

    def is_polled(self, build_id: str) -> bool:
        """Its workflows and its activities are registered, and polled for."""
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

        queue, server = TaskQueue(name=self.worker.task_queue), self.worker.server
        registered = {info.type for info in self.worker.described_version(build_id).task_queue_infos}
        polled = (
            server.ask(
                "describe_task_queue",
                DescribeTaskQueueRequest(namespace="default", task_queue=queue, task_queue_type=kind),
            ).pollers
            for kind in registered
        )
        return len(registered) > 1 and all(
            build_id in {poller.deployment_options.build_id for poller in pollers} for pollers in polled
        )

    def shares(self) -> Mapping[str, float]:
        """Which share of the new workflows each version has that Temporal knows, in percent."""
        found = self.described()
        routing, shares = found.routing_config, {}
        for version in found.version_summaries:
            shares[version.deployment_version.build_id] = 0.0
        if current := routing.current_deployment_version.build_id:
            shares[current] = 100 - routing.ramping_version_percentage
        if ramping := routing.ramping_deployment_version.build_id:
            shares[ramping] = routing.ramping_version_percentage
        return shares


def on_both_servers(tell: Callable[[Story], None]) -> Callable[..., None]:
    """A test that tells a story on the oldest server and on the newest one, beside the others.

    One that is told side by side without this is told on the newest: what it shows is twgen's own.
    """

    both = pytest.mark.parametrize("server", [OLDEST, NEWEST], ids=["oldest", "newest"])
    return both(side_by_side(tell, "server"))


@contextmanager
def telling(server: TemporalServer, folder: Path, name: str) -> Iterator[Story]:
    with ExitStack() as running:
        worker = DeployedWorker(server, f"live/{name}", name)
        story = Story(worker, folder, running)
        story.describe("v1", steps=())
        yield story


def becomes_current(story: Story, build_id: str) -> None:
    story.start(build_id)
    eventually(lambda: succeeds(lambda: story.worker.set_current(build_id)), SOON)


def rolled_out(story: Story, is_over: Callable[[], bool], *options: str) -> None:
    """Rollouts follow each other, each killed at a moment of its own, until it is over."""
    moments = Random(story.worker.name)  # noqa: S311 - any moment will do

    def once_more() -> bool:
        command = ("rollout", story.folder, "--within", "15m", *OPTIONS, *options)
        said = killed(moments.uniform(0.5, _LONGEST_LIFE), story.folder, *command)
        assert is_over(), said
        return True

    eventually(once_more, SOON)


def until(process: subprocess.Popen[str], sign: str) -> list[str]:
    """The lines that it prints up to the one that says so."""
    assert process.stdout
    lines = [""]
    while sign not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], f"it ended: {lines}"
    return lines
