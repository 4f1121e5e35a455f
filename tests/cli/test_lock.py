"""`twgen lock`: what it records, how Git merges it, and how it ends when something is in its way."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import TWGEN, Ended, Run

GIT = {
    **ENVIRONMENT,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "temporal", "namespace": "shop"},
    "spec": {"hostPort": "temporal.example.com:7233"},
}


def worker(folder: Path, name: str, image: str, build_id: str = "") -> None:
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"}
    document = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "workerOptions": options | ({"unsafeCustomBuildID": build_id} if build_id else {}),
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"spec": {"containers": [{"name": "worker", "image": image}]}},
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1))


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A folder with the spec of worker `pay`, which is a Git repository in `tmp_path`."""
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "connection.json").write_text(json.dumps(CONNECTION))
    worker(folder, "pay", "pay:v1")
    git(tmp_path, "init", "-q", "-b", "main")
    return folder


def git(folder: Path, *arguments: str, succeeds: bool = True) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=GIT, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
    return done.stdout


def locked(run: Run, *paths: str | Path) -> None:
    ended = run("lock", *(paths or ("specs",)))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a change")


def refused(ended: Ended, code: int, *parts: str) -> None:
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    for part in parts:
        assert part in ended.stderr


def test_lock_records_the_target_and_check_says_when_it_is_not_recorded(run: Run, specs: Path) -> None:
    refused(
        run("lock", "specs", "--check"), 1, "specs/twgen.lock/shop.pay.yaml is not current: run `twgen lock`"
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


@pytest.fixture
def conflict(run: Run, specs: Path) -> Path:
    """The ledger file of `pay`, which two branches have locked; the specs themselves are resolved."""
    root = specs.parent
    locked(run)
    commit(root)
    for tag in ("v2", "v3"):
        git(root, "checkout", "-q", "-b", tag, "main")
        worker(specs, "pay", f"pay:{tag}")
        locked(run)
        commit(root)
    git(root, "merge", "-q", "v2", succeeds=False)
    worker(specs, "pay", "pay:v3")
    return specs / "twgen.lock" / "shop.pay.yaml"


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
    locked(run)
    text = conflict.read_text()
    assert "<<<<<<<" not in text
    assert [text.count(f'"image": "pay:{tag}"') for tag in ("v1", "v2", "v3")] == [1, 1, 1]
    assert run("lock", "specs", "--check").returncode == 0


def test_lock_refuses_a_version_with_two_templates_naming_both(run: Run, specs: Path) -> None:
    root = specs.parent
    commit(root)
    for branch in ("blue", "green"):
        git(root, "checkout", "-q", "-b", branch, "main")
        worker(specs, "pay", f"pay:{branch}", build_id="one")
        locked(run)
        commit(root)
    git(root, "merge", "-q", "blue", succeeds=False)
    before = (specs / "twgen.lock" / "shop.pay.yaml").read_text()
    refused(
        run("lock", "specs"), 2, "shop/pay one is pay:green (template ", " in HEAD and pay:blue (template "
    )
    assert (specs / "twgen.lock" / "shop.pay.yaml").read_text() == before


def test_specs_with_conflict_markers_say_so(run: Run, specs: Path) -> None:
    text = (specs / "pay.json").read_text()
    (specs / "pay.json").write_text(f"<<<<<<< HEAD\n{text}\n=======\n{text}\n>>>>>>> other\n")
    refused(run("lock", "specs"), 2, "specs/pay.json:1: a merge left conflict markers: resolve them")


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
        said = "shop.pay.yaml:7: versions[0].deployment.spec.template: is not the pod template"
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


def empty_world(folder: Path) -> Path:
    path = folder / "empty.json"
    known: dict[str, Any] = {"name": "shop/pay", "temporalNamespace": "default", "temporal": None}
    told = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-11-21T12:00:00Z"}
    path.write_text(json.dumps({**told, "workers": [known]}))
    return path


def test_version_that_is_recorded_in_another_file_changes_there(run: Run, specs: Path) -> None:
    worker(specs, "pay", "pay:v1", build_id="one")
    locked(run)
    moved = specs / "all-versions.yaml"
    (specs / "twgen.lock" / "shop.pay.yaml").rename(moved)
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
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


LOCKS = (("lock", "specs"), ("lock", "specs", "--check"), ("lock", "specs/pay.json", "specs/connection.json"))


def told_once(ended: Ended, code: int, line: str) -> None:
    """The line, and no other but the count of problems."""
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    said = [found for found in ended.stderr.splitlines() if found != "twgen: 1 problem found"]
    assert said == [line]


@pytest.mark.parametrize("command", LOCKS)
@pytest.mark.parametrize("target", ["../outside", "inside", "/proc", "nowhere", "file", "pipe"])
def test_ledger_is_read_and_written_in_a_folder_only_and_never_through_a_link(
    run: Run, specs: Path, command: tuple[str, ...], target: str
) -> None:
    (specs.parent / "outside").mkdir()
    (specs / "inside").mkdir()
    if target == "file":
        (specs / "twgen.lock").write_text("in the way")
    elif target == "pipe":
        os.mkfifo(specs / "twgen.lock")
    else:
        (specs / "twgen.lock").symlink_to(target)
    why = "is a link or no folder: the ledger is a folder of this name; move what is there away"
    told_once(run(*command), 2, f"twgen: specs/twgen.lock {why}")
    ended = run("validate", "specs")
    assert (ended.returncode, ended.stdout) == (1, f"specs/twgen.lock {why}\n")
    assert not list((specs.parent / "outside").iterdir())
    assert not list((specs / "inside").iterdir())


@pytest.mark.parametrize("command", LOCKS)
def test_pipe_in_a_ledger_is_said_and_not_waited_for(run: Run, specs: Path, command: tuple[str, ...]) -> None:
    (specs / "twgen.lock").mkdir()
    os.mkfifo(specs / "twgen.lock" / "shop.pay.yaml")
    name = "specs/twgen.lock/shop.pay.yaml"
    told_once(run(*command), 2, f"{name} is neither a file nor a folder: remove it, or name it by itself")


@pytest.mark.parametrize("command", LOCKS)
@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("../../outside.yaml", "out of the folder: only what is inside is read"),
        ("x", "to nothing: mend or remove it"),
    ],
)
def test_link_in_a_ledger_that_leads_nowhere_or_out_is_said_once(
    run: Run, specs: Path, command: tuple[str, ...], target: str, why: str
) -> None:
    (specs.parent / "outside.yaml").write_text("a: 1\n")
    (specs / "twgen.lock").mkdir()
    (specs / "twgen.lock" / "shop.pay.yaml").symlink_to(target)
    told_once(run(*command), 2, f"specs/twgen.lock/shop.pay.yaml is a link {why}")
    assert (specs.parent / "outside.yaml").read_text() == "a: 1\n"


@pytest.mark.parametrize("command", LOCKS)
@pytest.mark.parametrize("mode", [0, 0o300, 0o600])
def test_ledger_that_may_not_be_read_is_a_line_and_a_code(
    run: Run, specs: Path, command: tuple[str, ...], mode: int
) -> None:
    locked(run)
    (specs / "twgen.lock").chmod(mode)
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    ended = subprocess.run(
        [*bound, TWGEN, *command], cwd=specs.parent, capture_output=True, text=True, check=False, timeout=60
    )
    (specs / "twgen.lock").chmod(0o700)
    file = "/shop.pay.yaml" if mode == 0o600 else ""
    told_once(ended, 2, f"cannot read specs/twgen.lock{file}: Permission denied")


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", " is empty: take it back from Git, or remove it"),
        ("# nothing\n", " is empty: take it back from Git, or remove it"),
        ("apiVersion: twgen.io/v1alpha1\nkind: Ledger\n", ":1: versions: is required"),
        ("apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions: []\n", ":3: versions: must not be empty"),
        ("versions: []\n", ":1: is no Ledger of twgen.io/v1alpha1: take it back from Git, or remove it"),
    ],
)
def test_file_of_a_ledger_that_records_nothing_is_said(run: Run, specs: Path, text: str, said: str) -> None:
    locked(run)
    (specs / "twgen.lock" / "shop.pay.yaml").write_text(text)
    for command in LOCKS:
        told_once(run(*command), 2, f"specs/twgen.lock/shop.pay.yaml{said}")
    assert run("validate", "specs").stdout == f"specs/twgen.lock/shop.pay.yaml{said}\n"


def test_worker_of_an_entry_that_was_edited_is_told_once(run: Run, specs: Path) -> None:
    locked(run)
    path = specs / "twgen.lock" / "shop.pay.yaml"
    path.write_text(path.read_text().replace("worker: shop/pay", "worker: shop/ship"))
    said = "the Deployment is shop/pay's, not shop/ship's: take the entry back from Git, or remove it"
    for command in LOCKS:
        told_once(run(*command), 2, f"specs/twgen.lock/{path.name}:4: versions[0].worker: {said}")


def test_read_only_folder_is_a_line_and_a_code(specs: Path) -> None:
    specs.chmod(0o555)
    # even root, without the capability to write anywhere
    powerless = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    ended = subprocess.run(
        [*powerless, TWGEN, "lock", "specs"], cwd=specs.parent, capture_output=True, text=True, check=False
    )
    refused(ended, 2, "twgen: cannot write specs/twgen.lock/shop.pay.yaml: Permission denied")
    assert len(ended.stderr.splitlines()) == 1
