"""Makes single changes in a rollout's cluster, writes people's requests, and restarts Jobs."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Literal

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import (
    Forbidden,
    KubernetesClient,
    MergePatch,
    error_of,
    path_of,
)
from twgen.cluster.deployments import end_of_job, oldest_first
from twgen.cluster.field_managers import ARGO_CD, KUBECTL, ROLLOUT
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.credentials import without_credentials
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.rollout import Answer, JobReference, PendingRequest, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.model.times import format_time
from twgen.planning.cluster_changes import AttachedInCluster, AttachedRecord, Owning, ReplicasChange
from twgen.records.intent import Intent
from twgen.records.rollout_status import ANSWER_ENTRIES, annotation_of, write_answer, write_request
from twgen.versioning.names import (
    ADDED,
    DEPLOYMENT_API,
    GONE,
    TAKEN_OVER,
    rollout_labels,
    rollout_name,
    rollout_status_name,
)

_GONE_OR_NEWER = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}

EventType = Literal["Normal", "Warning"]
_RECREATE = "Argo CD recreates the Job; without Argo CD, apply the output of `twgen render` again"
_SERVER_FIELDS = {
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "generation",
    "managedFields", "resourceVersion", "selfLink", "uid",
}  # fmt: skip
_CONTROLLER_LABELS = ("batch.kubernetes.io/", "controller-uid", "job-name")
"""Labels that the job controller adds to a Job and its Pods."""


class ClusterWriter:
    """Makes a rollout's changes in its cluster. Each method makes a single API call.

    A method raises StateUnavailable if the call fails, and OutOfTime if the outcome is unknown.
    """

    def __init__(
        self, client: KubernetesClient, intent: Intent, timeout: float, field_manager: str = ROLLOUT
    ) -> None:
        self._client = client
        self._intent = intent
        self._timeout = timeout
        self._field_manager = field_manager

    async def scale(self, change: ReplicasChange) -> None:
        """Set the replicas of a Deployment, with the rollout's own field manager."""
        # because of the resource version, the API server rejects the change if the Deployment has changed
        # since it was read, so a newer replica count is never overwritten
        metadata = {"resourceVersion": change.resource_version}
        await self._apply_deployment(change.deployment, metadata, spec={"replicas": change.replicas})

    async def delete(self, path: str, uid: str) -> bool:
        """Delete the object with this UID and its dependents, but not a newer object of the same name.

        Returns whether the object is gone. An object with finalizers still exists after the call.
        """
        answer = await self._send("DELETE", path, _deletion_of(uid), _GONE_OR_NEWER)
        return not value_at(answer, "metadata", "deletionTimestamp")

    async def attach(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> AttachedInCluster:
        """Apply an attached object without its owners, with the field manager of the worker's other objects.

        A dry run only checks whether the API server would accept the object.
        """
        kind, metadata = GroupKind.of(manifest), {**manifest["metadata"]}
        metadata.pop("ownerReferences", None)
        api_version, namespace, name = manifest["apiVersion"], metadata["namespace"], metadata["name"]
        path = path_of(api_version, kind.kind, namespace, name)
        # with a different field manager, the next sync could not remove the fields that this apply sets
        manager = ARGO_CD if self._intent.application else KUBECTL
        options = {"fieldManager": manager} | ({"dryRun": "All"} if dry_run else {})
        answer = await self._apply(path, {**manifest, "metadata": metadata}, options=options)
        owners = value_at(answer, "metadata", "ownerReferences") or ()
        return AttachedInCluster(
            kind=kind,
            path=path,
            api_version=api_version,
            name=name,
            uid=str(value_at(answer, "metadata", "uid")),
            owners=frozenset(owner["uid"] for owner in owners),
        )

    async def remember(self, deployment: str, record: AttachedRecord) -> None:
        """Record on a Deployment which attached objects were added or are gone, for the next render."""
        annotations = {ADDED: ",".join(sorted(record.added)), GONE: ",".join(sorted(record.gone))}
        # a separate field manager: with the replicas' field manager, this apply would remove the replicas
        await self._apply_deployment(deployment, {"annotations": annotations}, "twgen-attached")

    async def own(self, owning: Owning) -> None:
        """Make a versioned Deployment the owner of an attached object, unless that object is gone."""
        item, owner = owning.item, {"name": owning.deployment, "uid": owning.uid}
        metadata = {
            "name": item.name,
            "namespace": self._intent.namespace,
            "uid": item.uid,
            "ownerReferences": [{"apiVersion": DEPLOYMENT_API, "kind": "Deployment", **owner}],
        }
        manifest = {"apiVersion": item.api_version, "kind": item.kind.kind, "metadata": metadata}
        # a separate field manager: the next sync omits the owners, and must not remove this owner
        await self._apply(item.path, manifest, _GONE_OR_NEWER, {"fieldManager": "twgen-owner"})

    async def delete_job(self, job: JobReference) -> None:
        """Delete a Job and its Pods, so that another Job for the same intent can run later."""
        await self.delete(path_of("batch/v1", "Job", self._intent.namespace, job.name), job.uid)

    async def record(self, status: Mapping[str, str], *, over: str | None = None) -> None:
        """Write the rollout's status. Kubernetes deletes the status together with the intent.

        `over` is the resource version that can be replaced: an empty string if the status must not exist yet,
        or None to replace any status. A newer status from another process is kept.
        """
        intent = self._intent
        name = rollout_status_name(intent.worker)
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": intent.namespace,
                "labels": rollout_labels(intent.worker),
                "ownerReferences": [self._reference()],
                **({"resourceVersion": over} if over else {}),
            },
            "data": {name: without_credentials(text) for name, text in status.items()},
        }
        path = path_of("v1", "ConfigMap", intent.namespace, name)
        newer = set() if over is None else {HTTPStatus.CONFLICT}
        await self._apply(path, manifest, newer, {"force": str(over != "").lower()})

    async def answer(self, *answered: tuple[PendingRequest, Answer | None]) -> str:
        """Write answers to requests that were read together. Returns the status's new resource version.

        A final answer also removes its request. If the answer is None, the request is only removed.
        Raises Conflict if the status has changed since it was read.
        """
        name = rollout_status_name(self._intent.worker)
        removed = [pending.annotation for pending, answer in answered if not answer or answer.is_final]
        entries = {
            ANSWER_ENTRIES[pending.annotation]: without_credentials(
                write_answer(answer.after(pending.answer))
            )
            for pending, answer in answered
            if answer
        }
        over = answered[0][0].resource_version
        metadata = {"resourceVersion": over, "annotations": dict.fromkeys(removed)}
        path = path_of("v1", "ConfigMap", self._intent.namespace, name)
        # a separate field manager: otherwise, the next status apply would remove these entries
        patch, query = MergePatch(metadata=metadata, data=entries), {"fieldManager": "twgen-requests"}
        patched = await self._send("PATCH", path, patch, query=query)
        return str(value_at(patched, "metadata", "resourceVersion"))

    async def take_over(self, *, lasts: bool) -> None:
        """Record on the intent whether `twgen tick` carries out the rollout instead of the hook."""
        intent = self._intent
        annotations = {TAKEN_OVER: intent.hash if lasts else None}
        path = path_of("v1", "ConfigMap", intent.namespace, rollout_name(intent.worker))
        patch = MergePatch(metadata={"uid": intent.uid, "annotations": annotations})
        await self._send("PATCH", path, patch, _GONE_OR_NEWER, {"fieldManager": self._field_manager})

    async def add_event(self, kind: EventType, reason: str, message: str, at: datetime) -> None:
        """Write a Kubernetes Event about the intent."""
        intent, time = self._intent, format_time(at)
        manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{rollout_name(intent.worker)}.", "namespace": intent.namespace},
            "involvedObject": {**self._reference(), "namespace": intent.namespace},
            "type": kind,
            "reason": reason,
            "message": without_credentials(message)[:1024],
            "source": {"component": "twgen"},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        await self._send("POST", path_of("v1", "Event", intent.namespace), manifest)

    def _reference(self) -> dict[str, str]:
        name, uid = rollout_name(self._intent.worker), self._intent.uid
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}

    async def _apply_deployment(
        self, name: str, metadata: Mapping[str, Any], manager: str = "", **fields: Any
    ) -> None:
        namespace = self._intent.namespace
        own_metadata = {"name": name, "namespace": namespace, **metadata}
        manifest = {"apiVersion": DEPLOYMENT_API, "kind": "Deployment", "metadata": own_metadata, **fields}
        path = path_of(DEPLOYMENT_API, "Deployment", namespace, name)
        await self._apply(path, manifest, options={"fieldManager": manager or self._field_manager})

    async def _apply(
        self,
        path: str,
        manifest: Mapping[str, Any],
        also: Collection[int] = (),
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> Mapping[str, Any]:
        query = {"fieldManager": self._field_manager, "force": "true", **options}
        return await self._send("PATCH", path, manifest, also, query)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        also: Collection[int] = (),
        query: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Send a request. The HTTP statuses in `also` count as success too."""
        deadline = Deadline(self._timeout)
        status, answer = await self._client.ask(method, path, deadline, query=query, body=body)
        if not (200 <= status < 300 or status in also):
            why = answer.get("message") or status
            raise error_of(status)(f"{method} {path}: the API server rejected the request: {why}")
        return answer


async def send(
    client: KubernetesClient, judged_by: RolloutStatus, request: Request, deadline: Deadline
) -> None:
    """Write a person's request, which was checked against the status `judged_by`.

    Raises Conflict if the status has changed since this check. An abort is written even if the status has
    changed, because an abort never replaces another request. Also raises StateUnavailable and OutOfTime.
    """
    namespace, _, worker = judged_by.worker.partition("/")
    path = path_of("v1", "ConfigMap", namespace, rollout_status_name(worker))
    over = {} if request.verb is Verb.ABORT else {"resourceVersion": judged_by.resource_version}
    annotations = {annotation_of(request.verb): write_request(request)}
    body, query = MergePatch(metadata={"annotations": annotations, **over}), {"fieldManager": "twgen-person"}
    status, answer = await client.ask("PATCH", path, deadline, query=query, body=body)
    if status == HTTPStatus.FORBIDDEN:
        raise Forbidden(
            f"you are not allowed to send requests to {namespace}/{worker}: you need permission to patch"
            f" ConfigMap {rollout_status_name(worker)} ({answer.get('message')})"
        )
    if status != HTTPStatus.OK:
        why = answer.get("message") or status
        raise error_of(status)(f"PATCH {path}: the API server rejected the request: {why}")


async def restart_job(client: KubernetesClient, namespace: str, selector: str, deadline: Deadline) -> str:
    """Restart the newest Job that matches a label selector if the Job has ended.

    Returns a sentence that reports the restart, or that names the command to run instead. Returns an empty
    string if there is no such Job or if it has not ended. The Job is recreated from the same manifest under
    the same name, so that Argo CD still tracks the Job.
    """
    path = path_of("batch/v1", "Job", namespace)
    query = {"labelSelector": selector}
    status, listed = await _answered(client, "GET", path, deadline, query=query)
    if status != HTTPStatus.OK:
        command = f"kubectl get jobs -n {namespace} -l {selector}"
        return f"could not check whether its Job has ended ({listed['message']}): run `{command}`"
    jobs = oldest_first(listed.get("items") or ())
    if not jobs or not end_of_job(newest := jobs[-1]):
        return ""
    name, uid = newest["metadata"]["name"], newest["metadata"]["uid"]
    status, refused = await _answered(client, "DELETE", f"{path}/{name}", deadline, body=_deletion_of(uid))
    if status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
        return (
            f"Job {name} has ended, but could not be restarted ({refused['message']}):"
            f" run `kubectl delete job {name} -n {namespace}`, and {_RECREATE}"
        )
    status = HTTPStatus.CONFLICT
    while status == HTTPStatus.CONFLICT and deadline.remaining > 1:  # the old Job still exists
        status, refused = await _answered(client, "POST", path, deadline, body=_manifest_of(newest))
        if status == HTTPStatus.CONFLICT:
            _, current = await _answered(client, "GET", f"{path}/{name}", deadline)
            if value_at(current, "metadata", "uid") not in {None, uid}:
                return f"another client restarted Job {name}"
            await asyncio.sleep(0.5)
    if status == HTTPStatus.CREATED:
        return f"restarted Job {name}"
    return (
        f"Job {name} was deleted, but could not be recreated ({refused['message']}):"
        f" run `kubectl wait job/{name} -n {namespace} --for=delete --timeout=10m`, and {_RECREATE}"
    )


async def _answered(
    client: KubernetesClient, method: str, path: str, deadline: Deadline, **more: Any
) -> tuple[int, Mapping[str, Any]]:
    """Send a request, and return the status and the body of the response.

    If the API server cannot be reached, the body's message says so. This function raises no TwgenError,
    because the person's command has already succeeded.
    """
    try:
        status, answer = await client.ask(method, path, deadline, **more)
    except (StateUnavailable, OutOfTime) as error:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"message": str(error)}
    return status, {"message": f"the API server answered {status}", **answer}


def _deletion_of(uid: str) -> dict[str, Any]:
    """The body of a request that deletes the object with this UID and its dependents."""
    return {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}


def _manifest_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest from which a Job was created."""
    spec = {name: value for name, value in job["spec"].items() if name not in {"selector", "suspend"}}
    metadata = {name: value for name, value in job["metadata"].items() if name not in _SERVER_FIELDS}
    spec["template"] = template = {**spec["template"], "metadata": {**spec["template"]["metadata"]}}
    for labelled in (metadata, template["metadata"]):
        labels = (labelled.get("labels") or {}).items()
        labelled["labels"] = {name: text for name, text in labels if not name.startswith(_CONTROLLER_LABELS)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
