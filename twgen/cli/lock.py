"""`twgen lock`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from twgen.cli.inputs import ledgers_without_spec, load_specs
from twgen.cli.options import INPUT, options, paths_argument
from twgen.cli.output import warn
from twgen.cli.settings import Settings, clock, settings_of
from twgen.errors import InvalidDocuments, InvalidInput, NegativeAnswer
from twgen.executing.ledger import changed_files, with_attributes, write_files
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment
from twgen.planning.sentences import listed
from twgen.planning.versions.recording import is_of_worker, versions_to_record
from twgen.planning.versions.warnings import build_id_taken
from twgen.reading.documents import ledger_folder
from twgen.reading.input import HELM
from twgen.reading.places import located
from twgen.reading.records import read_ledgers
from twgen.records.ledger import LedgerEntry, recorded_versions, why_unreadable
from twgen.rendering.deployments import deployment_to_record, target_deployment
from twgen.reporting.problems import problem_lines


@click.command()
@paths_argument
@options("now", *INPUT, "namespace", "operator_config", "check", "strict", "quiet")
def command(check: bool, **params: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Record the Deployment of each target version in the folder twgen.lock beside the specs.

    Commit it: it lets twgen bring a version back that Git and the cluster have forgotten.
    Comments and order that you gave the files stay. A version is a line, which Git merges by itself.

    \b
    twgen lock .
    """
    record_targets(settings_of(params), check=check)


def record_targets(
    settings: Settings, *, check: bool, live: Mapping[str, Sequence[LiveDeployment]] | None = None
) -> int:
    """Record the target of every worker in its ledger; with `check` raise NegativeAnswer where one is not.

    Of `live` Deployments, by namespace, what the ledger lacks is recorded too; how many, is returned.
    """
    if settings.input.kind == HELM and not settings.input.release:
        raise InvalidInput(
            "versions are recorded under the names that one release gives them: write --release NAME, as in"
            " the cluster, and -n NAMESPACE where the templates name none"
        )
    folder, read = ledger_folder(settings.paths[0]), settings.sources.text
    specs = load_specs(settings)
    if not settings.quiet:
        warn(problem_lines(located(ledgers_without_spec(settings, specs), settings.sources)))
    places = read_ledgers(specs.ledgers, settings.sources)
    recorded = recorded_versions(places)
    taken = [
        build_id_taken(spec, recorded.get((spec.worker_deployment, spec.build_id))) for spec in specs.workers
    ]
    if any(taken):
        raise InvalidDocuments(filter(None, taken))
    now = settings.now or clock()
    entries = [
        LedgerEntry(spec.worker_deployment, spec.build_id, target_deployment(spec), now)
        for spec in specs.workers
    ]
    older = [
        entry for spec in specs.workers for entry in _older(settings, spec, live or {}, set(recorded), now)
    ]
    entries += older
    changed = changed_files(folder, entries, places, read)
    if changed and check:
        names = listed(sorted(map(str, changed)))
        is_not = "is not current: run `twgen lock` and commit it"
        are_not = "are not current: run `twgen lock` and commit them"
        raise NegativeAnswer(f"{names} {is_not if len(changed) == 1 else are_not}")
    write_files(with_attributes(changed, folder))
    return len(older)


def _older(
    settings: Settings,
    spec: WorkerSpec,
    live: Mapping[str, Sequence[LiveDeployment]],
    recorded: Collection[tuple[str, str]],
    now: datetime,
) -> Iterator[LedgerEntry]:
    """A worker's older versions that run and that the ledger does not have."""
    here = [one for one in live.get(spec.namespace, ()) if is_of_worker(one, spec)]
    known = {build_id for worker, build_id in recorded if worker == spec.worker_deployment}
    found = versions_to_record(spec, here, known)
    told = list(found.told)
    for version in found.versions:
        deployment = deployment_to_record(spec, version)
        entry = LedgerEntry(spec.worker_deployment, version.build_id, deployment, now)
        if why := why_unreadable(entry):
            told.append(f"{spec.worker_deployment}: {version.build_id} is not recorded: {why}")
        else:
            yield entry
    if not settings.quiet:
        warn(told)
