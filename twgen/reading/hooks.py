"""Whether Argo CD has applied an intent without its hook."""

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
"""In one look."""
_SHARES = 4
"""An application that does not answer takes one of so many parts of the time of a look."""

Read = Callable[[str, Deadline], Awaitable[Sequence[Mapping[str, Any]]]]
"""Reads applications by the name that their objects are tracked by."""


async def with_skipped_hooks(
    records: RolloutsInCluster, read: Read, seconds: float, now: datetime
) -> RolloutsInCluster:
    """The records, with the intents whose hooks Argo CD has skipped; those that cannot be read have none.

    `read` finds the applications that are called so, and raises StateUnavailable or OutOfTime. All of them
    are read within these seconds, and each within a part of them: others have their turn at the next look.
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
            except Exception as error:  # noqa: BLE001 - one application must not end the look at all others
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
    """The intents whose hook may be skipped, by their applications in the order of the questions.

    Anyone who may write intents can name as many applications as he likes: the namespaces take turns, and
    each begins with another application in each minute.
    """
    status_of = {status.worker: status for status in records.statuses}
    intents_of: defaultdict[str, list[Intent]] = defaultdict(list)
    names_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for intent in records.intents:
        worker = f"{intent.namespace}/{intent.worker}"
        since, status = records.jobless.get(worker), status_of.get(worker)
        if not (intent.has_hook and intent.argocd_name and since) or may_hook_come(since, now):
            continue
        # a rollout by tick ends like this if somebody replaces the intent, without tick's annotation
        has_ended = status and status.reason == RoutingReason.ROLLOUT_ENDED
        is_begun = status and is_of(status, intent) and not has_ended
        is_idle = status and is_begun and not needs_a_rollout(status.phase, status.reason)
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
    """The applications of a cluster with this name; raises StateUnavailable or OutOfTime.

    An application outside the namespace of its Argo CD is tracked as <namespace>_<name>.
    """
    namespace, _, name = tracked_as.rpartition("_")
    query = {"fieldSelector": f"metadata.name={name}"}
    if not namespace:
        path = path_of(APPLICATION_API, "Application")
        status, answer = await client.ask("GET", path, deadline, query=query)
        if status == HTTPStatus.OK:
            return listed(path, answer)
    # the right to list them in all namespaces may be missing
    path = path_of(APPLICATION_API, "Application", quote(namespace or argocd_namespace), quote(name))
    found = await read_path(client, path, deadline, may_be_absent=True)
    return [found] if found else []
