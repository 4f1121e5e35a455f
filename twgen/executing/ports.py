"""Interfaces to the servers of rollouts and `tick`. `cli` implements them with `reading`."""

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
from twgen.planning.forgetting import OldRecord
from twgen.planning.reads import Unread
from twgen.planning.worker_status import AttachedRead
from twgen.records.intent import Intent


class RolloutView:
    """Shows a rollout to people. This class only prints lines, but subclasses can show more."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """`say` is called with a sentence about each change and each failure."""
        self.say = say

    def show(self, plan: Plan, world: World, caller: Caller) -> None:
        """Show the state that was read, and this caller's plan."""

    def fail(self, spec: WorkerSpec, failure: str) -> None:
        """Show why a read or a change failed. This method is called for every failure, even if it recurs."""


class Clock(Protocol):
    """A clock that can also sleep."""

    def now(self) -> datetime:
        """The current time. Decisions about traffic use the time of the slowest known clock."""

    async def sleep(self, length: timedelta, /) -> None:
        """Wait for this length of time."""


class ServersOfWorker(Clock, Protocol):
    """The servers of one worker. The async methods raise StateUnavailable or OutOfTime."""

    spec: WorkerSpec

    async def read(self) -> World:
        """Read the state of the worker."""

    async def read_routing(self) -> WorkerDeployment | None:
        """Read only the routing and its conflict token, with few calls.

        Returns None if the worker does not exist.
        """

    def temporal(self, identity: str, /) -> TemporalWriter:
        """A writer that makes changes in Temporal as this manager identity."""

    def batches(self, now: datetime, /) -> Batches:
        """A reader of workflows and batch operations."""

    async def without_open_workflows(self, records: Sequence[OldRecord], /) -> Sequence[OldRecord]:
        """The records of versions that have no open workflows now."""

    async def gate_input(self) -> bytes | None:
        """Read the gate workflow's input, or return None if it has no input."""


class Reported(NamedTuple):
    """The content of a rollout's status ConfigMap."""

    requests: Sequence[PendingRequest] = ()
    """People's requests, in the order in which twgen answers them."""
    entries: Mapping[str, str] | None = None
    """The data entries of the ConfigMap, or None if the ConfigMap was not read."""
    is_news: bool = False
    """Whether a request or a changed intent may be waiting."""


class IntentServers(ServersOfWorker, Protocol):
    """The servers of one worker, and the cluster with its intent."""

    cluster: ClusterWriter

    async def state(self) -> RolloutInCluster:
        """Read whether the rollout may continue."""

    async def attached(self) -> list[AttachedInCluster]:
        """Read the objects that twgen attached to the worker's versions."""

    async def reported(self) -> Reported:
        """Read the rollout's status and people's requests, with at most one cheap call."""

    async def replay_again(self) -> str:
        """Restart the replay. Returns a sentence that reports the restart or the remaining steps."""


class TickServers(Protocol):
    """The servers of all workers that `tick` checks. Async methods raise StateUnavailable or OutOfTime."""

    def steady(self) -> datetime:
        """The time of a monotonic clock for measuring intervals."""

    async def read(
        self, workers: Sequence[WorkerSpec], /, *, for_routing: bool
    ) -> tuple[World, Sequence[Unread]]:
        """Read the workers. The second result contains the workers that cannot be read, with the reasons.

        With `for_routing`, also read task queues, gates and all other input for decisions about traffic.
        """

    async def attached(self, kinds: Mapping[str, set[GroupKind]], /) -> Mapping[str, AttachedRead]:
        """Read the objects of these kinds, by namespace. Never raises a TwgenError."""

    def of(self, spec: WorkerSpec, /) -> ServersOfWorker:
        """The servers of one worker."""

    def writer(self, intent: Intent, /) -> ClusterWriter:
        """A writer that makes changes in the cluster."""

    def begin_again(self, intent: Intent, /) -> bool:
        """Restart an ended rollout that this process carried out. Returns False if no such rollout exists."""


class IntentPlace(Clock, Protocol):
    """The ConfigMap of an intent, the rollout's status, and the servers of the worker."""

    name: str
    """The name of the intent in messages."""
    view: RolloutView

    async def read_intent(self, intent_hash: str, /) -> Intent | None:
        """Read the intent with this hash, or with any hash if `intent_hash` is empty.

        Returns None if the intent no longer exists. Raises UnusableIntent, StateUnavailable or OutOfTime.
        """

    async def read_status(self, intent: Intent, /) -> RolloutStatus | None:
        """Read the status of the worker's rollout, if it exists. Raises the same errors as `read_intent`."""

    def writer(self, intent: Intent, /) -> ClusterWriter:
        """A writer that makes changes in the cluster."""

    def servers(self, intent: Intent, /) -> IntentServers:
        """The servers of the intent's worker. Raises UnusableIntent."""
