"""Starts the Job of a rollout again, after a person's command to continue."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, deletion_of, jobs_path
from twgen.cluster.jobs import ending_of, oldest_first
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.paths import value_at

_MAKE_IT = "Argo CD makes it again; elsewhere, apply what `twgen render` prints once more"
_UNTIL_GONE = 0.5
"""Seconds between two attempts."""
_OF_THE_SERVER = {
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation",
    "managedFields", "resourceVersion", "selfLink", "uid",
}  # fmt: skip
_OF_THE_CONTROLLER = ("batch.kubernetes.io/", "controller-uid", "job-name")
"""Labels that the job controller gives to a Job and its Pods."""


async def restart_job(client: KubernetesClient, namespace: str, selector: str, deadline: Deadline) -> str:
    """Start the newest Job of a label selector again if it has ended; what was done or is left to do.

    The same manifest is created under the same name, so that Argo CD tracks it as before.
    """
    path = jobs_path(namespace)
    query = {"labelSelector": selector}
    status, listed = await _answered(client, "GET", path, deadline, query=query)
    if status != HTTPStatus.OK:
        look = f"kubectl get jobs -n {namespace} -l {selector}"
        return f"whether its Job has ended could not be read ({listed['message']}): run `{look}`"
    jobs = oldest_first(listed.get("items") or ())
    if not jobs or not ending_of(newest := jobs[-1]):
        return ""
    name, uid = newest["metadata"]["name"], newest["metadata"]["uid"]
    status, refused = await _answered(client, "DELETE", f"{path}/{name}", deadline, body=deletion_of(uid))
    if status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
        return (
            f"Job {name} has ended and was not started again ({refused['message']}):"
            f" run `kubectl delete job {name} -n {namespace}`, and {_MAKE_IT}"
        )
    status = HTTPStatus.CONFLICT
    while status == HTTPStatus.CONFLICT and deadline.remaining > 1:  # until the old one is gone
        status, refused = await _answered(client, "POST", path, deadline, body=_again(newest))
        if status == HTTPStatus.CONFLICT:
            _, current = await _answered(client, "GET", f"{path}/{name}", deadline)
            if value_at(current, "metadata", "uid") not in {None, uid}:
                return f"Job {name} was started again by somebody else"
            await asyncio.sleep(_UNTIL_GONE)
    if status == HTTPStatus.CREATED:
        return f"started Job {name} again"
    return (
        f"Job {name} was deleted and not made again ({refused['message']}):"
        f" run `kubectl wait job/{name} -n {namespace} --for=delete --timeout=10m`, and {_MAKE_IT}"
    )


async def _answered(
    client: KubernetesClient, method: str, path: str, deadline: Deadline, **more: Any
) -> tuple[int, Mapping[str, Any]]:
    """The status of an answer, and the answer with a message; also for a server that cannot be reached.

    The person's command has succeeded by then, so a failure here must not fail it.
    """
    try:
        status, answer = await client.ask(method, path, deadline, **more)
    except (StateUnavailable, OutOfTime) as error:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"message": str(error)}
    return status, {"message": f"the API server answers {status}", **answer}


def _again(job: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest that a Job was created from."""
    spec = {name: value for name, value in job["spec"].items() if name not in {"selector", "suspend"}}
    metadata = {name: value for name, value in job["metadata"].items() if name not in _OF_THE_SERVER}
    template = {**spec["template"], "metadata": _own(spec["template"]["metadata"])}
    spec["template"] = template
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _own(metadata), "spec": spec}


def _own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without the labels of the job controller."""
    labels = metadata.get("labels") or {}
    own = {name: text for name, text in labels.items() if not name.startswith(_OF_THE_CONTROLLER)}
    return {**metadata, "labels": own}
