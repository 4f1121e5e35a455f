"""`twgen import`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from twgen.cli.lock import record_targets
from twgen.cli.options import options, paths_argument
from twgen.cli.output import say, warn
from twgen.cli.settings import settings_of
from twgen.errors import InvalidInput
from twgen.executing.ledger import write_files
from twgen.planning.sentences import listed
from twgen.reading.documents import read_paths
from twgen.specs.imports import Imported, imported
from twgen.yaml.editing import edited
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError


@click.command()
@paths_argument
@options("folder", "namespace", "quiet", folder="Write the specs into this folder.")
def command(folder: str | None, **params: Any) -> None:
    """Write specs of what runs already: the controller's objects, or Deployments that have no versions.

    Each object gets a file; one that is there keeps its comments and its order. What an object does not tell
    is a comment with what to fill in. The target of each worker is recorded in the ledger beside them.

    \b
    kubectl get workerdeployments,connections,workerresourcetemplates -n shop -o yaml > objects.yaml
    twgen import objects.yaml --folder workers
    kubectl get deployment payments -n shop -o yaml | twgen import - --folder workers
    """
    if not folder:
        raise InvalidInput("--folder says where the specs are written: give one")
    settings = settings_of(params)
    if settings.surroundings.needs_identity:
        raise InvalidInput("a plugin of Argo CD only renders")
    read = read_paths(settings.paths, settings.sources)
    if read.unreadable:
        raise InvalidInput("; ".join(read.unreadable))
    specs, left = imported(read.documents, settings.namespace)
    if not specs:
        raise InvalidInput(f"nothing to import: {'; '.join(left)}")
    if not settings.quiet:
        warn(left)
    place = Path(folder)
    files = {place / spec.file: spec for spec in specs}
    texts = {file: _edited(file, spec) for file, spec in files.items()}
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: specs cannot be written there ({error.strerror})") from error
    write_files(texts)
    say(f"wrote {listed(sorted(map(str, texts)))}")
    if missing := [one for spec in specs for one in spec.missing]:
        say(f"fill in what they do not tell ({'; '.join(missing)}), then run `twgen lock {folder}`")
        return
    record_targets(replace(settings, paths=(folder,)), check=False)
    say(f"recorded their targets in {place / 'twgen.lock'}; `twgen plan {folder}` says what would change")


def _edited(file: Path, spec: Imported) -> str:
    """What the file is to hold; raises InvalidInput where it holds something else than one document."""
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        documents = read_documents(text)
    except (OSError, UnicodeDecodeError, YamlError) as error:
        raise InvalidInput(f"{file} cannot be edited: {error}") from error
    if len(documents) > 1:
        raise InvalidInput(f"{file} holds several documents: give each a file, or another --folder")
    return edited(text, spec.over(next(iter(documents), None)), spec.comments, str(file))
