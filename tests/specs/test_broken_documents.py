"""Documents broken at random: a mistake ends in a message, at one place, by parser and schema alike."""

import copy
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.broken_documents import places
from tests.json_schemas import schema_problems
from tests.schemas.documents import ATTACHED, CONNECTION, POLICY, WORKER, WORKER_OF_TODAY
from tests.strategies import NOW
from twgen.model.operator import Caller
from twgen.model.paths import parse_path
from twgen.model.problem import Document, Problem
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import plan_versions
from twgen.rendering.manifests import render_manifests
from twgen.reporting.problems import problem_lines
from twgen.specs.kinds import without_lists
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

WHOLE = (CONNECTION, WORKER, WORKER_OF_TODAY, ATTACHED, POLICY)
ANYTHING = st.sampled_from(
    (None, True, False, 0, -1, 7, 64, 2**31, 2**63, -(2**63), 0.5, 99.5, 1e300, "", " ", "a", "a\n", "\n",
     [], {}, [None], [{}], [[]], [7], {"a": None}, {"": {}}, {"a.b['c']": [1]}, ["x", "x"],
     "null", "0", "1d", "-1s", "99999999h", "{{ .Values.x }}", "a.b", "A_b", "-", "..",
     "x" * 64, "x" * 300, "x" * 1001, "\u00fc", "\u202e", "\x00", "\U0001f600",
     "Progressive", "Git", "host:0", "[::1]:7233", "temporal:70000", "Connection", "v1")
)  # fmt: skip
BEYOND_A_SCHEMA = re.compile(
    r"is not above|is shorter than 30s|there is no (?:Connection|worker)|is too long: at most"
    r"|cannot be attached|is not read: "
    r"|contains a variable|is not an image: "
    r"|must point at each|must refer to each|are filled in|is generated for each"
    r"|twgen sets |twgen adds |taskQueue sets "
    r"|keep one; the other is at|invisible character|must not be 0 if|is above max \("
    r"|must not be shorter than in the entry above"
)
"""Rules that no schema can say, and those of attached templates, which their schema leaves to the parser."""


OUR_WORDS = ("temporal.io/v1alpha1", "temporal.io", "twgen.io/v1", "List", "Connection", "Ledger")


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A document with up to three places removed, retyped, renamed, nested or doubled."""
    document: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(1, 3))):
        # what a document is, is another test's
        found = [path for path in places(document) if path[0] not in {"apiVersion", "kind"}]
        if not found:
            break
        *above, last = draw(st.sampled_from(found))
        owner: Any = document
        for key in above:
            owner = owner[key]
        item = owner.pop(last)
        match draw(st.sampled_from(("remove", "retype", "rename", "nest", "double"))):
            case "retype":
                _put(owner, last, copy.deepcopy(draw(ANYTHING)))
            case "rename":
                _put(owner, draw(st.sampled_from((f"{last}s", f"{last}.x", "spec", ""))), item)
            case "nest":
                _put(owner, last, draw(st.sampled_from(([item], {str(last): item}, {"": item}))))
            case "double":
                _put(owner, last, [item, copy.deepcopy(item)])
    return document


def _put(owner: Any, key: Any, item: Any) -> None:
    if isinstance(owner, list):
        owner.insert(key if isinstance(key, int) else 0, item)
    else:
        owner[key] = item


def parsed(document: dict[str, Any]) -> tuple[Document, Specs]:
    others = [other for other in WHOLE if other["kind"] != document["kind"]]
    documents = [Document("a.yaml", index, value) for index, value in enumerate((document, *others))]
    return documents[0], parse_specs(documents, NamespaceRule("d"))


def of(document: Document, problems: tuple[Problem, ...]) -> list[Problem]:
    return [problem for problem in problems if problem.document is document]


@given(broken())
def test_broken_document_is_refused_by_parser_and_schema_alike(value: dict[str, Any]) -> None:
    document, specs = parsed(value)
    ours = of(document, specs.problems)
    # a value that an API server would refuse of a Pod is told by both, and is no problem of the spec
    refused = {problem.path for problem in of(document, specs.unknown_fields)}
    theirs = [problem for problem in schema_problems([document]) if problem.path not in refused]
    beyond = [problem for problem in ours if BEYOND_A_SCHEMA.search(problem.message)]
    assert bool(ours) == bool(theirs) or (beyond and len(beyond) == len(ours)), (ours, theirs)


@given(broken())
def test_no_place_of_a_broken_document_is_told_twice(value: dict[str, Any]) -> None:
    document, specs = parsed(value)
    problems = of(document, specs.problems)
    told = [problem.path for problem in (*problems, *of(document, specs.unknown_fields))]
    assert len(set(told)) == len(told)
    # what is wrong below a place that has a problem follows from it
    paths = [parse_path(problem.path) for problem in problems]
    assert not any(longer[: len(path)] == path for path in paths for longer in paths if longer != path), told


@given(broken())
def test_message_about_a_broken_document_is_one_line_for_people(value: dict[str, Any]) -> None:
    _document, specs = parsed(value)
    told = [*specs.problems, *specs.unknown_fields, *specs.warnings]
    for line in problem_lines([(problem, 1) for problem in told]):
        assert line.isprintable()
        # None is also a value of some fields
        text = re.sub("(?:Tick, |Render, |write )None", "", line)
        assert not re.search(r"\bNone\b|\bdict\b|<class|Error\(", text), line
        assert len(line) < 1000


@given(broken())
def test_mistake_in_one_document_is_not_told_of_another(value: dict[str, Any]) -> None:
    document, specs = parsed(value)
    told = [
        problem
        for problem in specs.problems
        if problem.document is not document and not problem.message.startswith("has no effect: strategy")
    ]
    named_well = not any(problem.path.startswith("metadata") for problem in of(document, specs.problems))
    if value["kind"] == "Connection" and named_well and value["metadata"] != CONNECTION["metadata"]:
        told = [problem for problem in told if "there is no Connection" not in problem.message]
    if value["kind"] == "WorkerDeployment" and named_well and value["metadata"] != WORKER["metadata"]:
        told = [problem for problem in told if "there is no worker" not in problem.message]
    assert told == []


@given(broken())
def test_document_that_is_accepted_is_rendered(value: dict[str, Any]) -> None:
    _, specs = parsed(value)
    if specs.problems or not specs.workers:
        return
    world = World(NOW, {spec.key: WorkerWorld(*spec.key, None, ()) for spec in specs.workers})
    caller = Caller("me", forced=True)
    plan = plan_versions(specs.workers, world, NOW, caller)
    text = write_documents(render_manifests(plan.workers, specs.passthrough, caller.of))
    assert len(read_documents(text)) >= 1


@given(
    st.dictionaries(
        st.sampled_from(("apiVersion", "kind", "apiversion", "kinds", "metadata", "items", "spec")),
        ANYTHING | st.sampled_from(OUR_WORDS),
    )
)
def test_whatever_a_document_says_it_is_none_of_our_groups_reaches_a_cluster(value: dict[str, Any]) -> None:
    documents = list(without_lists(Document("a.yaml", 0, value)))
    for document in parse_specs(documents, NamespaceRule("d")).passthrough:
        group = document.value["apiVersion"].partition("/")[0]
        assert group not in {"temporal.io", "twgen.io"}
