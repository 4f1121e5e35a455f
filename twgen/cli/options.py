"""The option table: one row for each option drives click, the environment and the documentation."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from twgen.cli.surroundings import surroundings
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean, quoted

Command = TypeVar("Command", bound=Callable[..., Any])


class _Form(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    """A text of a certain form; `meaning` gives what it means, or raises ValueError with what is wrong."""

    def __init__(self, name: str, meaning: Callable[[str], object] = str) -> None:
        self.name = name
        self._meaning = meaning

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """What the text means."""
        try:
            return self._meaning(value)
        except ValueError as error:
            self.fail(f"{quoted(value)} {error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """Files where a file is meant, which the shell completes itself."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")] if self.name in {"FILE", "PATH"} else []


class Choice(click.Choice):  # type: ignore[type-arg]  # as above
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The word, when it is one of them."""
        words = list(map(str, self.choices))
        if value not in words:
            said = f"{quoted(value)} is not one of {', '.join(words)}{did_you_mean(value, words)}"
            self.fail(said, param, ctx)
        return value


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds a character that cannot be printed")
    return text


def _time(text: str) -> datetime:
    from twgen.model.times import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError("is not a time such as 2026-11-21T12:00:00Z") from error


def _duration(text: str) -> timedelta:
    """The length, `2d` and `10min` included."""
    from twgen.specs.durations import go_duration, parse_duration

    try:
        return parse_duration(go_duration(text) or text)
    except ValueError as error:
        raise ValueError("is not a duration such as 90s or 1h30m") from error


def _reading_time(text: str) -> float:
    """The seconds of a length that is one."""
    if not (seconds := _duration(text).total_seconds()):
        raise ValueError("leaves no time to read anything")
    return seconds


def _interval(text: str) -> timedelta:
    if (length := _duration(text)) < timedelta(seconds=1):
        raise ValueError("is too short: at least 1s")
    return length


def _gate(text: str) -> timedelta | None:
    """How long the gate takes; None: it fails."""
    try:
        return None if text == "fails" else _duration(text)
    except ValueError as error:
        raise ValueError(f"{error}, or 'fails'") from error


_ADDRESS = re.compile(r"[^\s=/]+:\d{1,5}")
"""A host and a port."""


def _addresses(text: str) -> tuple[str, str]:
    """Where the Connection says that Temporal is, and where it is to be reached."""
    address, _, instead = text.partition("=")
    if not _ADDRESS.fullmatch(address) or not _ADDRESS.fullmatch(instead):
        raise ValueError("is not ADDRESS=ADDRESS such as temporal.prod.svc:7233=127.0.0.1:7233")
    return address, instead


_FILE = _Form("FILE")
_NAME = _Form("NAME", _printable)
_READING_TIME = _Form("DURATION", _reading_time)
_DURATION = _Form("DURATION", _duration)
_INTERVAL = _Form("DURATION", _interval)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, what it is for, and what click should know besides."""

    flags: tuple[str, ...]
    help: str
    type: _Form | Choice | None = None
    """None: a flag."""
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

    def decorator(self, parameter: str) -> Callable[[Command], Command]:
        """Gives it to a command, as that parameter of its function."""
        kind: dict[str, Any] = {"type": self.type} if self.type else {"is_flag": True}
        if isinstance(self.type, _Form):
            kind["metavar"] = self.type.name  # as it stands: click would write FAILS
        return click.option(
            *self.flags, parameter, cls=_Scoped, help=self.help, envvar=self.variable, **kind, **self.click
        )


class _Scoped(click.Option):
    """In Argo CD, the application's own setting goes before the operator's variable."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        of_application = surroundings().settings_of_application.get(_long_name(self.opts))
        return (of_application and of_application.value) or super().resolve_envvar_value(ctx)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; raises InvalidInput, which names where it is set, what it is and what it may be."""
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            said = f"{quoted(str(value))} is neither true nor false" if self.is_flag else error.message
            raise InvalidInput(f"{self._place(ctx)} {said}") from error

    def _place(self, ctx: click.Context) -> str:
        name = _long_name(self.opts)
        if ctx.get_parameter_source(self.name or "") is not click.core.ParameterSource.ENVIRONMENT:
            return f"--{name}"
        of_application = surroundings().settings_of_application.get(name)
        return f"{of_application.source if of_application else self.envvar}:"


def _long_name(flags: Sequence[str]) -> str:
    return max(flags, key=len).strip("-")


def _flag(*flags: str, text: str, of_application: bool = False) -> Option:
    return Option(flags, text, of_application=of_application)


def _assumed(flag: str, text: str, form: _Form, default: str) -> Option:
    return Option((flag,), text, form, {"default": default, "show_default": True})


_OPTIONS: Mapping[str, Option] = {
    "snapshot": Option(("--snapshot",), "Read the world from FILE, not from servers.", _FILE),
    "now": Option(
        ("--now",), "Plan as of this time, not that of the snapshot or the clock.", _Form("TIME", _time)
    ),
    "timeout": Option(
        ("--timeout",), "Give all reading of servers this long (20s; 40s in Argo CD).", _READING_TIME
    ),
    "identity": Option(
        ("--identity",),
        "Act as this manager identity, whatever a RolloutPolicy says.",
        _NAME,
        of_application=True,
    ),
    "namespace": Option(("-n", "--namespace"), "Kubernetes namespace of documents that name none.", _NAME),
    "no_cluster": _flag("--no-cluster", text="Do not read Kubernetes."),
    "kubeconfig": Option(("--kubeconfig",), "Read Kubernetes as this file says, not KUBECONFIG.", _FILE),
    "context": Option(("--context",), "Read Kubernetes through this context.", _NAME),
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
        _Form("ADDRESS=ADDRESS", _addresses),
        {"multiple": True},
    ),
    "operator_config": Option(
        ("--operator-config",),
        "Read what the operator of Argo CD configured; elsewhere only the kinds that may be attached count.",
        _FILE,
    ),
    "strict": _flag("--strict", text="Take warnings for errors.", of_application=True),
    "quiet": _flag("-q", "--quiet", text="Do not print warnings.", of_application=True),
    "color": Option(
        ("--color",), "Colour the text.", Choice(["auto", "always", "never"]), {"default": "auto"}
    ),
    "exit_code": _flag("--exit-code", text="Exit with 1 when a change is pending."),
    "watch": _flag("-w", "--watch", text="Read again and again, and show what changes."),
    "interval": _assumed("--interval", "Wait this long between two reads of --watch.", _READING_TIME, "5s"),
    "workflow_duration": _assumed("--workflow-duration", "Pinned workflows run this long.", _DURATION, "1h"),
    "startup": _assumed("--startup", "New pods poll after this long.", _DURATION, "30s"),
    "gate": _assumed(
        "--gate", "The gate passes after this long; or `fails`.", _Form("DURATION|fails", _gate), "1m"
    ),
    "drainage_interval": _assumed(
        "--drainage-interval",
        "Temporal counts the workflows of a draining version this often.",
        _INTERVAL,
        "3m",
    ),
    "render_interval": _assumed("--render-interval", "twgen renders this often.", _INTERVAL, "3m"),
    "check": _flag("--check", text="Write nothing; exit with 1 when the ledger is not current."),
}

READING = ("timeout", "via", "no_cluster", "kubeconfig", "context", "allow_unlisted_connections")
"""What every command takes that reads servers."""


def options(*names: str) -> Callable[[Command], Command]:
    """Give a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _OPTIONS[name].decorator(name)(command)
        return command

    return decorate


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Give a command `-o` with these formats, the first by default."""
    known = {"default": formats[0], "show_default": True}
    return Option(("-o", "--output"), "Print in this format.", Choice(formats), known).decorator("output")


def refuse_settings_of_operator() -> None:
    """Raise InvalidInput when the application sets an option that is the operator's, or none of ours."""
    options = {option.name: option for option in _OPTIONS.values()}
    own = sorted(option.name for option in options.values() if option.of_application)
    for name, setting in surroundings().settings_of_application.items():
        if name not in options:
            raise InvalidInput(
                f"{setting.source}: no such setting{did_you_mean(name, own) or ';'}"
                f" an application may set {', '.join(own)}"
            )
        if not options[name].of_application:
            raise InvalidInput(
                f"{name!r} is the operator's: a repository may not set it;"
                f" the operator sets {options[name].variable} in the plugin's sidecar"
            )


def mistyped_variables() -> Iterator[str]:
    """A warning for each environment variable that is nearly, but not quite, one of an option.

    What is not even near one may be somebody else's: Kubernetes sets variables for a Service of any name.
    """
    known = ["OUTPUT", *(option.variable.removeprefix("TWGEN_") for option in _OPTIONS.values())]
    for variable in sorted(os.environ):
        prefix, _, name = variable.partition("TWGEN_")
        similar = "" if prefix or not name or name in known else did_you_mean(name, known)
        if similar:
            yield f"{variable} sets no option{similar.replace('mean ', 'mean TWGEN_')}"


paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=_Form("PATH"))
"""Files and folders; `.` by default, `-` for stdin."""
