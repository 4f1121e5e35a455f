"""`twgen ownership`: the manager of a Worker Deployment."""

from collections.abc import Callable
from typing import Any

import click

from twgen.cli.intervention import the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, READING, Grouped, options
from twgen.cli.output import confirm, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.worker_name import paths_or_name_argument
from twgen.model.world import WorkerWorld
from twgen.planning.ownership import acting_identity, claimed, manager_of, released
from twgen.planning.plan import worker_world

_common = options("worker", *READING, *INPUT, "identity", "namespace", "operator_config", "quiet")


@click.group()
def command() -> None:
    """Show the manager of a Worker Deployment, claim it, or release it.

    Once it has a manager, only that manager can change its traffic.
    """


@command.command(cls=Grouped)
@paths_or_name_argument
@_common
def show(**params: Any) -> None:
    """Show the manager of a worker.

    \b
    twgen ownership show .
    twgen ownership show worker/payments -n shop
    """
    _manage(params, lambda worker, _: manager_of(worker), yes=True)


@command.command(cls=Grouped, short_help="Become the manager of a worker.")
@paths_or_name_argument
@options("owner", "yes")
@_common
def claim(owner: str | None, yes: bool, **params: Any) -> None:  # noqa: FBT001
    """Become the manager of a worker that has no manager, or whose manager is the one in --from.

    \b
    twgen ownership claim . --from temporal-worker-controller/prod
    """
    _manage(params, lambda worker, identity: claimed(worker, identity, owner or ""), yes=yes)


@command.command(cls=Grouped, short_help="Stop managing a worker.")
@paths_or_name_argument
@options("yes")
@_common
def release(yes: bool, **params: Any) -> None:  # noqa: FBT001
    """Stop managing a worker: after that, anyone may change its traffic or claim it.

    \b
    twgen ownership release .
    """
    _manage(params, released, yes=yes)


def _manage(params: dict[str, Any], decide: Callable[[WorkerWorld, str], str], *, yes: bool) -> None:
    """Set the manager that `decide` returns for the worker and the own identity; empty: no manager."""
    settings, specs = the_worker(params)
    [spec] = specs.workers

    async def work(opened: Connections) -> str:
        servers = WorkerServers(spec, opened)
        worker = worker_world(spec, await servers.read(for_routing=False))
        name, identity = spec.worker_deployment, acting_identity(spec, worker, settings.planning_caller)
        manager, new_manager = manager_of(worker), decide(worker, identity)
        if not worker.temporal or new_manager == manager:
            owner = f"managed by {manager}" if manager else "no manager"
            return f"{name}: {owner}; your identity is {identity}"
        change = f"{name}: manager changes from {manager or 'none'} to {new_manager or 'none'}"
        confirm(change, yes=yes)
        await servers.temporal(identity).set_manager(new_manager, worker.temporal.conflict_token)
        return change

    with Servers(settings) as servers:
        write(f"{servers.run([spec], work)}\n")
