"""Reading where every worker stands."""

from dataclasses import dataclass
from datetime import datetime

from twgen.cli.loading import load_specs, load_world, planning_manager, planning_time
from twgen.cli.request import Request
from twgen.model.world import World
from twgen.planning.plan import Manager, make_plan
from twgen.reporting.status import Status, make_status
from twgen.specs.parse import Specs


@dataclass(frozen=True, slots=True)
class Standing:
    """What was read at one moment: specs and world, by whom and as of when."""

    specs: Specs
    world: World
    manager: Manager
    read_at: datetime

    def status(self, now: datetime | None = None) -> Status:
        """Where every worker stands by what was read, at a later time or when it was."""
        plan = make_plan(self.specs.workers, self.world, now or self.read_at, self.manager)
        return make_status(plan, self.world, self.manager)


def read_standing(asked: Request) -> Standing:
    """Read specs and world; raises as reading and planning do."""
    specs = load_specs(asked)
    world = load_world(asked, specs, for_routing=True)
    return Standing(specs, world, planning_manager(asked), planning_time(asked, world))
