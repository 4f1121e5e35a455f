"""The Status document, as tools read it."""

import pytest

from tests.cases.story import folders
from tests.json_schemas import schema_problems
from tests.planning.situations import MINUTE, drained, live, routing, situation, temporal, version
from tests.reporting.statuses import of_situation, of_story
from twgen.errors import StateUnavailable
from twgen.model.problem import Document
from twgen.model.temporal import VersionStatus as S
from twgen.records.rollout_status import STATUS


@pytest.mark.parametrize("story", [folder.name for folder in folders()])
def test_document_of_a_story_has_the_promised_form(story: str) -> None:
    if story == "missing-template-fails":
        with pytest.raises(StateUnavailable):
            of_story(story)
        return
    document = STATUS.write(of_story(story))
    assert list(schema_problems([Document("status", 0, document)])) == []


def test_next_change_has_its_time() -> None:
    (worker,) = STATUS.write(of_story("mid-ramp-waits"))["workers"]
    assert worker["next"] == {
        "action": "SetRamp",
        "buildID": "v2.0.1-c656",
        "percentage": 75,
        "at": "2026-11-21T12:18:00Z",
    }
    assert [(version["buildID"], version["percentage"]) for version in worker["versions"]] == [
        ("v2.0.1-c656", 25),
        ("v1.4.2-6964", 75),
    ]


def test_next_change_that_is_due_has_none() -> None:
    (worker,) = STATUS.write(of_story("mid-ramp"))["workers"]
    assert (worker["next"]["percentage"], worker["next"]["at"]) == (75, None)


def test_gate_that_has_not_started_is_told() -> None:
    (worker,) = STATUS.write(of_story("gate-starts"))["workers"]
    assert [gate["status"] for gate in worker["gates"]] == ["NotStarted"]


def test_sunset_has_its_time() -> None:
    says = temporal(version("v3", S.CURRENT), drained(20 * MINUTE), traffic=routing("v3"))
    (worker,) = STATUS.write(of_situation(situation(says, [live("v3"), live("v1")])))["workers"]
    [current, old] = worker["versions"]
    assert current["next"] is None
    assert old["next"] == {"action": "ScaleDown", "at": "2026-11-21T12:40:00Z"}
    assert old["since"] == "2026-11-21T11:40:00Z"
    assert (old["pods"]["available"], old["pods"]["wanted"]) == (3, 3)
