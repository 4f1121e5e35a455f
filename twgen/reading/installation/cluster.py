"""Reads permissions, accounts, clock differences and stuck Pods from an API server."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline, monotonic
from twgen.clients.kubernetes import KubernetesClient, path_of
from twgen.cluster.deployments import end_of_job, live_deployment, oldest_first
from twgen.errors import StateUnavailable
from twgen.model.diagnosis import Account, Need, Seen
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.times import later, parse_time
from twgen.planning.diagnosis.argocd import STARTS
from twgen.planning.diagnosis.rights import SERVICE_ACCOUNT
from twgen.reading.kubernetes import owners_of, pod_problem, read_config_map, read_list
from twgen.versioning.names import DEPLOYMENT_API, DEPLOYMENT_NAME_LABEL, ROLLOUT, is_dns_name, rollout_name

_ENDED = {"Succeeded", "Failed"}
Object = Mapping[str, Any]


async def stuck_rollouts(
    client: KubernetesClient, namespaces: Iterable[str], deadline: Deadline
) -> Mapping[str, Seen]:
    """The workers whose newest Job is unfinished but has no running Pod, with each Job's problem.

    Raises StateUnavailable or OutOfTime.
    """
    all_jobs, all_pods, query = list[Object](), list[Object](), {"labelSelector": ROLLOUT}
    for namespace in namespaces:
        all_jobs += await read_list(client, path_of("batch/v1", "Job", namespace), deadline, query)
        all_pods += await read_list(client, path_of("v1", "Pod", namespace), deadline, query)
    newest = {
        f"{job['metadata']['namespace']}/{value_at(job, 'metadata', 'labels', ROLLOUT)}": job
        for job in oldest_first(all_jobs)
    }
    stuck = {}
    for worker, job in newest.items():
        if end_of_job(job) or value_at(job, "spec", "suspend"):
            continue
        pods = [pod for pod in all_pods if job["metadata"]["uid"] in owners_of(pod)]
        last = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
        if not last:
            if event := await _last_event(client, "Job", job, deadline):
                stuck[worker] = _with_problem("Job", job, f"has no Pod: {event}")
        elif value_at(last, "status", "phase") not in _ENDED and (problem := pod_problem(last)):
            # even if the Pod's status does not name the problem yet, an Event may explain it
            event = await _last_event(client, "Pod", last, deadline) if problem.startswith(STARTS) else ""
            stuck[worker] = _with_problem("Pod", last, f"{problem}: {event}" if event else problem)
    return stuck


async def pods_that_wait(
    client: KubernetesClient, namespace: str, labels: Mapping[str, str], deadline: Deadline
) -> tuple[Seen, ...]:
    """The Pods with these labels that are not running, with each Pod's problem.

    The result is empty if the account lacks permission.
    """
    selector = ",".join(f"{name}={text}" for name, text in labels.items())
    try:
        pods = await client.pods(namespace, selector, deadline)
    except StateUnavailable:
        return ()
    # Pods that have ended are ignored, because they belong to a CronJob or were evicted
    not_ended = [pod for pod in pods if value_at(pod, "status", "phase") not in _ENDED]
    problems = [_with_problem("Pod", pod, pod_problem(pod)) for pod in not_ended]
    return tuple(seen for seen in problems if seen.problem)


def _with_problem(kind: str, item: Object, problem: str) -> Seen:
    metadata = item["metadata"]
    name = f"{kind} {metadata['namespace']}/{metadata['name']}"
    return Seen(name, problem, parse_time(metadata["creationTimestamp"]))


async def _last_event(client: KubernetesClient, kind: str, item: Object, deadline: Deadline) -> str:
    """The message of the newest warning Event about an object, or empty if none can be read."""
    metadata = item["metadata"]
    path = path_of("v1", "Event", metadata["namespace"])
    selector = f"involvedObject.kind={kind},involvedObject.uid={metadata['uid']},type=Warning"
    try:
        events = await read_list(client, path, deadline, {"fieldSelector": selector})
    except StateUnavailable:
        return ""
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return " ".join(str(events[-1].get("message", "")).split()) if events else ""


async def read_orphans(
    client: KubernetesClient, namespaces: Iterable[str], known_workers: Collection[str], deadline: Deadline
) -> Mapping[str, tuple[str, ...]]:
    """By worker, the Deployments of removed workers that an Argo CD Application still tracks."""
    names_by_worker: dict[str, list[str]] = defaultdict(list)
    for namespace in namespaces:
        path = path_of(DEPLOYMENT_API, "Deployment", namespace)
        for item in await read_list(client, path, deadline, {"labelSelector": DEPLOYMENT_NAME_LABEL}):
            if not (live := live_deployment({"apiVersion": DEPLOYMENT_API, "kind": "Deployment", **item})):
                continue
            home, worker = item["metadata"]["namespace"], live.recorded.worker_deployment
            # anyone who is allowed to write a Deployment can put any worker's name into its pods
            is_its_own = worker.partition("/")[0] == home and is_dns_name(worker.partition("/")[2])
            is_tracked = live.tracked_by and live.identity and live.protected
            if is_tracked and is_its_own and worker not in known_workers:
                names_by_worker[worker].append(live.name)
    orphans = {}
    for worker, names in names_by_worker.items():
        namespace, _, name = worker.partition("/")
        # if the intent exists, the worker was not removed, even if the intent cannot be parsed
        if not await read_config_map(client, namespace, rollout_name(name), deadline):
            orphans[worker] = tuple(names)
    return orphans


_ACCESS = "authorization.k8s.io/v1"
_AUTHENTICATION = "authentication.k8s.io/v1"
_AT_ONCE = 8


async def whoami(client: KubernetesClient, deadline: Deadline) -> str:
    """The caller's user name in Kubernetes, or empty if the server does not return it."""
    review = {"apiVersion": _AUTHENTICATION, "kind": "SelfSubjectReview"}
    path = path_of(_AUTHENTICATION, "SelfSubjectReview")
    _, answer = await client.ask("POST", path, deadline, body=review)
    return str(value_at(answer, "status", "userInfo", "username") or "")


async def absent_accounts(
    client: KubernetesClient, accounts: Iterable[Account], deadline: Deadline
) -> tuple[Account, ...]:
    """The accounts that do not exist. Accounts that the caller is not allowed to read are omitted."""
    absent = []
    for account in accounts:
        _, _, namespace, name = account.user.split(":")
        status, _ = await client.ask("GET", path_of("v1", "ServiceAccount", namespace, name), deadline)
        if status == HTTPStatus.NOT_FOUND:
            absent.append(account)
    return tuple(absent)


async def refused_needs(
    client: KubernetesClient, needs: Iterable[Need], deadline: Deadline, *, of_caller: bool
) -> tuple[Need, ...]:
    """The permissions that an account needs but lacks. With `of_caller`, the account is the caller.

    Raises StateUnavailable or OutOfTime.
    """
    kind, free = f"{'Self' if of_caller else ''}SubjectAccessReview", asyncio.Semaphore(_AT_ONCE)
    path = path_of(_ACCESS, kind)

    async def is_refused(need: Need) -> bool:
        review = {"apiVersion": _ACCESS, "kind": kind, "spec": _review_spec(need, kind)}
        async with free:
            status, answer = await client.ask("POST", path, deadline, body=review)
        if status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
            raise StateUnavailable(f"{path} cannot be queried: {answer.get('message') or status}")
        return not value_at(answer, "status", "allowed")

    unique: Sequence[Need] = list(dict.fromkeys(needs))
    if not unique:
        return ()
    first, *others = unique
    # the first need is checked separately: if the caller is not allowed to ask, only one request fails
    answers = [await is_refused(first), *await asyncio.gather(*map(is_refused, others))]
    missing = [need for need, is_missing in zip(unique, answers, strict=True) if is_missing]
    served = {
        group: (await client.ask("GET", f"/apis/{group}", deadline))[0] != HTTPStatus.NOT_FOUND
        for group in sorted({need.right.group for need in missing} - {""})
    }
    # if a CustomResourceDefinition is not installed, no objects exist and no account needs the permission
    return tuple(need for need in missing if served.get(need.right.group, True))


def _review_spec(need: Need, kind: str) -> Mapping[str, Any]:
    right, user = need.right, need.account.user
    attributes = {
        "namespace": need.namespace,
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "name": right.name,
    }
    spec: dict[str, Any] = {"resourceAttributes": attributes}
    if kind == "SubjectAccessReview":
        groups = ["system:authenticated"]
        if user.startswith(f"{SERVICE_ACCOUNT}:"):
            groups += [f"{SERVICE_ACCOUNT}s", f"{SERVICE_ACCOUNT}s:{user.split(':')[2]}"]
        spec |= {"user": user, "groups": groups}
    return spec


async def cluster_scoped(
    client: KubernetesClient, kinds: Iterable[GroupKind], deadline: Deadline
) -> frozenset[GroupKind]:
    """The cluster-scoped kinds among `kinds`, without kinds that the API server does not serve."""
    asked_kinds, scoped = frozenset(kinds), set[GroupKind]()
    for group in sorted({kind.group for kind in asked_kinds}):
        paths = ["/api/v1"]
        if group:
            status, answer = await client.ask("GET", f"/apis/{group}", deadline)
            versions = (answer.get("versions") or ()) if status == HTTPStatus.OK else ()
            paths = [f"/apis/{value_at(version, 'groupVersion')}" for version in versions]
        for path in paths:
            status, served = await client.ask("GET", path, deadline)
            for resource in (served.get("resources") or ()) if status == HTTPStatus.OK else ():
                if value_at(resource, "namespaced") is False:
                    scoped.add(GroupKind(group, str(value_at(resource, "kind"))))
    return asked_kinds & scoped


def clock_ahead(client: KubernetesClient, now: datetime) -> timedelta | None:
    """How far the API server's clock is ahead of `now`, or None if the server has not responded yet."""
    if not client.heard:
        return None
    server_time, at = client.heard
    return later(server_time, timedelta(seconds=monotonic() - at)) - now
