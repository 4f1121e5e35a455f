"""`twgen simulate`."""

from collections.abc import Callable
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import click
from click.core import ParameterSource

from twgen.cli.inputs import load_specs, load_world, planning_time
from twgen.cli.options import INPUT, NAMES, Grouped, options, output_option, paths_argument
from twgen.cli.output import counting, wants_colour, width, write
from twgen.cli.settings import settings_of
from twgen.errors import InvalidInput
from twgen.model.timeline import Assumptions, Timeline, Traffic
from twgen.reporting.json_text import json_text
from twgen.reporting.timeline.document import TIMELINE
from twgen.reporting.timeline.picture import timeline_svg
from twgen.simulating.simulate import measured_steps, simulate

_GATE_FAILS_AFTER = timedelta(minutes=1)


def _text(timeline: Timeline, color: str) -> str:
    from twgen.reporting.timeline.text import timeline_text  # the other formats need no rich

    return timeline_text(timeline, colour=wants_colour(color), width=width())


def _html(timeline: Timeline, _: str) -> str:
    from twgen.reporting.page.pages import simulation_page

    return simulation_page(timeline)


_REPORTS: dict[str, Callable[[Timeline, str], str]] = {
    "text": _text,
    "json": lambda timeline, _: json_text(TIMELINE.write(timeline)),
    "svg": lambda timeline, _: timeline_svg(timeline),
    "html": _html,
}


def _traffic(starts_per_hour: float | None, failing: float | None) -> Traffic | None:
    if (starts_per_hour is None) != (failing is None):
        present, missing = ("--failing", "--starts-per-hour")[:: 1 if starts_per_hour is None else -1]
        raise InvalidInput(f"{present} needs {missing}")
    return Traffic(starts_per_hour, failing) if starts_per_hour and failing else None


@click.command(cls=Grouped)
@paths_argument
@output_option(*_REPORTS)
@options("workflow_duration", "startup", "gate", "drainage_interval", "render_interval")
@options("starts_per_hour", "failing")
@options("snapshot", "now", *INPUT, *NAMES, "strict", "quiet", "color")
def command(output: str, color: str, **params: Any) -> None:
    """Predict a whole rollout: each change to the traffic and to the versions, with its time.

    Reads no server and changes nothing. With --snapshot, the simulation begins with the state in the
    snapshot. Without --snapshot, the simulation assumes that an earlier version is current, and that the
    target has just been committed.

    \b
    twgen simulate .
    twgen simulate . --workflow-duration 48h
    twgen simulate . --gate fails
    twgen simulate . --snapshot world.yaml
    twgen simulate . --starts-per-hour 100 --failing 0.2
    twgen simulate . -o svg > rollout.svg
    """
    source = click.get_current_context().get_parameter_source
    settings = settings_of(params)
    assumed = Assumptions(
        workflow_duration=params["workflow_duration"],
        startup=params["startup"],
        gate_duration=_GATE_FAILS_AFTER if params["gate"] is None else params["gate"],
        gate_passes=params["gate"] is not None,
        drainage_interval=params["drainage_interval"],
        render_interval=params["render_interval"],
        traffic=_traffic(params["starts_per_hour"], params["failing"]),
    )
    specs = load_specs(settings, needs_worker=True)
    has_gate = any(worker.rollout.gate for worker in specs.workers)
    if not (has_gate or source("gate") is ParameterSource.DEFAULT):
        settings.warn(["no worker has a gate: --gate has no effect"])
    if assumed.traffic and not any(map(measured_steps, specs.workers)):
        no_effect = "--starts-per-hour and --failing have no effect"
        settings.warn([f"no worker uses workflowFailures: {no_effect}"])
    world = load_world(settings, specs, for_routing=True) if settings.snapshot else None
    begins = planning_time(settings, world) if world else settings.now
    number = len(specs.workers)
    with counting("workers are simulated", number, quiet=settings.quiet) as counted:
        workers = (worker for worker, _ in zip_longest(specs.workers, counted))
        timeline = simulate(workers, world, begins, settings.planning_caller, assumed)
    write(_REPORTS[output](timeline, color))
