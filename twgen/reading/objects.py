"""Reads objects from a cluster by kind: objects that are attached to versions, and objects to import."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import Forbidden, KubernetesClient, listed, path_of
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.paths import list_at, value_at
from twgen.model.problem import Document
from twgen.planning.cluster_changes import AttachedInCluster, Condition
from twgen.planning.worker_status import AttachedRead
from twgen.reading.kubernetes import owners_of, read_config_map, read_path
from twgen.records.intent import Intent
from twgen.specs.attached import KINDS
from twgen.specs.imported_workers import is_of
from twgen.specs.kinds import ATTACHED, CLUSTER_CONNECTION, CONNECTION, WORKER, names_of_kind
from twgen.versioning.names import (
    CONTROLLER_API,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    MANAGED_BY,
    is_dns_name,
    selector_labels,
)
from twgen.versioning.pod_references import referenced_objects


async def attached_objects(
    client: KubernetesClient, intent: Intent, deadline: Deadline
) -> list[AttachedInCluster]:
    """The live objects of the intent's kinds that twgen attached to the worker's versions."""
    label = selector_labels(intent.worker, "")[DEPLOYMENT_NAME_LABEL]
    labels = {DEPLOYMENT_NAME_LABEL: label} | MANAGED_BY
    objects = []
    for kind in intent.attached_kinds:
        objects += await _objects_of_kind(client, intent.namespace, kind, labels, deadline)
    return objects


async def read_attached(
    client: KubernetesClient, kinds_by_namespace: Mapping[str, Iterable[GroupKind]], deadline: Deadline
) -> dict[str, AttachedRead]:
    """The live objects of these kinds that twgen attached to versions, by namespace.

    Each kind needs one LIST request. If the account cannot list a kind, the other kinds are still read.
    """
    read_by_namespace = {}
    for namespace, kinds in sorted(kinds_by_namespace.items()):
        objects: list[AttachedInCluster] = []
        unread = {}
        for kind in sorted(kinds, key=str):
            try:
                objects += await _objects_of_kind(client, namespace, kind, MANAGED_BY, deadline)
            except (StateUnavailable, OutOfTime) as error:
                unread[kind.kind] = str(error)
        read_by_namespace[namespace] = AttachedRead(tuple(objects), unread)
    return read_by_namespace


async def _objects_of_kind(
    client: KubernetesClient, namespace: str, kind: GroupKind, labels: Mapping[str, str], deadline: Deadline
) -> list[AttachedInCluster]:
    api_version = "v1"
    if kind.group:
        group = await read_path(client, f"/apis/{kind.group}", deadline, may_be_absent=True)
        if not group:
            return []  # the kind's CustomResourceDefinition is not installed
        api_version = str(value_at(group, "preferredVersion", "groupVersion"))
    path = path_of(api_version, kind.kind, namespace)
    # for kinds from the operator's list, twgen guesses the plural, so a path that does not exist is an error
    query = {"labelSelector": ",".join(f"{name}={text}" for name, text in labels.items())}
    answer = await read_path(client, path, deadline, query, may_be_absent=kind in KINDS)
    return [
        AttachedInCluster(
            kind=kind,
            path=f"{path}/{item['metadata']['name']}",
            api_version=api_version,
            name=item["metadata"]["name"],
            uid=item["metadata"]["uid"],
            owners=owners_of(item),
            is_going="deletionTimestamp" in item["metadata"],
            conditions=tuple(_conditions(item)),
        )
        for item in (listed(path, answer) if answer else ())
    ]


def _conditions(item: Mapping[str, Any]) -> Iterator[Condition]:
    """The conditions in an object's status. Items that are not mappings are skipped."""
    for condition in list_at(item, "status", "conditions"):
        if isinstance(condition, dict):
            texts = (" ".join(str(condition.get(name) or "").split()) for name in Condition._fields)
            yield Condition(*texts)


class ToImport(NamedTuple):
    """The objects in a namespace from which specs can be made."""

    documents: list[Document]
    absent: list[str]
    """The controller's kinds that the API server does not serve."""
    unread: list[str]
    """The errors for the named Deployments' objects that could not be read."""


async def objects_to_import(
    client: KubernetesClient, namespace: str, deployments: Iterable[str], deadline: Deadline
) -> ToImport:
    """Read the controller's objects, all versions' Deployments, and the named Deployments with their objects.

    Raises StateUnavailable if a named Deployment does not exist, or if a named Deployment or one of the
    controller's objects cannot be read.
    """
    objects: list[Mapping[str, Any]] = []
    absent: list[str] = []
    for kind in (WORKER, CONNECTION, ATTACHED):
        items = await _of_kind(client, namespace, kind, deadline)
        objects += items or ()
        absent += [kind] if items is None else []
    for name in _cluster_connections(objects):
        path = path_of(CONTROLLER_API, CLUSTER_CONNECTION, name=name)
        connection = await read_path(client, path, deadline)
        objects.append({**connection, "apiVersion": CONTROLLER_API, "kind": CLUSTER_CONNECTION})
    paths = [path_of(DEPLOYMENT_API, "Deployment", namespace, name) for name in deployments]
    named_objects = [await read_path(client, path, deadline) for path in paths]
    live = [*await client.deployments(namespace, DEPLOYMENT_NAME_LABEL, deadline), *named_objects]
    objects += [{**deployment, "apiVersion": DEPLOYMENT_API, "kind": "Deployment"} for deployment in live]
    theirs, unread = await _objects_of(client, namespace, named_objects, deadline)
    documents = [Document(f"namespace {namespace}", *item) for item in enumerate([*objects, *theirs])]
    return ToImport(documents, absent, unread)


async def _objects_of(
    client: KubernetesClient, namespace: str, deployments: Sequence[Mapping[str, Any]], deadline: Deadline
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Read the autoscalers and budgets of these Deployments, and the ConfigMaps that their pods use.

    Also returns the errors for objects that could not be read.
    """
    objects: list[Mapping[str, Any]] = []
    unread: list[str] = []
    for kind, rules in KINDS.items() if deployments else ():
        marks = {"apiVersion": f"{kind.group}/{next(iter(rules.structs))}", "kind": kind.kind}
        path = path_of(marks["apiVersion"], kind.kind, namespace)
        try:
            answer = await read_path(client, path, deadline, may_be_absent=True)
            items = [{**item, **marks} for item in (listed(path, answer) if answer else ())]
        except Forbidden as error:
            unread.append(f"no {kind.kind} is imported: {error}")
            continue
        objects += [item for item in items if any(is_of(item, deployment) for deployment in deployments)]
    pods = (value_at(deployment, "spec", "template", "spec") or {} for deployment in deployments)
    named = {name for pod in pods for kind, name in referenced_objects(pod) if kind == "ConfigMap"}
    for name in sorted(filter(is_dns_name, named)):
        try:
            found = await read_config_map(client, namespace, name, deadline)
        except Forbidden as error:
            unread.append(f"the values in ConfigMap {name} are unknown: {error}")
            continue
        objects += [{**found, "apiVersion": "v1", "kind": "ConfigMap"}] if found else []
    return objects, unread


async def _of_kind(
    client: KubernetesClient, namespace: str, kind: str, deadline: Deadline
) -> Sequence[Mapping[str, Any]] | None:
    """The objects of a kind under all of its names, or None if the API server does not serve the kind."""
    objects_by_name: dict[str, Mapping[str, Any]] | None = None
    for name_of_kind in names_of_kind(kind):
        path = path_of(CONTROLLER_API, name_of_kind, namespace)
        answer = await read_path(client, path, deadline, may_be_absent=True)
        if not answer:
            continue
        objects_by_name = objects_by_name or {}
        for item in listed(path, answer):
            # when the controller converts an object to the new kind, it also keeps the old object
            marks = {"apiVersion": CONTROLLER_API, "kind": name_of_kind}
            objects_by_name.setdefault(item["metadata"]["name"], {**item, **marks})
    return None if objects_by_name is None else list(objects_by_name.values())


def _cluster_connections(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the ClusterConnections that workers refer to."""
    names = set[str]()
    for value in objects:
        reference = value_at(value, "spec", "workerOptions", "connectionRef")
        for target in (reference, value_at(reference, "objectRef")):
            if value_at(target, "kind") == CLUSTER_CONNECTION and is_dns_name(value_at(target, "name")):
                names.add(str(value_at(target, "name")))
    return sorted(names)
