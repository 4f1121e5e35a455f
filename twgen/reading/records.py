"""Reading what twgen or its operator recorded: snapshots, ledgers, and the operator's configuration."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from twgen.errors import InvalidDocuments, InvalidInput, StateUnavailable
from twgen.model.operator import Operator
from twgen.model.paths import value_at
from twgen.model.problem import Document, Finding, Problem, quoted
from twgen.model.world import World
from twgen.reading.documents import Sources, why_unreadable
from twgen.reading.places import located
from twgen.reporting.problems import problem_lines
from twgen.yaml.limits import DEFAULT, WORLD, Budget, Limits
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError

if TYPE_CHECKING:
    from twgen.records.ledger import LedgerPlace

Record = TypeVar("Record")

_OPERATOR = "OperatorConfig"
_FROM_FORM = (
    ", and this one contains it under operator.yaml: give only that text, as `kubectl get configmap -n argocd"
    " twgen-operator -o jsonpath='{.data.operator\\.yaml}'` prints it"
)
_SNAPSHOT_LIMITS = replace(WORLD, remedy="take the snapshot of fewer workers")


def read_snapshot_file(path: str, sources: Sources) -> World:
    """The world of a snapshot file; raises StateUnavailable with the first thing that is wrong with it."""
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
    """The operator's configuration; raises InvalidDocuments with all that is wrong with it."""
    from twgen.records.operator_config import parse_operator
    from twgen.specs.rollout_pods import refusals_of_pod

    def parse(value: Any) -> tuple[Operator | None, list[Finding]]:
        operator, findings = parse_operator(value)
        operator = operator and replace(operator, file=path)
        return operator, findings or (refusals_of_pod(operator) if operator else [])

    return _read_record(path, sources, DEFAULT, parse, _OPERATOR)


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
    found = [(index, document) for index, document in enumerate(documents) if document is not None]
    named = (value_at(document, "kind") for _, document in found)
    kinds = Counter(quoted(kind) if isinstance(kind, str) else "(none)" for kind in named)
    if len(found) != 1 or quoted(expected.partition(",")[0]) not in kinds:
        held = (
            " and ".join(f"{count} of kind {kind}" for kind, count in kinds.most_common(3)) or "no document"
        )
        in_form = any(isinstance(value_at(document, "data", "operator.yaml"), str) for _, document in found)
        what_to_do = _FROM_FORM if in_form and expected == _OPERATOR else ""
        raise InvalidDocuments([f"{path} contains {held}: it must contain one {expected}{what_to_do}"])
    [(index, value)] = found
    record, findings = parse(value)
    if record is None or findings:
        document = Document(path, index, value)
        problems = [
            Problem.at(document, finding.path, finding.message) for finding in dict.fromkeys(findings)
        ]
        raise InvalidDocuments(problem_lines(located(problems, sources, limits.text_bytes)))
    return record
