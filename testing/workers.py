"""Runs real worker processes, and changes their Worker Deployments as people do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from testing.asking import succeeds
from testing.forking import Forked, forker
from testing.processes import ENVIRONMENT, eventually
from testing.security import Security
from testing.servers import TemporalServer

IDENTITY = "twgen/testing"
_HEARD_WITHIN = 10.0


@dataclass(frozen=True, slots=True)
class DeployedWorker:
    """A Worker Deployment on a server, and its task queue."""

    server: TemporalServer
    name: str
    task_queue: str
    namespace: str = "default"

    @contextmanager
    def version(self, build_id: str, *, gate_fails: bool = False, **settings: str) -> Iterator[Forked]:
        """Run a worker process of this version, with more settings for its program, once it is registered."""
        variables = {"TEMPORAL_DEPLOYMENT_NAME": self.name, "TEMPORAL_WORKER_BUILD_ID": build_id}
        if gate_fails:
            variables["GATE_FAILS"] = "1"
        self._wait_until_heard()
        types = 1 if "ONLY_ACTIVITIES" in settings else 2
        queues = types * len(settings.get("TASK_QUEUE", self.task_queue).split(","))
        with self._process(build_id, {**variables, **settings}) as process:
            # 1.32.2 loses what a version tells its Worker Deployment just when a registration ends: then it
            # reports forever that a change is in progress, or that another version is draining
            eventually(lambda: len(self.described_version(build_id).task_queue_infos) >= queues)
            yield process

    @contextmanager
    def unversioned(self) -> Iterator[Forked]:
        """Run an unversioned worker process."""
        with self._process("unversioned", {}) as process:
            yield process

    def poll(self, build_id: str) -> Any:
        """Poll once as a worker of this version; raises the SDK's RPCError without retries."""
        request = self.poll_request(build_id)
        return self.server.asker.ask("poll_workflow_task_queue", [request], retry=False)[0]

    def poll_request(self, build_id: str) -> Any:
        """The poll request of a worker of this version."""
        from temporalio.api.deployment.v1 import WorkerDeploymentOptions
        from temporalio.api.enums.v1 import WorkerVersioningMode
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest

        return PollWorkflowTaskQueueRequest(
            namespace=self.namespace,
            task_queue=TaskQueue(name=self.task_queue),
            identity=IDENTITY,
            deployment_options=WorkerDeploymentOptions(
                deployment_name=self.name,
                build_id=build_id,
                worker_versioning_mode=WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED,
            ),
        )

    def create(self) -> None:
        """Create the Worker Deployment before a worker polls; for servers since 1.31."""
        self.server.ask("create_worker_deployment", self.create_request())

    def create_request(self) -> Any:
        """The request of `create`, which may be repeated."""
        from temporalio.api.workflowservice.v1 import CreateWorkerDeploymentRequest

        return CreateWorkerDeploymentRequest(
            namespace=self.namespace, deployment_name=self.name, identity=IDENTITY, request_id=self.name
        )

    def create_version(self, build_id: str) -> None:
        """Create a version before its worker polls; for servers since 1.31."""
        self.server.ask("create_worker_deployment_version", self.create_version_request(build_id))

    def create_version_request(self, build_id: str) -> Any:
        """The request of `create_version`, which may be repeated."""
        from temporalio.api.workflowservice.v1 import CreateWorkerDeploymentVersionRequest

        return CreateWorkerDeploymentVersionRequest(
            namespace=self.namespace,
            deployment_version=self._version(build_id),
            identity=IDENTITY,
            request_id=build_id,
        )

    def delete_version(self, build_id: str) -> None:
        """Delete a version without recent pollers, even if it is not drained."""
        from temporalio.api.workflowservice.v1 import DeleteWorkerDeploymentVersionRequest

        request = DeleteWorkerDeploymentVersionRequest(
            namespace=self.namespace,
            deployment_version=self._version(build_id),
            skip_drainage=True,
            identity=IDENTITY,
        )
        self.server.ask("delete_worker_deployment_version", request)

    def set_current(self, build_id: str) -> None:
        """Make a version current; an empty build ID means unversioned workers."""
        from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest

        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.namespace, deployment_name=self.name, build_id=build_id, identity=IDENTITY
        )
        self.server.ask("set_worker_deployment_current_version", request)
        self._wait_until_heard()

    def set_ramp(self, build_id: str, percentage: float) -> None:
        """Ramp a version. An empty build ID means unversioned workers, or no ramp at 0 percent."""
        from temporalio.api.workflowservice.v1 import SetWorkerDeploymentRampingVersionRequest

        request = SetWorkerDeploymentRampingVersionRequest(
            namespace=self.namespace,
            deployment_name=self.name,
            build_id=build_id,
            percentage=percentage,
            identity=IDENTITY,
        )
        self.server.ask("set_worker_deployment_ramping_version", request)
        self._wait_until_heard()

    def set_manager(self, identity: str) -> None:
        """Set the manager identity; empty for none."""
        from temporalio.api.workflowservice.v1 import SetWorkerDeploymentManagerRequest

        request = SetWorkerDeploymentManagerRequest(
            namespace=self.namespace,
            deployment_name=self.name,
            manager_identity=identity,
            identity=IDENTITY,
        )
        self.server.ask("set_worker_deployment_manager", request)

    def mark(self, build_id: str, key: str, json_value: bytes) -> None:
        """Write an entry of a version's metadata."""
        from temporalio.api.common.v1 import Payload
        from temporalio.api.workflowservice.v1 import UpdateWorkerDeploymentVersionMetadataRequest

        request = UpdateWorkerDeploymentVersionMetadataRequest(
            namespace=self.namespace,
            deployment_version=self._version(build_id),
            upsert_entries={key: Payload(metadata={"encoding": b"json/plain"}, data=json_value)},
            identity=IDENTITY,
        )
        self.server.ask("update_worker_deployment_version_metadata", request)

    def described(self) -> Any:
        """The server's description of the worker, once there is one."""
        return self.server.find("describe_worker_deployment", self.describing()).worker_deployment_info

    def described_version(self, build_id: str) -> Any:
        """The server's description of a version, once there is one."""
        from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentVersionRequest

        request = DescribeWorkerDeploymentVersionRequest(
            namespace=self.namespace, deployment_version=self._version(build_id)
        )
        found = self.server.find("describe_worker_deployment_version", request)
        return found.worker_deployment_version_info

    def drains(self, build_id: str) -> None:
        """Wait until a version has drained, because renders before that would keep it."""
        from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus

        drained = WorkerDeploymentVersionStatus.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINED

        def statuses() -> dict[str, int]:
            found = self.described().version_summaries
            return {version.deployment_version.build_id: version.status for version in found}

        eventually(lambda: statuses()[build_id] == drained)

    def start(self, workflow_type: str, workflow_id: str, *, pinned_to: str = "", seconds: int = 0) -> None:
        """Start a workflow, optionally pinned to a version, and with a timeout in seconds."""
        from google.protobuf.duration_pb2 import Duration
        from temporalio.api.common.v1 import WorkflowType
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

        request = StartWorkflowExecutionRequest(
            namespace=self.namespace,
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name=workflow_type),
            task_queue=TaskQueue(name=self.task_queue),
            identity=IDENTITY,
            request_id=workflow_id,
            workflow_execution_timeout=Duration(seconds=seconds),
            versioning_override=self._pinned(pinned_to) if pinned_to else None,
        )

        def begin() -> None:
            self.server.ask("start_workflow_execution", request)

        if pinned_to:
            # the server rejects it until it knows the version's task queue
            eventually(lambda: succeeds(begin))
        else:
            begin()

    def finish(self, workflow_id: str, signal: str = "finish") -> None:
        """Signal a WaitingWorkflow to end, or send another signal."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest

        request = SignalWorkflowExecutionRequest(
            namespace=self.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id),
            signal_name=signal,
            identity=IDENTITY,
        )
        self.server.ask("signal_workflow_execution", request)

    @contextmanager
    def _process(self, name: str, variables: Mapping[str, str]) -> Iterator[Forked]:
        log = self.server.log.with_name(f"worker-{self.namespace}-{self.task_queue}-{name}.log")
        environment = {
            "TEMPORAL_ADDRESS": self.server.address,
            "TEMPORAL_NAMESPACE": self.namespace,
            "TASK_QUEUE": self.task_queue,
            **credential_variables(self.server, self.namespace),
            **variables,
        }
        with log.open("ab") as output:
            process = forker("testing.worker_program").start(
                "testing.worker_program:run",
                (),
                log.parent,
                {**ENVIRONMENT, **environment},
                [output.fileno()] * 3,
            )
        try:
            yield process
        finally:
            process.stop()

    def _wait_until_heard(self) -> None:
        """Wait until a routing change has reached all task queues, before another change or a new version.

        On a busy machine, 1.32.2 may report forever that the update is in progress
        (https://github.com/temporalio/temporal/issues/11842), and twgen waits for two minutes at each step.
        """
        from temporalio.api.enums.v1 import RoutingConfigUpdateState
        from temporalio.service import RPCError

        request = self.describing()
        busy = RoutingConfigUpdateState.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS

        def is_heard() -> bool:
            try:
                found = self.server.ask("describe_worker_deployment", request)
            except RPCError:
                return True
            return bool(found.worker_deployment_info.routing_config_update_state != busy)

        with suppress(AssertionError):
            eventually(is_heard, _HEARD_WITHIN)

    def describing(self) -> Any:
        """The request that describes the worker."""
        from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest

        return DescribeWorkerDeploymentRequest(namespace=self.namespace, deployment_name=self.name)

    def _version(self, build_id: str) -> Any:
        from temporalio.api.deployment.v1 import WorkerDeploymentVersion

        return WorkerDeploymentVersion(deployment_name=self.name, build_id=build_id)

    def _pinned(self, build_id: str) -> Any:
        from temporalio.api.workflow.v1 import VersioningOverride

        behavior = VersioningOverride.PINNED_OVERRIDE_BEHAVIOR_PINNED
        pinned = VersioningOverride.PinnedOverride(behavior=behavior, version=self._version(build_id))
        return VersioningOverride(pinned=pinned)


def credential_variables(server: TemporalServer, namespace: str) -> Mapping[str, str]:
    """The variables for a worker's credentials in this namespace."""
    given = server.credentials
    if server.security is Security.NONE:
        return {}
    trust = {"TEMPORAL_TLS": "true", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(given.authority.file)}
    if server.security is Security.API_KEY:
        return {**trust, "TEMPORAL_API_KEY": given.issuer.api_key([f"{namespace}:write"])}
    if server.security is Security.TLS:
        return trust
    return {
        **trust,
        "TEMPORAL_TLS_CLIENT_CERT_PATH": str(given.client.certificate),
        "TEMPORAL_TLS_CLIENT_KEY_PATH": str(given.client.key),
    }
