"""Finds intents that Argo CD has applied without running the hooks."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from itertools import islice, zip_longest
from typing import Any
from urllib.parse import quote

from twgen.clients.argocd import AT_ONCE, last_sync, listed_config_maps
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed, path_of
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.reasons import RoutingReason
from twgen.planning.drivers import hook_is_skipped, may_hook_come
from twgen.planning.rollout import hook_skipped, needs_a_rollout
from twgen.reading.kubernetes import read_path
from twgen.reading.rollouts import RolloutsInCluster
from twgen.records.intent import Intent
from twgen.records.rollout_status import is_of
from twgen.reporting.bugs import Bug
from twgen.versioning.names import rollout_name

APPLICATION_API = "argoproj.io/v1alpha1"
USUAL_NAMESPACE = "argocd"
_MOST_APPLICATIONS = 500
"""The maximum number of applications that are read per check."""
_SHARES = 4
"""One application's read can take at most one fourth of a check's time."""

Read = Callable[[str, Deadline], Awaitable[Sequence[Mapping[str, Any]]]]
"""Reads applications by the application name in the tracking annotation of their objects."""


async def with_skipped_hooks(
    records: RolloutsInCluster, read: Read, seconds: float, now: datetime
) -> RolloutsInCluster:
    """Find the intents whose hooks Argo CD has skipped, and add them to the records.

    If an application cannot be read, its hooks do not count as skipped. `read` finds the applications with a
    name, and raises StateUnavailable or OutOfTime. All reads together can take at most `seconds`. The next
    check reads the remaining applications.
    """
    asked = _asked(records, now)
    deadline, turns = Deadline(seconds), asyncio.Semaphore(AT_ONCE)
    skipped: dict[str, Intent] = {}
    bugs: list[str] = []

    async def ask(name: str) -> None:
        async with turns:
            if deadline.remaining <= 0:
                return
            try:
                applications = await read(name, Deadline(min(deadline.remaining, seconds / _SHARES)))
            except (StateUnavailable, OutOfTime):
                return
            except Exception as error:  # noqa: BLE001 - one application must not end the check of all others
                bugs.append(Bug.of(f"application {name}", error))
                return
        for application in applications:
            managed = listed_config_maps(application)
            for intent in asked[name] if hook_is_skipped(last_sync(application)) else ():
                item = managed.get((intent.namespace, rollout_name(intent.worker)))
                if item and not item.get("requiresPruning"):
                    skipped[f"{intent.namespace}/{intent.worker}"] = intent

    await asyncio.gather(*map(ask, asked))
    return records._replace(
        shown=tuple(
            hook_skipped(status, intent.full_sync, tick_takes_over=intent.tick_takes_over)
            if status.reason == RoutingReason.ROLLOUT_NOT_BEGUN and (intent := skipped.get(status.worker))
            else status
            for status in records.shown
        ),
        skipped=frozenset(skipped),
        unusable=(*records.unusable, *bugs),
    )


def _asked(records: RolloutsInCluster, now: datetime) -> dict[str, list[Intent]]:
    """The intents whose hooks may have been skipped, by application, in the order of the reads.

    Anyone who is allowed to write intents can name any number of applications. Therefore, the namespaces take
    turns, and each namespace starts with a different application every minute.
    """
    status_of = {status.worker: status for status in records.statuses}
    intents_of: defaultdict[str, list[Intent]] = defaultdict(list)
    names_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for intent in records.intents:
        worker = f"{intent.namespace}/{intent.worker}"
        since, status = records.jobless.get(worker), status_of.get(worker)
        if not (intent.has_hook and intent.argocd_name and since) or may_hook_come(since, now):
            continue
        # if another client replaces the intent, the intent loses tick's annotation, and tick's rollout ends
        # with ROLLOUT_ENDED
        is_idle = (
            is_of(status, intent)
            and status.reason != RoutingReason.ROLLOUT_ENDED
            and not needs_a_rollout(status.phase, status.reason)
        )
        if not (is_idle or intent.is_taken_over):
            intents_of[intent.application].append(intent)
            names_of[intent.namespace][intent.application] = None
    minute = int(now.timestamp() // 60)
    rotated = [
        [*names][minute % len(names) :] + [*names][: minute % len(names)] for names in names_of.values()
    ]
    in_turn = dict.fromkeys(name for names in zip_longest(*rotated) for name in names if name)
    return {name: intents_of[name] for name in islice(in_turn, _MOST_APPLICATIONS)}


async def applications_called(
    client: KubernetesClient, argocd_namespace: str, tracked_as: str, deadline: Deadline
) -> Sequence[Mapping[str, Any]]:
    """Read the applications with this name from the cluster. Raises StateUnavailable or OutOfTime.

    The tracking name of an application outside Argo CD's own namespace is <namespace>_<name>.
    """
    namespace, _, name = tracked_as.rpartition("_")
    query = {"fieldSelector": f"metadata.name={name}"}
    if not namespace:
        path = path_of(APPLICATION_API, "Application")
        status, answer = await client.ask("GET", path, deadline, query=query)
        if status == HTTPStatus.OK:
            return listed(path, answer)
    # the account may lack permission to list applications in all namespaces
    path = path_of(APPLICATION_API, "Application", quote(namespace or argocd_namespace), quote(name))
    found = await read_path(client, path, deadline, may_be_absent=True)
    return [found] if found else []
