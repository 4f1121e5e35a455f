"""The JSON Schemas of the kinds, and what they find wrong with documents."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twgen.model.paths import join_path, parse_path
from twgen.model.problem import MOST_TOLD, Document, Problem, most_told, noun, unknown_field, wrong_type
from twgen.specs import kinds

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_LONGEST = 80
"""A message quotes what it is about, which can be a whole document."""
_LONGEST_MATCHED = 10_000
_POD_TEMPLATE = "podtemplate.json"
_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def schema_problems(
    documents: Sequence[Document], told: Iterable[Problem], *, parsed: bool = False
) -> Iterator[Problem]:
    """What the schemas find wrong, less what is told already: a problem above or below says the same.

    The parsers say where more is wrong than the first errors of a document. Where they have `parsed` it, a
    pod template is not looked at: they know it by the table that its schema is made of, and take a fifth of
    the time.
    """
    most = most_told(len(documents))
    places = {_place(problem) for problem in told}
    above = {place[:length] for place in places for length in range(2, len(place))}
    for document in documents:
        if kind := kinds.kind_of(document.value):
            for error in islice(_validator(kind.name, parsed).iter_errors(document.value), most):
                problem = _problem(document, error)
                place = _place(problem)
                if place not in above and places.isdisjoint(
                    place[:length] for length in range(2, len(place) + 1)
                ):
                    places.add(place)
                    yield problem


def without_consequences(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Less those about a required field that is there: under another name, or one level too far out."""
    meant = {_place(problem._replace(path=problem.instead_of)) for problem in problems if problem.instead_of}
    return tuple(
        problem
        for problem in problems
        if not (problem.message.startswith("is required") and _place(problem) in meant)
    )


def _problem(document: Document, error: "ValidationError") -> Problem:
    from jsonschema.exceptions import best_match

    # of the branches of an anyOf, the one that fits best says what is wrong
    deepest = best_match([error]) or error
    path = join_path("", *deepest.absolute_path)
    value: Any = deepest.instance
    rule: Any = deepest.validator_value
    schema: Any = deepest.schema
    match deepest.validator:
        case "required":
            missing = next(name for name in rule if name not in value)
            return Problem.at(document, join_path(path, missing), "is required")
        case "anyOf" if all("required" in branch for branch in rule):
            # the spellings of one field, today's first
            return Problem.at(document, join_path(path, rule[0]["required"][0]), "is required")
        case "type":
            names = [rule] if isinstance(rule, str) else rule
            types = [noun(_TYPES[name]) if name in _TYPES else "a number" for name in names if name != "null"]
            message = wrong_type(" or ".join(types) or "absent", value)
        case "enum":
            message = (
                f"{_shown(value)} is not one of {', '.join(str(item) for item in rule if item is not None)}"
            )
        case "minimum" | "exclusiveMinimum":
            message = f"{_shown(value)} is below {rule}"
        case "maximum" | "exclusiveMaximum":
            message = f"{_shown(value)} is above {rule}"
        case "minLength" | "minItems":
            message = "must not be empty"
        case "maxLength" | "maxItems":
            message = f"is longer than {rule}"
        case "additionalProperties":
            extra = next(name for name in value if name not in schema["properties"])
            return Problem.at(document, *unknown_field(path, extra, schema["properties"]))
        case _:
            wanted = schema.get("description", f"does not fit {deepest.validator} in the schema")
            message = f"{_shown(value)} does not fit: {wanted}"
    return Problem.at(document, path, message)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _place(problem: Problem) -> tuple[str | int, ...]:
    return (problem.document.source, problem.document.index, *parse_path(problem.path))


@cache
def _validator(kind: str, parsed: bool) -> "Validator":  # noqa: FBT001 - a call that is cached
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    installed = files("twgen") / "schemas"
    # in a checkout the schemas stand beside the package, where editors look for them
    folder = installed if installed.is_dir() else Path(__file__).parents[2] / "schemas"
    schemas = {
        name.name: json.loads(name.read_text(encoding="utf-8"))
        for name in folder.iterdir()
        if name.name.endswith(".json")
    }
    for schema in schemas.values():
        del schema["$schema"]  # it would bring back the validator that is not bounded
    if parsed:
        # of a policy too: what a patch gives a container
        pod_template = schemas[_POD_TEMPLATE]
        everything: dict[str, Any] = {name: {} for name in pod_template["$defs"]}
        schemas[_POD_TEMPLATE] = {"$id": pod_template["$id"], "$defs": everything}
    resources = [(schema["$id"], DRAFT202012.create_resource(schema)) for schema in schemas.values()]
    registry: Registry[Any] = Registry().with_resources(resources)
    extend: Callable[..., type[Validator]] = validators.extend
    checks = {"anyOf": _any_of, "pattern": _pattern, "uniqueItems": _unique_items}
    bounded = extend(Draft202012Validator, checks)
    described = kinds.CONNECTION if kind == kinds.CLUSTER_CONNECTION else kind
    return bounded(schemas[f"{described.lower()}.json"], registry=registry)


def _any_of(
    validator: Any, branches: list[Any], value: Any, _: Mapping[str, Any]
) -> "Iterator[ValidationError]":
    """As jsonschema's own, which keeps every error of every branch."""
    from jsonschema.exceptions import ValidationError

    context: list[ValidationError] = []
    for index, branch in enumerate(branches):
        errors = list(islice(validator.descend(value, branch, schema_path=index), MOST_TOLD))
        if not errors:
            return
        context += errors
    yield ValidationError("matches none of the branches", context=context)


def _pattern(_: Any, wanted: str, value: Any, __: Mapping[str, Any]) -> "Iterator[ValidationError]":
    """As jsonschema's own, which takes gigabytes for a long text; the parsers say that it is too long."""
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and len(value) <= _LONGEST_MATCHED and not re.search(wanted, value):
        yield ValidationError("does not match the pattern")


def _unique_items(_: Any, wanted: object, value: Any, __: Mapping[str, Any]) -> "Iterator[ValidationError]":
    """As jsonschema's own, which compares each item of a mixed list with all others."""
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(value, list):
        texts = {json.dumps(item, sort_keys=True) for item in value}
        if len(texts) < len(value):
            yield ValidationError("contains an item twice")
