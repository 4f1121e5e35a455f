"""Every report for people, of values whose texts may be anything."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tests.simulating.stories import tell
from tests.strategies import NOW
from twgen.model.operator import Caller
from twgen.model.plan import Plan
from twgen.model.spec import WorkerSpec
from twgen.model.status import Status
from twgen.model.timeline import Timeline
from twgen.model.world import World
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status, rollout_status
from twgen.reporting.page.pages import fleet_page, simulation_page
from twgen.reporting.plan.markdown import plan_markdown
from twgen.reporting.plan.text import plan_text
from twgen.reporting.status.lines import fleet_status, status_lines
from twgen.reporting.status.trees import Layout, status_text
from twgen.reporting.timeline.picture import timeline_svg
from twgen.reporting.timeline.text import timeline_text

ME = Caller("me", forced=True)


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; enumerations and documents stay."""
    if type(value) is str:
        return change(value) if value else value
    if isinstance(value, tuple):
        return tuple(with_texts(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in fields(value)]
        return replace(value, **{name: with_texts(getattr(value, name), change) for name in names})
    return value


def a_plan(spec: WorkerSpec, world: World) -> Plan:
    """A worker's plan in a world."""
    return replace(make_plan([spec], world, NOW, ME), warnings=("a warning",))


def a_status(spec: WorkerSpec, world: World) -> Status:
    """A worker's status in a world."""
    return make_status(a_plan(spec, world), world, ME)


def values(spec: WorkerSpec, world: World) -> tuple[Status, Timeline]:
    """A worker's status and simulation in a world."""
    return a_status(spec, world), tell([spec], world, NOW)


def reports(status: Status, timeline: Timeline, width: int = 80) -> Mapping[str, str]:
    """Each report for people, by name."""
    fleet = fleet_status([rollout_status(status, NOW, "")], NOW, ("a line about what nobody renders",))
    return {
        "plan text": plan_text(status, colour=False, width=width),
        "plan markdown": plan_markdown(status),
        "page of a fleet": fleet_page([rollout_status(status, NOW, "")], NOW),
        "page of a simulation": simulation_page(timeline),
        "status tree": status_text(status, Layout(colour=False, width=width, ascii_only=False)),
        "trees of a fleet": status_text(fleet, Layout(colour=False, width=width, ascii_only=False)),
        "lines of a fleet": "\n".join(line.text for line in status_lines(fleet)),
        "status lines": "\n".join(line.text for line in status_lines(status)),
        "simulation text": timeline_text(timeline, colour=False, width=width),
        "simulation picture": timeline_svg(timeline),
    }
