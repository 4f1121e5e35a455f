"""`twgen drain`."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from twgen.cli.fleet import namespace_of
from twgen.cli.inputs import load_specs, load_world, paths_or_name_argument, planning_time, workers_called
from twgen.cli.live import Connections, Servers
from twgen.cli.options import CONNECTION, INPUT, NAMES, Grouped, options, output_option
from twgen.cli.output import wants_colour, wants_tree, width, write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.deadline import AnswerDeadline
from twgen.errors import InvalidInput, StateUnavailable, TwgenError
from twgen.model.draining import DrainReport, WorkerInUse
from twgen.model.plan import WorkerVersions
from twgen.model.spec import WorkerSpec
from twgen.planning.draining.drain_report import counted_workflows, versions_without_traffic, worker_in_use
from twgen.planning.plan import plan_versions
from twgen.planning.reads import unread_lines
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


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option(*_REPORTS)
@options(
    *("window", "snapshot", "from_cluster", "all_namespaces"),
    from_cluster="Report on the workers that have a rollout in the cluster.",
)
@options("worker", *CONNECTION, *INPUT, *NAMES, "quiet", "color")
def command(output: str, window: timedelta, color: str, **params: Any) -> None:
    """List the workflows that keep old versions running, and what these versions cost. Changes nothing.

    \b
    twgen drain .
    twgen drain worker/payments -n shop
    twgen drain --from-cluster -A -o markdown

    `twgen end` ends or moves these workflows. With --snapshot, the report shows how many workflows were
    counted, but not their types and ages.
    """
    report = _report(params, window)
    failure = StateUnavailable("; ".join(report.unread)) if report.unread else None
    # an empty report would wrongly mean that no old version has workflows
    if failure and not report.workers:
        raise failure
    write(_REPORTS[output](report, color))
    if failure:
        raise failure


def _report(params: dict[str, Any], window: timedelta) -> DrainReport:
    """The report on the selected workers, with the reasons why any of them are missing."""
    settings, everywhere = settings_of(params), params["all_namespaces"]
    in_cluster = params["from_cluster"] or everywhere
    if in_cluster and params["paths"]:
        raise InvalidInput("--from-cluster reads the workers from the cluster: leave out PATH")
    if settings.snapshot:
        if in_cluster:
            raise InvalidInput("--from-cluster reads a cluster: leave out --snapshot")
        return _snapshot_report(settings, params["worker"] or "", window)
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


def _snapshot_report(settings: Settings, worker: str, window: timedelta) -> DrainReport:
    """The report on the workers in a snapshot."""
    specs = load_specs(settings, or_name=True)
    world = load_world(settings, specs, for_routing=False)
    now = planning_time(settings, world)
    plan = plan_versions(workers_called(worker, specs.workers), world, now, settings.planning_caller)
    in_use = (
        worker_in_use(item, counted_workflows(world.workers[item.spec.key]), now) for item in plan.workers
    )
    return DrainReport(now, window, tuple(in_use))


async def _drain_report(opened: Connections, specs: Sequence[WorkerSpec], window: timedelta) -> DrainReport:
    """The report on the workers that can be read, with the reasons why the others cannot."""
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
