"""`twgen end`."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from twgen.cli.inputs import paths_or_name_argument, the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.option_table import OPTIONS
from twgen.cli.options import CONNECTION, INPUT, NAMES, Grouped, options
from twgen.cli.output import confirm, say, say_for_now, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import clock
from twgen.clients.temporal import OneAtATime
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.executing.temporal import start
from twgen.model.draining import Batch, BatchAction, BatchState, DrainingAction
from twgen.model.forms import WORKFLOW_TYPE
from twgen.model.problem import counted, quoted
from twgen.model.shapes import fits
from twgen.model.spec import WorkerSpec
from twgen.model.times import format_time
from twgen.model.world import WorkerWorld
from twgen.planning.draining.actions import batch_of, begun_mark, in_words, scheduled_as, still_open
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import worker_world
from twgen.planning.routing.target import Target
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.workflows import Draining

_NEEDS = {"to_version": "move", "without_replay": "move", "signal_input": "signal"}
"""Options that need another option."""
_POLL_SECONDS = 1.0
"""The state of a batch operation is read at this interval."""


@click.command(cls=Grouped)
@paths_or_name_argument
@options("of_version", "workflow_types", "older_than", "cancel", "terminate", "signal", "signal_input")
@options("move", "to_version", "without_replay", "again", "wait", "yes", "worker")
@options(*CONNECTION, *INPUT, *NAMES, "quiet")
def command(**params: Any) -> None:
    """End or move the workflows that keep an old version running.

    \b
    twgen end . --version v1 --terminate
    twgen end . --version v1 --type Poller --signal stop --wait
    twgen end worker/payments -n shop --version v1 --move

    The command shows the change and the number of workflows, asks for confirmation, and starts a batch
    operation in Temporal. Without a terminal, it needs --yes. If the same operation was started before, the
    command reports its progress.
    """
    _end_workflows(params, _chosen_action(params))


def _end_workflows(params: dict[str, Any], action: DrainingAction) -> None:
    """Show the change and the number of workflows, ask for confirmation, and start the batch operation."""
    settings, spec = the_worker(params)
    build_id = params["of_version"]

    async def work(opened: Connections) -> str:
        servers = WorkerServers(spec, opened)

        async def read_target() -> Target:
            worker = worker_world(spec, await servers.read(for_routing=action.needs_replay))
            worker = await _with_version(worker, spec, servers.shared(), build_id)
            identity = acting_identity(spec, worker, settings.planning_caller)
            return Target(spec, worker, clock(), identity)

        target = await read_target()
        entry = scheduled_as(target, build_id, action)
        batch = batch_of(target, build_id, action, entry.job_id if entry else "")
        batch, state = await _latest(servers.batches(clock()), batch, again=params["again"])
        writer = servers.temporal(target.identity)
        number = state.total if state else 0
        if not state:
            number = await servers.batches(clock()).count(still_open(batch.query))
            if not number:
                return f"{spec.worker_deployment}: no open workflow of {build_id} matches"
            change = in_words(batch.what, f"{counted(number, 'workflow')} of {build_id}")
            confirm(f"{spec.worker_deployment}: {change}", yes=params["yes"])
            is_said = False
            while True:
                # the version may have become current during the wait for confirmation or another operation
                target = await read_target()
                checked = replace(batch, query=batch_of(target, build_id, action).query)
                try:
                    await start(writer, target, entry, checked, f"twgen: {change}")
                    break
                except OneAtATime:  # for a moment, the server may still count an ended operation as running
                    if not params["wait"]:
                        raise
                    if not is_said:
                        when = "when the running batch operation has ended"
                        say(f"{spec.worker_deployment}: will {change} {when}")
                    is_said = True
                    await asyncio.sleep(_POLL_SECONDS)
            say(f"{spec.worker_deployment}: will {change}")
        if entry:
            # an earlier run of this command may have started the operation, but not written this mark
            begun_at = (state.started_at if state else None) or target.now
            await writer.mark(build_id, begun_mark(target.versions[build_id], entry, begun_at, number))
        if params["wait"]:
            state = await _batch_end(servers, batch, state, shows=sys.stderr.isatty() and not settings.quiet)
        return _outcome(batch, state, await _started_later(servers.batches(clock()), batch, state))

    with Servers(settings) as servers:
        write(f"{servers.run([spec], work)}\n")


def _chosen_action(params: Mapping[str, Any]) -> DrainingAction:
    """The action that the options describe. Raises InvalidInput if options are missing or in conflict."""
    for name, needs in _NEEDS.items():
        if params[name] and not params[needs]:
            raise InvalidInput(f"{OPTIONS[name].dashed} needs {OPTIONS[needs].dashed}")
    if not params["of_version"]:
        raise InvalidInput("give --version: the version whose workflows to end; `twgen drain` lists versions")
    chosen = [action for action in BatchAction if params[action.lower()]]
    if len(chosen) != 1:
        raise InvalidInput("give exactly one of --move, --signal, --cancel and --terminate")
    if odd := [name for name in params["workflow_types"] if not fits(WORKFLOW_TYPE, name)]:
        raise InvalidInput(f"--type {quoted(odd[0])} is not a valid workflow type name")
    return DrainingAction(
        chosen[0],
        workflow_types=tuple(params["workflow_types"]),
        older_than=params["older_than"],
        to_build_id=params["to_version"] or "",
        signal_name=params["signal"] or "",
        signal_input=params["signal_input"],
        without_replay=params["without_replay"],
    )


async def _with_version(
    worker: WorkerWorld, spec: WorkerSpec, temporal: TemporalReader, build_id: str
) -> WorkerWorld:
    """The worker, with this version read separately: Temporal 1.29.1 sometimes omits it from the list."""
    if not (deployment := worker.temporal):
        return worker
    listed = {version.build_id: version for version in deployment.versions}
    described = await temporal.version(spec, build_id, listed.get(build_id))
    versions = listed | ({build_id: described} if described else {})
    return replace(worker, temporal=replace(deployment, versions=tuple(versions.values())))


async def _latest(reader: Draining, batch: Batch, *, again: bool) -> tuple[Batch, BatchState | None]:
    """The newest run of the batch operation, or the next run if `again` is set and no run is in progress."""
    first, attempt, state = batch.job_id, 1, await reader.batch(batch.job_id)
    while state and not state.is_running:
        next_batch = replace(batch, job_id=f"{first}-{attempt + 1}")
        next_state = await reader.batch(next_batch.job_id)
        if not next_state and not again:
            break
        batch, state, attempt = next_batch, next_state, attempt + 1
    return batch, state


async def _batch_end(
    servers: WorkerServers, batch: Batch, state: BatchState | None, *, shows: bool
) -> BatchState:
    """Wait until a batch operation ends, and return its state. With `shows`, show the progress."""
    while state is None or state.is_running:
        await asyncio.sleep(_POLL_SECONDS)
        state = await servers.batches(clock()).batch(batch.job_id)
        if state and shows:
            say_for_now(f"{state.done + state.failed} of {state.total} workflows")
    return state


async def _started_later(reader: Draining, batch: Batch, state: BatchState | None) -> int:
    """The number of matching open workflows that started too late to be part of the ended batch operation."""
    if not state or state.is_running or not state.started_at:
        return 0
    newest_start = format_time(state.started_at - (batch.what.older_than or timedelta()))
    return await reader.count(f"{still_open(batch.query)} AND StartTime > '{newest_start}'")


def _outcome(batch: Batch, state: BatchState | None, started_later: int) -> str:
    """A sentence about the progress. Raises NegativeAnswer if the ended operation left workflows."""
    operation = f"batch operation {batch.job_id}"
    if not state or state.is_running:
        return f"{operation} is running; --wait waits until it ends"
    ended = f"{operation} has ended: {state.done} of {counted(state.total, 'workflow')}"
    if state.failed or state.has_failed:
        raise NegativeAnswer(f"{ended}, {state.failed} failed; --again repeats it")
    ended += "; --again repeats it"
    if started_later:
        workflows = counted(started_later, "workflow")
        raise NegativeAnswer(f"{ended}; it did not include {workflows} that started later")
    return ended
