"""A Temporal worker like a team's, configured by its environment."""

import asyncio
import os
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.common.v1 import WorkflowType
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig

_ENVIRONMENT = os.environ  # noqa: TID251 - a worker's settings


@activity.defn
async def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}"


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class WaitingWorkflow:
    """Stays open on the version on which it started, until it is signalled."""

    def __init__(self) -> None:
        self._finished = False

    @workflow.run
    async def run(self) -> None:
        """Wait for the signal."""
        await workflow.wait_condition(lambda: self._finished)

    @workflow.signal
    def finish(self) -> None:
        """End it."""
        self._finished = True

    @workflow.signal
    def break_down(self) -> None:
        """Fail the workflow task with this signal forever."""
        message = "this signal breaks it"
        raise RuntimeError(message)


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class ParentWorkflow:
    """Stays open as long as its waiting child."""

    @workflow.run
    async def run(self) -> None:
        """Wait for the child."""
        await workflow.execute_child_workflow(WaitingWorkflow.run, id=f"{workflow.info().workflow_id}-child")


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class RenewingWorkflow:
    """Continues as new when it is cancelled, and starts a child when it is signalled."""

    @workflow.run
    async def run(self) -> None:
        """Wait for a cancellation."""
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            workflow.continue_as_new()

    @workflow.signal
    async def branch(self) -> None:
        """Start a waiting child that outlives its parent."""
        own, stays = f"{workflow.info().workflow_id}-child", workflow.ParentClosePolicy.ABANDON
        await workflow.start_child_workflow(WaitingWorkflow.run, id=own, parent_close_policy=stays)


@workflow.defn(versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class UpgradingWorkflow:
    """Stays open, on the current version, until it is signalled."""

    def __init__(self) -> None:
        self._finished = False

    @workflow.run
    async def run(self) -> None:
        """Wait for the signal."""
        await workflow.wait_condition(lambda: self._finished)

    @workflow.signal
    def finish(self) -> None:
        """End it."""
        self._finished = True

    @workflow.signal
    def poke(self) -> None:
        """Only cause a workflow task."""


@workflow.defn(versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class SleepingWorkflow:
    """Stays open for a day, on the current version."""

    @workflow.run
    async def run(self) -> None:
        """Sleep."""
        await workflow.sleep(timedelta(days=1))


@workflow.defn(name="SleepingWorkflow", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class ChangedSleepingWorkflow:
    """Cannot replay histories of the other SleepingWorkflow."""

    @workflow.run
    async def run(self) -> None:
        """Greet first."""
        await workflow.execute_activity(greet, "worker", start_to_close_timeout=timedelta(seconds=10))
        await workflow.sleep(timedelta(days=1))


@workflow.defn(versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class GreetingWorkflow:
    """Ends at once, on the current version."""

    @workflow.run
    async def run(self) -> str:
        """Greet once."""
        return await workflow.execute_activity(greet, "worker", start_to_close_timeout=timedelta(seconds=10))


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class GateWorkflow:
    """The gate of a good version, which passes."""

    @workflow.run
    async def run(self) -> None:
        """Pass."""


@workflow.defn(name="GateWorkflow", versioning_behavior=VersioningBehavior.PINNED)
class FailingGateWorkflow:
    """The gate of a broken version."""

    @workflow.run
    async def run(self) -> None:
        """Fail permanently."""
        message = "this version is broken"
        raise ApplicationError(message, non_retryable=True)


@workflow.defn(name="GateWorkflow", versioning_behavior=VersioningBehavior.PINNED)
class RiskyGateWorkflow:
    """A gate that fails in three of ten cases."""

    @workflow.run
    async def run(self) -> None:
        """Fail permanently, or pass."""
        if workflow.random().random() < 0.3:
            message = "this version is broken"
            raise ApplicationError(message, non_retryable=True)


@workflow.defn(name="GateWorkflow", versioning_behavior=VersioningBehavior.PINNED)
class StuckGateWorkflow:
    """A gate whose code raises an error before its first command."""

    @workflow.run
    async def run(self) -> None:
        """Fail the first workflow task forever."""
        message = "this code is broken"
        raise RuntimeError(message)


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class AskedGateWorkflow:
    """A gate whose input decides whether it passes."""

    @workflow.run
    async def run(self, question: dict[str, bool]) -> None:
        """Pass, or fail for good."""
        if not question["passes"]:
            message = "its input says that it fails"
            raise ApplicationError(message, non_retryable=True)


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class MessageGateWorkflow:
    """A gate whose input, a protobuf message, decides whether it passes."""

    @workflow.run
    async def run(self, message: WorkflowType) -> None:
        """Pass, or fail for good."""
        if message.name != "passes":
            failure = "its input says that it fails"
            raise ApplicationError(failure, non_retryable=True)


async def main() -> None:
    """Run the workers until the process is terminated."""
    client = await Client.connect(**ClientConfig.load_client_connect_config(disable_file=True))
    gates: dict[str, type] = {
        "GATE_FAILS": FailingGateWorkflow,
        "GATE_IS_RISKY": RiskyGateWorkflow,
        "GATE_IS_STUCK": StuckGateWorkflow,
    }
    gate = next((gates[name] for name in gates if name in _ENVIRONMENT), GateWorkflow)
    sleeping = ChangedSleepingWorkflow if "CHANGED" in _ENVIRONMENT else SleepingWorkflow
    workflows = [
        WaitingWorkflow,
        ParentWorkflow,
        RenewingWorkflow,
        UpgradingWorkflow,
        sleeping,
        GreetingWorkflow,
        AskedGateWorkflow,
        MessageGateWorkflow,
        gate,
    ]
    workers = (
        Worker(
            client,
            task_queue=task_queue,
            workflows=[] if "ONLY_ACTIVITIES" in _ENVIRONMENT else workflows,
            activities=[greet],
            deployment_config=_deployment_config(),
            # a sandbox would import this module for each workflow, which takes too long on a busy machine
            workflow_runner=UnsandboxedWorkflowRunner(),
            # on a busy machine, workflow tasks may exceed the SDK's deadlock timeout of two seconds
            debug_mode=True,
        )
        for task_queue in _ENVIRONMENT["TASK_QUEUE"].split(",")
    )
    await asyncio.gather(*(worker.run() for worker in workers))


def _deployment_config() -> WorkerDeploymentConfig | None:
    if "TEMPORAL_DEPLOYMENT_NAME" not in _ENVIRONMENT:
        return None
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(
            _ENVIRONMENT["TEMPORAL_DEPLOYMENT_NAME"], _ENVIRONMENT["TEMPORAL_WORKER_BUILD_ID"]
        ),
        use_worker_versioning=True,
    )


def run() -> None:
    """Entry point of the program."""
    asyncio.run(main())


if __name__ == "__main__":
    run()
