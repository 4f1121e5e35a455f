"""The versions of a worker through time, as far as its status tells."""

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.documents import STATUS
from tests.schemas.printed import reported
from tests.strategies import NOW
from twgen.model.times import format_time
from twgen.reporting.page.lanes import Lanes, Stretch, VersionLane, lanes_of

HOUR = timedelta(hours=1)
PODS = {**STATUS["workers"][0]["versions"][0]["pods"], "available": 1, "wanted": 2}


def version(build_id: str, status: str, since: timedelta, **told: Any) -> dict[str, Any]:
    usual = {"isTarget": False, "percentage": None, "pods": None, "next": None}
    return {"buildID": build_id, "status": status, "since": format_time(NOW - since), **usual, **told}


def lanes(worker: dict[str, Any]) -> Lanes:
    """The lanes of the worker of a document with these fields."""
    usual = {"next": None, "draining": [], "unversionedPercentage": None}
    return lanes_of(reported(**{**usual, **worker}).workers[0], NOW)


def at(length: timedelta) -> str:
    return format_time(NOW + length)


def says(worker: dict[str, Any]) -> dict[str, list[str]]:
    """What each lane says in each column."""
    return {
        lane.build_id: [stretch.says for stretch in lane.stretches for _ in range(stretch.columns)]
        for lane in lanes(worker).lanes
    }


def test_lane_has_what_is_and_what_comes_and_nothing_that_nobody_knows() -> None:
    oldest = {"openWorkflows": 3, "oldestOpenAt": at(-50 * HOUR), "pods": PODS}
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
    found = lanes(worker)
    assert found.columns == ("3h ago", "2h ago", "1h ago", "now", "in 1h", "in 5h")
    held = "Current, 75%, 1/2 pods, 3 open workflows, the oldest 2d 2h old"
    assert found.lanes == (
        VersionLane(
            "v2",
            is_target=True,
            stretches=(
                Stretch("", "unknown", 2, is_to_come=False),
                Stretch("Ramping, 25%", "ramping", 1, is_to_come=False),
                Stretch("Ramping, 25%", "ramping", 1, is_to_come=True),
                Stretch("Ramping, 50%", "ramping", 2, is_to_come=True),
            ),
        ),
        VersionLane(
            "v1",
            is_target=False,
            stretches=(
                Stretch("Current", "current", 2, is_to_come=False),
                Stretch("Current, 75%", "current", 1, is_to_come=False),
                Stretch(held, "current", 1, is_to_come=True),
                Stretch("Current, 50%", "current", 2, is_to_come=True),
            ),
        ),
        VersionLane(
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


def test_last_step_leaves_the_version_before_it_draining() -> None:
    worker = {
        "versions": [
            version("v2", "Ramping", HOUR, isTarget=True, percentage=75.0),
            version("v1", "Current", 3 * HOUR, percentage=25.0),
        ],
        "next": {"action": "SetCurrent", "buildID": "v2", "percentage": None, "at": at(HOUR)},
    }
    assert says(worker) == {
        "v2": ["", "Ramping, 75%", "Ramping, 75%", "Current, 100%"],
        "v1": ["Current", "Current, 25%", "Current, 25%", "Draining"],
    }


def test_workers_without_a_version_have_a_lane_while_they_have_a_share() -> None:
    worker = {"versions": [version("v1", "Current", HOUR, percentage=95.0)], "unversionedPercentage": 5.0}
    assert says(worker) == {"v1": ["Current", "Current, 95%"], "unversioned workers": ["", "5%"]}


@st.composite
def workers(draw: st.DrawFn) -> dict[str, Any]:
    """A worker of which something ramps, or to which something happens."""
    ramp = draw(st.none() | st.sampled_from((5.0, 33.3, 50.0)))
    hours = st.integers(0, 9).map(lambda number: number * HOUR)
    to_unversioned = ramp is not None and draw(st.booleans())
    versions = [version("v1", "Current", draw(hours), percentage=100 - (ramp or 0))]
    if ramp is not None and not to_unversioned:
        versions.append(version("v2", "Ramping", draw(hours), percentage=ramp, isTarget=True))
    if draw(st.booleans()):
        goes = {"action": draw(st.sampled_from(("ScaleDown", "Drop"))), "at": at(draw(hours))}
        versions.append(version("v0", "Drained", draw(hours), next=goes))
    change = {"action": "SetRamp", "buildID": "v2", "percentage": 75.0, "at": at(draw(hours))}
    return {
        "versions": draw(st.permutations(versions)),
        "unversionedPercentage": ramp if to_unversioned else None,
        "next": draw(st.sampled_from((None, change, {**change, "action": "SetCurrent", "percentage": None}))),
    }


@given(workers())
def test_shares_of_each_column_are_100_percent_or_not_told(worker: dict[str, Any]) -> None:
    if (worker["next"] or {}).get("buildID") not in {one["buildID"] for one in worker["versions"]}:
        worker["next"] = None
    columns = list(zip(*says(worker).values(), strict=True))
    shares = [
        [float(share) for cell in cells for share in re.findall(r"([0-9.]+)%", cell)] for cells in columns
    ]
    assert all(not found or sum(found) == pytest.approx(100) for found in shares)
    assert shares[lanes(worker).columns.index("now")]


def test_what_a_policy_does_to_a_version_is_in_its_lane() -> None:
    entries = [
        {"buildID": "v1", "action": "Signal", "workflowTypes": ["Poller"], "at": at(-HOUR), "begun": True},
        {"buildID": "v1", "action": "Cancel", "workflowTypes": [], "at": at(HOUR), "begun": False},
        {"buildID": "v9", "action": "Cancel", "workflowTypes": [], "at": at(HOUR), "begun": False},
    ]
    worker = {"versions": [version("v1", "Draining", HOUR)], "next": None, "draining": entries}
    [lane] = lanes(worker).lanes
    assert [stretch.says for stretch in lane.stretches] == [
        "Draining",
        "Draining",
        "Draining, Cancel: all workflows",
    ]


def test_columns_of_every_lane_are_as_many_however_many_versions_there_are() -> None:
    versions = [
        version(f"v{number}", "Drained", number * HOUR, next={"action": "Drop", "at": at(number * HOUR)})
        for number in range(1, 60)
    ]
    found = lanes({"versions": versions})
    assert len(found.columns) <= 13
    for lane in found.lanes:
        assert sum(stretch.columns for stretch in lane.stretches) == len(found.columns)


def test_worker_of_which_nothing_was_read_has_no_lane() -> None:
    assert lanes({"versions": []}).lanes == ()
