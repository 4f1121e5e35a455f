"""Whether Argo CD has applied an intent without its hook."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from twgen.clients.argocd import AT_ONCE, last_sync
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed
from twgen.model.reasons import RoutingReason
from twgen.model.status import RolloutStatus
from twgen.planning.drivers import hook_is_skipped, may_hook_come
from twgen.planning.rollout import hook_skipped, needs_a_rollout
from twgen.reading.kubernetes import read_path
from twgen.reading.rollouts import RolloutsInCluster
from twgen.records.intent import Intent
from twgen.records.rollout_status import is_of
from twgen.versioning.names import rollout_name

APPLICATIONS = "/apis/argoproj.io/v1alpha1"
USUAL_NAMESPACE = "argocd"
_MOST_APPLICATIONS = 10
"""For each namespace of intents: one of them holds up no question about the others."""

Read = Callable[[str, Deadline], Awaitable[Sequence[Mapping[str, Any]]]]
"""Reads applications by the name that their objects are tracked by."""


async def with_skipped_hooks(
    records: RolloutsInCluster, read: Read, deadline: Deadline, now: datetime
) -> RolloutsInCluster:
    """The records, with the intents whose hooks Argo CD has skipped; those that cannot be read have none.

    `read` finds the applications that are called so, and raises StateUnavailable or OutOfTime.
    """
    of_namespace: defaultdict[str, dict[str, list[Intent]]] = defaultdict(dict)
    for intent in records.intents:
        since = records.jobless.get(f"{intent.namespace}/{intent.worker}")
        # anyone who may write the intent chooses the name of the application
        is_asked = intent.has_hook and since and not may_hook_come(since, now) and intent.argocd_name
        known = of_namespace[intent.namespace]
        if is_asked and (intent.application in known or len(known) < _MOST_APPLICATIONS):
            known.setdefault(intent.application, []).append(intent)
    names = {name for known in of_namespace.values() for name in known}
    turns = asyncio.Semaphore(AT_ONCE)

    async def found(name: str) -> tuple[str, Sequence[Mapping[str, Any]]]:
        async with turns:
            return name, await read(name, deadline)

    answers = await asyncio.gather(*map(found, sorted(names)), return_exceptions=True)
    applications = dict(answer for answer in answers if not isinstance(answer, BaseException))
    skipped = {
        f"{intent.namespace}/{intent.worker}": intent
        for known in of_namespace.values()
        for name, intents in known.items()
        for intent in intents
        if _is_skipped(intent, applications.get(name, ()))
    }
    begun = {status.worker: status for status in records.statuses if status.intent}
    return records._replace(
        shown=tuple(
            _as_skipped(status, skipped[status.worker]) if status.worker in skipped else status
            for status in records.shown
        ),
        skipped=frozenset(
            worker
            for worker, intent in skipped.items()
            if not ((status := begun.get(worker)) and is_of(status, intent))
            or needs_a_rollout(status.phase, status.reason)
        ),
    )


def _as_skipped(status: RolloutStatus, intent: Intent) -> RolloutStatus:
    """The status, which says so if the rollout has not begun."""
    if status.reason != RoutingReason.ROLLOUT_NOT_BEGUN:
        return status
    is_mended = intent.is_mended or intent.is_taken_over
    return hook_skipped(status, intent.full_sync, is_mended=is_mended)


def _is_skipped(intent: Intent, applications: Sequence[Mapping[str, Any]]) -> bool:
    place = intent.namespace, rollout_name(intent.worker)
    syncs = [last_sync(application, *place) for application in applications]
    return any(sync and hook_is_skipped(sync) for sync in syncs)


async def applications_called(
    client: KubernetesClient, argocd_namespace: str, tracked_as: str, deadline: Deadline
) -> Sequence[Mapping[str, Any]]:
    """The applications of a cluster with this name; raises StateUnavailable or OutOfTime.

    An application outside the namespace of its Argo CD is tracked as <namespace>_<name>.
    """
    namespace, _, name = tracked_as.rpartition("_")
    query = {"fieldSelector": f"metadata.name={name}"}
    if not namespace:
        path = f"{APPLICATIONS}/applications"
        status, answer = await client.ask("GET", path, deadline, query=query)
        if status == HTTPStatus.OK:
            return listed(path, answer)
    # without the right to those of all namespaces
    path = f"{APPLICATIONS}/namespaces/{quote(namespace or argocd_namespace)}/applications/{quote(name)}"
    found = await read_path(client, path, deadline, may_be_absent=True)
    return [found] if found else []
