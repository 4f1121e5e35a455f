"""Specs as people and the releases of the controller write them, old and new fields mixed."""

import copy
from typing import Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from tests.json_schemas import schema_problems
from tests.specs.parsing import CONNECTION, parsed
from twgen.model.paths import parse_path
from twgen.model.problem import Document, Problem
from twgen.specs.parse import Specs
from twgen.specs.spec_document import STORED_DEFAULTS

OTHER = {**CONNECTION, "metadata": {"name": "other", "namespace": "shop"}}
EVERYWHERE = {
    **CONNECTION,
    "kind": "ClusterConnection",
    "metadata": {"name": "temporal"},
    "spec": {"hostPort": "everywhere.example.com:7233"},
}
KEY = {"name": "question", "key": "k"}


def pods(image: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "w", "image": image}]}}


def reference(kind: str, name: str = "temporal") -> dict[str, Any]:
    return {"apiGroup": "temporal.io", "kind": kind, "name": name}


def steps(percentage: int) -> list[dict[str, Any]]:
    return [{"rampPercentage": percentage, "pauseDuration": "1m"}]


TEMPLATES = (pods("payments:v3"), pods("payments:v4"))
BUILD_IDS = ("release-1", "release-2")
NUMBERS: dict[str, tuple[Any, Any]] = {
    "replicas": (2, 3),
    "minReadySeconds": (0, 5),
    "progressDeadlineSeconds": (600, 900),
}
FORMS: tuple[dict[str, tuple[Any, Any]], ...] = (
    {"template": TEMPLATES, "deployment.template": TEMPLATES},
    {
        "workerOptions.connectionRef.name": ("temporal", "other"),
        "workerOptions.connection": ("temporal", "other"),
        "workerOptions.connectionRef.objectRef": (reference("Connection"), reference("ClusterConnection")),
    },
)
"""Of each of these a spec has one form at least."""
MORE: dict[str, tuple[Any, Any]] = {
    **NUMBERS,
    **{f"deployment.{name}": values for name, values in NUMBERS.items()},
    "deployment.revisionHistoryLimit": (3, 4),
    "deployment.strategy": ({"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 1}}),
    "deployment.selector": ({}, {"matchLabels": {"app": "payments"}}),
    "deployment.paused": (False, True),
    "workerOptions.connectionRef.kind": ("Connection", "ClusterConnection"),
    "workerOptions.taskQueue": ("payments", "mails"),
    "workerOptions.unsafeCustomBuildID": BUILD_IDS,
    "workerOptions.customBuildID": BUILD_IDS,
    "workerOptions.buildID": BUILD_IDS,
    "sunset.scaledownDelay": ("1h", "2h"),
    "sunset.deleteDelay": ("24h", "48h"),
    "pace": (1, 2),
}
ROLLOUT: dict[str, tuple[Any, Any]] = {
    "strategy": ("AllAtOnce", "Manual"),
    "steps": (steps(5), steps(10)),
    "gate.workflowType": ("Check", "Verify"),
    "gate.input": ({"order": 1}, "text"),
    "gate.inputFrom": ({"configMapKeyRef": KEY}, {"secretKeyRef": KEY}),
    "gate.encoding": ("json/protobuf", "binary/protobuf"),
    "gate.messageType": ("shop.v1.Order", "shop.v1.Invoice"),
}
ALL = {
    **MORE,
    **{name: values for forms in FORMS for name, values in forms.items()},
    **{f"{owner}.{name}": values for owner in ("rollout", "cutover") for name, values in ROLLOUT.items()},
}
USUAL = {
    "deployment.template": TEMPLATES[0],
    "workerOptions.connectionRef.name": "temporal",
    "rollout.strategy": "AllAtOnce",
}
KINDS = ("WorkerDeployment", "TemporalWorkerDeployment", "TemporalWorker")


def written(fields: dict[str, Any], kind: str = KINDS[0]) -> dict[str, Any]:
    """A worker with these fields in its spec."""
    spec: dict[str, Any] = {"workerOptions": {"temporalNamespace": "default"}}
    for path, value in fields.items():
        *above, last = path.split(".")
        place = spec
        for name in above:
            place = place.setdefault(name, {})
        place[last] = copy.deepcopy(value)
    metadata = {"name": "payments", "namespace": "shop", "generation": 3}
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": {"versionCount": 2},
    }


@st.composite
def a_spec(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a spec, most of the time as they may stand together."""
    names = draw(st.lists(st.sampled_from(list(MORE)), max_size=5))
    for forms in FORMS:
        names += draw(st.sampled_from([[name] for name in forms] * 9 + [list(forms)]))
    owner = draw(st.sampled_from(("rollout", "rollout", "cutover")))
    ramp = {"strategy", *draw(st.lists(st.sampled_from(list(ROLLOUT)), max_size=4))}
    if "gate.messageType" in ramp:
        ramp.add("gate.encoding")
    if any(name.startswith("gate.") for name in ramp):
        ramp.add("gate.workflowType")
    names += [f"{owner}.{name}" for name in ramp]
    fields = {
        name: draw(st.sampled_from(5 * (first,) + 4 * (second,) + (None,)))
        for name, (first, second) in ALL.items()
        if name in names
    }
    # what stands inside another field that is drawn too would take its place
    inside = {name for name in fields if any(name.startswith(f"{one}.") for one in fields)}
    return {name: value for name, value in fields.items() if name not in inside}


def read(fields: dict[str, Any], kind: str = KINDS[0]) -> Specs:
    return parsed(written(fields, kind), CONNECTION, OTHER, EVERYWHERE)


def findings(found: Specs) -> tuple[Problem, ...]:
    """All but old spellings: a field acts in whatever spelling."""
    return (*found.problems, *found.unknown_fields, *found.warnings)


def is_told(found: Specs, name: str) -> bool:
    """Something is said of the field, of one that it stands in, or of one in it."""
    place = tuple(parse_path(f"spec.{name}"))
    told = findings(found)
    paths = [one.path for one in told] + [one.other.path for one in told if one.other]
    return any(place[: len(path)] == path[: len(place)] for path in map(tuple, map(parse_path, paths)))


def outcome(found: Specs) -> Any:
    return found.workers, [(one.path, one.message) for one in findings(found)]


@settings(max_examples=10 * settings.default.max_examples)
@given(fields=a_spec(), kind=st.sampled_from(KINDS))
@example({**USUAL, "replicas": 2}, KINDS[0])
def test_every_field_acts_or_something_is_said_of_it(fields: dict[str, Any], kind: str) -> None:
    found = read(fields, kind)
    document = Document("f.yaml", 0, written(fields, kind))
    more = list(schema_problems([document]))
    event("refused" if found.problems else "read")
    if found.problems:
        return  # nothing is rendered
    assert more == [], "the schema refuses what the parser takes"
    for name, value in fields.items():
        # what every stored object has, and what is said twice alike, is fine
        is_fine = value in (None, STORED_DEFAULTS.get(name), fields.get(f"deployment.{name}"))
        if not is_fine and not is_told(found, name):
            [other] = [one for one in ALL[name] if one != value]
            changed = read({**fields, name: other}, kind)
            assert outcome(changed) != outcome(found), f"{name} has no effect, and nothing is said"
