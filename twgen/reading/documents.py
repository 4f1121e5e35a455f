"""Reads documents, twgen's own records and the operator's configuration from files, folders and stdin.

It also finds each problem's line number.
"""

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twgen.errors import InvalidDocuments, InvalidInput, StateUnavailable
from twgen.model.operator import Operator
from twgen.model.paths import parse_path, value_at
from twgen.model.problem import (
    MOST_REPORTED_IN_ALL,
    Document,
    DocumentPath,
    Finding,
    Problem,
    quoted,
    shortened,
)
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.sentences import listed
from twgen.reporting.problems import Located, problem_lines
from twgen.specs.kinds import (
    CHART_FILE,
    LEDGER_FOLDER,
    OPERATOR_CONFIG,
    chart_of,
    is_file,
    is_in_ledger,
    render_first,
    template_of_helm,
    without_lists,
)
from twgen.yaml.reader import read_documents
from twgen.yaml.source import DEFAULT, WORLD, Budget, Limits, YamlError

if TYPE_CHECKING:
    from twgen.records.ledger import LedgerPlace

STDIN = "-"
_IN_THE_WAY = "{} is a link or not a folder: move it away, because the ledger is a folder of this name"
_CONFLICT_MARKER = re.compile(rb"^(?:[<>|]{7} |={7}\r?$)", re.MULTILINE)
SUFFIXES = (".yaml", ".yml", ".json")


class Sources:
    """Reads files that contain documents. Stdin and pipes can be read only once, so their content is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def keep(self, source: str, content: bytes) -> None:
        """Remember the content of a source that is not a file."""
        self._kept[source] = content

    def text(self, source: str, most: int = DEFAULT.text_bytes) -> bytes:
        """Read a file or stdin, but at most `most` + 1 bytes, so that the caller can detect oversized input.

        Raises InvalidInput if the source cannot be read.
        """
        if source in self._kept:
            return self._kept[source]
        is_stdin = source == STDIN
        try:
            with open(0 if is_stdin else source, "rb", closefd=not is_stdin) as file:
                status = os.fstat(file.fileno())
                size = min(status.st_size, most) + 1  # Python allocates a buffer of this size
                content = file.read(size)
                if len(content) == size:  # there is more: the file has grown, or is a pipe
                    content += file.read(most + 1 - size)
                if is_stdin or not stat.S_ISREG(status.st_mode):  # a second read would return nothing
                    self._kept[source] = content
                return content
        except OSError as error:
            reason = "stdin is closed" if error.errno == errno.EBADF else error.strerror
            raise InvalidInput(f"cannot read {'stdin' if is_stdin else source}: {reason}") from error


class Documents(NamedTuple):
    """The documents in all files, and a message for each file or folder that was not read completely."""

    documents: tuple[Document, ...]
    unreadable: tuple[str, ...]


def read_paths(paths: Iterable[str], sources: Sources, *, may_be_empty: bool = False) -> Documents:
    """Read all documents under the paths, in order.

    If there are no documents, it raises InvalidInput, unless `may_be_empty` is set.

    Folders are read recursively, without hidden entries. `-` means stdin. A file under several paths is read
    once. The result's `unreadable` reports entries that cannot be read, and paths without a document.
    """
    paths = tuple(paths)
    read = _Read(sources)
    # a new ledger may still be empty
    empty = {_place(path): path for path in paths if os.path.basename(path) != LEDGER_FOLDER}
    places: set[str] = set()
    for path in paths:
        for file, place in _below(path, read.unreadable) if is_folder(path) else [(path, _place(path))]:
            if place in places:
                continue
            places.add(place)
            if read.add(file):
                empty = {other: name for other, name in empty.items() if other not in {place, _place(path)}}
            elif is_in_ledger(file):
                read.unreadable.append(f"{file} is empty: restore it from Git, or remove it")
            if read.budget.is_spent:
                return Documents(tuple(read.documents), tuple(read.unreadable))
    if not read.documents and not read.unreadable and not may_be_empty:
        raise InvalidInput(f"no document found in {' '.join(paths)}: give the folder of your specs")
    silent = (path for path in empty.values() if not any(line.startswith(path) for line in read.unreadable))
    missing = (f"no document found in {path}: correct the path, or leave it out" for path in silent)
    return Documents(tuple(read.documents), (*read.unreadable, *missing))


@dataclass(eq=False, repr=False)
class _Read:
    """Collects the documents while files are read."""

    sources: Sources
    documents: list[Document] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    _charts: set[PurePath] = field(default_factory=set)
    """Charts for which `unreadable` already contains a message. Each chart gets only one message."""

    def add(self, file: str) -> bool:
        """Read a file, and return whether it contained anything."""
        text, number = b"", len(self.documents)
        try:
            text = self.sources.text(file)
            for at, value in enumerate(read_documents(text, self.budget)):
                self.documents += without_lists(Document(file, at, value)) if value is not None else ()
                self._refuse_too_many(file)
        except YamlError as error:
            run_first = template_of_helm(file, text)
            if not run_first or chart_of(file) not in self._charts:
                self.unreadable.append(why_unreadable(file, text, error, run_first))
            self._charts |= {chart_of(file)} if run_first else set()
            return True
        except InvalidInput as error:
            self.unreadable.append(str(error))
            return True
        if file.endswith(CHART_FILE) and any(map(render_first, self.documents[number:])):
            self._charts.add(chart_of(file))
        return len(self.documents) > number

    def _refuse_too_many(self, file: str) -> None:
        """Raise InvalidInput if there are too many documents, including the items in Lists."""
        most = self.budget.limits.documents
        if len(self.documents) > most:
            del self.documents[most:]
            raise InvalidInput(f"{file}: {self.budget.spent(f'{most} documents')}")


def ledger_folder(path: str) -> Path:
    """The ledger folder for a path: inside the path if it is a folder, or next to it if it is a file.

    Raises InvalidInput if something other than a folder has that name.
    """
    place = Path(path)
    folder = (place if path != STDIN and is_folder(path) else place.parent) / LEDGER_FOLDER
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise InvalidInput(_IN_THE_WAY.format(folder))
    except FileNotFoundError:
        return folder
    except OSError as error:
        raise InvalidInput(f"cannot read {folder}: {error.strerror}") from error
    return folder


def why_unreadable(source: str, content: bytes, error: YamlError, instead: str = "") -> str:
    """A message of the form `file:line: problem` about a file that is not valid YAML.

    If the file contains merge conflict markers, the message reports them. Otherwise, the message contains
    `instead`, or the error if `instead` is empty.
    """
    if marker := _CONFLICT_MARKER.search(content):
        line = content.count(b"\n", 0, marker.start()) + 1
        resolve = "resolve them"
        if is_in_ledger(source):
            from shlex import quote

            file = quote(source)
            resolve = (
                f"remove the markers to keep the versions of both sides, or keep one side with `git checkout"
                f" --ours {file}` or `--theirs`; then run `twgen lock`"
            )
        return f"{source}:{line}: the file contains merge conflict markers: {resolve}"
    place = f"{source}:{error.line}" if error.line else source
    return f"{place}: {instead or error.message}"


def repository_root(file: str) -> Path | None:
    """The root folder of the Git repository that contains a file.

    The root must contain `.git`. Git itself also accepts folders with the layout of a bare repository, but a
    commit could add such a folder.
    """
    folder = Path(os.path.realpath(file)).parent
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def is_folder(path: str) -> bool:
    """Whether the path is a folder. Raises InvalidInput if the path does not exist."""
    if path == STDIN:
        return False
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput(f"{path or repr(path)}: no such file or folder") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error


def _place(path: str) -> str:
    try:
        return path if path == STDIN else os.path.realpath(path)
    except OSError as error:  # for example, the working directory was removed
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error


def _below(folder: str, unreadable: list[str]) -> Iterator[tuple[str, str]]:
    """The name and the real path of each document file below a folder."""
    root = _place(folder)
    # a loop instead of recursion, because folders can be nested deeper than Python's recursion limit
    ahead = [(folder, root, True)]
    while ahead:
        name, place, is_folder = ahead.pop()
        if is_folder:
            ahead += reversed(list(_entries(name, place, root, unreadable)))
        else:
            yield name, place


def _entries(folder: str, place: str, root: str, unreadable: list[str]) -> Iterator[tuple[str, str, bool]]:
    """The document files and folders in a folder, sorted, as (name, real path, whether it is a folder)."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(
                (entry for entry in listing if entry.name[0] != "."), key=lambda entry: entry.name
            )
    except OSError as error:
        unreadable.append(f"cannot read {folder}: {error.strerror}")
        return
    for entry in entries:
        name = entry.name if folder == "." else os.path.join(folder, entry.name)
        is_link = entry.is_symlink()
        is_document = entry.name.lower().endswith(SUFFIXES)
        if entry.name == LEDGER_FOLDER and (is_link or not entry.is_dir()):
            unreadable.append(_IN_THE_WAY.format(name))
            continue
        if is_link and (why := _why_not_followed(name, root)):
            unreadable.append(f"{name} is a link {why}")
            continue
        target = os.path.realpath(name) if is_link else os.path.join(place, entry.name)
        if entry.is_dir():
            if not is_link:  # a linked folder is inside the same root, so it is read under its real path
                yield name, target, True
        elif is_document and entry.is_file():
            yield name, target, False
        elif is_document:
            unreadable.append(f"{name} is not a file or folder: remove it, or pass it as a separate PATH")


def _why_not_followed(link: str, root: str) -> str:
    try:
        target = os.path.realpath(link)
    except OSError as error:
        return f"that cannot be followed: {error.strerror}"
    if not os.path.exists(target):
        return "to a file that does not exist: fix or remove it"
    is_inside = os.path.commonpath((root, target)) == root
    return "" if is_inside else "out of the folder: twgen reads only files inside the folder"


def located(
    problems: Iterable[Problem], sources: Sources, most: int = DEFAULT.text_bytes
) -> tuple[Located, ...]:
    """Find the line of each problem, and sort the problems by line within each file.

    Lines are counted from 1. None means that the problem has no line. If a problem refers to a second
    location, the message ends with that location: `the other is at pay.yaml:14`. If there are too many
    problems, the result contains only the first problems and a note that there are more.
    """
    problems = tuple(shortened(tuple(problems), MOST_REPORTED_IN_ALL))
    places: dict[str, set[tuple[int, str]]] = {}
    for item in problems:
        for place in (item, item.other):
            if place:
                places.setdefault(place.document.source, set()).add((place.document.index, place.path))
    lines: dict[tuple[str, int, str], int | None] = {}
    for source, targets in places.items():
        from twgen.yaml.events import lines_of  # imported here, because most runs find no problem

        steps = [(index, *parse_path(path)) for index, path in targets]
        numbers = lines_of(sources.text(source, most), steps)
        lines |= {(source, *at): line for at, line in zip(targets, numbers, strict=True)}

    def line(place: Problem | DocumentPath) -> int | None:
        return lines[place.document.source, place.document.index, place.path]

    by_file: dict[str, list[Located]] = {}
    for item in problems:
        problem = item
        if item.other:
            at = ":".join(str(part) for part in (item.other.document.source, line(item.other)) if part)
            problem = item._replace(message=f"{item.message} {at}", other=None)
        by_file.setdefault(item.document.source, []).append(Located(problem, line(item)))
    return tuple(
        item for items in by_file.values() for item in sorted(items, key=lambda item: item.line or 0)
    )


Record = TypeVar("Record")

_FROM_FORM = (
    ", and this one contains it under operator.yaml: give only that text, as `kubectl get configmap -n argocd"
    " twgen-operator -o jsonpath='{.data.operator\\.yaml}'` prints it"
)
_SNAPSHOT_LIMITS = replace(WORLD, remedy="take a snapshot of fewer workers")


def read_snapshot_file(path: str, sources: Sources) -> World:
    """Read a snapshot file. If it has problems, raise StateUnavailable with the first problem."""
    from twgen.records.snapshot import parse_snapshot

    try:
        world = _read_record(
            path, sources, _SNAPSHOT_LIMITS, parse_snapshot, "Snapshot, as `twgen snapshot` prints it"
        )
        return replace(world, is_recorded=True)
    except InvalidDocuments as error:
        first, *others = error.problems
        more = f" (and {len(others)} more problem{'s' if len(others) > 1 else ''})" if others else ""
        raise StateUnavailable(first + more) from error
    except InvalidInput as error:
        raise StateUnavailable(str(error)) from error


def read_operator_file(path: str, sources: Sources) -> Operator:
    """Read the operator's configuration. Raises InvalidDocuments with all problems."""
    from twgen.records.operator_config import parse_operator
    from twgen.specs.manifests import refusals_of_pod

    def parse(value: Any) -> tuple[Operator | None, list[Finding]]:
        operator, findings = parse_operator(value)
        operator = operator and replace(operator, file=path)
        return operator, findings or (refusals_of_pod(operator) if operator else [])

    return _read_record(path, sources, DEFAULT, parse, OPERATOR_CONFIG)


def read_ledgers(documents: Sequence[Document], sources: Sources) -> Mapping[tuple[str, str], "LedgerPlace"]:
    """The entries of Ledger documents, by worker and build ID. Raises InvalidDocuments with all problems."""
    from twgen.records.ledger import parse_ledgers

    places, problems = parse_ledgers(documents)
    if problems:
        raise InvalidDocuments(problem_lines(located(problems, sources)))
    return places


def _read_record(
    path: str,
    sources: Sources,
    limits: Limits,
    parse: Callable[[Any], tuple[Record | None, list[Finding]]],
    expected: str,
) -> Record:
    content = sources.text(path, limits.text_bytes)
    try:
        documents = read_documents(content, Budget(limits))
    except YamlError as error:
        raise InvalidDocuments([why_unreadable(path, content, error)]) from error
    indexed = [(index, document) for index, document in enumerate(documents) if document is not None]
    kind_values = (value_at(document, "kind") for _, document in indexed)
    kinds = Counter(quoted(kind) if isinstance(kind, str) else "(none)" for kind in kind_values)
    if len(indexed) != 1 or quoted(expected.partition(",")[0]) not in kinds:
        contents = (
            " and ".join(f"{count} of kind {kind}" for kind, count in kinds.most_common(3)) or "no document"
        )
        in_form = any(isinstance(value_at(document, "data", "operator.yaml"), str) for _, document in indexed)
        remedy = _FROM_FORM if in_form and expected == OPERATOR_CONFIG else ""
        raise InvalidDocuments([f"{path} contains {contents}: it must contain one {expected}{remedy}"])
    [(index, value)] = indexed
    record, findings = parse(value)
    if record is None or findings:
        document = Document(path, index, value)
        problems = [
            Problem.at(document, finding.path, finding.message) for finding in dict.fromkeys(findings)
        ]
        raise InvalidDocuments(problem_lines(located(problems, sources, limits.text_bytes)))
    return record


def ledger_files(
    specs: Iterable[WorkerSpec], recorded: "Iterable[LedgerPlace]", folder: Path
) -> tuple[Mapping[str, Path], list[str]]:
    """The ledger file for each worker, and a warning for each worker that is recorded in several files.

    A worker that is already recorded keeps its file. A new worker gets a file in the ledger next to its spec,
    because commands that read the spec also read that ledger. `folder` is the ledger for specs that do not
    come from files.
    """
    files: dict[str, dict[str, None]] = {}
    for place in recorded:
        files.setdefault(place.entry.worker, {}).update(dict.fromkeys(filter(_is_kept, place.sources)))
    by_worker, warnings = dict[str, Path](), list[str]()
    for spec in specs:
        worker, source = spec.worker_deployment, spec.document.source
        ledger = ledger_folder(source) if _is_kept(source) else folder
        name = f"{worker.replace('/', '.')}.yaml"
        nearness = {file: _nearness(file, ledger) for file in files.get(worker, ())}
        file = max(nearness, key=lambda file: (nearness[file], PurePath(file).name == name), default="")
        by_worker[worker] = Path(file) if file else ledger / name
        if other_files := [other for other in nearness if nearness[other] < nearness[file]]:
            warnings.append(
                f"{worker} is also recorded in {listed(other_files)}: new versions go to {file}, which is"
                " nearer to its spec; move all lines there, and remove"
                f" {'it' if len(other_files) == 1 else 'them'}"
            )
    return by_worker, warnings


def _is_kept(source: str) -> bool:
    """Whether the source is a regular file, not stdin or a process substitution (`<(...)`)."""
    return is_file(source) and Path(source).is_file()


def _nearness(file: str, ledger: Path) -> int:
    """The number of parent folders that a ledger file has in common with the spec's ledger folder."""
    folder = PurePath(file).parent
    home = folder.parent if folder.name == LEDGER_FOLDER else folder
    common = os.path.commonpath((os.path.abspath(home), os.path.abspath(ledger.parent)))  # keeps links
    return len(PurePath(common).parts)
