"""The plan for every worker's versions and traffic."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from twgen.errors import StateUnavailable
from twgen.model.operator import Caller
from twgen.model.plan import Plan, WorkerPlan, WorkerVersions
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.draining.actions import planned_actions
from twgen.planning.forgetting import full_warnings, records_to_forget
from twgen.planning.ownership import acting_identity, left_behind, refuse_foreign
from twgen.planning.routing.gates import gates_to_start
from twgen.planning.routing.polling import queue_warnings
from twgen.planning.routing.table import plan_worker_routing, rollback_warnings, unserved_traffic
from twgen.planning.routing.target import Target
from twgen.planning.versions.differences import differing_fields
from twgen.planning.versions.facts import rival_autoscalers
from twgen.planning.versions.plan import plan_worker_versions
from twgen.planning.versions.warnings import uncounted_versions, unused_patches, warnings_about_pods


class VersionsPlan(NamedTuple):
    """The plan for the versions of every worker. A render needs only this part of the plan."""

    workers: tuple[WorkerVersions, ...]
    warnings: tuple[str, ...]


def plan_versions(specs: Sequence[WorkerSpec], world: World, now: datetime, caller: Caller) -> VersionsPlan:
    """The plan for every worker's versions.

    Raises StateUnavailable if a worker was not read, and OwnedBySomebodyElse if a Deployment has another
    owner.
    """
    workers = []
    for spec, own_world in _with_worlds(specs, world, caller):
        worker = plan_worker_versions(spec, own_world, now, caller.on_deployments_of(spec.policy))
        workers.append(worker.warned(_uncounted(worker, world, now)))
    return VersionsPlan(tuple(workers), _warnings(workers, world, caller))


def make_plan(specs: Sequence[WorkerSpec], world: World, now: datetime, caller: Caller) -> Plan:
    """The plan for every worker's versions and traffic. Raises the same errors as `plan_versions`."""
    workers = []
    for spec, own_world in _with_worlds(specs, world, caller):
        worker = plan_worker(spec, own_world, now, caller)
        versions = worker.versions.warned(_uncounted(worker.versions, world, now))
        workers.append(replace(worker, versions=versions))
    return Plan(now, tuple(workers), _warnings([worker.versions for worker in workers], world, caller))


def plan_worker(spec: WorkerSpec, world: WorkerWorld, now: datetime, caller: Caller) -> WorkerPlan:
    """The plan for one worker's versions and traffic."""
    versions = plan_worker_versions(spec, world, now, caller.on_deployments_of(spec.policy))
    identity = acting_identity(spec, world, caller)
    target = Target(spec, world, now, identity, versions.not_created)
    of_traffic = (*rollback_warnings(target), *queue_warnings(target))
    of_records = full_warnings(spec, world, now)
    of_pods = (*warnings_about_pods(versions.versions), *rival_autoscalers(versions, world.autoscalers))
    warnings = (*of_traffic, *versions.warnings, *of_pods, *of_records)
    return WorkerPlan(
        versions=replace(versions, warnings=warnings),
        identity=identity,
        manager=target.temporal.manager_identity,
        routing=plan_worker_routing(target, drives=caller.drives),
        is_held=target.is_held,
        gates=gates_to_start(target),
        judgements=target.judgements,
        unserved=unserved_traffic(target),
        scheduled_actions=planned_actions(target),
        old_records=tuple(record.build_id for record in records_to_forget(target)),
    )


def with_differences(plan: Plan) -> Plan:
    """Add the fields that differ between each new target and the current version, to be shown to people."""
    workers = (replace(worker, differs=differing_fields(worker.versions)) for worker in plan.workers)
    return replace(plan, workers=tuple(workers))


def with_pod_warnings(worker: WorkerVersions) -> WorkerVersions:
    """The versions, with warnings about live pod templates that do not match their own hash.

    If the field managers are unknown, this check costs as much as the rest of the render, so only strict
    renders make this check.
    """
    return worker.warned(warnings_about_pods(worker.versions))


def _uncounted(worker: WorkerVersions, world: World, now: datetime) -> Iterator[str]:
    """Warnings about a worker's versions that became due for removal after the snapshot was taken."""
    if world.is_recorded and now > world.taken_at:
        yield from uncounted_versions(worker.versions, world.workers[worker.spec.key].temporal)


def _warnings(workers: Sequence[WorkerVersions], world: World, caller: Caller) -> tuple[str, ...]:
    """The warnings that are not about a single worker."""
    # a Job knows only its own worker, but the policy may cover several workers
    of_patches = () if caller.drives else unused_patches(workers)
    return (*left_behind([worker.spec for worker in workers], world, caller), *of_patches)


def worker_world(spec: WorkerSpec, world: World) -> WorkerWorld:
    """The state of one worker. Raises StateUnavailable if the worker was not read from Temporal."""
    own_world = world.workers.get(spec.key)
    if not own_world or not own_world.temporal_was_read:
        raise StateUnavailable(
            f"the snapshot has no Temporal data about {spec.worker_deployment} in Temporal namespace"
            f" {spec.temporal_namespace}: take a new snapshot"
        )
    return own_world


def _with_worlds(
    specs: Sequence[WorkerSpec], world: World, caller: Caller
) -> Iterator[tuple[WorkerSpec, WorkerWorld]]:
    """Each worker's spec with the worker's state.

    Raises OwnedBySomebodyElse if any of the workers has another owner.
    """
    paired = [(spec, worker_world(spec, world)) for spec in specs]
    for spec, own_world in paired:
        refuse_foreign(spec, own_world, caller)
    yield from paired
