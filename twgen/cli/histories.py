"""`twgen histories`."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from twgen.cli.intervention import the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, options, paths_argument
from twgen.cli.output import warn, write
from twgen.clients.deadline import AnswerDeadline
from twgen.executing.histories import Folder, Written, write_histories
from twgen.model.histories import Sample
from twgen.planning.sentences import counted
from twgen.reading.temporal.histories import Histories
from twgen.reading.temporal.shared import SharedReads


@click.command()
@paths_argument
@options(
    "folder",
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
def command(folder: str, shared: bool, sample: int, max_bytes: int, **params: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Write histories of a worker's workflows into a folder, for a program that replays them.

    Of each workflow type the newest, those of open workflows first. They hold what workflows were given and
    what activities answered: whoever reads the folder reads that.

    \b
    twgen histories . --folder /tmp/histories
    """
    settings, specs = the_worker(params)
    [spec] = specs.workers

    async def story(opened: Connections) -> Written:
        reads = SharedReads(opened.temporal, AnswerDeadline(settings.timeout))
        reads.require_credentials([spec])
        histories = Histories(spec, reads)
        of_all = await histories.recorded(upgrading=params["upgrading"])
        into = Folder(Path(folder), mode=0o644 if shared else 0o600)
        return await write_histories(into, of_all, Sample(sample, max_bytes), histories.history)

    with Servers(settings) as servers:
        written = servers.run([spec], story)
    if written.left_out:
        number = counted(len(written.left_out), "history")
        warn([f"{number} left out: larger than what is left of --max-bytes, or forgotten by now"])
    write(_told(spec.worker_deployment, folder, written))


def _told(worker: str, folder: str, written: Written) -> str:
    if not written.histories:
        return f"{worker}: Temporal keeps no history of any workflow of its versions\n"
    still = sum(one.is_open for one in written.histories)
    types = Counter(one.workflow_type for one in written.histories)
    named = ", ".join(f"{number} of {name}" for name, number in sorted(types.items()))
    head = f"{counted(len(written.histories), 'history')} in {folder}, {still} of open workflows"
    return f"{worker}: {head}: {named} ({written.bytes:,} bytes)\n"
