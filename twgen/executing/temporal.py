"""Changes one worker in Temporal by single calls, and does what a policy says about its old versions."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twgen.clients.deadline import Deadline
from twgen.clients.temporal import Call, OneAtATime, TemporalClients
from twgen.errors import NegativeAnswer, TwgenError
from twgen.model.draining import Batch, BatchAction, BatchState, ScheduledAction
from twgen.model.plan import GateStart, RoutingAction, RoutingPlan
from twgen.model.problem import counted
from twgen.model.spec import WorkerSpec
from twgen.planning.draining.actions import announced_mark, batch_of, begun_mark, in_words, still_open
from twgen.planning.pruning import OldRecord
from twgen.planning.routing.gates import GATE_TIMEOUT
from twgen.planning.routing.target import Target

if TYPE_CHECKING:
    from temporalio.api.common.v1 import Payload
    from temporalio.api.deployment.v1 import WorkerDeploymentVersion
    from temporalio.api.workflow.v1 import VersioningOverride


class TemporalWriter:
    """Changes one worker, as the manager `identity`; every method is one call, made once and never repeated.

    Each raises OwnedBySomebodyElse if another client manages the worker or changed it since it was
    read, StateUnavailable if the server refuses, and OutOfTime if it is unknown whether it was done.
    """

    def __init__(self, spec: WorkerSpec, identity: str, clients: TemporalClients, timeout: float) -> None:
        self._spec = spec
        self._identity = identity
        self._clients = clients
        self._timeout = timeout

    async def set_manager(self, manager: str, conflict_token: str) -> None:
        """Set the manager of the worker; empty: none.

        The conflict token in the answer is not used: it can be from a change that was not seen here.
        """
        await self._write(
            "SetWorkerDeploymentManager",
            deployment_name=self._spec.worker_deployment,
            manager_identity=manager,
            conflict_token=b64decode(conflict_token),
        )

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        """Make a plan's change of traffic."""
        is_ramp = change.action is not RoutingAction.SET_CURRENT
        await self._write(
            f"SetWorkerDeployment{'Ramping' if is_ramp else 'Current'}Version",
            deployment_name=self._spec.worker_deployment,
            build_id=change.build_id,
            conflict_token=b64decode(conflict_token),
            ignore_missing_task_queues=change.ignores_missing_queues,
            # no build ID at 0% ends a ramp; a version at 0% would stay ramping, and never drain
            **({"percentage": change.percentage or 0} if is_ramp else {}),
        )

    async def delete_version(self, build_id: str) -> None:
        """Delete the record of a version; the server refuses one with traffic, pollers or open workflows."""
        await self._write("DeleteWorkerDeploymentVersion", deployment_version=self._version(build_id))

    async def start_gate(self, gate: GateStart, gate_input: bytes | None) -> None:
        """Start a gate workflow on the target, with the input of the spec's gate; None: without."""
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
        """Start a batch operation on the workflows that its query finds; the server runs it by itself."""
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
        """Write entries of a version's metadata, as JSON; none is ever removed.

        Server 1.29.1 does not answer for a while once an entry has been removed.
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
        """Make the call of WorkflowService with this name."""
        if method != "StartBatchOperation":  # its operation has the identity
            fields["identity"] = self._identity
        call = Call(self._spec, method, fields, lambda _: None, is_retried=False)
        await self._clients.ask(call, Deadline(self._timeout))


def _payload(data: bytes, metadata: Mapping[str, bytes] | None = None) -> "Payload":
    from temporalio.api.common.v1 import Payload

    return Payload(metadata={"encoding": b"json/plain"} if metadata is None else metadata, data=data)


class Pruned(NamedTuple):
    """What became of old records."""

    deleted: Sequence[str]
    """The build IDs."""
    refused: Sequence[str]
    """Why others were not deleted, each with its build ID."""


async def delete_records(writer: TemporalWriter, records: Sequence[OldRecord]) -> Pruned:
    """Delete the records one after another; after three refusals it tries no more."""
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
    return Pruned(deleted, refused)


class Batches(Protocol):
    """Reads workflows, and batch operations on them."""

    async def batch(self, job_id: str) -> BatchState | None:
        """The progress of a batch operation; None: there is none with this ID."""

    async def count(self, query: str) -> int:
        """The number of workflows that a query finds."""


async def begin(
    target: Target,
    scheduled: ScheduledAction,
    batches: Batches,
    writer: TemporalWriter,
    say: Callable[[str], None],
) -> bool:
    """Start the due action on a version's workflows; True: it was started, and the version is marked.

    The ID of the batch operation is marked first, so that one that was started without the last mark is
    found. An entry that finds no workflows is marked too.
    """
    spec, build_id, repeat = target.spec, scheduled.build_id, scheduled.repeat
    version = target.versions[build_id]
    ids = (repeat.job_id, repeat.started_after) if repeat else (scheduled.job_id,)
    batch = batch_of(target, build_id, scheduled.what, *ids)
    state = await batches.batch(batch.job_id)
    if state and state.has_failed:
        # otherwise it would be reported as done to an account that can start it but not mark it; a second
        # one by `twgen drain` counts for the same entry
        raise NegativeAnswer(
            f"{spec.worker_deployment}: batch operation {batch.job_id} has failed: to start it again,"
            " run the command that `twgen plan` shows with --again"
        )
    number = state.total if state else await batches.count(still_open(batch.query))
    change = in_words(batch.what, f"{counted(number, 'workflow')} of {build_id}")
    if number and not state:
        try:
            await start(writer, target, scheduled, batch, f"twgen, by its RolloutPolicy: {change}")
        except OneAtATime:
            say(f"{spec.worker_deployment}: will {change} when the batch operation that runs now has ended")
            return False
    begun_at = (state.started_at if state else None) or target.now
    await writer.mark(build_id, begun_mark(version, scheduled, begun_at, number))
    if number:
        why = "those that started since the last time" if repeat else "as its RolloutPolicy says"
        say(f"{spec.worker_deployment}: started to {change}, {why} (batch {batch.job_id})")
    return True


async def start(
    writer: TemporalWriter, target: Target, scheduled: ScheduledAction | None, batch: Batch, reason: str
) -> None:
    """Start a batch operation, after a mark with the job ID of an entry's first one."""
    if scheduled and not (scheduled.is_announced or scheduled.is_begun):
        version = target.versions[scheduled.build_id]
        await writer.mark(scheduled.build_id, announced_mark(version, scheduled))
    await writer.start_batch(batch, reason)
