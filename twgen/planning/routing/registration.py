"""Why no worker of the target has polled yet, as far as Temporal and the cluster show it."""

import re
from datetime import timedelta

from twgen.model.policy import MOST_VERSIONS
from twgen.model.temporal import VersionStatus
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed
from twgen.versioning.injection import DEPLOYMENT, build_id_variable

MOST_COUNTED = 1000
"""At most this many Worker Deployments are counted; there may be more."""
DEFAULT_LIMIT = 100
"""The default of `matching.maxDeployments`: at this number a server rejects polls of new workers.

1.29.1 reports that only in its log, 1.32.0 reports it to the workers too.
https://github.com/temporalio/temporal/blob/v1.32.0/service/worker/workerdeployment/client.go
"""
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_LATELY = timedelta(hours=1)
_JUST_NOW = timedelta(minutes=10)
_MOST_NAMED = 3


def why_unregistered(t: Target) -> tuple[str, bool]:
    """Why no worker of the target is known to Temporal, and whether a person must act."""
    found, others = t.obstacle, len(t.temporal.versions)
    if t.ramp and not t.version:
        return "it ramps, but Temporal does not list it, so it is unknown whether its workers poll", False
    told = "Temporal lists it only as Created" if t.version else "Temporal does not know it yet"
    if not t.version and others >= MOST_VERSIONS:
        return (
            f"{told}, but knows {others} other versions. At its limit (by default {MOST_VERSIONS}) it rejects"
            " polls of a new version until another one is deleted"
        ), False
    if t.deployment and found:
        return f"{told}, because {found.because}", found.needs_a_person
    if not t.deployment and t.world.deployments is not None:
        return "it has no Deployment yet: apply the output of `twgen render`", False
    full, seen = "" if t.world.temporal else _why_full(t.world.worker_deployments), polls_instead(t)
    if not t.deployment:
        return f"{told}: none of its workers has polled{seen and f'; {seen}'}", False
    available = "although its Deployment is available"
    why = f"{told}: none of its workers has polled, {available}"
    if full:
        why, seen = f"{told}, {available}: {full}. If the limit is higher", ""
    question = (
        f": does the worker turn versioning on in its SDK, with {_told_by_variables(t)}, and does it connect"
        " to TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE?"
    )
    return f"{why}{f'; {seen}' if seen else question}", False


def _told_by_variables(t: Target) -> str:
    variable = build_id_variable(t.spec.policy.environment)
    return f"the deployment name from {DEPLOYMENT} and the build ID from {variable}"


def polls_instead(t: Target) -> str:
    """The poller that may be its worker under a wrong name, and the variable with the right one; empty: none.

    For a target that has not polled, although its pods are available or unknown.
    """
    if strangers := _strangers(t):
        polls = f"{listed(strangers)} {'has' if len(strangers) == 1 else 'have'} polled instead"
        variable = build_id_variable(t.spec.policy.environment)
        return f"{polls}: does the worker take its build ID, {t.build_id}, from {variable}?"
    takes_name = f"does the worker take its deployment name, {t.spec.worker_deployment}, from {DEPLOYMENT}?"
    polling = [other for other in t.world.other_workers if other.task_queue]
    for other in sorted(polling, key=lambda one: not one.name)[:1]:
        polls = f"polls its task queue {other.task_queue}"
        if other.name:
            return f"Worker Deployment {other.name} (build ID {other.build_id}) {polls}: {takes_name}"
        versioning = f"does the worker turn versioning on in its SDK, with {_told_by_variables(t)}?"
        return f"a worker without a version {polls}: {versioning}"
    if names := [other.name for other in t.world.other_workers if other.name]:
        more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        return f"Temporal has Worker Deployment {listed([*names[:_MOST_NAMED], *more])}: {takes_name}"
    return ""


def _strangers(t: Target) -> list[str]:
    """Its recent versions in Temporal that twgen did not create: their names may be typos."""
    # without the cluster it is unknown which of them were deployed
    lately = _LATELY if t.world.deployments is not None else _JUST_NOW
    known = t.deployments.keys() | t.world.ledger.keys() | {t.build_id}
    return [
        version.build_id
        for version in t.temporal.versions
        if version.build_id not in known
        and version.status is VersionStatus.INACTIVE
        and version.created_at is not None
        and t.now - version.created_at < lately
    ]


def may_be_called(name: str, worker: str) -> bool:
    """The names are so similar that a Worker Deployment may be this worker under a wrong name.

    A name with a slash belongs to another worker, unless it is written almost the same.
    """
    plain, whole, own = (
        _NO_LETTER.sub("", text.casefold()) for text in (name, worker, worker.partition("/")[2])
    )
    if "/" in name:
        return plain == whole and name != worker
    return bool(plain) and (own in plain or plain in own)


def _why_full(worker_deployments: int | None) -> str:
    """Why a namespace with this many may reject new workers, and what to do; empty: it does not."""
    if worker_deployments is None or worker_deployments < DEFAULT_LIMIT:
        return ""
    number = f"{worker_deployments}{' or more' if worker_deployments >= MOST_COUNTED else ''}"
    return (
        f"its Temporal namespace has {number} Worker Deployments. At its limit (by default {DEFAULT_LIMIT}) a"
        " server rejects polls of new workers: delete unused Worker Deployments (`temporal worker deployment"
        " delete`), or raise the limit (`matching.maxDeployments`)"
    )
