"""Reading the objects of a cluster that specs are made from: the controller's, and Deployments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed
from twgen.model.paths import value_at
from twgen.model.problem import Document
from twgen.reading.kubernetes import read_path
from twgen.specs.kinds import ATTACHED, CLUSTER_CONNECTION, CONNECTION, WORKER, names_of_kind
from twgen.versioning.names import (
    CONTROLLER_API,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    is_dns_name,
    resource_of_kind,
)

_GROUP = f"/apis/{CONTROLLER_API}"


class InCluster(NamedTuple):
    """The objects of a namespace that specs can be made from."""

    documents: tuple[Document, ...]
    absent: tuple[str, ...]
    """The kinds of the controller that the API server does not know."""


async def objects_to_import(
    client: KubernetesClient, namespace: str, deployments: Iterable[str], deadline: Deadline
) -> InCluster:
    """The controller's objects of a namespace, all Deployments of versions, and these other Deployments.

    Raises StateUnavailable if a named Deployment does not exist, or an object may not be read.
    """
    objects: list[Mapping[str, Any]] = []
    absent = []
    for kind in (WORKER, CONNECTION, ATTACHED):
        items = await _of_kind(client, namespace, kind, deadline)
        objects += items or ()
        absent += [kind] if items is None else []
    for name in _cluster_connections(objects):
        path = f"{_GROUP}/{resource_of_kind(CLUSTER_CONNECTION)}/{name}"
        connection = await read_path(client, path, deadline)
        objects.append({**connection, "apiVersion": CONTROLLER_API, "kind": CLUSTER_CONNECTION})
    folder = f"/apis/{DEPLOYMENT_API}/namespaces/{namespace}/deployments"
    named_objects = [await read_path(client, f"{folder}/{name}", deadline) for name in deployments]
    live = [*await client.deployments(namespace, DEPLOYMENT_NAME_LABEL, deadline), *named_objects]
    objects += [{**deployment, "apiVersion": DEPLOYMENT_API, "kind": "Deployment"} for deployment in live]
    documents = (Document(f"namespace {namespace}", index, value) for index, value in enumerate(objects))
    return InCluster(tuple(documents), tuple(absent))


async def _of_kind(
    client: KubernetesClient, namespace: str, kind: str, deadline: Deadline
) -> Sequence[Mapping[str, Any]] | None:
    """The objects of a kind under any of its names, each once; None: the API server knows no such kind."""
    objects_by_name: dict[str, Mapping[str, Any]] | None = None
    for name_of_kind in names_of_kind(kind):
        path = f"{_GROUP}/namespaces/{namespace}/{resource_of_kind(name_of_kind)}"
        answer = await read_path(client, path, deadline, may_be_absent=True)
        if not answer:
            continue
        objects_by_name = objects_by_name or {}
        for item in listed(path, answer):
            # the controller keeps an object of the old kind next to the new one that it made from it
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
