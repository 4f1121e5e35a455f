"""The option table: one row for each option drives click, the environment and the documentation."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from twgen.cli.environment import environment
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
    KUBE_VERSION,
    NAME,
    NAMES,
    OBJECT,
    ORDINAL,
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
from twgen.errors import InvalidInput
from twgen.model.problem import did_you_mean, quoted
from twgen.model.values import dataclass

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flags, its help text, and further arguments for click."""

    flags: tuple[str, ...]
    help: str
    key: str
    """The parameter of the functions of commands: `value_files`."""
    type: Form | Choice | None
    """None: a flag."""
    click: Mapping[str, Any]
    of_application: bool = False
    """In Argo CD, the application may set it too; only the operator may set the others."""
    short: str = ""
    """The help in at most 46 characters, for the help of many commands; empty: the whole text."""

    @property
    def name(self) -> str:
        """Its name on the command line: `value-files`."""
        return _long_name(self.flags)

    @property
    def parameter(self) -> str:
        """Its name as a plugin parameter: `valueFiles`."""
        first_word, *words = self.name.split("-")
        return first_word + "".join(map(str.capitalize, words))

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `TWGEN_<OPTION>`."""
        return f"TWGEN_{self.name.replace('-', '_').upper()}"

    def decorator(self, text: str = "") -> Callable[[Command], Command]:
        """Adds it to a command, as a parameter of its function; `text` replaces its help there."""
        kind: dict[str, Any] = {"type": self.type} if self.type else {"is_flag": True}
        if isinstance(self.type, Form):
            kind["metavar"] = self.type.name  # unchanged: click would write FAILS
        return click.option(
            *self.flags,
            self.key,
            cls=_Scoped,
            help=text or self.help,
            envvar=self.variable,
            **kind,
            **self.click,
        )


class _Scoped(click.Option):
    """In Argo CD, the application's own setting overrides the operator's variable."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        setting = environment().settings_of_application.get(_long_name(self.opts))
        return (setting and setting.value) or super().resolve_envvar_value(ctx)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; raises InvalidInput with the place, the value and the allowed values."""
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            mistake = f"{quoted(str(value))} is neither true nor false" if self.is_flag else error.message
            name = _long_name(self.opts)
            place = f"--{name}"
            if ctx.get_parameter_source(self.name or "") is click.core.ParameterSource.ENVIRONMENT:
                setting = environment().settings_of_application.get(name)
                place = f"{setting.source if setting else self.envvar}:"
            raise InvalidInput(f"{place} {mistake}") from error


def _long_name(flags: Sequence[str]) -> str:
    return max(flags, key=len).partition("/")[0].strip("-")


def _option(  # noqa: PLR0913 - each is a column of the table
    flags: str,
    text: str,
    form: Form | Choice | None = None,
    *,
    key: str = "",
    of_application: bool = False,
    short: str = "",
    **click_settings: Any,
) -> Option:
    names = tuple(flags.split())
    key = key or _long_name(names).replace("-", "_")
    return Option(names, text, key, form, click_settings, of_application, short)


def _assumed(flags: str, text: str, form: Form | Choice, default: str) -> Option:
    return _option(flags, text, form, default=default, show_default=True)


_ROWS = (
    _option("--snapshot", "Read the servers' state from FILE, as `twgen snapshot` printed it.", FILE),
    _option("--now", "Plan as of this time, instead of the snapshot's time or the clock.", TIME),
    _option(
        "--timeout",
        "Time limit for each answer of a server (20s); in Argo CD, for all answers together (40s).",
        READING_TIME,
        short="Time limit for each answer of a server (20s).",
    ),
    _option(
        "--identity",
        "Act as manager identity twgen/NAME, even if a RolloutPolicy sets another.",
        IDENTITY,
        of_application=True,
        short="Act as manager identity twgen/NAME.",
    ),
    _option(
        "-n --namespace",
        "Kubernetes namespace of documents that do not set one.",
        NAME,
        short="Namespace of documents that set none.",
    ),
    _option("--no-cluster", "Do not read Kubernetes."),
    _option(
        "--kubeconfig",
        "Use this kubeconfig file instead of KUBECONFIG.",
        FILE,
        short="Use this file instead of KUBECONFIG.",
    ),
    _option("--context", "Use this context of the kubeconfig.", NAME),
    _option(
        "--offline", "Read no server. Render each worker as if it had never been deployed, to check it in CI."
    ),
    _option("--no-hooks", "Leave out rollout objects, for `kubectl diff`."),
    # as `kubectl apply --server-side` does: with argocd-controller, every object would differ by the tracking
    # annotation that Argo CD adds
    _assumed("--field-manager", "Compare as if this field manager applied the manifests.", NAME, "kubectl"),
    _option(
        "--allow-unlisted-connections",
        "In Argo CD, allow connections that no Temporal profile lists, if they need no credentials.",
        short="In Argo CD: also connections without profile.",
    ),
    _option(
        "--only-listed-connections",
        "Refuse connections that no Temporal profile lists, even if they need no credentials.",
    ),
    _option(
        "--via",
        "Reach a Temporal server through another address, such as a forwarded port. Repeatable.",
        ADDRESSES,
        short="Reach Temporal through another address.",
        multiple=True,
    ),
    _option(
        "--ca-file",
        "Trust the certificates in FILE if a Connection trusts SECRET and no Temporal profile sets"
        " certificates. Repeatable.",
        FILE_OF_SECRET,
        short="Trust these certificates for Temporal.",
        multiple=True,
    ),
    _option(
        "--prometheus",
        "Query the Prometheus at URL for metrics with `server: NAME`, or without `server`. Repeatable.",
        PROMETHEUS,
        short="Query this Prometheus for metrics.",
        multiple=True,
    ),
    _option(
        "--operator-config",
        "OperatorConfig file. Outside Argo CD, only its `rollout`, `attached`, `prometheus` and `links`"
        " are used.",
        FILE,
    ),
    _option(
        "--input",
        "Read the folder as YAML documents (Directory), or render it with kustomize or helm.",
        Choice(["Directory", "Kustomize", "Helm"]),
        of_application=True,
        short="How the folder is read.",
    ),
    _option("--release", "With --input Helm: the release name.", RELEASE, of_application=True),
    _option(
        "--value-files",
        "With --input Helm: value files, relative to the chart's folder, separated by commas.",
        FILES,
        of_application=True,
        short="With --input Helm: value files.",
    ),
    _option(
        "--values",
        "With --input Helm: values, as YAML. They override the value files.",
        VALUES,
        of_application=True,
        short="With --input Helm: values, as YAML.",
    ),
    _option(
        "--kube-version",
        "With --input Helm: the Kubernetes version of the cluster, as `.Capabilities` has it.",
        KUBE_VERSION,
        short="With --input Helm: the cluster's version.",
    ),
    _option(
        "--api-versions",
        "With --input Helm: APIs that the cluster has, separated by commas, as `.Capabilities` has them.",
        NAMES,
        short="With --input Helm: APIs that the cluster has.",
    ),
    _option("--strict", "Treat warnings as errors.", of_application=True),
    _option("-q --quiet", "Do not print warnings.", of_application=True),
    _option("-v --verbose", "On a terminal, show details of all workers, even of many."),
    _option("--color", "Colour the text.", Choice(["auto", "always", "never"]), default="auto"),
    _option("--exit-code", "Exit with 1 if changes are pending or a worker is not Settled."),
    _option("-w --watch", "Read repeatedly, and show each change."),
    _assumed("--interval", "Time between two reads of --watch.", READING_TIME, "5s"),
    _assumed("--workflow-duration", "Assumed duration of a pinned workflow.", DURATION, "1h"),
    _assumed("--startup", "Assumed time until a new pod polls.", DURATION, "30s"),
    _assumed("--gate", "Assumed time until the gate passes; `fails` for a gate that fails.", GATE, "1m"),
    _assumed(
        "--drainage-interval",
        "Assumed interval at which Temporal counts the workflows of a draining version.",
        INTERVAL,
        "3m",
    ),
    _assumed("--render-interval", "Assumed time between two renders.", INTERVAL, "3m"),
    _option("--starts-per-hour", "With --failing: number of workflows that start in an hour.", STARTS),
    _option("--failing", "Report how soon a version with this failure rate would be detected.", RATIO),
    _assumed("--window", "Estimate from the workflows that closed within this time.", INTERVAL, "7d"),
    _option("--version", "End the workflows that are pinned to this version.", NAME, key="of_version"),
    _option(
        "--type",
        "With --version: only workflows of this type. Repeatable.",
        NAME,
        key="workflow_types",
        multiple=True,
    ),
    _option("--older-than", "With --version: only workflows that started at least this long ago.", INTERVAL),
    _option("--move", "Move the workflows to the current version."),
    _option("--to", "With --move: the version to move to.", NAME, key="to_version"),
    _option("--without-replay", "With --move: do not require a passed replay."),
    _option("--signal", "Send this signal to the workflows.", NAME),
    _option("--signal-input", "With --signal: the argument of the signal.", JSON),
    _option("--cancel", "Request cancellation of the workflows."),
    _option("--terminate", "Terminate the workflows."),
    _option("--again", "Repeat an operation that has already ended for this version."),
    _option("--wait", "Wait for another operation to end, then for this one."),
    _option("-d --folder", "Folder to write the histories to.", FOLDER),
    _option(
        "--deployment-name", "Read this Worker Deployment, using Temporal's own environment settings.", NAME
    ),
    _option("--task-queue", "Include open workflows on this task queue that have no version yet.", NAME),
    _option("--upgrading", "Only auto-upgrade workflows."),
    _option("--shared", "Make the files readable by every user, such as another user in the same Pod."),
    _option("--sample", "Maximum number of histories for each workflow type (50).", COUNT, default="50"),
    _option("--max-bytes", "Maximum size of all histories together (64Mi).", BYTES, default="64Mi"),
    _option(
        "--from-cluster", "Show the statuses that rollouts wrote in the cluster, without Git and Temporal."
    ),
    _option("-A --all-namespaces", "With --from-cluster: the rollouts of every namespace."),
    _option("--worker", "The worker, if there are several.", NAME),
    _assumed("--argocd-namespace", "Namespace of Argo CD.", NAME, "argocd"),
    _option("--listen", "Listen at HOST:PORT, instead of a free port of 127.0.0.1.", NAME),
    _option("--no-browser", "Do not open a browser."),
    _option("--from", "The current manager, to take the worker over from.", NAME, key="owner"),
    _option("-y --yes", "Do not ask for confirmation."),
    _option("--full", "Send all traffic to the target, and skip the remaining steps."),
    _option(
        "--keep", "Number of the newest drained versions that stay (the policy's keepRecords, or 5).", COUNT
    ),
    _option("--dry-run", "Say what would be changed, and change nothing."),
    _option("--skip-gate", "Continue even if the gate or the replay has not passed."),
    _option("--once/--until-settled", "Make one change at most, or continue until settled (the default)."),
    _option("--within", "Give up after this time (1h; no limit with --intent).", READING_TIME),
    _option("--intent", "Roll out the intent in this ConfigMap of the cluster, instead of PATHs.", OBJECT),
    _option("--intent-hash", "Exit when the intent no longer has this hash.", NAME),
    _option("--every", "Keep running, and check this often.", READING_TIME),
    _option("--metrics", "With --every: serve /metrics and /healthz at HOST:PORT or :PORT.", NAME),
    _assumed("--shards", "How many ticks share the workers, by Temporal namespace.", COUNT, "1"),
    _option("--shard", "With --shards: the number of this tick, from 0.", ORDINAL),
    _option(
        "--argocd-server", "Refresh the applications of Argo CD, whose API server has this address.", NAME
    ),
    _option("--argocd-token-file", "Read the Argo CD token from FILE instead of ARGOCD_AUTH_TOKEN.", FILE),
    _option("--argocd-ca-file", "Trust the certificates in FILE for Argo CD.", FILE),
    _option("--check", "Write nothing. Exit with 1 if the ledger is outdated."),
)
OPTIONS: Mapping[str, Option] = {option.key: option for option in _ROWS}
"""Every option of every command, by the parameter of its function."""

INPUT = ("input", "release", "value_files", "values", "kube_version", "api_versions")
"""The options of every command that reads specs."""
READING = ("timeout", "via", "ca_file", "no_cluster", "kubeconfig", "context", "allow_unlisted_connections")
"""The options of every command that reads servers."""
MEASURING = (*READING, "prometheus")
"""The options of every command that reads the input of decisions about traffic."""

SHARED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Connection": ("How a command reaches Temporal and Kubernetes.", (*MEASURING, "identity")),
    "Input": ("How a command reads specs.", (*INPUT, "namespace", "operator_config")),
    "Output": ("How a command reports.", ("quiet", "strict", "color")),
}
"""The groups of options that many commands have, by the parameters of their functions."""


class Grouped(click.Command):
    """A command whose help shows its own options first, and one line for each shared one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options that the command has."""
        params = {str(param.name): param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        of_groups = {name for _, names in SHARED.values() for name in names}
        groups = {"Options": [name for name in params if name not in of_groups]} | {
            title: [name for name in names if name in params] for title, (_, names) in SHARED.items()
        }
        for title, names in groups.items():
            rows = []
            for name in names:
                option, param = OPTIONS.get(name), params[name]
                if record := param.get_help_record(ctx):
                    # a text that a command gives is about that command
                    if option and option.short and param.help == option.help:
                        record = (record[0], option.short)
                    rows.append(record)
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def options(*names: str, **texts: str) -> Callable[[Command], Command]:
    """Give a command these options, in this order; `texts` replace the help of some of them."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = OPTIONS[name].decorator(texts.get(name, ""))(command)
        return command

    return decorate


def given_options(names: Iterable[str]) -> list[str]:
    """The options among these that were given on the command line, with their dashes."""
    context = click.get_current_context(silent=True)
    typed = click.core.ParameterSource.COMMANDLINE
    given = (name for name in names if context and context.get_parameter_source(name) is typed)
    return [f"--{OPTIONS[name].name}" for name in given]


def output_option(*formats: str) -> Callable[[Command], Command]:
    """Give a command `-o` with these formats, the first by default."""
    return _assumed("-o --output", "Print in this format.", Choice(formats), formats[0]).decorator()


paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=Form("PATH"))
"""Files and folders; `.` by default, `-` for stdin."""


def refuse_settings_of_operator() -> None:
    """Raise InvalidInput if the application sets an operator's option, an unknown one, or not a text."""
    options = {option.name: option for option in OPTIONS.values()}
    parameters = sorted(option.parameter for option in options.values() if option.of_application)
    for name, setting in environment().settings_of_application.items():
        if name == setting.source:  # a variable that is no option's
            raise InvalidInput(setting.mistake)
        if name not in options:
            raise InvalidInput(
                f"{setting.source}: no such setting{did_you_mean(name, parameters) or ';'}"
                f" an application may set {', '.join(parameters)}"
            )
        if not options[name].of_application:
            raise InvalidInput(
                f"{name!r} is for the operator, and a repository may not set it; the operator can set"
                f" {options[name].variable} in the plugin's sidecar"
            )
        if setting.mistake:
            raise InvalidInput(setting.mistake)


def mistyped_variables() -> Iterator[str]:
    """A warning for each environment variable whose name is nearly the name of an option's variable.

    Other names may belong to other programs: Kubernetes sets variables for a Service of any name.
    """
    names = ["OUTPUT", *(option.variable.removeprefix("TWGEN_") for option in OPTIONS.values())]
    for variable in sorted(os.environ):
        prefix, _, name = variable.partition("TWGEN_")
        similar = "" if prefix or not name or name in names else did_you_mean(name, names)
        if similar:
            yield f"{variable} sets no option{similar.replace('mean ', 'mean TWGEN_')}"
