"""Starting the Job of a rollout again, after a person has let it go on."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.cluster.jobs import ending_of, oldest_first
from twgen.model.spec import WorkerSpec
from twgen.versioning.names import rollout_selector

_UNTIL_GONE = 0.5
"""Seconds between two attempts."""
_OF_THE_SERVER = {
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation",
    "managedFields", "resourceVersion", "selfLink", "uid",
}  # fmt: skip
_OF_THE_CONTROLLER = ("batch.kubernetes.io/", "controller-uid", "job-name")
"""Labels that the job controller gives to a Job and its Pods."""


async def restart_job(client: KubernetesClient, spec: WorkerSpec, deadline: Deadline) -> str:
    """Start the worker's Job again when it has ended; what was done or is to do, empty: nothing.

    The same manifest is created under the same name, so that Argo CD takes it for its own.
    """
    jobs = f"/apis/batch/v1/namespaces/{spec.namespace}/jobs"
    status, listed = await client.ask(
        "GET", jobs, deadline, query={"labelSelector": rollout_selector(spec.name)}
    )
    ended = [job for job in listed.get("items") or () if status == HTTPStatus.OK and ending_of(job)]
    if not ended:
        return ""
    newest = oldest_first(ended)[-1]
    name, uid = newest["metadata"]["name"], newest["metadata"]["uid"]
    options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
    status, _ = await client.ask("DELETE", f"{jobs}/{name}", deadline, body=options)
    if status in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
        status = HTTPStatus.CONFLICT
        while status == HTTPStatus.CONFLICT and deadline.remaining > 1:  # until the old one is gone
            status, _ = await client.ask("POST", jobs, deadline, body=_again(newest))
            await asyncio.sleep(_UNTIL_GONE if status == HTTPStatus.CONFLICT else 0)
    if status == HTTPStatus.CREATED:
        return f"started Job {name} again"
    return (
        f"Job {name} has ended, and this account may not start it again: `kubectl delete job {name}"
        f" -n {spec.namespace}`, and Argo CD makes it again; elsewhere, apply the manifests once more"
    )


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
