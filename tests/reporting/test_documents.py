"""What is printed as JSON, beside its schema."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.planning.situations import (
    MAIN,
    MINUTE,
    RAMPS,
    drained,
    live,
    routing,
    situation,
    temporal,
    version,
)
from tests.reporting.reports import a_plan, values
from twgen.model.analysis import Judgement, Verdict
from twgen.model.draining import BatchAction, DrainingAction, ScheduledAction
from twgen.model.plan import AttachedObject, RoutingAction
from twgen.model.spec import Gate, WorkerSpec
from twgen.model.status import AttachedState, AttachedView, ReportedChange, StepPlace, StepView
from twgen.model.temporal import GateRun, GateStatus
from twgen.model.temporal import VersionStatus as S
from twgen.model.timeline import Notice, Noticing
from twgen.model.world import World
from twgen.records.rollout_status import STATUS
from twgen.reporting.plan.document import PLAN
from twgen.reporting.timeline.document import TIMELINE
from twgen.versioning.names import MarkKey

SCHEMAS = Path(__file__).parents[2] / "schemas"
QUEUE = replace(MAIN, name="mail")


def a_gate_that_has_yet_to_start(spec: WorkerSpec) -> WorkerSpec:
    return replace(spec, rollout=replace(spec.rollout, gate=Gate("Smoke")))


def documents() -> dict[str, dict[str, Any]]:
    """A Plan, a Status and a Timeline in which every list has an item and every object is there."""
    run = GateRun("main", "test-shop/payments:v3-main", GateStatus.COMPLETED)
    says = temporal(
        version("v3", task_queues=(MAIN, QUEUE), gate_runs=(run,)),
        version("v2", S.CURRENT, metadata={MarkKey.MOVED_BY: {"by": "twgen/me"}}),
        drained(20 * MINUTE),
        traffic=routing("v2"),
        last_modifier_identity="twgen/me",
    )
    world: World = situation(says, [live("v3"), live("v2"), live("v1")])
    spec = a_gate_that_has_yet_to_start(RAMPS)
    plan, (status, timeline) = a_plan(spec, world), values(spec, world)
    (worker,) = status.workers
    attached = (AttachedObject("HorizontalPodAutoscaler", "payments-cpu-v3"),)
    views = tuple(AttachedView(item.kind, item.name, AttachedState.UNREAD, "") for item in attached)
    versions = tuple(replace(item, attached=views) for item in worker.versions)
    rows = tuple(replace(item, attached=attached) for item in plan.workers[0].versions.versions)
    judged = (Judgement("failures", Verdict.PASSES, "1 of 41 failed (2.44%), bound 5%", 1 / 41, 0.05),)
    scheduled_action = ScheduledAction(
        "v1", DrainingAction(BatchAction.CANCEL, ("Poller",)), "", "", plan.now, plan.now
    )
    scheduled_actions = (replace(scheduled_action, is_begun=True, workflows=2), scheduled_action)
    told = replace(plan.workers[0].versions, versions=rows)
    planned = replace(
        plan.workers[0],
        versions=told,
        judgements=judged,
        scheduled_actions=scheduled_actions,
        differs=("spec.containers[worker].image",),
        old_records=("v0",),
    )
    later = ReportedChange(RoutingAction.SET_RAMP, "v3", 5, plan.now)
    known = {"next": later, "analysis": judged, "draining": scheduled_actions}
    steps = (StepView(5, StepPlace.AHEAD, "", until_promoted=False),)
    [simulated] = timeline.workers
    notice = Notice(45 * MINUTE, 25, 19, 0.26)
    noticing = (Noticing("failures", notice, notice, 0.0),)
    return {
        "plan": PLAN.write(replace(plan, workers=(planned,))),
        "status": STATUS.write(
            replace(status, workers=(replace(worker, versions=versions, steps=steps, **known),))
        ),
        "timeline": TIMELINE.write(replace(timeline, workers=(replace(simulated, noticing=noticing),))),
    }


def printed_paths(value: Any, above: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{above}.{key}"
            yield from printed_paths(item, f"{above}.{key}")
    for item in value if isinstance(value, list) else ():
        yield from printed_paths(item, f"{above}[]")


def described_paths(schema: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, item in schema.get("properties", {}).items():
        yield f"{above}.{key}"
        yield from described_paths(item, f"{above}.{key}")
    if "items" in schema:
        yield from described_paths(schema["items"], f"{above}[]")


@pytest.mark.parametrize("name", ["plan", "status", "timeline"])
def test_schema_describes_exactly_the_fields_that_are_printed(name: str) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    # only the cluster of a rollout knows of a request
    schema["properties"]["workers"]["items"]["properties"].get("request", {}).pop("properties", None)
    assert set(printed_paths(documents()[name])) == set(described_paths(schema))


def test_task_queues_and_attached_objects_are_printed() -> None:
    found = documents()
    target = found["status"]["workers"][0]["versions"][0]
    assert target["taskQueues"] == [
        {"name": name, "type": "Workflow", "pollers": True, "unversionedPollers": False}
        for name in ("main", "mail")
    ]
    expected = {"kind": "HorizontalPodAutoscaler", "name": "payments-cpu-v3"}
    assert found["plan"]["workers"][0]["versions"][0]["attached"] == [expected]
    assert target["attached"] == [{**expected, "state": "NotRead", "message": ""}]


def test_reason_of_every_row_is_printed() -> None:
    found = documents()
    for name in ("plan", "status"):
        (worker,) = found[name]["workers"]
        assert all("reason" in version for version in worker["versions"])
    assert "reason" in found["plan"]["workers"][0]["routing"]
    assert "reason" in found["status"]["workers"][0]
