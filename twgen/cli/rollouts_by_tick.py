"""The rollouts that `twgen tick` carries out, in place of Jobs."""

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
"""The longest time until tick sees a new intent or a request."""
_LOOKS_AT_ONCE = 8
"""The most rollouts on one Temporal server: more at once would only delay its answers."""


Place = tuple[str, str]
"""The namespace and the name of an intent."""


class _Ended(NamedTuple):
    """The end of a rollout."""

    intent: RolloutMetadata
    at: datetime


class RolloutsByTick:
    """The rollouts that one process carries out concurrently: a task for each worker.

    It begins the rollout of each intent once, and again on request. The cluster stores everything that a
    rollout must remember. A rollout that is stopped in the middle of a change might not record it; then its
    gates run again.
    """

    def __init__(
        self,
        servers: Servers,
        opened: Connections,
        say: Callable[[str], None],
        report_bug: Callable[[str, Exception], None],
    ) -> None:
        """`say` gets a line for every change and every end."""
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
        """Begin the rollouts of new intents as long as the process lives, after the first `remember`."""
        await self._has_remembered.wait()
        while True:
            deadline = AnswerDeadline(self._settings.timeout)
            try:
                client = self._opened.cluster_for("tick")
                listed = await list_rollouts(client, self._settings.namespace, deadline)
            except TwgenError as error:
                self._renew(str(error))
            except Exception as error:  # noqa: BLE001 - it must not end the rollouts that run
                self.report_bug("a list of intents and requests", error)
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
            warn([f"the rollouts cannot be listed: {failure}"])
        with suppress(TwgenError):
            self._opened = self._servers.renewed(self._opened)

    def remember(self, intents: Iterable[Intent], status_of: Mapping[str, RolloutStatus]) -> None:
        """Note the intents that are already carried out, from the statuses in the cluster."""
        for intent in intents:
            status = status_of.get(f"{intent.namespace}/{intent.worker}")
            if not (intent.is_by_tick and status and is_of(status, intent)):
                continue
            if not needs_a_rollout(status.phase, status.reason):
                ended_for = max(timedelta(), clock() - status.since)
                self.note_end(metadata_of(intent), self._steady() - ended_for)
        self._has_remembered.set()

    def ended(self, intent: Intent) -> EndedJob | None:
        """The outcome of a rollout by this process; None: it runs, or a Job carries it out."""
        at = self.ended_at(metadata_of(intent)) if intent.is_by_tick else None
        return EndedJob(None, clock() - (self._steady() - at)) if at else None

    async def carry_out(self, metadata: RolloutMetadata) -> None:
        """Carry out an intent of this shard."""
        place = _Place(self, self._opened, metadata)
        plan = await carry_out(place, metadata.intent_hash, None)
        if place.was_own:
            self.say(f"{place.name}: {how_it_ended(plan)}")

    def see(self, listed: Iterable[RolloutMetadata]) -> None:
        """Begin the rollouts of the intents that are new, and again once for each request.

        A running rollout notices a changed intent itself, and ends. A later list begins the new rollout.
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
        """Another process has carried out this intent, and this process has not begun it."""
        if metadata.place not in self._running and metadata.place not in self._ended:
            self._ended[metadata.place] = _Ended(metadata, at)

    def ended_at(self, metadata: RolloutMetadata) -> datetime | None:
        """When the rollout of an intent ended; None: it runs, or has not begun."""
        ended = self._ended.get(metadata.place)
        return ended.at if ended and ended.intent.is_of(metadata) else None

    def begin_again(self, metadata: RolloutMetadata) -> None:
        """Begin a rollout that has ended."""
        if metadata.place not in self._running:
            seen = self._seen.get(metadata.place)
            self._begin(seen if seen and seen.is_of(metadata) else metadata)

    def stop(self) -> None:
        """Stop all rollouts; those that still exist begin again after the next list."""
        for task in self._running.values():
            task.cancel()

    def is_asked(self, metadata: RolloutMetadata) -> bool:
        """A person requests something of a running rollout, or its intent has other content now.

        The rollout notices a little later that its intent is gone. If the same intent was created again, the
        rollout continues with that one.
        """
        seen = self._seen.get(metadata.place)
        return seen is not None and (bool(seen.request) or seen.intent_hash != metadata.intent_hash)

    def status_version(self, metadata: RolloutMetadata) -> str:
        """The resource version of its status when it was last seen; empty: there was none."""
        seen = self._seen.get(metadata.place)
        return seen.status_version if seen else ""

    def _begin(self, metadata: RolloutMetadata) -> None:
        self._ended.pop(metadata.place, None)
        task = self._running[metadata.place] = asyncio.create_task(self._run(metadata))
        task.add_done_callback(partial(self._end, metadata))

    def _end(self, metadata: RolloutMetadata, task: asyncio.Task[None]) -> None:
        del self._running[metadata.place]
        # not after a stop, because it must begin again
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
    """The ConfigMap of an intent; an intent of another shard does not exist here."""

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
        # also an intent that was made again, for a Job
        self.was_own |= is_own
        return intent if is_own else None

    def servers(self, intent: Intent) -> ClusterServers:
        return _SharedServers(self._rollouts, self._metadata, self._opened, intent)


class _SharedServers(ClusterServers):
    """The servers of one of many rollouts: reads wait for their turn, and skip unchanged statuses."""

    def __init__(
        self, rollouts: RolloutsByTick, metadata: RolloutMetadata, opened: Connections, intent: Intent
    ) -> None:
        names, usable = {server.name for server in intent.prometheus}, opened.prometheus_of
        opened = replace(opened, prometheus_of=lambda spec: usable(spec).among(names))
        super().__init__(opened, intent, in_place_of_hook=intent.has_hook)
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
    """The metadata of an intent whose ConfigMap was read completely."""
    return RolloutMetadata(intent.namespace, rollout_name(intent.worker), intent.hash, intent.uid)
