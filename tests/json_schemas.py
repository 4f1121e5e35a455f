"""What the published schemas find wrong with documents, as editors and CI would see it."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry, Resource

from twgen.model.paths import join_path
from twgen.model.problem import Document, Problem
from twgen.specs import kinds

FOLDER = Path(__file__).parents[1] / "schemas"
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
"""By the names of their files."""
REGISTRY = Registry().with_resources(
    (schema.get("$id", f"{name}.json"), Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
_LONGEST_MATCHED = 10_000


def schema_problems(documents: Iterable[Document]) -> Iterator[Problem]:
    """One problem for each error; a missing field is at the place where it should be."""
    for document in documents:
        if kind := kinds.kind_of(document.value):
            for error in _validator(kind.name).iter_errors(document.value):
                deepest = best_match([error]) or error
                path = join_path("", *deepest.absolute_path)
                rule = deepest.validator_value
                if deepest.validator == "required":
                    missing = next(name for name in rule if name not in deepest.instance)
                    path = join_path(path, missing)
                elif deepest.validator == "anyOf" and all("required" in branch for branch in rule):
                    # the spellings of one field, today's first
                    path = join_path(path, rule[0]["required"][0])
                elif deepest.validator == "additionalProperties":
                    extra = next(
                        name for name in deepest.instance if name not in deepest.schema["properties"]
                    )
                    path = join_path(path, extra)
                yield Problem.at(document, path, deepest.message)


def fits_schema(document: Any) -> bool:
    """Whether no problem is found; the search ends at the first."""
    return bool(_validator(document["kind"]).is_valid(document))


@cache
def _validator(kind: str) -> Any:
    described = kinds.CONNECTION if kind == kinds.CLUSTER_CONNECTION else kind
    bounded: Any = validators.extend(Draft202012Validator, {"pattern": _pattern})
    schema = {name: value for name, value in SCHEMAS[described.lower()].items() if name != "$schema"}
    return bounded(schema, registry=REGISTRY)


def _pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[ValidationError]:
    """As jsonschema's own, which takes gigabytes for a long text."""
    if isinstance(value, str) and len(value) <= _LONGEST_MATCHED and not re.search(wanted, value):
        yield ValidationError("does not match the pattern")
