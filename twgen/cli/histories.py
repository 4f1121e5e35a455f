"""`twgen histories`."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from twgen.cli.inputs import the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, Grouped, options, paths_argument
from twgen.cli.output import warn, write
from twgen.cli.settings import Settings, settings_of
from twgen.clients.deadline import AnswerDeadline
from twgen.clients.profiles import usual_profile
from twgen.errors import InvalidInput, NegativeAnswer
from twgen.executing.files import Written, write_histories
from twgen.model.policy import Sample
from twgen.model.problem import counted, quoted
from twgen.model.spec import Connection, InTemporal, NamedWorker
from twgen.planning.routing.gates import left_out_altogether
from twgen.planning.sentences import listed
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.temporal.workflows import Histories


@click.command(cls=Grouped)
@paths_argument
@options("folder", "deployment_name", "task_queue", "upgrading", "shared", "sample", "max_bytes")
@options("worker", "via", "ca_file", "timeout", "allow_unlisted_connections", "only_listed_connections")
@options(*INPUT, "namespace", "quiet")
def command(folder: str | None, shared: bool, sample: int, max_bytes: int, **params: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Write a worker's workflow histories into a folder, as input for a replay program.

    For each workflow type, the command chooses the newest histories. It prefers histories of open workflows,
    and alternates between versions. Histories contain workflow inputs and activity results: anyone who can
    read the folder can read those.

    \b
    twgen histories . --folder /tmp/histories
    twgen histories --deployment-name shop/payments --folder /tmp/histories

    The folder must be empty. Exits with 1 if all chosen histories of a workflow type are too large.
    """
    if not folder:
        raise InvalidInput("give --folder: the folder to write the histories to")
    # the command does not read Kubernetes
    settings, worker = _settings_and_worker({**params, "no_cluster": True})

    async def work(opened: Connections) -> Written:
        reads = TemporalReader(opened.temporal, AnswerDeadline(settings.timeout))
        reads.require_credentials([worker])
        histories = Histories(worker, reads)
        runs = await histories.recorded(
            sample, upgrading=params["upgrading"], task_queue=params["task_queue"] or ""
        )
        mode = 0o644 if shared else 0o600
        return await write_histories(Path(folder), mode, runs, Sample(sample, max_bytes), histories.history)

    with Servers(settings) as servers:
        written = servers.run([worker], work)
    if written.larger:
        number = counted(len(written.larger), "history")
        warn([f"{number} not written: too large for the rest of --max-bytes"])
    write(_written_sentence(worker.worker_deployment, folder, written))
    if missing := left_out_altogether(written.histories, written.larger):
        raise NegativeAnswer(f"no history of {listed(missing)} was written: they are all too large")


def _settings_and_worker(params: Mapping[str, Any]) -> tuple[Settings, InTemporal]:
    """The settings, and the worker whose histories are written."""
    name = params["deployment_name"]
    if not name:
        return the_worker(params)
    if params["paths"] or params["worker"]:
        raise InvalidInput("--deployment-name replaces PATHs and --worker: leave them out")
    settings = settings_of(params)
    profiles = settings.environment.profiles(settings.operator, allow_unlisted=False).all
    profile = usual_profile(profiles, os.environ)
    if not profile:
        raise InvalidInput(
            "--deployment-name uses Temporal's own environment settings: set TEMPORAL_ADDRESS and"
            " TEMPORAL_NAMESPACE, or set TEMPORAL_PROFILE to a profile with an address"
        )
    if "://" in profile.address:
        raise InvalidInput(f"the address of Temporal must be HOST:PORT, not {quoted(profile.address)}")
    return settings, NamedWorker(name, profile.namespace, Connection("TEMPORAL_ADDRESS", profile.address))


def _written_sentence(worker: str, folder: str, written: Written) -> str:
    if not written.histories:
        return f"{worker}: Temporal has no workflow history of its versions\n"
    open_number = sum(history.is_open for history in written.histories)
    types = Counter(history.workflow_type for history in written.histories)
    parts = ", ".join(f"{number} of {name}" for name, number in sorted(types.items()))
    head = f"{counted(len(written.histories), 'history')} in {folder}, {open_number} of open workflows"
    return f"{worker}: {head}: {parts} ({written.bytes:,} bytes)\n"
