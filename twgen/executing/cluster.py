"""Changing the cluster in which a rollout is carried out: every method is one call, made once."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient, deletion_of, jobs_path
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.plan import WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.rollout import JobReference, RolloutInCluster
from twgen.model.times import format_time
from twgen.planning.cluster_changes import (
    AttachedInCluster,
    ReplicasChange,
    left_over,
    replica_changes,
)
from twgen.records.intent import Intent
from twgen.versioning.names import DEPLOYMENT_API, rollout_labels, rollout_name, rollout_status_name

_FIELD_MANAGER = "twgen"
"""The field manager of what a rollout applies."""
_DONE = range(200, 300)
_LONGEST_MESSAGE = 1024
"""Characters that Kubernetes takes of an Event's message."""


EventType = Literal["Normal", "Warning"]
"""Whether something is wrong."""


class KubernetesEvent(NamedTuple):
    """What a Kubernetes Event says."""

    type: EventType
    reason: str
    message: str
    at: datetime


class ClusterWriter:
    """Makes the changes of one rollout; every method raises StateUnavailable or OutOfTime."""

    def __init__(
        self, client: KubernetesClient, intent: Intent, timeout: float, field_manager: str = _FIELD_MANAGER
    ) -> None:
        self._client = client
        self._intent = intent
        self._timeout = timeout
        self._field_manager = field_manager

    async def scale(self, change: ReplicasChange) -> None:
        """Set the replicas of a Deployment, and hold them together with whoever applied them."""
        namespace, name = self._intent.namespace, change.deployment
        manifest = {
            "apiVersion": DEPLOYMENT_API,
            "kind": "Deployment",
            # refused when it has changed since: an autoscaler's newer word is never taken back
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": change.resource_version},
            "spec": {"replicas": change.replicas},
        }
        await self._apply(f"/apis/{DEPLOYMENT_API}/namespaces/{namespace}/deployments/{name}", manifest)

    async def delete(self, path: str, uid: str) -> None:
        """Delete this very object with all that it owns, and no other that has its name by now."""
        await self._send("DELETE", path, deletion_of(uid), {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})

    async def delete_job(self, job: JobReference) -> None:
        """Delete a Job and its Pods: one of the same intent, later on, is to run."""
        await self.delete(f"{jobs_path(self._intent.namespace)}/{job.name}", job.uid)

    async def record(self, status: Mapping[str, str], *, over: str | None = None) -> None:
        """Write the status of the rollout; it goes when its intent goes.

        With `over` only in place of that resource version (empty: of none): a newer one is somebody else's.
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
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "name": rollout_name(intent.worker),
                        "uid": intent.uid,
                    }
                ],
                **({"resourceVersion": over} if over else {}),
            },
            "data": dict(status),
        }
        path = f"/api/v1/namespaces/{intent.namespace}/configmaps/{name}"
        newer = set() if over is None else {HTTPStatus.CONFLICT}
        await self._apply(path, manifest, newer, force=over != "")

    async def tell(self, event: KubernetesEvent) -> None:
        """Write a Kubernetes Event about the intent."""
        intent, now = self._intent, format_time(event.at)
        manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{rollout_name(intent.worker)}.", "namespace": intent.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": rollout_name(intent.worker),
                "namespace": intent.namespace,
                "uid": intent.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:_LONGEST_MESSAGE],
            "source": {"component": "twgen"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._send("POST", f"/api/v1/namespaces/{intent.namespace}/events", manifest)

    async def _apply(
        self, path: str, manifest: Mapping[str, Any], also: Collection[int] = (), *, force: bool = True
    ) -> None:
        query = {"fieldManager": self._field_manager, "force": str(force).lower()}
        await self._send("PATCH", path, manifest, also, query)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        also: Collection[int] = (),
        query: Mapping[str, str] | None = None,
    ) -> None:
        """Make a request; an answer whose status is in `also` is as good as done."""
        deadline = Deadline(self._timeout)
        status, answer = await self._client.ask(method, path, deadline, query=query, body=body)
        if status not in _DONE and status not in also:
            why = answer.get("message") or status
            refused = Forbidden if status == HTTPStatus.FORBIDDEN else StateUnavailable
            raise refused(f"{method} {path}: the API server refuses: {why}")


class Adjustments:
    """What a rollout has changed in its cluster; nothing is changed twice, so that it fights nobody."""

    def __init__(
        self,
        writer: ClusterWriter,
        attached: Callable[[], Awaitable[list[AttachedInCluster]]],
        say: Callable[[str], None],
        tell_failure: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._writer = writer
        self._attached = attached
        self._say = say
        self._tell_failure = tell_failure
        self._made: set[tuple[str, int]] = set()
        self._is_clean = False
        self._failures: set[str] = set()

    async def make(self, plan: WorkerPlan, rollout: RolloutInCluster) -> None:
        """Change what the plan wants changed; what fails is tried again at the next look, and logged once."""
        for job in rollout.older_jobs:
            await self._try(self._writer.delete_job(job))
        if plan.is_held:
            return
        for change in replica_changes(plan.versions):
            key = change.deployment, change.replicas
            done = f"set Deployment {change.deployment} to {change.replicas}: {change.because}"
            if key not in self._made and await self._try(self._writer.scale(change), done):
                self._made.add(key)
        # Argo CD prunes what has no owner, and the account may not even list it
        if not self._is_clean and plan.spec.policy.owner_references is OwnerReferences.RENDER:
            await self._try(self._delete_left_over(plan))

    async def _delete_left_over(self, plan: WorkerPlan) -> None:
        gone = [
            await self._try(
                self._writer.delete(item.path, item.uid),
                f"deleted {item.kind.kind} {item.name}: its template is gone",
            )
            for item in left_over(plan.versions, await self._attached())
        ]
        self._is_clean = all(gone)

    async def _try(self, work: Awaitable[None], done: str = "") -> bool:
        """Whether it was done; nobody knows whether what timed out was, and the next look tells."""
        try:
            await work
        except (StateUnavailable, OutOfTime) as error:
            if str(error) not in self._failures:
                self._failures.add(str(error))
                self._say(str(error))
            if self._tell_failure:
                await self._tell_failure(str(error))
            return False
        if done:
            self._say(done)
        return True
