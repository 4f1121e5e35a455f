"""Reading the records of twgen and its operator: snapshots, ledgers and their files, configuration."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from twgen.errors import InvalidDocuments, InvalidInput, StateUnavailable
from twgen.model.operator import Operator
from twgen.model.paths import value_at
from twgen.model.problem import Document, Finding, Problem, quoted
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.sentences import listed
from twgen.reading.documents import Sources, ledger_folder, located, why_unreadable
from twgen.reporting.problems import problem_lines
from twgen.specs.kinds import LEDGER_FOLDER, OPERATOR_CONFIG, is_file
from twgen.yaml.reader import read_documents
from twgen.yaml.source import DEFAULT, WORLD, Budget, Limits, YamlError

if TYPE_CHECKING:
    from twgen.records.ledger import LedgerPlace

Record = TypeVar("Record")

_FROM_FORM = (
    ", and this one contains it under operator.yaml: give only that text, as `kubectl get configmap -n argocd"
    " twgen-operator -o jsonpath='{.data.operator\\.yaml}'` prints it"
)
_SNAPSHOT_LIMITS = replace(WORLD, remedy="take the snapshot of fewer workers")


def read_snapshot_file(path: str, sources: Sources) -> World:
    """The world of a snapshot file; raises StateUnavailable with its first problem."""
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
    """The operator's configuration; raises InvalidDocuments with all its problems."""
    from twgen.records.operator_config import parse_operator
    from twgen.specs.manifests import refusals_of_pod

    def parse(value: Any) -> tuple[Operator | None, list[Finding]]:
        operator, findings = parse_operator(value)
        operator = operator and replace(operator, file=path)
        return operator, findings or (refusals_of_pod(operator) if operator else [])

    return _read_record(path, sources, DEFAULT, parse, OPERATOR_CONFIG)


def read_ledgers(documents: Sequence[Document], sources: Sources) -> Mapping[tuple[str, str], "LedgerPlace"]:
    """The entries of Ledger documents by worker and build ID; raises InvalidDocuments."""
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
    """The file that records each worker, and a line for each worker that another ledger records too.

    `folder` is the ledger of specs that are not in a file.
    A worker stays in the file that has it. A new one gets a file in the ledger next to its spec: a command
    that reads the spec, from a folder or as a file, reads that ledger too.
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
                f"{worker} is recorded in {listed(other_files)} too: new versions go to {file}, which is"
                " nearer to its spec; move all lines there, and remove"
                f" {'it' if len(other_files) == 1 else 'them'}"
            )
    return by_worker, warnings


def _is_kept(source: str) -> bool:
    """A ledger can be written there or next to it: it is neither stdin nor a shell's pipe (`<(...)`)."""
    return is_file(source) and Path(source).is_file()


def _nearness(file: str, ledger: Path) -> int:
    """How many folders, from the root, a ledger file shares with its spec; the most: no file is nearer."""
    folder = PurePath(file).parent
    home = folder.parent if folder.name == LEDGER_FOLDER else folder
    common = os.path.commonpath((os.path.abspath(home), os.path.abspath(ledger.parent)))  # noqa: PTH100 - links stay
    return len(PurePath(common).parts)
