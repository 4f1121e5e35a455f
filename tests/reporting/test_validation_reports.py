"""Reports of `validate` for CI: valid whatever stands in names and messages."""

import json
from typing import Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twgen.model.problem import DEPRECATED, Document, Problem, Rule
from twgen.reporting.problems import (
    VALIDATION,
    Located,
    Validation,
    validation_junit,
    validation_sarif,
    validation_text,
)

HOSTILE = ["\x1b[2J", "\x00", "\ufffe", "\udcff", "\u202e", "]]>", '"<&>', "\r\n", "a: b", "größer", "&#0;"]
TEXT = (
    st.text() | st.sampled_from(HOSTILE) | st.text(st.characters(categories=["Cs", "Cc", "Cf"]), max_size=4)
)


def located(file: str, path: str, message: str, line: int | None = 3) -> Located:
    return Located(Problem(Document(file, 0, {}), path, message), line)


CAN_MOVE = Rule("can-move", "The image can change.")
FOUND = Validation(
    files=("specs/a.yaml", "specs/b.yaml", "specs/c.yaml"),
    unreadable=("specs/d.yaml:7: did not find expected node content", "specs/e is a link to nothing"),
    problems=(
        located("specs/a.yaml", "spec.replicas", "is no number"),
        located("specs/a.yaml", "", "is there twice", None),
    ),
    warnings=(located("specs/b.yaml", "spec.image", CAN_MOVE("can move")),),
    deprecations=(located("specs/b.yaml", "spec.cutover", DEPRECATED("is now rollout")),),
)


def results(found: Validation) -> list[dict[str, Any]]:
    [run] = json.loads(validation_sarif(found))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    listed: list[dict[str, Any]] = run["results"]
    return listed


def test_junit_has_a_case_for_each_file_that_fails_once_with_all_that_is_wrong_in_it() -> None:
    suites = ET.fromstring(validation_junit(FOUND))  # noqa: S314 - our own
    [suite] = suites
    assert {name: suites.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
    }
    assert [case.get("file") for case in suite][:4] == [*FOUND.files, "specs/d.yaml"]
    [failure] = suite[0]
    assert failure.get("message") == "specs/a.yaml:3: spec.replicas: is no number (and 1 more)"
    assert failure.text == "specs/a.yaml:3: spec.replicas: is no number\nspecs/a.yaml: is there twice"
    assert [(item.tag, (item.text or "").count("\n")) for item in suite[1]] == [("system-out", 1)]
    assert list(suite[2]) == []
    assert [case[0].tag for case in suite[3:]] == ["error", "error"]


def test_sarif_has_rule_level_file_and_line_of_every_result() -> None:
    told = [
        (
            result["ruleId"],
            result["level"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
            result["message"]["text"],
        )
        for result in results(FOUND)
    ]
    assert told == [
        ("unreadable", "error", "specs/d.yaml", 7, "did not find expected node content"),
        ("unreadable", "error", ".", 1, "specs/e is a link to nothing"),
        ("invalid-value", "error", "specs/a.yaml", 3, "spec.replicas: is no number"),
        ("invalid-value", "error", "specs/a.yaml", 1, "is there twice"),
        ("can-move", "warning", "specs/b.yaml", 3, "spec.image: can move"),
        ("deprecated-name", "note", "specs/b.yaml", 3, "spec.cutover: is now rollout"),
    ]


def test_report_lists_the_rules_of_its_results_with_their_help() -> None:
    [run] = json.loads(validation_sarif(FOUND, "https://git.example.com/twgen"))["runs"]
    driver = run["tool"]["driver"]
    assert driver["informationUri"] == "https://git.example.com/twgen"
    assert [(rule["id"], rule["defaultConfiguration"]["level"]) for rule in driver["rules"]] == [
        ("unreadable", "error"),
        ("invalid-value", "error"),
        ("can-move", "warning"),
        ("deprecated-name", "note"),
    ]
    assert driver["rules"][2]["help"]["text"] == CAN_MOVE.help
    [run] = json.loads(validation_sarif(FOUND))["runs"]
    assert "informationUri" not in run["tool"]["driver"], "an empty address is not a URI"


def test_refused_warning_keeps_its_rule_and_is_as_bad_as_a_problem() -> None:
    found = Validation(
        files=("a.yaml", "b.yaml"),
        unreadable=(),
        problems=(located("a.yaml", "spec.replicas", "is no number", 5),),
        warnings=(),
        deprecations=(),
        refused=(
            located("b.yaml", "spec.image", CAN_MOVE("can move")),
            located("a.yaml", "spec.image", CAN_MOVE("can move"), 2),
        ),
    )
    assert [(result["ruleId"], result["level"]) for result in results(found)] == [
        ("invalid-value", "error"),
        ("can-move", "error"),
        ("can-move", "error"),
    ]
    [suite] = ET.fromstring(validation_junit(found))  # noqa: S314 - our own
    assert [case[0].get("type") for case in suite] == ["invalid", "doubtful"]
    lines = [
        "a.yaml:2: spec.image: can move",
        "a.yaml:5: spec.replicas: is no number",
        "b.yaml:3: spec.image: can move",
    ]
    assert validation_text(found).splitlines() == lines
    problems = VALIDATION.write(found)["problems"]
    assert [(item["file"], item["line"]) for item in problems] == [
        ("a.yaml", 2),
        ("a.yaml", 5),
        ("b.yaml", 3),
    ]


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("./specs/../a b.yaml", "a%20b.yaml"),
        ("/specs/größe.yaml", "file:///specs/gr%C3%B6%C3%9Fe.yaml"),
        ("c:d.yaml", "c%3Ad.yaml"),
        ("a\udcff.yaml", "a%FF.yaml"),
        ("-", "stdin"),
    ],
)
def test_file_in_sarif_is_a_uri(file: str, uri: str) -> None:
    [result] = results(Validation((file,), (), (located(file, "spec", "is wrong"),), (), ()))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


FILES = st.binary(min_size=1).map(lambda name: name.decode(errors="surrogateescape"))
"""As the system gives names that are no UTF-8."""


@given(FILES, TEXT, TEXT)
def test_reports_are_well_formed_and_hold_nothing_that_steers_a_terminal(
    file: str, path: str, message: str
) -> None:
    problem = located(file, path, message)
    found = Validation((file,), (f"{file}: {message}",), (problem,), (problem,), ())
    for case in ET.fromstring(validation_junit(found)).iter():  # noqa: S314 - our own
        for text in (*case.attrib.values(), case.text or ""):
            assert text.replace("\n", "").isprintable()
    for result in results(found):
        assert result["message"]["text"].isprintable()
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.isascii()
        assert unquote_to_bytes(uri)
