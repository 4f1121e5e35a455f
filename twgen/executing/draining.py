"""Beginning what a policy does to the workflows of versions that drain."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from twgen.clients.temporal_failures import OneAtATime
from twgen.errors import NegativeAnswer
from twgen.model.draining import Batch, BatchState, ScheduledEnding
from twgen.planning.draining.endings import batch_of, in_words
from twgen.planning.draining.schedule import announced_mark, begun_mark
from twgen.planning.routing.target import Target
from twgen.planning.sentences import counted
from twgen.planning.visibility import still_open


class Batches(Protocol):
    """What is known of workflows and of batch operations on them."""

    async def batch(self, job_id: str) -> BatchState | None:
        """How far a batch operation is; None: there is none of that ID."""

    async def count(self, query: str) -> int:
        """How many workflows a query finds."""


class BatchWriter(Protocol):
    """What may be changed; each method is one call that is made once."""

    async def start_batch(self, batch: Batch, reason: str) -> None:
        """Begin a batch operation on the workflows that its query finds."""

    async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        """Write entries of a version's metadata, as JSON."""


async def begin(
    target: Target, ending: ScheduledEnding, batches: Batches, writer: BatchWriter, say: Callable[[str], None]
) -> bool:
    """Let the server do what is due to the workflows of a version; whether it was begun, and written down so.

    The ID of the batch operation is written down first, so that one that was begun and not marked so is
    found. An entry that finds no workflow is behind its version all the same.
    """
    spec, build_id, repeat = target.spec, ending.build_id, ending.repeat
    version = target.versions[build_id]
    if repeat:
        batch = batch_of(target, build_id, ending.what, repeat.job_id, repeat.started_after)
    else:
        batch = batch_of(target, build_id, ending.what, ending.job_id)
    state = await batches.batch(batch.job_id)
    if state and state.has_failed:
        # without this error, twgen would report it as done if it may begin it but not write that down
        # a second one by `twgen drain` counts for the same entry
        raise NegativeAnswer(
            f"{spec.worker_deployment}: batch operation {batch.job_id} has failed: to start it again,"
            " run the command that `twgen plan` shows with --again"
        )
    number = state.total if state else await batches.count(still_open(batch.query))
    change = in_words(batch.what, f"{counted(number, 'workflow')} of {build_id}")
    if number and not state:
        try:
            await start(writer, target, ending, batch, f"twgen, by its RolloutPolicy: {change}")
        except OneAtATime:
            say(f"{spec.worker_deployment}: will {change} when the batch operation that runs now has ended")
            return False
    begun_at = (state.started_at if state else None) or target.now
    await writer.mark(build_id, begun_mark(version, ending, begun_at, number))
    if number:
        why = "those that started since the last time" if repeat else "as its RolloutPolicy says"
        say(f"{spec.worker_deployment}: started to {change}, {why} (batch {batch.job_id})")
    return True


async def start(
    writer: BatchWriter, target: Target, ending: ScheduledEnding | None, batch: Batch, reason: str
) -> None:
    """Begin a batch operation; the job ID of an entry's first one is written down before."""
    if ending and not (ending.is_announced or ending.is_begun):
        version = target.versions[ending.build_id]
        await writer.mark(ending.build_id, announced_mark(version, ending))
    await writer.start_batch(batch, reason)
