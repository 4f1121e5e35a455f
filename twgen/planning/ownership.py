"""Noticing that the cluster, or the worker, is somebody else's."""

from twgen.errors import OwnedBySomebodyElse
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld


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
