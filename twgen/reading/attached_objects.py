"""Reading the objects that twgen attached to versions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.planning.cluster_changes import AttachedInCluster, Condition
from twgen.planning.worker_status import AttachedRead
from twgen.reading.kubernetes import owners_of, read_path
from twgen.records.intent import Intent
from twgen.specs.attached import KINDS
from twgen.versioning.names import DEPLOYMENT_NAME_LABEL, MANAGED_BY, resource_of_kind, selector_labels


async def attached_objects(
    client: KubernetesClient, intent: Intent, deadline: Deadline
) -> list[AttachedInCluster]:
    """The live objects that twgen attached to the worker's versions, of the kinds that its intent names."""
    label = selector_labels(intent.worker, "")[DEPLOYMENT_NAME_LABEL]
    labels = {DEPLOYMENT_NAME_LABEL: label} | MANAGED_BY
    selected = {"labelSelector": ",".join(f"{name}={text}" for name, text in labels.items())}
    objects = []
    for kind in intent.attached_kinds:
        objects += await _objects_of_kind(client, intent.namespace, kind, selected, deadline)
    return objects


async def read_attached(
    client: KubernetesClient, kinds_by_namespace: Mapping[str, Iterable[GroupKind]], deadline: Deadline
) -> dict[str, AttachedRead]:
    """The live objects that twgen attached to versions, of the kinds given for each namespace.

    One LIST for each; an account that may not list a kind still reads the others.
    """
    read_by_namespace = {}
    for namespace, kinds in sorted(kinds_by_namespace.items()):
        objects: list[AttachedInCluster] = []
        unread = {}
        for kind in sorted(kinds, key=str):
            selected = {"labelSelector": ",".join(f"{name}={text}" for name, text in MANAGED_BY.items())}
            try:
                objects += await _objects_of_kind(client, namespace, kind, selected, deadline)
            except (StateUnavailable, OutOfTime) as error:
                unread[kind.kind] = str(error)
        read_by_namespace[namespace] = AttachedRead(tuple(objects), unread)
    return read_by_namespace


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
    # twgen guesses the plural of an operator's own kind, so its absence is an error that people must see
    answer = await read_path(client, path, deadline, selected, may_be_absent=kind in KINDS)
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
    """The conditions in an object's status, as far as they have the usual shape."""
    conditions = value_at(item, "status", "conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict):
            texts = (" ".join(str(condition.get(name) or "").split()) for name in Condition._fields)
            yield Condition(*texts)
