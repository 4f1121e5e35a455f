"""The option table: one row for each option drives click, the environment and the documentation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from twgen.cli.surroundings import surroundings
from twgen.errors import InvalidInput

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, what it is for, and what click should know besides."""

    flags: tuple[str, ...]
    help: str
    click: Mapping[str, Any] = field(default_factory=dict)
    of_application: bool = False
    """In Argo CD, the application may set it too; any other is the operator's alone."""

    @property
    def name(self) -> str:
        """What a plugin parameter calls it."""
        return _long_name(self.flags)

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `TWGEN_<OPTION>`."""
        return f"TWGEN_{self.name.replace('-', '_').upper()}"


class _Scoped(click.Option):
    """In Argo CD, the application's own setting goes before the operator's variable."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        of_application = surroundings().settings_of_application.get(_long_name(self.opts))
        return of_application or super().resolve_envvar_value(ctx)


def _long_name(flags: Sequence[str]) -> str:
    return max(flags, key=len).strip("-")


def _flag(*flags: str, text: str, of_application: bool = False) -> Option:
    return Option(flags, text, {"is_flag": True}, of_application)


def _default(default: str, metavar: str = "DURATION") -> Mapping[str, Any]:
    return {"metavar": metavar, "default": default, "show_default": True}


_OPTIONS: Mapping[str, Option] = {
    "snapshot": Option(("--snapshot",), "Read the world from FILE, not from servers.", {"metavar": "FILE"}),
    "now": Option(
        ("--now",), "Plan as of this time, not that of the snapshot or the clock.", {"metavar": "TIME"}
    ),
    "timeout": Option(
        ("--timeout",),
        "Give all reading of servers this long (20s; 40s in Argo CD).",
        {"metavar": "DURATION"},
    ),
    "identity": Option(
        ("--identity",),
        "Act as this manager identity, whatever a RolloutPolicy says.",
        {"metavar": "NAME"},
        of_application=True,
    ),
    "namespace": Option(
        ("-n", "--namespace"), "Kubernetes namespace of documents that name none.", {"metavar": "NAME"}
    ),
    "no_cluster": _flag("--no-cluster", text="Do not read Kubernetes."),
    "kubeconfig": Option(
        ("--kubeconfig",), "Read Kubernetes as this file says, not KUBECONFIG.", {"metavar": "FILE"}
    ),
    "context": Option(("--context",), "Read Kubernetes through this context.", {"metavar": "NAME"}),
    "no_hooks": _flag(
        "--no-hooks", text="Leave rollout objects out, for `kubectl diff`.", of_application=True
    ),
    "allow_unlisted_connections": _flag(
        "--allow-unlisted-connections",
        text="In Argo CD, use connections that need no credentials and that no Temporal profile lists.",
    ),
    "via": Option(
        ("--via",),
        "Reach a Temporal through another address, such as that of a port-forward; as often as needed.",
        {"metavar": "ADDRESS=ADDRESS", "multiple": True},
    ),
    "operator_config": Option(
        ("--operator-config",),
        "Read what the operator of Argo CD configured; elsewhere only the kinds that may be attached count.",
        {"metavar": "FILE"},
    ),
    "strict": _flag("--strict", text="Take warnings for errors.", of_application=True),
    "quiet": _flag("-q", "--quiet", text="Do not print warnings.", of_application=True),
    "color": Option(
        ("--color",),
        "Colour the text.",
        {"type": click.Choice(["auto", "always", "never"]), "default": "auto"},
    ),
    "exit_code": _flag("--exit-code", text="Exit with 1 when a change is pending."),
    "watch": _flag("-w", "--watch", text="Read again and again, and show what changes."),
    "interval": Option(("--interval",), "Wait this long between two reads of --watch.", _default("5s")),
    "workflow_duration": Option(("--workflow-duration",), "Pinned workflows run this long.", _default("1h")),
    "startup": Option(("--startup",), "New pods poll after this long.", _default("30s")),
    "gate": Option(
        ("--gate",), "The gate passes after this long; or `fails`.", _default("1m", "DURATION|fails")
    ),
    "drainage_interval": Option(
        ("--drainage-interval",),
        "Temporal counts the workflows of a draining version this often.",
        _default("3m"),
    ),
    "render_interval": Option(("--render-interval",), "twgen renders this often.", _default("3m")),
    "worker": Option(("--worker",), "The worker, when there are several.", {"metavar": "NAME"}),
    "owner": Option(("--from",), "Who manages it now, and is to do so no more.", {"metavar": "OWNER"}),
    "yes": _flag("-y", "--yes", text="Do not ask."),
    "full": _flag("--full", text="Send all of the traffic, whatever steps are left."),
    "skip_gate": _flag("--skip-gate", text="Go on without a gate that has not passed."),
    "once": _flag("--once", text="Look, and make one change at most."),
    "within": Option(("--within",), "Give up when it takes longer.", _default("1h")),
    "check": _flag("--check", text="Write nothing; exit with 1 when the ledger is not current."),
}

READING = ("timeout", "via", "no_cluster", "kubeconfig", "context", "allow_unlisted_connections")
"""What every command takes that reads servers."""


def options(*names: str) -> Callable[[Command], Command]:
    """Give a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            option = _OPTIONS[name]
            decorator = click.option(
                *option.flags, name, cls=_Scoped, help=option.help, envvar=option.variable, **option.click
            )
            command = decorator(command)
        return command

    return decorate


def refuse_settings_of_operator() -> None:
    """Raise InvalidInput when the application sets an option that is the operator's, or none of ours."""
    options = {option.name: option for option in _OPTIONS.values()}
    for name in surroundings().settings_of_application:
        if name not in options:
            known = ", ".join(sorted(option.name for option in options.values() if option.of_application))
            raise InvalidInput(f"no plugin parameter {name!r}: an application may set {known}")
        if not options[name].of_application:
            raise InvalidInput(
                f"{name!r} is the operator's: a repository may not set it;"
                f" the operator sets {options[name].variable} in the plugin's sidecar"
            )


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
