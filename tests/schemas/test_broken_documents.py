"""Every kind: a whole document is valid, and each way to break it is told of at its place."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from tests.broken_documents import places
from tests.json_schemas import fits_schema, schema_problems
from tests.refused import bases
from tests.reporting.test_documents import documents
from tests.reporting.test_validation_reports import FOUND
from tests.schemas.documents import ATTACHED, CONNECTION, LEDGER, POLICY, SNAPSHOT, STATUS, WORKER
from twgen.model.problem import Document, Problem
from twgen.reporting.problems import VALIDATION as VALIDATION_DOCUMENT
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule

ABSENT = object()
TYPES: tuple[Any, ...] = ([], {}, "text", True, 7, 0.5, None)
VALUES: tuple[Any, ...] = ("", -7, 2**40, [7])
"""More values of these types, which some fields refuse."""

PLAN, _, TIMELINE = documents().values()
VALIDATION = VALIDATION_DOCUMENT.write(FOUND)
SPECS = (CONNECTION, WORKER, ATTACHED, POLICY)
ALL = (*SPECS, SNAPSHOT, LEDGER, PLAN, STATUS, TIMELINE, VALIDATION)
WORLD = "workers[0].temporal"
QUEUE = f"{WORLD}.versions[0].taskQueues[0]"
TRIGGER_FIELDS = {
    ("metadata", name) for name in ("namespace", "workerDeploymentName", "workerDeploymentBuildId")
}
RUN = f"{WORLD}.versions[0].gateRuns[0]"


def attached_objects() -> list[dict[str, Any]]:
    """A document for each kind that may be attached, with nearly all of its fields."""
    objects = [base for base in bases().values() if "kind" in base]
    return [changed(ATTACHED, ["spec", "template"], item) for item in objects]


def kind(document: dict[str, Any]) -> str:
    return str(document["kind"])


def wrong(document: Any) -> list[str]:
    return list(dict.fromkeys(problem.path for problem in schema_problems([Document("", 0, document)])))


def keys(path: str) -> list[str | int]:
    parts = path.replace("[", ".").replace("]", "").split(".")
    return [int(part) if part.isdecimal() else part for part in parts]


def changed(document: dict[str, Any], path: list[str | int], value: Any) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(document))  # three times as fast as deepcopy
    *above, last = path
    place: Any = result
    for key in above:
        place = place[key]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return result


@pytest.mark.parametrize("document", ALL, ids=kind)
def test_whole_document_is_valid(document: dict[str, Any]) -> None:
    assert wrong(document) == []


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (CONNECTION, "metadata.name", "Upper"),
        (CONNECTION, "metadata.name", ABSENT),
        (CONNECTION, "spec", ABSENT),
        (CONNECTION, "spec.hostPort", "temporal"),
        (CONNECTION, "spec.hostPort", ABSENT),
        (CONNECTION, "spec.apiKeySecretRef", "s"),
        (CONNECTION, "spec.apiKeySecretRef.key", ABSENT),
        (WORKER, "spec.rollout.steps[0].rampPercentage", 100),
        (WORKER, "spec.rollout.steps[0].rampPercentage", "5"),
        (WORKER, "spec.rollout.steps[0].pauseDuration", "5 minutes"),
        (WORKER, "spec.rollout.steps[0].pauseDuration", ABSENT),
        (WORKER, "spec.rollout.gate.workflowType", ABSENT),
        (WORKER, "spec.rollout.gate.inputFrom.configMapKeyRef.key", ABSENT),
        (WORKER, "spec.rollout.strategy", ABSENT),
        (WORKER, "spec.rollout.strategy", "Sometimes"),
        (WORKER, "spec.sunset.deleteDelay", "a day"),
        (WORKER, "spec.replicas", "3"),
        (WORKER, "spec.replicas", -1),
        (WORKER, "spec.progressDeadlineSeconds", 0),
        (WORKER, "spec.workerOptions.connectionRef", "c"),
        (WORKER, "spec.workerOptions.unsafeCustomBuildID", 7),
        (WORKER, "spec.workerOptions.temporalNamespace", ABSENT),
        (WORKER, "spec.template", ABSENT),
        (WORKER, "spec.template", []),
        (WORKER, "spec.template.spec.containers[0].ports[0].containerPort", "80"),
        (WORKER, "spec.template.spec.containers[0].env[0].value", 1),
        (WORKER, "spec.template.spec.containers[0].name", ABSENT),
        (WORKER, "spec.template.spec.containers[0].readinessProbe.httpGet.port", 2**31),
        (ATTACHED, "spec.workerDeploymentRef.name", ABSENT),
        (ATTACHED, "spec.workerDeploymentRef", ABSENT),
        (ATTACHED, "spec.template", ABSENT),
        (ATTACHED, "spec.template.kind", ABSENT),
        (POLICY, "spec.driver", "Cron"),
        (POLICY, "spec.adoptFrom", "x"),
        (POLICY, "spec.history[1]", "Archive"),
        (POLICY, "spec.holdFor", 300),
        (POLICY, "spec.maxVersions", 101),
        (SNAPSHOT, "takenAt", "yesterday"),
        (SNAPSHOT, "workers", {}),
        (SNAPSHOT, f"{WORLD}.routing.ramping.percentage", "5%"),
        (SNAPSHOT, f"{WORLD}.versions", ABSENT),
        (SNAPSHOT, f"{WORLD}.versions[0].status", "Retired"),
        (SNAPSHOT, f"{WORLD}.versions[0].openWorkflows", -1),
        (SNAPSHOT, f"{WORLD}.versions[0].createdAt", "2026-11-21"),
        (SNAPSHOT, f"{WORLD}.versions[0].drainage.status", "Done"),
        (SNAPSHOT, f"{QUEUE}.type", "Update"),
        (SNAPSHOT, f"{QUEUE}.pollers", 3),
        (SNAPSHOT, f"{RUN}.status", "Retrying"),
        (SNAPSHOT, "workers[0].deployments", "none"),
        (LEDGER, "versions[0].deployment", ABSENT),
        (LEDGER, "versions[0].deployment.metadata.labels", []),
        (LEDGER, "versions[0].recordedAt", "now"),
        (PLAN, "now", ABSENT),
        (PLAN, "workers[0].phase", "Done"),
        (PLAN, "workers[0].routing.action", "SetNext"),
        (PLAN, "workers[0].routing.because", ""),
        (PLAN, "workers[0].gates[0].workflowType", ABSENT),
        (PLAN, "workers[0].versions[0].replicas", -1),
        (PLAN, "workers[0].versions[0].protected", "yes"),
        (VALIDATION, "problems", ABSENT),
        (VALIDATION, "problems[0].line", 0),
        (VALIDATION, "problems[0].message", ""),
        (TIMELINE, "begins", "today"),
        (TIMELINE, "assumptions.gatePasses", "yes"),
        (TIMELINE, "assumptions.failing", 0),
        (TIMELINE, "workers[0].noticing[0].half.met", 2),
        (TIMELINE, "workers[0].outcome", "Done"),
        (TIMELINE, "workers[0].events[0].at", -1),
        (TIMELINE, "workers[0].events[0].says", ""),
        (TIMELINE, "workers[0].versions[0].spans[0].stage", "Current"),
        (TIMELINE, "workers[0].versions[0].spans[0].percentage", 101),
        (STATUS, "workers[0].next.action", "None"),
        (STATUS, "workers[0].owner.relation", "Friend"),
        (STATUS, "workers[0].gates[0].status", "Passed"),
        (STATUS, "workers[0].versions[0].percentage", 101),
        (STATUS, "workers[0].versions[0].pods.wanted", ABSENT),
        (STATUS, "workers[0].versions[0].since", "today"),
    ],
)
def test_broken_field_is_caught_at_its_path(document: dict[str, Any], path: str, value: Any) -> None:
    assert wrong(changed(document, keys(path), value)) == [path]


@pytest.mark.parametrize("values", [TYPES, pytest.param(VALUES, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("document", [*SPECS, *attached_objects()], ids=kind)
def test_parser_and_schema_refuse_the_same_types(document: dict[str, Any], values: tuple[Any, ...]) -> None:
    others = [CONNECTION] if document["kind"] == "WorkerDeployment" else []
    disagreeing = []
    for path in places(document["spec"], ("spec",)):
        for value in values:
            broken = changed(document, list(path), value)
            if only_parser_knows(path, value):
                continue
            specs, fits = parsed(broken, others), fits_schema(broken)
            ours, warnings = told(specs.problems), told(specs.unknown_fields)
            # what an API server checks beyond types, a schema says in part
            if fits > (not ours) or fits < (not ours and not warnings):
                disagreeing.append((path, value, ours, wrong(broken)))
    assert disagreeing == []


@pytest.mark.parametrize("document", [ATTACHED, POLICY], ids=kind)
def test_name_of_a_worker_that_is_a_list_is_refused(document: dict[str, Any]) -> None:
    reference = "workerRef" if document is POLICY else "workerDeploymentRef"
    assert refused(changed(document, ["spec", reference, "name"], []), [])
    assert refused(changed(document, ["spec", reference, "name"], [7]), [])


def refused(document: dict[str, Any], others: list[dict[str, Any]]) -> list[str]:
    return told(parsed(document, others).problems)


def parsed(document: dict[str, Any], others: list[dict[str, Any]]) -> Specs:
    documents = [Document("", index, value) for index, value in enumerate([document, *others])]
    return parse_specs(documents, NamespaceRule())


def told(problems: Iterable[Problem]) -> list[str]:
    return [f"{problem.path}: {problem.message}" for problem in problems if problem.document.index == 0]


def only_parser_knows(path: tuple[str | int, ...], value: Any) -> bool:
    """Rules that no schema can say, or that only make sense of a whole document."""
    return (
        (path[-1] in {"steps", "inputFrom", "configMapKeyRef"} and not value)
        or (path[-2:] == ("connectionRef", "name") and value == "text")
        or path[-2:] in TRIGGER_FIELDS
        # one limit may be beyond the other
        or path[-2:] in {("thresholdRange", "min"), ("thresholdRange", "max")}
        or (path[-2:] in {("template", "kind"), ("template", "apiVersion")} and value == "text")
    )
