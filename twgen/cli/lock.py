"""`twgen lock`."""

from pathlib import Path
from typing import Any

import click

from twgen.cli.clock import clock
from twgen.cli.loading import load_specs
from twgen.cli.options import options, paths_argument
from twgen.cli.settings import settings_of
from twgen.errors import InvalidDocuments, NegativeAnswer
from twgen.executing.ledger_file import updated_ledger, write_ledger
from twgen.planning.versions.plan import build_id_taken
from twgen.records.ledger import FILE_NAME, ledger_entry, read_ledgers
from twgen.records.times import format_time
from twgen.rendering.deployments import target_deployment


@click.command()
@paths_argument
@options("now", "namespace", "operator_config", "check", "strict", "quiet")
def command(check: bool, **params: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Record the Deployment of each target version in twgen.lock.yaml beside the specs.

    Commit it: it lets twgen bring a version back that Git and the cluster have forgotten.

    \b
    twgen lock .
    """
    settings = settings_of(params)
    specs = load_specs(settings)
    known = read_ledgers(specs.ledgers)
    recorded = (known.get((spec.worker_deployment, spec.build_id)) for spec in specs.workers)
    taken = [build_id_taken(*pair) for pair in zip(specs.workers, recorded, strict=True)]
    if any(taken):
        raise InvalidDocuments(filter(None, taken))
    recorded_at = format_time(settings.now or clock())
    entries = [
        ledger_entry(spec.worker_deployment, spec.build_id, recorded_at, target_deployment(spec))
        for spec in specs.workers
    ]
    first = Path(settings.paths[0])
    path = (first if first.is_dir() else first.parent) / FILE_NAME
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    after = updated_ledger(path, entries)
    if before == after:
        return
    if check:
        raise NegativeAnswer(f"{path} is not current: run `twgen lock` and commit it")
    write_ledger(path, after)
