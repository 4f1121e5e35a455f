"""`twgen status` as people use it, offline."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import TWGEN, Run
from tests.json_schemas import schema_problems
from tests.terminal import twgen_on_terminal, without_colours
from twgen.model.problem import Document

WORLD = ("--snapshot", "snapshot.json", "--now", "2026-11-21T12:00:00Z", "--identity", "twc")


@pytest.mark.usefixtures("story")
def test_status_that_is_piped_is_a_line_for_each_worker_and_version(run: Run) -> None:
    ended = run("status", "specs", *WORLD)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line.split(":")[0].split()[0] for line in ended.stdout.splitlines()] == ["default/helloworld"] * 3


@pytest.mark.usefixtures("story")
def test_status_in_json_has_the_promised_form(run: Run) -> None:
    document = json.loads(run("status", "specs", *WORLD, "-o", "json").stdout)
    assert document["kind"] == "Status"
    assert list(schema_problems([Document("status", 0, document)])) == []


@pytest.mark.usefixtures("story")
def test_colour_on_demand_makes_a_tree_of_it(run: Run) -> None:
    assert "\x1b[" not in run("status", "specs", *WORLD).stdout
    told = run("status", "specs", *WORLD, "--color", "always").stdout
    assert "\x1b[" in told
    assert "└── " in told


@pytest.mark.parametrize(("encoding", "guide"), [("utf-8", "└── "), ("ascii", "`-- "), ("latin-1", "`-- ")])
def test_tree_has_the_characters_that_stdout_can_hold(story: Path, encoding: str, guide: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}  # noqa: TID251 - the program's own is made here
    command = [TWGEN, "status", "specs", *WORLD, "--color", "always"]
    assert guide in subprocess.check_output(command, cwd=story, env=environment, encoding=encoding)


@pytest.mark.parametrize("columns", [80, 120])
def test_tree_fits_the_terminal(story: Path, columns: int) -> None:
    code, shown = twgen_on_terminal(["status", "specs", *WORLD], story, columns)
    assert code == 0
    assert "\x1b[" in shown
    lines = without_colours(shown).splitlines()
    assert lines[0].startswith("→ default/helloworld  Moving")
    assert max(map(len, lines)) <= columns


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-w", *WORLD[:2]), "--watch reads servers repeatedly"),
        (("-w", *WORLD[2:4]), "--watch reads servers repeatedly"),
        (("-w", "--interval", "soon"), "--interval 'soon' is not a duration such as 90s or 1h30m"),
        (("-w", "--interval", "0"), "--interval '0' is zero, which leaves no time"),
        (("--within", "30m", *WORLD), "--within needs -w: without it, the command does not wait"),
        (("-o", "yaml", *WORLD), "'yaml' is not one of"),
    ],
)
def test_wrong_usage_is_one_line_that_says_so(run: Run, options: tuple[str, ...], message: str) -> None:
    ended = run("status", "specs", *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.usefixtures("story")
def test_snapshot_that_is_not_there_is_told(run: Run) -> None:
    ended = run("status", "specs", "--snapshot", "nowhere.json")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "nowhere.json" in ended.stderr


@pytest.mark.usefixtures("story")
def test_first_read_that_fails_ends_the_watch(run: Run) -> None:
    ended = run("status", "specs", "-w", "--no-cluster", "--timeout", "1s")
    # a busy machine may be out of time before it knows that nobody is there
    assert (ended.returncode in {3, 4}, ended.stdout) == (True, "")
    assert ended.stderr.count("\n") == 1


@pytest.mark.usefixtures("story")
def test_watch_of_a_folder_without_a_worker_is_no_rollout_that_has_ended(run: Run, story: Path) -> None:
    (story / "specs" / "workerdeployment.json").unlink()
    ended = run("status", "specs", "-w", "--no-cluster")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no worker found in specs" in ended.stderr


@pytest.mark.usefixtures("story")
def test_page_has_the_title_that_is_given_and_a_snapshot_has_no_context(run: Run) -> None:
    for given, title in (((), "Temporal workers"), (("--title", "prod & eu"), "prod &amp; eu")):
        ended = run("status", "specs", *WORLD, "-o", "html", *given)
        assert ended.returncode == 0, ended
        assert f"<title>{title}</title>" in ended.stdout
        assert f"<h1>{title}</h1>" in ended.stdout
