"""Whatever is wrong: one clear line, the right exit code, and nothing on stdout."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import TWGEN, Run, edited

RENDER = ("render", "specs", "--snapshot", "snapshot.json")


def refused(ended: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("warning: ")][-1:]
    for part in parts:
        assert part in ended.stderr, ended.stderr
    assert line.startswith("twgen: ")


def test_folder_without_documents(run: Run) -> None:
    refused(run("render"), 2, "no document found")


def test_not_yaml(run: Run, story: Path) -> None:
    (story / "specs" / "a.yaml").write_text("a: [1\nb: {")
    refused(run(*RENDER), 2, "specs/a.yaml:1: the [ that opens here is not closed")


def test_spec_without_connection(run: Run, story: Path) -> None:
    (story / "specs" / "connection.json").unlink()
    refused(run(*RENDER), 2, "spec.workerOptions.connectionRef.name: there is no Connection 'conn'")


@pytest.mark.parametrize("knows_it", [True, False])
def test_snapshot_without_what_temporal_says(run: Run, story: Path, *, knows_it: bool) -> None:
    with edited(story / "snapshot.json") as snapshot:
        del snapshot["workers"][0]["temporal"]
        snapshot["workers"] = snapshot["workers"] if knows_it else []
    refused(run(*RENDER), 3, "has no Temporal data about default/helloworld")


def test_snapshot_of_a_newer_format(run: Run, story: Path) -> None:
    with edited(story / "snapshot.json") as snapshot:
        snapshot["apiVersion"] = "twgen.io/v2"
    refused(run(*RENDER), 3, "twgen.io/v2", "upgrade")


def test_no_snapshot_file(run: Run, story: Path) -> None:
    (story / "snapshot.json").unlink()
    refused(run(*RENDER), 3, "snapshot.json")


def test_sixteen_megabytes_of_nested_yaml(run: Run, story: Path) -> None:
    (story / "specs" / "deep.yaml").write_text("[" * 16_000_000)
    started = time.monotonic()
    refused(run(*RENDER), 2, "specs/deep.yaml:1", "nested deeper")
    assert time.monotonic() - started < 30


def test_alias_bomb(run: Run, story: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (story / "specs" / "bomb.yaml").write_text("\n".join(lines))
    refused(run(*RENDER), 2, "specs/bomb.yaml:")


def test_link_out_of_the_folder(run: Run, story: Path) -> None:
    (story / "specs" / "passwords.yaml").symlink_to("/etc/passwd")
    refused(run(*RENDER), 2, "passwords.yaml is a link out of the folder")


def test_documents_that_render_to_nothing(run: Run, story: Path) -> None:
    (story / "specs" / "workerdeployment.json").unlink()
    refused(run(*RENDER), 2, "render to nothing")


def test_all_problems_of_all_files_at_once(run: Run, story: Path) -> None:
    (story / "specs" / "one.yaml").write_text(
        "apiVersion: temporal.io/v1alpha1\nkind: Connection\nspec: {}\n"
    )
    with edited(story / "specs" / "workerdeployment.json") as worker:
        worker["spec"]["replicas"] = "2"
    ended = run(*RENDER)
    refused(ended, 2, "specs/one.yaml:1: metadata.name: is required", "spec.hostPort: is required")
    assert ": spec.replicas: must be a whole number, not a string" in ended.stderr


def test_closed_pipe(story: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen([TWGEN, *RENDER], cwd=story, stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        _, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (141, b"")
