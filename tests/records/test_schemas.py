"""Each record and its JSON Schema say the same: field by field, and by property over broken documents."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.broken_documents import mutations
from tests.json_schemas import FOLDER, REGISTRY, SCHEMAS
from tests.schemas.documents import LEDGER as A_LEDGER
from tests.schemas.documents import OPERATOR as AN_OPERATOR
from tests.schemas.documents import SNAPSHOT as A_SNAPSHOT
from tests.strategies import worlds
from tools.schemas import DOCUMENTS, SPECS, schema_text
from twgen.cluster.deployments import DEPLOYMENT
from twgen.model.problem import Document
from twgen.model.world import World
from twgen.records.ledger import parse_ledgers
from twgen.records.operator_config import parse_operator
from twgen.records.snapshot import parse_snapshot, write_snapshot
from twgen.specs.manifests import refusals_of_pod
from twgen.yaml.reader import read_documents
from twgen.yaml.scalars import NotAScalar
from twgen.yaml.writer import write_documents

FOR_PEOPLE = {"$schema", "$id", "title", "description", "examples"}
Parse = Callable[[Any], list[Any]]


def operator_problems(value: Any) -> list[Any]:
    """What is wrong with an operator's file, words included that only the check of its Pods knows."""
    operator, problems = parse_operator(value)
    words = (
        [item for item in refusals_of_pod(operator) if "is not one of" in item.message] if operator else []
    )
    return problems or words


RECORDS: dict[str, tuple[dict[str, Any], Parse]] = {
    "snapshot": (A_SNAPSHOT, lambda value: parse_snapshot(value)[1]),
    "ledger": (A_LEDGER, lambda value: parse_ledgers([Document("", 0, value)])[1]),
    "operatorconfig": (AN_OPERATOR, operator_problems),
}
ONLY_PARSERS_KNOW = (
    "appears twice",
    "different Deployments",
    "own build ID",
    "changed by hand",
    "restore the entry",
    "is not a field of a pod template",
)


def without_words(schema: Any) -> Any:
    """The schema less what it says to people; the names of properties are no words."""
    if isinstance(schema, list):
        return [without_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_words(item) for name, item in value.items()}
        if key == "properties"
        else without_words(value)
        for key, value in schema.items()
        if key not in FOR_PEOPLE
    }


@pytest.mark.parametrize("name", [*DOCUMENTS, *SPECS])
def test_schema_is_written_as_its_classes_declare_it(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == schema_text(name)


def test_schema_of_a_deployment_has_every_field_that_is_read_and_no_other() -> None:
    assert without_words(SCHEMAS["deployment"]) == DEPLOYMENT.schema


def is_valid(name: str, document: Any) -> bool:
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY).is_valid(document)


@given(worlds())
def test_every_snapshot_that_is_written_is_valid(found: World) -> None:
    assert is_valid("snapshot", write_snapshot(found))


@pytest.mark.parametrize("name", RECORDS)
def test_whole_record_is_valid_and_read(name: str) -> None:
    document, parse = RECORDS[name]
    assert is_valid(name, document)
    assert parse(document) == []


def as_read(document: Any) -> Any:
    """The value as our reader gives it, which is all that a parser ever sees."""
    try:
        [found] = read_documents(write_documents([document]))
    except (NotAScalar, ValueError):
        return None
    return found


@pytest.mark.parametrize("name", RECORDS)
@given(data=st.data())
def test_parser_and_schema_refuse_the_same_documents(name: str, data: st.DataObject) -> None:
    document, parse = RECORDS[name]
    value = as_read(data.draw(mutations(document)))
    problems = [problem.message for problem in parse(value)]
    assume(not any(told in message for message in problems for told in ONLY_PARSERS_KNOW))
    assert is_valid(name, value) is not bool(problems), problems
