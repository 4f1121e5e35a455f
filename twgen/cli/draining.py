"""Ending the workflows of a version that drains, by a batch operation of the server."""

import asyncio
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from twgen.cli.intervention import confirm, the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import OPTIONS
from twgen.cli.output import say, say_for_now, write
from twgen.cli.settings import clock
from twgen.clients.deadline import Deadline
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.executing.temporal import TemporalWriter, start
from twgen.model.draining import Batch, BatchState, Ending, ScheduledEnding, WhatEnds
from twgen.model.problem import quoted
from twgen.model.times import format_time
from twgen.model.world import WorkerWorld
from twgen.planning.draining.batch_operations import batch_of, in_words
from twgen.planning.draining.schedule import begun_mark, scheduled_as
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target
from twgen.planning.sentences import counted
from twgen.planning.visibility import still_open
from twgen.reading.temporal.pinned_workflows import Draining
from twgen.reading.temporal.reader import SharedReads, TemporalReader
from twgen.specs.limits import WORKFLOW_TYPE

_NEEDS = {
    "to_version": "move",
    "without_replay": "move",
    "signal_input": "signal",
    **dict.fromkeys(("workflow_types", "older_than", "again", "wait", "yes"), "of_version"),
}
"""Options that mean nothing without another one."""
_BETWEEN_LOOKS = 1.0
"""Seconds."""


def what_ends(params: Mapping[str, Any]) -> WhatEnds | None:
    """What the options ask for; None: nothing but the report. Raises InvalidInput where they do not agree."""
    given = {
        Ending.MOVE: params["move"],
        Ending.SIGNAL: params["signal"],
        Ending.CANCEL: params["cancel"],
        Ending.TERMINATE: params["terminate"],
    }
    asked = [ending for ending, value in given.items() if value]
    version = params["of_version"]
    for name, needs in _NEEDS.items():
        if params[name] and not params[needs]:
            raise InvalidInput(f"--{OPTIONS[name].name} needs --{OPTIONS[needs].name}")
    if not asked and not version:
        return None
    if len(asked) != 1 or not version:
        raise InvalidInput(
            "--version needs exactly one of --move, --signal, --cancel and --terminate, and each of"
            " these needs --version"
        )
    [ending] = asked
    if odd := [name for name in params["workflow_types"] if not re.search(WORKFLOW_TYPE, name)]:
        raise InvalidInput(f"--type {quoted(odd[0])} is not a valid name of a workflow type")
    return WhatEnds(
        ending,
        workflow_types=tuple(params["workflow_types"]),
        older_than=params["older_than"],
        to_build_id=params["to_version"] or "",
        signal_name=params["signal"] or "",
        signal_input=params["signal_input"],
        without_replay=params["without_replay"],
    )


def end_workflows(params: dict[str, Any], what: WhatEnds) -> None:
    """Show what would be done to how many, ask, and let the server do it, once for each demand."""
    settings, specs = the_worker(params)
    [spec] = specs.workers
    build_id = params["of_version"]

    async def story(opened: Connections) -> str:
        def shared() -> SharedReads:
            return SharedReads(opened.temporal, Deadline(settings.timeout))

        def reader() -> Draining:
            return Draining(spec, shared(), clock(), timedelta())

        async def look() -> Target:
            world = await servers.read_soon(opened, [spec], for_routing=what.needs_replay)
            worker = worker_world(spec, world)
            worker = await _with_version(worker, TemporalReader(spec, shared()), build_id)
            identity = acting_identity(spec, worker, settings.planning_caller)
            return Target(spec, worker, clock(), identity, not_created="")

        target = await look()
        meant, entry = _meant(target, build_id, what)
        batch, state = await _latest(reader(), meant, again=params["again"])
        writer = TemporalWriter(spec, target.identity, opened.temporal, settings.timeout)
        number = state.total if state else 0
        if not state:
            number = await reader().count(still_open(batch.query))
            if not number:
                return f"{spec.worker_deployment}: no open workflow of {build_id} matches"
            change = in_words(batch.what, f"{counted(number, 'workflow')} of {build_id}")
            confirm(f"{spec.worker_deployment}: {change}", yes=params["yes"])
            # whoever was asked may have thought for long, and the version be current again
            target = await look()
            sure = replace(batch, query=batch_of(target, build_id, what).query)
            await start(writer, target, entry, sure, f"twgen: {change}")
            say(f"{spec.worker_deployment}: will {change}")
        if entry:
            # also where an earlier run was ended before it could write that down
            begun_at = (state.started_at if state else None) or target.now
            await writer.mark(build_id, begun_mark(target.versions[build_id], entry, begun_at, number))
        if params["wait"]:
            state = await _ended(reader, batch, state, shows=sys.stderr.isatty() and not settings.quiet)
        if state and not state.is_running and (left := await _begun_since(reader(), batch, state)):
            raise NegativeAnswer(
                f"{_told(batch, state)}; it did not include {counted(left, 'workflow')} that started later"
            )
        return _told(batch, state)

    with Servers(settings) as servers:
        write(f"{servers.run([spec], story)}\n")


def _meant(target: Target, build_id: str, what: WhatEnds) -> tuple[Batch, ScheduledEnding | None]:
    """The batch operation of a demand, and the entry of the policy that it stands for, if any."""
    entry = scheduled_as(target, build_id, what)
    return batch_of(target, build_id, what, entry.job_id if entry else ""), entry


async def _with_version(worker: WorkerWorld, temporal: TemporalReader, build_id: str) -> WorkerWorld:
    """The same with a version that was asked for by name: the list of 1.29.1 lacks some, now and then."""
    if not (found := worker.temporal):
        return worker
    listed = {version.build_id: version for version in found.versions}
    named = await temporal.version(build_id, listed.get(build_id))
    versions = listed | ({build_id: named} if named else {})
    return replace(worker, temporal=replace(found, versions=tuple(versions.values())))


async def _latest(reader: Draining, batch: Batch, *, again: bool) -> tuple[Batch, BatchState | None]:
    """The batch operation as it was begun last, or with `again` and where that has ended, one anew."""
    first, attempt, state = batch.job_id, 1, await reader.batch(batch.job_id)
    while state and not state.is_running:
        following = replace(batch, job_id=f"{first}-{attempt + 1}")
        begun = await reader.batch(following.job_id)
        if not begun and not again:
            break
        batch, state, attempt = following, begun, attempt + 1
    return batch, state


async def _ended(
    reader: Callable[[], Draining], batch: Batch, state: BatchState | None, *, shows: bool
) -> BatchState:
    """How a batch operation has ended, once it has; what it has done until then is shown."""
    while state is None or state.is_running:
        await asyncio.sleep(_BETWEEN_LOOKS)
        state = await reader().batch(batch.job_id)
        if state and shows:
            say_for_now(f"{state.done + state.failed} of {state.total} workflows")
    return state


async def _begun_since(reader: Draining, batch: Batch, state: BatchState) -> int:
    """How many workflows the same demand means by now that it did not mean then."""
    if not state.started_at:
        return 0
    meant = format_time(state.started_at - (batch.what.older_than or timedelta()))
    return await reader.count(f"{still_open(batch.query)} AND StartTime > '{meant}'")


def _told(batch: Batch, state: BatchState | None) -> str:
    """How far it is; raises NegativeAnswer where it could not do all."""
    what = f"batch operation {batch.job_id}"
    if not state or state.is_running:
        return f"{what} is running; --wait waits until it ends"
    done = f"{what} has ended: {state.done} of {counted(state.total, 'workflow')}"
    if state.failed or state.has_failed:
        raise NegativeAnswer(f"{done}, {state.failed} failed; --again repeats it")
    return f"{done}; --again repeats it"
