"""The help of the program and of its commands."""

import os
import re
from collections import Counter
from statistics import median

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Run
from twgen.cli.main import twgen
from twgen.cli.options import GROUPS, shared_options

GROUP_TITLES = ["Look:", "Ship:", "Steer:", "Run in a cluster:", "Move in and out:"]
AT_A_TERMINAL = click.Context(twgen)


def _paths(group: click.Group, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context, paths = click.Context(group), []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        path = (*words, name)
        paths += _paths(command, path) if isinstance(command, click.Group) else [path]
    return paths


COMMANDS = _paths(twgen)


def _command(path: tuple[str, ...]) -> click.Command:
    command: click.Command = twgen
    for word in path:
        assert isinstance(command, click.Group)
        command = command.get_command(AT_A_TERMINAL, word) or command
    return command


def _help(*words: str) -> str:
    return CliRunner().invoke(twgen, words).output


def _shown_options(text: str) -> list[str]:
    """The long names of the options that have a line of their own."""
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)


def test_each_command_is_in_one_group_of_the_help() -> None:
    lines = _help("--help").splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", *GROUP_TITLES]
    listed = [line.split()[0] for line in lines[lines.index("Look:") :] if re.match(r"  [a-z]", line)]
    assert Counter(listed) == Counter(twgen.list_commands(AT_A_TERMINAL))


def test_help_shows_at_most_ten_options_of_half_the_commands() -> None:
    numbers = [len(_shown_options(_help(*path, "--help"))) for path in COMMANDS]
    assert median(numbers) <= 10


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_all_options_are_shown_on_demand_and_the_shared_ones_are_named_by_their_group(
    path: tuple[str, ...],
) -> None:
    command = _command(path)
    options = {max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)}
    assert {*_shown_options(_help(*path, "--help", "--all")), "--help"} == {*options, "--help"}
    shared = {name for names in shared_options(command).values() for name in names}
    own = {max(each.opts, key=len) for each in command.params if each.name not in shared and each.opts}
    short = _help(*path, "--help")
    assert {*_shown_options(short)} - {"--help"} == {name for name in own if name.startswith("--")}
    for title in shared_options(command):
        assert len([line for line in short.splitlines() if line.startswith(f"  {title}  ")]) == 1


def test_order_of_help_and_all_makes_no_difference_and_all_is_nothing_without_help(run: Run) -> None:
    assert _help("plan", "--all", "-h") == _help("plan", "--help", "--all")
    ended = run("plan", "--all")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no such option '--all'" in ended.stderr


def test_shared_option_is_in_one_group() -> None:
    names = [name for _, group in GROUPS.values() for name in group]
    assert Counter(names).most_common(1)[0][1] == 1


@pytest.mark.parametrize("more", [(), ("--all",)])
def test_help_fits_80_columns(run: Run, more: tuple[str, ...]) -> None:
    environment = {**os.environ, "COLUMNS": "80"}  # noqa: TID251 - the program's own is made here
    for path in ((), *COMMANDS):
        ended = run(*path, "--help", *(more if path else ()), env=environment)
        assert (ended.returncode, [line for line in ended.stdout.splitlines() if len(line) > 80]) == (0, [])


def test_help_of_tick_speaks_of_tick_alone(run: Run) -> None:
    told = " ".join(run("tick", "--help", "--all").stdout.split())
    for said in ("Check the workers of every namespace.", "Check the workers of this namespace."):
        assert said in told
    for said in ("--from-cluster", "documents", "--no-cluster"):
        assert said not in told


def test_help_of_the_operators_file_says_what_counts_outside_of_argocd(run: Run) -> None:
    told = " ".join(run("render", "--help", "--all").stdout.split())
    assert "only its `rollout`, `attached`, `prometheus` and `links` are used." in told


def test_help_of_the_dashboard_names_only_options_that_it_has(run: Run) -> None:
    shown = " ".join(run("dashboard", "--help").stdout.split())
    assert "--from-cluster:" not in shown
    assert "--watch" not in shown
    assert "-A, --all-namespaces Show the rollouts of every namespace." in shown
    assert "--listen ADDRESS" in shown


def test_command_that_only_jobs_run_works_but_is_not_listed(run: Run) -> None:
    ended = run("histories")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "give --folder" in ended.stderr
    assert "histories" not in run("--help").stdout
