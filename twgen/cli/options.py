"""The option table: one row for each option drives click, the environment and the documentation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

import click

from twgen.cli.option_forms import (
    ADDRESSES,
    BYTES,
    COUNT,
    DURATION,
    FILE,
    FILE_OF_SECRET,
    FILES,
    FOLDER,
    GATE,
    IDENTITY,
    INTERVAL,
    JSON,
    NAME,
    OBJECT,
    PROMETHEUS,
    RATIO,
    READING_TIME,
    RELEASE,
    STARTS,
    TIME,
    VALUES,
    Choice,
    Form,
)
from twgen.cli.surroundings import surroundings
from twgen.errors import InvalidInput
from twgen.model.problem import quoted
from twgen.model.values import dataclass

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, what it is for, and what click should know besides."""

    flags: tuple[str, ...]
    help: str
    type: Form | Choice | None = None
    """None: a flag."""
    click: Mapping[str, Any] = field(default_factory=dict)
    of_application: bool = False
    """In Argo CD, the application may set it too; any other is the operator's alone."""

    @property
    def name(self) -> str:
        """What the command line calls it: `value-files`."""
        return _long_name(self.flags)

    @property
    def parameter(self) -> str:
        """What a plugin parameter calls it: `valueFiles`."""
        first, *others = self.name.split("-")
        return first + "".join(map(str.capitalize, others))

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `TWGEN_<OPTION>`."""
        return f"TWGEN_{self.name.replace('-', '_').upper()}"

    def decorator(self, parameter: str, text: str = "") -> Callable[[Command], Command]:
        """Gives it to a command, as that parameter of its function; `text`: what it means there alone."""
        kind: dict[str, Any] = {"type": self.type} if self.type else {"is_flag": True}
        if isinstance(self.type, Form):
            kind["metavar"] = self.type.name  # as it stands: click would write FAILS
        return click.option(
            *self.flags,
            parameter,
            cls=_Scoped,
            help=text or self.help,
            envvar=self.variable,
            **kind,
            **self.click,
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
            name = _long_name(self.opts)
            place = f"--{name}"
            if ctx.get_parameter_source(self.name or "") is click.core.ParameterSource.ENVIRONMENT:
                of_application = surroundings().settings_of_application.get(name)
                place = f"{of_application.source if of_application else self.envvar}:"
            raise InvalidInput(f"{place} {said}") from error


def _long_name(flags: Sequence[str]) -> str:
    return max(flags, key=len).partition("/")[0].strip("-")


def _flag(*flags: str, text: str, of_application: bool = False) -> Option:
    return Option(flags, text, of_application=of_application)


def _assumed(flag: str, text: str, form: Form, default: str) -> Option:
    return Option((flag,), text, form, {"default": default, "show_default": True})


OPTIONS: Mapping[str, Option] = {
    "snapshot": Option(("--snapshot",), "Read the world from FILE, not from servers.", FILE),
    "now": Option(("--now",), "Plan as of this time, not that of the snapshot or the clock.", TIME),
    "timeout": Option(
        ("--timeout",), "Give all reading of servers this long (20s; 40s in Argo CD).", READING_TIME
    ),
    "identity": Option(
        ("--identity",),
        "Act as manager identity twgen/NAME, whatever a RolloutPolicy says.",
        IDENTITY,
        of_application=True,
    ),
    "namespace": Option(("-n", "--namespace"), "Kubernetes namespace of documents that name none.", NAME),
    "no_cluster": _flag("--no-cluster", text="Do not read Kubernetes."),
    "kubeconfig": Option(("--kubeconfig",), "Read Kubernetes as this file says, not KUBECONFIG.", FILE),
    "context": Option(("--context",), "Read Kubernetes through this context.", NAME),
    "offline": _flag(
        "--offline", text="Read no server: render each worker as if it was never deployed, to check it in CI."
    ),
    "no_hooks": _flag("--no-hooks", text="Leave rollout objects out, for `kubectl diff`."),
    # as `kubectl apply --server-side` does: with argocd-controller, every object would differ by the tracking
    # annotation that Argo CD adds
    "field_manager": _assumed(
        "--field-manager", "Compare as if this field manager applied the manifests.", NAME, "kubectl"
    ),
    "allow_unlisted_connections": _flag(
        "--allow-unlisted-connections",
        text="In Argo CD, use connections that need no credentials and that no Temporal profile lists.",
    ),
    "only_listed_connections": _flag(
        "--only-listed-connections",
        text="Refuse connections that no Temporal profile lists, also those that need no credentials.",
    ),
    "via": Option(
        ("--via",),
        "Reach a Temporal through another address, such as that of a port-forward; as often as needed.",
        ADDRESSES,
        {"multiple": True},
    ),
    "ca_file": Option(
        ("--ca-file",),
        "Trust the certificates in FILE where a Connection trusts those of SECRET, and a profile of Temporal"
        " names none; as often as needed.",
        FILE_OF_SECRET,
        {"multiple": True},
    ),
    "prometheus": Option(
        ("--prometheus",),
        "Ask the Prometheus at URL for metrics that call theirs NAME, or name none; as often as needed.",
        PROMETHEUS,
        {"multiple": True},
    ),
    "operator_config": Option(
        ("--operator-config",),
        "Read what the operator configured; elsewhere `rollout`, `attached`, `prometheus`, `links` count.",
        FILE,
    ),
    "input": Option(
        ("--input",),
        "Take the folder as Directory (of documents), or render it with kustomize or helm.",
        Choice(["Directory", "Kustomize", "Helm"]),
        of_application=True,
    ),
    "release": Option(
        ("--release",), "With --input Helm: the name of the release.", RELEASE, of_application=True
    ),
    "value_files": Option(
        ("--value-files",),
        "With --input Helm: value files, from the chart's folder, with commas between them.",
        FILES,
        of_application=True,
    ),
    "values": Option(
        ("--values",),
        "With --input Helm: values, as YAML; they override those of the value files.",
        VALUES,
        of_application=True,
    ),
    "strict": _flag("--strict", text="Take warnings for errors.", of_application=True),
    "quiet": _flag("-q", "--quiet", text="Do not print warnings.", of_application=True),
    "color": Option(
        ("--color",), "Colour the text.", Choice(["auto", "always", "never"]), {"default": "auto"}
    ),
    "exit_code": _flag("--exit-code", text="Exit with 1 while anything is to change, or not Settled."),
    "watch": _flag("-w", "--watch", text="Read again and again, and show what changes."),
    "interval": _assumed("--interval", "Wait this long between two reads of --watch.", READING_TIME, "5s"),
    "workflow_duration": _assumed("--workflow-duration", "Pinned workflows run this long.", DURATION, "1h"),
    "startup": _assumed("--startup", "New pods poll after this long.", DURATION, "30s"),
    "gate": _assumed("--gate", "The gate passes after this long; or `fails`.", GATE, "1m"),
    "drainage_interval": _assumed(
        "--drainage-interval", "Temporal counts workflows of a draining version this often.", INTERVAL, "3m"
    ),
    "render_interval": _assumed("--render-interval", "twgen renders this often.", INTERVAL, "3m"),
    "starts_per_hour": Option(("--starts-per-hour",), "With --failing: so many start an hour.", STARTS),
    "failing": Option(("--failing",), "Tell when a version that fails this share is noticed.", RATIO),
    "window": _assumed("--window", "Tell by workflows that ended this lately.", INTERVAL, "7d"),
    "of_version": Option(("--version",), "End the workflows that are pinned to this version.", NAME),
    "workflow_types": Option(
        ("--type",), "With --version: those of this type alone, or of these.", NAME, {"multiple": True}
    ),
    "older_than": Option(("--older-than",), "With --version: those that started this long ago.", INTERVAL),
    "move": _flag("--move", text="Move them to the current version."),
    "to_version": Option(("--to",), "With --move: to this version.", NAME),
    "without_replay": _flag("--without-replay", text="With --move: though nothing has replayed them there."),
    "signal": Option(("--signal",), "Send them this signal.", NAME),
    "signal_input": Option(("--signal-input",), "With --signal: its argument.", JSON),
    "cancel": _flag("--cancel", text="Ask them to cancel."),
    "terminate": _flag("--terminate", text="Terminate them."),
    "again": _flag("--again", text="Do once more what has been done to this version before."),
    "wait": _flag("--wait", text="Wait until the server has done it to all."),
    "folder": Option(("-d", "--folder"), "Where the histories are written.", FOLDER),
    "deployment_name": Option(("--deployment-name",), "Of this one; connect as Temporal's tools do.", NAME),
    "task_queue": Option(
        ("--task-queue",), "Also of open workflows on this task queue that no version has had yet.", NAME
    ),
    "upgrading": _flag("--upgrading", text="Those alone that go on with the next version by themselves."),
    "shared": _flag("--shared", text="Let every user read them, who may be another one in a Pod."),
    "sample": Option(("--sample",), "Histories of each workflow type (50).", COUNT, {"default": "50"}),
    "max_bytes": Option(("--max-bytes",), "Of all histories together (64Mi).", BYTES, {"default": "64Mi"}),
    "from_cluster": _flag(
        "--from-cluster", text="Show what rollouts left in the cluster, without Git and Temporal."
    ),
    "all_namespaces": _flag(
        "-A", "--all-namespaces", text="With --from-cluster: the rollouts of every namespace."
    ),
    "worker": Option(("--worker",), "The worker, when there are several.", NAME),
    "argocd_namespace": _assumed("--argocd-namespace", "Where Argo CD is.", NAME, "argocd"),
    "listen": Option(("--listen",), "Serve it at HOST:PORT, not at a free port of this machine alone.", NAME),
    "no_browser": _flag("--no-browser", text="Open no browser."),
    "owner": Option(("--from",), "Who manages it now, and is to do so no more.", NAME),
    "yes": _flag("-y", "--yes", text="Do not ask."),
    "full": _flag("--full", text="Send all of the traffic, whatever steps are left."),
    "skip_gate": _flag("--skip-gate", text="Go on without a gate or a replay that has not passed."),
    "once": _flag("--once/--until-settled", text="Make one change at most, or go on (the default)."),
    "within": Option(("--within",), "Give up when it takes longer (1h; never with --intent).", READING_TIME),
    "intent": Option(
        ("--intent",), "Roll out what this ConfigMap says, in the cluster, in place of PATHs.", OBJECT
    ),
    "intent_hash": Option(("--intent-hash",), "End when the intent is no longer this one.", NAME),
    "every": Option(("--every",), "Go on, and look this often.", READING_TIME),
    "metrics": Option(
        ("--metrics",), "With --every, serve /metrics and /healthz at HOST:PORT, or at :PORT.", NAME
    ),
    "argocd_server": Option(
        ("--argocd-server",), "Refresh applications of this Argo CD: the address of its API server.", NAME
    ),
    "argocd_token_file": Option(
        ("--argocd-token-file",), "Read the token for it from FILE, not from ARGOCD_AUTH_TOKEN.", FILE
    ),
    "argocd_ca_file": Option(("--argocd-ca-file",), "Know it by the certificates in FILE.", FILE),
    "check": _flag("--check", text="Write nothing; exit with 1 when the ledger is not current."),
}
"""Every option of every command, by the parameter of its function."""

INPUT = ("input", "release", "value_files", "values")
"""What every command takes that reads specs."""
READING = ("timeout", "via", "ca_file", "no_cluster", "kubeconfig", "context", "allow_unlisted_connections")
"""What every command takes that reads servers."""
MEASURING = (*READING, "prometheus")
"""What every command takes that reads what decides on traffic."""


def options(*names: str, **texts: str) -> Callable[[Command], Command]:
    """Give a command these options, in this order; `texts` are what some of them mean there alone."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = OPTIONS[name].decorator(name, texts.get(name, ""))(command)
        return command

    return decorate


def given_options(names: Iterable[str]) -> list[str]:
    """Those of the options that were written on the command line, as they are written there."""
    context = click.get_current_context(silent=True)
    written = click.core.ParameterSource.COMMANDLINE
    given = (name for name in names if context and context.get_parameter_source(name) is written)
    return [f"--{OPTIONS[name].name}" for name in given]


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Give a command `-o` with these formats, the first by default."""
    first = {"default": formats[0], "show_default": True}
    return Option(("-o", "--output"), "Print in this format.", Choice(formats), first).decorator("output")


paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=Form("PATH"))
"""Files and folders; `.` by default, `-` for stdin."""
