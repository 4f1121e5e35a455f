"""`twgen import`: a folder of specs and their ledger, of what runs already."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.specs.test_imports import deployment

OBJECTS = "objects.json"


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    (tmp_path / OBJECTS).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [deployment()]}))
    return tmp_path


def test_specs_are_valid_and_recorded_and_another_import_changes_nothing(run: Run, objects: Path) -> None:
    first = run("import", OBJECTS, "--folder", "workers")
    assert (first.returncode, first.stdout) == (0, ""), first
    assert "wrote workers/connection-temporal.yaml and workers/payments.yaml" in first.stderr
    assert "recorded their targets in workers/twgen.lock" in first.stderr
    assert run("validate", "workers").returncode == 0
    assert run("lock", "workers", "--check", "-q").returncode == 0
    before = {file: file.read_text() for file in (objects / "workers").rglob("*.yaml")}
    assert len(before) == 3
    again = run("import", OBJECTS, "--folder", "workers")
    assert again.returncode == 0, again
    assert {file: file.read_text() for file in (objects / "workers").rglob("*.yaml")} == before


def test_what_people_have_written_beside_stays(run: Run, objects: Path) -> None:
    run("import", OBJECTS, "--folder", "workers")
    worker = objects / "workers" / "payments.yaml"
    worker.write_text("# of the payments team\n" + worker.read_text().replace("AllAtOnce", "Manual"))
    (objects / OBJECTS).write_text(json.dumps(deployment(image="pay:2")))
    assert run("import", OBJECTS, "--folder", "workers").returncode == 0
    text = worker.read_text()
    assert text.startswith("# of the payments team\n")
    assert "strategy: Manual" in text
    assert "image: pay:2" in text


def test_stdin_is_read_and_what_is_missing_is_told_before_it_is_locked(run: Run, tmp_path: Path) -> None:
    ended = run("import", "-", "--folder", "workers", given=json.dumps(deployment(env=[])))
    assert ended.returncode == 0, ended
    assert (
        "fill in what they do not tell (payments.yaml: spec.workerOptions.temporalNamespace" in ended.stderr
    )
    assert not (tmp_path / "workers" / "twgen.lock").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("import", OBJECTS), "--folder says where the specs are written: give one"),
        (("import", "nothing.yaml", "--folder", "w"), "nothing.yaml"),
        (("import", "service.json", "--folder", "w"), "nothing to import: service.json: Service web"),
        (("import", OBJECTS, "--folder", "several"), "several/payments.yaml holds several documents"),
        (("import", OBJECTS, "--folder", "broken"), "broken/payments.yaml cannot be edited"),
        (("import", OBJECTS, "--folder", OBJECTS), "specs cannot be written there (File exists)"),
    ],
)
def test_what_cannot_be_imported_is_said_in_a_line_and_nothing_is_written(
    run: Run, objects: Path, arguments: tuple[str, ...], told: str
) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    (objects / "service.json").write_text(json.dumps(service))
    for folder, text in (("several", "a: 1\n---\nb: 2\n"), ("broken", "a: [\n")):
        (objects / folder).mkdir()
        (objects / folder / "payments.yaml").write_text(text)
    ended = run(*arguments)
    assert ended.returncode == 2, ended
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2
    assert not (objects / "w").exists()
    assert not list(objects.rglob("connection-temporal.yaml"))
