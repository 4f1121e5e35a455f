"""`twgen import`."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from twgen.cli.options import Grouped, options, paths_argument
from twgen.cli.output import say
from twgen.cli.recording import Recorded, record_targets
from twgen.cli.settings import Settings, settings_outside_argocd
from twgen.errors import InvalidInput
from twgen.executing.files import write_files
from twgen.model.problem import Document, counted
from twgen.planning.sentences import listed
from twgen.reading.documents import Sources, read_paths
from twgen.reading.objects import ToImport, objects_to_import
from twgen.specs.imported_workers import Imported, identity_of
from twgen.specs.imports import imported, live_versions
from twgen.specs.kinds import CONNECTION, WORKER
from twgen.versioning.names import CONTROLLER_API
from twgen.yaml.editing import commented, edited
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import write_documents

_DEPLOYMENT = "deployment/"


@click.command(cls=Grouped)
@paths_argument
@options(
    *("folder", "from_cluster", "namespace", "timeout", "kubeconfig", "context", "quiet"),
    folder="Write the specs into this folder.",
    from_cluster="Import the controller's objects in a namespace. If deployment/NAME is given, import that"
    " Deployment too, with its autoscalers and budgets.",
    namespace="Use this Kubernetes namespace for documents that do not set one. With --from-cluster, read"
    " this namespace.",
)
def command(folder: str | None, from_cluster: bool, **params: Any) -> None:  # noqa: FBT001
    """Write specs for running workers, from the controller's objects or from Deployments without versions.

    Each object gets its own file. If the file of a controller's object exists, twgen updates it, and keeps
    the comments and the order of the fields. twgen does not change an existing file of a Deployment. Comments
    mark the values that you must fill in because the Deployment does not contain them.

    The ledger next to the specs records each worker's target. If the Deployments of older versions were read,
    the ledger records these versions too, so that twgen can restore them from Git.

    \b
    twgen import --from-cluster -n shop --folder workers
    twgen import --from-cluster -n shop --folder workers deployment/payments
    kubectl get deployment payments -o yaml | twgen import - --folder workers
    """
    if not folder:
        raise InvalidInput("give --folder: the folder to write the specs to")
    settings = settings_outside_argocd(params)
    documents = _from_cluster(settings, params["paths"]) if from_cluster else _from_files(settings)
    place = Path(folder)
    existing, unreadable = _existing(place)
    specs, not_imported = imported(documents, settings.namespace, existing)
    live, unread = live_versions(documents)
    if not specs:
        why = "; ".join([*not_imported, *unread])
        raise InvalidInput(f"nothing to import{f': {why}' if why else ''}")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot write specs there ({error.strerror})") from error
    new, known = _without_known(specs, existing, settings.namespace)
    unchanged = [f"{place / source} already has {name}: twgen does not change it" for source, name in known]
    settings.warn([*not_imported, *unread, *unreadable, *unchanged])
    texts = {place / spec.file: _edited(place / spec.file, spec, settings.namespace) for spec in new}
    write_files(texts)
    if texts:
        say(f"wrote {listed(sorted(map(str, texts)))}")
    if missing := [value for spec in new for value in spec.missing]:
        again = "run this command again" if live else f"run `twgen lock {folder}`"
        for line in (f"do the following, then {again}:", *missing):
            say(line)
        return
    workers = [spec for spec in specs if spec.identity[0] == WORKER]
    if texts and not live and not all(worker.is_whole for worker in workers):
        say(
            "turn versioning on in the code (docs/workers.md), write its image into the spec, then run"
            f" `twgen lock {folder}`"
        )
        return
    # other images may never have run with versioning, so twgen must not restore them as versions
    versioned = [identity_of(item.document, settings.namespace) for item in workers if item.is_whole]
    names = {f"{namespace}/{name}" for _, namespace, name in versioned}
    recorded = record_targets(replace(settings, paths=(folder,)), check=False, live=live, only=names)
    _say_what_is_recorded(recorded, folder)


def _say_what_is_recorded(recorded: Recorded, folder: str) -> None:
    more = f" and {counted(recorded.older, 'older version')}" if recorded.older else ""
    ledgers = listed(sorted({str(file.parent) for file in recorded.files}))
    summary = f"recorded the workers' targets{more} in {ledgers}; " if ledgers else ""
    say(f"{summary}`twgen plan {folder}` shows what would change")


def _from_files(settings: Settings) -> Sequence[Document]:
    files = read_paths(settings.paths, settings.sources)
    if files.unreadable:
        raise InvalidInput("; ".join(files.unreadable))
    return files.documents


def _from_cluster(settings: Settings, deployments: Sequence[str]) -> Sequence[Document]:
    """The documents to import from a namespace. Warns about kinds that the cluster does not have."""
    from twgen.cli.live import Connections, Servers

    namespace = settings.namespace_rule.default
    if not namespace:
        raise InvalidInput("--from-cluster reads one namespace: give -n NAMESPACE")
    for name in deployments:
        if not name.startswith(_DEPLOYMENT):
            raise InvalidInput(f"--from-cluster reads no files: give {_DEPLOYMENT}NAME instead of {name}")
    bare_names = [name.removeprefix(_DEPLOYMENT) for name in deployments]

    async def work(opened: Connections) -> ToImport:
        client = opened.cluster_for("--from-cluster")
        return await objects_to_import(client, namespace, bare_names, opened.deadline())

    with Servers(settings) as servers:
        found = servers.run((), work)
    if found.absent:
        absence = f"the API server does not have {listed(found.absent)} ({CONTROLLER_API})"
        settings.warn([f"{absence}: twgen imports no objects of the controller"])
    settings.warn(found.unread)
    return found.documents


def _existing(place: Path) -> tuple[list[Document], Sequence[str]]:
    """The folder's documents and its unreadable files. A document's source is its path in the folder."""
    if not place.is_dir():
        return [], ()
    # a new folder can have a .git folder or a README
    files = read_paths([str(place)], Sources(), may_be_empty=True)
    documents = [replace(item, source=os.path.relpath(item.source, place)) for item in files.documents]
    return documents, files.unreadable


def _without_known(
    specs: Sequence[Imported], existing: Iterable[Document], namespace: str
) -> tuple[list[Imported], list[tuple[str, str]]]:
    """The specs to write, and the file and the name of each other spec that the folder already contains."""
    known = {identity_of(document.value, namespace): document for document in existing}
    new, unchanged = [], []
    for spec in specs:
        document = known.get(identity_of(spec.document, namespace))
        if not document or (document.source == spec.file and spec.is_whole):
            new.append(spec)
        elif spec.is_whole or spec.identity[0] != CONNECTION:
            unchanged.append((document.source, " ".join(filter(None, spec.identity))))
    return new, unchanged


def _edited(file: Path, spec: Imported, namespace: str) -> str:
    """The new content of the file. Raises InvalidInput if the file contains anything but this spec."""
    try:
        text = file.read_bytes().decode() if file.exists() or file.is_symlink() else ""
        documents = read_documents(text)
    except (OSError, UnicodeDecodeError, YamlError) as error:
        raise InvalidInput(f"{file} cannot be edited: {error}") from error
    if file.is_symlink():
        raise InvalidInput(f"{file} is a link: give a folder that contains the files themselves")
    if not documents:
        return commented(spec.document, spec.comments)
    identities = [identity_of(value, namespace) for value in documents]
    if identities != [identity_of(spec.document, namespace)]:
        raise InvalidInput(f"{file} contains something else: move it away, or give another --folder")
    # the team may have changed labels and annotations in the file: keep them
    new_document = {**documents[0], "spec": spec.document["spec"]}
    changed = edited(text, new_document, lambda value: write_documents([value]))
    if changed is None:
        raise InvalidInput(
            f"{file} cannot be edited without changing its layout: move it away, and import again"
        )
    return changed
