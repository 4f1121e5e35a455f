"""Planning the versions of one worker: the version table applied to all that exist."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from twgen.cluster.marks import changed_marks
from twgen.errors import StateUnavailable
from twgen.model.plan import AttachedObject, LaterAction, VersionAction, VersionPlan, WorkerVersions
from twgen.model.reasons import VersionReason as Reason
from twgen.model.spec import HistorySource, MissingTemplate, WorkerSpec
from twgen.model.world import (
    LiveDeployment,
    RecordedDeployment,
    Version,
    VersionStatus,
    WorkerWorld,
)
from twgen.planning.ownership import doubts_about_cluster
from twgen.planning.sentences import counted, listed
from twgen.planning.version_status import may_have_work, routed_build_ids, status_of
from twgen.planning.versions.facts import VersionFacts, deployments_of
from twgen.planning.versions.pods import replaceable_injection
from twgen.planning.versions.table import Decision, decide
from twgen.planning.versions.warnings import version_warnings, why_not_deployed
from twgen.versioning.names import attached_resource_name, versioned_deployment_name

_KEEP, _UPDATE, _NONE = VersionAction.KEEP, VersionAction.UPDATE, VersionAction.NONE


def plan_worker_versions(
    spec: WorkerSpec, worker: WorkerWorld, now: datetime, identity: str
) -> WorkerVersions:
    """What becomes of every version of a worker, whose Deployments carry `identity`; empty: nobody said.

    Raises StateUnavailable when a version lost its manifest and the policy says that this must not be.
    """
    decided = [(version, *decide(version)) for version in version_facts(spec, worker, now)]
    not_created = _why_not_created(spec, [(version, reason) for version, reason, _ in decided])
    plans, warnings = [], list(doubts_about_cluster(spec, worker))
    not_deployed = "".join(why_not_deployed(version) for version, _, _ in decided)
    for version, reason, decision in decided:
        if reason is Reason.NOT_NEEDED:
            continue
        plan = _planned(version, reason, decision, not_created)
        stays = plan.live is not None and plan.action in {_KEEP, VersionAction.SCALE_DOWN}
        if stays and (changed := tuple(changed_marks(spec, plan, identity))):
            told = f"; applying changes its {listed(changed)}" if plan.action is _KEEP else ""
            plan = replace(plan, changed_marks=changed, because=f"{plan.because}{told}")
        plans.append(plan)
        warnings += version_warnings(version, plan)
        if plan.reason is Reason.MANIFEST_LOST and spec.policy.missing_template is MissingTemplate.FAIL:
            raise StateUnavailable(f"{spec.worker_deployment}: {plan.build_id}: {plan.because}")
    return WorkerVersions(spec, tuple(plans), tuple(warnings), not_created, not_deployed)


def versions_to_count(spec: WorkerSpec, worker: WorkerWorld, now: datetime) -> tuple[str, ...]:
    """The build IDs whose open pinned workflows must be counted: their pods, or their code, would go."""
    found = []
    for version in version_facts(spec, worker, now):
        action = decide(version)[1].action
        edited = action is _KEEP and version.applied is not None and bool(version.applied.since.changed)
        replaced = edited or action in {VersionAction.SCALE_DOWN, _UPDATE}
        if version.version and (replaced or (action is VersionAction.DROP and version.live)):
            found.append(version.build_id)
    return tuple(found)


def versions_to_look_for(spec: WorkerSpec, worker: WorkerWorld, now: datetime) -> frozenset[str]:
    """The build IDs whose manifest only the history of Git can tell: no source before it has one."""
    history = spec.policy.history
    if HistorySource.GIT not in history:
        return frozenset()
    before = history[: history.index(HistorySource.GIT)]
    live = {deployment.build_id for deployment in worker.deployments or ()}
    told = {
        spec.build_id,
        *(worker.ledger if HistorySource.LEDGER in before else ()),
        *(live if HistorySource.CLUSTER in before else ()),
    }
    # of a hundred thousand versions most are long drained: those need no look at the whole table
    untold = {
        build_id
        for build_id, version in _known_to_temporal(worker).items()
        if build_id not in told
        and (
            worker.deployments is None
            or may_have_work(status_of(build_id, version, worker.temporal), version)
        )
    } | (live - told)
    return frozenset(
        version.build_id
        for version in (version_facts(spec, worker, now, untold) if untold else ())
        if decide(version)[1].action is not VersionAction.DROP
    )


def build_id_taken(spec: WorkerSpec, recorded: RecordedDeployment | None) -> str:
    """Why the spec must not be recorded under its build ID; empty: it may be.

    A build ID of our own making has 10,000 hash values: two templates can share one.
    """
    if spec.has_custom_build_id or not recorded or recorded.template_hash in {"", spec.template.hash}:
        return ""
    return (
        f"{spec.worker_deployment}: {spec.build_id} is recorded with another pod template, and pods of that"
        " one may run: change the image tag, or set spec.workerOptions.unsafeCustomBuildID"
    )


def holds_a_place(version: VersionFacts | VersionPlan) -> bool:
    """A version beside the target counts against maxVersions: every one but a drained one at zero."""
    is_at_zero = version.live is not None and version.live.replicas == 0
    return not (version.status is VersionStatus.DRAINED and is_at_zero)


def later_actions(spec: WorkerSpec, worker: WorkerWorld, now: datetime) -> dict[str, LaterAction]:
    """What time alone will next bring to each version after what becomes of it now, by build ID."""
    found = {}
    for version in version_facts(spec, worker, now):
        action = decide(version)[1].action
        for at in sorted(moment for moment in version.moments() if moment >= now):
            later = replace(version, now=at + datetime.resolution)
            if (then := decide(later)[1].action) is not action:
                found[version.build_id] = LaterAction(then, at)
                break
    return found


def version_facts(
    spec: WorkerSpec, worker: WorkerWorld, now: datetime, among: AbstractSet[str] | None = None
) -> Iterator[VersionFacts]:
    """Every version that is the target, deployed or known to Temporal, by build ID; only those `among`."""
    live = deployments_of(spec, worker)
    versions = _known_to_temporal(worker)
    # names have no capitals, and fewer signs than build IDs; in doubt is only what Temporal does not know
    names = {
        versioned_deployment_name(spec.name, build_id): build_id
        for build_id, version in (versions.items() if live.keys() - versions.keys() else ())
        if build_id not in live and may_have_work(status_of(build_id, version, worker.temporal), version)
    }
    memories = {HistorySource.LEDGER: worker.ledger, HistorySource.GIT: worker.history.versions}
    sources = [source for source in spec.policy.history if source in memories]
    known = {spec.build_id, *live, *versions}
    for build_id in sorted(known if among is None else known & among):
        version = versions.get(build_id)
        source = next((source for source in sources if build_id in memories[source]), HistorySource.GIT)
        several = live.get(build_id, [])
        deployment = several[0] if several else None
        is_going = deployment is not None and deployment.terminating
        yield VersionFacts(
            spec=spec,
            worker=worker,
            now=now,
            build_id=build_id,
            status=status_of(build_id, version, worker.temporal),
            version=version,
            live=None if is_going else deployment,
            terminating=deployment if is_going else None,
            remembered=memories[source].get(build_id) if source in sources else None,
            remembered_by=source,
            twins=tuple(other for other in several[1:] if not other.terminating),
            namesake=names.get(deployment.name, "") if deployment else "",
        )


def _known_to_temporal(worker: WorkerWorld) -> dict[str, Version | None]:
    """What Temporal says of each version that it lists, by build ID; None of one that only routing names."""
    found: dict[str, Version | None] = dict.fromkeys(routed_build_ids(worker.temporal))
    listed_ones = worker.temporal.versions if worker.temporal else ()
    return found | {version.build_id: version for version in listed_ones}


def _planned(version: VersionFacts, reason: Reason, decision: Decision, not_created: str) -> VersionPlan:
    recorded, replaced = _from_history(version), None
    if version.is_target and decision.action in {VersionAction.CREATE, _UPDATE}:
        recorded = None
        if decision.action is VersionAction.CREATE and not_created:
            because = "it waits until another version is gone"
            decision, reason = Decision(_NONE, None, because), Reason.VERSION_CAP_REACHED
    elif decision.action is _KEEP and version.live:
        decision, reason, recorded, replaced = _kept(version, version.live, decision, reason)
    if decision.action not in {VersionAction.DROP, _NONE} and not version.is_target and not recorded:
        where = "in the sources of spec.history" if version.live else "anywhere"
        ends = version.worker.history.ends
        told = f": the history of Git does not tell, since {ends}" if ends else ""
        because = f"{decision.because}; no manifest of it is known {where}{told}"
        decision, reason = Decision(_NONE, None, because), Reason.MANIFEST_LOST
    spec, is_blocked = version.spec, reason is Reason.VERSION_CAP_REACHED
    is_dropped = decision.action is VersionAction.DROP
    attached = tuple(
        AttachedObject(resource.kind, attached_resource_name(spec.name, resource.name, version.build_id))
        for resource in spec.attached
    )
    return VersionPlan(
        build_id=version.build_id,
        status=version.status,
        deployment=version.live.name
        if version.live
        else versioned_deployment_name(spec.name, version.build_id),
        action=decision.action,
        because=decision.because,
        reason=reason,
        replicas=decision.replicas,
        protected=decision.protected and decision.action is not _NONE,
        live=version.live,
        recorded=recorded,
        is_doubtful=decision.action is _KEEP and version.is_doubtful,
        replaced_injection=replaced,
        attached=() if is_dropped or is_blocked else attached,
    )


def _kept(
    version: VersionFacts, live: LiveDeployment, decision: Decision, reason: Reason
) -> tuple[Decision, Reason, RecordedDeployment | None, frozenset[str] | None]:
    """A version that stays: its pods as they are, unless they were edited by hand or get a new connection."""
    applied, because, replaced = version.applied, decision.because, None
    if version.gets_new_connection:
        replaced = replaceable_injection(version.spec, live, applied)
        because += "; its connection changed" if replaced is not None else ""
    restart = "its pods restart when it is resumed" if live.paused else "its pods restart"
    pods = restart if live.replicas else "it has no pods"
    stays_edited = reason is Reason.RUNS_ANOTHER_BUILD or (
        version.lives_elsewhere and not version.was_moved_by_hand
    )
    if applied and applied.since.changed and not stays_edited:
        place = applied.since.changed[0]
        because += f"; its pod template was edited by hand ({place}): it is put right, and {pods}"
        update = Decision(_UPDATE, decision.replicas, because)
        return update, Reason.EDITED_BY_HAND, applied.restored(live), replaced
    if replaced is not None:
        update = Decision(_UPDATE, decision.replicas, f"{because}, and {pods}")
        return update, Reason.CONNECTION_CHANGED, live.recorded, replaced
    # where both mean the same, the words that were applied change nothing when they are applied again
    if applied and version.is_target and applied.is_described_by(version.spec):
        return decision, reason, None, None
    if version.remembered and applied and applied.is_remembered(version.remembered):
        history = version.spec.policy.history
        if HistorySource.CLUSTER not in history[: history.index(version.remembered_by)]:
            return decision, reason, version.remembered, None
    # what spec or Git vouch for is known, whatever was added to it since
    return decision, reason, live.recorded if applied else _from_history(version), None


def _from_history(version: VersionFacts) -> RecordedDeployment | None:
    """A version's manifest from the sources of the policy: of one that is deployed, what runs."""
    found = version.live or version.terminating
    if found and (version.is_target or HistorySource.CLUSTER in version.spec.policy.history):
        return found.recorded
    remembered = version.remembered
    tells_of_others = found and remembered and remembered.template_hash != found.recorded.template_hash
    return None if tells_of_others else remembered


def _why_not_created(spec: WorkerSpec, decided: Iterable[tuple[VersionFacts, Reason]]) -> str:
    """Why the target's Deployment is not created; empty: it is, or exists."""
    target = next(version for version, _ in decided if version.is_target)
    # one that Temporal may already send work to needs its pods, however many there are
    may_wait = not target.live and not may_have_work(target.status, target.version)
    holding = [
        version
        for version, reason in (decided if may_wait else ())
        if not version.is_target and reason is not Reason.NOT_NEEDED and holds_a_place(version)
    ]
    if len(holding) < spec.policy.max_versions:
        return ""
    still = f"{counted(len(holding), 'version')} still {'exists' if len(holding) == 1 else 'exist'}"
    return f"{still} and maxVersions is {spec.policy.max_versions}: {spec.build_id} waits until one is gone"
