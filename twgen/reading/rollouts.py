"""Reading what all rollouts of a cluster left to read."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import MOST_LISTED, KubernetesClient, jobs_path, listed
from twgen.cluster.jobs import Ending, ending_of, is_older, oldest_first
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.paths import value_at
from twgen.model.rollout import EndedJob, JobReference
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.times import parse_time
from twgen.planning.rollout import left_alone, needs_a_rollout, not_begun
from twgen.reading.rollout import read_path, specs_of
from twgen.records.intent import Intent, parse_intent
from twgen.records.rollout_status import is_of, parse_rollout_status
from twgen.versioning.names import HOOK, INTENT_HASH, ROLLOUT
from twgen.yaml.limits import Budget, Limits

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 50
"""ConfigMaps, of 1 MiB at most."""
_OF_A_NAMESPACE = Limits(remedy="twgen reads no other rollout of this namespace")
"""Whoever may write ConfigMaps in one must not take all memory and time from what looks at the others."""


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
        path = jobs_path(namespace)
        found = await read_path(client, path, deadline, {"labelSelector": ROLLOUT})
        jobs = oldest_first(listed(path, found))
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
    told = {status.worker: status for status in statuses}
    waiting = {
        worker: _not_begun(intent, left.get(worker), jobs, applied[intent.namespace, intent.hash])
        for worker, intent in wanted.items()
        if not intent.is_rolled_out_by_hand and not (worker in left and is_of(left[worker], intent))
    }
    ended = _ended(jobs or (), applied)
    return RolloutsInCluster(
        tuple(intents), _by_worker(told), _by_worker(told | waiting), tuple(unusable), ended
    )


def _created(item: Mapping[str, Any]) -> datetime:
    """When an object was created; long ago, where its API server does not tell."""
    try:
        return parse_time(str(value_at(item, "metadata", "creationTimestamp")))
    except ValueError:
        return _LONG_AGO


def _worker_of(intent: Intent) -> str:
    return f"{intent.namespace}/{intent.worker}"


def _by_worker(statuses: Mapping[str, RolloutStatus]) -> tuple[RolloutStatus, ...]:
    return tuple(status for _, status in sorted(statuses.items()))


def _not_begun(
    intent: Intent,
    told: RolloutStatus | None,
    jobs: Iterable[Mapping[str, Any]] | None,
    applied: Mapping[str, Any],
) -> RolloutStatus:
    """How a worker stands with whose intent a Job is still to begin, or ended before it had looked.

    `applied` is the ConfigMap of the intent.
    """
    worker, since = _worker_of(intent), max(told.since if told else _LONG_AGO, _created(applied))
    # from 3.5 on Argo CD notes a commit that it could not render under the branch's name, and then heals
    # without hooks; nothing with only the right to get Applications can start a full sync
    no_job = (
        f"it has no Job yet: a hook waits until the pods of {intent.target} are ready"
        f" (`kubectl get pods -n {intent.namespace}`); if no Job appears, start a full sync"
    )
    begin = partial(not_begun, told, worker, intent.target)
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
    if (ending := ending_of(own[-1])) and is_older(own[-1], applied):
        if HOOK in metadata["annotations"]:
            return begin(no_job, since)
        name, delete = metadata["name"], f"`kubectl delete job {metadata['name']} -n {intent.namespace}`"
        why = (
            f"Job {name} ran for an earlier rollout, which was deleted, and keeps Argo CD from"
            " creating a new Job"
        )
        return begin(f"{why}; `twgen tick` deletes it, or run {delete}", since)
    if ending:
        return left_alone(
            begin("its Job has not started to work", created), _told(own[-1], ending), ending.at
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
        if (ending := ending_of(job)) and not (is_before and is_hook):
            reference = JobReference(metadata["name"], metadata["uid"])
            ended[key] = EndedJob(reference, ending.at, is_hook, is_before)
    return ended


def _with_its_jobs(
    status: RolloutStatus, jobs: Iterable[Mapping[str, Any]], intent: Intent | None
) -> RolloutStatus:
    """The status that a rollout left, or that nobody works on it: one that is killed tells nothing itself."""
    namespace, _, worker = status.worker.partition("/")
    own = [
        job
        for job in jobs
        if (job["metadata"]["namespace"], value_at(job, "metadata", "labels", ROLLOUT)) == (namespace, worker)
    ]
    endings = [ending for job in own if (ending := ending_of(job))]
    is_by_hand = intent is not None and intent.is_rolled_out_by_hand
    if is_by_hand or len(endings) < len(own) or not needs_a_rollout(status.phase, status.reason):
        return status
    if not own:
        return left_alone(status, "it has no Job", status.since)
    return left_alone(status, _told(own[-1], endings[-1]), endings[-1].at)


def _told(job: Mapping[str, Any], ending: Ending) -> str:
    said = f" ({ending.why})" if ending.why else ""
    return f"Job {job['metadata']['name']} has ended as {ending.type}{said}"
