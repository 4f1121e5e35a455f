"""`twgen lock`: what it records, how Git merges it, and how it ends when something is in its way."""

import fcntl
import json
import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import TWGEN, Run
from tests.cli.lock.conftest import commit, empty_world, git, locked, refused, worker


def test_lock_records_the_target_and_check_says_when_it_is_not_recorded(run: Run, specs: Path) -> None:
    refused(
        run("lock", "specs", "--check"),
        1,
        "specs/twgen.lock/shop.pay.yaml is outdated: run `twgen lock specs` and commit it",
    )
    locked(run)
    assert run("lock", "specs", "--check").returncode == 0
    ledger = (specs / "twgen.lock" / "shop.pay.yaml").read_text()
    locked(run)
    assert (specs / "twgen.lock" / "shop.pay.yaml").read_text() == ledger
    worker(specs, "pay", "pay:v2")
    assert run("lock", "specs", "--check").returncode == 1
    locked(run)
    assert (specs / "twgen.lock" / "shop.pay.yaml").read_text().startswith(ledger)


def test_lock_waits_for_another_one_and_keeps_what_that_records(run: Run, specs: Path) -> None:
    locked(run)
    ledger = specs / "twgen.lock" / "shop.pay.yaml"
    of_the_other = ledger.read_text()
    ledger.unlink()
    worker(specs, "pay", "pay:v2", build_id="v2")
    folder = os.open(ledger.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with subprocess.Popen([TWGEN, "lock", "-q", "specs"], cwd=specs.parent, env=ENVIRONMENT) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
        ledger.write_text(of_the_other)
        os.close(folder)
        assert process.wait(60) == 0
    assert ledger.read_text().startswith(of_the_other)
    assert ledger.read_text().count("buildID") == 2


def test_check_names_every_ledger_that_is_not_current(run: Run, specs: Path) -> None:
    worker(specs, "mail", "mail:v1")
    said = (
        "specs/twgen.lock/shop.mail.yaml and specs/twgen.lock/shop.pay.yaml are outdated: run `twgen lock"
        " specs` and commit them"
    )
    refused(run("lock", "specs", "--check"), 1, said)


def test_lock_says_what_it_recorded_in_which_file_and_nothing_where_nothing_is_new(
    run: Run, specs: Path
) -> None:
    worker(specs, "pay", "pay:v1", build_id="v1")
    worker(specs, "mail", "mail:v1", build_id="one")
    files = ("specs/twgen.lock/shop.mail.yaml", "specs/twgen.lock/shop.pay.yaml")
    assert (
        run("lock", "specs").stderr
        == f"recorded shop/mail one in {files[0]}\nrecorded shop/pay v1 in {files[1]}\n"
    )
    assert run("lock", "specs").stderr == ""
    worker(specs, "pay", "pay:v2", build_id="v2")
    assert "recorded" not in run("lock", "specs", "--check").stderr
    assert run("lock", "specs").stderr == f"recorded shop/pay v2 in {files[1]}\n"
    worker(specs, "pay", "pay:v3", build_id="v3")
    ended = run("lock", "specs", "-q")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert run("lock", "specs", "--check").returncode == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((), "twgen lock"),
        (("-n", "shop", "."), "twgen lock -n shop ."),
        (("specs/pay.json", "specs/connection.json"), "twgen lock specs/pay.json specs/connection.json"),
        (("our specs", "-q"), "twgen lock 'our specs' -q"),
    ],
)
def test_check_says_which_command_makes_it_pass(
    run: Run, specs: Path, given: tuple[str, ...], told: str
) -> None:
    if "our specs" in given:
        specs.rename(specs.with_name("our specs"))
    ended = run("lock", "--check", *given)
    refused(ended, 1, f": run `{told}` and commit it")
    assert run(*shlex.split(told)[1:]).returncode == 0
    assert run("lock", *given, "--check").returncode == 0


def test_ledger_of_a_worker_that_no_spec_describes_is_told_of(run: Run, specs: Path) -> None:
    worker(specs, "mail", "mail:v1")
    locked(run)
    (specs / "mail.json").unlink()
    said = (
        "specs/twgen.lock/shop.mail.yaml:4: versions[0].worker: no spec describes shop/mail, so twgen"
        " renders none of its versions; remove this file once they have no work left"
    )
    for command in (("validate", "specs", "--strict"), ("lock", "specs", "--check", "--strict")):
        ended = run(*command)
        assert (ended.returncode, said in ended.stderr) == (0, True)
    # the ledger beside a file is that of its folder
    assert run("lock", "specs/pay.json", "specs/connection.json", "--check").stderr == ""


def test_lock_refuses_a_version_with_two_templates_naming_both(run: Run, specs: Path) -> None:
    root = specs.parent
    commit(root)
    for branch in ("blue", "green"):
        git(root, "checkout", "-q", "-b", branch, "main")
        worker(specs, "pay", f"pay:{branch}", build_id="one")
        locked(run)
        commit(root)
    git(root, "merge", "-q", "blue", succeeds=False)
    worker(specs, "pay", "pay:green", build_id="one")
    path = specs / "twgen.lock" / "shop.pay.yaml"
    before = path.read_text()
    name = "specs/twgen.lock/shop.pay.yaml"
    said = (
        f"{name}:5: versions[1]: shop/pay one appears twice, with different Deployments: keep the"
        " one that ran"
    )
    refused(run("lock", "specs"), 2, f"{said}; the other is at {name}:4")
    assert path.read_text() == before
    path.write_text("".join(before.splitlines(keepends=True)[:4]))
    locked(run)


def test_recorded_template_that_does_not_fit_its_hash_is_refused(run: Run, specs: Path) -> None:
    locked(run)
    path = specs / "twgen.lock" / "shop.pay.yaml"
    path.write_text(path.read_text().replace('"pay:v1"', '"pay:other"'))
    for command in (
        ("lock", "specs"),
        ("lock", "specs/pay.json", "specs/connection.json"),
        ("validate", "specs"),
    ):
        ended = run(*command)
        assert ended.returncode == (1 if command[0] == "validate" else 2)
        said = "shop.pay.yaml:4: versions[0].deployment.spec.template: does not match its"
        assert said in ended.stdout + ended.stderr


def test_lock_of_a_file_refuses_what_lock_of_its_folder_refuses(run: Run, specs: Path) -> None:
    locked(run, "specs/pay.json", "specs/connection.json")
    path = specs / "twgen.lock" / "shop.pay.yaml"
    worker(specs, "pay", "pay:v1", build_id="v1")
    path.write_text(path.read_text().replace("kind: Ledger", "kind: Ledger\nmetdata: {}"))
    for paths in (("specs",), ("specs/pay.json", "specs/connection.json")):
        refused(
            run("lock", *paths),
            2,
            "specs/twgen.lock/shop.pay.yaml:3: metdata: no such field; did you mean metadata?",
        )


def test_lock_keeps_what_a_build_id_stands_for(run: Run, specs: Path, tmp_path: Path) -> None:
    worker(specs, "pay", "pay:v1", build_id="one")
    locked(run)
    path = specs / "twgen.lock" / "shop.pay.yaml"
    ledger = path.read_text()
    # a build ID of our own making that another template took
    worker(specs, "pay", "pay:v1")
    generated = json.loads(run("render", "specs", "--snapshot", empty_world(tmp_path), "-o", "json").stdout)
    build_id = generated["items"][0]["metadata"]["labels"]["temporal.io/build-id"]
    worker(specs, "pay", "pay:other", build_id=build_id)
    path.unlink()
    locked(run)
    ledger = path.read_text()
    worker(specs, "pay", "pay:v1")
    for paths in (("specs",), ("specs/pay.json", "specs/connection.json")):
        refused(run("lock", *paths), 2, f"shop/pay: {build_id} is recorded with another pod template")
    assert path.read_text() == ledger


def test_version_that_is_recorded_in_another_file_changes_there(run: Run, specs: Path) -> None:
    worker(specs, "pay", "pay:v1", build_id="one")
    locked(run)
    moved = specs / "all-versions.yaml"
    (specs / "twgen.lock" / "shop.pay.yaml").rename(moved)
    (specs / "twgen.lock" / ".gitattributes").unlink()
    locked(run)
    assert list((specs / "twgen.lock").iterdir()) == []
    worker(specs, "pay", "pay:v2", build_id="one")
    locked(run)
    assert '"image": "pay:v2"' in moved.read_text()
    assert list((specs / "twgen.lock").iterdir()) == []


def test_mode_of_a_ledger_file_is_kept(run: Run, specs: Path) -> None:
    locked(run)
    path = specs / "twgen.lock" / "shop.pay.yaml"
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()
    path.chmod(0o640)
    worker(specs, "pay", "pay:v2")
    locked(run)
    assert path.stat().st_mode & 0o777 == 0o640
    assert {item.name for item in path.parent.iterdir()} == {".gitattributes", path.name}


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("of_stdin", [False, True], ids=["a file", "stdin"])
def test_versions_that_were_locked_beside_a_file_are_rendered_with_it(
    run: Run, specs: Path, *, of_stdin: bool
) -> None:
    worker(specs, "pay", "pay:v1", "v1")
    locked(run)
    worker(specs, "pay", "pay:v2", "v2")
    found = {"routing": {}, "versions": [{"buildID": "v1", "status": "Draining"}]}
    known = {"name": "shop/pay", "temporalNamespace": "default", "temporal": found}
    head = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-11-21T12:00:00Z"}
    (specs.parent / "world.json").write_text(json.dumps({**head, "workers": [known]}))
    files = ["specs/pay.json", "specs/connection.json"]
    given = ""
    if of_stdin:
        (specs / "twgen.lock").rename(specs.parent / "twgen.lock")
        given, files = "\n---\n".join((specs.parent / file).read_text() for file in files), ["-"]
    ended = run("render", *files, "--snapshot", "world.json", given=given)
    assert "name: pay-v1\n" in ended.stdout, ended.stderr
