"""`twgen histories`."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from twgen.cli.intervention import the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, options, paths_argument
from twgen.cli.output import warn, write
from twgen.cli.settings import Settings, settings_of
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.profiles import usual_profile
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.executing.histories import Folder, Written, write_histories
from twgen.model.histories import Sample
from twgen.model.problem import quoted
from twgen.model.spec import Connection, InTemporal, NamedWorker
from twgen.planning.histories import left_out_altogether
from twgen.planning.sentences import counted, listed
from twgen.reading.temporal.histories import Histories
from twgen.reading.temporal.shared import SharedReads


@click.command()
@paths_argument
@options(
    "folder",
    "deployment_name",
    "task_queue",
    "upgrading",
    "shared",
    "sample",
    "max_bytes",
    "worker",
    "via",
    "ca_file",
    "timeout",
    "only_listed_connections",
)
@options(*INPUT, "namespace", "operator_config", "quiet")
def command(folder: str | None, shared: bool, sample: int, max_bytes: int, **params: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Write histories of a worker's workflows into a folder, for a program that replays them.

    Of each workflow type the newest, those of open workflows first, each version in turn. They hold what
    workflows were given and what activities answered: whoever reads the folder reads that.

    \b
    twgen histories . --folder /tmp/histories
    twgen histories --deployment-name shop/payments --folder /tmp/histories

    The folder must hold nothing yet. Ends with 1 when all that was chosen of a workflow type is too large.
    """
    if not folder:
        raise InvalidInput("--folder says where the histories are written: give one")
    # no cluster tells anything of them
    settings, worker = _whose({**params, "no_cluster": True})

    async def story(opened: Connections) -> Written:
        reads = SharedReads(opened.temporal, AnswerDeadline(settings.timeout))
        reads.require_credentials([worker])
        histories = Histories(worker, reads)
        of_all = await histories.recorded(
            sample, upgrading=params["upgrading"], task_queue=params["task_queue"] or ""
        )
        into = Folder(Path(folder), mode=0o644 if shared else 0o600)
        return await write_histories(into, of_all, Sample(sample, max_bytes), histories.history)

    with Servers(settings) as servers:
        written = servers.run([worker], story)
    if written.larger:
        number = counted(len(written.larger), "history")
        warn([f"{number} left out: larger than what is left of --max-bytes"])
    write(_told(worker.worker_deployment, folder, written))
    if missing := left_out_altogether(written.histories, written.larger):
        raise NegativeAnswer(f"none of {listed(missing)} is replayed: their histories are too large")


def _whose(params: Mapping[str, Any]) -> tuple[Settings, InTemporal]:
    """What was asked for, and whose histories are meant."""
    name = params["deployment_name"]
    if not name:
        settings, specs = the_worker(params)
        return settings, specs.workers[0]
    if params["paths"] or params["worker"]:
        raise InvalidInput("--deployment-name stands in place of PATHs and --worker")
    settings = settings_of(params)
    found = settings.surroundings.profiles(settings.operator, allow_unlisted=False).all
    profile = usual_profile(found, os.environ)
    if not profile:
        raise InvalidInput(
            "--deployment-name connects as Temporal's own tools do: set TEMPORAL_ADDRESS and"
            " TEMPORAL_NAMESPACE, or TEMPORAL_PROFILE to one that has an address"
        )
    if "://" in profile.address:
        raise InvalidInput(f"the address of Temporal is HOST:PORT, and not {quoted(profile.address)}")
    return settings, NamedWorker(name, profile.namespace, Connection("TEMPORAL_ADDRESS", profile.address))


def _told(worker: str, folder: str, written: Written) -> str:
    if not written.histories:
        return f"{worker}: Temporal keeps no history of any workflow of its versions\n"
    still = sum(one.is_open for one in written.histories)
    types = Counter(one.workflow_type for one in written.histories)
    named = ", ".join(f"{number} of {name}" for name, number in sorted(types.items()))
    head = f"{counted(len(written.histories), 'history')} in {folder}, {still} of open workflows"
    return f"{worker}: {head}: {named} ({written.bytes:,} bytes)\n"
