"""The report of what holds versions, in each of its forms."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.strategies import NOW
from twgen.model.draining import AGES, AgeRange, DrainReport, VersionInUse, WorkerInUse, WorkflowGroup
from twgen.model.temporal import VersionStatus
from twgen.reporting.draining import DRAIN_REPORT, draining_markdown, draining_text

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "drainreport.json").read_text())
)


def ages(*numbers: int) -> tuple[AgeRange, ...]:
    return tuple(map(AgeRange, (*AGES, None), numbers))


GROUPS = (WorkflowGroup("Order", "payments", 40), WorkflowGroup("Checkout", "payments", 10))


def held(**facts: Any) -> VersionInUse:
    told: dict[str, Any] = {
        "build_id": "v1",
        "status": VersionStatus.DRAINING,
        "number": 50,
        "groups": GROUPS,
        "grouped": 50,
        "oldest": 41 * DAY + 3 * HOUR,
        "ages": ages(0, 2, 14, 21, 13),
        "failing": 3,
        "paused": 0,
        "waiting_for_child": 10,
        "looked_at": 50,
        "replicas": 3,
        "cpu": 1.5,
        "memory": 3 * 2**30,
        "ends_within": (6 * DAY + 2 * HOUR, 19 * DAY + 11 * HOUR),
    }
    return VersionInUse(**told | facts)


NOTHING: dict[str, Any] = {
    "number": 0,
    "groups": (),
    "grouped": 0,
    "oldest": None,
    "ages": ages(0, 0, 0, 0, 0),
    "failing": 0,
    "waiting_for_child": 0,
    "looked_at": 0,
    "ends_within": None,
}
NOT_COUNTED = NOTHING | {"number": None, "ages": None, "unknown_because": "they are not listed"}


def test_report_names_what_was_not_read_and_does_not_say_that_all_is_well() -> None:
    partial = replace(report(), unread=("shop/mail: Temporal at a:7233 does not answer",))
    SCHEMA.validate(DRAIN_REPORT.write(partial))
    assert DRAIN_REPORT.write(partial)["unread"] == list(partial.unread)
    for told in (draining_text(partial), draining_markdown(partial)):
        assert "o old version that could be read has workflows or pods" in told
        assert "ot read:" in told
        assert "shop/mail: Temporal at a:7233 does not answer" in told


def report(*versions: VersionInUse) -> DrainReport:
    return DrainReport(NOW, 7 * DAY, (WorkerInUse("shop/payments", "default", versions),))


def test_page_shows_what_the_text_says() -> None:
    assert draining_text(report(held())) in (Path(__file__).parents[2] / "docs" / "draining.md").read_text()


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"number": 9000, "looked_at": 100, "grouped": 5000}, "  the newest 5000 of them:"),
        ({"number": 9000, "looked_at": 100}, "10 waiting for a child workflow (among the oldest 100)"),
        ({"groups": tuple(WorkflowGroup(f"T{n}", "q", 1) for n in range(13))}, "        3  of 3 other kinds"),
        ({"ends_within": None, "unknown_because": "why"}, "  the time until it is drained is not known: why"),
        ({"oldest": None, "replicas": None}, "v1: Draining, 50 workflows are pinned to it\n"),
        ({"cpu": 0.0, "memory": None}, "; it still has 3 pods\n"),
        (NOT_COUNTED, "v1: Draining, its workflows were not counted; it still has 3 pods"),
        (NOT_COUNTED | {"number": 3}, "v1: Draining, 3 workflows are pinned to it; it still has 3 pods"),
        (NOTHING, "no workflow is pinned to it, but Temporal has not detected this yet; it still has 3 pods"),
        (
            NOTHING | {"status": VersionStatus.DRAINED},
            "v1: Drained, no workflow is pinned to it; it still has",
        ),
    ],
)
def test_text_says_what_is_not_known_or_not_all(facts: dict[str, Any], line: str) -> None:
    assert line in draining_text(report(held(**facts)))
    assert list(SCHEMA.iter_errors(DRAIN_REPORT.write(report(held(**facts))))) == []


def test_lines_fit_a_terminal_and_say_the_same() -> None:
    text = draining_text(report(held()), width=60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.split() == draining_text(report(held())).split()


def test_name_that_a_terminal_would_carry_out_is_shown_as_text() -> None:
    groups = (WorkflowGroup("a\x1b[2Jb", "q|r", 1),)
    assert "\x1b" not in draining_text(report(held(groups=groups)))
    evil = held(build_id="v|1")
    assert "v|1" not in draining_markdown(report(evil))


def test_markdown_is_a_table_for_each_worker() -> None:
    text = draining_markdown(report(held()))
    assert text.startswith("### shop/payments\n\n| version | status |")
    assert "| `v1` | Draining | 50 | 41d 3h | 3 pods (1.5 CPU, 3 GiB) | 6d 2h to 19d 11h, " in text
    assert draining_markdown(report()) == "No old version has workflows or pods.\n"
    assert "| `v1` | Draining | - | - |" in draining_markdown(report(held(**NOT_COUNTED)))
    assert draining_text(report()) == "no old version has workflows or pods\n"


def test_document_is_as_its_schema_says() -> None:
    assert list(SCHEMA.iter_errors(DRAIN_REPORT.write(report(held(), held(**NOTHING))))) == []
