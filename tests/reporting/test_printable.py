"""No name from a server or a file moves the cursor, hides text or adds a line, in any report for people."""

import sys
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.reports import a_status, reports, values, with_texts
from tests.reporting.statuses import of_story
from tests.simulating.stories import tell
from tests.strategies import NOW, specs, worlds
from twgen.model import credentials
from twgen.model.problem import Document, Problem
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.records.rollout_status import STATUS
from twgen.reporting.json_text import json_text
from twgen.reporting.printable import printable, printable_copy
from twgen.reporting.problems import problem_lines
from twgen.reporting.status.lines import status_lines
from twgen.reporting.timeline.picture import timeline_svg

CONTROLS = "\x00\x07\x08\t\n\r\x1b\x7f\x85"
HIDDEN = "\xa0\xad\u200b\u200d\u202e\u2066\u2028\u2069\ufeff\ufffe\U000e0041"
hostile_texts = st.text(st.sampled_from(CONTROLS + HIDDEN) | st.characters(), min_size=1, max_size=8)


@given(specs, worlds(), hostile_texts, st.sampled_from((40, 80)))
def test_no_report_for_people_prints_a_character_that_is_not_seen(
    spec: WorkerSpec, world: World, hostile: str, width: int
) -> None:
    poisoned = [with_texts(value, lambda text: f"{text}{hostile}") for value in values(spec, world)]
    for name, text in reports(*poisoned, width=width).items():
        unseen = {character for character in text if not character.isprintable()} - {"\n"}
        assert unseen == set(), name


@given(specs, worlds())
def test_line_break_in_a_name_makes_no_line_of_a_status(spec: WorkerSpec, world: World) -> None:
    status = a_status(spec, world)
    poisoned = with_texts(status, lambda text: f"{text}\nshop/other: Settled")
    longer = with_texts(status, lambda text: f"{text}; shop/other: Settled")
    assert len(status_lines(poisoned)) == len(status_lines(longer))
    assert [line.text for line in status_lines(poisoned) if "\n" in line.text] == []


@given(specs, worlds(), hostile_texts)
def test_picture_with_any_name_is_xml(spec: WorkerSpec, world: World, hostile: str) -> None:
    poisoned = with_texts(tell([spec], world, NOW), lambda text: f"<script>{text}&{hostile}")
    picture = ET.fromstring(timeline_svg(poisoned))  # noqa: S314 - our own
    assert [element.tag for element in picture.iter() if "script" in element.tag] == []


def test_every_character_that_is_not_printable_is_escaped() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert printable(every).isprintable()
    assert printable("v1.4.2-458f größer") == "v1.4.2-458f größer"


def test_value_without_such_a_character_is_not_copied() -> None:
    status = of_story("mid-ramp")
    assert printable_copy(status) is status


def test_problem_of_a_file_is_one_line_whatever_it_is_called() -> None:
    problem = Problem(Document("a\n\x1b[2Jb.yaml", 0, {}), "spec\u202e", "is\rwrong")
    assert problem_lines([(problem, 3)]) == [r"a\n\x1b[2Jb.yaml:3: spec\u202e: is\rwrong"]


@given(specs, worlds(), st.sampled_from((40, 80)))
def test_no_report_shows_a_credential_that_was_sent(spec: WorkerSpec, world: World, width: int) -> None:
    key = "SECRETKEY-abcdef0123456789"
    poisoned = [with_texts(value, lambda text: f"{text} {key}") for value in values(spec, world)]
    status, _ = poisoned
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_sent", {key: None})
        found = {**reports(*poisoned, width=width), "JSON": json_text(STATUS.write(status))}
    assert not [name for name, text in found.items() if "SECRETKEY" in text]
    assert "SECRETKEY" in json_text(STATUS.write(status))
