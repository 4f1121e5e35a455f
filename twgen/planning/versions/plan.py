"""Plans the versions of one worker: applies the version table, then decides about manifests and pods."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from twgen.cluster.marks import changed_marks
from twgen.cluster.patches import Containers, changed_fields, patched_template, reaching
from twgen.cluster.pods import replaceable_injection
from twgen.cluster.server_defaults import compare
from twgen.errors import StateUnavailable
from twgen.model.plan import AttachedObject, LaterAction, VersionAction, VersionPlan, WorkerVersions
from twgen.model.policy import HistorySource, MissingTemplate
from twgen.model.problem import counted
from twgen.model.reasons import VersionReason as Reason
from twgen.model.rollout import Driver
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import LiveDeployment, RecordedDeployment, WorkerWorld
from twgen.planning.drivers import is_applied_by_hook
from twgen.planning.ownership import cluster_warnings, deleted_with_others
from twgen.planning.sentences import listed
from twgen.planning.version_status import may_have_work
from twgen.planning.versions.facts import (
    AttachedTo,
    VersionFacts,
    attached_to,
    autoscalers_of,
    objects_of,
    replicas_are_external,
    version_facts,
)
from twgen.planning.versions.table import Decision, decide
from twgen.planning.versions.warnings import version_warnings, versions_of_others, why_not_deployed
from twgen.versioning.names import versioned_deployment_name
from twgen.versioning.pod_templates import described_template

_KEEP, _UPDATE, _NONE = VersionAction.KEEP, VersionAction.UPDATE, VersionAction.NONE
_UNSEEN = {Reason.NOT_NEEDED, Reason.NEVER_ACTIVE_FOR_LONG, Reason.DRAINED_PAST_BOTH_DELAYS}
"""With these reasons, a version without a Deployment no longer counts against maxVersions."""
_HAS_PODS = {VersionAction.KEEP, VersionAction.CREATE, VersionAction.UPDATE}
"""With these actions, a version's Deployment must be protected from pruning."""
_NOT_OURS = {Reason.OF_OTHERS, Reason.SERVERLESS}
"""With these reasons, twgen does not run the version, and renders no objects for it."""


def plan_worker_versions(
    spec: WorkerSpec, world: WorkerWorld, now: datetime, identity: str
) -> WorkerVersions:
    """Plan every version of a worker. `identity` is written into the Deployments, or empty if unknown.

    Raises StateUnavailable if a version has no manifest and the policy requires that the render fails.
    """
    decided = [(version, decide(version)) for version in version_facts(spec, world, now)]
    not_created = _why_not_created(spec, decided)
    plans, warnings = [], [*cluster_warnings(spec, world), *deleted_with_others(world)]
    not_deployed = "".join(why_not_deployed(version) for version, _ in decided)
    for version, decision in decided:
        if decision.reason is Reason.NOT_NEEDED:
            continue
        plan = _planned(version, _with_patch(version, _with_manifest(version, decision, not_created)))
        stays = plan.live is not None and plan.action in {_KEEP, VersionAction.SCALE_DOWN}
        if stays and (changed := tuple(changed_marks(spec, plan, identity))):
            change = f"; applying changes its {listed(changed)}" if plan.action is _KEEP else ""
            plan = replace(plan, changed_marks=changed, because=f"{plan.because}{change}")
        plans.append(plan)
        warnings += () if plan.reason in _NOT_OURS else version_warnings(version, plan)
        if plan.reason is Reason.MANIFEST_LOST and spec.policy.missing_template is MissingTemplate.FAIL:
            ends = f" ({world.history.ends})" if world.history.ends else ""
            raise StateUnavailable(f"{spec.worker_deployment}: {plan.build_id}: {plan.because}{ends}")
    warnings += versions_of_others(plans)
    were_attached = None
    if world.deployments is not None:
        items = (item for live in world.deployments for item in (*live.attached, *live.added, *live.gone))
        were_attached = frozenset(item.partition("/")[0] for item in items)
    return WorkerVersions(spec, tuple(plans), tuple(warnings), not_created, not_deployed, were_attached)


def holds_a_place(version: VersionFacts | VersionPlan, reason: Reason) -> bool:
    """Whether a version other than the target counts against maxVersions.

    A drained version with zero replicas does not count. Neither does a version that is rendered only because
    no cluster was read.
    """
    if not version.live:
        return reason not in _UNSEEN
    return not (version.status is VersionStatus.DRAINED and version.live.replicas == 0)


def later_actions(spec: WorkerSpec, world: WorkerWorld, now: datetime) -> dict[str, LaterAction]:
    """The next action on each version that is due to time alone, by build ID."""
    by_build_id = {}
    for version in version_facts(spec, world, now):
        action = decide(version).action
        for at in sorted(moment for moment in version.moments() if moment >= now):
            later = replace(version, now=at + datetime.resolution)
            if (later_action := decide(later).action) is not action:
                by_build_id[version.build_id] = LaterAction(later_action, at)
                break
    return by_build_id


def _with_manifest(version: VersionFacts, decision: Decision, not_created: str) -> Decision:
    """Add the manifest to the decision about a version, or change the decision if there is no manifest."""
    if version.is_of_others or decision.reason in _NOT_OURS:
        return decision
    if version.is_target and decision.action in {VersionAction.CREATE, _UPDATE}:
        if decision.action is VersionAction.CREATE and not_created:
            because = "it waits until another version is removed"
            return Decision(Reason.VERSION_CAP_REACHED, _NONE, None, because)
        return decision
    if decision.action is _KEEP and version.live:
        decision = _with_pods_kept(version, version.live, decision)
    else:
        decision = decision._replace(recorded=_from_history(version))
    if decision.action is VersionAction.DROP or version.is_target or decision.recorded:
        return decision
    where = "in the sources of spec.history" if version.live else "anywhere"
    # a warning explains why Git does not contain the manifest
    because = f"{decision.because}; no manifest for it was found {where}"
    return Decision(Reason.MANIFEST_LOST, _NONE, None, because)


def _planned(version: VersionFacts, decision: Decision) -> VersionPlan:
    spec = version.spec
    is_without = decision.reason in {Reason.VERSION_CAP_REACHED, *_NOT_OURS}
    # without a Deployment, an attached object would have no owner and no record, and never be deleted
    has_none = version.world.deployments is not None and not version.live and decision.action is _NONE
    is_without = is_without or has_none or decision.action is VersionAction.DROP
    attached = AttachedTo(()) if is_without else attached_to(version)
    has_no_name = version.is_of_others or decision.reason in _NOT_OURS
    own_name = "" if has_no_name else versioned_deployment_name(spec.name, version.build_id)
    is_unproven = version.live is not None and not (version.live.template_is_as_applied or version.applied)
    return VersionPlan(
        build_id=version.build_id,
        status=version.status,
        deployment=version.live.name if version.live else own_name,
        action=decision.action,
        because=decision.because + _clauses_about(attached, version),
        reason=decision.reason,
        replicas=decision.replicas,
        protected=decision.action in _HAS_PODS,
        live=version.live,
        recorded=decision.recorded,
        is_doubtful=decision.action is _KEEP and is_unproven,
        replaced_injection=decision.replaced_injection,
        patch=decision.patch,
        attached=objects_of(version, attached.kept),
        leaving=objects_of(version, attached.leaving),
        replaced=attached.replaced,
        following=objects_of(version, attached.following),
        waiting=objects_of(version, attached.waiting),
        replicas_are_external=replicas_are_external(version),
    )


def _clauses_about(attached: AttachedTo, version: VersionFacts) -> str:
    """Clauses about attached objects that are removed and autoscalers that wait."""

    def named(items: Iterable[AttachedResource | AttachedObject]) -> str:
        return listed([f"{item.kind} {item.name}" for item in items])

    clause, is_hook = "", version.spec.policy.driver is Driver.HOOK
    late = [item.name for item in attached.leaving if is_hook and is_applied_by_hook(version.spec, item)]
    if attached.replaced:
        are = "is" if len(attached.replaced) == 1 else "are"
        change = f"replaced by {named(attached.following)}" if attached.following else "removed"
        clause = f"; {named(attached.replaced)} {are} {change}"
    elif late:
        clause = f"; the next sync that runs the hook removes {listed(late)}"
    if attached.waiting:
        wait = "waits" if len(attached.waiting) == 1 else "wait"
        clause += f"; {named(attached.waiting)} {wait} until Argo CD no longer sets the replicas"
    return clause


def _with_pods_kept(version: VersionFacts, live: LiveDeployment, decision: Decision) -> Decision:
    """Refine a Keep decision: it becomes an Update if the pods were edited or get a new connection."""
    applied, because, replaced = version.applied, decision.because, None
    if version.gets_new_connection:
        replaced = replaceable_injection(version.spec, live, applied)
        because += "; its connection changed" if replaced is not None else ""
    pods = _effect_on_pods(live)
    stays_elsewhere = version.lives_elsewhere and not version.was_moved_by_hand
    stays_edited = stays_elsewhere or decision.reason is Reason.RUNS_ANOTHER_BUILD
    edits = (*(applied.since.changed if applied else ()), *(live.patch.edits if live.patch else ()))
    if edits and not stays_edited:
        restored = applied.restored(live) if applied else _from_history(version)
        template = restored.manifest["spec"]["template"] if restored else None
        is_in_policy = template is not None and _is_as_patched(version, live, template)
        if is_in_policy and replaced is None:
            return decision._replace(recorded=restored)
        because += f"; its pod template was edited by hand ({edits[0]}): the edit is undone, and {pods}"
        if not version.is_target:
            because += "; to keep the edit, add it to patches of a RolloutPolicy"
        return Decision(Reason.EDITED_BY_HAND, _UPDATE, decision.replicas, because, restored, replaced)
    if replaced is not None:
        because, reason = f"{because}, and {pods}", Reason.CONNECTION_CHANGED
        return Decision(reason, _UPDATE, decision.replicas, because, live.recorded, replaced)
    # if the spec's or the remembered pod template is equivalent to the live one, rendering it changes nothing
    if applied and version.is_target and applied.fits(described_template(version.spec)):
        return decision
    remembered = version.remembered
    if remembered and applied and applied.fits(remembered.manifest["spec"]["template"]):
        history = version.spec.policy.history
        if HistorySource.CLUSTER not in history[: history.index(version.remembered_by)]:
            return decision._replace(recorded=remembered)
    # a live template that matches the spec or Git can be rendered, even if fields were added by hand
    return decision._replace(recorded=live.recorded if applied else _from_history(version))


def _from_history(version: VersionFacts) -> RecordedDeployment | None:
    """A version's manifest: the live Deployment if the policy allows it, or else a matching one in Git."""
    deployment = version.live or version.terminating
    is_source = HistorySource.CLUSTER in version.spec.policy.history
    if deployment and (version.is_target or is_source or version.is_loose):
        return deployment.recorded
    return version.remembered if version.remembers_what_runs else None


def _with_patch(version: VersionFacts, decision: Decision) -> Decision:
    """Add the policy's patches to the decision about a version.

    If the patches change a kept version's pods, the decision becomes an Update with the reason Patched.
    """
    applied = version.live.patch if version.live else None
    if not (version.patch or applied):
        return decision
    base = version.unpatched_template(decision.recorded)
    if base is None:
        return decision
    containers = _patched_containers(version, base)
    decision = decision._replace(patch=containers)
    if decision.action not in _HAS_PODS:
        return decision
    # the ledger contains the manifest without the patch. The patch is applied again, so that the pods do not
    # change when another version becomes the target
    replicas = version.patch.replicas if version.patch else None
    if replicas is not None and not autoscalers_of(version):
        because = f"{decision.because}; its policy's patches give it {counted(replicas, 'replica')}"
        decision = decision._replace(replicas=replicas, because=because)
    changed = changed_fields(base, reaching(applied.containers if applied else (), base), containers)
    if not version.live or not changed or _is_as_patched(version, version.live, base):
        patched = changed_fields(base, (), containers)
        clause = f"; patched: {listed(patched)}" if patched else ""
        return decision._replace(because=f"{decision.because}{clause}")
    change = f"its policy's patches change its {listed(changed)}"
    if not containers:
        change = f"the patch for its {listed(changed)} was removed: the original values are restored"
    decision = decision._replace(because=f"{decision.because}; {change}, and {_effect_on_pods(version.live)}")
    is_kept = decision.action is VersionAction.KEEP
    return decision._replace(reason=Reason.PATCHED, action=VersionAction.UPDATE) if is_kept else decision


def _effect_on_pods(live: LiveDeployment) -> str:
    """A clause about the effect of a new pod template on a Deployment's pods."""
    restart = "its pods restart when it is resumed" if live.paused else "its pods restart"
    return restart if live.replicas else "it has no pods"


def _is_as_patched(version: VersionFacts, live: LiveDeployment, base: Mapping[str, Any]) -> bool:
    """Whether a person edited the live pods, and the policy now contains an equivalent patch."""
    containers = _patched_containers(version, base)
    if not containers or live.patch:
        return False
    since = compare(patched_template(base, containers).template, live.manifest["spec"]["template"])
    return not since.changed and not since.added


def _patched_containers(version: VersionFacts, base: Mapping[str, Any]) -> Containers:
    return reaching(version.patch.containers if version.patch else (), base)


def _why_not_created(spec: WorkerSpec, decided: Sequence[tuple[VersionFacts, Decision]]) -> str:
    """Why the target's Deployment is not created, or empty if it is created or already exists."""
    target = next(version for version, _ in decided if version.is_target)
    # a target that may already have work needs pods, even if maxVersions is exceeded
    may_wait = not target.live and not may_have_work(target.status, target.version)
    # if the cluster was not read, a target that has polled may be deployed: omitting it would prune it
    cluster_was_read = target.world.deployments is not None
    may_wait = may_wait and (cluster_was_read or target.status is VersionStatus.NOT_REGISTERED)
    others = ((version, decision) for version, decision in decided if version is not target)
    number = sum(holds_a_place(version, decision.reason) for version, decision in others)
    if not may_wait or number < spec.policy.max_versions:
        return ""
    still = f"{counted(number, 'version')} still {'exists' if number == 1 else 'exist'}"
    return (
        f"{still} and maxVersions is {spec.policy.max_versions}: {spec.build_id} waits until one is removed"
    )
