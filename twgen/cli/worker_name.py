"""`worker/NAME` in place of PATHs: which worker it means. Most commands ask, so this imports little."""

import re
from pathlib import Path
from typing import NamedTuple

from twgen.cli.options import given_options
from twgen.cli.settings import Settings
from twgen.errors import InvalidInput

KIND = "worker/"
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
    if not is_worker_name(name):
        raise InvalidInput(f"{names[0]} is neither a file nor the name of a worker, such as worker/payments")
    if odd := given_options(_NOT_BY_NAME):
        raise InvalidInput(f"{', '.join(odd)} is for PATHs: leave it out with {names[0]}")
    if settings.no_cluster:
        raise InvalidInput(f"{names[0]} is read from the cluster: leave out --no-cluster")
    if not (namespace := settings.namespace_rule.default):
        raise InvalidInput(f"choose the namespace of {names[0]} with -n NAMESPACE")
    return Named(namespace, name)


def is_worker_name(text: str) -> bool:
    """A worker may have this name."""
    return re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text) is not None
