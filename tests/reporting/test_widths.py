"""On a narrow terminal text is folded: nothing is cut, and no line is too long."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.cases.story import folders
from tests.reporting.reports import values
from tests.reporting.statuses import of_story
from tests.simulating.stories import GATED, PROGRESSIVE, a_worker_spec, tell
from tests.strategies import NOW, specs, worlds
from twgen.errors import StateUnavailable
from twgen.model.spec import WorkerSpec
from twgen.model.status import Status
from twgen.model.timeline import Timeline
from twgen.model.world import World
from twgen.planning.sentences import version_name
from twgen.reporting.phrases import folded_warnings, replicas_cell
from twgen.reporting.plan.text import plan_text
from twgen.reporting.status.lines import head_phrases, outlook_phrase, pods_phrase, state_phrase
from twgen.reporting.status.trees import Layout, status_text
from twgen.reporting.timeline.summary import offset, summary
from twgen.reporting.timeline.text import timeline_text

WIDTHS = (40, 60, 80)
LONG = "v2026.11.21-feature-that-has-a-name-as-long-as-a-label-may-be-1a2b"
GUIDES = str.maketrans("", "", "├└│─ \n")


def squeezed(text: str) -> str:
    """Without blanks and the guides of a tree, which folding adds and takes."""
    return text.translate(GUIDES)


def of_head(status: Status) -> Iterator[str]:
    yield from status.warnings
    for worker in status.workers:
        yield from (worker.worker, worker.temporal_namespace, worker.phase)
        yield from (text for _, text in head_phrases(worker, status.now))
        yield from folded_warnings(worker)


def of_plan(status: Status) -> Iterator[str]:
    yield from of_head(status)
    for worker in status.workers:
        for version in worker.versions:
            yield from (
                version.build_id,
                version.status,
                version.action,
                version.because,
                replicas_cell(version),
            )


def of_status(status: Status) -> Iterator[str]:
    yield from of_head(status)
    for worker in status.workers:
        for version in worker.versions:
            yield from (
                version.build_id,
                state_phrase(version, status.now),
                outlook_phrase(version, status.now),
            )
            yield pods_phrase(version) if version.cluster_was_read else ""


def of_timeline(timeline: Timeline) -> Iterator[str]:
    for worker in timeline.workers:
        yield from (worker.worker, worker.target_build_id, worker.temporal_namespace, *worker.notes)
        yield from summary(worker)
        for event in worker.events:
            yield from (version_name(event.build_id), event.says, offset(event.at))


def all_is_there(text: str, expected: Iterator[str], width: int) -> None:
    assert max(map(cell_len, text.splitlines())) <= width
    there = squeezed(text)
    assert [value for value in expected if squeezed(value) not in there] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("story", [folder.name for folder in folders()])
def test_every_value_of_a_story_is_there_at_any_width(story: str, width: int) -> None:
    try:
        status = of_story(story)
    except StateUnavailable:
        assert story == "missing-template-fails"
        return
    all_is_there(plan_text(status, colour=False, width=width), of_plan(status), width)
    all_is_there(
        status_text(status, Layout(colour=False, width=width, ascii_only=False)), of_status(status), width
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("begins", [None, NOW])
def test_every_value_of_a_simulation_is_there_at_any_width(width: int, begins: datetime | None) -> None:
    for rollout in (PROGRESSIVE, GATED):
        timeline = replace(tell([a_worker_spec(rollout, build_id=LONG)], begins=NOW), begins=begins)
        all_is_there(timeline_text(timeline, colour=False, width=width), of_timeline(timeline), width)


@given(specs, worlds(), st.sampled_from(WIDTHS))
def test_every_value_of_a_long_name_is_there_at_any_width(spec: WorkerSpec, world: World, width: int) -> None:
    status, timeline = values(replace(spec, build_id=LONG), world)
    all_is_there(plan_text(status, colour=False, width=width), of_plan(status), width)
    all_is_there(
        status_text(status, Layout(colour=False, width=width, ascii_only=False)), of_status(status), width
    )
    all_is_there(timeline_text(timeline, colour=False, width=width), of_timeline(timeline), width)
