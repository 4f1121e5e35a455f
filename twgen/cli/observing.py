"""Reading where every worker stands."""

from dataclasses import dataclass
from datetime import datetime

from twgen.cli.loading import load_specs, load_world, planning_caller, planning_time
from twgen.cli.settings import Settings
from twgen.model.caller import Caller
from twgen.model.status import Status
from twgen.model.world import World
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.specs.parse import Specs


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read at one moment: specs and world, by whom and as of when."""

    specs: Specs
    world: World
    caller: Caller
    read_at: datetime

    def status(self, now: datetime | None = None) -> Status:
        """Where every worker stands by what was read, at a later time or when it was."""
        plan = make_plan(self.specs.workers, self.world, now or self.read_at, self.caller)
        return make_status(plan, self.world, self.caller)


def observe(settings: Settings) -> Observation:
    """Read specs and world; raises as reading and planning do."""
    specs = load_specs(settings)
    world = load_world(settings, specs, for_routing=True)
    return Observation(specs, world, planning_caller(settings), planning_time(settings, world))
