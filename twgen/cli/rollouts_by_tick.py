"""Carries out rollouts in the process of `twgen tick`, instead of in Jobs."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from twgen.cli.live import Connections, Servers
from twgen.cli.output import warn
from twgen.cli.rolling import sleep
from twgen.cli.rollout import ClusterServers, JobPlace, how_it_ended
from twgen.cli.settings import clock, steady
from twgen.clients.deadline import AnswerDeadline
from twgen.errors import TwgenError
from twgen.executing.ports import Reported, RolloutView
from twgen.executing.unattended import carry_out
from twgen.model.rollout import EndedJob, RolloutMetadata
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.drivers import Shard
from twgen.planning.rollout import needs_a_rollout
from twgen.reading.kubernetes import list_rollouts
from twgen.reading.rollouts import specs_of
from twgen.records.intent import Intent, UnusableIntent
from twgen.records.rollout_status import is_of
from twgen.versioning.names import rollout_name

_BETWEEN_LISTS = timedelta(seconds=8)
"""tick lists the rollouts at this interval, so it notices a new intent or request within this time."""
_LOOKS_AT_ONCE = 8
"""At most this many rollouts read one Temporal server at once, because more would slow the server down."""


Place = tuple[str, str]
"""The namespace and the name of an intent."""


class _Ended(NamedTuple):
    """A rollout that has ended: its intent, and the time of its end."""

    intent: RolloutMetadata
    at: datetime


class RolloutsByTick:
    """The rollouts that one process carries out concurrently, with one task for each worker.

    The process starts the rollout of each intent once, and restarts it on request. The cluster stores
    everything that a rollout must remember. If a rollout is stopped in the middle of a change, the change
    might not be recorded, and the rollout's gates run again.
    """

    def __init__(
        self,
        servers: Servers,
        opened: Connections,
        say: Callable[[str], None],
        report_bug: Callable[[str, Exception], None],
    ) -> None:
        """`say` receives a line for each change and for the end of each rollout."""
        self._servers, self._opened, self._settings = servers, opened, opened.settings
        self.say, self.report_bug, self._steady = say, report_bug, steady
        self.shard = Shard(self._settings.shard, self._settings.shards)
        self.turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_LOOKS_AT_ONCE))
        self._seen: dict[Place, RolloutMetadata] = {}
        self._running: dict[Place, asyncio.Task[None]] = {}
        self._ended: dict[Place, _Ended] = {}
        self._failure = ""
        self._has_remembered = asyncio.Event()

    async def follow(self) -> None:
        """Wait for the first `remember` call, then start rollouts of new intents until the process ends."""
        await self._has_remembered.wait()
        while True:
            deadline = AnswerDeadline(self._settings.timeout)
            try:
                client = self._opened.cluster_for("tick")
                listed = await list_rollouts(client, self._settings.namespace, deadline)
            except TwgenError as error:
                self._renew(str(error))
            except Exception as error:  # noqa: BLE001 - it must not end the rollouts that run
                self.report_bug("listing intents and requests", error)
            else:
                if self._failure:
                    # restart all rollouts: a certificate may have been renewed since they started
                    self.stop()
                    self._failure = ""
                self.see(listed)
            await sleep(_BETWEEN_LISTS)

    def _renew(self, failure: str) -> None:
        """Open new connections for the next list. If that succeeds, all rollouts use these connections."""
        if failure != self._failure:
            self._failure = failure
            warn([f"the rollouts cannot be listed: {failure}"])
        with suppress(TwgenError):
            self._opened = self._servers.renewed(self._opened)

    def remember(self, intents: Iterable[Intent], status_of: Mapping[str, RolloutStatus]) -> None:
        """Note which intents need no rollout, according to the statuses in the cluster."""
        for intent in intents:
            status = status_of.get(f"{intent.namespace}/{intent.worker}")
            if not (intent.is_by_tick and status and is_of(status, intent)):
                continue
            if not needs_a_rollout(status.phase, status.reason):
                ended_for = max(timedelta(), clock() - status.since)
                self.note_end(metadata_of(intent), self._steady() - ended_for)
        self._has_remembered.set()

    def ended(self, intent: Intent) -> EndedJob | None:
        """The outcome of a rollout in this process. None if it is running, or if a Job carries it out."""
        at = self.ended_at(metadata_of(intent)) if intent.is_by_tick else None
        return EndedJob(None, clock() - (self._steady() - at)) if at else None

    async def carry_out(self, metadata: RolloutMetadata) -> None:
        """Carry out an intent, if it belongs to this shard."""
        place = _Place(self, self._opened, metadata)
        plan = await carry_out(place, metadata.intent_hash, None)
        if place.was_own:
            self.say(f"{place.name}: {how_it_ended(plan)}")

    def see(self, listed: Iterable[RolloutMetadata]) -> None:
        """Start the rollouts of new intents, and restart a rollout once for each new request.

        If an intent has changed, the running rollout notices the change by itself and ends. The new rollout
        starts after a later list.
        """
        self._seen = {metadata.place: metadata for metadata in listed}
        self._ended = {place: ended for place, ended in self._ended.items() if place in self._seen}
        for place, metadata in self._seen.items():
            ended = self._ended.get(place)
            if place in self._running:
                continue
            if ended and ended.intent.is_of(metadata) and metadata.request in {"", ended.intent.request}:
                self._ended[place] = ended._replace(intent=metadata)
            else:
                self._begin(metadata)

    def note_end(self, metadata: RolloutMetadata, at: datetime) -> None:
        """Note that another process has carried out this intent, unless this process has started it."""
        if metadata.place not in self._running and metadata.place not in self._ended:
            self._ended[metadata.place] = _Ended(metadata, at)

    def ended_at(self, metadata: RolloutMetadata) -> datetime | None:
        """The time at which an intent's rollout ended. None if it is running or has not started."""
        ended = self._ended.get(metadata.place)
        return ended.at if ended and ended.intent.is_of(metadata) else None

    def begin_again(self, metadata: RolloutMetadata) -> None:
        """Restart a rollout that has ended."""
        if metadata.place not in self._running:
            seen = self._seen.get(metadata.place)
            self._begin(seen if seen and seen.is_of(metadata) else metadata)

    def stop(self) -> None:
        """Stop all rollouts. If their intents still exist, they restart after the next list."""
        for task in self._running.values():
            task.cancel()

    def is_asked(self, metadata: RolloutMetadata) -> bool:
        """Whether a running rollout has a new request, or its intent has new content.

        If the intent is gone, the rollout notices that by itself a little later. If the same intent was
        recreated, the rollout continues with the new object.
        """
        seen = self._seen.get(metadata.place)
        return seen is not None and (bool(seen.request) or seen.intent_hash != metadata.intent_hash)

    def status_version(self, metadata: RolloutMetadata) -> str:
        """The resource version of the rollout's status in the last list, or empty if there was none."""
        seen = self._seen.get(metadata.place)
        return seen.status_version if seen else ""

    def _begin(self, metadata: RolloutMetadata) -> None:
        self._ended.pop(metadata.place, None)
        task = self._running[metadata.place] = asyncio.create_task(self._run(metadata))
        task.add_done_callback(partial(self._end, metadata))

    def _end(self, metadata: RolloutMetadata, task: asyncio.Task[None]) -> None:
        del self._running[metadata.place]
        # after a stop, the rollout has not ended: it must restart
        if not task.cancelled():
            self._ended[metadata.place] = _Ended(metadata, self._steady())

    async def _run(self, metadata: RolloutMetadata) -> None:
        try:
            await self.carry_out(metadata)
        except TwgenError as error:
            self.say(f"{'/'.join(metadata.place)}: its rollout has ended: {error}")
        except Exception as error:  # noqa: BLE001 - it must not end the rollouts of the other workers
            self.report_bug("/".join(metadata.place), error)


class _Place(JobPlace):
    """Access to an intent and its objects, for tick. An intent of another shard counts as absent."""

    def __init__(self, rollouts: RolloutsByTick, opened: Connections, metadata: RolloutMetadata) -> None:
        super().__init__(opened, metadata.place, RolloutView(rollouts.say))
        self._rollouts, self._metadata = rollouts, metadata
        self.was_own = False

    async def read_intent(self, intent_hash: str) -> Intent | None:
        shard, is_own = self._rollouts.shard, False
        try:
            intent = await super().read_intent(intent_hash)
            if intent and intent.is_by_tick:
                is_own = shard.has(specs_of(intent).workers[0])
        except UnusableIntent:
            if shard.is_first:
                self.was_own = True
                raise
            return None
        # `was_own` stays true if the intent was recreated for a Job, so that the rollout's end is reported
        self.was_own |= is_own
        return intent if is_own else None

    def servers(self, intent: Intent) -> ClusterServers:
        return _SharedServers(self._rollouts, self._metadata, self._opened, intent)


class _SharedServers(ClusterServers):
    """Access to a worker's servers, for one of many rollouts. Limits reads, and skips unchanged statuses."""

    def __init__(
        self, rollouts: RolloutsByTick, metadata: RolloutMetadata, opened: Connections, intent: Intent
    ) -> None:
        names, usable = {server.name for server in intent.prometheus}, opened.prometheus_of
        opened = replace(opened, prometheus_of=lambda spec: usable(spec).among(names))
        super().__init__(opened, intent, in_place_of_hook=intent.has_hook)
        self._rollouts, self._metadata = rollouts, metadata
        self._read_version = metadata.status_version

    async def read(self, *, for_routing: bool = True) -> World:
        # limit only reads, so that no rollout waits while another rollout writes a status or an Event
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
    """The metadata of an intent that was read completely."""
    return RolloutMetadata(intent.namespace, rollout_name(intent.worker), intent.hash, intent.uid)
