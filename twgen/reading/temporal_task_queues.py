"""Reading which task queues the target and the current version poll, and who polls them now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from twgen.clients.temporal import Call, TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import TaskQueue, TaskQueueType, Version, WorkerDeployment
from twgen.reading.temporal_describe import decoded, describe_version, with_versions

if TYPE_CHECKING:
    from temporalio.api.taskqueue.v1 import PollerInfo

_TYPES = {1: TaskQueueType.WORKFLOW, 2: TaskQueueType.ACTIVITY, 3: TaskQueueType.NEXUS}
_NUMBERS = {task_queue_type: number for number, task_queue_type in _TYPES.items()}
_VERSIONED = 2
"""WORKER_VERSIONING_MODE_VERSIONED."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A task queue on a server."""

    address: str
    namespace: str
    name: str
    type: TaskQueueType


def with_task_queues(
    known: Sequence[tuple[WorkerSpec, WorkerDeployment]], clients: TemporalClients
) -> list[tuple[WorkerSpec, WorkerDeployment]]:
    """The workers with metadata, task queues and pollers of their target and current versions read.

    A version that was registered a moment ago may have no task queues yet.
    """
    asked = [(spec, version) for spec, item in known for version in _of_interest(spec, item)]
    answers = clients.ask(describe_version(spec, version.build_id) for spec, version in asked)
    described = [
        (spec, _described(version, answer)) for (spec, version), answer in zip(asked, answers, strict=True)
    ]
    pollers = _read_pollers(described, clients)
    read = iter(_with_pollers(spec, version, pollers) for spec, version in described)
    return [
        (spec, with_versions(item, {version.build_id: next(read) for version in _of_interest(spec, item)}))
        for spec, item in known
    ]


def _of_interest(spec: WorkerSpec, deployment: WorkerDeployment) -> list[Version]:
    current = deployment.routing.current
    wanted = {spec.build_id, current.build_id if current else spec.build_id}
    return [version for version in deployment.versions if version.build_id in wanted]


def _described(version: Version, answer: Any) -> Version:
    if answer is None:
        return replace(version, metadata={}, task_queues=())
    entries = answer.worker_deployment_version_info.metadata.entries
    queues = {
        (queue.name, _TYPES[queue.type]) for queue in answer.version_task_queues if queue.type in _TYPES
    }
    return replace(
        version,
        metadata={key: decoded(entries[key]) for key in sorted(entries)},
        task_queues=tuple(TaskQueue(*queue) for queue in sorted(queues)),
    )


def _read_pollers(
    described: Iterable[tuple[WorkerSpec, Version]], clients: TemporalClients
) -> Mapping[_Place, Sequence["PollerInfo"]]:
    places = {_place(spec, queue): spec for spec, version in described for queue in version.task_queues or ()}
    answers = clients.ask(_describe_task_queue(spec, place) for place, spec in places.items())
    return {place: answer.pollers for place, answer in zip(places, answers, strict=True)}


def _place(spec: WorkerSpec, queue: TaskQueue) -> _Place:
    return _Place(spec.connection.host_port, spec.temporal_namespace, queue.name, queue.type)


def _describe_task_queue(spec: WorkerSpec, place: _Place) -> Call:
    from temporalio.api.enums.v1 import TaskQueueType as TypeNumber
    from temporalio.api.taskqueue.v1 import TaskQueue as Named
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

    request = DescribeTaskQueueRequest(
        namespace=place.namespace,
        task_queue=Named(name=place.name),
        task_queue_type=TypeNumber.ValueType(_NUMBERS[place.type]),
    )
    return Call(spec.connection, place.namespace, "describe_task_queue", request)


def _with_pollers(
    spec: WorkerSpec, version: Version, pollers: Mapping[_Place, Sequence["PollerInfo"]]
) -> Version:
    queues = (
        replace(
            queue,
            pollers=any(_is_of(poller, spec, version) for poller in pollers[_place(spec, queue)]),
            unversioned_pollers=any(_is_unversioned(poller) for poller in pollers[_place(spec, queue)]),
        )
        for queue in version.task_queues or ()
    )
    return replace(version, task_queues=tuple(queues))


def _is_of(poller: "PollerInfo", spec: WorkerSpec, version: Version) -> bool:
    options = poller.deployment_options
    of_version = (options.deployment_name, options.build_id) == (spec.worker_deployment, version.build_id)
    return of_version and not _is_unversioned(poller)


def _is_unversioned(poller: "PollerInfo") -> bool:
    return poller.deployment_options.worker_versioning_mode != _VERSIONED
