"""The plan: what becomes of every worker's versions and traffic."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from twgen.model.caller import Caller
from twgen.model.plan import Plan, WorkerPlan, WorkerVersions
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.ownership import refuse_foreign
from twgen.planning.routing import plan_gates, plan_worker_routing
from twgen.planning.target import Target
from twgen.planning.versions import plan_worker_versions, worker_world


@dataclass(frozen=True, slots=True)
class VersionsPlan:
    """What becomes of the versions of every worker; all that a render needs."""

    workers: tuple[WorkerVersions, ...]
    warnings: tuple[str, ...]


def plan_versions(specs: Sequence[WorkerSpec], world: World, now: datetime, caller: Caller) -> VersionsPlan:
    """What becomes of every worker's versions.

    Raises StateUnavailable when the world lacks a worker, OwnedBySomebodyElse when a Deployment is another's.
    """
    for spec in specs:
        identity = caller.on_deployments_of(spec.policy)
        refuse_foreign(spec, worker_world(spec, world), identity, caller.application)
    workers = tuple(plan_worker_versions(spec, world, now) for spec in specs)
    return VersionsPlan(workers, tuple(_strays(specs, world, caller)))


def make_plan(specs: Sequence[WorkerSpec], world: World, now: datetime, caller: Caller) -> Plan:
    """What becomes of every worker's versions and traffic; raises as `plan_versions` does."""
    versions = plan_versions(specs, world, now, caller)
    workers = (_worker_plan(worker, world, now, caller) for worker in versions.workers)
    return Plan(now, tuple(workers), versions.warnings)


def _worker_plan(worker: WorkerVersions, world: World, now: datetime, caller: Caller) -> WorkerPlan:
    target = Target(worker.spec, worker_world(worker.spec, world), now)
    identity = caller.of(worker.spec.policy)
    return WorkerPlan(
        versions=worker,
        manager=target.temporal.manager_identity,
        routing=plan_worker_routing(target, identity, worker.blocked),
        gates=plan_gates(target),
    )


def _strays(specs: Iterable[WorkerSpec], world: World, caller: Caller) -> Iterator[str]:
    known = {(spec.worker_deployment, spec.temporal_namespace) for spec in specs}
    identities = {caller.of(spec.policy) for spec in specs} | {caller.identity}
    for key, worker in sorted(world.workers.items()):
        if key in known:
            continue
        ours = [
            live.name for live in worker.deployments or () if live.identity and live.identity in identities
        ]
        if ours:
            yield (
                f"no spec names {worker.name} any more, and {', '.join(ours)} carries our identity: it is not"
                " rendered, and its prune protection holds it"
            )
