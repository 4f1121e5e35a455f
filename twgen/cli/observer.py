"""Reading where every worker stands."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from twgen.cli.inputs import Memory, load_specs, load_world, planning_time
from twgen.cli.settings import Settings
from twgen.model.operator import Caller
from twgen.model.status import Status
from twgen.model.world import World
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.specs.parse import Specs

if TYPE_CHECKING:
    from twgen.cli.live import Servers


@dataclass(frozen=True)
class Observation:
    """What was read at one moment: specs and world, by whom and as of when."""

    specs: Specs
    world: World
    caller: Caller
    read_at: datetime

    def status(self, now: datetime | None = None) -> Status:
        """Where every worker stands by what was read, at a later time or when it was."""
        return self._status(now) if now else self._status_when_read

    @cached_property
    def _status_when_read(self) -> Status:
        # who reads, who shows and who waits for the end all ask for it
        return self._status(self.read_at)

    def _status(self, now: datetime) -> Status:
        plan = make_plan(self.specs.workers, self.world, now, self.caller)
        return make_status(plan, self.world, self.caller)


class Observer:
    """Reads where every worker stands, again and again, over connections that it keeps."""

    def __init__(self, settings: Settings, *, needs_worker: bool = False) -> None:
        self._settings = settings
        self._needs_worker = needs_worker
        self._memory = Memory(settings)
        self._servers: Servers | None = None

    def __enter__(self) -> Self:
        if not self._settings.snapshot:
            from twgen.cli.live import Servers

            self._servers = Servers(self._settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._servers:
            self._servers.__exit__(kind, error, trace)

    def observe(self) -> Observation:
        """Read specs and world; raises as reading and planning do. Warnings are printed the first time."""
        settings, self._settings = self._settings, replace(self._settings, quiet=True)
        specs = load_specs(settings, needs_worker=self._needs_worker)
        world = load_world(settings, specs, for_routing=True, servers=self._servers, memory=self._memory)
        return Observation(specs, world, settings.planning_caller, planning_time(settings, world))


def observe(settings: Settings) -> Observation:
    """Read specs and world once."""
    with Observer(settings) as observer:
        return observer.observe()
