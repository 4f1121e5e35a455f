"""Reads from Kubernetes: API paths and lists, one worker's objects, and the rollouts in all namespaces.

Objects in one namespace can never prevent twgen from reading other namespaces.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Literal

from twgen.clients.deadline import Deadline
from twgen.clients.http import Unreadable
from twgen.clients.kubernetes import MOST_LISTED, Forbidden, KubernetesClient, Part, error_of, listed, path_of
from twgen.cluster.deployments import created_at, end_of_job, live_deployments, oldest_first
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.paths import value_at
from twgen.model.rollout import Driver, RolloutMetadata
from twgen.model.spec import WorkerKey, WorkerSpec
from twgen.model.world import Autoscaler, LiveDeployment, ReplayRun, ReplayState, WorkerWorld
from twgen.planning.routing.gates import replay_of
from twgen.reading.temporal.checks import shared
from twgen.records.rollout_status import written_requests
from twgen.specs.attached import HPA, SCALED_OBJECT
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    DEPLOYMENT_NAME_LABEL,
    DRIVER,
    INTENT_HASH,
    REPLAY_OF,
    ROLLOUT,
    TAKEN_OVER,
    replay_selector,
    selector_labels,
)
from twgen.yaml.source import Budget, Limits

Manifest = Mapping[str, Any]

_AUTOSCALERS = (("autoscaling/v2", HPA.kind), ("keda.sh/v1alpha1", SCALED_OBJECT.kind))
_FORBIDDEN = "cannot be read: the account needs the verb list on {} in this namespace"


class ClusterReader:
    """Reads workers from Kubernetes within one deadline. Each namespace's Deployments are listed only once.

    Every method may raise StateUnavailable or OutOfTime.
    """

    def __init__(self, client: KubernetesClient, deadline: Deadline, namespace: str = "") -> None:
        self.client = client
        self.deadline = deadline
        self.namespace = namespace
        """A namespace to list even without specs, to find removed workers' Deployments, or empty."""
        self._listing: dict[str, asyncio.Task[Mapping[str, Sequence[Manifest]]]] = {}
        self._scaling: dict[str, asyncio.Task[tuple[Sequence[Autoscaler], str]]] = {}

    async def list(self, namespace: str) -> Mapping[str, Sequence[Manifest]]:
        """The Deployments of all workers in a namespace, by the value of the worker name label."""
        return await shared(self._listing, namespace, lambda: self._list(namespace))

    async def autoscalers(self, namespace: str) -> tuple[Sequence[Autoscaler], str]:
        """The Deployments' autoscalers in a namespace, and an error if a kind could not be read."""
        return await shared(self._scaling, namespace, lambda: self._autoscalers(namespace))

    async def _autoscalers(self, namespace: str) -> tuple[Sequence[Autoscaler], str]:
        found, failures = [], []
        for api, kind in _AUTOSCALERS:
            path = path_of(api, kind, namespace)
            try:
                answer = await read_path(self.client, path, self.deadline, may_be_absent=True)
                items = listed(path, answer) if answer else []
            except (StateUnavailable, OutOfTime) as error:
                failures.append(str(error))
                continue
            found += [scaler for item in items if (scaler := _autoscaler(kind, item))]
        return found, "; ".join(failures)

    def orphans(self, specs: Iterable[WorkerSpec]) -> Iterator[WorkerWorld]:
        """The workers that have Deployments in a listed namespace but no spec."""
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
        # the selector contains no other label, so that twgen also finds Deployments whose other labels were
        # removed manually
        by_label: dict[str, list[Manifest]] = defaultdict(list)
        for manifest in await self.client.deployments(namespace, DEPLOYMENT_NAME_LABEL, self.deadline):
            if not (label := value_at(manifest, "metadata", "labels", DEPLOYMENT_NAME_LABEL)):
                name = manifest["metadata"]["name"]
                raise StateUnavailable(
                    f"Deployment {namespace}/{name} cannot be read: the API server listed it for the"
                    f" label {DEPLOYMENT_NAME_LABEL}, but it does not have that label"
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
        """By build ID, why a version's newest Pod is not running. Versions without a problem are omitted."""
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
        # Pods created in the same second are sorted by name, so that every call chooses the same Pod
        pods = sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
        newest = {
            build_ids[label]: pod
            for pod in pods
            if (label := value_at(pod, "metadata", "labels", BUILD_ID_LABEL)) in build_ids
        }
        problems = {build_id: pod_problem(pod) for build_id, pod in newest.items()}
        return {build_id: problem for build_id, problem in problems.items() if problem}

    async def replay(self, spec: WorkerSpec) -> ReplayRun:
        """The state of the target's replay Job."""
        path = path_of("batch/v1", "Job", spec.namespace)
        try:
            listing = await read_list(
                self.client, path, self.deadline, {"labelSelector": replay_selector(spec.name)}
            )
        except Forbidden:
            return ReplayRun(ReplayState.MISSING, because=f"its Jobs {_FORBIDDEN.format('jobs')}")
        target = replay_of(spec)
        jobs = [
            job
            for job in oldest_first(listing)
            if value_at(job, "metadata", "annotations", REPLAY_OF) == target
            and not value_at(job, "metadata", "deletionTimestamp")
        ]
        return _replay_run(jobs[-1]) if jobs else ReplayRun(ReplayState.MISSING)


def _autoscaler(kind: str, item: Manifest) -> Autoscaler | None:
    """Convert an object to a Deployment's autoscaler.

    Returns None if the object's target is not a Deployment, KEDA owns the object, or it is being deleted.
    """
    target_kind, target = (value_at(item, "spec", "scaleTargetRef", field) for field in ("kind", "name"))
    owners = value_at(item, "metadata", "ownerReferences") or ()
    is_owned = any(owner.get("kind") == SCALED_OBJECT.kind for owner in owners)
    is_going = value_at(item, "metadata", "deletionTimestamp")
    # if a ScaledObject omits the target's kind, KEDA uses Deployment
    if target_kind not in {None, "Deployment"} or not target or is_owned or is_going:
        return None
    return Autoscaler(kind, item["metadata"]["name"], str(target))


def _replay_run(job: Manifest) -> ReplayRun:
    name, end = job["metadata"]["name"], end_of_job(job)
    run = ReplayRun(ReplayState.RUNNING, name, created_at=created_at(job))
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
    """The input of a worker's gate, from the spec, a ConfigMap or a Secret, or None if there is no input."""
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
    """Why a Pod is not running, according to the Pod's status, or empty if no problem is known.

    The text continues a sentence that begins with "its newest Pod", for example
    `crashes (Error, exit code 3) and waits (CrashLoopBackOff)`.
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
            waiting.pop("message", None)  # the message contains a back-off time that changes between reads
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
    """Read the objects in the list at a path."""
    return listed(path, await read_path(client, path, deadline, query))


async def read_path(
    client: KubernetesClient,
    path: str,
    deadline: Deadline,
    query: Mapping[str, str] | None = None,
    *,
    may_be_absent: bool = False,
    **how: Any,
) -> Mapping[str, Any]:
    """Read the object or list at a path. `how` contains further arguments for `client.ask`.

    The result is empty if the object does not exist and `may_be_absent` is true.
    """
    status, answer = await client.ask("GET", path, deadline, query=query, **how)
    if status == HTTPStatus.NOT_FOUND and may_be_absent:
        return {}
    if status != HTTPStatus.OK:
        raise error_of(status)(f"{path} cannot be read: {answer.get('message') or status}")
    return answer


async def read_config_map(
    client: KubernetesClient, namespace: str, name: str, deadline: Deadline
) -> Mapping[str, Any]:
    """Read a ConfigMap. The result is empty if the ConfigMap does not exist."""
    return await read_path(client, path_of("v1", "ConfigMap", namespace, name), deadline, may_be_absent=True)


def owners_of(item: Mapping[str, Any]) -> frozenset[str]:
    """The UIDs of an object's owners."""
    owners = value_at(item, "metadata", "ownerReferences") or ()
    return frozenset(owner["uid"] for owner in owners if "uid" in owner)


_PAGE, _PAGE_OF_METADATA = 50, 500
_OF_A_PAGE = Limits(text_bytes=12 * 2**20, bytes=12 * 2**20, nodes=600_000)
"""The limits of a page, which must have room for one ConfigMap. A ConfigMap of 1.5 MiB (the maximum) can take
9 MiB as JSON, because `<` is escaped as six bytes."""
_OF_A_NAMESPACE = 8 * _OF_A_PAGE.bytes
_LEAST = 2**12
"""The number of bytes that an object counts as at least. It limits the number of objects in a namespace."""


async def rollout_objects(  # noqa: PLR0913 - each is a part of the request
    client: KubernetesClient,
    kind: Literal["ConfigMap", "Job"],
    namespace: str,
    deadline: Deadline,
    skip: Callable[[str], None],
    *,
    only: Part | None = None,
) -> AsyncIterator[Manifest]:
    """Read the objects with the rollout label in a namespace (empty for all namespaces), page by page.

    If a page is too large, it is read again with half as many objects. If an object is too large, it is
    skipped. If a namespace contains too much data, its remaining objects are skipped. `skip` is called with a
    sentence about each skipped object or namespace. Raises StateUnavailable or OutOfTime.
    """
    path = path_of("batch/v1" if kind == "Job" else "v1", kind, namespace)
    most = size = _PAGE_OF_METADATA if only else _PAGE
    query, left_out = {"labelSelector": ROLLOUT, "continue": ""}, list[str]()
    seen, used = 0, Counter[str]()
    while seen < MOST_LISTED:
        budget = Budget(_OF_A_PAGE)
        query["limit"] = str(size)
        try:
            page = await _page(client, path, query, deadline, budget, only=only)
        except Unreadable as error:
            if size > 1:
                size //= 2
                continue
            page = await _names(client, path, query, deadline)
            for name in page["names"]:
                skip(f"{kind} {name} is left out: {error}")
        items = page.get("items", [])
        for item in items:
            used[_namespace(item)] += max(_LEAST, budget.bytes // len(items))
            yield item
        for full in [name for name, total in used.items() if total > _OF_A_NAMESPACE]:
            del used[full]
            left_out.append(f"metadata.namespace!={full}")
            skip(
                f"namespace {full}: its {kind}s with the label {ROLLOUT} have more than"
                f" {_OF_A_NAMESPACE // 2**20} MiB, so twgen skips the rest: delete {kind}s that do not belong"
                " to rollouts"
            )
        query["fieldSelector"] = ",".join(left_out)
        query["continue"] = value_at(page, "metadata", "continue") or ""
        if not query["continue"] or (left_out and namespace):
            return
        if 2 * budget.bytes <= _OF_A_PAGE.bytes:
            size = min(2 * size, most)
        seen += len(items) or size
    raise StateUnavailable(f"{path} cannot be read: its list has more than {MOST_LISTED} objects")


async def _page(  # noqa: PLR0913 - each is a part of a request
    client: KubernetesClient,
    path: str,
    query: Mapping[str, str],
    deadline: Deadline,
    budget: Budget,
    *,
    only: Part | None,
) -> dict[str, Any]:
    page = await read_path(client, path, deadline, query, only=only, budget=budget)
    if only and isinstance(items := page.get("items"), list):
        # in a list of metadata, the items have a different kind
        page = {**page, "items": [{"metadata": value_at(item, "metadata")} for item in items]}
    return {**page, "items": listed(path, page)}


async def _names(
    client: KubernetesClient, path: str, query: Mapping[str, str], deadline: Deadline
) -> dict[str, Any]:
    """Read only the names of a page's objects, so that they can be reported before the next page is read."""
    with suppress(Unreadable):
        page = await _page(client, path, query, deadline, Budget(_OF_A_PAGE), only=Part.METADATA)
        names = [f"{_namespace(item)}/{item['metadata']['name']}" for item in page["items"]]
        return {"metadata": page.get("metadata"), "names": names}
    # the metadata may be nested too deeply for the JSON parser
    query = {**query, "includeObject": "None"}
    table = await read_path(client, path, deadline, query, only=Part.NAME, budget=Budget(_OF_A_PAGE))
    names = [str(row["cells"][0]) for row in table.get("rows") or () if value_at(row, "cells")]
    return {"metadata": table.get("metadata"), "names": names}


def _namespace(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["namespace"])


async def list_rollouts(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> list[RolloutMetadata]:
    """The rollouts that tick runs in a namespace (empty for all namespaces).

    Raises StateUnavailable or OutOfTime.
    """
    intents: list[Mapping[str, Any]] = []
    requests: dict[tuple[str, str], str] = {}
    versions: dict[tuple[str, str], str] = {}
    # skipped objects are not reported here, because every check reports them anyway
    async for item in rollout_objects(
        client, "ConfigMap", namespace, deadline, lambda _: None, only=Part.METADATA
    ):
        annotations = value_at(item, "metadata", "annotations") or {}
        is_taken_over = annotations.get(TAKEN_OVER) == annotations.get(INTENT_HASH, "")
        if annotations.get(DRIVER) == Driver.TICK or is_taken_over:
            intents.append(item)
        elif not annotations.get(INTENT_HASH):
            versions[_worker_of(item)] = str(item["metadata"].get("resourceVersion"))
        if written := written_requests(item["metadata"]):
            requests[_worker_of(item)] = written
    return [
        RolloutMetadata(
            item["metadata"]["namespace"],
            item["metadata"]["name"],
            str(item["metadata"]["annotations"].get(INTENT_HASH, "")),
            str(item["metadata"].get("uid")),
            requests.get(_worker_of(item), ""),
            versions.get(_worker_of(item), ""),
        )
        for item in intents
    ]


def _worker_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """The namespace and the rollout label, which are the same for an intent and its status."""
    return item["metadata"]["namespace"], str(value_at(item, "metadata", "labels", ROLLOUT))
