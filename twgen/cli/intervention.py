"""The commands that change one worker's rollout or manager.

With PATHs, a command changes Temporal directly. With `worker/NAME`, it sends a request to the rollout in the
cluster.
"""

from collections.abc import Callable
from typing import Any

import click

from twgen.cli import by_name
from twgen.cli.inputs import paths_or_name_argument, the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import CONNECTION, INPUT, MEASURING, NAMES, Grouped, options, output_option
from twgen.cli.output import confirm, say, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import clock
from twgen.executing.cluster import restart_job
from twgen.executing.ports import RolloutView
from twgen.executing.rollout import RolloutLoop
from twgen.model.rollout import Verb
from twgen.model.world import WorkerWorld, World
from twgen.planning import interventions
from twgen.planning.interventions import Intervention
from twgen.planning.ownership import acting_identity, claimed, manager_of, released
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.routing.target import Target
from twgen.planning.worker_status import make_status
from twgen.records.rollout_status import STATUS
from twgen.reporting.json_text import json_text
from twgen.reporting.status.lines import state_lines
from twgen.versioning.names import replay_selector, rollout_selector

_common = options("dry_run", "worker", *MEASURING, *INPUT, *NAMES, "quiet")


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option("text", "json")
@options("full", "skip_gate", "yes")
@_common
def promote(full: bool, skip_gate: bool, **params: Any) -> None:  # noqa: FBT001
    """Move a rollout to its next step now, even if its pause is not over.

    \b
    twgen promote worker/payments -n shop
    twgen promote . --worker payments --full

    On a terminal, --full and --skip-gate ask for confirmation. With worker/NAME, the OperatorConfig must
    permit the command, and --skip-gate is not possible.
    """
    if by_name.request(params, Verb.PROMOTE, full=full, skip_gate=skip_gate):
        return
    asks = "all traffic at once" if full else "no gate" if skip_gate else ""
    _intervene(params, lambda target: interventions.promote(target, full=full, skip_gate=skip_gate), asks)


def _command(
    decide: Callable[[Target], Intervention], verb: Verb | None, text: str, *, asks: str = ""
) -> click.Command:
    """A command with the options that all commands in this module share, and `--yes` if it asks."""

    @click.command(cls=Grouped, help=text)
    @paths_or_name_argument
    @output_option("text", "json")
    @options(*(["yes"] if asks else []))
    @_common
    def command(**params: Any) -> None:
        if not by_name.request(params, verb):
            _intervene(params, decide, asks)

    return command


abort = _command(
    interventions.abort,
    Verb.ABORT,
    """Stop a target's ramp. The target gets no new workflows until `twgen retry`.

    \b
    twgen abort worker/payments -n shop
    twgen abort . --worker payments
    """,
)
retry = _command(
    interventions.retry,
    Verb.RETRY,
    """Continue with an aborted target, or restart a failed gate or replay.

    \b
    twgen retry worker/payments -n shop
    twgen retry .

    With worker/NAME, the OperatorConfig must permit the command.
    """,
)
pause = _command(
    interventions.pause,
    Verb.PAUSE,
    """Pause a rollout. Its traffic does not change until `twgen resume`.

    \b
    twgen pause worker/payments -n shop
    twgen pause .
    """,
)
resume = _command(
    interventions.resume,
    Verb.RESUME,
    """Continue a paused rollout.

    \b
    twgen resume worker/payments -n shop
    twgen resume .
    """,
)
retire = _command(
    interventions.retire,
    None,
    """Send all new workflows to unversioned workers, so that every version drains.

    twgen refuses the command unless unversioned workers poll the same task queues as the current version. On
    a terminal, the command asks for confirmation. To undo the command, run `twgen resume` and then a rollout.
    The rollout of a new build ID also sends new workflows to a version again, so do not commit a new build ID
    too early.

    \b
    twgen retire . --worker payments
    twgen drain .
    """,
    asks="all traffic at once",
)


def _intervene(params: dict[str, Any], decide: Callable[[Target], Intervention], asks: str = "") -> None:
    """Make the change that `decide` returns, restart the Jobs that must continue, and show the result.

    `asks` is the reason to ask for confirmation first. If it is empty, twgen does not ask.
    """
    settings, spec = the_worker(params)
    caller = settings.planning_caller

    async def work(opened: Connections) -> World | None:
        rollout = RolloutLoop(WorkerServers(spec, opened), caller, RolloutView(say))
        if asks or params["dry_run"]:
            target = rollout.target_of(await rollout.read())
            will = decide(target).will
            if params["dry_run"]:
                say(f"{spec.worker_deployment}: would {will}")
                return None
            confirm(f"{spec.worker_deployment}: {will} ({asks})", yes=params["yes"], always=False)
        target = rollout.target_of(await rollout.read())
        intervention = decide(target)
        await rollout.intervene(target, intervention)
        selectors = [replay_selector(spec.name)] if intervention.replays else []
        selectors += [rollout_selector(spec.name)] if intervention.goes_on else []
        if client := opened.kubernetes:
            for selector in selectors:
                if sentence := await restart_job(client, spec.namespace, selector, opened.deadline()):
                    say(sentence)
        return await rollout.read()

    with Servers(settings) as servers:
        world = servers.run([spec], work)
    if not world:
        return
    status = make_status(make_plan([spec], world, clock(), caller), world, caller)
    if params["output"] == "json":
        write(json_text(STATUS.write(status)))
    else:
        write("".join(f"{line.text}\n" for line in state_lines(status)))


_of_ownership = options("worker", *CONNECTION, *INPUT, *NAMES, "quiet")


@click.group()
def ownership() -> None:
    """Claim or release a worker. Once a worker has a manager, only that manager can change its traffic.

    `twgen status` shows the manager.
    """


@ownership.command(cls=Grouped, short_help="Become the manager of a worker.")
@paths_or_name_argument
@options("owner", "yes")
@_of_ownership
def claim(owner: str | None, yes: bool, **params: Any) -> None:  # noqa: FBT001
    """Claim a worker that has no manager, or take it over from the manager in --from.

    \b
    twgen ownership claim . --from temporal-worker-controller/prod
    """
    _manage(params, lambda worker, identity: claimed(worker, identity, owner or ""), yes=yes)


@ownership.command(cls=Grouped, short_help="Remove the manager of a worker.")
@paths_or_name_argument
@options("yes")
@_of_ownership
def release(yes: bool, **params: Any) -> None:  # noqa: FBT001
    """Remove the manager of a worker. Any client can then change the worker's traffic or claim the worker.

    \b
    twgen ownership release .
    """
    _manage(params, released, yes=yes)


def _manage(params: dict[str, Any], decide: Callable[[WorkerWorld, str], str], *, yes: bool) -> None:
    """Set the manager that `decide` returns for the worker and the caller's identity. Empty removes it."""
    settings, spec = the_worker(params)

    async def work(opened: Connections) -> str:
        servers = WorkerServers(spec, opened)
        worker = worker_world(spec, await servers.read(for_routing=False))
        name, identity = spec.worker_deployment, acting_identity(spec, worker, settings.planning_caller)
        manager, new_manager = manager_of(worker), decide(worker, identity)
        change = f"{name}: manager changes from {manager or 'none'} to {new_manager or 'none'}"
        confirm(change, yes=yes)
        token = worker.temporal.conflict_token if worker.temporal else ""
        await servers.temporal(identity).set_manager(new_manager, token)
        return change

    with Servers(settings) as servers:
        write(f"{servers.run([spec], work)}\n")
