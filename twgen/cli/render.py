"""`twgen render`."""

from typing import Any

import click

from twgen.cli.loading import load_specs, load_world, planning_time, rendering_manager
from twgen.cli.options import READING, options, output_option, paths_argument
from twgen.cli.output import warn, write
from twgen.cli.request import request
from twgen.cli.warnings import plan_warnings, refuse
from twgen.planning.plan import VersionsPlan, plan_versions
from twgen.rendering.manifests import render_manifests
from twgen.rendering.text import FORMATS


@click.command(short_help="Print the manifests of every version that still has work.")
@paths_argument
@output_option("yaml", "json")
@options("snapshot", "now", *READING, "identity", "namespace", "no_hooks", "strict", "quiet")
def command(output: str, **params: Any) -> None:
    """Print the manifests of every version that still has work.

    \b
    twgen render . --snapshot world.yaml | kubectl diff -f -
    """
    asked = request(params)
    specs = load_specs(asked)
    manager = rendering_manager(asked)
    plan = VersionsPlan((), ())
    if specs.workers:
        world = load_world(asked, specs, for_routing=False)
        plan = plan_versions(specs.workers, world, planning_time(asked, world), manager)
    manifests = render_manifests(plan.workers, specs.passthrough, manager.of)
    warnings = plan_warnings(plan.workers, plan.warnings)
    if asked.strict:
        refuse(warnings)
    if not asked.quiet:
        warn(warnings)
    write(FORMATS[output](manifests))
