"""The rollouts that one process carries out side by side: a task for each worker."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from twgen.errors import TwgenError
from twgen.model.rollout import RolloutMetadata

Place = tuple[str, str]
"""The namespace and the name of an intent."""


class _Ended(NamedTuple):
    """The end of a rollout."""

    intent: RolloutMetadata
    at: datetime


class RolloutTasks(ABC):
    """Begins the rollout of each intent once, and again when it is told to.

    The cluster has all that a rollout must remember, so a process that begins them again loses nothing.
    """

    def __init__(
        self,
        steady: Callable[[], datetime],
        say: Callable[[str], None],
        report_bug: Callable[[str, Exception], None],
    ) -> None:
        """A rollout that has ended keeps its time by `steady`; `say` gets every change and every end."""
        self._steady, self.say, self.report_bug = steady, say, report_bug
        self._seen: dict[Place, RolloutMetadata] = {}
        self._running: dict[Place, asyncio.Task[None]] = {}
        self._ended: dict[Place, _Ended] = {}

    @abstractmethod
    async def carry_out(self, metadata: RolloutMetadata) -> None:
        """Carry out an intent until nothing is left to do, or until it is another one."""

    def see(self, listed: Iterable[RolloutMetadata]) -> None:
        """Begin the rollouts of the intents that are new, and again once for each request.

        If the intent of a running rollout is another one now, that rollout finds it out, and ends first.
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
        """Another process has carried out this intent, unless this one has begun to."""
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
        """Stop all rollouts; those that are still there begin again when they are seen next."""
        for task in self._running.values():
            task.cancel()

    def is_asked(self, metadata: RolloutMetadata) -> bool:
        """A person requests something of a running rollout, or its intent has other content now.

        The rollout itself finds out, a little later, that its intent is gone. If the same intent was made
        again, it goes on with that one.
        """
        seen = self._seen.get(metadata.place)
        return seen is not None and (bool(seen.request) or seen.intent_hash != metadata.intent_hash)

    def status_version(self, metadata: RolloutMetadata) -> str:
        """The resource version of its status when that was seen last; empty: there was none."""
        seen = self._seen.get(metadata.place)
        return seen.status_version if seen else ""

    def _begin(self, metadata: RolloutMetadata) -> None:
        self._ended.pop(metadata.place, None)
        self._running[metadata.place] = asyncio.create_task(self._run(metadata))

    async def _run(self, metadata: RolloutMetadata) -> None:
        try:
            await self.carry_out(metadata)
        except TwgenError as error:
            self.say(f"{'/'.join(metadata.place)}: its rollout has ended: {error}")
        except Exception as error:  # noqa: BLE001 - it must not end the rollouts of the other workers
            self.report_bug("/".join(metadata.place), error)
        finally:
            del self._running[metadata.place]
        # not after a stop: then it is to begin again
        self._ended[metadata.place] = _Ended(metadata, self._steady())
