"""Plans equal those of the Temporal Worker Controller, but where its own users were hurt by them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.planning.differences import DIFFERENT
from twgen.model.operator import Caller
from twgen.model.plan import RoutingAction, VersionAction, WorkerPlan
from twgen.model.problem import Document
from twgen.model.times import parse_time
from twgen.planning.plan import make_plan
from twgen.records.snapshot import parse_snapshot
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

CASES = json.loads((Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json").read_text())


def plan(case: dict[str, Any]) -> WorkerPlan:
    documents = [Document("", index, value) for index, value in enumerate(case["documents"])]
    specs = parse_specs(documents, NamespaceRule())
    assert specs.problems == ()
    world, findings = parse_snapshot(case["snapshot"])
    assert world, findings
    (worker,) = make_plan(specs.workers, world, parse_time(case["now"]), Caller("twc", forced=True)).workers
    return worker


def as_the_controller_says_it(worker: WorkerPlan) -> dict[str, Any]:
    versions = worker.versions.versions
    target = worker.spec.build_id
    scaled = {
        version.build_id: version.replicas
        for version in versions
        if version.live and version.replicas is not None and version.replicas != version.live.replicas
    }
    return {
        "createTarget": any(
            version.action is VersionAction.CREATE for version in versions if version.build_id == target
        ),
        "deleteDeployments": [
            version.build_id for version in versions if version.action is VersionAction.DROP
        ],
        "scaleDeployments": scaled,
        "updateDeployments": [
            version.build_id for version in versions if version.action is VersionAction.UPDATE
        ],
        "targetBuildID": target,
        "startTestWorkflows": [
            {"taskQueue": gate.task_queue, "workflowID": gate.workflow_id, "workflowType": gate.workflow_type}
            for gate in worker.gates
        ],
        "routing": routing(worker),
    }


def routing(worker: WorkerPlan) -> dict[str, Any] | None:
    change = worker.routing
    if change.action is RoutingAction.NONE:
        return None
    return {
        "buildID": change.build_id,
        "claimManager": change.claim_manager,
        "rampPercentage": change.percentage or 0,
        "setCurrent": change.action is RoutingAction.SET_CURRENT,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_plan_equals_the_controllers(case: dict[str, Any]) -> None:
    assert as_the_controller_says_it(plan(case)) == case["expect"] | DIFFERENT.get(case["name"], {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_decision_says_why(case: dict[str, Any]) -> None:
    worker = plan(case)
    assert worker.routing.because
    assert all(version.because for version in worker.versions.versions)
