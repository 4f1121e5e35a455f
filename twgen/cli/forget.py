"""`twgen forget`."""

from typing import Any

import click

from twgen.cli.inputs import paths_or_name_argument, the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import CONNECTION, INPUT, NAMES, Grouped, options, output_option
from twgen.cli.output import confirm, say, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import clock
from twgen.errors import NegativeAnswer
from twgen.executing.temporal import delete_records
from twgen.model.forgetting import ForgetReport
from twgen.model.problem import counted
from twgen.planning.forgetting import KEPT, OldRecord, old_records
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import worker_world
from twgen.planning.sentences import in_days
from twgen.reporting.forgetting import FORGET_REPORT
from twgen.reporting.json_text import json_text


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option("text", "json")
@options("keep", "dry_run", "yes", "worker", *CONNECTION, *INPUT, *NAMES, "quiet")
def command(output: str, keep: int | None, **params: Any) -> None:
    """Delete Temporal's records of old versions that have no pods, no pollers and no open workflows.

    \b
    twgen forget worker/payments -n shop
    twgen forget . --keep 10 --dry-run

    Temporal stores at most 100 versions of a worker, and refuses new versions after that. A version is old
    if it has been drained for longer than scaledownDelay plus deleteDelay, and for longer than the rollback
    window. twgen always keeps the target and the newest drained versions. The command lists the versions to
    delete and asks for confirmation.
    """
    settings, spec = the_worker(params)
    name, kept = spec.worker_deployment, keep or spec.policy.keep_records or KEPT

    async def work(opened: Connections) -> ForgetReport:
        worker = WorkerServers(spec, opened)

        async def read() -> tuple[tuple[OldRecord, ...], str]:
            world = worker_world(spec, await worker.read(for_routing=False))
            unneeded = await worker.without_open_workflows(old_records(spec, world, clock(), kept))
            return unneeded, acting_identity(spec, world, settings.planning_caller)

        records, identity = await read()
        if not records:
            say(f"{name}: no version is old enough to delete its record")
            return ForgetReport(name, (), ())
        for record in records:
            say(f"{name} {record.build_id}: drained for {in_days(record.drained_for)}")
        will = f"delete the {counted(len(records), 'record')} of these versions"
        if params["dry_run"]:
            say(f"{name}: would {will}")
            return ForgetReport(name, (), ())
        confirm(f"{name}: {will}", yes=params["yes"])
        # read again, because the state may have changed before the user confirmed
        still_old = {record.build_id for record in (await read())[0]}
        chosen = [record for record in records if record.build_id in still_old]
        return await delete_records(worker.temporal(identity), name, chosen)

    with Servers(settings) as servers:
        report = servers.run([spec], work)
    if output == "json":
        write(json_text(FORGET_REPORT.write(report)))
    elif not params["dry_run"]:
        write(f"{name}: deleted {counted(len(report.deleted), 'record')}\n")
    if refused := report.refused:
        raise NegativeAnswer(
            f"{name}: {counted(len(refused), 'record')} could not be deleted; the first: {refused[0]}"
        )
