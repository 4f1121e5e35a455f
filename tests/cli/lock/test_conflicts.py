"""How Git merges a ledger, and what is done where it could not."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.lock.conftest import (
    commit,
    empty_world,
    git,
    locked,
    refused,
    two_versions_on_two_branches,
    worker,
)


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


def test_branches_that_add_different_versions_of_a_worker_merge_by_themselves(run: Run, specs: Path) -> None:
    ledger = two_versions_on_two_branches(run, specs)
    assert git(specs.parent, "diff", "--name-only", "--diff-filter=U").splitlines() == ["specs/pay.json"]
    text = ledger.read_text()
    assert [text.count(f'"image": "pay:{tag}"') for tag in ("v1", "v2", "v3")] == [1, 1, 1]
    worker(specs, "pay", "pay:v3")
    assert run("lock", "specs", "--check").returncode == 0


def test_branches_that_begin_the_ledger_of_a_worker_merge_by_themselves(run: Run, specs: Path) -> None:
    ledger = two_versions_on_two_branches(run, specs, locked_before=False)
    text = ledger.read_text()
    assert [text.count(f'"image": "pay:{tag}"') for tag in ("v1", "v2", "v3")] == [0, 1, 1]
    worker(specs, "pay", "pay:v3")
    assert run("lock", "specs", "--check").returncode == 0


def test_attributes_that_somebody_wrote_are_left_alone(run: Run, specs: Path) -> None:
    attributes = specs / "twgen.lock" / ".gitattributes"
    attributes.parent.mkdir()
    attributes.write_text("* linguist-generated\n")
    locked(run)
    assert attributes.read_text() == "* linguist-generated\n"


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_conflict_of_a_host_that_reads_no_attributes_is_solved_by_either_side_and_lock(
    run: Run, conflict: Path, tmp_path: Path, side: str
) -> None:
    name = "specs/twgen.lock/shop.pay.yaml"
    said = (
        f"{name}:5: the file contains merge conflict markers: remove the markers to keep the versions of"
        f" both sides, or keep one side with `git checkout --ours {name}` or `--theirs`; then run"
        " `twgen lock`"
    )
    for command in (
        ("render", "specs", "--snapshot", empty_world(tmp_path)),
        ("plan", "specs"),
        ("lock", "specs"),
        ("lock", "specs", "--check"),
    ):
        refused(run(*command), 2, said)
    assert said in run("validate", "specs").stdout
    git(conflict.parents[2], "checkout", f"--{side}", name)
    locked(run)
    text = conflict.read_text()
    # the branch is that of v3, and so is the spec: theirs, v2, is deployed
    kept = [0, 1] if side == "ours" else [1, 1]
    assert [text.count(f'"image": "pay:{tag}"') for tag in ("v2", "v3")] == kept
    assert run("lock", "specs", "--check").returncode == 0
    commit(conflict.parents[2])


def test_conflict_is_also_solved_by_keeping_the_lines_of_both_sides(run: Run, conflict: Path) -> None:
    lines = [
        line
        for line in conflict.read_text().splitlines()
        if line[:7] not in ("<<<<<<<", "=======", ">>>>>>>")
    ]
    conflict.write_text("\n".join(lines))
    assert run("lock", "specs", "--check").returncode == 0


def test_specs_with_conflict_markers_say_so(run: Run, specs: Path) -> None:
    text = (specs / "pay.json").read_text()
    (specs / "pay.json").write_text(f"<<<<<<< HEAD\n{text}\n=======\n{text}\n>>>>>>> other\n")
    refused(
        run("lock", "specs"), 2, "specs/pay.json:1: the file contains merge conflict markers: resolve them"
    )


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> other"])
@pytest.mark.parametrize("line", [0, 3, 4])
def test_conflict_marker_that_stands_alone_is_refused(run: Run, specs: Path, marker: str, line: int) -> None:
    locked(run)
    path = specs / "twgen.lock" / "shop.pay.yaml"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:line], marker, *lines[line:], ""]))
    assert (
        "the file contains merge conflict markers: remove the markers to keep"
        in run("validate", "specs").stdout
    )
    refused(
        run("lock", "specs"),
        2,
        f":{line + 1}: the file contains merge conflict markers: remove the markers to keep",
    )
