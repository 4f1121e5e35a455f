"""Asking an API server for the caller's name, the rights of accounts, cluster-scoped kinds and its time."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from twgen.clients.deadline import Deadline, monotonic
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.model.diagnosis import Account, Need
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.times import later
from twgen.planning.diagnosis.rights import SERVICE_ACCOUNT

_ACCESS = "authorization.k8s.io/v1"
_AUTHENTICATION = "authentication.k8s.io/v1"
_AT_ONCE = 8


async def whoami(client: KubernetesClient, deadline: Deadline) -> str:
    """The name that Kubernetes has for the caller; empty: it returns none."""
    review = {"apiVersion": _AUTHENTICATION, "kind": "SelfSubjectReview"}
    path = f"/apis/{_AUTHENTICATION}/selfsubjectreviews"
    _, answer = await client.ask("POST", path, deadline, body=review)
    return str(value_at(answer, "status", "userInfo", "username") or "")


async def absent_accounts(
    client: KubernetesClient, accounts: Iterable[Account], deadline: Deadline
) -> tuple[Account, ...]:
    """The accounts that do not exist, without those that the caller may not read."""
    absent = []
    for account in accounts:
        _, _, namespace, name = account.user.split(":")
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        status, _ = await client.ask("GET", path, deadline)
        if status == HTTPStatus.NOT_FOUND:
            absent.append(account)
    return tuple(absent)


async def refused_needs(
    client: KubernetesClient, needs: Iterable[Need], deadline: Deadline, *, of_caller: bool
) -> tuple[Need, ...]:
    """The needs that their accounts, or the caller itself, have no right to.

    Raises StateUnavailable or OutOfTime.
    """
    kind, free = f"{'Self' if of_caller else ''}SubjectAccessReview", asyncio.Semaphore(_AT_ONCE)
    path = f"/apis/{_ACCESS}/{kind.lower()}s"

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
    # a caller without the right to ask gets one failure, not eight
    answers = [await is_refused(first), *await asyncio.gather(*map(is_refused, others))]
    missing = [need for need, is_missing in zip(unique, answers, strict=True) if is_missing]
    served = {
        group: (await client.ask("GET", f"/apis/{group}", deadline))[0] != HTTPStatus.NOT_FOUND
        for group in sorted({need.right.group for need in missing} - {""})
    }
    # a kind whose definition is not installed has no objects, so no account needs the right
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
    """The kinds whose objects are in no namespace, without those that the API server does not serve."""
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
    """How far the API server's clock is ahead; None: it has not answered yet."""
    if not client.heard:
        return None
    server_time, at = client.heard
    return later(server_time, timedelta(seconds=monotonic() - at)) - now
