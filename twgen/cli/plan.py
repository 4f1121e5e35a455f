"""`twgen plan`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from twgen.cli.inputs import (
    load_specs,
    load_world,
    paths_or_name_argument,
    plan_warnings,
    planning_time,
    refuse_cluster_scoped,
    refuse_collisions,
    refuse_warnings,
    with_references,
)
from twgen.cli.observer import Observation
from twgen.cli.options import INPUT, MEASURING, NAMES, Grouped, options, output_option
from twgen.cli.output import is_terminal, keep, wants_colour, width, write
from twgen.cli.render import warn_of_changing_pods
from twgen.cli.settings import settings_of
from twgen.errors import NegativeAnswer
from twgen.planning.drivers import warned_of_drivers
from twgen.planning.plan import make_plan, with_differences
from twgen.planning.worker_status import is_pending
from twgen.reporting.json_text import json_text
from twgen.reporting.plan.document import PLAN
from twgen.reporting.plan.markdown import plan_markdown


def _text(seen: Observation, color: str, *, verbose: bool) -> str:
    from twgen.reporting.plan.text import plan_text  # the other formats do not need rich

    detailed = verbose or not is_terminal()
    return plan_text(seen.status, colour=wants_colour(color), width=width(), detailed=detailed)


_REPORTS: dict[str, Callable[..., str]] = {
    "text": _text,
    "json": lambda seen, _, **__: json_text(PLAN.write(seen.plan)),
    "markdown": lambda seen, _, **__: plan_markdown(seen.status),
}


@click.command(cls=Grouped)
@paths_or_name_argument
@output_option(*_REPORTS)
@options("snapshot", "now", *MEASURING, *INPUT, *NAMES)
@options("exit_code", "strict", "quiet", "verbose", "color")
def command(output: str, color: str, exit_code: bool, verbose: bool, **params: Any) -> None:  # noqa: FBT001
    """Show the next change to the traffic and to each version, and the reason. Changes nothing.

    On a terminal, several workers are shown as one line each, the most urgent worker last. -v shows every
    version.

    \b
    twgen plan .
    twgen plan worker/payments -n shop
    twgen plan . --snapshot world.yaml
    """
    settings = settings_of(params)
    specs = load_specs(settings, or_name=True)
    world = load_world(settings, specs, for_routing=True)
    refuse_cluster_scoped(settings, specs)
    now, caller = planning_time(settings, world), settings.planning_caller
    plan = make_plan(specs.workers, world, now, caller)
    warned = with_references(settings, specs, (worker.versions for worker in plan.workers))
    workers = tuple(replace(worker, versions=item) for worker, item in zip(plan.workers, warned, strict=True))
    plan = with_differences(replace(plan, workers=workers))
    plan = warned_of_drivers(plan, settings.operator)
    warn_of_changing_pods(settings, specs, warned)
    seen = Observation(world, caller, plan, now, settings.operator)
    keep(specs, seen)
    refuse_collisions(settings, specs, (worker.versions for worker in plan.workers))
    if settings.strict:
        refuse_warnings(plan_warnings((worker.versions for worker in plan.workers), plan.warnings))
    write(_REPORTS[output](seen, color, verbose=verbose))
    if exit_code and is_pending(plan):
        raise NegativeAnswer("changes are pending")
