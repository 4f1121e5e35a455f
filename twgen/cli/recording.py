"""`twgen lock` and `twgen snapshot`, which record state for later runs."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from shlex import join
from typing import Any, NamedTuple

import click

from twgen.cli.inputs import ledgers_without_spec, load_specs
from twgen.cli.options import INPUT, MEASURING, Grouped, options, output_option, paths_argument
from twgen.cli.output import say, write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.errors import InvalidDocuments, InvalidInput, NegativeAnswer
from twgen.executing.files import alone_in, changed_files, unrecorded, with_settings_of_ledgers, write_files
from twgen.model.paths import differing_paths, value_at
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment
from twgen.planning.sentences import listed
from twgen.planning.versions.warnings import build_id_taken
from twgen.reading.documents import ledger_files, ledger_folder, located, read_ledgers
from twgen.reading.templated import HELM
from twgen.records.ledger import LedgerEntry, LedgerPlace, recorded_versions, why_unreadable
from twgen.records.snapshot import write_snapshot
from twgen.rendering.deployments import (
    deployment_to_record,
    is_of_worker,
    target_deployment,
    versions_to_record,
)
from twgen.rendering.manifests import one_document
from twgen.reporting.problems import problem_lines
from twgen.versioning.names import TEMPLATE_HASH

_MOST_NAMED = 3


class Recorded(NamedTuple):
    """The new entries by file, the number of older versions among them, and the ledgers of the workers."""

    new: Mapping[Path, Sequence[LedgerEntry]]
    older: int
    files: Sequence[Path]


@click.command(cls=Grouped)
@paths_argument
@options(
    *("now", *INPUT, "namespace", "check", "strict", "quiet"),
    now="Record this time in new entries. The default is the current time.",
)
def lock(check: bool, **params: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Record the Deployment of each target version in the folder twgen.lock next to the specs.

    Commit the folder. From the ledger, twgen can restore a version that neither the cluster nor the Git
    history contains. twgen keeps your comments and the order of the files. Each version is one line, so that
    Git can merge the files.

    \b
    twgen lock .
    """
    settings = settings_of(params)
    new = record_targets(settings, check=check).new
    if not settings.quiet:
        for file, entries in sorted(new.items()):
            say(f"recorded {_versions_in_words(entries)} in {file}")


def record_targets(
    settings: Settings,
    *,
    check: bool,
    live: Mapping[str, Sequence[LiveDeployment]] | None = None,
    only: Collection[str] | None = None,
) -> Recorded:
    """Record the target of every worker in its ledger. With `check`, raise NegativeAnswer instead.

    `live` contains Deployments by namespace: their versions are recorded too, if the ledger lacks them. With
    `only`, the targets of the other workers are not recorded.
    """
    if settings.input.kind == HELM and not settings.input.release:
        raise InvalidInput(
            "the names of recorded versions depend on the Helm release: give --release NAME, as in"
            " the cluster, and -n NAMESPACE if the templates set no namespace"
        )
    folder = ledger_folder(settings.paths[0])
    specs = load_specs(settings, renders_again=True)
    settings.warn(problem_lines(located(ledgers_without_spec(settings, specs), settings.sources)))
    places = read_ledgers(specs.ledgers, settings.sources)
    recorded = recorded_versions(places)
    file_of, warnings = ledger_files(specs.workers, places.values(), folder)
    settings.warn(warnings)
    collisions = [
        build_id_taken(spec, recorded.get((spec.worker_deployment, spec.build_id))) for spec in specs.workers
    ]
    if settings.input.kind == HELM:
        # another cluster may use the same chart with other values
        collisions += [_other_pods(spec, places) for spec in specs.workers]
    if any(collisions):
        raise InvalidDocuments(filter(None, collisions))
    now = settings.now or clock()
    entries = [
        LedgerEntry(spec.worker_deployment, spec.build_id, target_deployment(spec), now)
        for spec in specs.workers
        if only is None or spec.worker_deployment in only
    ]
    files = [file for worker, file in file_of.items() if only is None or worker in only]
    older = [
        entry for spec in specs.workers for entry in _older(settings, spec, live or {}, set(recorded), now)
    ]
    new = unrecorded([*entries, *older], places, file_of)
    if new and check:
        names, (verb, them) = listed(sorted(map(str, new))), ("are", "them") if len(new) > 1 else ("is", "it")
        command_line = join(["twgen", *(word for word in sys.argv[1:] if word != "--check")])
        raise NegativeAnswer(f"{names} {verb} outdated: run `{command_line}` and commit {them}")
    with alone_in({file.parent for file in new}):
        # read the ledgers again: another process may have recorded versions since the specs were read
        write_files(with_settings_of_ledgers(changed_files(new, settings.sources.text)))
    return Recorded(new, len(older), sorted(set(files)))


def _other_pods(spec: WorkerSpec, places: Mapping[tuple[str, str], LedgerPlace]) -> str:
    """The reason why a custom build ID conflicts with the ledger, or empty if the recorded pods are equal."""
    place = places.get((spec.worker_deployment, spec.build_id))
    if not place or not spec.has_custom_build_id:
        return ""
    before, after = (
        value_at(item, "spec", "template") for item in (place.entry.deployment, target_deployment(spec))
    )
    paths = [path for path in differing_paths(before, after, "spec.template") if TEMPLATE_HASH not in path]
    if not paths:
        return ""
    return (
        f"{spec.worker_deployment}: {place.document.source} records {spec.build_id} with other pods, which"
        f" differ in {listed(paths, _MOST_NAMED)}: if two clusters have this chart with different values,"
        " give them different build IDs; if there is one cluster, first remove the version from that file"
    )


def _versions_in_words(entries: Sequence[LedgerEntry]) -> str:
    """The versions that were added to a file, such as `shop/payments v2 and v3`."""
    builds: dict[str, list[str]] = {}
    for entry in entries:
        builds.setdefault(entry.worker, []).append(entry.build_id)
    return listed([f"{worker} {listed(build_ids)}" for worker, build_ids in builds.items()])


def _older(
    settings: Settings,
    spec: WorkerSpec,
    live: Mapping[str, Sequence[LiveDeployment]],
    recorded: Collection[tuple[str, str]],
    now: datetime,
) -> Iterator[LedgerEntry]:
    """A worker's older versions that have a Deployment but no ledger entry."""
    own_deployments = [item for item in live.get(spec.namespace, ()) if is_of_worker(item, spec)]
    recorded_builds = {build_id for worker, build_id in recorded if worker == spec.worker_deployment}
    versions, warnings = versions_to_record(spec, own_deployments, recorded_builds)
    for version in versions:
        deployment = deployment_to_record(spec, version)
        entry = LedgerEntry(spec.worker_deployment, version.build_id, deployment, now)
        if why := why_unreadable(entry):
            warnings.append(f"{spec.worker_deployment}: {version.build_id} is not recorded: {why}")
        else:
            yield entry
    settings.warn(warnings)


@click.command(cls=Grouped)
@paths_argument
@output_option("yaml", "json")
@options(*MEASURING, *INPUT, "namespace", "strict", "quiet")
def snapshot(output: str, **params: Any) -> None:
    """Print the workers' state in Temporal and Kubernetes. Other commands read this output with --snapshot.

    \b
    twgen snapshot . > world.yaml
    """
    from twgen.cli.live import Servers

    settings = settings_of(params)
    specs = load_specs(settings)
    with Servers(settings) as servers:
        world = servers.read(specs.workers, for_routing=True)
    write(one_document(write_snapshot(world), output))
