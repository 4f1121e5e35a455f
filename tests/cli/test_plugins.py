"""twgen under the names by which kubectl and the Temporal CLI start it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT
from twgen.cli.main import arguments_of, asks_for_completion, completions, typed_name
from twgen.cli.option_table import OPTIONS

BIN = Path(sys.executable).parent
EXAMPLE = Path(__file__).parents[2] / "examples" / "three-versions"


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / program, *arguments]
    return subprocess.run(command, cwd=EXAMPLE, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/local/bin/kubectl-twgen", "kubectl twgen"),
        ("temporal-twgen", "temporal twgen"),
        ("/opt/twgen/bin/twgen", "twgen"),
        ("twgen.__main__", "twgen"),
    ],
)
def test_name_is_the_one_that_a_person_typed(program: str, name: str) -> None:
    assert typed_name(program) == name


@pytest.mark.parametrize("program", ["kubectl-twgen", "temporal-twgen"])
def test_usage_and_advice_show_the_name_of_the_plugin(program: str) -> None:
    name = program.replace("-", " ")
    ended = run(program, "plan", "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"Usage: {name} plan [OPTIONS] [PATH]...\n")
    ended = run(program, "plan", "--snapshto")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{name} plan --help" in ended.stderr or "did you mean" in ended.stderr


def test_plugin_ends_with_the_exit_code_of_twgen() -> None:
    ended = run("kubectl-twgen", "plan", "no/folder", "--snapshot", "snapshot.yaml")
    assert (ended.returncode, ended.stderr) == (2, "twgen: no/folder: no such file or folder\n")


def test_options_that_the_temporal_cli_puts_in_front_of_the_command_are_those_of_the_command() -> None:
    ended = run("temporal-twgen", "-o", "json", "validate", ".")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["problems"] == []


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ("-o json plan . --strict", "plan . --strict -o json"),
        ("plan .", "plan ."),
        ("--color never ownership claim .", "ownership claim . --color never"),
        ("help plan", "plan --help"),
        ("help", "--help"),
        ("--version", "--version"),
        ("__complete plan --sn", "__complete plan --sn"),
    ],
)
def test_only_arguments_from_the_temporal_cli_change_their_order(given: str, typed: str) -> None:
    assert arguments_of("temporal twgen", given.split()) == typed.split()
    assert arguments_of("kubectl twgen", given.split()) == given.split()


def test_both_hosts_get_completions_as_cobra_writes_them() -> None:
    lines = completions(["plan", "--sn"])
    assert lines == [f"--snapshot\t{OPTIONS['snapshot'].help}", ":4"]
    assert completions(["plan", "--color", "a"]) == ["auto", "always", ":4"]
    assert completions([""])[0].startswith("plan\t")


def test_shell_completes_names_of_files_where_a_file_is_asked_for() -> None:
    assert completions(["plan", "--snapshot", "wor"]) == [":0"]


def test_temporal_cli_asks_by_a_word_of_its_own_and_kubectl_by_a_program() -> None:
    assert asks_for_completion("temporal twgen", ["__complete", "pl"])
    assert not asks_for_completion("temporal twgen", ["plan"])
    assert not asks_for_completion("temporal twgen", [])
    assert not asks_for_completion("kubectl twgen", ["__complete", "pl"])
    by_temporal, by_kubectl = run("temporal-twgen", "__complete", "pl"), run("kubectl_complete-twgen", "pl")
    assert by_temporal.stdout == by_kubectl.stdout
    assert by_kubectl.stdout.splitlines()[0].startswith("plan\t")
