"""Whose a cluster and a worker are: who may claim or release one, and what must not be touched."""

from collections.abc import Iterator, Sequence

from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld, World
from twgen.planning.sentences import counted, listed
from twgen.planning.version_status import routed_build_ids
from twgen.versioning.build_ids import may_be_ours


def acting_identity(spec: WorkerSpec, world: WorkerWorld, caller: Caller) -> str:
    """As whom a worker is planned; a person takes the identity that its live Deployments carry.

    So our own Argo CD is not somebody else to whoever looks from a terminal.
    """
    if caller.is_person and not spec.policy.identity:
        carried = {live.identity for live in world.deployments or () if live.identity}
        if len(carried) == 1:
            return carried.pop()
    return caller.of(spec.policy)


def refuse_foreign(spec: WorkerSpec, world: WorkerWorld, caller: Caller) -> None:
    """Raise OwnedBySomebodyElse when a live Deployment of the worker was rendered by, or for, somebody else.

    Two generators of one Deployment would rewrite it for ever. An identity or application that nobody told is
    not compared. In Argo CD any owner of a Deployment stops a render: nobody is shown a warning there, and an
    owner that was in Git is pruned as soon as the render no longer has it.
    """
    identity = caller.on_deployments_of(spec.policy)
    for live in world.deployments or ():
        if identity and live.identity not in {"", identity, *spec.policy.adopt_from}:
            raise OwnedBySomebodyElse(
                f"{spec.worker_deployment}: Deployment {live.name} is of {live.identity}, and this is"
                f" {identity}: is it the right cluster? To take the worker over, name the other in"
                " spec.adoptFrom of a RolloutPolicy"
            )
        if caller.application and live.tracked_by not in {"", caller.application}:
            raise OwnedBySomebodyElse(
                f"{spec.worker_deployment}: Deployment {live.name} is tracked by Argo CD application"
                f" {live.tracked_by}, and this is {caller.application}: is it the right cluster?"
            )
    if caller.application:
        for told in deleted_with_others(world):
            raise OwnedBySomebodyElse(f"{spec.worker_deployment}: {told}")


def deleted_with_others(world: WorkerWorld) -> Iterator[str]:
    """The warning about each object with which Kubernetes deletes live Deployments."""
    owned = [live for live in world.deployments or () if not live.terminating]
    for owner in sorted({owner for live in owned for owner in live.owners}):
        names = sorted(live.name for live in owned if owner in live.owners)
        yield (
            f"{owner} owns {counted(len(names), 'Deployment')}, {listed(names)}: whoever deletes or prunes it"
            " deletes them with all their pods. Stop its controller, then remove their ownerReferences"
            " (docs/controller.md)"
        )


def doubts_about_cluster(spec: WorkerSpec, world: WorkerWorld) -> Iterator[str]:
    """The warning about a cluster that was read and has nothing of a worker that has traffic elsewhere."""
    routed = sorted(filter(may_be_ours, routed_build_ids(world.temporal)))
    if world.deployments == () and routed:
        yield (
            f"Temporal sends workflows to {listed(routed)}, yet the cluster that was read has no Deployment"
            f" of {spec.worker_deployment}: is it the right one?"
        )


def claimed(world: WorkerWorld, identity: str, owner: str) -> str:
    """The manager of a worker after this identity claims it of that owner (empty: of nobody).

    Raises NegativeAnswer where there is nothing to claim, OwnedBySomebodyElse where it is another one's.
    """
    manager = manager_of(world)
    if manager == identity:
        raise NegativeAnswer(f"{world.name}: {identity} manages it already")
    if manager != owner:
        remedy = f"--from {manager} takes it over" if manager else "leave --from out"
        raise OwnedBySomebodyElse(f"{world.name}: {manager or 'nobody'} manages it: {remedy}")
    return identity


def released(world: WorkerWorld, identity: str) -> str:
    """Nobody, who manages a worker after this identity releases it; raises as `claimed` does."""
    manager = manager_of(world)
    if manager != identity:
        raise OwnedBySomebodyElse(f"{world.name}: {manager or 'nobody'} manages it, and this is {identity}")
    return ""


def manager_of(world: WorkerWorld) -> str:
    """Who manages a worker (empty: nobody); raises NegativeAnswer where there is no such worker."""
    if not world.temporal:
        raise NegativeAnswer(f"{world.name}: Temporal does not know it: no worker of it has polled")
    return world.temporal.manager_identity


def left_behind(specs: Sequence[WorkerSpec], world: World, caller: Caller) -> Iterator[str]:
    """What becomes of Deployments of ours whose worker no spec names any more."""
    wanted = {spec.key for spec in specs}
    identities = {caller.identity, *(caller.of(spec.policy) for spec in specs)}
    # a spec without a Deployment may be the new name of what is left, and nothing tells a person whose it is
    anybody = caller.is_person and not specs
    for spec in specs:
        if worker := world.workers.get(spec.key):
            identities.add(acting := acting_identity(spec, worker, caller))
            anybody = anybody or (caller.is_person and not worker.deployments and acting == caller.identity)
    for key, worker in sorted(world.workers.items()):
        ours = [
            live
            for live in worker.deployments or ()
            if live.identity and (anybody or live.identity in identities)
        ]
        if key in wanted or not ours:
            continue
        protected = [live.name for live in ours if live.protected]
        loose = [live.name for live in ours if not live.protected]
        fates = []
        if protected:
            stay = "stays" if len(protected) == 1 else "stay"
            fates.append(f"{listed(protected)} {stay}, held by prune protection")
        if loose:
            fates.append(f"{listed(loose)} may be pruned")
        carry = "Deployment carries" if len(ours) == 1 else "Deployments carry"
        are, them = ("it is", "it") if len(ours) == 1 else ("they are", "them")
        yield (
            f"no spec names {worker.name}, and its {carry} the identity {ours[0].identity}: {are} not"
            f" rendered, nor is what is attached to {them}; {'; '.join(fates)}"
        )
