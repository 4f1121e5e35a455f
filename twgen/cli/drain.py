"""`twgen drain`: which workflows hold old versions, and batch operations of the server that end them."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from twgen.cli.fleet import namespace_of
from twgen.cli.inputs import load_specs
from twgen.cli.intervention import the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, OPTIONS, READING, given_options, options, output_option, paths_argument
from twgen.cli.output import confirm, say, say_for_now, wants_colour, wants_tree, width, write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.errors import InvalidInput, NegativeAnswer, StateUnavailable, TwgenError
from twgen.executing.temporal import TemporalWriter, start
from twgen.model.draining import (
    Batch,
    BatchAction,
    BatchState,
    DrainingAction,
    DrainReport,
    ScheduledAction,
    WorkerInUse,
)
from twgen.model.forms import WORKFLOW_TYPE
from twgen.model.plan import WorkerVersions
from twgen.model.problem import counted, quoted
from twgen.model.shapes import fits
from twgen.model.spec import WorkerSpec
from twgen.model.times import format_time
from twgen.model.world import WorkerWorld
from twgen.planning.draining.batch_operations import batch_of, in_words
from twgen.planning.draining.drain_report import versions_without_traffic, worker_in_use
from twgen.planning.draining.schedule import begun_mark, scheduled_as
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import plan_versions, worker_world
from twgen.planning.routing.target import Target
from twgen.planning.visibility import still_open
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.pinned_workflows import Draining
from twgen.reading.temporal.reader import SharedReads, TemporalReader
from twgen.reading.world import first_failure
from twgen.reporting.draining import draining_document, draining_markdown, draining_text
from twgen.reporting.json_text import json_text


def _text(report: DrainReport, color: str) -> str:
    columns = width() if wants_tree(color) else None
    return draining_text(report, colour=wants_colour(color), width=columns)


_REPORTS: dict[str, Callable[[DrainReport, str], str]] = {
    "text": _text,
    "json": lambda report, _: json_text(draining_document(report)),
    "markdown": lambda report, _: draining_markdown(report),
}
_NEEDS = {
    "to_version": "move",
    "without_replay": "move",
    "signal_input": "signal",
    **dict.fromkeys(("workflow_types", "older_than", "again", "wait", "yes"), "of_version"),
}
"""Options that mean nothing without another one."""
_BETWEEN_LOOKS = 1.0
"""Seconds."""


@click.command()
@paths_argument
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
    if what := _what_ends(params):
        of_report = given_options(["window", "from_cluster", "all_namespaces"])
        if of_report or output != "text":
            options_of_report = ", ".join(of_report) or f"-o {output}"
            raise InvalidInput(f"--version prints no report, so leave out {options_of_report}")
        _end_workflows(params, what)
        return
    report = _report(params, window)
    failure = StateUnavailable("; ".join(report.unread)) if report.unread else None
    # of nothing there is no report: it would say that no version is held
    if failure and not report.workers:
        raise failure
    write(_REPORTS[output](report, color))
    if failure:
        raise failure


def _report(params: dict[str, Any], window: timedelta) -> DrainReport:
    """What holds the versions of the workers that are asked for, and why some are left out."""
    settings, in_cluster, everywhere = settings_of(params), params["from_cluster"], params["all_namespaces"]
    if everywhere and not in_cluster:
        raise InvalidInput("-A needs --from-cluster: specs name their own namespaces")
    if in_cluster and params["paths"]:
        raise InvalidInput("--from-cluster reads the workers from the cluster: leave out PATH")
    namespace = namespace_of(settings, everywhere=everywhere) if in_cluster else ""
    specs = () if in_cluster else load_specs(settings, or_name=True).workers
    with Servers(settings) as servers:

        async def story(opened: Connections) -> DrainReport:
            found: Sequence[WorkerSpec] = specs
            failures: list[str] = []
            if in_cluster:
                found, failures = await _rolled_out(opened, namespace, Deadline(settings.timeout))
            if name := params["worker"]:
                names = ", ".join(sorted(spec.worker_deployment for spec in found))
                found = [spec for spec in found if name in {spec.name, spec.worker_deployment}]
                if not found:
                    raise InvalidInput(f"there is no worker {name!r}; the workers are: {names or 'none'}")
            report = await _reported(settings, servers, opened, found, window)
            return replace(report, unread=(*failures, *report.unread))

        return servers.run(specs, story)


async def _rolled_out(
    opened: Connections, namespace: str, deadline: Deadline
) -> tuple[Sequence[WorkerSpec], list[str]]:
    """The workers whose rollouts a cluster has, and why others cannot be told."""
    records = await rollouts_in_cluster(opened.cluster_for("--from-cluster"), namespace, deadline)
    found, unusable = specs_of_intents(records.intents)
    return [spec for _, spec in found], [*records.unusable, *unusable]


async def _reported(
    settings: Settings,
    servers: Servers,
    opened: Connections,
    specs: Sequence[WorkerSpec],
    window: timedelta,
) -> DrainReport:
    """What holds the versions of the workers that can be read, and why the others cannot be."""
    world, failures = await servers.read_each(opened, specs, for_routing=False)
    now = clock()
    readable = [spec for spec in specs if spec.key in world.workers]
    plan = plan_versions(readable, world, now, settings.planning_caller)
    shared = SharedReads(opened.temporal, AnswerDeadline(settings.timeout))

    async def held(worker: WorkerVersions) -> WorkerInUse | str:
        build_ids = [version.build_id for version in versions_without_traffic(worker)]
        try:
            found = await Draining(worker.spec, shared, now, window).pinned(build_ids)
        except (TwgenError, ExceptionGroup) as error:
            if not isinstance(failure := first_failure(error), TwgenError):
                raise
            return str(failure)
        return worker_in_use(worker, found, now)

    workers = await asyncio.gather(*map(held, plan.workers))
    told = tuple(one for one in workers if isinstance(one, WorkerInUse))
    return DrainReport(now, window, told, (*failures, *(one for one in workers if isinstance(one, str))))


def _what_ends(params: Mapping[str, Any]) -> DrainingAction | None:
    """What the options ask for; None: nothing but the report. Raises InvalidInput where they do not agree."""
    given = {
        BatchAction.MOVE: params["move"],
        BatchAction.SIGNAL: params["signal"],
        BatchAction.CANCEL: params["cancel"],
        BatchAction.TERMINATE: params["terminate"],
    }
    asked = [action for action, value in given.items() if value]
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
    [action] = asked
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


def _end_workflows(params: dict[str, Any], what: DrainingAction) -> None:
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
                f"{_outcome(batch, state)}; it did not include {counted(left, 'workflow')} that started later"
            )
        return _outcome(batch, state)

    with Servers(settings) as servers:
        write(f"{servers.run([spec], story)}\n")


def _meant(target: Target, build_id: str, what: DrainingAction) -> tuple[Batch, ScheduledAction | None]:
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


def _outcome(batch: Batch, state: BatchState | None) -> str:
    """How far it is; raises NegativeAnswer where it could not do all."""
    what = f"batch operation {batch.job_id}"
    if not state or state.is_running:
        return f"{what} is running; --wait waits until it ends"
    done = f"{what} has ended: {state.done} of {counted(state.total, 'workflow')}"
    if state.failed or state.has_failed:
        raise NegativeAnswer(f"{done}, {state.failed} failed; --again repeats it")
    return f"{done}; --again repeats it"
