"""Whether Argo CD has applied an intent without its hook."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from twgen.clients.argocd import last_sync
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient, listed
from twgen.errors import OutOfTime, StateUnavailable
from twgen.planning.drivers import hook_is_skipped, may_hook_come
from twgen.reading.kubernetes import read_path
from twgen.records.intent import Intent
from twgen.versioning.names import rollout_name

APPLICATIONS = "/apis/argoproj.io/v1alpha1"
_ARGOCD = "argocd"
"""The usual namespace of Argo CD."""


class SkippedHooks:
    """Asks for the applications of intents, for each application once."""

    def __init__(
        self, read: Callable[[str], Awaitable[list[Mapping[str, Any]]]], clock: Callable[[], datetime]
    ) -> None:
        """`read` gets the name of an application as its objects are tracked, and finds those called so."""
        self._read, self._clock = read, clock
        self._known: dict[str, list[Mapping[str, Any]]] = {}

    async def has(self, intent: Intent, changed: datetime) -> bool:
        """Argo CD skipped the hook of an intent that last changed at this time; False if it is unknown."""
        name = intent.application
        if not name or may_hook_come(changed, self._clock()):
            return False
        if name not in self._known:
            try:
                self._known[name] = await self._read(name)
            except (StateUnavailable, OutOfTime):
                self._known[name] = []
        place = intent.namespace, rollout_name(intent.worker)
        syncs = [last_sync(application, *place) for application in self._known[name]]
        return any(sync and hook_is_skipped(sync) for sync in syncs)


async def applications_called(
    client: KubernetesClient, deadline: Deadline, tracked_as: str
) -> list[Mapping[str, Any]]:
    """The applications of a cluster with this name; raises StateUnavailable or OutOfTime.

    An application outside the namespace of its Argo CD is tracked as <namespace>_<name>.
    """
    namespace, _, name = tracked_as.rpartition("_")
    query = {"fieldSelector": f"metadata.name={name}"}
    if not namespace:
        path = f"{APPLICATIONS}/applications"
        status, answer = await client.ask("GET", path, deadline, query=query)
        if status == HTTPStatus.OK:
            return [*listed(path, answer)]
    # without the right to those of all namespaces
    path = f"{APPLICATIONS}/namespaces/{namespace or _ARGOCD}/applications/{name}"
    found = await read_path(client, path, deadline, may_be_absent=True)
    return [found] if found else []
