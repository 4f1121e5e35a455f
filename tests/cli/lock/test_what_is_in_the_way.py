"""How `twgen lock` ends when something is in its way."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import TWGEN, Ended, Run
from tests.cli.lock.conftest import locked, refused

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
    why = "is a link or not a folder: move it away, because the ledger is a folder of this name"
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
    told_once(run(*command), 2, f"{name} is not a file or folder: remove it, or pass it as a separate PATH")


@pytest.mark.parametrize("command", LOCKS)
@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("../../outside.yaml", "out of the folder: twgen reads only files inside the folder"),
        ("x", "to a file that does not exist: fix or remove it"),
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


@pytest.mark.parametrize(
    ("command", "mode"),
    [(LOCKS[0], 0), (LOCKS[0], 0o300), (LOCKS[0], 0o600), (LOCKS[1], 0), (LOCKS[2], 0o600)],
)
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", " is empty: restore it from Git, or remove it"),
        ("# nothing\n", " is empty: restore it from Git, or remove it"),
        ("apiVersion: twgen.io/v1alpha1\nkind: Ledger\n", ":1: versions: is required"),
        ("apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions: []\n", ":3: versions: must not be empty"),
        ("versions: []\n", ":1: is not a Ledger of twgen.io/v1alpha1: restore it from Git, or remove it"),
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
    path.write_text(path.read_text().replace('"worker": "shop/pay"', '"worker": "shop/ship"'))
    said = "the Deployment belongs to shop/pay, not to shop/ship: restore the entry from Git, or remove it"
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
