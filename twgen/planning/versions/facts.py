"""The facts about one version that the version table uses, and the resources attached to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cached_property
from heapq import nlargest
from typing import Any, NamedTuple

from twgen.cluster.pods import Applied, applied_template
from twgen.model.plan import AttachedObject, WorkerVersions
from twgen.model.policy import MOST_VERSIONS, ConnectionChanges, HistorySource, MissingTemplate, VersionPatch
from twgen.model.spec import AttachedResource, AttachedWhile, Sunset, WorkerSpec
from twgen.model.temporal import Version, VersionStatus
from twgen.model.values import dataclass
from twgen.model.world import Autoscaler, LiveDeployment, RecordedDeployment, WorkerWorld
from twgen.planning.sentences import listed
from twgen.planning.version_status import IN_ROUTING, may_have_work, routed_build_ids, status_of
from twgen.versioning.build_ids import connection_hash, may_be_ours
from twgen.versioning.injection import ADDRESS, DEPLOYMENT, NAMESPACE
from twgen.versioning.names import attached_resource_name, versioned_deployment_name

UNREGISTERED_DELAY = timedelta(minutes=10)
"""How long a Deployment may exist before its version is expected to register in Temporal."""


def deployments_of(spec: WorkerSpec, world: WorkerWorld) -> dict[str, list[LiveDeployment]]:
    """A worker's live Deployments, by build ID. A Deployment with the expected name comes first."""
    by_build_id: dict[str, list[LiveDeployment]] = {}
    for live in world.deployments or ():
        by_build_id.setdefault(live.build_id, []).append(live)
    for build_id, several in by_build_id.items():
        if len(several) > 1:
            name = versioned_deployment_name(spec.name, build_id)
            several.sort(key=lambda live: (live.terminating, live.name != name, live.name))
    return by_build_id


def _moved_variables(spec: WorkerSpec, recorded: RecordedDeployment) -> set[str]:
    """The variables for address, namespace and worker name that differ between a Deployment and the spec."""
    recorded_place = (recorded.address, recorded.temporal_namespace, recorded.worker_deployment)
    own_place = (spec.connection.host_port, spec.temporal_namespace, spec.worker_deployment)
    if recorded_place == own_place:  # the usual case
        return set()
    values = zip((ADDRESS, NAMESPACE, DEPLOYMENT), recorded_place, own_place, strict=True)
    return {name for name, recorded_value, own_value in values if recorded_value not in {"", own_value}}


@dataclass(frozen=True)
class VersionFacts:
    """One version of a worker at one moment, with the facts from its spec, Temporal, the cluster and Git."""

    spec: WorkerSpec
    world: WorkerWorld
    now: datetime
    build_id: str
    status: VersionStatus
    version: Version | None
    """The version's description in Temporal, or None if Temporal does not list the version."""
    live: LiveDeployment | None
    """The version's Deployment, unless it is being deleted."""
    terminating: LiveDeployment | None
    """The version's Deployment, if it is being deleted."""
    remembered: RecordedDeployment | None
    """The version's manifest from the ledger, or from the history of its specs in Git."""
    remembered_by: HistorySource
    """The source of `remembered`: the ledger or the Git history."""
    twins: tuple[LiveDeployment, ...] = ()
    """The other Deployments with the same build ID that are not being deleted."""
    is_among_newest: bool = True
    """Whether the version is one of the newest MOST_VERSIONS. By default, servers delete older versions."""
    namesake: str = ""
    """Another version that is not deployed, but whose Deployment would have the same name."""

    @property
    def is_target(self) -> bool:
        """Whether the spec describes this version."""
        return self.build_id == self.spec.build_id

    @property
    def is_of_others(self) -> bool:
        """Whether twgen did not create the version: its build ID is not a valid label."""
        return not may_be_ours(self.build_id)

    @cached_property
    def patch(self) -> VersionPatch | None:
        """The policy's patch for this version."""
        return next((item for item in self.spec.policy.patches if item.build_id == self.build_id), None)

    @cached_property
    def sunset(self) -> Sunset:
        """The delays after which a drained version is scaled down and deleted."""
        default, patch = self.spec.sunset, self.patch
        if not patch:
            return default
        scaledown_delay, delete_delay = patch.scaledown_delay, patch.delete_delay
        return Sunset(
            default.scaledown_delay if scaledown_delay is None else scaledown_delay,
            default.delete_delay if delete_delay is None else delete_delay,
        )

    @property
    def recorded(self) -> RecordedDeployment | None:
        """The record of the live Deployment, or else the remembered manifest."""
        live = self.live or self.terminating
        return live.recorded if live else self.remembered

    def unpatched_template(self, recorded: RecordedDeployment | None) -> Mapping[str, Any] | None:
        """The version's pod template without patches, from this record or the spec, or None if unknown."""
        if recorded:
            template: Mapping[str, Any] = recorded.manifest["spec"]["template"]
            return template
        return self.spec.template.content if self.is_target else None

    @property
    def remembers_what_runs(self) -> bool:
        """Whether Git has the version's manifest, with the live pod template if the version is deployed."""
        live, remembered = self.live or self.terminating, self.remembered
        return remembered is not None and (
            live is None or remembered.template_hash == live.recorded.template_hash
        )

    @property
    def is_loose(self) -> bool:
        """Whether the only manifest is the live Deployment, which would be pruned if it is not rendered."""
        # the policy may instead require that the render fails
        policy = self.spec.policy
        is_held = not self.live or self.live.protected or policy.missing_template is MissingTemplate.FAIL
        return not (is_held or self.remembers_what_runs or HistorySource.CLUSTER in policy.history)

    @property
    def place(self) -> str:
        """The server address and the Temporal namespace that the pods connect to, as text for messages."""
        recorded = self.recorded
        parts = (recorded.address, recorded.temporal_namespace) if recorded else ()
        place = " ".join(filter(None, parts)) or "an unknown place"
        is_another = recorded is not None and DEPLOYMENT in _moved_variables(self.spec, recorded)
        return f"{place} as {recorded.worker_deployment}" if recorded and is_another else place

    @property
    def connection_differs(self) -> bool:
        """Whether the version's connection differs from the spec's, or False without a recorded hash."""
        recorded = self.recorded.connection_hash if self.recorded else ""
        return bool(recorded) and recorded != connection_hash(self.spec.connection)

    @property
    def lives_elsewhere(self) -> bool:
        """Whether the pods connect to a server, namespace or Worker Deployment other than the spec's."""
        return self.recorded is not None and bool(_moved_variables(self.spec, self.recorded))

    @property
    def was_moved_by_hand(self) -> bool:
        """Whether a person replaced the spec's connection in the live pod template.

        In that case, the address contradicts the recorded hash, or the variables have another field manager.
        """
        live = self.live
        if not live or not self.applied or self.connection_differs or not live.recorded.connection_hash:
            return False
        if self.remembered and not self.is_target and _moved_variables(self.spec, self.remembered):
            return False
        moved = _moved_variables(self.spec, live.recorded)
        return bool(moved) and moved <= {ADDRESS, *live.edited_variables}

    @property
    def gets_new_connection(self) -> bool:
        """Whether the policy applies the spec's changed connection to this version."""
        # only used for versions that stay: a version that is about to be removed need not restart
        changes = self.spec.policy.connection_changes
        if changes is ConnectionChanges.ALL_VERSIONS:
            return self.connection_differs
        covered = changes is ConnectionChanges.TARGET and self.is_target
        return covered and self.connection_differs and not self.lives_elsewhere

    @cached_property
    def applied(self) -> Applied | None:
        """The pod template that was applied to the live Deployment, or None if spec and Git lack it."""
        return applied_template(self.spec, self.live, self.remembered) if self.live else None

    @property
    def open_workflows(self) -> int:
        """The number of open workflows on the version, or 0 if they were not counted."""
        return (self.version.open_workflows if self.version else None) or 0

    @property
    def never_active(self) -> bool:
        """Whether Temporal reports that the version has never been current or ramping."""
        return self.status is VersionStatus.INACTIVE

    @property
    def is_at_rest(self) -> bool:
        """Whether a sync has already scaled the version to zero and removed its prune protection."""
        return self.live is not None and self.live.replicas == 0 and not self.live.protected

    @property
    def both_delays(self) -> timedelta:
        """How long a drained version keeps its Deployment."""
        return self.sunset.scaledown_delay + self.sunset.delete_delay

    @property
    def is_left_over(self) -> bool:
        """Whether the version is no longer needed. If no cluster was read, its Deployment may still exist."""
        drained_for = self.drained_for
        return self.never_active or (drained_for is not None and drained_for > self.both_delays)

    @property
    def drained_for(self) -> timedelta | None:
        """How long the version has been drained, or None if it is not drained or the time is unknown."""
        drainage = self.version.drainage if self.version else None
        changed = drainage.changed_at if drainage and self.status is VersionStatus.DRAINED else None
        return self.now - changed if changed else None

    @property
    def registered_for(self) -> timedelta | None:
        """How long ago the version was created in Temporal, or None if unknown."""
        created = self.version.created_at if self.version else None
        return self.now - created if created else None

    @property
    def unregistered_for(self) -> timedelta | None:
        """The age of the Deployment of a version that Temporal does not know, otherwise None."""
        created = self.live.created_at if self.live else None
        return self.now - created if created and self.status is VersionStatus.NOT_REGISTERED else None

    def moments(self) -> Iterator[datetime]:
        """The times at which the decision about the version may change without any other event."""
        limits = (
            (self.drained_for, self.sunset.scaledown_delay),
            (self.drained_for, self.both_delays),
            (self.registered_for if self.never_active else None, self.both_delays),
            (self.unregistered_for, UNREGISTERED_DELAY),
        )
        return (self.now - age + limit for age, limit in limits if age is not None)


def version_facts(
    spec: WorkerSpec, world: WorkerWorld, now: datetime, among: AbstractSet[str] | None = None
) -> Iterator[VersionFacts]:
    """The target and all versions that are deployed or known to Temporal, sorted by build ID.

    `among` limits the result to these build IDs.
    """
    live = deployments_of(spec, world)
    versions = known_to_temporal(world)
    # Deployment names are shortened and in lower case, so two versions may share a name. This only matters
    # for a deployed version that Temporal does not know
    names = {
        versioned_deployment_name(spec.name, build_id): build_id
        for build_id, version in (versions.items() if live.keys() - versions.keys() else ())
        if build_id not in live and may_have_work(status_of(build_id, version, world.temporal), version)
    }
    memories = {HistorySource.LEDGER: world.ledger, HistorySource.GIT: world.history.versions}
    sources = [source for source in spec.policy.history if source in memories]
    build_ids = {spec.build_id, *live, *versions}
    newest = _newest(versions) if world.deployments is None else versions.keys()
    for build_id in sorted(build_ids if among is None else build_ids & among):
        version = versions.get(build_id)
        known = ((memories[source][build_id], source) for source in sources if build_id in memories[source])
        remembered, remembered_by = next(known, (None, HistorySource.GIT))
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
            remembered=remembered,
            remembered_by=remembered_by,
            twins=tuple(twin for twin in several[1:] if not twin.terminating),
            is_among_newest=build_id in newest,
            namesake=names.get(deployment.name, "") if deployment else "",
        )


def known_to_temporal(world: WorkerWorld) -> dict[str, Version | None]:
    """Temporal's versions by build ID, with None for a version that appears only in the routing."""
    routed: dict[str, Version | None] = dict.fromkeys(routed_build_ids(world.temporal))
    listed = world.temporal.versions if world.temporal else ()
    return routed | {version.build_id: version for version in listed}


def _newest(versions: Mapping[str, Version | None]) -> AbstractSet[str]:
    """The build IDs of the newest MOST_VERSIONS versions in Temporal."""
    if len(versions) <= MOST_VERSIONS:
        return versions.keys()
    created = ((item.created_at, item.build_id) for item in versions.values() if item and item.created_at)
    return {build_id for _, build_id in nlargest(MOST_VERSIONS, created)}


_STATUSES = {word.value: word for word in AttachedWhile}
AUTOSCALERS = {"HorizontalPodAutoscaler": False, "ScaledObject": True}
"""The kinds that set replicas, and whether they scale up from zero."""


class AttachedTo(NamedTuple):
    """The attached resources of one version."""

    kept: tuple[AttachedResource, ...]
    leaving: tuple[AttachedResource, ...] = ()
    """The resources that no longer belong to the version, but whose copies still exist."""
    replaced: tuple[AttachedObject, ...] = ()
    """The version's objects that no longer have a template."""
    following: tuple[AttachedResource, ...] = ()
    """The resources that replace the objects in `replaced`."""
    waiting: tuple[AttachedResource, ...] = ()
    """The autoscalers that must wait, because Argo CD would still reset the replicas."""


def attached_to(version: VersionFacts) -> AttachedTo:
    """The attached resources of a version, which depend on its status.

    An object that is to be removed is first rendered without its owner, so that Argo CD can prune it. Its
    replacement waits until then, because two autoscalers on one Deployment block each other, and a pod with
    two PodDisruptionBudgets cannot be evicted. If an object has no template, its replacement waits until the
    object has been deleted.
    """
    resources, replaced, live = version.spec.attached, _replaced(version), version.live
    has_to_wait = live is not None and live.falls_to_one and live.replicas > 1
    if not live or not (replaced or has_to_wait or any(resource.when for resource in resources)):
        return AttachedTo(tuple(item for item in resources if _is_wanted(version, item)))
    due = [resource for resource in resources if _is_wanted(version, resource)]
    leaving = [item for item in resources if item not in due and _has_copy(version, item)]
    scalers = {*AUTOSCALERS, *(resource.kind for resource in resources if resource.autoscales)}

    def role(item: AttachedResource | AttachedObject) -> str:
        return "replicas" if item.kind in scalers else item.kind

    replaced_roles = {*map(role, replaced)}
    # the rollout may already have deleted some objects of these roles
    unclear_roles = {role(item) for item in replaced if str(item) in live.added}
    rendered, by_rollout, waiting = [], [], []
    for item in due:
        [copy] = map(str, objects_of(version, [item]))
        is_there = copy in live.attached and copy not in live.added and role(item) not in unclear_roles
        # an object that is recorded as gone stays hidden until the rollout updates the record
        follows = role(item) in replaced_roles or (bool(replaced) and copy in live.gone)
        is_new_scaler = item.autoscales and copy not in {*live.attached, *live.added}
        if is_new_scaler and (has_to_wait or (follows and live.replicas_are_synced)):
            waiting.append(item)
        elif is_there or not (follows or role(item) in map(role, leaving)):
            rendered.append(item)
        elif follows:
            by_rollout.append(item)
    return AttachedTo(tuple(rendered), tuple(leaving), replaced, tuple(by_rollout), tuple(waiting))


def autoscalers_of(version: VersionFacts) -> list[AttachedResource]:
    """A version's autoscalers. If no cluster was read, these are all autoscalers that might exist."""
    resources = version.spec.attached
    if version.world.deployments is not None and resources:
        attached = attached_to(version)
        resources = (*attached.kept, *attached.leaving, *attached.waiting)
    return [
        *(resource for resource in resources if resource.autoscales),
        *(
            AttachedResource(item.name, {"kind": item.kind}, True, AUTOSCALERS[item.kind])  # noqa: FBT003 - as it is
            for item in _replaced(version)
            if item.kind in AUTOSCALERS
        ),
    ]


def replicas_are_external(version: VersionFacts) -> bool:
    """Whether an autoscaler or a person, not the spec, sets the version's replicas."""
    replicas = version.spec.replicas if not version.patch else version.patch.replicas or version.spec.replicas
    return replicas is None or bool(autoscalers_of(version))


def rival_autoscalers(worker: WorkerVersions, autoscalers: Sequence[Autoscaler]) -> Iterator[str]:
    """A warning about each Deployment that has more than one autoscaler, created by twgen or not."""
    for version in worker.versions if len(autoscalers) > 1 else ():
        rivals = [item for item in autoscalers if version.live and item.deployment == version.live.name]
        if len(rivals) > 1:
            names = {str(item): f"{item.kind} {item.name}" for item in rivals}
            templated = {*map(str, (*version.attached, *version.following))}
            own = [name for item, name in names.items() if item in templated]
            going = [name for item, name in names.items() if item in map(str, version.replaced)]
            yield (
                f"{version.build_id}: {listed([*names.values()])} scale the same Deployment and undo each"
                f" other's decisions: keep only {own[0] if len(own) == 1 else 'one of them'}"
                + (f"; its rollout deletes {listed(going)}" if going else "")
            )


def objects_of(version: VersionFacts, resources: Iterable[AttachedResource]) -> tuple[AttachedObject, ...]:
    """The kinds and names of a version's copies of these resources."""
    return tuple(
        AttachedObject(item.kind, attached_resource_name(version.spec.name, item.name, version.build_id))
        for item in resources
    )


def _is_wanted(version: VersionFacts, resource: AttachedResource) -> bool:
    if not resource.when:
        return True
    word = _STATUSES.get(version.status)
    if version.is_target:
        # a draining target will get traffic again, so objects for draining versions would soon be removed
        moved = {word} if word and version.status in IN_ROUTING else set()
        return not resource.when.isdisjoint({AttachedWhile.TARGET, *moved})
    if word:
        return word in resource.when
    # if the status is unknown, existing copies stay; a version without copies is treated as draining
    if any(item.when and _has_copy(version, item) for item in version.spec.attached):
        return _has_copy(version, resource)
    return AttachedWhile.DRAINING in resource.when


def _has_copy(version: VersionFacts, resource: AttachedResource) -> bool:
    [copy] = map(str, objects_of(version, [resource]))
    return version.live is not None and copy in version.live.attached


def _replaced(version: VersionFacts) -> tuple[AttachedObject, ...]:
    if not version.live or not (named := dict.fromkeys((*version.live.attached, *version.live.added))):
        return ()
    templated = {*map(str, objects_of(version, version.spec.attached))}
    untemplated = (item.partition("/") for item in named if item not in templated)
    return tuple(AttachedObject(kind, name) for kind, _, name in untemplated if name)
