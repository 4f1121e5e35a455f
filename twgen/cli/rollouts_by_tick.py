"""The rollouts that `twgen tick` carries out, in place of Jobs."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from twgen.cli.in_cluster import ClusterServers, JobPlace, how_it_ended
from twgen.cli.live import Connections, Prometheus, Servers
from twgen.cli.output import warn
from twgen.cli.rolling import sleep
from twgen.cli.settings import clock, steady
from twgen.clients.deadline import AnswerDeadline
from twgen.errors import TwgenError
from twgen.executing.ports import Reported, View
from twgen.executing.rollout_tasks import RolloutTasks
from twgen.executing.unattended import carry_out
from twgen.model.rollout import EndedJob, JobReference, RolloutMetadata
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.rollout import needs_a_rollout
from twgen.planning.shards import Shard
from twgen.reading.listing import list_rollouts
from twgen.reading.rollouts import specs_of
from twgen.records.intent import Intent, UnusableIntent
from twgen.records.rollout_status import is_of
from twgen.versioning.names import rollout_name

if TYPE_CHECKING:
    from twgen.clients.prometheus import PrometheusServers

_BETWEEN_LISTS = timedelta(seconds=8)
"""The longest time until tick sees a new intent, or a request."""
_LOOKS_AT_ONCE = 8
"""Rollouts on one Temporal server: more at once would only make each of its answers later."""


class RolloutsByTick(RolloutTasks):
    """The rollouts of one process, and the connections that they use."""

    def __init__(
        self,
        servers: Servers,
        opened: Connections,
        say: Callable[[str], None],
        report_bug: Callable[[str, Exception], None],
    ) -> None:
        super().__init__(steady, say, report_bug)
        self._settings = settings = opened.settings
        self.shard = Shard(settings.shard, settings.shards)
        self._servers = servers
        self.turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_LOOKS_AT_ONCE))
        self._failure = ""
        self._opened = opened
        self._has_remembered = asyncio.Event()

    async def follow(self) -> None:
        """Begin the rollouts of new intents, while the process lives, from the first `remember` on."""
        await self._has_remembered.wait()
        while True:
            deadline = AnswerDeadline(self._settings.timeout)
            try:
                client = self._opened.cluster_for("tick")
                listed = await list_rollouts(client, self._settings.namespace, deadline)
            except TwgenError as error:
                self._renew(str(error))
            except Exception as error:  # noqa: BLE001 - it must not end the rollouts that run
                self.report_bug("a look for new intents and requests", error)
            else:
                if self._failure:
                    # a certificate may have been renewed since they were begun
                    self.stop()
                    self._failure = ""
                self.see(listed)
            await sleep(_BETWEEN_LISTS)

    def _renew(self, failure: str) -> None:
        """Use new connections for the next list, and for all rollouts once it succeeds."""
        if failure != self._failure:
            self._failure = failure
            warn([f"rollouts cannot be seen: {failure}"])
        with suppress(TwgenError):
            self._opened = self._servers.renewed(self._opened)

    def remember(self, intents: Iterable[Intent], status_of: Mapping[str, RolloutStatus]) -> None:
        """Note which intents an earlier process has carried out already; `status_of` is by worker."""
        for intent in intents:
            status = status_of.get(f"{intent.namespace}/{intent.worker}")
            if not (intent.is_by_tick and status and is_of(status, intent)):
                continue
            if not needs_a_rollout(status.phase, status.reason):
                ended_for = max(timedelta(), clock() - status.since)
                self.note_end(metadata_of(intent), steady() - ended_for)
        self._has_remembered.set()

    def ended(self, intent: Intent) -> EndedJob | None:
        """The end of the rollout of an intent, in place of that of its Job; None: it runs, or is a Job's."""
        at = self.ended_at(metadata_of(intent)) if intent.is_by_tick else None
        return EndedJob(JobReference("", ""), clock() - (steady() - at)) if at else None

    async def carry_out(self, metadata: RolloutMetadata) -> None:
        """Carry out an intent of this shard."""
        place = _Place(self, self._opened, metadata)
        plan = await carry_out(place, metadata.intent_hash, None)
        if place.is_own:
            self.say(f"{place.name}: {how_it_ended(plan)}")


class _Named(Prometheus):
    """The Prometheus servers that an intent names, of those that its worker may use."""

    def __init__(self, usable: Prometheus, intent: Intent) -> None:
        self._usable, self._names = usable, {server.name for server in intent.prometheus}

    def of(self, spec: WorkerSpec) -> "PrometheusServers":
        return self._usable.of(spec).among(self._names)


class _Place(JobPlace):
    """The ConfigMap of an intent; that of another shard does not exist."""

    def __init__(self, rollouts: RolloutsByTick, opened: Connections, metadata: RolloutMetadata) -> None:
        super().__init__(opened, metadata.place, View(rollouts.say))
        self._rollouts, self._metadata = rollouts, metadata
        self.is_own = False

    async def read_intent(self, intent_hash: str) -> Intent | None:
        shard = self._rollouts.shard
        try:
            if intent := await super().read_intent(intent_hash):
                self.is_own = shard.has(specs_of(intent).workers[0])
        except UnusableIntent:
            self.is_own = shard.is_first
            if self.is_own:
                raise
            return None
        return intent if self.is_own else None

    def servers(self, intent: Intent) -> ClusterServers:
        return _SharedServers(self._rollouts, self._metadata, self._opened, intent)


class _SharedServers(ClusterServers):
    """The servers of one of many rollouts: a look waits for its turn; a status that changed is read."""

    def __init__(
        self, rollouts: RolloutsByTick, metadata: RolloutMetadata, opened: Connections, intent: Intent
    ) -> None:
        super().__init__(replace(opened, prometheus=_Named(opened.prometheus, intent)), intent)
        self._rollouts, self._metadata = rollouts, metadata
        self._read_version = metadata.status_version

    async def read(self, *, for_routing: bool = True) -> World:
        # a turn ends with the read: if a status or an Event cannot be written, no other rollout waits
        async with self._rollouts.turns[self.spec.connection.host_port]:
            return await super().read(for_routing=for_routing)

    async def reported(self) -> Reported:
        is_asked = self._rollouts.is_asked(self._metadata)
        version = self._rollouts.status_version(self._metadata)
        if not is_asked and version == self._read_version:
            return Reported()
        reported = await super().reported()
        self._read_version = version
        return reported._replace(is_news=is_asked)


def metadata_of(intent: Intent) -> RolloutMetadata:
    """The same of an intent that was read as a whole."""
    return RolloutMetadata(intent.namespace, rollout_name(intent.worker), intent.hash, intent.uid)
