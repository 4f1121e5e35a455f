"""A shell completes what the generated script lets it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from tests.cli.conftest import TWGEN, Run

ASK = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_twgen_completion twgen
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(script: Path, *words: str) -> list[str]:
    path = {"PATH": f"{TWGEN.parent}:{ENVIRONMENT['PATH']}"}
    asked = ["bash", "-c", ASK, "bash", script, *words]
    ended = subprocess.run(
        asked,
        cwd=script.parent,
        env=ENVIRONMENT | path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    # outside of a prompt bash has no completion whose options could be set
    assert [line for line in ended.stderr.splitlines() if "compopt" not in line] == []
    return ended.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes_commands_options_and_their_words(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "twgen.bash"
    script.write_text(run("completion", "bash").stdout)
    assert completed(script, "twgen", "ren") == ["render"]
    assert completed(script, "twgen", "plan", "--sn") == ["--snapshot"]
    assert completed(script, "twgen", "plan", "--color", "a") == ["auto", "always"]
    assert completed(script, "twgen", "validate", "-o", "j") == ["json", "junit"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_every_shell_asks_twgen(run: Run, shell: str) -> None:
    ended = run("completion", shell)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"_TWGEN_COMPLETE={shell}_complete" in ended.stdout


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", {}),
        ("bash", {"COMP_WORDS": "twgen ren", "COMP_CWORD": "first"}),
        ("zsh", {"COMP_WORDS": "twgen ren"}),
        ("fish", {"COMP_WORDS": "twgen ren", "COMP_CWORD": " "}),
    ],
)
def test_who_asks_as_no_shell_does_is_told_so(run: Run, shell: str, words: dict[str, str]) -> None:
    ended = run(env=ENVIRONMENT | words | {"_TWGEN_COMPLETE": f"{shell}_complete"})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "twgen: COMP_WORDS and COMP_CWORD do not say which word to complete: use the script that `twgen"
        " completion` prints, or unset _TWGEN_COMPLETE\n"
    )
