"""What the version table asks about one version."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from twgen.model.policy import ConnectionChanges
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment, RecordedDeployment, Version, VersionStatus, WorkerWorld
from twgen.planning.ages import spoken
from twgen.planning.status import ever_active

UNREGISTERED_DELAY = timedelta(minutes=10)
"""How long a Deployment may take until Temporal knows its version."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One version of a worker: what its spec, Temporal and the cluster say of it at one moment."""

    spec: WorkerSpec
    world: WorkerWorld
    now: datetime
    build_id: str
    status: VersionStatus
    version: Version | None
    live: LiveDeployment | None
    recorded: RecordedDeployment | None
    """Its manifest, from the history."""
    spec_connection_hash: str

    @property
    def is_target(self) -> bool:
        """It is the version that the spec describes."""
        return self.build_id == self.spec.build_id

    @property
    def is_unknown_worker(self) -> bool:
        """Temporal has never heard of the worker."""
        return self.world.temporal is None

    @property
    def live_replicas(self) -> int:
        """Replicas of the live Deployment, 0 without one."""
        return self.live.replicas if self.live else 0

    @property
    def template_differs(self) -> bool:
        """The recorded pod template is another than the spec's; none recorded: no."""
        recorded = self.recorded.template_hash if self.recorded else ""
        return bool(recorded) and recorded != self.spec.template.hash

    @property
    def lives_elsewhere(self) -> bool:
        """Its pods talk to another server, namespace or Worker Deployment than the spec's."""
        recorded = self.recorded
        return recorded is not None and (
            recorded.address not in {"", self.spec.connection.host_port}
            or recorded.temporal_namespace not in {"", self.spec.temporal_namespace}
            or recorded.worker_deployment not in {"", self.spec.worker_deployment}
        )

    @property
    def connection_differs(self) -> bool:
        """The recorded connection is another than the spec's; none recorded: no."""
        recorded = self.recorded.connection_hash if self.recorded else ""
        return bool(recorded) and recorded != self.spec_connection_hash

    @property
    def gets_new_connection(self) -> bool:
        """The policy moves this version to the spec's changed connection."""
        changes = self.spec.policy.connection_changes
        if changes is ConnectionChanges.ALL_VERSIONS:
            return self.connection_differs
        covered = changes is ConnectionChanges.TARGET and self.is_target
        return covered and self.connection_differs and not self.lives_elsewhere

    @property
    def has_open_workflows(self) -> bool:
        """Workflows were counted on it."""
        return bool(self.version and self.version.open_workflows)

    @property
    def never_active(self) -> bool:
        """It has not been current or ramping."""
        return self.version is None or not ever_active(self.version)

    @property
    def may_be_dropped(self) -> bool:
        """A sync has already taken its pods and its protection away."""
        return self.live is None or (self.live.replicas == 0 and not self.live.protected)

    @property
    def registered_for(self) -> timedelta | None:
        """How long Temporal has known the version."""
        created = self.version.created_at if self.version else None
        return self.now - created if created else None

    @property
    def drained_for(self) -> timedelta | None:
        """How long the version has been drained."""
        drainage = self.version.drainage if self.version else None
        changed = drainage.changed_at if drainage and self.status is VersionStatus.DRAINED else None
        return self.now - changed if changed else None

    @property
    def deployed_for(self) -> timedelta | None:
        """How long its Deployment has existed."""
        created = self.live.created_at if self.live else None
        return self.now - created if created else None


class Words(Mapping[str, object]):
    """What a `because` may name of a version; each is worked out only when it is named."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __getitem__(self, name: str) -> object:
        return _WORDS[name](self._facts)

    def __iter__(self) -> Iterator[str]:
        return iter(_WORDS)

    def __len__(self) -> int:
        return len(_WORDS)


_WORDS: Mapping[str, Callable[[Facts], object]] = {
    "drained": lambda facts: spoken(facts.drained_for or timedelta()),
    "deployed": lambda facts: spoken(facts.deployed_for or timedelta()),
    "registered": lambda facts: spoken(facts.registered_for or timedelta()),
    "scaledown": lambda facts: spoken(facts.spec.sunset.scaledown_delay),
    "both": lambda facts: spoken(facts.spec.sunset.scaledown_delay + facts.spec.sunset.delete_delay),
    "open": lambda facts: facts.version.open_workflows if facts.version else 0,
    "address": lambda facts: facts.recorded.address if facts.recorded else "",
    "namespace": lambda facts: facts.recorded.temporal_namespace if facts.recorded else "",
    "absence": lambda facts: (
        " (the cluster was not read)" if facts.world.deployments is None else " and has no Deployment"
    ),
    "status": lambda facts: facts.status.value.lower(),
}


def longer_than(length: timedelta | None, limit: timedelta) -> bool:
    """The length is known and above the limit."""
    return length is not None and length > limit
