"""Asking Kubernetes: paths and lists, and the Deployments, Pods and replay of one worker."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient, config_map_path, jobs_path, listed
from twgen.cluster.deployments import end_of_job, live_deployments, oldest_first
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.paths import value_at
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.times import parse_time
from twgen.model.world import Autoscaler, LiveDeployment, ReplayRun, ReplayState, WorkerWorld
from twgen.planning.routing.gates import replay_of
from twgen.specs.attached import HPA, SCALED_OBJECT
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    DEPLOYMENT_NAME_LABEL,
    REPLAY_OF,
    replay_selector,
    resource_of_kind,
    selector_labels,
)

Manifest = Mapping[str, Any]

_AUTOSCALERS = (("autoscaling/v2", HPA.kind), ("keda.sh/v1alpha1", SCALED_OBJECT.kind))
_FORBIDDEN = "cannot be read: the account needs the verb list on {} in this namespace"


class ClusterReader:
    """Reads workers from Kubernetes, with one deadline, and a single LIST of Deployments for each namespace.

    Every method raises StateUnavailable or OutOfTime.
    """

    def __init__(self, client: KubernetesClient, deadline: Deadline, namespace: str = "") -> None:
        self.client = client
        self.deadline = deadline
        self.namespace = namespace
        """Listed even if no spec names it, to find Deployments of removed workers; empty: no other one."""
        self._listing: dict[str, asyncio.Task[Mapping[str, Sequence[Manifest]]]] = {}
        self._scaling: dict[str, asyncio.Task[tuple[Sequence[Autoscaler], str]]] = {}

    async def list(self, namespace: str) -> Mapping[str, Sequence[Manifest]]:
        """The Deployments of all workers in a namespace, by the label that names the worker."""
        if namespace not in self._listing:
            self._listing[namespace] = asyncio.create_task(self._list(namespace))
        # a worker that cannot be read must not cancel the list that other workers wait for
        return await asyncio.shield(self._listing[namespace])

    async def autoscalers(self, namespace: str) -> tuple[Sequence[Autoscaler], str]:
        """The autoscalers of Deployments in a namespace, and why there may be more; empty: all were read."""
        if namespace not in self._scaling:
            self._scaling[namespace] = asyncio.create_task(self._autoscalers(namespace))
        return await asyncio.shield(self._scaling[namespace])

    async def _autoscalers(self, namespace: str) -> tuple[Sequence[Autoscaler], str]:
        found, failures = [], []
        for api, kind in _AUTOSCALERS:
            path = f"/apis/{api}/namespaces/{namespace}/{resource_of_kind(kind)}"
            try:
                answer = await read_path(self.client, path, self.deadline, may_be_absent=True)
                items = listed(path, answer) if answer else []
            except (StateUnavailable, OutOfTime) as error:
                failures.append(str(error))
                continue
            found += [scaler for item in items if (scaler := _autoscaler(kind, item))]
        return found, "; ".join(failures)

    def orphans(self, specs: Iterable[WorkerSpec]) -> Iterator[WorkerWorld]:
        """The workers that have Deployments in a listed namespace, but no spec."""
        labels_of_specs = {(spec.namespace, _label(spec)) for spec in specs}
        by_worker: dict[WorkerKey, list[LiveDeployment]] = defaultdict(list)
        for namespace, listing in self._listing.items():
            for label, manifests in listing.result().items():
                if (namespace, label) not in labels_of_specs:
                    for live in live_deployments(manifests):
                        recorded = live.recorded
                        key = WorkerKey(recorded.worker_deployment, recorded.temporal_namespace)
                        by_worker[key].append(live)
        for key, deployments in by_worker.items():
            if key.worker_deployment:
                yield WorkerWorld(*key, temporal_was_read=False, deployments=tuple(deployments))

    async def _list(self, namespace: str) -> Mapping[str, Sequence[Manifest]]:
        # a Deployment that lost its other labels by hand is still seen
        by_label: dict[str, list[Manifest]] = defaultdict(list)
        for manifest in await self.client.deployments(namespace, DEPLOYMENT_NAME_LABEL, self.deadline):
            if not (label := value_at(manifest, "metadata", "labels", DEPLOYMENT_NAME_LABEL)):
                name = manifest["metadata"]["name"]
                raise StateUnavailable(
                    f"Deployment {namespace}/{name} cannot be read: the API server listed it for the"
                    f" label {DEPLOYMENT_NAME_LABEL}, but it has no such label"
                )
            by_label[label].append(manifest)
        return by_label

    async def deployments(self, spec: WorkerSpec) -> tuple[LiveDeployment, ...]:
        """The worker's live Deployments."""
        by_label = await self.list(spec.namespace)
        return tuple(live_deployments(by_label.get(_label(spec), ())))

    async def pod_problems(
        self, spec: WorkerSpec, deployments: Sequence[LiveDeployment]
    ) -> Mapping[str, str]:
        """Why the newest Pod of a Deployment does not run, by build ID; those that run are left out."""
        if not deployments:
            return {}
        build_ids = {
            selector_labels(spec.name, live.build_id)[BUILD_ID_LABEL]: live.build_id for live in deployments
        }
        versions = f"{BUILD_ID_LABEL} in ({','.join(sorted(build_ids))})"
        selector = f"{DEPLOYMENT_NAME_LABEL}={_label(spec)},{versions}"
        try:
            pods = await self.client.pods(spec.namespace, selector, self.deadline)
        except Forbidden:
            return dict.fromkeys(build_ids.values(), _FORBIDDEN.format("pods"))
        # Pods of the same second are sorted by name, so that every call picks the same one
        pods = sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
        newest = {
            build_ids[label]: pod
            for pod in pods
            if (label := value_at(pod, "metadata", "labels", BUILD_ID_LABEL)) in build_ids
        }
        problems = {build_id: pod_problem(pod) for build_id, pod in newest.items()}
        return {build_id: problem for build_id, problem in problems.items() if problem}

    async def replay(self, spec: WorkerSpec) -> ReplayRun:
        """How far the replay of the worker's target is."""
        path = jobs_path(spec.namespace)
        selected = {"labelSelector": replay_selector(spec.name)}
        status, answer = await self.client.ask("GET", path, self.deadline, query=selected)
        if status == HTTPStatus.FORBIDDEN:
            return ReplayRun(ReplayState.MISSING, because=f"its Jobs {_FORBIDDEN.format('jobs')}")
        if status != HTTPStatus.OK:
            raise StateUnavailable(f"{path} cannot be read: {answer.get('message') or status}")
        target = replay_of(spec)
        jobs = [
            job
            for job in oldest_first(listed(path, answer))
            if value_at(job, "metadata", "annotations", REPLAY_OF) == target
            and not value_at(job, "metadata", "deletionTimestamp")
        ]
        return _replay_run(jobs[-1]) if jobs else ReplayRun(ReplayState.MISSING)


def _autoscaler(kind: str, item: Manifest) -> Autoscaler | None:
    """The autoscaler of a Deployment; None: it is being deleted, or it belongs to an autoscaler of KEDA."""
    target_kind, target = (value_at(item, "spec", "scaleTargetRef", field) for field in ("kind", "name"))
    owners = value_at(item, "metadata", "ownerReferences") or ()
    is_owned = any(owner.get("kind") == SCALED_OBJECT.kind for owner in owners)
    is_going = value_at(item, "metadata", "deletionTimestamp")
    # without a kind, KEDA scales a Deployment
    if target_kind not in {None, "Deployment"} or not target or is_owned or is_going:
        return None
    return Autoscaler(kind, item["metadata"]["name"], str(target))


def _replay_run(job: Manifest) -> ReplayRun:
    name, end = job["metadata"]["name"], end_of_job(job)
    created = value_at(job, "metadata", "creationTimestamp")
    run = ReplayRun(
        ReplayState.RUNNING, name, created_at=parse_time(created) if isinstance(created, str) else None
    )
    if not end:
        is_suspended = value_at(job, "spec", "suspend")
        because = f"Job {name} is suspended"
        return replace(run, state=ReplayState.MISSING, because=because) if is_suspended else run
    if end.type == "Complete":
        return replace(run, state=ReplayState.PASSED)
    return replace(run, state=ReplayState.FAILED, because=" ".join(end.why.split()))


async def read_gate_input(
    spec: WorkerSpec, client: KubernetesClient | None, deadline: Deadline
) -> bytes | None:
    """The input of a worker's gate: JSON from its spec, or from a ConfigMap or Secret; None: no input."""
    gate = spec.rollout.gate
    if not gate or not gate.input_from:
        return None if not gate or gate.input is None else json.dumps(gate.input).encode()
    source = gate.input_from
    if not client:
        raise StateUnavailable(
            f"{spec.worker_deployment}: the input of its gate is in {source.kind} {source.name}, but"
            " twgen does not read a cluster"
        )
    return await client.data(source.kind, spec.namespace, source.name, source.key, deadline)


def _label(spec: WorkerSpec) -> str:
    return selector_labels(spec.name, spec.build_id)[DEPLOYMENT_NAME_LABEL]


def pod_problem(pod: Manifest) -> str:
    """Why a Pod does not run, in the words of its status; empty: no problem is known.

    It continues "its newest Pod": `crashes (Error, exit code 3) and waits (CrashLoopBackOff)`.
    """
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"has no node{_why(condition)}"
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = container.get("state") or {}
        last = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
        waiting = dict(state.get("waiting") or {})
        if waiting.get("reason") == "CrashLoopBackOff":
            waiting.pop("message", None)  # it counts seconds, so every read would look like a change
        waits = f"waits{_why(waiting)}" if "waiting" in state else ""
        if code := last.get("exitCode"):
            crashes = f"crashes{_why(last, f'exit code {code}')}"
            return f"{crashes} and {waits}" if waits else crashes
        if waits:
            return waits
    return f"failed{_why(status)}" if status.get("phase") == "Failed" else ""


def _why(state: Mapping[str, Any], *more: str) -> str:
    parts = [" ".join(str(state[key]).split()) for key in ("reason", "message") if state.get(key)]
    why = ", ".join([": ".join(parts), *more] if parts else more)
    return f" ({why})" if why else ""


async def read_list(
    client: KubernetesClient, path: str, deadline: Deadline, query: Mapping[str, str] | None = None
) -> list[Manifest]:
    """The objects of the list at a path."""
    return listed(path, await read_path(client, path, deadline, query))


async def read_path(
    client: KubernetesClient,
    path: str,
    deadline: Deadline,
    query: Mapping[str, str] | None = None,
    *,
    may_be_absent: bool = False,
) -> Mapping[str, Any]:
    """The object or list at a path, filtered by a query; empty if it is absent, and may be."""
    status, answer = await client.ask("GET", path, deadline, query=query)
    if status == HTTPStatus.NOT_FOUND and may_be_absent:
        return {}
    if status != HTTPStatus.OK:
        raise StateUnavailable(f"{path} cannot be read: {answer.get('message') or status}")
    return answer


async def read_config_map(
    client: KubernetesClient, namespace: str, name: str, deadline: Deadline
) -> Mapping[str, Any]:
    """A ConfigMap; empty: there is none."""
    return await read_path(client, config_map_path(namespace, name), deadline, may_be_absent=True)


def pods_path(namespace: str) -> str:
    """The path of the Pods of a namespace; empty: of all namespaces."""
    return f"/api/v1{f'/namespaces/{namespace}' if namespace else ''}/pods"


def owners_of(item: Mapping[str, Any]) -> frozenset[str]:
    """The UIDs of an object's owners, with which it is deleted."""
    return frozenset(owner["uid"] for owner in value_at(item, "metadata", "ownerReferences") or ())
