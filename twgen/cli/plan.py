"""`twgen plan`."""

import json
from typing import Any

import click

from twgen.cli.loading import load_specs, load_world, planning_manager, planning_time, request
from twgen.cli.options import options, output_option, paths_argument
from twgen.cli.output import wants_colour, width, write
from twgen.cli.warnings import plan_warnings, refuse
from twgen.errors import NegativeAnswer
from twgen.model.plan import Phase, Plan, VersionAction
from twgen.planning.plan import make_plan
from twgen.reporting.plan_json import plan_document


@click.command(short_help="Say what would happen next to every version and to traffic, and why.")
@paths_argument
@output_option("text", "json")
@options("snapshot", "now", "timeout", "identity", "namespace", "no_cluster", "allow_unlisted_connections")
@options("exit_code", "strict", "quiet", "color")
def command(output: str, color: str, exit_code: bool, **params: Any) -> None:  # noqa: FBT001
    """Say what would happen next to every version and to traffic, and why. Changes nothing.

    \b
    twgen plan . --snapshot world.yaml
    """
    asked = request(params)
    specs = load_specs(asked)
    world = load_world(asked, specs, for_routing=True)
    plan = make_plan(specs.workers, world, planning_time(asked, world), planning_manager(asked))
    if asked.strict:
        refuse(plan_warnings((worker.versions for worker in plan.workers), plan.warnings))
    if output == "json":
        write(json.dumps(plan_document(plan), indent=2, ensure_ascii=False) + "\n")
    else:
        from twgen.reporting.plan_text import plan_text

        write(plan_text(plan, colour=wants_colour(color), width=width()))
    if exit_code and _is_pending(plan):
        raise NegativeAnswer("changes are pending")


def _is_pending(plan: Plan) -> bool:
    still = {VersionAction.KEEP, VersionAction.NONE}
    return any(
        worker.routing.phase is not Phase.SETTLED
        or any(version.action not in still for version in worker.versions.versions)
        for worker in plan.workers
    )
