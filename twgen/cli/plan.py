"""`twgen plan`."""

import json
from collections.abc import Callable
from typing import Any

import click

from twgen.cli.loading import load_specs, load_world, planning_caller, planning_time
from twgen.cli.options import READING, options, output_option, paths_argument
from twgen.cli.output import wants_colour, width, write
from twgen.cli.settings import settings_of
from twgen.cli.warnings import plan_warnings, refuse
from twgen.errors import NegativeAnswer
from twgen.model.plan import Phase, Plan, VersionAction
from twgen.planning.plan import make_plan
from twgen.reporting.plan_json import plan_document
from twgen.reporting.plan_markdown import plan_markdown


@click.command()
@paths_argument
@output_option("text", "json", "markdown")
@options("snapshot", "now", *READING, "identity", "namespace", "operator_config")
@options("exit_code", "strict", "quiet", "color")
def command(output: str, color: str, exit_code: bool, **params: Any) -> None:  # noqa: FBT001
    """Say what would happen next to every version and to traffic, and why. Changes nothing.

    \b
    twgen plan . --snapshot world.yaml
    """
    settings = settings_of(params)
    specs = load_specs(settings)
    world = load_world(settings, specs, for_routing=True)
    plan = make_plan(specs.workers, world, planning_time(settings, world), planning_caller(settings))
    if settings.strict:
        refuse(plan_warnings((worker.versions for worker in plan.workers), plan.warnings))
    write(_REPORTS[output](plan, color))
    if exit_code and _is_pending(plan):
        raise NegativeAnswer("changes are pending")


def _text(plan: Plan, color: str) -> str:
    from twgen.reporting.plan_text import plan_text

    return plan_text(plan, colour=wants_colour(color), width=width())


def _json(plan: Plan, _: str) -> str:
    return json.dumps(plan_document(plan), indent=2, ensure_ascii=False) + "\n"


def _markdown(plan: Plan, _: str) -> str:
    return plan_markdown(plan)


_REPORTS: dict[str, Callable[[Plan, str], str]] = {"text": _text, "json": _json, "markdown": _markdown}


def _is_pending(plan: Plan) -> bool:
    still = {VersionAction.KEEP, VersionAction.NONE}
    return any(
        worker.routing.phase is not Phase.SETTLED
        or any(version.action not in still for version in worker.versions.versions)
        for worker in plan.workers
    )
