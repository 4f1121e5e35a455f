"""`twgen promote`, `abort`, `retry`, `pause`, `resume` and `retire`: what a person does to one worker."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from twgen.cli.inputs import load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, MEASURING, options, paths_argument
from twgen.cli.output import say, write
from twgen.cli.settings import Settings, clock, settings_of
from twgen.clients.deadline import Deadline
from twgen.errors import InvalidInput
from twgen.executing.restart import restart_job
from twgen.executing.rollout import intervene
from twgen.executing.temporal import TemporalWriter
from twgen.model.world import World
from twgen.planning import interventions
from twgen.planning.interventions import Intervention
from twgen.planning.ownership import acting_identity
from twgen.planning.plan import make_plan, worker_world
from twgen.planning.routing.target import Target
from twgen.planning.worker_status import make_status
from twgen.reporting.status.lines import status_lines
from twgen.specs.parse import Specs
from twgen.versioning.names import replay_selector, rollout_selector

_common = options("worker", *MEASURING, *INPUT, "identity", "namespace", "operator_config", "quiet")


@click.command()
@paths_argument
@options("full", "skip_gate")
@_common
def promote(full: bool, skip_gate: bool, **params: Any) -> None:  # noqa: FBT001
    """Make the next step of a rollout now, whatever is left of a pause.

    \b
    twgen promote .
    twgen promote . --worker payments --full
    """
    _intervene(params, lambda target: interventions.promote(target, full=full, skip_gate=skip_gate))


@click.command()
@paths_argument
@_common
def abort(**params: Any) -> None:
    """End the ramp of a target, and keep traffic from it until `twgen retry`.

    \b
    twgen abort . --worker payments
    """
    _intervene(params, interventions.abort)


@click.command()
@paths_argument
@_common
def retry(**params: Any) -> None:
    """Let an aborted target go on, or start a gate or a replay that failed again.

    \b
    twgen retry .
    """
    _intervene(params, interventions.retry)


@click.command()
@paths_argument
@_common
def pause(**params: Any) -> None:
    """Keep the traffic of a rollout as it is until `twgen resume`.

    \b
    twgen pause .
    """
    _intervene(params, interventions.pause)


@click.command()
@paths_argument
@_common
def resume(**params: Any) -> None:
    """Let a paused rollout go on.

    \b
    twgen resume .
    """
    _intervene(params, interventions.resume)


@click.command()
@paths_argument
@_common
def retire(**params: Any) -> None:
    """Send all new workflows to workers without a version, and let every version drain.

    It is refused where no such worker polls what the current version polls. `twgen resume`, and a rollout
    after it, bring the traffic back; so does the rollout of another build ID, so commit none.

    \b
    twgen retire . --worker payments
    twgen drain .
    """
    _intervene(params, interventions.retire)


def _intervene(params: dict[str, Any], decide: Callable[[Target], Intervention]) -> None:
    """Change what is decided, and show what came of it; where the rollout goes on, so does its Job."""
    settings, specs = the_worker(params)
    [spec] = specs.workers
    caller = settings.planning_caller

    async def story(opened: Connections) -> World:
        async def look() -> Target:
            world = await servers.read_soon(opened, [spec], for_routing=True)
            worker = worker_world(spec, world)
            return Target(spec, worker, clock(), acting_identity(spec, worker, caller), not_created="")

        def writer(identity: str) -> TemporalWriter:
            return TemporalWriter(spec, identity, opened.temporal, settings.timeout)

        done = await intervene(look, decide, writer, say)
        again = [replay_selector(spec.name)] if done.replays else []
        again += [rollout_selector(spec.name)] if done.goes_on else []
        client = opened.kubernetes
        for selector in again if client else ():
            if client and (
                told := await restart_job(client, spec.namespace, selector, Deadline(settings.timeout))
            ):
                say(told)
        return await servers.read_soon(opened, [spec], for_routing=True)

    with Servers(settings) as servers:
        world = servers.run([spec], story)
    status = make_status(make_plan(specs.workers, world, clock(), caller), world, caller)
    write(f"{status_lines(status)[0].text}\n")


def the_worker(params: Mapping[str, Any]) -> tuple[Settings, Specs]:
    """What was asked for, and the specs of the one worker that `--worker` names, or that there is.

    Raises InvalidInput where there is no such one, and in a plugin.
    """
    settings, name = settings_of(params), params["worker"] or ""
    if settings.surroundings.needs_identity:
        raise InvalidInput("a plugin of Argo CD only renders")
    specs = load_specs(replace(settings, quiet=True), needs_worker=True)
    found = tuple(spec for spec in specs.workers if name in {"", spec.name, spec.worker_deployment})
    if len(found) == 1:
        return settings, specs._replace(workers=found)
    names = ", ".join(sorted(spec.worker_deployment for spec in specs.workers))
    if not found:
        raise InvalidInput(f"there is no worker {name!r}: there is {names}")
    raise InvalidInput(f"--worker says which: {names}")


def confirm(change: str, *, yes: bool) -> None:
    """Ask the person at the terminal, unless yes is said; InvalidInput where nobody is there to ask."""
    if yes:
        return
    if not sys.stdin or not sys.stdin.isatty():
        raise InvalidInput(f"{change}? Nobody is there to ask: -y says yes")
    click.confirm(change, abort=True, err=True)
