"""What rollouts and `tick` need from servers; `cli` has the classes that read, which this package may not."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from twgen.executing.cluster import ClusterWriter
from twgen.executing.temporal import Batches, TemporalWriter
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import Plan
from twgen.model.rollout import PendingRequest, RolloutInCluster
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.pruning import OldRecord
from twgen.planning.reads import Unread
from twgen.planning.worker_status import AttachedRead
from twgen.records.intent import Intent


class View:
    """Shows a rollout to people; this one prints only lines."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """`say` gets every change that was made, and every failure."""
        self.say = say

    def show(self, plan: Plan, world: World, caller: Caller) -> None:
        """Show a state that was read, and its plan for this caller."""

    def fail(self, spec: WorkerSpec, failure: str) -> None:
        """Show why a read, or the change after it, failed; called each time."""


class Clock(Protocol):
    """A clock, and pauses."""

    def now(self) -> datetime:
        """The time: that of this machine, or for decisions about traffic the slowest that is known."""

    async def sleep(self, length: timedelta, /) -> None:
        """Let a length of time pass."""


class Servers(Clock, Protocol):
    """The servers of one worker. What is asynchronous raises StateUnavailable or OutOfTime."""

    spec: WorkerSpec

    async def read(self) -> World:
        """Read the state of the worker."""

    async def glance(self) -> WorkerDeployment | None:
        """Read the traffic and the conflict token, which changes with it, by few calls; None: not known."""

    def temporal(self, identity: str, /) -> TemporalWriter:
        """Makes changes in Temporal, as a manager identity."""

    def batches(self, now: datetime, /) -> Batches:
        """Reads workflows, and batch operations on them."""

    async def without_open_workflows(self, records: Sequence[OldRecord], /) -> Sequence[OldRecord]:
        """The records on which no workflow is open now."""

    async def gate_input(self) -> bytes | None:
        """Read the input of the gate; None: it has none."""


class Reported(NamedTuple):
    """What the ConfigMap of a rollout's status has."""

    requests: Sequence[PendingRequest] = ()
    """What people request of the rollout, in the order in which that is answered."""
    entries: Mapping[str, str] | None = None
    """None: they were not read."""
    is_news: bool = False
    """There may be a request, or another intent."""


class IntentServers(Servers, Protocol):
    """The servers of one worker, and the cluster that carries out its intent."""

    cluster: ClusterWriter

    async def state(self) -> RolloutInCluster:
        """Read whether the rollout may continue."""

    async def attached(self) -> list[AttachedInCluster]:
        """Read the objects that twgen attached to the worker's versions."""

    async def reported(self) -> Reported:
        """Read what the rollout has reported, and what is requested of it; one cheap call, or none."""

    async def replay_again(self) -> str:
        """Start its replay again; what was done or is left to do."""


class TickServers(Protocol):
    """The servers of all workers of `tick`. What is asynchronous raises StateUnavailable or OutOfTime."""

    def steady(self) -> datetime:
        """A moment for pauses; no change of the machine's clock moves it."""

    async def read(
        self, workers: Sequence[WorkerSpec], /, *, for_routing: bool
    ) -> tuple[World, Sequence[Unread]]:
        """Read the workers; also returns why some of them cannot be read.

        With `for_routing`, also task queues, gates and all other input of decisions about traffic.
        """

    async def attached(self, kinds: Mapping[str, set[GroupKind]], /) -> Mapping[str, AttachedRead]:
        """Read the objects of these kinds, by namespace; raises no TwgenError."""

    def of(self, spec: WorkerSpec, /) -> Servers:
        """The servers of one worker."""

    def writer(self, intent: Intent, /) -> ClusterWriter:
        """Makes changes in the cluster."""

    def begin_again(self, intent: Intent, /) -> bool:
        """Begin a rollout by this process that has ended; False: it carries out none."""


class IntentPlace(Clock, Protocol):
    """The ConfigMap of an intent, and what is next to it in the cluster."""

    name: str
    """Of the intent, for people."""
    view: View

    async def read_intent(self, intent_hash: str, /) -> Intent | None:
        """Read the intent of that hash (empty: any); None: it no longer exists.

        Raises UnusableIntent, StateUnavailable or OutOfTime.
        """

    async def read_status(self, intent: Intent, /) -> RolloutStatus | None:
        """Read the status that rollouts of the worker wrote; None: none yet. Raises as `read_intent` does."""

    def writer(self, intent: Intent, /) -> ClusterWriter:
        """Makes changes in the cluster."""

    def servers(self, intent: Intent, /) -> IntentServers:
        """The servers of the intent's worker; raises UnusableIntent."""
