"""`twgen import`."""

from collections.abc import Sequence
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
from twgen.reading.documents import Sources, read_paths
from twgen.specs.imports import Imported, existing_identities, identity_of, imported
from twgen.yaml.editing import commented, edited
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import write_documents


@click.command()
@paths_argument
@options("folder", "namespace", "quiet", folder="Write the specs into this folder.")
def command(folder: str | None, **params: Any) -> None:
    """Write specs of what runs already: the controller's objects, or Deployments that have no versions.

    Each object gets a file. One of the controller's that is there already is brought up to date, and keeps
    its comments and its order; a worker and a connection that a Deployment tells of in part are left as they
    are. What a Deployment does not tell is a comment with what to fill in. The target of each worker is
    recorded in the ledger beside them.

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
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder}: specs cannot be written there ({error.strerror})") from error
    new, kept = _without_known(specs, place)
    if not settings.quiet:
        warn([*left, *kept])
    texts = {place / spec.file: _edited(place / spec.file, spec) for spec in new}
    write_files(texts)
    if texts:
        say(f"wrote {listed(sorted(map(str, texts)))}")
    if missing := [one for spec in new for one in spec.missing]:
        say(f"fill in what they do not tell ({'; '.join(missing)}), then run `twgen lock {folder}`")
        return
    record_targets(replace(settings, paths=(folder,)), check=False)
    say(f"recorded their targets in {place / 'twgen.lock'}; `twgen plan {folder}` says what would change")


def _without_known(specs: Sequence[Imported], place: Path) -> tuple[list[Imported], list[str]]:
    """The specs that are to be written, and why others are not: people have them already."""
    known = dict[tuple[str, str, str], str]()
    if any(place.iterdir()):
        known = existing_identities(read_paths([str(place)], Sources()).documents)
    new, kept = [], []
    for spec in specs:
        file = known.get(spec.identity)
        is_here = file is not None and Path(file).resolve() == (place / spec.file).resolve()
        if file is None or (is_here and spec.is_whole):
            new.append(spec)
        else:
            kept.append(f"{file} has {' '.join(filter(None, spec.identity))} already: it is left as it is")
    return new, kept


def _edited(file: Path, spec: Imported) -> str:
    """What the file is to hold; raises InvalidInput where it holds something else."""
    try:
        text = file.read_bytes().decode() if file.exists() or file.is_symlink() else ""
        documents = read_documents(text)
    except (OSError, UnicodeDecodeError, YamlError) as error:
        raise InvalidInput(f"{file} cannot be edited: {error}") from error
    if file.is_symlink():
        raise InvalidInput(f"{file} is a link: give a folder that holds the files themselves")
    if not documents:
        return commented(spec.document, spec.comments)
    if len(documents) > 1 or identity_of(documents[0]) != spec.identity:
        raise InvalidInput(f"{file} holds something else: move it away, or give another --folder")
    # labels and annotations of the file are its people's own
    over = {**documents[0], "spec": spec.document["spec"]}
    changed = edited(text, over, lambda value: write_documents([value]))
    if changed is None:
        raise InvalidInput(f"{file} cannot be edited with its layout kept: move it away, and import again")
    return changed
