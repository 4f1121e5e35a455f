"""Reads a command's input: files, or the output of kustomize or helm for a folder.

kustomize and helm can read only the checkout that contains the folder, and have no network access.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from twgen.errors import InvalidInput
from twgen.model.paths import value_at
from twgen.model.problem import Document, quoted
from twgen.reading.documents import (
    STDIN,
    Documents,
    Sources,
    is_folder,
    ledger_folder,
    read_paths,
    repository_root,
)
from twgen.specs.kinds import CHART_FILE, RENDERED_BY, is_marked, without_lists
from twgen.yaml.reader import read_documents
from twgen.yaml.source import DEFAULT, Budget, YamlError

_MOST_SECONDS = 30.0
_MOST_READ = 65_536
_LONGEST_MESSAGE = 2000
"""The maximum length of a program's error message in twgen's own message."""
_OUT_OF_MEMORY = ("out of memory", "cannot allocate memory", "pthread_create failed", "failed to reserve")
"""Messages that Go's runtime prints when it runs out of memory."""
_REMOTE = (
    "twgen downloads no files: copy remote files into the repository with `kustomize localize`, and commit"
    " them"
)
_INSTEAD = {
    "no 'git' program on path": _REMOTE,
    "dial tcp": _REMOTE,
    "does not match a config with the following GVK": (
        "kustomize cannot set the replicas of a WorkerDeployment: add `configurations: [names.yaml]` with the"
        " file from examples/kustomize"
    ),
    "must specify --enable-helm": (
        "kustomize cannot run helm here: render the chart with --input Helm, or commit the output of"
        " `helm template`"
    ),
}
"""The remedy for each known error of kustomize, by a part of its message."""
_VALUES = "values-{}.yaml"
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: (\S[^\n]*)$", re.MULTILINE)
"""The comment in helm's output that names a document's template."""
_DOCUMENT_LINE = re.compile(rf"{RENDERED_BY}\w+, document \d+(?: \((.*?)\))?(?::\d+)?(?:: (.*))?", re.DOTALL)
_TEMPLATE = re.compile(r"(?<![^\s(\"])([^\s:()\"]+/templates/[^\s:()\"]+)(?::(\d+))?")
_OBJECT = re.compile(r"[A-Za-z0-9]+ [-A-Za-z0-9./:]+")
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


DIRECTORY, KUSTOMIZE, HELM = "Directory", "Kustomize", "Helm"
OPTIONAL = "?"
"""The prefix that marks a value file as optional."""
_NO_VALUE_FILE = re.compile(r"[/$?\s].*|.*/|.*://.*|")
"""Texts that cannot be the relative path of a value file."""


class NotRendered(InvalidInput):
    """kustomize or helm could not render a folder. The corresponding error for files is YamlError."""


class Input(NamedTuple):
    """Whether and how to render a folder. All fields except `kind` and `root` only apply to Helm."""

    kind: str = DIRECTORY
    release: str = ""
    value_files: tuple[str, ...] = ()
    values: str = ""
    namespace: str = ""
    kube_version: str = ""
    """The cluster's Kubernetes version, or empty for helm's default."""
    api_versions: tuple[str, ...] = ()
    """The cluster's API versions in addition to Kubernetes's built-in versions."""
    root: str = ""
    """The checkout whose files can be read. Empty means the folder's Git repository, or else the folder."""


def read_input(settings: Input, paths: Sequence[str], sources: Sources, *, ledgers: bool) -> Documents:
    """Read the documents under the paths. Raises InvalidInput if a path cannot be read or rendered.

    With `ledgers`, this includes the ledger next to each file, and for stdin, the working directory's ledger.
    """
    if settings.kind == DIRECTORY:
        nearby = [ledger_folder(path) for path in paths if ledgers and not is_folder(path)]
        return read_paths(
            [*dict.fromkeys((*paths, *(str(folder) for folder in nearby if folder.is_dir())))], sources
        )
    [folder] = paths if len(paths) == 1 and paths[0] != STDIN else [""]
    if folder and not os.path.exists(folder):
        raise InvalidInput(f"{folder}: no such file or folder")
    if not os.path.isdir(folder):
        raise InvalidInput(f"--input {settings.kind} renders one folder: give only that folder")
    rendered = _read_rendered(settings, os.path.realpath(folder), sources)
    ledger = ledger_folder(folder)
    if not ledger.is_dir() or not any(ledger.iterdir()):
        return rendered
    recorded = read_paths([str(ledger)], sources)
    return Documents((*rendered.documents, *recorded.documents), (*rendered.unreadable, *recorded.unreadable))


def _read_rendered(settings: Input, folder: str, sources: Sources) -> Documents:
    """Render the folder with this full path, and read the output. Raises InvalidInput if rendering fails."""
    program = settings.kind.lower()
    try:
        text = _rendered(settings, folder)
    except OSError as error:
        why = f"{program} cannot be run here ({error.strerror})"
        raise InvalidInput(f"{why}: check TMPDIR, and the limits of this process (`ulimit -a`)") from error
    documents: list[Document] = []
    budget = Budget()
    parts = (part for part in _SEPARATOR.split(text) if part.strip())
    for number, part in enumerate(parts, 1):
        template = _SOURCE.search(part)
        place = template[1] if template else ""
        content = part.lstrip("\n").encode()
        try:
            values = read_documents(content, budget)
        except InvalidInput as error:
            why = f":{error.line}: {error.message}" if isinstance(error, YamlError) else f": {error}"
            return Documents(tuple(documents), (f"{_source(program, number, place)}{why}",))
        source = _source(program, number, place, _object(values[0] if values else None))
        sources.keep(source, content)
        for at, value in enumerate(values):
            documents += without_lists(Document(source, at, value)) if value is not None else ()
    if not documents:
        raise NotRendered(f"{program} rendered no document")
    return Documents(tuple(documents), ())


def _source(program: str, number: int, *places: str) -> str:
    """The source of a rendered document for messages, with the document's template and object."""
    known = ", ".join(filter(None, places))
    return f"{RENDERED_BY}{program}, document {number}{f' ({known})' if known else ''}"


def _object(value: Any) -> str:
    """A document's kind and name, such as `WorkerDeployment shop/payments`, or empty without a valid name."""
    name, namespace = (value_at(value, "metadata", field) for field in ("name", "namespace"))
    if not is_marked(value) or not isinstance(name, str):
        return ""
    shown = f"{value['kind']} {namespace}/{name}" if namespace else f"{value['kind']} {name}"
    return shown if _OBJECT.fullmatch(shown) else ""


def in_file(settings: Input, folder: str, line: str) -> tuple[str, int, str]:
    """Find the file and line for a message about a rendered document or a failed render.

    Also returns the message without this location. The first part of a path in Helm's messages is the chart's
    name, not a folder.
    """
    match, number = _DOCUMENT_LINE.fullmatch(line), "1"
    known, why = match.groups() if match else (None, line)
    template = (known or "").partition(", ")[0]
    if not match and (at := _TEMPLATE.search(line)):
        template, number = at[1], at[2] or number
    if settings.kind == KUSTOMIZE:
        present = (name for name in _KUSTOMIZATIONS if Path(folder, name).is_file())
        name = next(present, _KUSTOMIZATIONS[0])
    else:
        name = "" if " " in template else template.partition("/")[2]
        name = name or CHART_FILE
    return os.path.normpath(f"{folder}/{name}"), int(number), why or ""


def _rendered(settings: Input, folder: str) -> str:
    import resource  # imported here, because most runs do not render
    import tempfile

    from twgen.clients.programs import program_on_path
    from twgen.reading import confined

    name = settings.kind.lower()
    program = program_on_path(name)
    if not program:
        raise InvalidInput(
            f"{name}, which --input {settings.kind} runs, is not on PATH: install it; in Argo CD, the"
            " component deploy/templating copies Argo CD's own program into the sidecar"
        )
    checkout = settings.root or repository_root(f"{folder}/.")
    root = os.path.realpath(checkout or folder)
    with tempfile.TemporaryDirectory(prefix="twgen-") as private:
        is_kustomize = settings.kind == KUSTOMIZE
        arguments = (
            ["build", folder]
            if is_kustomize
            else list(_of_helm(settings, folder, root, private, is_checkout=bool(checkout)))
        )
        command = [sys.executable, "-I", confined.__file__, root, private, os.path.realpath(program)]
        exit_status = _run([*command, *arguments], folder, private, name)
        output, complaint = Path(private, "output"), Path(private, "complaint")
        # if the program ran out of memory, the text after the first empty line contains only Go stack traces
        errors = complaint.read_bytes()[:_MOST_READ].decode(errors="replace").strip().partition("\n\n")[0]
        # kustomize prints warnings about deprecated fields before the error
        at = max(0, f"\n{errors}".find("\nError: "))
        errors = f"{errors[at:]} {errors[:at]}"[:_LONGEST_MESSAGE]
        message = (
            " ".join(errors.split()).replace(f"{private}/", "").replace(f"{root}/", "").replace(root, ".")
        )
        for at, name_of_file in enumerate(settings.value_files):
            message = message.replace(_VALUES.format(at), name_of_file)
        if exit_status == confined.CANNOT:
            raise InvalidInput(
                f"this system cannot isolate {name} ({message}): use Linux with Landlock and seccomp, or run"
                f" {name} yourself and pipe its output into `twgen render -`"
            )
        most = confined.at_most(resource.RLIMIT_FSIZE, confined.MOST_BYTES)
        if output.stat().st_size >= most:
            raise NotRendered(f"the output of {name} is larger than {_in_words(most)}: render fewer objects")
        if exit_status and any(sign in message for sign in _OUT_OF_MEMORY):
            limits = (resource.RLIMIT_DATA, resource.RLIMIT_AS)
            most = min(confined.at_most(limit, confined.MOST_MEMORY) for limit in limits)
            limited = f"it may use {_in_words(most)}"
            raise NotRendered(f"{name} ran out of memory ({limited}): render fewer objects")
        if exit_status:
            message = message or f"it exited with {exit_status}: out of time or memory"
            instead = next((text for sign, text in _INSTEAD.items() if is_kustomize and sign in message), "")
            raise NotRendered(f"{name} failed: {instead}{instead and '; '}{message}")
        try:
            return output.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise NotRendered(f"the output of {name} is not UTF-8 text") from error


def _in_words(size: int) -> str:
    return f"{size // 2**20} MiB" if size >= 2**20 else f"{size} bytes"


def _run(command: list[str], folder: str, private: str, name: str) -> int:
    """Run the command without twgen's environment variables, and return the exit status."""
    import subprocess

    variables = [f"{by}_{kind}_HOME" for by in ("XDG", "HELM") for kind in ("CONFIG", "CACHE", "DATA")]
    environment = {
        **dict.fromkeys(("PATH", "TMPDIR", "HOME", *variables), private),
        "HELM_PLUGINS": f"{private}/plugins",
        "GOMEMLIMIT": "512MiB",
        "LC_ALL": "C",
    }
    output, complaint = Path(private, "output"), Path(private, "complaint")
    with output.open("wb") as stdout, complaint.open("wb") as stderr:
        try:
            return subprocess.run(  # noqa: S603 - a full path, and all arguments are ours or checked
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                timeout=_MOST_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            why = f"{name} took longer than {_MOST_SECONDS:.0f}s"
            raise NotRendered(f"{why}: render fewer objects") from error


def _of_helm(settings: Input, folder: str, root: str, private: str, *, is_checkout: bool) -> Iterator[str]:
    allowed = "files of the checkout, with a path relative to the chart's folder, such as ../prod.yaml"
    only = f"use {allowed}; URLs, $ref, absolute paths and links out of the checkout are not allowed"
    if not is_checkout:
        only = "the chart is not in a Git repository, so twgen reads only files in its own folder"
    yield from ("template", "--include-crds")
    if settings.namespace:
        yield f"--namespace={settings.namespace}"
    if settings.kube_version:
        yield f"--kube-version={settings.kube_version}"
    yield from (f"--api-versions={version}" for version in settings.api_versions)
    size = len(os.fsencode(settings.values))
    for at, written in enumerate(settings.value_files):
        name = written.removeprefix(OPTIONAL)
        file = os.path.realpath(f"{folder}/{name}")
        if _NO_VALUE_FILE.fullmatch(name) or os.path.commonpath((root, file)) != root:
            raise InvalidInput(f"value-files: {quoted(written)} is not a file of the checkout: {only}")
        content = _value_file(name, file)
        size += len(content or b"")
        if size > DEFAULT.bytes:
            raise InvalidInput(f"value-files: more than {_in_words(DEFAULT.bytes)} in total: use fewer files")
        if content is None:
            if os.path.lexists(f"{folder}/{name}"):
                raise InvalidInput(f"value-files: {quoted(name)} is a folder or a broken link: name a file")
            if written != name:
                continue
            raise InvalidInput(f"value-files: there is no file {quoted(name)} in the chart's folder")
        # the file is copied to a safe name, because helm splits the argument at commas and downloads from
        # anything that looks like a URL
        Path(private, _VALUES.format(at)).write_bytes(content)
        yield f"--values={private}/{_VALUES.format(at)}"
    if settings.values:
        # the file has the option's name, because helm's errors contain the file's name
        Path(private, "--values").write_bytes(os.fsencode(settings.values))
        yield f"--values={private}/--values"
    yield from ("--", settings.release or "release-name", folder)


def _value_file(name: str, file: str) -> bytes | None:
    """The content of a value file, or None if the file does not exist."""
    try:
        if not Path(file).is_file():
            return None
        with Path(file).open("rb") as opened:
            content = opened.read(DEFAULT.text_bytes + 1)
    except OSError as error:
        raise InvalidInput(f"value-files: cannot read {quoted(name)}: {error.strerror}") from error
    if len(content) > DEFAULT.text_bytes:
        raise InvalidInput(f"value-files: {quoted(name)} is longer than {_in_words(DEFAULT.text_bytes)}")
    return content
