"""The commands of the page on installing, each in a home of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "install.md").read_text()
_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com")
PROGRAMS = Path(sys.executable).parent


def block_with(words: str) -> str:
    """The one block of commands that has these words."""
    [found] = [text for text in blocks(PAGE, "") if words in text]
    return found


def run(commands: str, folder: Path, home: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    """Run commands in bash as a user with this home, who has these programs of ours."""
    (own := home / "programs").mkdir(parents=True)
    for name in programs:
        (own / name).symlink_to(PROGRAMS / name)
    path = os.pathsep.join([str(home / ".local" / "bin"), str(own), os.environ["PATH"]])  # noqa: TID251
    unset = {"VIRTUAL_ENV", "PYTHONPATH", "XDG_DATA_HOME", "XDG_BIN_HOME", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR"}
    variables = {name: text for name, text in os.environ.items() if name not in unset}  # noqa: TID251
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={**variables, "HOME": str(home), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twgen")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.packaging
def test_first_command_installs_a_twgen_that_starts(clone: Path, tmp_path: Path) -> None:
    for command in (["init", "-q"], ["add", "-A"], [*_AUTHOR, "commit", "-qm", "A copy"]):
        subprocess.run(["git", *command], cwd=clone, check=True)
    commands = block_with("uv tool install .").replace("ADDRESS", str(clone))
    ended = run(f"{commands}command -v twgen\ntwgen version\n", tmp_path, tmp_path / "home", "uv")
    assert ended.returncode == 0, ended.stderr
    *_, place, version = ended.stdout.splitlines()
    assert Path(place) == tmp_path / "home" / ".local" / "bin" / "twgen"
    assert version.startswith("twgen ")


@pytest.mark.packaging
def test_uv_takes_the_locked_versions(clone: Path, tmp_path: Path) -> None:
    [line] = [line for line in block_with("--require-hashes").splitlines() if "locked.py" in line]
    [command] = re.findall(r"`(uv tool install --constraints [^`]+)`", PAGE)
    shown = "uv pip freeze --python ~/.local/share/uv/tools/twgen/bin/python"
    ended = run(f"{line}\n{command}\n{shown}\ncat runtime.lock\n", clone, tmp_path / "home", "uv")
    assert ended.returncode == 0, ended.stderr
    versions = re.findall(r"^[\w.-]+==[^ \n]+$", ended.stdout, re.MULTILINE)
    assert len(versions) > 10
    assert [version for version in versions if f"{version} \\\n" not in ended.stdout] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_write_the_completion_of_a_shell(shell: str, tmp_path: Path) -> None:
    commands = block_with(f"twgen completion {shell} > ")
    ended = run(commands, tmp_path, tmp_path / "home", "twgen")
    assert (ended.returncode, ended.stderr) == (0, "")
    [place] = re.findall(r"> ~/(\S+)", commands)
    assert "_twgen_completion" in (tmp_path / "home" / place).read_text()


def test_schemas_of_the_page_are_there() -> None:
    named = re.findall(r"[\w-]+\.json", PAGE)
    assert len(named) == 3
    assert [name for name in named if not (ROOT / "schemas" / name).is_file()] == []
