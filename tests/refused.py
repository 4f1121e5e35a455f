"""The corpus of documents that an API server refuses: one base for each kind, and changes that break it."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from twgen.cli.inputs import all_problems
from twgen.model.paths import parse_path
from twgen.model.problem import Document
from twgen.reading.documents import Documents
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents

FOLDER = Path(__file__).parent / "fixtures" / "refused"
TOLD = FOLDER / "told.txt"
"""What `validate --strict` says of all of them; `make cases` writes it anew."""
_REMOVED = "(removed)"


@dataclass(frozen=True)
class Broken:
    """A pod template or an attached object that is broken as the sentence says."""

    sentence: str
    object: dict[str, Any]


def bases() -> dict[str, dict[str, Any]]:
    """Of each kind, by the name of its file, the object that is whole."""
    return {path.stem: _read(path)["base"] for path in sorted(FOLDER.glob("*.yaml"))}


@cache
def corpus() -> tuple[Broken, ...]:
    """Every broken object."""
    return tuple(
        Broken(sentence, changed(read["base"], changes))
        for read in map(_read, sorted(FOLDER.glob("*.yaml")))
        for sentence, changes in read["refused"].items()
    )


def changed(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of the object with other values at these paths."""
    result: dict[str, Any] = json.loads(json.dumps(base))  # three times as fast as deepcopy
    for path, value in changes.items():
        *above, last = parse_path(path)
        place: Any = result
        for step in above:
            place = place[step] if isinstance(place, list) else place.setdefault(step, {})
        if value == _REMOVED:
            del place[last]
        else:
            place[last] = value
    return result


def documents(broken: dict[str, Any], worker: str = "pay") -> list[dict[str, Any]]:
    """A worker with this pod template, or with this object attached, and its connection."""
    is_attached = "kind" in broken
    # an autoscaler needs to know what its pods request
    container = {
        "name": "worker",
        "image": "pay:v1",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {"spec": {"containers": [container]}} if is_attached else broken
    options = {"connectionRef": {"name": worker}, "temporalNamespace": "shop"}
    spec = {"workerOptions": options, "rollout": {"strategy": "AllAtOnce"}, "template": template}
    found = [
        _document("Connection", worker, {"hostPort": "temporal:7233"}),
        _document("WorkerDeployment", worker, spec),
    ]
    if is_attached:
        spec = {"workerDeploymentRef": {"name": worker}, "template": broken}
        found.append(_document("WorkerResourceTemplate", worker, spec))
    return found


def strictly(broken: dict[str, Any]) -> list[str]:
    """All that `validate --strict` and `render --strict` say of a pod template or an attached object."""
    specs = _parsed(broken)
    found = (*specs.problems, *specs.unknown_fields, *specs.warnings)
    return [f"{problem.path}: {problem.message}" for problem in found]


def refusals(broken: dict[str, Any]) -> list[str]:
    """As `strictly`, without what is only doubtful."""
    specs = _parsed(broken)
    found = (*specs.problems, *specs.unknown_fields)
    return [f"{problem.path}: {problem.message}" for problem in found]


def validated(broken: dict[str, Any]) -> list[str]:
    """The path of each problem that `validate` tells of a pod template or an attached object."""
    read = Documents(_read_as_documents(broken), ())
    return [problem.path for problem in all_problems(read, _parsed(broken))]


def told() -> str:
    """Of each broken object, its sentence and below it what `--strict` says."""
    lines = []
    for broken in corpus():
        lines += [broken.sentence, *(f"  {line}" for line in strictly(broken.object))]
    return "\n".join(lines) + "\n"


def _parsed(broken: dict[str, Any]) -> Specs:
    return parse_specs(_read_as_documents(broken), NamespaceRule("shop"))


def _read_as_documents(broken: dict[str, Any]) -> tuple[Document, ...]:
    return tuple(Document("specs.yaml", index, value) for index, value in enumerate(documents(broken)))


def _read(path: Path) -> dict[str, Any]:
    [read] = read_documents(path.read_bytes())
    return dict(read)


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "temporal.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


if __name__ == "__main__":
    TOLD.write_text(told(), encoding="utf-8")
