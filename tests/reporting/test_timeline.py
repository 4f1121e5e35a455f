"""A simulation as text, JSON and a picture."""

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from tests.planning.situations import DAY, MINUTE, live, routing, situation, temporal, version
from tests.simulating.stories import ALL_AT_ONCE, GATED, PROGRESSIVE, a_worker_spec, tell
from tests.strategies import NOW, specs, worlds
from twgen.model.analysis import Analysis, ClosedStatus, Metric, OnFailure, WorkflowFailures
from twgen.model.spec import Rollout, Strategy, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.timeline import Stage, Timeline, Traffic
from twgen.model.world import World
from twgen.reporting.printable import printable
from twgen.reporting.timeline.document import TIMELINE
from twgen.reporting.timeline.picture import scale_of, timeline_svg
from twgen.reporting.timeline.text import timeline_text
from twgen.versioning.names import MarkKey

GOLDEN = Path(__file__).parents[1] / "fixtures" / "timelines"
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "timeline.json").read_text())
SVG = "{http://www.w3.org/2000/svg}"


def measured() -> WorkerSpec:
    """A worker whose workflows that fail are counted, against three bounds."""
    statuses = (ClosedStatus.FAILED, ClosedStatus.TIMED_OUT)
    metrics = (
        Metric(name, WorkflowFailures(ratio, statuses, (), 0.01, 0))
        for name, ratio in (("failures", 0.02), ("compared", None), ("lenient", 0.5))
    )
    analysis = Analysis(tuple(metrics), OnFailure.ABORT, MINUTE)
    spec = a_worker_spec(PROGRESSIVE)
    return replace(spec, policy=replace(spec.policy, analysis=analysis))


def taken_back() -> World:
    """A version at its second step, which a rollout has just marked as aborted."""
    because = "failures: 9 of 41 failed (22%), bound 2%, chance of a false alarm below 0.01%"
    mark = {MarkKey.ABORTED: {"by": "twgen/me", "at": "2026-11-21T12:00:00Z", "because": because}}
    old = version("v1", VersionStatus.CURRENT, created_at=NOW - 9 * DAY)
    ramps = version(status=VersionStatus.RAMPING, metadata=mark)
    traffic = routing("v1", ("v3", 25), age=5 * MINUTE)
    return situation(temporal(old, ramps, traffic=traffic), [live("v3"), live("v1")])


TIMELINES = {
    "progressive": tell([a_worker_spec(PROGRESSIVE)], begins=NOW),
    "gate-fails": tell([a_worker_spec(GATED)], gate_passes=False),
    "two-workers": tell(
        [a_worker_spec(ALL_AT_ONCE, "billing"), a_worker_spec(Rollout(Strategy.MANUAL), "shipping")],
        workflow_duration=timedelta(days=400),
    ),
    "measured": tell([measured()], traffic=Traffic(100, 0.2)),
    "taken-back": tell([a_worker_spec(PROGRESSIVE)], taken_back(), NOW),
}


def text(timeline: Timeline, width: int = 100) -> str:
    return timeline_text(timeline, colour=False, width=width)


def golden() -> dict[str, str]:
    """The text and the picture of each, by file name."""
    files = {f"{name}.txt": text(timeline) for name, timeline in TIMELINES.items()}
    return files | {f"{name}.svg": timeline_svg(timeline) for name, timeline in TIMELINES.items()}


@pytest.mark.parametrize("name", golden())
def test_timeline_is_as_it_was_looked_at(name: str) -> None:
    # to write them anew: python -m tests.reporting.test_timeline, then look at them
    assert golden()[name] == (GOLDEN / name).read_text()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", TIMELINES)
def test_text_keeps_to_the_width(name: str, width: int) -> None:
    lines = text(TIMELINES[name], width).splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


def test_colour_is_only_added() -> None:
    coloured = timeline_text(TIMELINES["progressive"], colour=True, width=100)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == text(TIMELINES["progressive"]).split()


def test_times_are_offsets_without_a_beginning() -> None:
    document = TIMELINE.write(TIMELINES["gate-fails"])
    assert document["begins"] is None
    assert {event["time"] for worker in document["workers"] for event in worker["events"]} == {None}
    assert "UTC" not in text(TIMELINES["gate-fails"])


def test_times_are_both_with_a_beginning() -> None:
    (worker,) = TIMELINE.write(TIMELINES["progressive"])["workers"]
    ramped = next(event for event in worker["events"] if event["event"] == "Ramped")
    assert (ramped["at"], ramped["time"]) == (30, "2026-11-21T12:00:30Z")


def test_every_assumption_names_the_option_that_changes_it() -> None:
    words = " ".join(text(TIMELINES["gate-fails"]).split())
    for option in ("workflow-duration", "startup", "gate", "drainage-interval", "render-interval"):
        assert f"(--{option})" in words
    words = " ".join(text(TIMELINES["measured"]).split())
    for option in ("starts-per-hour", "failing"):
        assert f"(--{option})" in words


@given(specs, worlds(), st.sampled_from((None, NOW)))
def test_any_timeline_is_valid_and_drawable(spec: WorkerSpec, found: World, begins: datetime | None) -> None:
    timeline = replace(tell([spec], found, NOW), begins=begins)
    Draft202012Validator(SCHEMA).validate(TIMELINE.write(timeline))
    assert drawn(timeline).tag == f"{SVG}svg"
    assert max(map(cell_len, text(timeline).splitlines())) <= 100


def drawn(timeline: Timeline) -> ET.Element:
    return ET.fromstring(timeline_svg(timeline))  # noqa: S314 - our own


@pytest.mark.parametrize("name", TIMELINES)
def test_picture_needs_nothing_else(name: str) -> None:
    root = drawn(TIMELINES[name])
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "rect", "line", "text"
    }  # fmt: skip
    values = [value for element in root.iter() for value in element.attrib.values()]
    assert [value for value in values if "url(" in value or "http" in value or "javascript" in value] == []


@pytest.mark.parametrize("name", TIMELINES)
def test_picture_stays_within_its_frame(name: str) -> None:
    root = drawn(TIMELINES[name])
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    for element in root.iter(f"{SVG}rect"):
        x, y = (float(element.get(key, "0")) for key in ("x", "y"))
        assert 0 <= x <= x + float(element.attrib["width"]) <= width
        assert 0 <= y <= y + float(element.attrib["height"]) <= height
    assert all(float(item.attrib["y"]) < height for item in root.iter(f"{SVG}text"))


def stages_in(timeline: Timeline) -> list[str]:
    drawn_ones = {span.stage for worker in timeline.workers for lane in worker.lanes for span in lane.spans}
    return [stage.value for stage in Stage if stage in drawn_ones]


@pytest.mark.parametrize("name", TIMELINES)
def test_legend_has_exactly_the_stages_of_the_picture(name: str) -> None:
    assert list(legend(drawn(TIMELINES[name]))) == stages_in(TIMELINES[name])


def test_picture_names_each_worker_once_and_the_page_in_its_own_heading() -> None:
    timeline = TIMELINES["two-workers"]
    for worker in timeline.workers:
        titled = [element.text or "" for element in drawn(timeline).iter(f"{SVG}text")]
        assert [text for text in titled if worker.worker in text and "Simulated rollout of" in text]
        bare = ET.fromstring(timeline_svg(timeline, titled=False))  # noqa: S314 - our own
        assert not [element for element in bare.iter(f"{SVG}text") if worker.worker in (element.text or "")]


def legend(root: ET.Element) -> dict[str, str]:
    """The colour of each stage."""
    elements = list(root.iter())
    return {
        after.text or "": element.attrib["fill"]
        for element, after in pairwise(elements)
        if element.tag == f"{SVG}rect" and element.attrib["width"] == "13"
    }


def test_every_stage_has_a_colour_of_its_own() -> None:
    colours = {name: colour for each in TIMELINES.values() for name, colour in legend(drawn(each)).items()}
    assert len(set(colours.values())) == len(colours) == len(Stage)


def swatches(root: ET.Element) -> dict[str, str]:
    """The colour of each version, which is shown next to its name."""
    return {
        after.text or "": element.attrib["fill"]
        for element, after in pairwise(root.iter())
        if element.tag == f"{SVG}rect" and element.attrib["width"] == "10" and after.tag == f"{SVG}text"
    }


def band_below(root: ET.Element, label: str) -> str:
    """The colour of the share that a label is written on."""
    (text,) = (element for element in root.iter(f"{SVG}text") if element.text == label)
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    (band,) = (
        element.attrib["fill"]
        for element in root.iter(f"{SVG}rect")
        if element.attrib.get("stroke") == "#ffffff"
        and 0 <= x - float(element.attrib["x"]) <= float(element.attrib["width"])
        and 0 <= y - float(element.attrib["y"]) <= float(element.attrib["height"])
    )
    return band


@pytest.mark.parametrize(
    ("label", "version"),
    [("v3 25%", "v3"), ("v3 75%", "v3"), ("v3 100%", "v3"), ("previous 25%", "previous")],
)
def test_share_of_new_workflows_has_the_colour_of_its_version(label: str, version: str) -> None:
    root = drawn(TIMELINES["progressive"])
    assert band_below(root, label) == swatches(root)[version]


def test_two_versions_that_share_new_workflows_differ_in_colour() -> None:
    for timeline in TIMELINES.values():
        colours = [colour for name, colour in swatches(drawn(timeline)).items() if name]
        assert colours
        assert all(before != after for before, after in pairwise(colours))


def test_event_that_changes_no_bar_has_no_mark_on_the_axis() -> None:
    (worker,) = TIMELINES["progressive"].workers
    bars = {span.begin for lane in worker.lanes for span in lane.spans}
    ends = {span.end for lane in worker.lanes for span in lane.spans}
    assert set(scale_of(worker).positions) - {timedelta()} <= bars | ends


def test_ramp_that_is_taken_back_is_marked_in_the_picture_and_says_why() -> None:
    root = drawn(TIMELINES["taken-back"])
    titles = [element.text or "" for element in root.iter(f"{SVG}title")]
    assert any("v3: its ramp is taken back (failures: 9 of 41 failed" in title for title in titles)
    assert "✗ taken back" in {element.text for element in root.iter(f"{SVG}text")}
    for name in TIMELINES.keys() - {"taken-back"}:
        assert "taken back" not in timeline_svg(TIMELINES[name])


def test_labels_of_the_axis_do_not_touch() -> None:
    for timeline in TIMELINES.values():
        for worker in timeline.workers:
            positions = list(scale_of(worker).positions.values())
            assert all(after - before >= 60 for before, after in pairwise(positions))


def test_names_are_escaped_and_made_legal() -> None:
    hostile = '<script>alert("1")</script>&\x00\x1b'
    (worker,) = TIMELINES["progressive"].workers
    named = replace(TIMELINES["progressive"], workers=(replace(worker, worker=hostile, notes=(hostile,)),))
    root = drawn(named)
    assert [element for element in root.iter() if "script" in element.tag] == []
    assert any(printable(hostile) in (element.text or "") for element in root.iter())


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for file, content in golden().items():
        (GOLDEN / file).write_text(content)
