"""`worker/NAME` in place of PATHs: which worker it means. Most commands ask, so this imports little."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from twgen.cli.option_forms import Form
from twgen.cli.options import given_options
from twgen.cli.settings import Settings, settings_of
from twgen.errors import InvalidInput, TwgenError

KIND = "worker/"
_COMPLETES_WITHIN = 2.0
"""Seconds; a person waits for it in the middle of a line."""
_NOT_BY_NAME = ("input", "release", "value_files", "values", "operator_config", "worker", "identity")


class Named(NamedTuple):
    """A worker by its name in a cluster."""

    namespace: str
    worker: str


def named_worker(settings: Settings) -> Named | None:
    """The worker that `worker/NAME` means; None: PATHs are given. Raises InvalidInput for a mixture."""
    paths = settings.paths
    names = [path for path in paths if path.startswith(KIND) and not Path(path).exists()]
    if not names:
        return None
    if len(paths) > 1:
        raise InvalidInput(f"give one {KIND}NAME, and no PATHs beside it")
    name = names[0].removeprefix(KIND)
    if not _is_worker_name(name):
        raise InvalidInput(f"{names[0]} is neither a file nor the name of a worker, such as worker/payments")
    if odd := given_options(_NOT_BY_NAME):
        raise InvalidInput(f"{', '.join(odd)} is for PATHs: leave it out with {names[0]}")
    if settings.no_cluster:
        raise InvalidInput(f"{names[0]} is read from the cluster: leave out --no-cluster")
    if not (namespace := settings.namespace_rule.default):
        raise InvalidInput(f"choose the namespace of {names[0]} with -n NAMESPACE")
    return Named(namespace, name)


def _is_worker_name(text: str) -> bool:
    return re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text) is not None


def _names_in_cluster(params: Mapping[str, Any], beginning: str) -> list[str]:
    """Each `worker/NAME` of the namespace that begins so, for a shell; none if the cluster does not answer.

    It is asked only if the person has begun to write `worker/`. A login program gets no terminal: it would
    ask the person in the middle of a line, and go on reading what is typed after that.
    """
    if not beginning or not (beginning.startswith(KIND) or KIND.startswith(beginning)):
        return []
    from twgen.cli.live import Connections, Servers
    from twgen.reading.rollouts import names_of_rollouts

    try:
        settings = settings_of({**params, "quiet": True, "timeout": _COMPLETES_WITHIN})
        namespace = settings.namespace_rule.default

        async def read(opened: Connections) -> list[str]:
            client = opened.cluster_for(f"{KIND}NAME")
            names = await names_of_rollouts(client, namespace, opened.deadline())
            # a shell inserts them as they are
            return list(filter(_is_worker_name, names))

        with Servers(settings, asks=False) as servers:
            names = servers.run((), read) if namespace else []
    except (TwgenError, click.ClickException):
        return []
    return [f"{KIND}{name}" for name in names if f"{KIND}{name}".startswith(beginning)]


class _PathsOrName(Form):
    """PATHs, or `worker/NAME`, of which a shell completes the names in the cluster."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """The names, and the request that the shell completes file names."""
        from click.shell_completion import CompletionItem

        names = _names_in_cluster(ctx.params, incomplete)
        return [*map(CompletionItem, names), *super().shell_complete(ctx, param, incomplete)]


paths_or_name_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=_PathsOrName("PATH"))
"""Files and folders, `.` by default, `-` for stdin; or `worker/NAME`."""
