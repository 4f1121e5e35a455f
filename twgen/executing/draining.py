"""Starts what a policy does to the workflows of draining versions."""

from collections.abc import Callable
from typing import Protocol

from twgen.clients.temporal_failures import OneAtATime
from twgen.errors import NegativeAnswer
from twgen.executing.temporal import TemporalWriter
from twgen.model.draining import Batch, BatchState, ScheduledEnding
from twgen.planning.draining.endings import batch_of, in_words
from twgen.planning.draining.schedule import announced_mark, begun_mark
from twgen.planning.routing.target import Target
from twgen.planning.sentences import counted
from twgen.planning.visibility import still_open


class Batches(Protocol):
    """Reads workflows, and batch operations on them."""

    async def batch(self, job_id: str) -> BatchState | None:
        """The progress of a batch operation; None: there is none of that ID."""

    async def count(self, query: str) -> int:
        """The number of workflows that a query finds."""


async def begin(
    target: Target,
    ending: ScheduledEnding,
    batches: Batches,
    writer: TemporalWriter,
    say: Callable[[str], None],
) -> bool:
    """Start what is due for the workflows of a version; True: it was started, and the version is marked so.

    The ID of the batch operation is marked first, so that one that was started without the last mark is
    found. An entry that finds no workflows is marked too.
    """
    spec, build_id, repeat = target.spec, ending.build_id, ending.repeat
    version = target.versions[build_id]
    ids = (repeat.job_id, repeat.started_after) if repeat else (ending.job_id,)
    batch = batch_of(target, build_id, ending.what, *ids)
    state = await batches.batch(batch.job_id)
    if state and state.has_failed:
        # an account that can start it but not mark it would otherwise be told that it was done; `twgen drain`
        # makes a second one of the same entry
        raise NegativeAnswer(
            f"{spec.worker_deployment}: batch operation {batch.job_id} has failed: the command that"
            " `twgen plan` shows begins it once more, with --again"
        )
    number = state.total if state else await batches.count(still_open(batch.query))
    change = in_words(batch.what, f"{counted(number, 'workflow')} of {build_id}")
    if number and not state:
        try:
            await start(writer, target, ending, batch, f"twgen, by its RolloutPolicy: {change}")
        except OneAtATime:
            say(f"{spec.worker_deployment}: will {change} when the server's other batch operation has ended")
            return False
    begun_at = (state.started_at if state else None) or target.now
    await writer.mark(build_id, begun_mark(version, ending, begun_at, number))
    if number:
        why = "which started since" if repeat else "as its RolloutPolicy says"
        say(f"{spec.worker_deployment}: began to {change}, {why} (batch {batch.job_id})")
    return True


async def start(
    writer: TemporalWriter, target: Target, ending: ScheduledEnding | None, batch: Batch, reason: str
) -> None:
    """Start a batch operation, after a mark with the job ID of an entry's first one."""
    if ending and not (ending.is_announced or ending.is_begun):
        version = target.versions[ending.build_id]
        await writer.mark(ending.build_id, announced_mark(version, ending))
    await writer.start_batch(batch, reason)
