"""The option table: one row for each option drives click, the environment and the documentation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, what it is for, and what click should know besides."""

    flags: tuple[str, ...]
    help: str
    click: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `TWGEN_<OPTION>`."""
        longest = max(self.flags, key=len)
        return f"TWGEN_{longest.strip('-').replace('-', '_').upper()}"


def _flag(*flags: str, text: str) -> Option:
    return Option(flags, text, {"is_flag": True})


_OPTIONS: Mapping[str, Option] = {
    "snapshot": Option(("--snapshot",), "Read the world from FILE, not from servers.", {"metavar": "FILE"}),
    "now": Option(
        ("--now",), "Plan as of this time, not that of the snapshot or the clock.", {"metavar": "TIME"}
    ),
    "timeout": Option(
        ("--timeout",),
        "Give all reading of servers this long (10s; 40s in Argo CD).",
        {"metavar": "DURATION"},
    ),
    "identity": Option(
        ("--identity",), "Act as this manager identity, whatever a RolloutPolicy says.", {"metavar": "NAME"}
    ),
    "namespace": Option(
        ("-n", "--namespace"), "Kubernetes namespace of documents that name none.", {"metavar": "NAME"}
    ),
    "no_cluster": _flag("--no-cluster", text="Do not read Kubernetes (today's only mode)."),
    "no_hooks": _flag("--no-hooks", text="Leave rollout objects out, for `kubectl diff`."),
    "allow_unlisted_connections": _flag(
        "--allow-unlisted-connections", text="Use connections that no Temporal profile lists."
    ),
    "strict": _flag("--strict", text="Take warnings for errors."),
    "quiet": _flag("-q", "--quiet", text="Do not print warnings."),
    "color": Option(
        ("--color",),
        "Colour the text.",
        {"type": click.Choice(["auto", "always", "never"]), "default": "auto"},
    ),
    "exit_code": _flag("--exit-code", text="Exit with 1 when a change is pending."),
    "check": _flag("--check", text="Write nothing; exit with 1 when the ledger is not current."),
}


def options(*names: str) -> Callable[[Command], Command]:
    """Give a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            option = _OPTIONS[name]
            decorator = click.option(
                *option.flags, name, help=option.help, envvar=option.variable, **option.click
            )
            command = decorator(command)
        return command

    return decorate


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Give a command `-o` with these formats, the first by default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        envvar="TWGEN_OUTPUT",
        help="Print in this format.",
    )


paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...")
"""Files and folders; `.` by default, `-` for stdin."""
