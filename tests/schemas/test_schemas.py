"""The schemas that editors, CI and `validate` check with."""

import json
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.json_schemas import schema_problems
from tools.home import Home, catalog
from tools.kubernetes_schemas import GENERATED
from twgen.model.operator import Caller
from twgen.model.problem import Document, Problem
from twgen.model.times import parse_duration, parse_time
from twgen.planning.plan import make_plan
from twgen.records.snapshot import parse_snapshot, write_snapshot
from twgen.reporting.plan.document import PLAN
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))
OF_KUBERNETES = {"attachedobject", "deployment", "podtemplate"}
WRITTEN_BY_HAND = [path for path in SCHEMAS if path.stem not in OF_KUBERNETES]
"""The others are of Kubernetes' own fields."""
VECTORS = ROOT / "tests" / "fixtures" / "vectors"


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


def wrong(*values: Any) -> list[Problem]:
    return list(schema_problems([Document("", index, value) for index, value in enumerate(values)]))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_schema_is_a_schema(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_text()))


CATALOG = catalog(Home("https://git.example.com/twgen", "https://twgen.example.com/"))


def test_catalog_names_schemas_that_exist() -> None:
    named = {entry["url"].removeprefix("https://twgen.example.com/schemas/") for entry in CATALOG}
    assert named <= {path.name for path in SCHEMAS}
    assert {f"{kind}.json" for kind in ("workerdeployment", "rolloutpolicy", "ledger")} <= named


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        *((str(path), "ledger.json") for path in (ROOT / "examples").rglob("twgen.lock/*.yaml")),
        ("workers/payments.workerdeployment.yaml", "workerdeployment.json"),
        ("payments.rolloutpolicy.yml", "rolloutpolicy.json"),
        ("workers/payments.yaml", ""),
        ("twgen.lock", ""),
    ],
)
def test_editor_finds_one_schema_by_the_name_of_a_file(file: str, schema: str) -> None:
    found = [
        entry["url"].rpartition("/")[2]
        for entry in CATALOG
        if any(PurePath(file).match(pattern) for pattern in entry["fileMatch"])
    ]
    assert found == ([schema] if schema else [])


@pytest.mark.parametrize("path", WRITTEN_BY_HAND, ids=lambda path: path.stem)
def test_every_property_of_ours_is_described(path: Path) -> None:
    properties = list(all_properties(json.loads(path.read_text()), ""))
    assert properties
    assert [name for name, schema in properties if not {"description", "const"} & schema.keys()] == []


def all_properties(schema: dict[str, Any], above: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in schema.get("properties", {}).items():
        yield f"{above}.{key}", value
        yield from all_properties(value, f"{above}.{key}")
    if "items" in schema:
        yield from all_properties(schema["items"], f"{above}[]")


@pytest.mark.parametrize(
    "text",
    ["90s", "1h30m", "1.5h", ".5m", "5.s", "+1m", "0", "+0", "-0", "1us", "1\u00b5s", "1\u03bcs",
     "", "1", "-1m", "1 h", "1d", "h", ".s", "+", "1h ", "1e3s", "00", "0x1s"],
)  # fmt: skip
def test_durations_match_as_the_parser_reads_them(text: str) -> None:
    schema = json.loads((ROOT / "schemas" / "workerdeployment.json").read_text())
    delay = schema["properties"]["spec"]["properties"]["sunset"]["properties"]["deleteDelay"]
    assert Draft202012Validator(delay).is_valid(text) == is_duration(text)


def is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.stem)
def test_generated_schema_is_current(path: Path) -> None:
    schema = json.loads(path.read_text())
    assert {name: value for name, value in schema.items() if name != "$id"} == GENERATED[path]()


def test_all_documents_of_the_vectors_are_valid() -> None:
    documents = [case[part] for case in vectors("versions") for part in ("worker", "connection")]
    documents += [case["resource"] for case in vectors("resources")]
    for case in vectors("plans"):
        documents += [*case["documents"], case["snapshot"]]
    assert wrong(*documents) == []


def test_all_plans_and_snapshots_that_are_written_are_valid() -> None:
    written = []
    for case in vectors("plans"):
        documents = [Document("", index, value) for index, value in enumerate(case["documents"])]
        workers = parse_specs(documents, NamespaceRule()).workers
        world, findings = parse_snapshot(case["snapshot"])
        assert world, findings
        plan = make_plan(workers, world, parse_time(case["now"]), Caller("twc", forced=True))
        written += [PLAN.write(plan), write_snapshot(world)]
    assert {document["kind"] for document in written} == {"Plan", "Snapshot"}
    assert wrong(*written) == []


def test_all_documents_of_the_example_are_valid() -> None:
    files = sorted((ROOT / "examples").rglob("*.yaml"))
    assert wrong(*(value for file in files for value in read_documents(file.read_bytes()))) == []


def test_quantities_match_as_kubernetes_reads_them() -> None:
    table = json.loads((ROOT / "schemas" / "podtemplate.json").read_text())["$defs"]["ResourceRequirements"]
    quantity = Draft202012Validator(table["properties"]["limits"]["additionalProperties"])
    cases = vectors("quantities")
    assert any("error" in case for case in cases)
    disagreeing = [case for case in cases if quantity.is_valid(case["quantity"]) == ("error" in case)]
    assert disagreeing == []


def worker(**changes: Any) -> dict[str, Any]:
    spec = vectors("versions")[0]["worker"]["spec"]
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {name: item for name, item in {**spec, **changes}.items() if item != "absent"},
    }


def test_old_spellings_are_valid() -> None:
    old = worker(
        rollout="absent",
        cutover={"strategy": "AllAtOnce"},
        workerOptions={"connection": "c", "temporalNamespace": "default", "buildID": "b"},
    )
    assert wrong({**old, "kind": "TemporalWorker"}) == []


def test_old_spelling_is_checked_as_the_new_one() -> None:
    old = worker(rollout="absent", cutover={"strategy": "Sometimes"})
    assert [problem.path for problem in wrong(old)] == ["spec.cutover.strategy"]


def test_null_is_absent() -> None:
    assert wrong(worker(replicas=None, sunset=None, minReadySeconds=None)) == []
