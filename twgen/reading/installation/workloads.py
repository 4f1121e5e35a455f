"""Reading what keeps Pods from running, intents without a Job, and Deployments that nobody renders."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, jobs_path
from twgen.cluster.deployments import live_deployment
from twgen.cluster.jobs import end_of_job, oldest_first
from twgen.errors import StateUnavailable
from twgen.model.diagnosis import Seen
from twgen.model.paths import value_at
from twgen.model.times import parse_time
from twgen.planning.diagnosis.making import STARTS
from twgen.reading.kubernetes import config_map_path, pod_problem, pods_path, read_list, read_path
from twgen.records.intent import Intent
from twgen.versioning.names import (
    DEPLOYMENT_NAME_LABEL,
    INTENT_HASH,
    ROLLOUT,
    is_dns_name,
    rollout_labels,
    rollout_name,
)

_ENDED = {"Succeeded", "Failed"}
Object = Mapping[str, Any]


class Carriers(NamedTuple):
    """What carries rollouts out in some namespaces."""

    jobs: tuple[Object, ...]
    pods: tuple[Object, ...]


async def read_carriers(client: KubernetesClient, namespaces: Iterable[str], deadline: Deadline) -> Carriers:
    """The Jobs of rollouts and their Pods; raises StateUnavailable or OutOfTime."""
    jobs: list[Object] = []
    pods: list[Object] = []
    of_rollouts = {"labelSelector": ROLLOUT}
    for namespace in namespaces:
        jobs += await read_list(client, jobs_path(namespace), deadline, of_rollouts)
        pods += await read_list(client, pods_path(namespace), deadline, of_rollouts)
    return Carriers(tuple(oldest_first(jobs)), tuple(pods))


async def stuck_rollouts(
    client: KubernetesClient, carriers: Carriers, deadline: Deadline
) -> Mapping[str, Seen]:
    """The workers whose newest Job goes on and has no Pod that runs, and what keeps it."""
    newest = {_worker_of(job): job for job in carriers.jobs}
    found = {}
    for worker, job in newest.items():
        if end_of_job(job) or value_at(job, "spec", "suspend"):
            continue
        own = [pod for pod in carriers.pods if _is_of(pod, job)]
        last = max(own, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
        if last:
            seen = await _pod_seen(client, last, deadline)
        else:
            event = await _last_event(client, "Job", job, deadline)
            seen = _seen("Job", job, f"has no Pod: {event}") if event else None
        if seen:
            found[worker] = seen
    return found


async def jobless_intents(
    client: KubernetesClient,
    carriers: Carriers,
    intents: Iterable[Intent],
    worked_on: Mapping[str, str],
    deadline: Deadline,
) -> Mapping[str, datetime]:
    """The workers whose intent no Job has worked on, and when the intent changed last.

    `worked_on` is the hash of the intent that the status of each worker is about.
    """
    known = {
        (_worker_of(job), value_at(job, "metadata", "annotations", INTENT_HASH)) for job in carriers.jobs
    }
    found = {}
    for intent in intents:
        worker = f"{intent.namespace}/{intent.worker}"
        by_label = f"{intent.namespace}/{rollout_labels(intent.worker)[ROLLOUT]}"
        is_known = (by_label, intent.hash) in known or worked_on.get(worker) == intent.hash
        if not intent.is_rolled_out_by_hand and not intent.is_paused and not is_known:
            path = config_map_path(intent.namespace, rollout_name(intent.worker))
            _, manifest = await client.ask("GET", path, deadline)
            if changed := _changed_at(manifest):
                found[worker] = changed
    return found


async def pods_that_wait(
    client: KubernetesClient, namespace: str, labels: Mapping[str, str], deadline: Deadline
) -> tuple[Seen, ...]:
    """The Pods with these labels that do not run, and why; none where they may not be listed."""
    selector = ",".join(f"{name}={text}" for name, text in labels.items())
    try:
        pods = await client.pods(namespace, selector, deadline)
    except StateUnavailable:
        return ()
    # a Pod that has ended is history: of a CronJob, or evicted
    going = [pod for pod in pods if value_at(pod, "status", "phase") not in _ENDED]
    seen = [_seen("Pod", pod, pod_problem(pod)) for pod in going]
    return tuple(pod for pod in seen if pod.problem)


async def _pod_seen(client: KubernetesClient, pod: Object, deadline: Deadline) -> Seen | None:
    """What keeps a Pod from running; where its node has not said, an event may."""
    if value_at(pod, "status", "phase") in _ENDED:
        return None
    problem = pod_problem(pod)
    if problem.startswith(STARTS):
        event = await _last_event(client, "Pod", pod, deadline)
        problem = f"{problem}: {event}" if event else problem
    return _seen("Pod", pod, problem) if problem else None


def _seen(kind: str, item: Object, problem: str) -> Seen:
    metadata = item["metadata"]
    name = f"{kind} {metadata['namespace']}/{metadata['name']}"
    return Seen(name, problem, parse_time(metadata["creationTimestamp"]))


async def _last_event(client: KubernetesClient, kind: str, item: Object, deadline: Deadline) -> str:
    """The newest warning about an object; empty: there is none, or it may not be read."""
    metadata = item["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/events"
    of = f"involvedObject.kind={kind},involvedObject.uid={metadata['uid']},type=Warning"
    try:
        events = await read_list(client, path, deadline, {"fieldSelector": of})
    except StateUnavailable:
        return ""
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return " ".join(str(events[-1].get("message", "")).split()) if events else ""


def _worker_of(job: Object) -> str:
    metadata = job["metadata"]
    return f"{metadata['namespace']}/{value_at(job, 'metadata', 'labels', ROLLOUT)}"


def _is_of(pod: Object, job: Object) -> bool:
    owners = value_at(pod, "metadata", "ownerReferences") or ()
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners)


def _changed_at(manifest: Object) -> datetime | None:
    """When somebody changed an object last, as far as its managers tell."""
    managers = value_at(manifest, "metadata", "managedFields") or ()
    times = [str(manager["time"]) for manager in managers if manager.get("time")]
    created = value_at(manifest, "metadata", "creationTimestamp")
    changed = max(times, default=str(created or ""))
    return parse_time(changed) if changed else None


async def read_strays(
    client: KubernetesClient, namespaces: Iterable[str], known: Collection[str], deadline: Deadline
) -> Mapping[str, tuple[str, ...]]:
    """The Deployments of versions that an Argo CD application tracks, by worker, but of known workers."""
    found: dict[str, list[str]] = defaultdict(list)
    for namespace in namespaces:
        path = f"/apis/apps/v1{f'/namespaces/{namespace}' if namespace else ''}/deployments"
        for item in await read_list(client, path, deadline, {"labelSelector": DEPLOYMENT_NAME_LABEL}):
            if not (live := live_deployment({"apiVersion": "apps/v1", "kind": "Deployment", **item})):
                continue
            home, worker = item["metadata"]["namespace"], live.recorded.worker_deployment
            # anybody who writes a Deployment can name any worker in its pods
            is_its_own = worker.partition("/")[0] == home and is_dns_name(worker.partition("/")[2])
            is_tracked = live.tracked_by and live.identity and live.protected
            if is_tracked and is_its_own and worker not in known:
                found[worker].append(live.name)
    strays = {}
    for worker, names in found.items():
        namespace, _, name = worker.partition("/")
        path = config_map_path(namespace, rollout_name(name))
        # an intent that cannot be read is one all the same
        if not await read_path(client, path, deadline, may_be_absent=True):
            strays[worker] = tuple(names)
    return strays
