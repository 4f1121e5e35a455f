"""The JSON Schemas of the kinds, and what they find wrong with documents."""

import json
from collections.abc import Container, Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twgen.model.document import Document
from twgen.model.paths import join_path
from twgen.model.problem import Problem
from twgen.specs import kinds

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_FILES = {
    kinds.WORKER: "workerdeployment.json",
    kinds.CONNECTION: "connection.json",
    kinds.CLUSTER_CONNECTION: "connection.json",
    kinds.ATTACHED: "workerresourcetemplate.json",
    kinds.POLICY: "rolloutpolicy.json",
    kinds.SNAPSHOT: "snapshot.json",
    kinds.LEDGER: "ledger.json",
    kinds.PLAN: "plan.json",
}


def schema_problems(
    documents: Iterable[Document], already: Container[tuple[Document, str]]
) -> Iterator[Problem]:
    """What the schemas find wrong, less the document paths that are known to be wrong already."""
    for document in documents:
        if kind := kinds.kind_of(document.value):
            for error in _validator(kind.name).iter_errors(document.value):
                path = join_path("", *error.absolute_path)
                if (document, path) not in already:
                    yield Problem(document, path, error.message)


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
