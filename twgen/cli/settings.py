"""Converts the options of a command into Settings."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from twgen.cli.environment import RunContext, environment
from twgen.cli.option_table import OPTIONS, release_name
from twgen.cli.options import INPUT, MEASURING, OF_HELM, given_options, mistyped_variables
from twgen.cli.output import warn
from twgen.errors import InvalidInput
from twgen.model.operator import Caller, Operator, PrometheusServer
from twgen.model.problem import quoted
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.reading.documents import Sources
from twgen.reading.templated import DIRECTORY, HELM, Input

if TYPE_CHECKING:
    from twgen.clients.deadline import Deadline
    from twgen.specs.spec_document import NamespaceRule


def clock() -> datetime:
    """The current time, without fractions of a second."""
    return datetime.now(UTC).replace(microsecond=0)


@cache
def _began() -> tuple[datetime, float]:
    """The time of the first call of `steady`, by the machine's clock and by the monotonic clock."""
    from twgen.clients import deadline

    return clock(), deadline.monotonic()


def steady() -> datetime:
    """A clock for measuring pauses in this process, unaffected by changes to the machine's clock."""
    from twgen.clients import deadline

    (began, at), now = _began(), deadline.monotonic()
    return later(began, timedelta(seconds=now - at))


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a command.

    If a field has a default, its value comes from the option or argument with the same name.
    """

    environment: RunContext
    sources: Sources
    operator: Operator
    input: Input
    timeout: float
    """The time limit for each response, in seconds. In Argo CD, it limits all responses together."""
    via: Mapping[str, str]
    """The address to connect to, by the address of the Temporal server."""
    ca_files: Mapping[str, str]
    """The file with trusted certificates, by the name of the Secret that a Connection names."""
    allow_unlisted_connections: bool | None
    """Whether to allow connections without a profile or credentials. None means the default."""
    paths: tuple[str, ...] = (".",)
    now: datetime | None = None
    snapshot: str | None = None
    offline: bool = False
    """Treat each worker as if it had never been deployed."""
    identity: str = ""
    namespace: str = ""
    strict: bool = False
    quiet: bool = False
    no_cluster: bool = False
    kubeconfig: str = ""
    context: str = ""
    title: str = ""
    prometheus: tuple[PrometheusServer, ...] = ()
    shard: int = 0
    shards: int = 1

    def warn(self, lines: Iterable[str]) -> None:
        """Print one warning for each line, unless --quiet is given."""
        if not self.quiet:
            warn(lines)

    @property
    def namespace_rule(self) -> "NamespaceRule":
        """The rule that gives a document its namespace."""
        return self.environment.namespace_rule(self.namespace)

    def reading_deadline(self) -> "Deadline":
        """A new deadline for a read that a command waits for.

        At a terminal, each response has its own deadline, because a rate limit can make the read of a fleet
        take long. If a server rejects a request because of its rate limit, twgen repeats the request until
        the deadline of the response.
        """
        from twgen.clients.deadline import AnswerDeadline, Deadline

        return Deadline(self.timeout) if self.environment.is_plugin else AnswerDeadline(self.timeout, inf)

    def usable_prometheus(self, mounted: Sequence[PrometheusServer] = ()) -> tuple[PrometheusServer, ...]:
        """The Prometheus servers that a command may query.

        If servers have the same name, a server from an option takes precedence over the operator's server,
        which takes precedence over a `mounted` server.
        """
        servers = (*mounted, *self.environment.prometheus(self.operator), *self.prometheus)
        return tuple({server.name: server for server in servers}.values())

    @property
    def renders_again(self) -> bool:
        """Whether every command renders a chart a second time, to find pods that differ at each render."""
        return self.strict or self.environment.is_plugin

    def page_title(self, context: str) -> str:
        """The title of a page about the cluster in this context. Empty means the default title."""
        return self.title or (f"Temporal workers of {context}" if context else "")

    @property
    def rendering_caller(self) -> Caller:
        """The caller of a render."""
        return self.environment.rendering_caller(self.identity, self.operator)

    @property
    def planning_caller(self) -> Caller:
        """The caller of a plan. At a terminal, the caller is the user."""
        return self.environment.planning_caller(self.identity, self.operator)


def settings_outside_argocd(params: Mapping[str, Any]) -> Settings:
    """The Settings of a command that Argo CD's plugin must not run. Raises InvalidInput in the plugin."""
    if environment().is_plugin:
        command = click.get_current_context().command_path
        raise InvalidInput(f"the Argo CD plugin can only render: run `{command}` outside the plugin")
    return settings_of(params)


def settings_of(params: Mapping[str, Any]) -> Settings:
    """The Settings of a command, from its parameters, the environment and the operator's file."""
    sources = Sources()
    context = environment()
    ca_files = dict(params.get("ca_file") or ())
    files = [(name, params.get(name)) for name in ("operator_config", "kubeconfig")]
    files.append(("snapshot", os.environ.get(OPTIONS["snapshot"].variable)))
    for name, path in (*files, *(("ca_file", file) for file in ca_files.values())):
        if context.is_plugin and path and not Path(path).is_absolute():
            why = "because the repository may contain such a file"
            raise InvalidInput(f"{OPTIONS[name].variable}: {path!r} must be an absolute path, {why}")
    operator = Operator()
    if path := params.get("operator_config"):
        from twgen.reading.documents import read_operator_file

        operator = read_operator_file(path, sources)
    if not params.get("quiet"):
        warn(mistyped_variables())
        if params.get("snapshot") and (idle := given_options(MEASURING)):
            verb = "has" if len(idle) == 1 else "have"
            warn([f"{', '.join(idle)} {verb} no effect with --snapshot: no server is read"])
    prometheus = params.get("prometheus") or ()
    if len({server.name for server in prometheus}) < len(prometheus):
        raise InvalidInput("two --prometheus options have the same name: give each name once")
    fields = {name: value for name, value in params.items() if value and name in Settings.__annotations__}
    return Settings(
        **{
            **fields,
            "environment": context,
            "sources": sources,
            "operator": operator,
            "input": _input_of(params, context),
            "timeout": params.get("timeout") or context.timeout,
            "via": dict(params.get("via") or ()),
            "ca_files": ca_files,
            "allow_unlisted_connections": _allows_unlisted(params),
        }
    )


def _allows_unlisted(params: Mapping[str, Any]) -> bool | None:
    """Whether to allow connections without a profile or credentials. None means the default."""
    allow, only = "allow_unlisted_connections", "only_listed_connections"
    chosen = [name for name in (allow, only) if params.get(name)]
    if len(chosen) > 1:
        # an option on the command line overrides a variable
        chosen = [name for name in chosen if given_options([name])]
    if len(chosen) == 1:
        return chosen == [allow]
    if params.get(allow):
        raise InvalidInput(f"{OPTIONS[allow].dashed} conflicts with {OPTIONS[only].dashed}: give one of them")
    return None


def _input_of(params: Mapping[str, Any], context: RunContext) -> Input:
    kind = params.get("input") or DIRECTORY
    for name in OF_HELM:
        if params.get(name) and kind != HELM:
            setting = context.settings_of_application.get(OPTIONS[name].name)
            place = setting.source if setting else OPTIONS[name].dashed
            helm = "input Helm" if setting else "--input Helm"
            raise InvalidInput(f"{place} works only with {helm}, but the input is {kind}")
    if kind == HELM and context.release and not params.get("release"):
        try:
            release_name(context.release)
        except ValueError as error:
            raise InvalidInput(
                f"the application's name {quoted(context.release)} {error}; set plugin parameter 'release'"
            ) from error
    return Input(
        kind,
        params.get("release") or context.release,
        params.get("value_files") or (),
        params.get("values") or "",
        context.namespace_rule(params.get("namespace") or "").default if kind == HELM else "",
        params.get("kube_version") or context.kube_version,
        params.get("api_versions") or context.api_versions,
        context.checkout,
    )


KIND = "worker/"
"""The prefix of a worker's name that users can give instead of PATHs."""
_NOT_BY_NAME = (*INPUT, "worker", "identity")


class Named(NamedTuple):
    """The namespace and the name of a worker in a cluster."""

    namespace: str
    worker: str


def named_worker(settings: Settings) -> Named | None:
    """The worker in `worker/NAME`, or None if PATHs are given. Raises InvalidInput if both are given."""
    paths = settings.paths
    names = [path for path in paths if path.startswith(KIND) and not Path(path).exists()]
    for path in paths if not names else ():
        if is_worker_name(path) and not Path(path).exists():
            raise InvalidInput(
                f"{path}: no such file or folder; for a worker of the cluster write {KIND}{path} -n NAMESPACE"
            )
    if not names:
        return None
    if len(paths) > 1:
        raise InvalidInput(f"{KIND}NAME must be the only argument: give no other name and no PATHs")
    name = names[0].removeprefix(KIND)
    if not is_worker_name(name):
        raise InvalidInput(f"{names[0]} is neither a file nor the name of a worker, such as worker/payments")
    if odd := given_options(_NOT_BY_NAME):
        raise InvalidInput(f"{', '.join(odd)} works only with PATHs: leave it out with {names[0]}")
    if settings.no_cluster:
        raise InvalidInput(f"{names[0]} is read from the cluster: leave out --no-cluster")
    if not (namespace := settings.namespace_rule.default):
        raise InvalidInput(f"choose the namespace of {names[0]} with -n NAMESPACE")
    return Named(namespace, name)


def is_worker_name(text: str) -> bool:
    """Whether the text is a valid name of a WorkerDeployment, and therefore safe in a shell and a request."""
    return re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text) is not None
