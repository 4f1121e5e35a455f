"""`twgen promote`, `abort`, `retry`, `pause`, `resume` and `retire`: a person changes one worker.

With PATHs, they change Temporal themselves. With `worker/NAME`, they request it of the rollout's Job.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from twgen.cli import by_name
from twgen.cli.inputs import load_specs
from twgen.cli.live import Connections, Servers
from twgen.cli.options import INPUT, MEASURING, Grouped, options, output_option
from twgen.cli.output import confirm, say, write
from twgen.cli.rolling import WorkerServers
from twgen.cli.settings import Settings, clock, settings_of
from twgen.cli.worker_name import paths_or_name_argument
from twgen.errors import InvalidInput
from twgen.executing.cluster import restart_job
from twgen.executing.ports import View
from twgen.executing.rollout import Rollout
from twgen.model.requests import Verb
from twgen.model.world import World
from twgen.planning import interventions
from twgen.planning.interventions import Intervention
from twgen.planning.plan import make_plan
from twgen.planning.routing.target import Target
from twgen.planning.worker_status import make_status
from twgen.records.rollout_status import STATUS
from twgen.reporting.json_text import json_text
from twgen.reporting.status.lines import status_lines
from twgen.specs.parse import Specs
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
    settings, specs = the_worker(params)
    [spec] = specs.workers
    caller = settings.planning_caller

    async def work(opened: Connections) -> World | None:
        rollout = Rollout(WorkerServers(spec, opened), caller, View(say))
        if asks or params["dry_run"]:
            target = rollout.target_of(await rollout.look())
            change = f"{spec.worker_deployment}: {decide(target).will}"
            if params["dry_run"]:
                write(f"{change}\n")
                return None
            confirm(f"{change} ({asks})", yes=params["yes"], always=False)
        target = rollout.target_of(await rollout.look())
        intervention = decide(target)
        await rollout.intervene(target, intervention)
        selectors = [replay_selector(spec.name)] if intervention.replays else []
        selectors += [rollout_selector(spec.name)] if intervention.goes_on else []
        client = opened.kubernetes
        for selector in selectors if client else ():
            if client and (
                sentence := await restart_job(client, spec.namespace, selector, opened.deadline())
            ):
                say(sentence)
        return await rollout.look()

    with Servers(settings) as servers:
        world = servers.run([spec], work)
    if not world:
        return
    status = make_status(make_plan(specs.workers, world, clock(), caller), world, caller)
    as_json = params["output"] == "json"
    write(json_text(STATUS.write(status)) if as_json else f"{status_lines(status)[0].text}\n")


def the_worker(params: Mapping[str, Any]) -> tuple[Settings, Specs]:
    """The settings, and the specs with only the worker that `--worker` names, or the only worker.

    Raises InvalidInput if there is no such worker, and in a plugin.
    """
    settings, name = settings_of(params), params["worker"] or ""
    if settings.environment.is_plugin:
        raise InvalidInput("the Argo CD plugin can only render")
    specs = load_specs(replace(settings, quiet=True), needs_worker=True, or_name=True)
    workers = tuple(spec for spec in specs.workers if name in {"", spec.name, spec.worker_deployment})
    if len(workers) == 1:
        return settings, specs._replace(workers=workers)
    names = ", ".join(sorted(spec.worker_deployment for spec in specs.workers))
    if not workers:
        raise InvalidInput(f"there is no worker {name!r}; the workers are: {names}")
    raise InvalidInput(f"there are several workers: choose one with --worker: {names}")
