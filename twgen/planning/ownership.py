"""Noticing that the cluster, or the worker, is somebody else's."""

from collections.abc import Iterator

from twgen.errors import OwnedBySomebodyElse
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld
from twgen.planning.status import routed_build_ids


def refuse_foreign(spec: WorkerSpec, known: WorkerWorld, identity: str, application: str) -> None:
    """Raise OwnedBySomebodyElse when a live Deployment of the worker was rendered by, or for, somebody else.

    Two generators of one Deployment would rewrite it for ever. An empty identity or application: not known,
    and not compared.
    """
    for live in known.deployments or ():
        if identity and live.identity not in {"", identity, *spec.policy.adopt_from}:
            raise OwnedBySomebodyElse(
                f"{spec.worker_deployment}: Deployment {live.name} is of {live.identity}, and this is"
                f" {identity}: is it the right cluster? To take the worker over, name the other in"
                " spec.adoptFrom of a RolloutPolicy"
            )
        if application and live.tracked_by not in {"", application}:
            raise OwnedBySomebodyElse(
                f"{spec.worker_deployment}: Deployment {live.name} is tracked by Argo CD application"
                f" {live.tracked_by}, and this is {application}: is it the right cluster?"
            )


def doubts_about_cluster(spec: WorkerSpec, known: WorkerWorld) -> Iterator[str]:
    """The warning about a cluster that was read and has nothing of a worker that has traffic elsewhere."""
    routed = sorted(routed_build_ids(known.temporal) - {""})
    if known.deployments == () and routed:
        yield (
            f"Temporal sends workflows to {' and '.join(routed)}, yet the cluster that was read has no"
            f" Deployment of {spec.worker_deployment}: is it the right one?"
        )
