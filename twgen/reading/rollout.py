"""Reading what a cluster says of a rollout that is carried out in it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, jobs_path, listed
from twgen.cluster.jobs import oldest_first
from twgen.errors import InvalidDocuments, OutOfTime, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import MissingTemplate
from twgen.model.problem import Document
from twgen.model.rollout import JobReference, RolloutInCluster
from twgen.model.status import RolloutStatus
from twgen.planning.attached_status import AttachedRead
from twgen.planning.cluster_changes import AttachedInCluster, Condition
from twgen.records.intent import Intent, UnusableIntent, is_annotated_as_paused, parse_intent
from twgen.records.rollout_status import parse_rollout_status
from twgen.reporting.problems import problem_lines
from twgen.specs.attached import KINDS
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import (
    DEPLOYMENT_NAME_LABEL,
    INTENT_HASH,
    MANAGED_BY,
    resource_of_kind,
    rollout_name,
    rollout_selector,
    rollout_status_name,
    selector_labels,
)

_ENDED = {"Succeeded", "Failed"}


async def read_intent(
    client: KubernetesClient, namespace: str, name: str, intent_hash: str, deadline: Deadline
) -> Intent | None:
    """The intent of that name and hash (empty: of any), None when there is none or another.

    Raises InvalidInput when it was edited by hand.
    """
    manifest = await _config_map(client, namespace, name, deadline)
    # another release of twgen may write what this one cannot read: then it is another's to carry out
    told = value_at(manifest, "metadata", "annotations", INTENT_HASH)
    return parse_intent(manifest) if manifest and (not told or intent_hash in {"", told}) else None


async def read_status(client: KubernetesClient, intent: Intent, timeout: float) -> RolloutStatus | None:  # noqa: ASYNC109 - of each request
    """What the rollouts of the intent's worker left to read; None: nothing yet."""
    name = rollout_status_name(intent.worker)
    manifest = await _config_map(client, intent.namespace, name, Deadline(timeout))
    return parse_rollout_status(manifest) if manifest else None


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
        found: list[list[Mapping[str, Any]]] = []
        namespace = self._intent.namespace
        for path in (jobs_path(namespace), f"/api/v1/namespaces/{namespace}/pods"):
            selected = {"labelSelector": rollout_selector(self._intent.worker)}
            found.append(listed(path, await read_path(self._client, path, deadline, selected)))
        jobs, pods = found
        ours = [job for job in jobs if self._is_ours(job)]
        newest = oldest_first(ours)[-1] if ours else None
        uid = value_at(newest, "metadata", "uid")
        older_pods = [
            pod
            for pod in pods
            if value_at(pod, "status", "phase") not in _ENDED
            and not (self._is_ours(pod) and (not newest or _owners(pod) <= {uid}))
        ]
        return [job for job in jobs if job is not newest], older_pods

    def _is_ours(self, item: Mapping[str, Any]) -> bool:
        return bool(value_at(item, "metadata", "annotations", INTENT_HASH) == self._intent.hash)


def _owners(item: Mapping[str, Any]) -> frozenset[str]:
    """The UIDs of what an object goes with."""
    return frozenset(owner["uid"] for owner in value_at(item, "metadata", "ownerReferences") or ())


async def attached_objects(
    client: KubernetesClient, intent: Intent, deadline: Deadline
) -> list[AttachedInCluster]:
    """The live objects that twgen attached to the worker's versions, of the kinds that its intent names."""
    label = selector_labels(intent.worker, "")[DEPLOYMENT_NAME_LABEL]
    made_here = {DEPLOYMENT_NAME_LABEL: label} | MANAGED_BY
    selected = {"labelSelector": ",".join(f"{name}={text}" for name, text in made_here.items())}
    found = []
    for kind in intent.attached_kinds:
        found += await _objects_of_kind(client, intent.namespace, kind, selected, deadline)
    return found


async def read_attached(
    client: KubernetesClient, wanted: Mapping[str, Iterable[GroupKind]], deadline: Deadline
) -> dict[str, AttachedRead]:
    """The live objects that twgen attached to versions, for the kinds wanted of each namespace.

    One LIST for each; an account that may not list a kind still reads the others.
    """
    read = {}
    for namespace, kinds in sorted(wanted.items()):
        found: list[AttachedInCluster] = []
        unread = {}
        for kind in sorted(kinds, key=str):
            selected = {"labelSelector": ",".join(f"{name}={text}" for name, text in MANAGED_BY.items())}
            try:
                found += await _objects_of_kind(client, namespace, kind, selected, deadline)
            except (StateUnavailable, OutOfTime) as error:
                unread[kind.kind] = str(error)
        read[namespace] = AttachedRead(tuple(found), unread)
    return read


async def _objects_of_kind(
    client: KubernetesClient,
    namespace: str,
    kind: GroupKind,
    selected: Mapping[str, str],
    deadline: Deadline,
) -> list[AttachedInCluster]:
    api_version, served = "v1", "/api/v1"
    if kind.group:
        group = await read_path(client, f"/apis/{kind.group}", deadline, may_be_absent=True)
        if not group:
            return []  # its definition is not installed
        api_version = str(value_at(group, "preferredVersion", "groupVersion"))
        served = f"/apis/{api_version}"
    path = f"{served}/namespaces/{namespace}/{resource_of_kind(kind.kind)}"
    # of an operator's own kind, whose plural is guessed, none is a mistake to be told
    there = await read_path(client, path, deadline, selected, may_be_absent=kind in KINDS)
    return [
        AttachedInCluster(
            kind=kind,
            path=f"{path}/{item['metadata']['name']}",
            api_version=api_version,
            name=item["metadata"]["name"],
            uid=item["metadata"]["uid"],
            owners=_owners(item),
            is_going="deletionTimestamp" in item["metadata"],
            conditions=tuple(_conditions(item)),
        )
        for item in (listed(path, there) if there else ())
    ]


def _conditions(item: Mapping[str, Any]) -> Iterator[Condition]:
    """What an object says of itself, as far as it has the usual shape."""
    found = value_at(item, "status", "conditions")
    for condition in found if isinstance(found, list) else ():
        if isinstance(condition, dict):
            texts = (" ".join(str(condition.get(name) or "").split()) for name in Condition._fields)
            yield Condition(*texts)


async def _config_map(
    client: KubernetesClient, namespace: str, name: str, deadline: Deadline
) -> Mapping[str, Any]:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    found = await read_path(client, path, deadline, may_be_absent=True)
    if found and value_at(found, "metadata", "name") != name:
        raise StateUnavailable(f"{path} cannot be read: the API server answered with another object")
    return found


async def read_path(
    client: KubernetesClient,
    path: str,
    deadline: Deadline,
    query: Mapping[str, str] | None = None,
    *,
    may_be_absent: bool = False,
) -> Mapping[str, Any]:
    """What is at a path, or of it what a query takes; empty when it may be absent, and is."""
    status, answer = await client.ask("GET", path, deadline, query=query)
    if status == HTTPStatus.NOT_FOUND and may_be_absent:
        return {}
    if status != HTTPStatus.OK:
        raise StateUnavailable(f"{path} cannot be read: {answer.get('message') or status}")
    return answer
