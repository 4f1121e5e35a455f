"""At a terminal, options say all there is to say."""

import json
import os
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Run, write_operator
from twgen.cli.environment import Terminal, usual_kubeconfig
from twgen.cli.main import twgen
from twgen.cli.plan import command as plan
from twgen.cli.rollout import command as rollout
from twgen.cli.settings import settings_of
from twgen.errors import InvalidInput
from twgen.model.operator import Operator
from twgen.reporting.printable import printable

AT_A_TERMINAL = click.Context(twgen)


@pytest.mark.parametrize(
    "text", ["temporal:7233", "temporal:7233=", "a=b", "temporal:7233=http://127.0.0.1:7233", "x:1=y:port"]
)
def test_port_forward_that_is_no_pair_of_addresses_is_refused(run: Run, story: Path, text: str) -> None:  # noqa: ARG001
    ended = run("plan", "specs", "--snapshot", "snapshot.json", "--via", text)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"twgen: --via {text!r} is not ADDRESS=ADDRESS such as temporal.prod.svc:7233=127.0.0.1:7233\n"
    )


def test_port_forward_of_an_address_that_nobody_has_is_warned_of(run: Run, story: Path) -> None:  # noqa: ARG001
    options = ("--no-cluster", "--timeout", "2s", "--via", "nobody:7233=127.0.0.1:1")
    ended = run("plan", "specs", *options)
    assert "warning: no worker's Connection has the address nobody:7233: --via has no effect" in ended.stderr


@pytest.mark.parametrize("command", ["render", "plan", "status", "validate", "lock", "simulate"])
def test_operators_configuration_is_read_outside_of_argocd_too(run: Run, story: Path, command: str) -> None:
    write_operator(story, instanse="a")
    ended = run(command, "specs", "--operator-config", "operator.json")
    assert ended.returncode == 2
    assert "operator.json:1: instanse: no such field" in ended.stderr


OPTIONS_WITH_A_VALUE = [
    (name, max(option.opts, key=len))
    for name in twgen.list_commands(AT_A_TERMINAL)
    for option in (twgen.get_command(AT_A_TERMINAL, name) or twgen).params
    if isinstance(option, click.Option) and not option.is_flag
]


@pytest.mark.parametrize(("command", "option"), OPTIONS_WITH_A_VALUE)
def test_value_of_an_option_is_never_empty(command: str, option: str) -> None:
    """A script whose variable is not set asked for something, and not for what is usual."""
    with (
        twgen.make_context("twgen", [command, option, ""]) as context,
        pytest.raises(InvalidInput, match=f"^{option} (must not be empty|'' is not one of)"),
    ):
        twgen.invoke(context)


@pytest.mark.usefixtures("story")
def test_variable_of_an_option_that_is_empty_is_one_that_is_not_set(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWGEN_IDENTITY", "")
    assert run("render", "specs", "--snapshot", "snapshot.json").returncode == 0


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize("identity", ["twgen/", "/prod", "shop//prod", "shop/", "me ", "\u201cme\u201d"])
def test_identity_with_an_empty_part_or_blanks_is_refused(run: Run, identity: str) -> None:
    ended = run("render", "specs", "--snapshot", "snapshot.json", "--identity", identity)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"--identity {identity!r} is not a valid identity: one line without empty parts" in ended.stderr


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize("option", ["identity", "namespace"])
def test_option_that_is_no_text_is_refused(run: Run, option: str) -> None:
    ended = run("render", "specs", "--snapshot", "snapshot.json", f"--{option}", os.fsdecode(b"a\xff\x1b[2J"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr == f"twgen: --{option} 'a\\udcff\\x1b[2J' contains a character that cannot be printed\n"
    )


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_an_option_and_a_command(run: Run, option: str) -> None:
    asked, command = run(option), run("version")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, command.stdout, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rendr",), "no such command 'rendr'; did you mean render?"),
        (("xyz",), "no such command 'xyz'; see twgen --help"),
        (("-x",), "no such option '-x'; see twgen --help"),
        (("lint", "."), "no such command 'lint'; `twgen validate .` checks specs"),
        (
            ("plan", "--file", "a"),
            "no such option '--file'; give files and folders as arguments; see twgen plan --help",
        ),
        (
            ("plan", "-f", "a"),
            (
                "no such option '-f'; give files and folders as arguments; with --input Helm, did you mean"
                " --value-files?"
            ),
        ),
        (("plan", "--snapshto", "x"), "no such option '--snapshto'; did you mean --snapshot?"),
        (("plan", "--foo"), "no such option '--foo'; see twgen plan --help"),
        (("plan", "-o", "jsn"), "--output 'jsn' is not one of text, json, markdown; did you mean json?"),
        (("plan", "--timeout", "3"), "--timeout '3' is not a duration such as 3s, 3m or 3h"),
        (
            ("completion",),
            "Missing argument 'SHELL'. Choose from: bash, zsh, fish; see twgen completion --help",
        ),
        (("plan", "--color", "pink"), "--color 'pink' is not one of auto, always, never"),
        (
            ("completion", "fisch"),
            "Invalid value for 'SHELL': 'fisch' is not one of bash, zsh, fish; did you mean fish?",
        ),
    ],
)
def test_mistyped_command_option_or_word_has_one_form_of_suggestion(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"twgen: {said}\n")


@pytest.mark.usefixtures("story")
def test_mistyped_variable_is_warned_of_and_that_of_a_service_is_not(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWGEN_STRIKT", "true")
    monkeypatch.setenv("TWGEN_SERVICE_PORT", "80")
    ended = run("plan", "specs", "--snapshot", "snapshot.json")
    assert (ended.returncode, ended.stderr) == (
        0,
        "warning: TWGEN_STRIKT sets no option; did you mean TWGEN_STRICT?\n",
    )
    assert run("plan", "specs", "--snapshot", "snapshot.json", "-q").stderr == ""


@pytest.mark.parametrize("user", ["", "a\udcff\x1b[2J"])
def test_user_whose_name_is_none_or_no_text_plans_all_the_same(
    monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    def nobody(_: int) -> object:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME", "HOME", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LOGNAME", user)
    identity = Terminal().planning_caller("", Operator()).identity
    assert identity.isprintable()
    assert identity.startswith(f"twgen/{printable(user) or os.getuid()}@")
    assert usual_kubeconfig()


@pytest.mark.parametrize(("flags", "once"), [((), True), (("--until-settled",), False), (("--once",), True)])
def test_rollout_goes_on_until_it_is_settled_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], *, once: bool
) -> None:
    monkeypatch.setenv("TWGEN_ONCE", "true")
    assert rollout.make_context("rollout", [*flags, "."]).params["once"] is once


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize(
    ("command", "what", "code"),
    [
        (("tick", "-A"), "tick", 3),
        (("status", "--from-cluster", "-A"), "--from-cluster", 2),
        (("drain", "--from-cluster", "-A"), "--from-cluster", 2),
        (("dashboard", "-A", "--no-browser"), "dashboard", 2),
        (("rollout", "--intent", "shop/payments-rollout"), "--intent", 2),
    ],
)
def test_command_that_needs_a_cluster_says_how_to_give_one(
    run: Run, story: Path, command: tuple[str, ...], what: str, code: int
) -> None:
    ended = run(*command, env={"HOME": str(story), "PATH": "/usr/bin:/bin"})
    assert (ended.returncode, ended.stdout) == (code, "")
    wanted = (
        f"{what} needs access to a cluster: give --kubeconfig, or set KUBECONFIG; in a Pod, its"
        " service account is used"
    )
    assert ended.stderr == f"twgen: {wanted}\n"


@pytest.mark.parametrize("options", [("--from-cluster", "-A"), ("-A",)])
def test_cluster_that_is_to_be_read_alone_is_not_left_out(run: Run, options: tuple[str, ...]) -> None:
    ended = run("status", *options, "--no-cluster")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "twgen: --from-cluster reads only the cluster: leave out --no-cluster\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-A", "."), "--from-cluster reads the workers from the cluster: leave out PATH"),
        (("--from-cluster", "."), "--from-cluster reads the workers from the cluster: leave out PATH"),
        (("--from-cluster",), "choose the namespace of the rollouts: give -n NAMESPACE, or -A for all"),
        (("--snapshot", "world.yaml", "-A"), "--from-cluster reads a cluster: leave out --snapshot"),
        (("--window", "soon", "."), "--window 'soon' is not a duration such as 90s or 1h30m"),
    ],
)
def test_report_of_what_holds_versions_says_whose(run: Run, options: tuple[str, ...], said: str) -> None:
    ended = run("drain", *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_report_of_a_snapshot_has_the_workflows_that_were_counted(run: Run) -> None:
    examples = Path(__file__).parents[2] / "examples"
    for example, number in (("draining", 3), ("three-versions", None)):
        folder = examples / example
        ended = run("drain", str(folder), "--snapshot", str(folder / "snapshot.yaml"), "-o", "json")
        assert (ended.returncode, ended.stderr) == (0, "")
        report = json.loads(ended.stdout)
        [version] = report["workers"][0]["versions"]
        assert (version["status"], version["workflows"], version["ages"]) == ("Draining", number, None)
        assert report["unread"] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            (".", "--cancel"),
            "give --version: the version whose workflows to end; `twgen drain` lists versions",
        ),
        ((".", "--version", "v1"), "give exactly one of --move, --signal, --cancel and --terminate"),
        (("--version", "v1", "--cancel", "--terminate"), "give exactly one of"),
        (("--version", "v1", "--cancel", "--to", "v2"), "--to needs --move"),
        (("--version", "v1", "--signal", "a", "--signal-input", "{"), "is not JSON such as"),
        (("--version", "v1", "--cancel", "--type", "it's"), "is not a valid workflow type name"),
    ],
)
def test_end_refuses_options_that_do_not_say_which_workflows_to_end_and_how(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    ended = run("end", *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


@pytest.mark.parametrize("output", ["text", "json", "markdown"])
def test_report_of_nothing_that_could_be_read_is_none(run: Run, story: Path, output: str) -> None:  # noqa: ARG001
    ended = run("drain", "specs", "--no-cluster", "--timeout", "1s", "-o", output)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "twgen: " in ended.stderr


@pytest.mark.parametrize("command", ["render", "plan", "status"])
def test_options_for_servers_have_no_effect_beside_a_snapshot(run: Run, story: Path, command: str) -> None:  # noqa: ARG001
    ended = run(command, "specs", "--snapshot", "snapshot.json", "--timeout", "5s", "--no-cluster")
    assert ended.returncode == 0
    assert (
        "warning: --no-cluster, --timeout have no effect with --snapshot: no server is read\n" in ended.stderr
    )
    assert "with --snapshot" not in run(command, "specs", "--snapshot", "snapshot.json").stderr
    quiet = run(command, "specs", "--snapshot", "snapshot.json", "--via", "a:1=b:2", "--quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_what_is_usual_for_a_person_is_not_told_beside_a_snapshot(run: Run, story: Path) -> None:  # noqa: ARG001
    usual = dict(os.environ) | {"TWGEN_TIMEOUT": "5s"}  # noqa: TID251 - what the test runs in
    assert "beside" not in run("plan", "specs", "--snapshot", "snapshot.json", env=usual).stderr


@pytest.mark.parametrize(
    ("variables", "options", "allows"),
    [
        ({}, (), None),
        ({}, ("--allow-unlisted-connections",), True),
        ({}, ("--only-listed-connections",), False),
        ({"TWGEN_ONLY_LISTED_CONNECTIONS": "true"}, ("--allow-unlisted-connections",), True),
        ({"TWGEN_ALLOW_UNLISTED_CONNECTIONS": "true"}, ("--only-listed-connections",), False),
    ],
)
def test_option_about_unlisted_connections_overrides_the_variable_of_its_opposite(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: tuple[str, ...],
    *,
    allows: bool | None,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with plan.make_context("plan", [*options, "."]) as context:
        assert settings_of(context.params).allow_unlisted_connections is allows


@pytest.mark.parametrize("command", [("plan", "."), ("tick", "-A"), ("histories", ".", "--folder", "out")])
def test_both_options_about_unlisted_connections_are_refused(run: Run, command: tuple[str, ...]) -> None:
    ended = run(*command, "--allow-unlisted-connections", "--only-listed-connections")
    assert (ended.returncode, ended.stdout) == (2, "")
    said = "--allow-unlisted-connections conflicts with --only-listed-connections: give one of them"
    assert ended.stderr == f"twgen: {said}\n"
