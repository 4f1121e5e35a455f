"""Makes single changes to a worker in Temporal, and carries out the worker's policy for old versions."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from twgen.clients.deadline import Deadline
from twgen.clients.temporal import Call, OneAtATime, TemporalClients
from twgen.errors import NegativeAnswer, TwgenError
from twgen.model.draining import Batch, BatchAction, BatchState, ScheduledAction
from twgen.model.forgetting import ForgetReport
from twgen.model.plan import GateStart, RoutingAction, RoutingPlan
from twgen.model.problem import counted
from twgen.model.spec import WorkerSpec
from twgen.planning.draining.actions import announced_mark, batch_of, begun_mark, in_words, still_open
from twgen.planning.forgetting import OldRecord
from twgen.planning.routing.gates import GATE_TIMEOUT
from twgen.planning.routing.target import Target

if TYPE_CHECKING:
    from temporalio.api.common.v1 import Payload
    from temporalio.api.deployment.v1 import WorkerDeploymentVersion
    from temporalio.api.workflow.v1 import VersioningOverride


class TemporalWriter:
    """Changes one worker as the manager `identity`. Each method makes one call, without retries.

    A method raises OwnedBySomebodyElse if another client manages the worker, or has changed the worker since
    the read. It raises StateUnavailable if the server rejects the call, and OutOfTime if the outcome is
    unknown.
    """

    def __init__(self, spec: WorkerSpec, identity: str, clients: TemporalClients, timeout: float) -> None:
        self._spec = spec
        self._identity = identity
        self._clients = clients
        self._timeout = timeout

    async def set_manager(self, manager: str, conflict_token: str) -> None:
        """Set the worker's manager. An empty `manager` removes the manager.

        The conflict token in the response is ignored, because it may include changes that this process has
        not read.
        """
        await self._write(
            "SetWorkerDeploymentManager",
            deployment_name=self._spec.worker_deployment,
            manager_identity=manager,
            conflict_token=b64decode(conflict_token),
        )

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        """Make a planned routing change."""
        is_ramp = change.action is not RoutingAction.SET_CURRENT
        await self._write(
            f"SetWorkerDeployment{'Ramping' if is_ramp else 'Current'}Version",
            deployment_name=self._spec.worker_deployment,
            build_id=change.build_id,
            conflict_token=b64decode(conflict_token),
            ignore_missing_task_queues=change.ignores_missing_queues,
            # an empty build ID at 0% ends a ramp. A version at 0% would keep ramping, and never drain
            **({"percentage": change.percentage or 0} if is_ramp else {}),
        )

    async def delete_version(self, build_id: str) -> None:
        """Delete a version's record. The server refuses if the version has traffic, pollers or workflows."""
        await self._write("DeleteWorkerDeploymentVersion", deployment_version=self._version(build_id))

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        """Start a gate workflow on the target. `gate_input` is None if the gate has no input."""
        from google.protobuf.duration_pb2 import Duration
        from temporalio.api.common.v1 import Payloads, WorkflowType
        from temporalio.api.enums.v1 import WorkflowIdConflictPolicy, WorkflowIdReusePolicy
        from temporalio.api.taskqueue.v1 import TaskQueue

        gate_spec = self._spec.rollout.gate
        payload = _payload(gate_input or b"", gate_spec.metadata if gate_spec else {})
        await self._write(
            "StartWorkflowExecution",
            workflow_id=gate.workflow_id,
            workflow_type=WorkflowType(name=gate.workflow_type),
            task_queue=TaskQueue(name=gate.task_queue),
            input=None if gate_input is None else Payloads(payloads=[payload]),
            workflow_execution_timeout=Duration(seconds=int(GATE_TIMEOUT.total_seconds())),
            request_id=gate.request_id,
            workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
            workflow_id_conflict_policy=WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
            versioning_override=self._pinned_to(self._spec.build_id),
        )

    async def end_gate(self, workflow_id: str) -> None:
        """Terminate a gate workflow."""
        from temporalio.api.common.v1 import WorkflowExecution

        execution, why = WorkflowExecution(workflow_id=workflow_id), "none of its workflow tasks succeeds"
        await self._write(
            "TerminateWorkflowExecution", workflow_execution=execution, reason=f"twgen retry: {why}"
        )

    async def start_batch(self, batch: Batch, reason: str) -> None:
        """Start a batch operation. The server runs it in the background."""
        from google.protobuf.field_mask_pb2 import FieldMask
        from temporalio.api.batch import v1
        from temporalio.api.common.v1 import Payloads
        from temporalio.api.workflow.v1 import WorkflowExecutionOptions

        action, identity = batch.what, self._identity
        operation: dict[str, Any]
        match action.action:
            case BatchAction.MOVE:
                moving = v1.BatchOperationUpdateWorkflowExecutionOptions(
                    workflow_execution_options=WorkflowExecutionOptions(
                        versioning_override=self._pinned_to(action.to_build_id)
                    ),
                    update_mask=FieldMask(paths=["versioning_override"]),
                    identity=identity,
                )
                operation = {"update_workflow_options_operation": moving}
            case BatchAction.SIGNAL:
                data = action.signal_input
                payloads = None if data is None else Payloads(payloads=[_payload(data or b"null")])
                signal = v1.BatchOperationSignal(signal=action.signal_name, input=payloads, identity=identity)
                operation = {"signal_operation": signal}
            case BatchAction.CANCEL:
                operation = {"cancellation_operation": v1.BatchOperationCancellation(identity=identity)}
            case BatchAction.TERMINATE:
                operation = {"termination_operation": v1.BatchOperationTermination(identity=identity)}
        await self._write(
            "StartBatchOperation",
            visibility_query=batch.query,
            job_id=batch.job_id,
            reason=reason,
            **operation,
        )

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        """Write entries into a version's metadata, as JSON.

        twgen never removes an entry, because Temporal Server 1.29.1 stops responding for a while after that.
        """
        await self._write(
            "UpdateWorkerDeploymentVersionMetadata",
            deployment_version=self._version(build_id),
            upsert_entries={key: _payload(json.dumps(value).encode()) for key, value in marks.items()},
        )

    def _version(self, build_id: str) -> "WorkerDeploymentVersion":
        from temporalio.api.deployment.v1 import WorkerDeploymentVersion

        return WorkerDeploymentVersion(deployment_name=self._spec.worker_deployment, build_id=build_id)

    def _pinned_to(self, build_id: str) -> "VersioningOverride":
        from temporalio.api.workflow.v1 import VersioningOverride

        behavior = VersioningOverride.PINNED_OVERRIDE_BEHAVIOR_PINNED
        pinned = VersioningOverride.PinnedOverride(behavior=behavior, version=self._version(build_id))
        return VersioningOverride(pinned=pinned)

    async def _write(self, method: str, **fields: Any) -> None:
        """Make a call to WorkflowService."""
        if method != "StartBatchOperation":  # this request has the identity in its operation
            fields["identity"] = self._identity
        call = Call(self._spec, method, fields, lambda _: None, is_retried=False)
        await self._clients.ask(call, Deadline(self._timeout))


def _payload(data: bytes, metadata: Mapping[str, bytes] | None = None) -> "Payload":
    from temporalio.api.common.v1 import Payload

    return Payload(metadata={"encoding": b"json/plain"} if metadata is None else metadata, data=data)


async def delete_records(writer: TemporalWriter, worker: str, records: Sequence[OldRecord]) -> ForgetReport:
    """Delete the records of old versions, one by one. Stops after three errors."""
    deleted: list[str] = []
    refused: list[str] = []
    for record in records:
        if len(refused) == 3:
            break
        try:
            await writer.delete_version(record.build_id)
        except TwgenError as error:
            refused.append(f"{record.build_id}: {error}")
        else:
            deleted.append(record.build_id)
    return ForgetReport(worker, tuple(deleted), tuple(refused))


class Batches(Protocol):
    """Reads workflows and batch operations."""

    async def batch(self, job_id: str) -> BatchState | None:
        """The progress of a batch operation, or None if the operation does not exist."""

    async def count(self, query: str) -> int:
        """The number of workflows that match a query."""


async def begin(
    target: Target,
    scheduled: ScheduledAction,
    batches: Batches,
    writer: TemporalWriter,
    say: Callable[[str], None],
) -> bool:
    """Start a due action on a version's workflows. Returns whether the start is recorded.

    The job ID of the batch operation is written to the version's metadata before the start. This way, twgen
    can find the operation even if its start could not be recorded. The action also counts as started if no
    workflow matches.
    """
    spec, build_id, repeat = target.spec, scheduled.build_id, scheduled.repeat
    version = target.versions[build_id]
    ids = (repeat.job_id, repeat.started_after) if repeat else (scheduled.job_id,)
    batch = batch_of(target, build_id, scheduled.what, *ids)
    state = await batches.batch(batch.job_id)
    if state and state.has_failed:
        # an account might be allowed to start the operation but not to write metadata. A failed operation
        # must not be recorded as started. A new operation from `twgen end` counts for the same policy entry
        raise NegativeAnswer(
            f"{spec.worker_deployment}: batch operation {batch.job_id} has failed: to restart it,"
            " run the command that `twgen plan` shows with --again"
        )
    number = state.total if state else await batches.count(still_open(batch.query))
    change = in_words(batch.what, f"{counted(number, 'workflow')} of {build_id}")
    if number and not state:
        try:
            await start(writer, target, scheduled, batch, f"twgen, by its RolloutPolicy: {change}")
        except OneAtATime:
            say(f"{spec.worker_deployment}: will {change} when the running batch operation has ended")
            return False
    begun_at = (state.started_at if state else None) or target.now
    await writer.mark(build_id, begun_mark(version, scheduled, begun_at, number))
    if number:
        why = "which started after the last run" if repeat else "as its RolloutPolicy says"
        say(f"{spec.worker_deployment}: started to {change}, {why} (batch {batch.job_id})")
    return True


async def start(
    writer: TemporalWriter, target: Target, scheduled: ScheduledAction | None, batch: Batch, reason: str
) -> None:
    """Start a batch operation. For the first operation of a policy entry, record the job ID beforehand."""
    if scheduled and not (scheduled.is_announced or scheduled.is_begun):
        version = target.versions[scheduled.build_id]
        await writer.mark(scheduled.build_id, announced_mark(version, scheduled))
    await writer.start_batch(batch, reason)
