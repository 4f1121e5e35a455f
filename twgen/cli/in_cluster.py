"""`twgen rollout --intent`: one worker's rollout as a Job of the cluster that it is for."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from twgen.cli.display import Log
from twgen.cli.live import Connections, Servers
from twgen.cli.observer import Observation
from twgen.cli.rollout import judge, rollout_of
from twgen.cli.settings import Settings, clock
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.executing.cluster import Adjustments, ClusterWriter
from twgen.executing.journal import Journal
from twgen.executing.rollout import roll_out
from twgen.model.operator import Caller
from twgen.model.plan import WorkerPlan
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.rollout import FAILED_LOOK
from twgen.planning.sentences import spoken
from twgen.reading.rollout import RolloutReader, attached_objects, read_intent, read_status, specs_of
from twgen.records.intent import Intent, UnusableIntent
from twgen.specs.attached import KINDS
from twgen.specs.parse import Specs

_TERMINATION_LOG = Path("/dev/termination-log")
"""Where Kubernetes reads the last word of a container, unless its Pod names another place."""
_LONGEST_WORD = 4096
"""Bytes that it reads there."""
_LAST_TRIES = 12
"""How often the end of a rollout is written to a cluster that does not take it."""


@dataclass(frozen=True, slots=True)
class _View:
    """Shows a rollout that nobody watches: in its log, and in its cluster."""

    settings: Settings
    specs: Specs
    caller: Caller
    log: Log
    journal: Journal

    async def show(self, world: World) -> None:
        """Tell what is new in a look."""
        observation = Observation(self.specs, world, self.caller, world.taken_at)
        self.log.show(observation)
        await self.journal.record(observation.status())

    def say(self, line: str) -> None:
        """Tell of a change, or of a failure."""
        self.log.say(line)


@dataclass(frozen=True, slots=True)
class IntentRollout:
    """The rollout of one intent, as a command line asks for it."""

    settings: Settings
    place: tuple[str, str]
    """Namespace and name of the intent."""
    intent_hash: str
    """Another one ends the rollout; empty: any will do."""
    within: float | None
    """Seconds until it is given up; None: never."""
    log: Log

    def run(self) -> None:
        """Roll out; raises as a rollout at a terminal does, but waits for what somebody else can mend."""
        try:
            with Servers(self.settings) as servers:
                plan = servers.run((), lambda opened: self._begin(servers, opened))
            judge([plan] if plan else [])
        except TwgenError as error:
            _say_last(str(error))
            raise
        superseded = "superseded: its intent has changed or is gone"
        word = f"{plan.routing.phase}: {plan.routing.because}" if plan else superseded
        self.log.say(word)
        _say_last(word)

    async def _begin(self, servers: Servers, opened: Connections) -> WorkerPlan | None:
        """The last plan, once the API server has told the intent; None: it is not there any more."""
        client = opened.cluster_for("--intent")
        ends = None if self.within is None else asyncio.get_running_loop().time() + self.within
        journal = None
        try:
            intent = await self._read_intent(client, ends)
            if not intent:
                return None
            journal = self._journal(client, intent)
            return await self._roll_out(servers, opened, client, journal, ends)
        except UnusableIntent as error:
            await self._journal(client, error.intent).refuse(str(error), clock())
            raise
        except Exception as error:
            # nothing is written after SIGTERM, not even this: whoever reads a status asks for its Jobs too
            if journal and await self._is_current(client, journal.intent):
                is_bug = not isinstance(error, TwgenError)
                await journal.leave(
                    f"a bug ended it ({type(error).__name__})" if is_bug else str(error), clock()
                )
            raise

    def _journal(self, client: KubernetesClient, intent: Intent) -> Journal:
        return Journal(ClusterWriter(client, intent, self.settings.timeout), intent, self.log.say)

    async def _read_intent(self, client: KubernetesClient, ends: float | None) -> Intent | None:
        """The intent, as soon as an API server tells it; None: it is not there any more."""
        failure = ""
        try:
            async with asyncio.timeout_at(ends):
                while True:
                    try:
                        deadline = Deadline(self.settings.timeout)
                        return await read_intent(client, *self.place, self.intent_hash, deadline)
                    except (StateUnavailable, OutOfTime) as error:
                        if str(error) != failure:
                            failure = str(error)
                            self.log.say(f"{failure}; looking again")
                        await asyncio.sleep(FAILED_LOOK.total_seconds())
        except TimeoutError:
            raise OutOfTime(f"{'/'.join(self.place)} is not settled {self._limit}: {failure}") from None

    @property
    def _limit(self) -> str:
        return f"within {spoken(timedelta(seconds=self.within or 0))}"

    async def _roll_out(
        self,
        servers: Servers,
        opened: Connections,
        client: KubernetesClient,
        journal: Journal,
        ends: float | None,
    ) -> WorkerPlan:
        intent, timeout = journal.intent, self.settings.timeout
        specs = specs_of(intent)
        [spec] = specs.workers
        writer, reader = ClusterWriter(client, intent, timeout), RolloutReader(client, intent)
        view = _View(self.settings, specs, intent.caller, self.log, journal)
        usual = rollout_of(spec, lambda world: world, view, servers, opened)

        async def read() -> World:
            world = await usual.read()
            # last of all: what is written next is justified by it
            state = await reader.read(Deadline(timeout))
            return world.with_rollout(spec.key, state)

        async def conflict_token() -> str:
            token, state = await usual.conflict_token(), await reader.read(Deadline(timeout))
            return "" if state.is_superseded or state.is_paused else token

        async def attached() -> list[AttachedInCluster]:
            # also where nothing of such a kind is attached any more
            kinds = {*KINDS, *intent.attached_kinds}
            return await attached_objects(client, intent, kinds, Deadline(timeout))

        async def tell_failure(failure: str) -> None:
            is_current = partial(self._is_current, client, intent)
            await journal.fail(failure, clock(), is_current, partial(read_status, client, intent, timeout))

        adjust = Adjustments(writer, attached, view.say, tell_failure).make
        await journal.warn(intent.warnings, clock())
        rollout = replace(
            usual,
            read=read,
            conflict_token=conflict_token,
            adjust=adjust,
            tell_failure=tell_failure,
            cause={"intent": intent.hash, "application": intent.application},
            is_unattended=True,
        )
        try:
            async with asyncio.timeout_at(ends):
                plan = await roll_out(rollout, once=False)
        except TimeoutError as error:
            late = f"{spec.worker_deployment} is not settled {self._limit}: {journal.last_state}"
            raise OutOfTime(late) from error
        tries = 0
        # whoever waits for the end by its status would wait for ever
        while journal.unwritten and tries < _LAST_TRIES:
            tries += 1
            await asyncio.sleep(FAILED_LOOK.total_seconds())
            await journal.record(journal.unwritten)
        return plan

    async def _is_current(self, client: KubernetesClient, intent: Intent) -> bool:
        """Nobody has superseded it, as far as can be read: a look that failed may not have asked that."""
        with suppress(TwgenError):
            found = await read_intent(client, *self.place, intent.hash, Deadline(self.settings.timeout))
            return found is not None
        return False


def _say_last(word: str) -> None:
    """Leave the last word where `kubectl describe` and Argo CD show it."""
    if _TERMINATION_LOG.is_file():
        with suppress(OSError):
            # a character cut in two would be no text to an API server
            cut = word.encode()[:_LONGEST_WORD].decode(errors="ignore")
            _TERMINATION_LOG.write_text(cut, encoding="utf-8")
