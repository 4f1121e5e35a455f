"""`twgen import`."""

from collections.abc import Sequence
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
    specs, not_imported = imported(documents, settings.namespace)
    live, unread = live_versions(documents)
    if not specs:
        why = "; ".join([*not_imported, *unread])
        raise InvalidInput(f"nothing to import{f': {why}' if why else ''}")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot write specs there ({error.strerror})") from error
    new, unchanged = _without_known(specs, place)
    settings.warn([*not_imported, *unread, *unchanged])
    texts = {place / spec.file: _edited(place / spec.file, spec) for spec in new}
    write_files(texts)
    if texts:
        say(f"wrote {listed(sorted(map(str, texts)))}")
    if missing := [value for spec in new for value in spec.missing]:
        again = "run this command again" if live else f"run `twgen lock {folder}`"
        for line in (f"do the following, then {again}:", *missing):
            say(line)
        return
    workers = [spec.identity for spec in specs if not spec.is_whole and spec.identity[0] == WORKER]
    if texts and workers and not live:
        say(
            "turn versioning on in the code (docs/workers.md), write its image into the spec, then run"
            f" `twgen lock {folder}`"
        )
        return
    # these images never ran with versioning, so twgen must not restore them as versions
    plain = {f"{namespace}/{name}" for _, namespace, name in workers}
    recorded = record_targets(replace(settings, paths=(folder,)), check=False, live=live, without=plain)
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


def _without_known(specs: Sequence[Imported], place: Path) -> tuple[list[Imported], list[str]]:
    """The specs to write, and a warning for each spec that the folder already contains."""
    # a new folder can have a .git folder or a README
    existing = read_paths([str(place)], Sources(), may_be_empty=True).documents
    known = {identity_of(document.value): document for document in existing}
    new, unchanged = [], []
    for spec in specs:
        document = known.get(spec.identity)
        is_here = document and Path(document.source).resolve() == (place / spec.file).resolve()
        if not document or (is_here and spec.is_whole):
            new.append(spec)
            continue
        name = " ".join(filter(None, spec.identity))
        said = f"{document.source} already has {name}: twgen does not change it"
        if spec.identity[0] == CONNECTION and document.value.get("spec") != spec.document["spec"]:
            said += "; its address or credentials differ, so write another Connection if the worker needs one"
        unchanged.append(said)
    return new, unchanged


def _edited(file: Path, spec: Imported) -> str:
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
    if len(documents) > 1 or identity_of(documents[0]) != spec.identity:
        raise InvalidInput(f"{file} contains something else: move it away, or give another --folder")
    # the team may have changed labels and annotations in the file: keep them
    new_document = {**documents[0], "spec": spec.document["spec"]}
    changed = edited(text, new_document, lambda value: write_documents([value]))
    if changed is None:
        raise InvalidInput(
            f"{file} cannot be edited without changing its layout: move it away, and import again"
        )
    return changed
