"""Which file `twgen lock` records a version in, wherever it runs."""

import json
import subprocess
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import TWGEN, Run
from tests.cli.lock.conftest import CONNECTION, locked, worker

PAY = "twgen.lock/shop.pay.yaml"


def ledgers(folder: Path) -> list[str]:
    """All files of all ledgers below a folder, but those for Git."""
    found = (file for file in folder.rglob("*") if "twgen.lock" in file.parts and file.is_file())
    return sorted(str(file.relative_to(folder)) for file in found if file.name != ".gitattributes")


def images(file: Path) -> list[str]:
    """Of all versions that a ledger file has."""
    return [tag for tag in ("v1", "v2", "v3") if f'"image": "pay:{tag}"' in file.read_text()]


@pytest.mark.parametrize("place", [".", "specs", "specs/pay.json", "specs/deep/.."])
def test_new_worker_gets_its_file_beside_its_spec_wherever_lock_runs(
    run: Run, specs: Path, place: str
) -> None:
    (specs / "deep").mkdir()
    more = ["specs/connection.json"] if place.endswith(".json") else []
    locked(run, place, *more)
    assert ledgers(specs.parent) == [f"specs/{PAY}"]
    assert (specs / "twgen.lock" / ".gitattributes").is_file()
    for paths in ((".",), ("specs",), ("specs/pay.json", "specs/connection.json")):
        assert run("lock", *paths, "--check").returncode == 0, paths


def test_version_is_recorded_in_the_ledger_that_has_its_worker(run: Run, specs: Path) -> None:
    locked(run, "specs")
    worker(specs, "pay", "pay:v2")
    locked(run, ".")
    assert ledgers(specs.parent) == [f"specs/{PAY}"]
    assert images(specs / PAY) == ["v1", "v2"]
    # one for many folders, as its people have it: whoever renders reads it there
    (specs / "twgen.lock").rename(specs.parent / "twgen.lock")
    worker(specs, "pay", "pay:v3")
    locked(run, ".")
    assert ledgers(specs.parent) == [PAY]
    assert images(specs.parent / PAY) == ["v1", "v2", "v3"]


def test_workers_of_a_folder_share_a_ledger_and_those_of_others_have_their_own(run: Run, specs: Path) -> None:
    root = specs.parent
    (root / "mails").mkdir()
    worker(specs, "stow", "stow:v1")
    worker(root / "mails", "mail", "mail:v1")
    locked(run, "specs", "mails")
    assert ledgers(root) == [
        f"mails/{PAY.replace('pay', 'mail')}",
        f"specs/{PAY}",
        "specs/twgen.lock/shop.stow.yaml",
    ]
    for folder in (specs, root / "mails"):
        assert (folder / "twgen.lock" / ".gitattributes").is_file()
    (root / "mails" / "connection.json").write_text(json.dumps(CONNECTION))
    for folder in ("specs", "mails"):
        assert run("lock", folder, "--check").returncode == 0


def test_worker_in_two_ledgers_goes_on_in_the_nearer_one_which_gets_what_it_lacks(
    run: Run, specs: Path
) -> None:
    root = specs.parent
    locked(run, "specs")
    (specs / "twgen.lock").rename(root / "aside")
    worker(specs, "pay", "pay:v2", build_id="two")
    locked(run, "specs")
    # the newer version stands in the ledger that whoever reads the folder of the spec does not read
    (specs / "twgen.lock").rename(root / "twgen.lock")
    (root / "aside").rename(specs / "twgen.lock")
    said = (
        f"warning: shop/pay is also recorded in {PAY}: new versions go to specs/{PAY},"
        " which is nearer to its spec; move all lines there, and remove it"
    )
    checked = run("lock", ".", "--check")
    assert checked.returncode == 1
    assert said in checked.stderr.splitlines()
    assert f"specs/{PAY} is outdated: run `twgen lock .`" in checked.stderr
    ended = run("lock", ".")
    assert ended.stderr.splitlines() == [said, f"recorded shop/pay two in specs/{PAY}"]
    assert images(specs / PAY) == ["v1", "v2"]
    assert images(root / PAY) == ["v2"]
    # what a build ID stands for changes in both: files that contradict each other are refused
    worker(specs, "pay", "pay:v3", build_id="two")
    locked(run, ".")
    assert (images(specs / PAY), images(root / PAY)) == (["v1", "v3"], ["v3"])
    assert run("lock", ".", "--check", "-q").stderr == ""


def test_two_files_of_one_ledger_are_not_told_of_and_the_one_of_its_name_is_gone_on_with(
    run: Run, specs: Path
) -> None:
    locked(run)
    (specs / PAY).rename(specs / "twgen.lock" / "archive.yaml")
    worker(specs, "pay", "pay:v2")
    locked(run)
    assert ledgers(specs) == ["twgen.lock/archive.yaml"]
    (specs / "twgen.lock" / "archive.yaml").rename(specs.parent / "archive.yaml")
    worker(specs, "pay", "pay:v3")
    locked(run)
    (specs.parent / "archive.yaml").rename(specs / "twgen.lock" / "archive.yaml")
    worker(specs, "pay", "pay:v1", build_id="one")
    assert run("lock", "specs").stderr == f"recorded shop/pay one in specs/{PAY}\n"


def test_ledger_of_what_comes_from_no_file_is_that_of_the_first_path(run: Run, specs: Path) -> None:
    root = specs.parent
    documents = "\n---\n".join(file.read_text() for file in sorted(specs.glob("*.json")))
    assert run("lock", "-", given=documents).returncode == 0
    assert ledgers(root) == [PAY]
    (root / PAY).unlink()
    (root / "others").mkdir()
    (root / "others" / "connection.json").write_text(json.dumps(CONNECTION))
    (specs / "connection.json").unlink()
    command = ["bash", "-c", '"$0" lock others <(cat specs/pay.json)', TWGEN]
    ended = subprocess.run(command, cwd=root, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ledgers(root) == [f"others/{PAY}"]


def test_version_that_stdin_has_recorded_is_recorded_nowhere_else(run: Run, specs: Path) -> None:
    locked(run)
    files = [*sorted(specs.glob("*.json")), specs / PAY]
    documents = "\n---\n".join(file.read_text() for file in files)
    specs.rename(specs.with_name("away"))
    ended = run("lock", "-", given=documents)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not (specs.parent / "twgen.lock").exists()


def test_version_that_was_locked_at_the_root_comes_back_where_the_folder_alone_is_read(
    run: Run, specs: Path
) -> None:
    for tag in ("v1", "v2"):
        worker(specs, "pay", f"pay:{tag}", build_id=tag)
        locked(run, ".")
    found = {"routing": {}, "versions": [{"buildID": "v1", "status": "Draining"}]}
    known = {"name": "shop/pay", "temporalNamespace": "default", "temporal": found}
    head = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-11-21T12:00:00Z"}
    (specs.parent / "world.json").write_text(json.dumps({**head, "workers": [known]}))
    for paths in (("specs",), (".",), ("specs/pay.json", "specs/connection.json")):
        ended = run("render", *paths, "--snapshot", "world.json")
        assert "name: pay-v1\n" in ended.stdout, ended.stderr
