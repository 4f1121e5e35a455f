"""The tree of `twgen status -w`, cut to the rows of a terminal."""

from dataclasses import replace

import pytest
from rich.text import Text

from tests.reporting.statuses import of_story, tree
from twgen.model.plan import Phase
from twgen.model.status import Status
from twgen.reporting.layout import lines_of_rows
from twgen.reporting.status.trees import Layout, status_text


def fleet(**phases: Phase) -> Status:
    """A worker of each name in that phase."""
    one = of_story("mid-ramp-waits")
    (worker,) = one.workers
    workers = (replace(worker, worker=f"shop/{name}", phase=phase) for name, phase in phases.items())
    return replace(one, workers=tuple(workers))


def in_rows(status: Status, rows: int, width: int = 80) -> list[str]:
    """The lines of the tree where there are so many rows."""
    lines = status_text(status, Layout(colour=False, width=width, ascii_only=False, rows=rows)).splitlines()
    assert len(lines) <= rows
    return lines


WORKERS = fleet(a=Phase.SETTLED, b=Phase.MOVING, c=Phase.WAITING, d=Phase.BLOCKED, e=Phase.SETTLED)


def test_workers_that_fit_are_told_in_full_and_worst_first() -> None:
    full = tree(WORKERS)
    assert "\n".join(in_rows(WORKERS, 60)) + "\n" == full
    titles = [line.split()[1] for line in full.splitlines() if line.endswith("Temporal namespace default")]
    assert titles == ["shop/d", "shop/c", "shop/b", "shop/a", "shop/e"]


def test_workers_that_do_not_fit_are_told_worst_first() -> None:
    lines = in_rows(WORKERS, 18)
    assert lines[0] == "5 workers: 1 Blocked, 1 Moving, 1 Waiting, 2 Settled"
    assert [line.split()[1] for line in lines if line.endswith("Temporal namespace default")] == [
        "shop/d",
        "shop/c",
    ]
    assert lines[-2:] == ["and 1 more: 1 Moving: shop/b", "✓ 2 Settled: shop/a, shop/e"]


def a_line_each(status: Status, rows: int | None = None, width: int = 80) -> list[str]:
    layout = Layout(colour=False, width=width, ascii_only=False, rows=rows, detailed=False)
    return status_text(status, layout).splitlines()


def test_several_workers_have_a_line_each_and_the_worst_is_last() -> None:
    head, *lines = a_line_each(WORKERS)
    assert head.startswith("5 workers: 1 Blocked, 1 Moving, 1 Waiting, 2 Settled")
    assert head.endswith("; details: -v")
    assert [line.split()[1] for line in lines] == ["shop/a", "shop/e", "shop/b", "shop/c", "shop/d"]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("width", range(30, 90, 7))
def test_line_that_is_too_long_ends_after_a_whole_word(width: int) -> None:
    words = ["it", "is", "the", "target,", "and", "a", "part", "of", "its", "workflows", "waits"]
    [line] = lines_of_rows([[Text("✗"), Text("shop/payments"), Text(" ".join(words))]], width)
    name, *shown = line.plain.removeprefix("✗  ").removesuffix(" …").split()
    assert name == "shop/payments"
    assert shown == words[: len(shown)]
    assert len(line.plain) <= width
    following = words[len(shown) : len(shown) + 1]
    assert not following or len(line.plain) + len(following[0]) + 1 > width, "there was room for another word"


def test_single_word_that_is_too_long_is_cut() -> None:
    [line] = lines_of_rows([[Text("payments" * 5)]], 20)
    assert line.plain == f"{('payments' * 5)[:18]} …"


def test_one_worker_has_its_tree_without_asking_for_details() -> None:
    alone = fleet(a=Phase.MOVING)
    assert a_line_each(alone) == tree(alone).splitlines()


def test_lines_that_have_no_room_are_those_of_the_least_urgent() -> None:
    _, left_out, *lines = a_line_each(WORKERS, rows=5)
    assert left_out == "2 more: 2 Settled: shop/a, shop/e"
    assert [line.split()[1] for line in lines] == ["shop/b", "shop/c", "shop/d"]


def test_warnings_follow_the_lines_of_the_workers() -> None:
    assert a_line_each(replace(WORKERS, warnings=("something is odd",)))[-1] == "warning: something is odd"


def test_target_that_nobody_serves_comes_before_all() -> None:
    first = WORKERS.workers[0]
    alarmed = replace(first, unserved="nobody serves its new workflows")
    lines = in_rows(replace(WORKERS, workers=(*WORKERS.workers[1:], alarmed)), 12)
    assert lines[2].startswith("✗ shop/a  Settled")
    assert lines[3] == "  nobody serves its new workflows"


def test_warnings_that_do_not_fit_are_counted() -> None:
    lines = in_rows(replace(WORKERS, warnings=("one", "another")), 18)
    assert lines[-1] == "and 2 warnings"


def test_settled_workers_that_do_not_fit_a_line_are_counted() -> None:
    names = {f"worker-{number:02}": Phase.SETTLED for number in range(40)}
    lines = in_rows(fleet(blocked=Phase.BLOCKED, **names), 12)
    assert lines[-1].startswith("✓ 40 Settled: shop/worker-00, shop/worker-01")
    assert lines[-1].endswith(" more")
    assert len(lines[-1]) <= 80


@pytest.mark.parametrize("rows", [8, 12, 20])
def test_versions_of_one_worker_that_do_not_fit_are_counted(rows: int) -> None:
    one = of_story("mid-ramp-waits")
    (worker,) = one.workers
    *_, last = worker.versions
    older = tuple(replace(last, build_id=f"v0-{number}") for number in range(70))
    lines = in_rows(replace(one, workers=(replace(worker, versions=(*worker.versions, *older)),)), rows)
    assert lines[4].startswith("├── v2.0.1-c656")
    shown = sum(line.startswith("├──") for line in lines)
    assert lines[-1] == f"└── and {72 - shown} more versions"
