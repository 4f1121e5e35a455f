"""The JSON Schemas of the kinds, and what they find wrong with documents."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twgen.model.document import Document
from twgen.model.paths import join_path, parse_path
from twgen.model.problem import Problem
from twgen.specs import kinds

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_LONGEST = 160
"""A message quotes what it is about, which can be a whole document."""
_FILES = {
    kinds.WORKER: "workerdeployment.json",
    kinds.CONNECTION: "connection.json",
    kinds.CLUSTER_CONNECTION: "connection.json",
    kinds.ATTACHED: "workerresourcetemplate.json",
    kinds.POLICY: "rolloutpolicy.json",
    kinds.SNAPSHOT: "snapshot.json",
    kinds.LEDGER: "ledger.json",
    kinds.PLAN: "plan.json",
    kinds.TIMELINE: "timeline.json",
    kinds.STATUS: "status.json",
}


def schema_problems(documents: Iterable[Document], known: Iterable[Problem]) -> Iterator[Problem]:
    """What the schemas find wrong, less the places that are known to be wrong already."""
    told = {place for problem in known for place in _places(problem)}
    for document in documents:
        if kind := kinds.kind_of(document.value):
            for error in _validator(kind.name).iter_errors(document.value):
                problem = _problem(document, error)
                if _places(problem)[-1] not in told:
                    yield problem


def _problem(document: Document, error: "ValidationError") -> Problem:
    from jsonschema.exceptions import best_match

    # of the branches of an anyOf, the one that fits best says what is wrong
    deepest = best_match([error]) or error
    message = deepest.message if len(deepest.message) <= _LONGEST else f"{deepest.message[:_LONGEST]}..."
    return Problem(document, join_path("", *deepest.absolute_path), message)


def _places(problem: Problem) -> list[tuple[str, int, tuple[str | int, ...]]]:
    """Where a problem is, after all that is above it: a schema tells of a missing field at its owner."""
    source, index = problem.document.source, problem.document.index
    path = parse_path(problem.path)
    return [(source, index, path[:length]) for length in range(len(path) + 1)]


@cache
def _validator(kind: str) -> "Validator":
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    schemas = {
        name.name: json.loads(name.read_text(encoding="utf-8"))
        for name in _folder().iterdir()
        if name.name.endswith(".json")
    }
    resources = [(schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()]
    registry: Registry[Any] = Registry().with_resources(resources)
    return Draft202012Validator(schemas[_FILES[kind]], registry=registry)


def _folder() -> Traversable:
    installed = files("twgen") / "schemas"
    # in a checkout the schemas stand beside the package, where editors look for them
    return installed if installed.is_dir() else Path(__file__).parents[2] / "schemas"
