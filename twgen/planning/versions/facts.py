"""What the version table asks about one version, and the versions of a worker for which it is asked."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cached_property
from heapq import nlargest

from twgen.cluster.pods import Applied, applied_template
from twgen.model.policy import MOST_VERSIONS, ConnectionChanges, HistorySource, MissingTemplate, VersionPatch
from twgen.model.spec import Sunset, WorkerSpec
from twgen.model.temporal import Version, VersionStatus
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, RecordedDeployment, WorkerWorld
from twgen.planning.version_status import may_have_work, routed_build_ids, status_of
from twgen.versioning.build_ids import connection_hash, may_be_ours
from twgen.versioning.injection import ADDRESS, DEPLOYMENT, NAMESPACE
from twgen.versioning.names import versioned_deployment_name

UNREGISTERED_DELAY = timedelta(minutes=10)
"""How long a Deployment may take until Temporal knows its version."""


def deployments_of(spec: WorkerSpec, world: WorkerWorld) -> dict[str, list[LiveDeployment]]:
    """The live Deployments of a worker by build ID; of several, the version's own is first."""
    found: dict[str, list[LiveDeployment]] = {}
    for live in world.deployments or ():
        found.setdefault(live.build_id, []).append(live)
    for build_id, several in found.items():
        if len(several) > 1:
            name = versioned_deployment_name(spec.name, build_id)
            several.sort(key=lambda live: (live.terminating, live.name != name, live.name))
    return found


def _other_places(spec: WorkerSpec, recorded: RecordedDeployment) -> set[str]:
    """In which of the variables that say where a worker lives a Deployment is not as the spec."""
    found = (recorded.address, recorded.temporal_namespace, recorded.worker_deployment)
    wanted = (spec.connection.host_port, spec.temporal_namespace, spec.worker_deployment)
    if found == wanted:  # as nearly all are
        return set()
    names = (ADDRESS, NAMESPACE, DEPLOYMENT)
    return {name for name, here, there in zip(names, found, wanted, strict=True) if here not in {"", there}}


@dataclass(frozen=True)
class VersionFacts:
    """One version of a worker: what its spec, Temporal, the cluster and Git say at one moment."""

    spec: WorkerSpec
    world: WorkerWorld
    now: datetime
    build_id: str
    status: VersionStatus
    version: Version | None
    """What Temporal says; None: it does not list it."""
    live: LiveDeployment | None
    """Its Deployment, unless that is being deleted."""
    terminating: LiveDeployment | None
    """Its Deployment when that is being deleted."""
    remembered: RecordedDeployment | None
    """What Git remembers of it: its ledger, or the history of its specs."""
    remembered_by: HistorySource
    """The ledger or the history of Git, whichever tells `remembered`."""
    twins: tuple[LiveDeployment, ...] = ()
    """Further Deployments of its build ID, less those that are being deleted."""
    is_among_newest: bool = True
    """One of the last MOST_VERSIONS that Temporal lists: a server as it comes has forgotten all others."""
    namesake: str = ""
    """A version that may have work and has no Deployment, whose own would be called as the live one here."""

    @property
    def is_target(self) -> bool:
        """It is the version that the spec describes."""
        return self.build_id == self.spec.build_id

    @property
    def is_of_others(self) -> bool:
        """Whoever versioned its workers by hand made it: no label holds its build ID, so no object is its."""
        return not may_be_ours(self.build_id)

    @cached_property
    def patch(self) -> VersionPatch | None:
        """What the policy says of it alone."""
        return next((item for item in self.spec.policy.patches if item.build_id == self.build_id), None)

    @cached_property
    def sunset(self) -> Sunset:
        """How long it stays once it is drained."""
        said, own = self.spec.sunset, self.patch
        if not own:
            return said
        delays = (own.scaledown_delay, said.scaledown_delay), (own.delete_delay, said.delete_delay)
        return Sunset(*(of_all if of_it is None else of_it for of_it, of_all in delays))

    @property
    def recorded(self) -> RecordedDeployment | None:
        """What is known of its pods: of those that run, else of those that Git remembers."""
        found = self.live or self.terminating
        return found.recorded if found else self.remembered

    @property
    def remembers_what_runs(self) -> bool:
        """Git remembers it with the pod template of its Deployment, where it has one."""
        found, remembered = self.live or self.terminating, self.remembered
        return remembered is not None and (
            found is None or remembered.template_hash == found.recorded.template_hash
        )

    @property
    def is_loose(self) -> bool:
        """Left out it would be pruned: nothing protects its Deployment, and only that has its manifest."""
        # who would rather have the run fail is not overruled
        policy = self.spec.policy
        is_held = not self.live or self.live.protected or policy.missing_template is MissingTemplate.FAIL
        return not (is_held or self.remembers_what_runs or HistorySource.CLUSTER in policy.history)

    @property
    def place(self) -> str:
        """Where its pods find Temporal, in words."""
        found = self.recorded
        told = (found.address, found.temporal_namespace) if found else ()
        place = " ".join(filter(None, told)) or "an unknown place"
        is_another = found is not None and DEPLOYMENT in _other_places(self.spec, found)
        return f"{place} as {found.worker_deployment}" if found and is_another else place

    @property
    def template_differs(self) -> bool:
        """Its pod template is another than the spec's; no hash recorded: no."""
        recorded = self.recorded.template_hash if self.recorded else ""
        return bool(recorded) and recorded != self.spec.template.hash

    @property
    def connection_differs(self) -> bool:
        """Its connection is another than the spec's; no hash recorded: no."""
        recorded = self.recorded.connection_hash if self.recorded else ""
        return bool(recorded) and recorded != connection_hash(self.spec.connection)

    @property
    def lives_elsewhere(self) -> bool:
        """Its pods talk to another server, namespace or Worker Deployment than the spec's."""
        return self.recorded is not None and bool(_other_places(self.spec, self.recorded))

    @property
    def was_moved_by_hand(self) -> bool:
        """It was applied for the spec's place, and somebody changed that in the live pod template.

        An address that contradicts the recorded hash tells so, and of the others a field manager.
        """
        live = self.live
        if not live or not self.applied or self.connection_differs or not live.recorded.connection_hash:
            return False
        if self.remembered and not self.is_target and _other_places(self.spec, self.remembered):
            return False
        moved = _other_places(self.spec, live.recorded)
        return bool(moved) and moved <= {ADDRESS, *live.edited_variables}

    @property
    def gets_new_connection(self) -> bool:
        """The policy moves this version to the spec's changed connection."""
        # used only for versions that are kept: one that goes is not restarted for a connection
        changes = self.spec.policy.connection_changes
        if changes is ConnectionChanges.ALL_VERSIONS:
            return self.connection_differs
        covered = changes is ConnectionChanges.TARGET and self.is_target
        return covered and self.connection_differs and not self.lives_elsewhere

    @cached_property
    def applied(self) -> Applied | None:
        """The pod template that its live Deployment was applied with; None: neither spec nor Git tells."""
        return applied_template(self.spec, self.live, self.remembered) if self.live else None

    @property
    def is_doubtful(self) -> bool:
        """Nothing but its own hash tells whether its live pod template is what was applied."""
        untold = self.live is not None and not self.live.template_is_as_applied
        return untold and self.applied is None

    @property
    def open_workflows(self) -> int:
        """The workflows that were counted on it."""
        return (self.version.open_workflows if self.version else None) or 0

    @property
    def never_active(self) -> bool:
        """Temporal says that it has not been current or ramping."""
        return self.status is VersionStatus.INACTIVE

    @property
    def is_told_to_drain(self) -> bool:
        """Temporal says that it is draining, and nothing of what it says speaks against that."""
        version = self.version
        if not version or self.status is not VersionStatus.DRAINING:
            return False
        checked = version.drainage.status if version.drainage else VersionStatus.DRAINING
        return version.status is checked is VersionStatus.DRAINING

    @property
    def is_at_rest(self) -> bool:
        """A sync has already taken its pods and its protection away."""
        return self.live is not None and self.live.replicas == 0 and not self.live.protected

    @property
    def both_delays(self) -> timedelta:
        """How long a drained version keeps its Deployment."""
        return self.sunset.scaledown_delay + self.sunset.delete_delay

    @property
    def is_left_over(self) -> bool:
        """Nothing needs it: only where no cluster was read may there still be a Deployment to take away."""
        drained_for = self.drained_for
        return self.never_active or (drained_for is not None and drained_for > self.both_delays)

    @property
    def drained_for(self) -> timedelta | None:
        """How long it has been drained; None: it is not, or since nobody knows when."""
        drainage = self.version.drainage if self.version else None
        changed = drainage.changed_at if drainage and self.status is VersionStatus.DRAINED else None
        return self.now - changed if changed else None

    @property
    def registered_for(self) -> timedelta | None:
        """How long Temporal has known it; None: unknown."""
        created = self.version.created_at if self.version else None
        return self.now - created if created else None

    @property
    def deployed_for(self) -> timedelta | None:
        """How long its Deployment has existed; None: unknown."""
        created = self.live.created_at if self.live else None
        return self.now - created if created else None

    @property
    def is_unregistered_for_long(self) -> bool:
        """Temporal does not know it, though its Deployment has had its time to poll."""
        age = self.deployed_for if self.status is VersionStatus.NOT_REGISTERED else None
        return age is not None and age > UNREGISTERED_DELAY

    def moments(self) -> Iterator[datetime]:
        """The times at which time alone may change what becomes of it."""
        for age, limits in (
            (self.drained_for, (self.sunset.scaledown_delay, self.both_delays)),
            (self.registered_for if self.never_active else None, (self.both_delays,)),
            (
                self.deployed_for if self.status is VersionStatus.NOT_REGISTERED else None,
                (UNREGISTERED_DELAY,),
            ),
        ):
            if age is not None:
                yield from (self.now - age + limit for limit in limits)


def version_facts(
    spec: WorkerSpec, world: WorkerWorld, now: datetime, among: AbstractSet[str] | None = None
) -> Iterator[VersionFacts]:
    """Every version that is the target, deployed or known to Temporal, by build ID; only those `among`."""
    live = deployments_of(spec, world)
    versions = known_to_temporal(world)
    # names have no capitals, and fewer signs than build IDs; in doubt is only what Temporal does not know
    names = {
        versioned_deployment_name(spec.name, build_id): build_id
        for build_id, version in (versions.items() if live.keys() - versions.keys() else ())
        if build_id not in live and may_have_work(status_of(build_id, version, world.temporal), version)
    }
    memories = {HistorySource.LEDGER: world.ledger, HistorySource.GIT: world.history.versions}
    sources = [source for source in spec.policy.history if source in memories]
    known = {spec.build_id, *live, *versions}
    newest = _newest(versions) if world.deployments is None else versions.keys()
    for build_id in sorted(known if among is None else known & among):
        version = versions.get(build_id)
        source = next((source for source in sources if build_id in memories[source]), HistorySource.GIT)
        several = live.get(build_id, [])
        deployment = several[0] if several else None
        is_going = deployment is not None and deployment.terminating
        yield VersionFacts(
            spec=spec,
            world=world,
            now=now,
            build_id=build_id,
            status=status_of(build_id, version, world.temporal),
            version=version,
            live=None if is_going else deployment,
            terminating=deployment if is_going else None,
            remembered=memories[source].get(build_id) if source in sources else None,
            remembered_by=source,
            twins=tuple(other for other in several[1:] if not other.terminating),
            is_among_newest=build_id in newest,
            namesake=names.get(deployment.name, "") if deployment else "",
        )


def known_to_temporal(world: WorkerWorld) -> dict[str, Version | None]:
    """What Temporal says of each version that it lists, by build ID; None of one that only routing names."""
    found: dict[str, Version | None] = dict.fromkeys(routed_build_ids(world.temporal))
    listed_ones = world.temporal.versions if world.temporal else ()
    return found | {version.build_id: version for version in listed_ones}


def _newest(versions: Mapping[str, Version | None]) -> AbstractSet[str]:
    """The build IDs of the MOST_VERSIONS that Temporal has known for the shortest time."""
    if len(versions) <= MOST_VERSIONS:
        return versions.keys()
    created = {
        build_id: version.created_at
        for build_id, version in versions.items()
        if version and version.created_at
    }
    return set(nlargest(MOST_VERSIONS, created, key=lambda build_id: (created[build_id], build_id)))
