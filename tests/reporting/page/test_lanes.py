"""The versions of a worker through time, as far as its status tells."""

from datetime import timedelta
from typing import Any

from tests.strategies import NOW
from twgen.model.times import format_time
from twgen.reporting.page.lanes import Lane, Stretch, lanes_of

HOUR = timedelta(hours=1)


def version(build_id: str, status: str, since: timedelta, **told: Any) -> dict[str, Any]:
    return {
        "buildID": build_id,
        "isTarget": False,
        "status": status,
        "percentage": None,
        "since": format_time(NOW - since),
        "pods": None,
        "openWorkflows": None,
        "oldestOpenAt": None,
        "next": None,
        **told,
    }


def at(length: timedelta) -> str:
    return format_time(NOW + length)


def test_lane_has_what_is_and_what_comes_and_nothing_that_nobody_knows() -> None:
    oldest = {"openWorkflows": 3, "oldestOpenAt": at(-50 * HOUR), "pods": {"available": 1, "wanted": 2}}
    goes = {"action": "Drop", "at": at(5 * HOUR)}
    worker = {
        "versions": [
            version("v2", "Ramping", HOUR, isTarget=True, percentage=25.0),
            version("v1", "Current", 3 * HOUR, percentage=75.0, **oldest),
            version("v0", "Drained", 2 * HOUR, next=goes),
        ],
        "next": {"action": "SetRamp", "buildID": "v2", "percentage": 50.0, "at": at(HOUR)},
        "draining": [],
    }
    lanes = lanes_of(worker, NOW)
    assert lanes.columns == ("3h ago", "2h ago", "1h ago", "now", "in 1h", "in 5h")
    held = "Current, 75 %, 1/2 pods, 3 open workflows, the oldest 2d 2h old"
    assert lanes.lanes == (
        Lane(
            "v2",
            is_target=True,
            stretches=(
                Stretch("", "unknown", 2, is_to_come=False),
                Stretch("Ramping, 25 %", "ramping", 1, is_to_come=False),
                Stretch("Ramping, 25 %", "ramping", 1, is_to_come=True),
                Stretch("50 %", "ramping", 2, is_to_come=True),
            ),
        ),
        Lane(
            "v1",
            is_target=False,
            stretches=(
                Stretch(held, "current", 3, is_to_come=False),
                Stretch(held, "current", 3, is_to_come=True),
            ),
        ),
        Lane(
            "v0",
            is_target=False,
            stretches=(
                Stretch("", "unknown", 1, is_to_come=False),
                Stretch("Drained", "drained", 2, is_to_come=False),
                Stretch("Drained", "drained", 2, is_to_come=True),
                Stretch("gone", "gone", 1, is_to_come=True),
            ),
        ),
    )


def test_what_a_policy_does_to_a_version_is_in_its_lane() -> None:
    entries = [
        {"buildID": "v1", "action": "Signal", "workflowTypes": ["Poller"], "at": at(-HOUR), "begun": True},
        {"buildID": "v1", "action": "Cancel", "workflowTypes": [], "at": at(HOUR), "begun": False},
        {"buildID": "v9", "action": "Cancel", "workflowTypes": [], "at": at(HOUR), "begun": False},
    ]
    worker = {"versions": [version("v1", "Draining", HOUR)], "next": None, "draining": entries}
    [lane] = lanes_of(worker, NOW).lanes
    assert [stretch.says for stretch in lane.stretches] == ["Draining", "Draining", "Cancel: all workflows"]


def test_columns_of_every_lane_are_as_many_however_many_versions_there_are() -> None:
    versions = [
        version(f"v{number}", "Drained", number * HOUR, next={"action": "Drop", "at": at(number * HOUR)})
        for number in range(1, 60)
    ]
    lanes = lanes_of({"versions": versions, "next": None, "draining": []}, NOW)
    assert len(lanes.columns) <= 13
    for lane in lanes.lanes:
        assert sum(stretch.columns for stretch in lane.stretches) == len(lanes.columns)


def test_worker_of_which_nothing_was_read_has_no_lane() -> None:
    assert lanes_of({}, NOW).lanes == ()
