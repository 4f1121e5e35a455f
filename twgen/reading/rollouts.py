"""Reading what a cluster says of rollouts: whether one may go on, and what all of them left to read."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import MOST_LISTED, KubernetesClient, jobs_path, listed
from twgen.cluster.jobs import JobEnd, end_of_job, is_older, oldest_first
from twgen.errors import InvalidDocuments, InvalidInput, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import MissingTemplate
from twgen.model.problem import Document
from twgen.model.requests import PendingRequest
from twgen.model.rollout import EndedJob, JobReference, RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.times import parse_time
from twgen.planning.rollout import left_alone, needs_a_rollout, not_begun
from twgen.reading.kubernetes import config_map_path, owners_of, pods_path, read_list, read_path
from twgen.records.intent import Intent, UnusableIntent, is_annotated_as_paused, parse_intent
from twgen.records.requests import parse_pending
from twgen.records.rollout_status import is_of, parse_rollout_status
from twgen.reporting.problems import problem_lines
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import (
    HOOK,
    INTENT_HASH,
    ROLLOUT,
    rollout_name,
    rollout_selector,
    rollout_status_name,
)
from twgen.yaml.limits import Budget, Limits

_ENDED = {"Succeeded", "Failed"}
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 50
"""ConfigMaps, of 1 MiB at most."""
_OF_A_NAMESPACE = Limits(remedy="twgen reads no other rollout of this namespace")
"""A person who may write ConfigMaps in one namespace must not take the memory and time of the others."""


async def read_intent(
    client: KubernetesClient, namespace: str, name: str, intent_hash: str, deadline: Deadline
) -> Intent | None:
    """The intent of that name and hash (empty: of any), None when there is none or another.

    Raises InvalidInput when it was edited by hand.
    """
    manifest = await _config_map(client, namespace, name, deadline)
    # another release of twgen may write an intent that this one cannot read, and then carries it out itself
    annotated = value_at(manifest, "metadata", "annotations", INTENT_HASH)
    is_wanted = not annotated or intent_hash in {"", annotated}
    return parse_intent(manifest) if manifest and is_wanted else None


async def read_status(client: KubernetesClient, intent: Intent, timeout: float) -> RolloutStatus | None:  # noqa: ASYNC109 - of each request
    """What the rollouts of the intent's worker left to read; None: nothing yet."""
    return await read_rollout_status(client, intent.namespace, intent.worker, Deadline(timeout))


async def read_rollout_status(
    client: KubernetesClient, namespace: str, worker: str, deadline: Deadline
) -> RolloutStatus | None:
    """What the rollouts of a worker left to read; None: nothing yet."""
    manifest = await _config_map(client, namespace, rollout_status_name(worker), deadline)
    return parse_rollout_status(manifest) if manifest else None


async def read_request(client: KubernetesClient, intent: Intent, deadline: Deadline) -> PendingRequest | None:
    """What a person requests of the intent's rollout; None: nothing. Also raises InvalidInput."""
    name = rollout_status_name(intent.worker)
    manifest = await _config_map(client, intent.namespace, name, deadline)
    return parse_pending(manifest) if manifest else None


def specs_of(intent: Intent) -> Specs:
    """The specs that an intent holds; raises UnusableIntent where this program reads them otherwise."""
    source = f"ConfigMap {intent.namespace}/{rollout_name(intent.worker)}"
    documents = [Document(source, index, value) for index, value in enumerate(intent.documents)]
    # the operator's list of what may be attached was asked when it was rendered
    kinds = tuple(GroupKind.of(value_at(value, "spec", "template")) for value in intent.documents)
    specs = parse_specs(documents, NamespaceRule(intent.namespace), kinds)
    if specs.problems:
        wrong = problem_lines([(problem, None) for problem in specs.problems])
        raise UnusableIntent(str(InvalidDocuments(wrong)), intent)
    targets = [f"{spec.worker_deployment}:{spec.build_id}" for spec in specs.workers]
    if targets != [wanted := f"{intent.namespace}/{intent.worker}:{intent.target}"]:
        made = " and ".join(targets) or "no worker"
        message = (
            f"{source} is for {wanted}, but this release of twgen makes {made} of it: the render and"
            " the Job need the same release"
        )
        raise UnusableIntent(message, intent)
    # whether a render may go on without a manifest was decided when it went on
    [spec] = specs.workers
    policy = replace(spec.policy, missing_template=MissingTemplate.WARN)
    return specs._replace(workers=(replace(spec, policy=policy),))


class RolloutReader:
    """Whether a rollout may go on, by the word of its cluster; every method raises as the client does."""

    def __init__(self, client: KubernetesClient, intent: Intent) -> None:
        self._client = client
        self._intent = intent
        self._alone_at = ""
        """The resource version of the intent when nothing of earlier rollouts was left; empty: never yet."""

    async def read(self, deadline: Deadline) -> RolloutInCluster:
        """Whether the intent still stands, and whether an earlier rollout still runs."""
        intent, name = self._intent, rollout_name(self._intent.worker)
        jobs: list[Mapping[str, Any]] = []
        pods: list[Mapping[str, Any]] = []
        if not self._alone_at:
            jobs, pods = await self._older(deadline)
        # after them, as an intent is applied before its Job: another Job is an older one if this still stands
        manifest = await _config_map(self._client, intent.namespace, name, deadline)
        annotations = value_at(manifest, "metadata", "annotations") or {}
        if manifest and INTENT_HASH not in annotations:
            raise StateUnavailable(
                f"ConfigMap {intent.namespace}/{name} was edited by hand and lacks {INTENT_HASH}: apply"
                " the output of `twgen render`"
            )
        if (annotations.get(INTENT_HASH), value_at(manifest, "metadata", "uid")) != (intent.hash, intent.uid):
            return RolloutInCluster(is_superseded=True)
        version = str(value_at(manifest, "metadata", "resourceVersion"))
        if self._alone_at not in {"", version}:
            # it changed since, be it to another one and back: other rollouts may have begun
            self._alone_at = ""
            return await self.read(deadline)
        self._alone_at = "" if jobs or pods else version
        return RolloutInCluster(
            is_paused=is_annotated_as_paused(annotations),
            older_jobs=tuple(JobReference(job["metadata"]["name"], job["metadata"]["uid"]) for job in jobs),
            older_pods=tuple(pod["metadata"]["name"] for pod in pods),
        )

    async def _older(self, deadline: Deadline) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """All Jobs of the worker but the newest one of this intent, and all running Pods but its own.

        One intent has two Jobs where another image is rendered. All their Pods agree on which Job is newer. A
        Pod of the older Job finds itself among the older Pods, so it waits, until it is ended.
        """
        namespace, selected = self._intent.namespace, {"labelSelector": rollout_selector(self._intent.worker)}
        jobs = await read_list(self._client, jobs_path(namespace), deadline, selected)
        pods = await read_list(self._client, pods_path(namespace), deadline, selected)
        ours = [job for job in jobs if self._is_ours(job)]
        newest = oldest_first(ours)[-1] if ours else None
        uid = value_at(newest, "metadata", "uid")
        older_pods = [
            pod
            for pod in pods
            if value_at(pod, "status", "phase") not in _ENDED
            and not (self._is_ours(pod) and (not newest or owners_of(pod) <= {uid}))
        ]
        return [job for job in jobs if job is not newest], older_pods

    def _is_ours(self, item: Mapping[str, Any]) -> bool:
        return bool(value_at(item, "metadata", "annotations", INTENT_HASH) == self._intent.hash)


async def _config_map(
    client: KubernetesClient, namespace: str, name: str, deadline: Deadline
) -> Mapping[str, Any]:
    path = config_map_path(namespace, name)
    found = await read_path(client, path, deadline, may_be_absent=True)
    if found and value_at(found, "metadata", "name") != name:
        raise StateUnavailable(f"{path} cannot be read: the API server answered with another object")
    return found


class RolloutsInCluster(NamedTuple):
    """What carries rollouts out in a cluster."""

    intents: tuple[Intent, ...]
    statuses: tuple[RolloutStatus, ...]
    """What the rollouts left to read, by worker; of one that no Job works on, that."""
    shown: tuple[RolloutStatus, ...]
    """The same for people and programs that follow them: of one that has not begun, that."""
    unusable: tuple[str, ...]
    """Why other intents cannot be carried out, and other statuses not be read, or Jobs."""
    ended: Mapping[tuple[str, str], EndedJob] = {}
    """The newest Jobs of these intents that have ended, by namespace and intent hash."""


def specs_of_intents(intents: Iterable[Intent]) -> tuple[list[tuple[Intent, WorkerSpec]], list[str]]:
    """Each intent with the worker that it is for, and why others cannot be read."""
    found, unusable = [], []
    for intent in intents:
        try:
            [spec] = specs_of(intent).workers
        except InvalidInput as error:
            unusable.append(str(error))
        else:
            found.append((intent, spec))
    return found, unusable


async def rollouts_in_cluster(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> RolloutsInCluster:
    """What there is in a namespace; an empty one: in all."""
    jobs: list[Mapping[str, Any]] | None = None
    intents, statuses, unusable = [], [], []
    try:
        # before the statuses: a Job that has ended by then has left its own
        jobs = oldest_first(
            await read_list(client, jobs_path(namespace), deadline, {"labelSelector": ROLLOUT})
        )
    except StateUnavailable as error:
        unusable.append(f"it is unknown whether Jobs work on these rollouts: {error}")
    applied: dict[tuple[str, str], Mapping[str, Any]] = {}
    budgets: defaultdict[str, Budget] = defaultdict(lambda: Budget(_OF_A_NAMESPACE))
    async for item in _config_maps(client, namespace, deadline):
        budget = budgets[item["metadata"]["namespace"]]
        if budget.is_spent:
            continue
        try:
            if "phase" in (item.get("data") or {}):  # an intent has the same label
                statuses.append(parse_rollout_status(item, budget))
            else:
                intents.append(intent := parse_intent(item, budget))
                applied[intent.namespace, intent.hash] = {"metadata": item["metadata"]}
        except InvalidInput as error:
            unusable.append(str(error))
    wanted = {_worker_of(intent): intent for intent in intents}
    left = {status.worker: status for status in statuses}
    if jobs is not None:
        statuses = [_with_its_jobs(status, jobs, wanted.get(status.worker)) for status in statuses]
    by_worker = {status.worker: status for status in statuses}
    waiting = {
        worker: _not_begun(intent, left.get(worker), jobs, applied[intent.namespace, intent.hash])
        for worker, intent in wanted.items()
        if not intent.is_rolled_out_by_hand and not (worker in left and is_of(left[worker], intent))
    }
    return RolloutsInCluster(
        intents=tuple(intents),
        statuses=_sorted(by_worker),
        shown=_sorted(by_worker | waiting),
        unusable=tuple(unusable),
        ended=_ended(jobs or (), applied),
    )


def _created(item: Mapping[str, Any]) -> datetime:
    """When an object was created; long ago, where its API server does not tell."""
    try:
        return parse_time(str(value_at(item, "metadata", "creationTimestamp")))
    except ValueError:
        return _LONG_AGO


def _worker_of(intent: Intent) -> str:
    return f"{intent.namespace}/{intent.worker}"


def _sorted(statuses: Mapping[str, RolloutStatus]) -> tuple[RolloutStatus, ...]:
    return tuple(status for _, status in sorted(statuses.items()))


def _not_begun(
    intent: Intent,
    left: RolloutStatus | None,
    jobs: Iterable[Mapping[str, Any]] | None,
    applied: Mapping[str, Any],
) -> RolloutStatus:
    """The status of a worker whose Job has not begun with its intent, or has ended before it had looked.

    `left` is the status that an earlier Job left, and `applied` the ConfigMap of the intent.
    """
    worker, since = _worker_of(intent), max(left.since if left else _LONG_AGO, _created(applied))
    # from 3.5 on Argo CD notes a commit that it could not render under the branch's name, and then heals
    # without hooks; nothing with only the right to get Applications can start a full sync
    no_job = (
        f"it has no Job yet: a hook waits until the pods of {intent.target} are ready"
        f" (`kubectl get pods -n {intent.namespace}`); if no Job appears, start a full sync"
    )
    begin = partial(not_begun, left, worker, intent.target)
    if jobs is None:
        return begin("its Job cannot be read", since)
    wanted = intent.namespace, intent.hash
    own = [
        job
        for job in jobs
        if (job["metadata"]["namespace"], value_at(job, "metadata", "annotations", INTENT_HASH)) == wanted
    ]
    if not own:
        return begin(no_job, since)
    metadata, created = own[-1]["metadata"], _created(own[-1])
    if (end := end_of_job(own[-1])) and is_older(own[-1], applied):
        if HOOK in metadata["annotations"]:
            return begin(no_job, since)
        name, delete = metadata["name"], f"`kubectl delete job {metadata['name']} -n {intent.namespace}`"
        why = (
            f"Job {name} ran for an earlier rollout, which was deleted, and keeps Argo CD from"
            " creating a new Job"
        )
        return begin(f"{why}; `twgen tick` deletes it, or run {delete}", since)
    if end:
        return left_alone(
            begin("its Job has not started to work", created), _how_it_ended(own[-1], end), end.at
        )
    pods = f"`kubectl describe pods -n {intent.namespace} -l job-name={metadata['name']}`"
    return begin(f"Job {metadata['name']} has not started to work yet; {pods} shows why", created)


async def _config_maps(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> AsyncIterator[Mapping[str, Any]]:
    """Those of rollouts, in a namespace or in all, never all of them at once."""
    path = f"/api/v1{f'/namespaces/{namespace}' if namespace else ''}/configmaps"
    query = {"labelSelector": ROLLOUT, "limit": str(_PAGE), "continue": ""}
    for _ in range(MOST_LISTED // _PAGE):
        page = await read_path(client, path, deadline, query)
        for item in listed(path, page):
            yield item
        query["continue"] = value_at(page, "metadata", "continue") or ""
        if not query["continue"]:
            return
    raise StateUnavailable(f"{path} cannot be read: its list has more than {MOST_LISTED} objects")


def _ended(
    jobs: Iterable[Mapping[str, Any]], applied: Mapping[tuple[str, str], Mapping[str, Any]]
) -> dict[tuple[str, str], EndedJob]:
    ended: dict[tuple[str, str], EndedJob] = {}
    for job in jobs:
        metadata, annotations = job["metadata"], value_at(job, "metadata", "annotations") or {}
        key = metadata["namespace"], annotations.get(INTENT_HASH, "")
        ended.pop(key, None)
        is_before, is_hook = is_older(job, applied.get(key, {})), HOOK in annotations
        # the sync that made the intent again makes its hook again too
        if (end := end_of_job(job)) and not (is_before and is_hook):
            reference = JobReference(metadata["name"], metadata["uid"])
            ended[key] = EndedJob(reference, end.at, is_hook, is_before)
    return ended


def _with_its_jobs(
    status: RolloutStatus, jobs: Iterable[Mapping[str, Any]], intent: Intent | None
) -> RolloutStatus:
    """The status that a rollout left, or that no Job works on it: a Job that is killed cannot write that."""
    namespace, _, worker = status.worker.partition("/")
    own = [
        job
        for job in jobs
        if (job["metadata"]["namespace"], value_at(job, "metadata", "labels", ROLLOUT)) == (namespace, worker)
    ]
    ends = [end for job in own if (end := end_of_job(job))]
    is_by_hand = intent is not None and intent.is_rolled_out_by_hand
    if is_by_hand or len(ends) < len(own) or not needs_a_rollout(status.phase, status.reason):
        return status
    if not own:
        return left_alone(status, "it has no Job", status.since)
    return left_alone(status, _how_it_ended(own[-1], ends[-1]), ends[-1].at)


def _how_it_ended(job: Mapping[str, Any], end: JobEnd) -> str:
    why = f" ({end.why})" if end.why else ""
    return f"Job {job['metadata']['name']} has ended as {end.type}{why}"
