"""`twgen prune`: deletes the records of versions that are over, in Temporal."""

from typing import Any

import click

from twgen.cli.intervention import the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, READING, Grouped, options, output_option
from twgen.cli.output import confirm, say, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import clock
from twgen.cli.worker_name import paths_or_name_argument
from twgen.errors import NegativeAnswer
from twgen.executing.temporal import Pruned, delete_records
from twgen.model.problem import counted
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import worker_world
from twgen.planning.pruning import KEPT, OldRecord, old_records
from twgen.planning.sentences import in_days
from twgen.reporting.json_text import json_text


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option("text", "json")
@options("keep", "dry_run", "yes", "worker", *READING, *INPUT)
@options("identity", "namespace", "operator_config", "quiet")
def command(output: str, keep: int | None, **params: Any) -> None:
    """Delete the records of old versions in Temporal: drained, without pods, pollers and open workflows.

    \b
    twgen prune worker/payments -n shop
    twgen prune . --keep 10 --dry-run

    Temporal keeps at most 100 versions of a worker, and refuses new ones after that. A version is old if it
    has been drained for longer than scaledownDelay and deleteDelay together. The target and the newest
    drained versions always stay. It shows the versions and asks for confirmation.
    """
    settings, specs = the_worker(params)
    [spec] = specs.workers
    kept = keep or spec.policy.keep_records or KEPT

    async def work(opened: Connections) -> Pruned:
        worker = WorkerServers(spec, opened)

        async def read() -> tuple[tuple[OldRecord, ...], str]:
            world = worker_world(spec, await worker.read(for_routing=False))
            unneeded = await worker.without_open_workflows(old_records(spec, world, clock(), kept))
            return unneeded, acting_identity(spec, world, settings.planning_caller)

        records, identity = await read()
        if not records:
            say(f"{spec.worker_deployment}: no version is old enough to delete its record")
            return Pruned([], [])
        for record in records:
            say(f"{spec.worker_deployment} {record.build_id}: drained for {in_days(record.drained_for)}")
        change = f"{spec.worker_deployment}: delete the {counted(len(records), 'record')} of these versions"
        if params["dry_run"]:
            say(f"would {change.partition(': ')[2]}")
            return Pruned([], [])
        confirm(change, yes=params["yes"])
        # the person may have taken long to answer
        still_old = {record.build_id for record in (await read())[0]}
        writer = worker.temporal(identity)
        return await delete_records(writer, [record for record in records if record.build_id in still_old])

    with Servers(settings) as servers:
        deleted, refused = servers.run([spec], work)
    if output == "json":
        write(json_text({"worker": spec.worker_deployment, "deleted": deleted, "refused": refused}))
    elif not params["dry_run"]:
        write(f"{spec.worker_deployment}: deleted {counted(len(deleted), 'record')}\n")
    if refused:
        raise NegativeAnswer(f"{spec.worker_deployment}: not all were deleted: {refused[0]}")
