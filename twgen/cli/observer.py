"""Reads the state of every worker."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Self

from twgen.cli.inputs import Memory, load_specs, load_world, planning_time
from twgen.cli.settings import Settings
from twgen.model.operator import Caller, Operator
from twgen.model.plan import Plan
from twgen.model.status import Status
from twgen.model.values import dataclass
from twgen.model.world import World
from twgen.planning.drivers import warned_of_drivers
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import AttachedRead, attached_to_read, make_status

if TYPE_CHECKING:
    from twgen.cli.live import Connections, Servers
    from twgen.planning.reads import Unread
    from twgen.reporting.status.trees import Layout


@dataclass(frozen=True)
class Observation:
    """The world that was read, the caller, and the plan for that world."""

    world: World
    caller: Caller
    plan: Plan
    read_at: datetime
    """The time of the read, by this machine's clock. A rollout may plan with a slower clock."""
    operator: Operator = field(default_factory=Operator)
    attached: Mapping[str, AttachedRead] = field(default_factory=dict)
    """The attached objects that were read, by namespace."""
    context: str = ""
    """The kubeconfig context, or empty if twgen read no cluster or used the Pod's service account."""

    @cached_property
    def status(self) -> Status:
        """The state of every worker at the time of the plan."""
        return make_status(self.plan, self.world, self.caller, self.attached)

    def status_at(self, now: datetime) -> Status:
        """The state of every worker at a later time by this machine's clock, from the same read."""
        specs = [worker.spec for worker in self.plan.workers]
        plan = make_plan(specs, self.world, self.plan.now + (now - self.read_at), self.caller)
        plan = warned_of_drivers(plan, self.operator)
        return make_status(plan, self.world, self.caller, self.attached)

    def tree(self, now: datetime, layout: "Layout") -> str:
        """The state of every worker at time `now`, as a tree for a terminal."""
        from twgen.reporting.status.trees import status_text

        return status_text(self.status_at(now), layout)


class Observer:
    """Reads the state of every worker repeatedly, over the same connections."""

    def __init__(
        self, settings: Settings, *, needs_worker: bool = False, unread: "list[Unread] | None" = None
    ) -> None:
        """`unread` collects the workers that cannot be read. The observation omits these workers."""
        self._settings = settings
        self._unread = unread
        self._needs_worker = needs_worker
        self._memory = Memory(settings)
        self._servers: Servers | None = None

    def __enter__(self) -> Self:
        if not self._settings.snapshot:
            from twgen.cli.live import Servers

            self._servers = Servers(self._settings, self._unread)
        return self

    def __exit__(self, *_: object) -> None:
        if self._servers:
            self._servers.close()

    def observe(self) -> Observation:
        """Read the specs and the world. Only the first call prints warnings."""
        settings, self._settings = self._settings, replace(self._settings, quiet=True)
        specs = load_specs(settings, needs_worker=self._needs_worker)
        world = load_world(settings, specs, for_routing=True, servers=self._servers, memory=self._memory)
        workers = [spec for spec in specs.workers if not self._unread or spec.key in world.workers]
        now, caller = planning_time(settings, world), settings.planning_caller
        plan = warned_of_drivers(make_plan(workers, world, now, caller), settings.operator)
        attached = self._attached(plan)
        context = self._servers.context if self._servers else ""
        return Observation(world, caller, plan, now, settings.operator, attached, context)

    def _attached(self, plan: Plan) -> Mapping[str, AttachedRead]:
        """The state of objects that are attached to live versions, or empty without a cluster."""
        kinds = attached_to_read(worker.versions for worker in plan.workers)
        if not self._servers or not kinds:
            return {}
        from twgen.reading.objects import read_attached

        async def work(opened: "Connections") -> Mapping[str, AttachedRead]:
            deadline = self._settings.reading_deadline()
            return await read_attached(opened.cluster_for("status"), kinds, deadline)

        return self._servers.run((), work)


def observe(settings: Settings, unread: "list[Unread] | None" = None) -> Observation:
    """Read the specs and the world once. `unread` has the same meaning as in an Observer."""
    with Observer(settings, unread=unread) as observer:
        return observer.observe()
