"""Reading what Temporal says of workers: one call for each, and more only for those whose traffic moves."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from twgen.clients.temporal import Call, TemporalClients
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerDeployment, WorkerWorld
from twgen.planning.versions.plan import versions_to_count
from twgen.reading.kubernetes import LiveByWorker
from twgen.reading.temporal_describe import worker_deployment
from twgen.reading.temporal_gates import with_gate_runs
from twgen.reading.temporal_live_versions import with_live_versions
from twgen.reading.temporal_task_queues import with_task_queues
from twgen.reading.temporal_visibility import with_open_workflows

Known = tuple[WorkerSpec, WorkerDeployment]


def read_temporal(
    specs: Sequence[WorkerSpec],
    live: LiveByWorker | None,
    clients: TemporalClients,
    *,
    for_routing: bool,
    now: datetime,
) -> list[WorkerWorld]:
    """What Temporal says of each worker, in order, beside its live Deployments (None: not read).

    A live version that Temporal's answer leaves out is asked for by name. `for_routing` also reads the
    server's version and, unless all traffic is where the spec wants it, task queues, gate runs and metadata.
    The open workflows of versions that are due to be scaled down or dropped are counted. Any failed read
    raises, StateUnavailable or OutOfTime.
    """
    answers = clients.ask(_describe(spec) for spec in specs)
    known = [(spec, worker_deployment(answer)) for spec, answer in zip(specs, answers, strict=True) if answer]
    known = with_live_versions(known, live, clients)
    if for_routing:
        known = _with_routing_facts(known, clients, now)
    due = [versions_to_count(spec, _world(spec, deployment, live), now) for spec, deployment in known]
    read = iter(with_open_workflows(known, due, clients))
    found = [next(read) if answer else None for answer in answers]
    return [_world(spec, deployment, live) for spec, deployment in zip(specs, found, strict=True)]


def _world(spec: WorkerSpec, temporal: WorkerDeployment | None, live: LiveByWorker | None) -> WorkerWorld:
    deployments = None if live is None else live[spec.worker_deployment]
    return WorkerWorld(spec.worker_deployment, spec.temporal_namespace, temporal, deployments)


def _describe(spec: WorkerSpec) -> Call:
    from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest

    request = DescribeWorkerDeploymentRequest(
        namespace=spec.temporal_namespace, deployment_name=spec.worker_deployment
    )
    return Call(
        spec.connection, spec.temporal_namespace, "describe_worker_deployment", request, may_be_absent=True
    )


def _with_routing_facts(known: list[Known], clients: TemporalClients, now: datetime) -> list[Known]:
    versions = _server_versions([spec for spec, _ in known], clients)
    known = [
        (spec, replace(deployment, server_version=versions[spec.connection.host_port]))
        for spec, deployment in known
    ]
    unsettled = [(spec, deployment) for spec, deployment in known if not _is_settled(spec, deployment)]
    read = iter(with_gate_runs(with_task_queues(unsettled, clients), clients, now))
    return [item if _is_settled(*item) else next(read) for item in known]


def _server_versions(specs: Sequence[WorkerSpec], clients: TemporalClients) -> dict[str, str]:
    from temporalio.api.workflowservice.v1 import GetSystemInfoRequest

    by_address = {spec.connection.host_port: spec for spec in specs}
    answers = clients.ask(
        Call(spec.connection, spec.temporal_namespace, "get_system_info", GetSystemInfoRequest())
        for spec in by_address.values()
    )
    return {address: answer.server_version for address, answer in zip(by_address, answers, strict=True)}


def _is_settled(spec: WorkerSpec, deployment: WorkerDeployment) -> bool:
    current, ramping = deployment.routing.current, deployment.routing.ramping
    return current is not None and current.build_id == spec.build_id and ramping is None
