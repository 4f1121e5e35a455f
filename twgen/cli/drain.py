"""`twgen drain`."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from twgen.cli.draining import end_workflows, what_ends
from twgen.cli.fleet import namespace_of
from twgen.cli.inputs import load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, READING, given_options, options, output_option, paths_argument
from twgen.cli.output import write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.errors import InvalidInput, StateUnavailable, TwgenError
from twgen.model.draining import DrainReport, HeldWorker
from twgen.model.plan import WorkerVersions
from twgen.model.spec import WorkerSpec
from twgen.planning.draining.drain_report import held_worker, may_be_held
from twgen.planning.plan import plan_versions
from twgen.reading.rollouts import rollouts_in_cluster, specs_of_intents
from twgen.reading.temporal.pinned_workflows import Draining
from twgen.reading.temporal.reader import SharedReads
from twgen.reading.world import first_failure
from twgen.reporting.draining import draining_document, draining_markdown, draining_text
from twgen.reporting.json_text import json_text

_REPORTS: dict[str, Callable[[DrainReport], str]] = {
    "text": draining_text,
    "json": lambda report: json_text(draining_document(report)),
    "markdown": draining_markdown,
}


@click.command()
@paths_argument
@output_option(*_REPORTS)
@options("window", "from_cluster", "all_namespaces", from_cluster="Report on the workers of a cluster.")
@options("of_version", "workflow_types", "older_than", "move", "to_version", "without_replay")
@options("signal", "signal_input", "cancel", "terminate", "again", "wait", "yes")
@options("worker", *READING, *INPUT, "identity", "namespace", "operator_config", "quiet")
def command(output: str, window: timedelta, **params: Any) -> None:
    """Show which workflows keep old versions running, and the cost of these versions.

    \b
    twgen drain .
    twgen drain --from-cluster -A -o markdown
    twgen drain . --version v1 --type Poller --signal stop --wait

    With --version, it ends these workflows: it shows the change and the number of workflows, asks for
    confirmation, and starts a batch operation on the server. If the same operation was started before, it
    reports the progress.
    """
    if what := what_ends(params):
        of_report = given_options(["window", "from_cluster", "all_namespaces"])
        if of_report or output != "text":
            options_of_report = ", ".join(of_report) or f"-o {output}"
            raise InvalidInput(f"--version prints no report, so leave out {options_of_report}")
        end_workflows(params, what)
        return
    report = _report(params, window)
    failure = StateUnavailable("; ".join(report.unread)) if report.unread else None
    # of nothing there is no report: it would say that no version is held
    if failure and not report.workers:
        raise failure
    write(_REPORTS[output](report))
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
    specs = () if in_cluster else load_specs(settings).workers
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

    async def held(worker: WorkerVersions) -> HeldWorker | str:
        build_ids = [version.build_id for version in may_be_held(worker)]
        try:
            found = await Draining(worker.spec, shared, now, window).pinned(build_ids)
        except (TwgenError, ExceptionGroup) as error:
            if not isinstance(failure := first_failure(error), TwgenError):
                raise
            return str(failure)
        return held_worker(worker, found, now)

    workers = await asyncio.gather(*map(held, plan.workers))
    told = tuple(one for one in workers if isinstance(one, HeldWorker))
    return DrainReport(now, window, told, (*failures, *(one for one in workers if isinstance(one, str))))
