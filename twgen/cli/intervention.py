"""The commands that change one worker: its rollout, its manager, or its old records.

With PATHs, they change Temporal themselves. With `worker/NAME`, those about a rollout request it of its Job.
"""

from collections.abc import Callable
from typing import Any

import click

from twgen.cli import by_name
from twgen.cli.inputs import paths_or_name_argument, the_worker
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, MEASURING, READING, Grouped, options, output_option
from twgen.cli.output import confirm, say, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import clock
from twgen.errors import NegativeAnswer
from twgen.executing.cluster import restart_job
from twgen.executing.ports import RolloutView
from twgen.executing.rollout import RolloutLoop
from twgen.executing.temporal import Pruned, delete_records
from twgen.model.problem import counted
from twgen.model.rollout import Verb
from twgen.model.world import WorkerWorld, World
from twgen.planning import interventions
from twgen.planning.interventions import Intervention
from twgen.planning.ownership import acting_identity, claimed, manager_of, released
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.pruning import KEPT, OldRecord, old_records
from twgen.planning.routing.target import Target
from twgen.planning.sentences import in_days
from twgen.planning.worker_status import make_status
from twgen.records.rollout_status import STATUS
from twgen.reporting.json_text import json_text
from twgen.reporting.status.lines import state_lines
from twgen.versioning.names import replay_selector, rollout_selector

_common = options(
    "dry_run", "yes", "worker", *MEASURING, *INPUT, "identity", "namespace", "operator_config", "quiet"
)


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option("text", "json")
@options("full", "skip_gate")
@_common
def promote(full: bool, skip_gate: bool, **params: Any) -> None:  # noqa: FBT001
    """Take the next step of a rollout now, even if its pause is not over.

    \b
    twgen promote worker/payments -n shop
    twgen promote . --worker payments --full

    On a terminal, --full and --skip-gate ask for confirmation. With worker/NAME, the operator must permit
    it, and --skip-gate is not possible.
    """
    if by_name.request(params, Verb.PROMOTE, full=full, skip_gate=skip_gate):
        return
    asks = "all traffic at once" if full else "no gate" if skip_gate else ""
    _intervene(params, lambda target: interventions.promote(target, full=full, skip_gate=skip_gate), asks)


def _command(decide: Callable[[Target], Intervention], verb: Verb | None, text: str) -> click.Command:
    """A command without options of its own."""

    @click.command(cls=Grouped, help=text)
    @paths_or_name_argument
    @output_option("text", "json")
    @_common
    def command(**params: Any) -> None:
        if not by_name.request(params, verb):
            _intervene(params, decide)

    return command


abort = _command(
    interventions.abort,
    Verb.ABORT,
    """End the ramp of a target, and keep traffic from it until `twgen retry`.

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

    With worker/NAME, the operator must permit it.
    """,
)
pause = _command(
    interventions.pause,
    Verb.PAUSE,
    """Keep the traffic of a rollout as it is until `twgen resume`.

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
    """Send all new workflows to unversioned workers, and let every version drain.

    It is refused unless unversioned workers poll the same task queues as the current version. To bring the
    traffic back, run `twgen resume` and then a rollout. The rollout of a new build ID also brings it back,
    so commit none until then.

    \b
    twgen retire . --worker payments
    twgen drain .
    """,
)


def _intervene(params: dict[str, Any], decide: Callable[[Target], Intervention], asks: str = "") -> None:
    """Make the decided change, and show the result; if the rollout continues, its Job is restarted.

    `asks` is why the person is asked first; empty: nobody is asked.
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


_of_ownership = options("worker", *READING, *INPUT, "identity", "namespace", "operator_config", "quiet")


@click.group()
def ownership() -> None:
    """Show the manager of a Worker Deployment, claim it, or release it.

    Once it has a manager, only that manager can change its traffic.
    """


@ownership.command(cls=Grouped)
@paths_or_name_argument
@_of_ownership
def show(**params: Any) -> None:
    """Show the manager of a worker.

    \b
    twgen ownership show .
    twgen ownership show worker/payments -n shop
    """
    _manage(params, lambda worker, _: manager_of(worker), yes=True)


@ownership.command(cls=Grouped, short_help="Become the manager of a worker.")
@paths_or_name_argument
@options("owner", "yes")
@_of_ownership
def claim(owner: str | None, yes: bool, **params: Any) -> None:  # noqa: FBT001
    """Become the manager of a worker that has no manager, or whose manager is the one in --from.

    \b
    twgen ownership claim . --from temporal-worker-controller/prod
    """
    _manage(params, lambda worker, identity: claimed(worker, identity, owner or ""), yes=yes)


@ownership.command(cls=Grouped, short_help="Stop managing a worker.")
@paths_or_name_argument
@options("yes")
@_of_ownership
def release(yes: bool, **params: Any) -> None:  # noqa: FBT001
    """Stop managing a worker: after that, anyone may change its traffic or claim it.

    \b
    twgen ownership release .
    """
    _manage(params, released, yes=yes)


def _manage(params: dict[str, Any], decide: Callable[[WorkerWorld, str], str], *, yes: bool) -> None:
    """Set the manager that `decide` returns for the worker and the own identity; empty: no manager."""
    settings, spec = the_worker(params)

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


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option("text", "json")
@options("keep", "dry_run", "yes", "worker", *READING, *INPUT)
@options("identity", "namespace", "operator_config", "quiet")
def prune(output: str, keep: int | None, **params: Any) -> None:
    """Delete the records of old versions in Temporal: drained, without pods, pollers and open workflows.

    \b
    twgen prune worker/payments -n shop
    twgen prune . --keep 10 --dry-run

    Temporal keeps at most 100 versions of a worker, and refuses new ones after that. A version is old if it
    has been drained for longer than scaledownDelay and deleteDelay together. The target and the newest
    drained versions always stay. It shows the versions and asks for confirmation.
    """
    settings, spec = the_worker(params)
    kept = keep or spec.policy.keep_records or KEPT

    async def work(opened: Connections) -> Pruned:
        worker = WorkerServers(spec, opened)

        async def read() -> tuple[tuple[OldRecord, ...], str]:
            world = worker_world(spec, await worker.read(for_routing=False))
            unneeded = await worker.without_open_workflows(old_records(spec, world, clock(), kept))
            return unneeded, acting_identity(spec, world, settings.planning_caller)

        records, identity = await read()
        if not records:
            say(f"{spec.worker_deployment}: no version is old enough to delete its record")
            return Pruned([], [])
        for record in records:
            say(f"{spec.worker_deployment} {record.build_id}: drained for {in_days(record.drained_for)}")
        will = f"delete the {counted(len(records), 'record')} of these versions"
        if params["dry_run"]:
            say(f"{spec.worker_deployment}: would {will}")
            return Pruned([], [])
        confirm(f"{spec.worker_deployment}: {will}", yes=params["yes"])
        # the person may have taken long to answer
        still_old = {record.build_id for record in (await read())[0]}
        writer = worker.temporal(identity)
        return await delete_records(writer, [record for record in records if record.build_id in still_old])

    with Servers(settings) as servers:
        deleted, refused = servers.run([spec], work)
    if output == "json":
        write(json_text({"worker": spec.worker_deployment, "deleted": deleted, "refused": refused}))
    elif not params["dry_run"]:
        write(f"{spec.worker_deployment}: deleted {counted(len(deleted), 'record')}\n")
    if refused:
        records = counted(len(refused), "record")
        raise NegativeAnswer(
            f"{spec.worker_deployment}: {records} could not be deleted; the first: {refused[0]}"
        )
