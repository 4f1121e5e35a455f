"""Asking an API server which kinds belong to the whole cluster."""

from collections.abc import Iterable
from http import HTTPStatus

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at


async def cluster_scoped(
    client: KubernetesClient, kinds: Iterable[GroupKind], deadline: Deadline
) -> frozenset[GroupKind]:
    """The kinds whose objects are in no namespace; a kind that is not served is not among them."""
    wanted, found = frozenset(kinds), set[GroupKind]()
    for group in sorted({kind.group for kind in wanted}):
        for path in await _versions(client, group, deadline):
            status, served = await client.ask("GET", path, deadline)
            for resource in (served.get("resources") or ()) if status == HTTPStatus.OK else ():
                if value_at(resource, "namespaced") is False:
                    found.add(GroupKind(group, str(value_at(resource, "kind"))))
    return wanted & found


async def _versions(client: KubernetesClient, group: str, deadline: Deadline) -> list[str]:
    """Where the API server describes the kinds of a group, by version of it."""
    if not group:
        return ["/api/v1"]
    status, answer = await client.ask("GET", f"/apis/{group}", deadline)
    versions = (answer.get("versions") or ()) if status == HTTPStatus.OK else ()
    return [f"/apis/{value_at(version, 'groupVersion')}" for version in versions]
