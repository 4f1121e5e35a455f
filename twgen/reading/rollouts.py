"""Reads the rollouts in a cluster: whether a rollout may continue, and the statuses of all rollouts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, Part, path_of
from twgen.cluster.deployments import JobEnd, created_at, end_of_job, is_older, oldest_first
from twgen.cluster.field_managers import holders_wrote_at
from twgen.errors import InvalidDocuments, InvalidInput, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import MissingTemplate
from twgen.model.problem import Document
from twgen.model.rollout import Driver, EndedJob, JobReference, PendingRequest, RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.planning.rollout import left_alone, needs_a_rollout, not_begun
from twgen.reading.kubernetes import owners_of, read_config_map, read_list, rollout_objects
from twgen.records.intent import TAKEN_BACK, Intent, UnusableIntent, is_annotated_as_paused, parse_intent
from twgen.records.rollout_status import is_of, parse_pending, parse_rollout_status
from twgen.reporting.bugs import Bug
from twgen.reporting.problems import Located, problem_lines
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
from twgen.yaml.source import Budget, Limits

_ENDED = {"Succeeded", "Failed"}
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_BY_TICK = "`twgen tick` begins it within seconds if its OperatorConfig sets tick.rollouts to true"
_OF_A_NAMESPACE = Limits(remedy="twgen does not read the other rollouts in this namespace")
"""The limits per namespace, so that one namespace cannot use up the time and memory for other namespaces."""


async def read_intent(
    client: KubernetesClient, namespace: str, name: str, intent_hash: str, deadline: Deadline
) -> Intent | None:
    """The intent with this name and hash, or None if it does not exist. An empty hash matches any intent.

    Raises InvalidInput if the intent was edited manually.
    """
    manifest = await read_config_map(client, namespace, name, deadline)
    # an intent with a different hash is not parsed, because another twgen release may have written it
    annotated = value_at(manifest, "metadata", "annotations", INTENT_HASH)
    is_wanted = not annotated or intent_hash in {"", annotated}
    return parse_intent(manifest) if manifest and is_wanted else None


async def read_rollout_status(
    client: KubernetesClient, namespace: str, worker: str, deadline: Deadline
) -> RolloutStatus | None:
    """The status of a worker's rollout, or None if there is none yet."""
    manifest = await read_config_map(client, namespace, rollout_status_name(worker), deadline)
    return parse_rollout_status(manifest) if manifest else None


async def read_reported(
    client: KubernetesClient, intent: Intent, deadline: Deadline
) -> tuple[tuple[PendingRequest, ...], Mapping[str, str]]:
    """People's requests, in the order in which twgen answers them, and the data of the status ConfigMap."""
    name = rollout_status_name(intent.worker)
    manifest = await read_config_map(client, intent.namespace, name, deadline)
    requests = tuple(pending for pending in parse_pending(manifest) if not pending.is_ignored)
    return requests, value_at(manifest, "data") or {}


def specs_of(intent: Intent) -> Specs:
    """Parse the specs in an intent. Raises UnusableIntent if this release parses them differently."""
    source = f"ConfigMap {intent.namespace}/{rollout_name(intent.worker)}"
    documents = [Document(source, index, value) for index, value in enumerate(intent.documents)]
    # the render has already checked these kinds against the operator's list
    kinds = tuple(GroupKind.of(value_at(value, "spec", "template")) for value in intent.documents)
    driver = Driver.HOOK if intent.has_hook else Driver.TICK if intent.is_for_tick else Driver.AUTO
    specs = parse_specs(documents, NamespaceRule(intent.namespace), kinds, default_driver=driver)
    if specs.problems:
        problems = problem_lines(Located(problem, None) for problem in specs.problems)
        raise UnusableIntent(str(InvalidDocuments(problems)), intent)
    targets = [f"{spec.worker_deployment}:{spec.build_id}" for spec in specs.workers]
    if targets != [expected := f"{intent.namespace}/{intent.worker}:{intent.target}"]:
        workers = " and ".join(targets) or "no worker"
        message = (
            f"{source} is for {expected}, but this release of twgen parses it as {workers}: use the same"
            " release for the render and the Job"
        )
        raise UnusableIntent(message, intent)
    # the render has already decided to continue without a manifest
    [spec] = specs.workers
    policy = replace(spec.policy, missing_template=MissingTemplate.WARN)
    return specs._replace(workers=(replace(spec, policy=policy),))


class RolloutReader:
    """Reads from the cluster whether a rollout may continue. Every method may raise the client's errors."""

    def __init__(self, client: KubernetesClient, intent: Intent, *, in_place_of_hook: bool = False) -> None:
        """With `in_place_of_hook`, the rollout replaces a skipped hook, and stops if the hook gets a Job."""
        self._client, self._intent, self._in_place_of_hook = client, intent, in_place_of_hook
        self._alone_at = ""
        """The intent's resource version when a read first found no earlier rollout, or empty until then."""

    async def read(self, deadline: Deadline) -> RolloutInCluster:
        """Read whether the intent has changed, and whether an earlier rollout is still running."""
        intent, name = self._intent, rollout_name(self._intent.worker)
        jobs, pods = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
        own_job: Mapping[str, Any] | None = None
        if not self._alone_at:
            own_job, jobs, pods = await self._jobs_and_pods(deadline)
        # the intent is read after the Jobs: an intent is applied before its Job, so if the intent is current,
        # all other Jobs are older
        manifest = await read_config_map(self._client, intent.namespace, name, deadline)
        annotations = value_at(manifest, "metadata", "annotations") or {}
        if manifest and INTENT_HASH not in annotations:
            raise StateUnavailable(
                f"ConfigMap {intent.namespace}/{name} was edited by hand, and {INTENT_HASH} is missing: apply"
                " the output of `twgen render`"
            )
        if (annotations.get(INTENT_HASH), value_at(manifest, "metadata", "uid")) != (intent.hash, intent.uid):
            return RolloutInCluster(is_superseded=True)
        if self._in_place_of_hook and own_job and not _is_over(own_job, manifest):
            return RolloutInCluster(is_superseded=True)
        version = str(value_at(manifest, "metadata", "resourceVersion"))
        if self._alone_at not in {"", version}:
            # the intent has changed, possibly to another intent and back, so other rollouts may have begun
            self._alone_at = ""
            return await self.read(deadline)
        self._alone_at = "" if jobs or pods or self._in_place_of_hook else version
        return RolloutInCluster(
            is_paused=is_annotated_as_paused(annotations),
            older_jobs=tuple(JobReference(job["metadata"]["name"], job["metadata"]["uid"]) for job in jobs),
            older_pods=tuple(pod["metadata"]["name"] for pod in pods),
        )

    async def _jobs_and_pods(
        self, deadline: Deadline
    ) -> tuple[Mapping[str, Any] | None, list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """This intent's newest Job, the worker's other Jobs, and the running Pods of those other Jobs.

        If an intent was rendered again with another image, it has two Jobs, and all Pods agree on the newer
        one. A Pod of the older Job finds itself among the older Pods, so it waits until it is stopped.
        """
        namespace, selected = self._intent.namespace, {"labelSelector": rollout_selector(self._intent.worker)}
        jobs = await read_list(self._client, path_of("batch/v1", "Job", namespace), deadline, selected)
        pods = await read_list(self._client, path_of("v1", "Pod", namespace), deadline, selected)
        own_jobs = [job for job in jobs if self._has_intent(job)]
        newest = oldest_first(own_jobs)[-1] if own_jobs else None
        uid = value_at(newest, "metadata", "uid")
        older_pods = [
            pod
            for pod in pods
            if value_at(pod, "status", "phase") not in _ENDED
            # a rollout that replaces a skipped hook has no Pod of its own
            and (
                self._in_place_of_hook
                or not (self._has_intent(pod) and (not newest or owners_of(pod) <= {uid}))
            )
        ]
        return newest, [job for job in jobs if job is not newest], older_pods

    def _has_intent(self, item: Mapping[str, Any]) -> bool:
        return bool(value_at(item, "metadata", "annotations", INTENT_HASH) == self._intent.hash)


class RolloutsInCluster(NamedTuple):
    """The rollouts in a cluster: their intents, statuses and ended Jobs."""

    intents: tuple[Intent, ...]
    statuses: tuple[RolloutStatus, ...]
    """The statuses that rollouts wrote, sorted by worker. If all Jobs of an unfinished rollout have ended,
    the rollout's status here says so."""
    shown: tuple[RolloutStatus, ...]
    """The statuses for people and for programs that watch rollouts. They include pending rollouts."""
    unusable: tuple[str, ...]
    """The errors for intents that cannot be carried out, and for statuses and Jobs that cannot be read."""
    ended: Mapping[tuple[str, str], EndedJob] = {}
    """Each intent's newest Job, if it has ended, by namespace and intent hash."""
    jobless: Mapping[str, datetime] = {}
    """The workers whose intent needs a Job but has none, with the time of the intent's last change."""
    skipped: frozenset[str] = frozenset()
    """The workers in `jobless` whose hook Argo CD has skipped, or empty if hooks were not checked."""


def specs_of_intents(intents: Iterable[Intent]) -> tuple[list[tuple[Intent, WorkerSpec]], list[str]]:
    """Each intent with its worker's spec, and the errors for intents that cannot be used."""
    specs, unusable = [], []
    for intent in intents:
        try:
            [spec] = specs_of(intent).workers
        except InvalidInput as error:
            unusable.append(str(error))
        except Exception as error:  # noqa: BLE001 - one intent must not stop the reads of all others
            unusable.append(Bug.of(_worker_of(intent), error))
        else:
            specs.append((intent, spec))
    return specs, unusable


async def rollouts_in_cluster(
    client: KubernetesClient, namespace: str, deadline: Deadline
) -> RolloutsInCluster:
    """Read the rollouts in a namespace, or in all namespaces if `namespace` is empty."""
    jobs: list[Mapping[str, Any]] | None = None
    unusable: list[str] = []
    try:
        # Jobs are read before statuses, because a Job writes its last status before it ends
        jobs = oldest_first(
            [job async for job in rollout_objects(client, "Job", namespace, deadline, unusable.append)]
        )
    except StateUnavailable as error:
        unusable.append(f"it is unknown whether Jobs carry out these rollouts: {error}")
    intents, statuses, applied = await _config_maps(client, namespace, deadline, unusable.append)
    of_worker = of_intent = None
    status_of = {status.worker: status for status in statuses}
    if jobs is not None:
        of_worker, of_intent = _grouped(jobs, "labels", ROLLOUT), _grouped(jobs, "annotations", INTENT_HASH)
        for index, intent in enumerate(intents):
            key = _key(intent)
            if intent.is_taken_over and _has_job(intent, of_intent[key], applied[key]):
                intents[index] = replace(intent, taken_over=TAKEN_BACK)
    intent_of = {_worker_of(intent): intent for intent in intents}
    if of_worker is not None:
        statuses = [
            _with_its_jobs(status, of_worker[status.worker], intent_of.get(status.worker))
            for status in statuses
        ]
    by_worker = {status.worker: status for status in statuses}
    jobless, waiting = dict[str, datetime](), dict[str, RolloutStatus]()
    for worker, intent in intent_of.items():
        manifest = applied[_key(intent)]
        own_jobs = None if of_intent is None else of_intent[_key(intent)]
        if own_jobs is not None and not _has_job(intent, own_jobs, manifest):
            jobless[worker] = _changed(manifest)
        is_begun = worker in status_of and is_of(status_of[worker], intent)
        if not (intent.is_rolled_out_by_hand or is_begun):
            waiting[worker] = _not_begun(intent, status_of.get(worker), own_jobs, manifest)
    return RolloutsInCluster(
        intents=tuple(intents),
        statuses=tuple(status for _, status in sorted(by_worker.items())),
        shown=tuple(status for _, status in sorted((by_worker | waiting).items())),
        unusable=tuple(unusable),
        ended=_ended(jobs or (), applied),
        jobless=jobless,
    )


def _has_job(intent: Intent, own_jobs: Sequence[Mapping[str, Any]], applied: Mapping[str, Any]) -> bool:
    """Whether the intent has a Job, or does not need one."""
    needs_none = intent.is_for_tick or intent.is_rolled_out_by_hand
    return needs_none or any(not (intent.has_hook and _is_over(job, applied)) for job in own_jobs)


def _is_over(hook: Mapping[str, Any], intent: Mapping[str, Any]) -> bool:
    """Whether a hook's Job ended before its intent was recreated. A full sync recreates the hook too."""
    return bool(end_of_job(hook)) and is_older(hook, intent)


async def _config_maps(
    client: KubernetesClient, namespace: str, deadline: Deadline, skip: Callable[[str], None]
) -> tuple[list[Intent], list[RolloutStatus], dict[str, Mapping[str, Any]]]:
    """The intents and statuses in a namespace, and the metadata of each intent by its `_key`."""
    intents, statuses = list[Intent](), list[RolloutStatus]()
    applied: dict[str, Mapping[str, Any]] = {}
    budgets: defaultdict[str, Budget] = defaultdict(lambda: Budget(_OF_A_NAMESPACE))
    async for item in rollout_objects(client, "ConfigMap", namespace, deadline, skip):
        budget = budgets[item["metadata"]["namespace"]]
        if budget.is_spent:
            continue
        try:
            if "phase" in (item.get("data") or {}):  # intents and statuses have the same label
                statuses.append(parse_rollout_status(item, budget))
            else:
                intents.append(intent := parse_intent(item, budget))
                applied[_key(intent)] = {"metadata": item["metadata"]}
        except InvalidInput as error:
            skip(str(error))
        except Exception as error:  # noqa: BLE001 - one ConfigMap must not stop the reads of all others
            name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            skip(Bug.of(f"ConfigMap {name}", error))
    return intents, statuses, applied


async def names_of_rollouts(client: KubernetesClient, namespace: str, deadline: Deadline) -> list[str]:
    """The names of the workers with a rollout in a namespace."""
    listing = rollout_objects(client, "ConfigMap", namespace, deadline, lambda _: None, only=Part.METADATA)
    return sorted({str(value_at(item, "metadata", "labels", ROLLOUT)) async for item in listing})


def _grouped(
    jobs: Iterable[Mapping[str, Any]], of_metadata: str, name: str
) -> Mapping[str, list[Mapping[str, Any]]]:
    """Group Jobs by `NAMESPACE/VALUE`, where VALUE is a label or an annotation, and keep their order."""
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for job in jobs:
        if value := value_at(job, "metadata", of_metadata, name):
            groups[f"{job['metadata']['namespace']}/{value}"].append(job)
    return groups


def _changed(manifest: Mapping[str, Any]) -> datetime:
    """When a field manager that owns the intent's hash last wrote the intent. The hash is unchanged since."""
    return max(holders_wrote_at(manifest["metadata"], INTENT_HASH), default=created_at(manifest) or _LONG_AGO)


def _worker_of(intent: Intent) -> str:
    return f"{intent.namespace}/{intent.worker}"


def _key(intent: Intent) -> str:
    return f"{intent.namespace}/{intent.hash}"


def _not_begun(
    intent: Intent,
    earlier: RolloutStatus | None,
    own_jobs: Sequence[Mapping[str, Any]] | None,
    applied: Mapping[str, Any],
) -> RolloutStatus:
    """The status of a worker whose rollout has not begun, or whose Job ended before its first read.

    `earlier` is the status that an earlier Job wrote. `own_jobs` are the intent's Jobs, or None if they were
    not read. `applied` is the intent's ConfigMap.
    """
    worker, since = _worker_of(intent), max(earlier.since if earlier else _LONG_AGO, _changed(applied))
    no_job = (
        f"it has no Job yet: a hook waits until the pods of {intent.target} are ready"
        f" (`kubectl get pods -n {intent.namespace}`); if no Job appears, run {intent.full_sync}"
        if intent.has_hook
        else f"it has no Job yet: sync its Application ({intent.full_sync}), or apply the output of"
        " `twgen render`"
    )
    begin = partial(not_begun, earlier, worker, intent.target)
    if intent.is_by_tick or own_jobs is None:
        return begin(_BY_TICK if intent.is_by_tick else "its Job cannot be read", since)
    if not own_jobs:
        return begin(no_job, since)
    metadata, created = own_jobs[-1]["metadata"], created_at(own_jobs[-1]) or _LONG_AGO
    if (end := end_of_job(own_jobs[-1])) and is_older(own_jobs[-1], applied):
        if HOOK in metadata["annotations"]:
            return begin(no_job, since)
        name, delete = metadata["name"], f"`kubectl delete job {metadata['name']} -n {intent.namespace}`"
        why = (
            f"Job {name} ran for an earlier rollout, which was deleted, and keeps Argo CD from"
            " creating a new Job"
        )
        return begin(f"{why}; `twgen tick` deletes it, or run {delete}", since)
    if end:
        return left_alone(begin("its Job has not begun", created), _how_it_ended(own_jobs[-1], end), end.at)
    pods = f"`kubectl describe pods -n {intent.namespace} -l job-name={metadata['name']}`"
    return begin(f"Job {metadata['name']} has not begun yet; {pods} shows why", created)


def _ended(
    jobs: Iterable[Mapping[str, Any]], applied: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str], EndedJob]:
    ended: dict[tuple[str, str], EndedJob] = {}
    for job in jobs:
        metadata, annotations = job["metadata"], value_at(job, "metadata", "annotations") or {}
        key = metadata["namespace"], annotations.get(INTENT_HASH, "")
        ended.pop(key, None)
        is_before, is_hook = is_older(job, applied.get("/".join(key), {})), HOOK in annotations
        # the sync that recreated the intent also recreates its hook
        if (end := end_of_job(job)) and not (is_before and is_hook):
            ended[key] = EndedJob(JobReference(metadata["name"], metadata["uid"]), end.at, is_before)
    return ended


def _with_its_jobs(
    status: RolloutStatus, own_jobs: Sequence[Mapping[str, Any]], intent: Intent | None
) -> RolloutStatus:
    """The rollout's status. If no Job continues the rollout, the returned status says so.

    A Job that was killed could not write this into the status itself.
    """
    ends = [end for job in own_jobs if (end := end_of_job(job))]
    has_no_job = intent is not None and (intent.is_by_tick or intent.is_rolled_out_by_hand)
    if has_no_job or len(ends) < len(own_jobs) or not needs_a_rollout(status.phase, status.reason):
        return status
    if not own_jobs:
        return left_alone(status, "it has no Job", status.since)
    return left_alone(status, _how_it_ended(own_jobs[-1], ends[-1]), ends[-1].at)


def _how_it_ended(job: Mapping[str, Any], end: JobEnd) -> str:
    why = f" ({end.why})" if end.why else ""
    return f"Job {job['metadata']['name']} has ended as {end.type}{why}"
