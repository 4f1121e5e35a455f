"""`twgen diff`."""

import subprocess
import sys
from typing import Any

import click

from twgen.cli.options import INPUT, READING, Grouped, options, paths_argument
from twgen.cli.render import rendered
from twgen.cli.settings import settings_of
from twgen.clients.programs import program_on_path
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.paths import value_at
from twgen.rendering.manifests import FORMATS

_SIGNALLED = 128


@click.command(cls=Grouped)
@paths_argument
@options("snapshot", "now", *READING, *INPUT, "identity", "namespace", "operator_config")
@options("no_hooks", "field_manager", "strict", "quiet")
def command(**params: Any) -> None:
    """Show what applying the manifests would change in the cluster. Changes nothing.

    It runs `kubectl diff --server-side`. Objects that are no longer rendered are not shown: `twgen plan`
    lists them.

    \b
    twgen diff .
    twgen diff . --no-hooks

    Exits as kubectl does: with 0 if there is no difference, 1 if there is one, 2 or more after an error.
    If the render fails, kubectl is not run.
    """
    settings = settings_of(params)
    if settings.environment.is_plugin:
        raise InvalidInput("the Argo CD plugin can only render: run `twgen diff` elsewhere")
    kubectl = program_on_path("kubectl")
    if not kubectl:
        raise StateUnavailable("kubectl, which compares the manifests, is not on PATH: install it")
    manifests = rendered(settings, with_rollouts=not params["no_hooks"])
    text = FORMATS["yaml"](manifests)
    # a field that Argo CD or a controller has set is a difference, not a conflict; a diff takes no ownership
    arguments = ["diff", "--server-side", "--force-conflicts", f"--field-manager={params['field_manager']}"]
    arguments += [f"--{name}={params[name]}" for name in ("kubeconfig", "context") if params[name]]
    # kubectl rejects objects in another namespace than the given one
    if params["namespace"] and not all(value_at(item, "metadata", "namespace") for item in manifests):
        arguments.append(f"--namespace={params['namespace']}")
    try:
        diff = subprocess.run(  # noqa: S603 - by its full name
            [kubectl, *arguments, "--filename=-"], input=text, stderr=sys.stderr, check=False
        )
    except OSError as error:
        raise StateUnavailable(f"cannot run {kubectl}: {error.strerror}") from error
    code = diff.returncode
    raise click.exceptions.Exit(code if code >= 0 else _SIGNALLED - code)
