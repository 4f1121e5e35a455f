"""How Git merges a ledger, and how `twgen lock` mends what it could not."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.lock.conftest import commit, empty_world, git, locked, refused, worker


@pytest.mark.parametrize("names", [("pay", "ship"), ("ship", "stow")], ids=["one known", "both new"])
def test_branches_that_lock_different_workers_merge_without_conflict(
    run: Run, specs: Path, names: tuple[str, str]
) -> None:
    root = specs.parent
    locked(run)
    commit(root)
    for name in names:
        git(root, "checkout", "-q", "-b", name, "main")
        worker(specs, name, f"{name}:v2")
        locked(run)
        commit(root)
    git(root, "checkout", "-q", "main")
    for name in names:
        git(root, "merge", "-q", "--no-edit", name)
    assert run("lock", "specs", "--check").returncode == 0


def test_branches_that_lock_the_same_worker_conflict_in_one_place(conflict: Path) -> None:
    unmerged = git(conflict.parents[2], "diff", "--name-only", "--diff-filter=U").splitlines()
    assert unmerged == ["specs/pay.json", "specs/twgen.lock/shop.pay.yaml"]
    assert conflict.read_text().count("<<<<<<<") == 1


def test_ledger_with_conflict_markers_says_what_to_run(run: Run, conflict: Path, tmp_path: Path) -> None:
    for command in (("render", "specs", "--snapshot", empty_world(tmp_path)), ("plan", "specs")):
        refused(
            run(*command),
            2,
            "specs/twgen.lock/shop.pay.yaml:9: a merge left conflict markers: run `twgen lock`",
        )
    refused(
        run("lock", "specs", "--check"),
        1,
        f"{conflict.name} has conflict markers of a merge: run `twgen lock`",
    )
    assert "<<<<<<<" in conflict.read_text()


def test_lock_mends_a_conflict_and_keeps_the_versions_of_both_sides(run: Run, conflict: Path) -> None:
    ended = run("lock", "specs")
    said = (
        f"{conflict.relative_to(conflict.parents[2])}: mended the conflict of a merge; the versions of both"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", f"{said} sides are kept\n")
    text = conflict.read_text()
    assert "<<<<<<<" not in text
    assert [text.count(f'"image": "pay:{tag}"') for tag in ("v1", "v2", "v3")] == [1, 1, 1]
    assert run("lock", "specs", "--check").returncode == 0


def test_specs_with_conflict_markers_say_so(run: Run, specs: Path) -> None:
    text = (specs / "pay.json").read_text()
    (specs / "pay.json").write_text(f"<<<<<<< HEAD\n{text}\n=======\n{text}\n>>>>>>> other\n")
    refused(run("lock", "specs"), 2, "specs/pay.json:1: a merge left conflict markers: resolve them")


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> other"])
@pytest.mark.parametrize("line", [0, 4, 7])
def test_conflict_marker_that_stands_alone_is_mended_by_what_is_said(
    run: Run, specs: Path, marker: str, line: int
) -> None:
    locked(run)
    path = specs / "twgen.lock" / "shop.pay.yaml"
    ledger = path.read_text()
    lines = ledger.splitlines()
    path.write_text("\n".join([*lines[:line], marker, *lines[line:], ""]))
    assert "a merge left conflict markers: run `twgen lock`" in run("validate", "specs").stdout
    refused(
        run("lock", "specs", "--check"), 1, "shop.pay.yaml has conflict markers of a merge: run `twgen lock`"
    )
    locked(run)
    assert path.read_text() == ledger


def test_nothing_is_mended_beside_what_is_wrong(run: Run, conflict: Path) -> None:
    before = conflict.read_text()
    (conflict.parents[1] / "broken.yaml").write_text("a: [\n")
    refused(
        run("lock", "specs"),
        2,
        "specs/broken.yaml:2: a [ or { is not closed before this, or a value is missing",
    )
    assert conflict.read_text() == before
