"""Decides about the ownership of workers and Deployments: claims, releases and refusals."""

from collections.abc import Iterator, Sequence

from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.operator import Caller
from twgen.model.problem import counted
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.sentences import listed
from twgen.planning.version_status import routed_build_ids
from twgen.versioning.build_ids import may_be_ours


def acting_identity(spec: WorkerSpec, world: WorkerWorld, caller: Caller) -> str:
    """The manager identity that the plan of a worker assumes.

    For a person at a terminal, this is the identity on the live Deployments, so that the person's own Argo CD
    does not count as another manager.
    """
    if caller.is_person and not spec.policy.identity:
        carried = {live.identity for live in world.deployments or () if live.identity}
        if len(carried) == 1:
            return carried.pop()
    return caller.of(spec.policy)


def refuse_foreign(spec: WorkerSpec, world: WorkerWorld, caller: Caller) -> None:
    """Raise OwnedBySomebodyElse if a live Deployment was rendered for another manager or application.

    Two generators of one Deployment would overwrite each other forever. An unknown identity or application is
    not compared. In Argo CD, a render also fails if a Deployment has any ownerReference, because Argo CD
    shows no warnings and prunes an owner that is no longer in Git.
    """
    identity = caller.on_deployments_of(spec.policy)
    for live in world.deployments or ():
        if identity and live.identity not in {"", identity, *spec.policy.adopt_from}:
            raise OwnedBySomebodyElse(
                f"{spec.worker_deployment}: Deployment {live.name} belongs to manager {live.identity}, and"
                f" twgen acts as {identity}: is this the right cluster? To take the worker over, add"
                f" {live.identity} to spec.adoptFrom of a RolloutPolicy"
            )
        if caller.application and live.tracked_by not in {"", caller.application}:
            raise OwnedBySomebodyElse(
                f"{spec.worker_deployment}: Deployment {live.name} is tracked by Argo CD application"
                f" {live.tracked_by}, but this render is for {caller.application}: is this the right cluster?"
            )
    if caller.application:
        for warning in deleted_with_others(world):
            raise OwnedBySomebodyElse(f"{spec.worker_deployment}: {warning}")


def deleted_with_others(world: WorkerWorld) -> Iterator[str]:
    """A warning for each object that owns live Deployments: Kubernetes deletes its Deployments with it."""
    owned = [live for live in world.deployments or () if not live.terminating]
    for owner in sorted({owner for live in owned for owner in live.owners}):
        names = sorted(live.name for live in owned if owner in live.owners)
        yield (
            f"{owner} owns {counted(len(names), 'Deployment')} ({listed(names)}): if it is deleted or"
            f" pruned, Kubernetes deletes {'it' if len(names) == 1 else 'them'} with all pods. Stop its"
            " controller, then remove the ownerReferences of the Deployments (docs/controller.md)"
        )


def cluster_warnings(spec: WorkerSpec, world: WorkerWorld) -> Iterator[str]:
    """A warning if a worker has traffic, but this cluster has none of its Deployments."""
    routed = sorted(filter(may_be_ours, routed_build_ids(world.temporal)))
    if world.deployments == () and routed:
        yield (
            f"Temporal sends workflows to {listed(routed)}, but this cluster has no Deployment of"
            f" {spec.worker_deployment}: is it the right cluster?"
        )


def claimed(world: WorkerWorld, identity: str, owner: str) -> str:
    """The worker's manager after this identity claims the worker from `owner` (empty for no manager).

    Raises NegativeAnswer if there is nothing to claim, OwnedBySomebodyElse if the worker has another manager.
    """
    manager = manager_of(world)
    if manager == identity:
        raise NegativeAnswer(f"{world.name}: its manager is already {identity}")
    if manager != owner:
        remedy = f"to take it over, use --from {manager}" if manager else "omit --from"
        raise OwnedBySomebodyElse(f"{world.name}: {managed_by(manager)}: {remedy}")
    return identity


def released(world: WorkerWorld, identity: str) -> str:
    """The worker's manager after this identity releases the worker, which is always empty.

    Raises the same errors as `claimed`.
    """
    manager = manager_of(world)
    if manager != identity:
        raise OwnedBySomebodyElse(f"{world.name}: {managed_by(manager)}, and you act as {identity}")
    return ""


def manager_of(world: WorkerWorld) -> str:
    """The worker's manager, empty if none. Raises NegativeAnswer if Temporal does not know the worker."""
    if not world.temporal:
        raise NegativeAnswer(f"{world.name}: Temporal does not know it: none of its workers has polled")
    return world.temporal.manager_identity


def managed_by(manager: str) -> str:
    """A clause that names the manager of a worker."""
    return f"its manager is {manager}" if manager else "it has no manager"


def left_behind(specs: Sequence[WorkerSpec], world: World, caller: Caller) -> Iterator[str]:
    """Warnings about Deployments with our identity whose worker is no longer in any spec."""
    specified = {spec.key for spec in specs}
    identities = {caller.identity, *(caller.of(spec.policy) for spec in specs)}
    # a worker without a Deployment may have been renamed, and a person does not know its old identity
    anybody = caller.is_person and not specs
    for spec in specs:
        if worker := world.workers.get(spec.key):
            identities.add(acting := acting_identity(spec, worker, caller))
            anybody = anybody or (caller.is_person and not worker.deployments and acting == caller.identity)
    for key, worker in sorted(world.workers.items()):
        carried = [live for live in worker.deployments or () if live.identity]
        own = [live for live in carried if anybody or live.identity in identities]
        if key in specified or not own:
            continue
        protected = [live.name for live in own if live.protected]
        loose = [live.name for live in own if not live.protected]
        stay = "stays" if len(protected) == 1 else "stay"
        fates = [f"{listed(protected)} {stay} because of prune protection"] if protected else []
        fates += [f"{listed(loose)} may be pruned"] if loose else []
        carry, pronoun = ("Deployment carries", "it") if len(own) == 1 else ("Deployments carry", "them")
        yield (
            f"no spec names {worker.name}, but its {carry} the identity {own[0].identity}: twgen no longer"
            f" renders {pronoun} and the objects attached to {pronoun}; {'; '.join(fates)}"
        )
