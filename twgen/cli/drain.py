"""`twgen drain`: the workflows that hold old versions, and batch operations on the server that end them."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from twgen.cli.fleet import namespace_of
from twgen.cli.inputs import load_specs, paths_or_name_argument, the_worker, workers_called
from twgen.cli.live import Connections, Servers
from twgen.cli.option_table import OPTIONS
from twgen.cli.options import INPUT, READING, Grouped, given_options, options, output_option
from twgen.cli.output import confirm, say, say_for_now, wants_colour, wants_tree, width, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import clock, settings_of
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.temporal import OneAtATime
from twgen.errors import InvalidInput, NegativeAnswer, StateUnavailable, TwgenError
from twgen.executing.temporal import start
from twgen.model.draining import Batch, BatchAction, BatchState, DrainingAction, DrainReport, WorkerInUse
from twgen.model.forms import WORKFLOW_TYPE
from twgen.model.plan import WorkerVersions
from twgen.model.problem import counted, quoted
from twgen.model.shapes import fits
from twgen.model.spec import WorkerSpec
from twgen.model.times import format_time
from twgen.model.world import WorkerWorld
from twgen.planning.draining.actions import batch_of, begun_mark, in_words, scheduled_as, still_open
from twgen.planning.draining.drain_report import versions_without_traffic, worker_in_use
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import plan_versions, worker_world
from twgen.planning.reads import unread_lines
from twgen.planning.routing.target import Target
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.workflows import Draining
from twgen.reporting.draining import DRAIN_REPORT, draining_markdown, draining_text
from twgen.reporting.json_text import json_text


def _text(report: DrainReport, color: str) -> str:
    columns = width() if wants_tree(color) else None
    return draining_text(report, colour=wants_colour(color), width=columns)


_REPORTS: dict[str, Callable[[DrainReport, str], str]] = {
    "text": _text,
    "json": lambda report, _: json_text(DRAIN_REPORT.write(report)),
    "markdown": lambda report, _: draining_markdown(report),
}
_NEEDS = {
    "to_version": "move",
    "without_replay": "move",
    "signal_input": "signal",
    **dict.fromkeys(("workflow_types", "older_than", "again", "wait", "yes"), "of_version"),
}
"""Options that have no effect without another one."""
_POLL_SECONDS = 1.0
"""Between two reads of a batch operation."""


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option(*_REPORTS)
@options("window", "from_cluster", "all_namespaces", from_cluster="Report on the workers of a cluster.")
@options("of_version", "workflow_types", "older_than", "move", "to_version", "without_replay")
@options("signal", "signal_input", "cancel", "terminate", "again", "wait", "yes")
@options("worker", *READING, *INPUT, "identity", "namespace", "operator_config", "quiet", "color")
def command(output: str, window: timedelta, color: str, **params: Any) -> None:
    """Show which workflows keep old versions running, and the cost of these versions.

    \b
    twgen drain .
    twgen drain worker/payments -n shop
    twgen drain --from-cluster -A -o markdown
    twgen drain . --version v1 --type Poller --signal stop --wait

    With --version, it ends these workflows: it shows the change and the number of workflows, asks for
    confirmation, and starts a batch operation on the server. If the same operation was started before, it
    reports the progress.
    """
    if action := _draining_action(params):
        report_options = given_options(["window", "from_cluster", "all_namespaces"])
        if report_options or output != "text":
            names = ", ".join(report_options) or f"-o {output}"
            raise InvalidInput(f"--version prints no report, so leave out {names}")
        _end_workflows(params, action)
        return
    report = _report(params, window)
    failure = StateUnavailable("; ".join(report.unread)) if report.unread else None
    # an empty report would say that no version is held
    if failure and not report.workers:
        raise failure
    write(_REPORTS[output](report, color))
    if failure:
        raise failure


def _report(params: dict[str, Any], window: timedelta) -> DrainReport:
    """The report on the workers that the options choose, and why some are left out."""
    settings, everywhere = settings_of(params), params["all_namespaces"]
    in_cluster = params["from_cluster"] or everywhere
    if in_cluster and params["paths"]:
        raise InvalidInput("--from-cluster reads the workers from the cluster: leave out PATH")
    namespace = namespace_of(settings, everywhere=everywhere) if in_cluster else ""
    specs = () if in_cluster else load_specs(settings, or_name=True).workers
    with Servers(settings) as servers:

        async def work(opened: Connections) -> DrainReport:
            workers: Sequence[WorkerSpec] = specs
            failures: list[str] = []
            if in_cluster:
                cluster = opened.cluster_for("--from-cluster")
                records = await rollouts_in_cluster(cluster, namespace, opened.deadline())
                specs_of_rollouts, unusable = specs_of_intents(records.intents)
                workers = [spec for _, spec in specs_of_rollouts]
                failures = [*records.unusable, *unusable]
            workers = workers_called(params["worker"] or "", workers)
            report = await _drain_report(opened, workers, window)
            return replace(report, unread=(*failures, *report.unread))

        return servers.run(specs, work)


async def _drain_report(opened: Connections, specs: Sequence[WorkerSpec], window: timedelta) -> DrainReport:
    """The report on the workers that can be read, and why the others cannot be."""
    world, failures = await opened.read_each(specs, for_routing=False)
    now = clock()
    readable = [spec for spec in specs if spec.key in world.workers]
    plan = plan_versions(readable, world, now, opened.settings.planning_caller)
    shared = TemporalReader(opened.temporal, AnswerDeadline(opened.settings.timeout))

    async def in_use(worker: WorkerVersions) -> WorkerInUse | str:
        build_ids = [version.build_id for version in versions_without_traffic(worker)]
        try:
            pinned = await Draining(worker.spec, shared, now, window).pinned(build_ids)
        except TwgenError as error:
            return str(error)
        return worker_in_use(worker, pinned, now)

    workers = await asyncio.gather(*map(in_use, plan.workers))
    workers_in_use = tuple(worker for worker in workers if isinstance(worker, WorkerInUse))
    unread = (*unread_lines(failures), *(failure for failure in workers if isinstance(failure, str)))
    return DrainReport(now, window, workers_in_use, unread)


def _draining_action(params: Mapping[str, Any]) -> DrainingAction | None:
    """The action in the options; None: only a report. Raises InvalidInput if they contradict each other."""
    chosen = [action for action in BatchAction if params[action.lower()]]
    version = params["of_version"]
    for name, needs in _NEEDS.items():
        if params[name] and not params[needs]:
            raise InvalidInput(f"--{OPTIONS[name].name} needs --{OPTIONS[needs].name}")
    if not chosen and not version:
        return None
    if len(chosen) != 1 or not version:
        raise InvalidInput(
            "--version needs exactly one of --move, --signal, --cancel and --terminate, and each of"
            " these needs --version"
        )
    [action] = chosen
    if odd := [name for name in params["workflow_types"] if not fits(WORKFLOW_TYPE, name)]:
        raise InvalidInput(f"--type {quoted(odd[0])} is not a valid name of a workflow type")
    return DrainingAction(
        action,
        workflow_types=tuple(params["workflow_types"]),
        older_than=params["older_than"],
        to_build_id=params["to_version"] or "",
        signal_name=params["signal"] or "",
        signal_input=params["signal_input"],
        without_replay=params["without_replay"],
    )


def _end_workflows(params: dict[str, Any], action: DrainingAction) -> None:
    """Show the change and the number of workflows, ask, and start the batch operation, once per action."""
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
                # the answer or the turn may have taken long, and the version may be current again
                target = await read_target()
                checked = replace(batch, query=batch_of(target, build_id, action).query)
                try:
                    await start(writer, target, entry, checked, f"twgen: {change}")
                    break
                except OneAtATime:  # a server still counts one for some moments after its end
                    if not params["wait"]:
                        raise
                    if not is_said:
                        when = "when the batch operation that runs now has ended"
                        say(f"{spec.worker_deployment}: will {change} {when}")
                    is_said = True
                    await asyncio.sleep(_POLL_SECONDS)
            say(f"{spec.worker_deployment}: will {change}")
        if entry:
            # also if an earlier run was ended before it could write the mark
            begun_at = (state.started_at if state else None) or target.now
            await writer.mark(build_id, begun_mark(target.versions[build_id], entry, begun_at, number))
        if params["wait"]:
            state = await _batch_end(servers, batch, state, shows=sys.stderr.isatty() and not settings.quiet)
        return _outcome(batch, state, await _started_later(servers.batches(clock()), batch, state))

    with Servers(settings) as servers:
        write(f"{servers.run([spec], work)}\n")


async def _with_version(
    worker: WorkerWorld, spec: WorkerSpec, temporal: TemporalReader, build_id: str
) -> WorkerWorld:
    """The same worker with a version described by name: the list of 1.29.1 sometimes lacks one."""
    if not (deployment := worker.temporal):
        return worker
    listed = {version.build_id: version for version in deployment.versions}
    described = await temporal.version(spec, build_id, listed.get(build_id))
    versions = listed | ({build_id: described} if described else {})
    return replace(worker, temporal=replace(deployment, versions=tuple(versions.values())))


async def _latest(reader: Draining, batch: Batch, *, again: bool) -> tuple[Batch, BatchState | None]:
    """The newest run of the batch operation; with `again`, a new run if that one has ended."""
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
    """Wait until a batch operation ends, and return its state; its progress is shown until then."""
    while state is None or state.is_running:
        await asyncio.sleep(_POLL_SECONDS)
        state = await servers.batches(clock()).batch(batch.job_id)
        if state and shows:
            say_for_now(f"{state.done + state.failed} of {state.total} workflows")
    return state


async def _started_later(reader: Draining, batch: Batch, state: BatchState | None) -> int:
    """How many workflows match by now that an ended batch operation did not include."""
    if not state or state.is_running or not state.started_at:
        return 0
    newest_start = format_time(state.started_at - (batch.what.older_than or timedelta()))
    return await reader.count(f"{still_open(batch.query)} AND StartTime > '{newest_start}'")


def _outcome(batch: Batch, state: BatchState | None, started_later: int) -> str:
    """A sentence about the progress; raises NegativeAnswer if it left out some workflows."""
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
