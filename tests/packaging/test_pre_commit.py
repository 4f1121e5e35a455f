"""The hooks of pre-commit, as a repository of specs runs them from a clone of this one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.checkout import commit_all, copy_checkout

ROOT = Path(__file__).parents[2]
SPECS = ("worker.yaml", "connection.yaml", "policy.yaml", "twgen.lock/shop.payments.yaml")
pytestmark = pytest.mark.packaging


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    ended = subprocess.run(["git", *name, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hooks = tmp_path_factory.mktemp("twgen")
    revision = copy_checkout(hooks)
    folder = tmp_path_factory.mktemp("specs")
    for name in SPECS:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "examples" / "three-versions" / name, folder / name)
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks: [{{id: twgen-validate}}, {{id: twgen-lock}}]\n"
    )
    commit_all(folder)
    return folder


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PRE_COMMIT_HOME": str(folder.with_name("pre-commit"))}  # noqa: TID251
    command = [Path(sys.executable).with_name("pre-commit"), "run", "--all-files", "--color=never"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_specs_that_are_right_pass_and_a_mistake_is_told_with_its_place(specs: Path) -> None:
    ended = run(specs)
    assert ended.returncode == 0, ended
    worker = specs / "worker.yaml"
    worker.write_text(worker.read_text().replace("strategy: Progressive", "strategy: Prograssive"))
    ended = run(specs)
    assert ended.returncode == 1, ended
    assert "worker.yaml:" in ended.stdout
    assert "did you mean" in ended.stdout


@pytest.mark.parametrize("ledger", ["known", "new"])
def test_version_that_is_not_recorded_fails_with_the_command_that_records_it(
    specs: Path, ledger: str
) -> None:
    git(specs, "reset", "-q", "--hard")
    file, worker = specs / "twgen.lock" / "shop.payments.yaml", specs / "worker.yaml"
    if ledger == "new":
        git(specs, "rm", "-q", str(file))
    else:
        text = worker.read_text()
        worker.write_text(text.replace("payments:v3.0.0", "payments:v4.0.0"))
        assert worker.read_text() != text
    ended = run(specs)
    assert ended.returncode == 1, ended
    told = "twgen: twgen.lock/shop.payments.yaml is outdated: run `twgen lock .` and commit it"
    assert told in ended.stdout.splitlines()
    subprocess.run([Path(sys.executable).with_name("twgen"), "lock", "."], cwd=specs, check=True)
    git(specs, "add", "-A")
    assert run(specs).returncode == 0


def test_hooks_of_a_repository_with_more_in_it_take_the_folder_of_the_workers(specs: Path) -> None:
    git(specs, "reset", "-q", "--hard")
    (specs / "workers").mkdir()
    for name in ("worker.yaml", "connection.yaml", "policy.yaml"):
        (specs / name).rename(specs / "workers" / name)
    (specs / "twgen.lock").rename(specs / "workers" / "twgen.lock")
    (specs / "broken.yaml").write_text("a: [\n")
    file = specs / ".pre-commit-config.yaml"
    file.write_text(re.sub(r"(id: twgen-\w+)", r"\1, args: [workers]", file.read_text()))
    git(specs, "add", "-A")
    ended = run(specs)
    assert ended.returncode == 0, ended
    (specs / "workers" / "twgen.lock" / "shop.payments.yaml").unlink()
    told = "twgen: workers/twgen.lock/shop.payments.yaml is outdated: run `twgen lock workers` and commit it"
    assert told in run(specs).stdout.splitlines()
