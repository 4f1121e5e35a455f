"""The rollouts that `twgen tick` carries out, in place of Jobs."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from twgen.cli.in_cluster import how_it_ended, unattended
from twgen.cli.live import Connections, Servers
from twgen.cli.output import warn
from twgen.cli.rolling import sleep
from twgen.cli.settings import Settings, clock, steady
from twgen.clients.deadline import AnswerDeadline
from twgen.errors import TwgenError
from twgen.executing.rollout_tasks import RolloutTasks
from twgen.executing.unattended import Access, carry_out
from twgen.model.requests import PendingRequest
from twgen.model.rollout import EndedJob, Glimpse, JobReference
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.world import World
from twgen.planning.rollout import needs_a_rollout
from twgen.planning.shards import Shard
from twgen.reading.listing import read_glimpses
from twgen.reading.rollouts import specs_of
from twgen.records.intent import Intent, UnusableIntent
from twgen.records.rollout_status import is_of
from twgen.versioning.names import rollout_name

if TYPE_CHECKING:
    from twgen.clients.prometheus import PrometheusServers

_BETWEEN_GLIMPSES = timedelta(seconds=8)
"""The longest time until tick sees a new intent, or a request."""
_LOOKS_AT_ONCE = 8
"""Rollouts on one Temporal server: more at once would only make each of its answers later."""


class RolloutsByTick:
    """The rollouts of one process, and the connections that they use."""

    def __init__(
        self,
        settings: Settings,
        servers: Servers,
        opened: Connections,
        say: Callable[[str], None],
        report_bug: Callable[[str, Exception], None],
    ) -> None:
        """`say` gets every change that was made, and every end."""
        self.tasks = RolloutTasks(self._carry_out, steady, say, report_bug)
        self._say, self._report_bug = say, report_bug
        self._settings = settings
        self._shard = Shard(settings.shard, settings.shards)
        self._servers = servers
        self._turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_LOOKS_AT_ONCE))
        self._failure = ""
        self._opened = opened

    async def follow(self) -> None:
        """Begin the rollouts of new intents, for as long as the process lives."""
        while True:
            deadline = AnswerDeadline(self._settings.timeout)
            try:
                client = self._opened.cluster_for("tick")
                glimpses = await read_glimpses(client, self._settings.namespace, deadline)
            except TwgenError as error:
                self._renew(str(error))
            except Exception as error:  # noqa: BLE001 - it must not end the rollouts that run
                self._report_bug("a look for new intents and requests", error)
            else:
                if self._failure:
                    # a certificate may have been renewed since they were begun
                    self.tasks.stop()
                    self._failure = ""
                self.tasks.see(glimpses)
            await sleep(_BETWEEN_GLIMPSES)

    def _renew(self, failure: str) -> None:
        """Use new connections for the next glimpse, and for all rollouts once it succeeds."""
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
                self.tasks.note_end(glimpse_of(intent), steady() - ended_for)

    def ended(self, intent: Intent) -> EndedJob | None:
        """The end of the rollout of an intent, in place of that of its Job; None: it runs, or is a Job's."""
        at = self.tasks.ended_at(glimpse_of(intent)) if intent.is_by_tick else None
        return EndedJob(JobReference("", ""), clock() - (steady() - at)) if at else None

    def begin_again(self, intent: Intent) -> None:
        """Begin the rollout of an intent that has ended."""
        self.tasks.begin_again(glimpse_of(intent))

    async def _carry_out(self, glimpse: Glimpse) -> None:
        opened = self._opened

        def prometheus(intent: Intent) -> "Callable[[WorkerSpec], PrometheusServers]":
            names = {server.name for server in intent.prometheus}
            return lambda spec: opened.prometheus(spec).among(names)

        base = unattended(self._settings, glimpse.place, self._servers, opened, prometheus, self._say)
        is_own = False

        async def own_intent(intent_hash: str) -> Intent | None:
            nonlocal is_own
            try:
                if intent := await base.read_intent(intent_hash):
                    is_own = self._shard.has(specs_of(intent).workers[0])
            except UnusableIntent:
                if is_own := self._shard.is_first:
                    raise
                return None
            return intent if is_own else None

        shared = replace(
            base, read_intent=own_intent, access=lambda intent: self._shared(base.access(intent), glimpse)
        )
        plan = await carry_out(shared, glimpse.intent_hash, None)
        if is_own:
            self._say(f"{'/'.join(glimpse.place)}: {how_it_ended(plan)}")

    def _shared(self, access: Access, glimpse: Glimpse) -> Access:
        """The same access; a look waits for its turn, and reads a request if one was seen.

        Only a few rollouts read one Temporal server at once. A turn ends with the read: if a status or an
        Event cannot be written, no other rollout waits for that.
        """
        rollout = access.rollout

        async def read() -> World:
            async with self._turns[rollout.spec.connection.host_port]:
                return await rollout.read()

        async def is_asked() -> bool:
            return self.tasks.is_asked(glimpse)

        async def pending() -> Sequence[PendingRequest]:
            return await access.pending() if self.tasks.is_asked(glimpse) else ()

        return access._replace(rollout=replace(rollout, read=read), pending=pending, is_asked=is_asked)


def glimpse_of(intent: Intent) -> Glimpse:
    """The same of an intent that was read as a whole."""
    return Glimpse(intent.namespace, rollout_name(intent.worker), intent.hash, intent.uid, request="")
