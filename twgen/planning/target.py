"""What the routing table asks about a worker's target version."""

from dataclasses import dataclass
from datetime import datetime

from twgen.model.spec import WorkerSpec
from twgen.model.world import (
    LiveDeployment,
    RampingVersion,
    TaskQueue,
    TaskQueueType,
    Version,
    VersionStatus,
    WorkerDeployment,
    WorkerWorld,
)
from twgen.planning.status import status_of

_ABORTED = "twgen.io/aborted"
_UNREGISTERED = {VersionStatus.NOT_REGISTERED, VersionStatus.CREATED}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a worker at one moment."""

    spec: WorkerSpec
    world: WorkerWorld
    now: datetime

    @property
    def build_id(self) -> str:
        """What the target is called."""
        return self.spec.build_id

    @property
    def temporal(self) -> WorkerDeployment:
        """What Temporal says of the worker; empty when it has never heard of it."""
        return self.world.temporal or WorkerDeployment()

    @property
    def version(self) -> Version | None:
        """What Temporal says of the target."""
        return self.temporal_version(self.build_id)

    @property
    def live(self) -> LiveDeployment | None:
        """Its live Deployment; None too when the cluster was not read."""
        return next((live for live in self.world.deployments or () if live.build_id == self.build_id), None)

    @property
    def current(self) -> str | None:
        """The build ID of the current version; None: unversioned workers are current."""
        current = self.temporal.routing.current
        return current.build_id if current else None

    @property
    def is_current(self) -> bool:
        """All of its traffic has moved."""
        return self.current == self.build_id

    @property
    def ramp(self) -> RampingVersion | None:
        """The ramp to the target."""
        ramping = self.temporal.routing.ramping
        return ramping if ramping and ramping.build_id == self.build_id else None

    @property
    def other_ramp(self) -> RampingVersion | None:
        """A ramp to anything else."""
        ramping = self.temporal.routing.ramping
        return ramping if ramping and ramping.build_id != self.build_id else None

    @property
    def is_aborted(self) -> bool:
        """A person has marked it so."""
        return bool(self.version and (self.version.metadata or {}).get(_ABORTED))

    @property
    def is_registered(self) -> bool:
        """Temporal knows it by a worker that polled."""
        return self.version is not None and status_of(self.build_id, self.temporal) not in _UNREGISTERED

    @property
    def task_queues(self) -> tuple[TaskQueue, ...]:
        """The task queues that it is known to have polled."""
        return (self.version.task_queues if self.version else None) or ()

    @property
    def workflow_task_queues(self) -> tuple[str, ...]:
        """The names of those that carry workflows, sorted."""
        carry = {queue.name for queue in self.task_queues if queue.type is TaskQueueType.WORKFLOW}
        return tuple(sorted(carry))

    def temporal_version(self, build_id: str) -> Version | None:
        """What Temporal says of a version."""
        return next((item for item in self.temporal.versions if item.build_id == build_id), None)
