"""Starting the Job of a rollout again, after a person has let it go on."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, deletion_of, jobs_path
from twgen.cluster.jobs import ending_of, oldest_first
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.paths import value_at

_MAKE_IT = "Argo CD creates it again; without Argo CD, apply the output of `twgen render` again"
_UNTIL_GONE = 0.5
"""Seconds between two attempts."""
_OF_THE_SERVER = {
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation",
    "managedFields", "resourceVersion", "selfLink", "uid",
}  # fmt: skip
_OF_THE_CONTROLLER = ("batch.kubernetes.io/", "controller-uid", "job-name")
"""Labels that the job controller gives to a Job and its Pods."""


async def restart_job(client: KubernetesClient, namespace: str, selector: str, deadline: Deadline) -> str:
    """Start the newest Job of a label selector again when it has ended.

    Returns what was done, or what a person must do; empty: nothing.

    The same manifest is created under the same name, so that Argo CD takes it for its own.
    """
    path = jobs_path(namespace)
    query = {"labelSelector": selector}
    status, listed = await _answered(client, "GET", path, deadline, query=query)
    if status != HTTPStatus.OK:
        look = f"kubectl get jobs -n {namespace} -l {selector}"
        return f"could not read whether its Job has ended ({listed['message']}): run `{look}`"
    jobs = oldest_first(listed.get("items") or ())
    if not jobs or not ending_of(newest := jobs[-1]):
        return ""
    name, uid = newest["metadata"]["name"], newest["metadata"]["uid"]
    status, refused = await _answered(client, "DELETE", f"{path}/{name}", deadline, body=deletion_of(uid))
    if status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
        return (
            f"Job {name} has ended, but was not started again ({refused['message']}):"
            f" run `kubectl delete job {name} -n {namespace}`, and {_MAKE_IT}"
        )
    status = HTTPStatus.CONFLICT
    while status == HTTPStatus.CONFLICT and deadline.remaining > 1:  # until the old one is gone
        status, refused = await _answered(client, "POST", path, deadline, body=_again(newest))
        if status == HTTPStatus.CONFLICT:
            _, found = await _answered(client, "GET", f"{path}/{name}", deadline)
            if value_at(found, "metadata", "uid") not in {None, uid}:
                return f"another client started Job {name} again"
            await asyncio.sleep(_UNTIL_GONE)
    if status == HTTPStatus.CREATED:
        return f"started Job {name} again"
    return (
        f"Job {name} was deleted, but not created again ({refused['message']}):"
        f" run `kubectl wait job/{name} -n {namespace} --for=delete --timeout=10m`, and {_MAKE_IT}"
    )


async def _answered(
    client: KubernetesClient, method: str, path: str, deadline: Deadline, **more: Any
) -> tuple[int, Mapping[str, Any]]:
    """The status of an answer, and the answer with a message; a server that is away or late answers too.

    What a person decided is done by then: that is not to end as a failure of all of it.
    """
    try:
        status, answer = await client.ask(method, path, deadline, **more)
    except (StateUnavailable, OutOfTime) as error:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"message": str(error)}
    return status, {"message": f"the API server answered {status}", **answer}


def _again(job: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest that a Job was created from."""
    spec = {name: value for name, value in job["spec"].items() if name not in {"selector", "suspend"}}
    template = spec["template"]
    labels = template["metadata"].get("labels") or {}
    template = {**template, "metadata": {**template["metadata"], "labels": _own(labels)}}
    metadata = {name: value for name, value in job["metadata"].items() if name not in _OF_THE_SERVER}
    metadata["labels"] = _own(metadata.get("labels") or {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**spec, "template": template},
    }


def _own(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in labels.items() if not name.startswith(_OF_THE_CONTROLLER)}
