"""What a person should know about a version besides what becomes of it."""

from collections.abc import Iterable, Iterator

from twgen.cluster.marks import waits_to_recreate
from twgen.cluster.pods import fits_its_hash
from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.policy import Driver, OwnerReferences
from twgen.model.problem import quoted
from twgen.model.reasons.versions import VersionReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.planning.sentences import counted, listed
from twgen.planning.version_status import IN_ROUTING, may_have_work
from twgen.planning.versions.facts import VersionFacts
from twgen.planning.versions.patching import patch_warnings
from twgen.versioning.injection import generation_of
from twgen.versioning.names import GONE, RESTARTED_AT

_RESTARTED = f"metadata.annotations['{RESTARTED_AT}']"
_LOST = "nothing can run its workflows until its manifest is back in twgen.lock"
_STAYS = "its Deployment is not rendered and stays as it is"
_LOOSE = "it is rendered as it runs, since nothing protects its Deployment from being pruned"
_ANOTHER_BUILD_ID = "change the image tag, or set spec.workerOptions.unsafeCustomBuildID"
_MOST_NAMED = 10
_APPLIED = {VersionAction.KEEP, VersionAction.UPDATE}
_UNREAD = "if it is there, its prune protection holds it"


def version_warnings(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    """The warnings about one version, each a sentence that names it."""
    name = version.build_id
    why = f" ({version.world.history.ends})" if version.world.history.ends else ""
    if version.lives_elsewhere:
        yield from _about_another_place(version, plan)
    if plan.reason is VersionReason.RUNS_ANOTHER_BUILD and version.live:
        yield (
            f"{name}: the pods of Deployment {version.live.name} run as"
            f" {version.live.other_build_id}: deploy that version with its own spec, then delete this"
            " Deployment by hand"
        )
    if plan.action is VersionAction.NONE and version.is_target:
        yield f"{name} is not rendered: maxVersions ({version.spec.policy.max_versions}) is reached"
    elif plan.action is VersionAction.NONE:
        fate = _UNREAD if version.world.deployments is None else _LOST
        yield f"{name} has no manifest to render{why}: {_STAYS if version.live else fate}"
    elif version.is_loose and plan.action in _APPLIED and not (version.is_target or version.applied):
        yield f"{name} has no manifest in the sources of spec.history{why}: {_LOOSE}"
    if version.status in IN_ROUTING and plan.replicas == 0:
        says = "its spec says" if version.spec.replicas == 0 else "its Deployment is at"
        yield f"{name} is {version.status.value.lower()} and {says} zero replicas"
    if version.is_target:
        yield from _about_target(version, plan)
    yield from patch_warnings(version, plan)
    for twin in version.twins:
        fate = "stays as it is" if twin.protected else "may be pruned, since nothing protects it"
        yield (
            f"{name} has two Deployments: {plan.deployment} is the version's own, and {twin.name} is"
            f" not rendered and {fate}; delete it when it is not wanted"
        )
    if version.live:
        yield from _about_deployment(version, plan, version.live)


def _about_another_place(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    name, place = version.build_id, version.place
    if plan.reason is VersionReason.LIVES_ELSEWHERE:
        yield (
            f"{name} stays as it is, whatever Temporal says of it here: take it away by hand when its"
            f" workflows at {place} are done"
        )
    elif plan.reason is VersionReason.CONNECTION_CHANGED:
        yield (
            f"{name} leaves {place} for the spec's address and"
            " Temporal namespace: its workflows there lose their worker"
        )
    elif plan.action is VersionAction.CREATE and plan.recorded:
        yield (
            f"{name} comes back with the pods that are recorded, which connect to {place}: its workflows here"
            " have no worker while its spec and its record tell of two places"
        )


def why_not_deployed(version: VersionFacts) -> str:
    """Why the pod template of its spec reaches no pod; empty: it does."""
    if not version.is_target or not _is_taken(version.spec, version.recorded):
        return ""
    told = (
        f"{version.build_id} is already the build ID of another pod template: this one will NOT be deployed"
    )
    return f"{told}; {_ANOTHER_BUILD_ID}"


def build_id_taken(spec: WorkerSpec, recorded: RecordedDeployment | None) -> str:
    """Why the spec must not be recorded under its build ID; empty: it may be."""
    if not _is_taken(spec, recorded):
        return ""
    told = f"{spec.build_id} is recorded with another pod template, and pods of that one may run"
    return f"{spec.worker_deployment}: {told}: {_ANOTHER_BUILD_ID}"


def _is_taken(spec: WorkerSpec, recorded: RecordedDeployment | None) -> bool:
    """Another pod template has the spec's build ID: of our own making there are 10,000 hash values."""
    is_another = recorded is not None and recorded.template_hash not in {"", spec.template.hash}
    return is_another and not spec.has_custom_build_id


def versions_of_others(versions: Iterable[VersionPlan]) -> Iterator[str]:
    """The one warning of a worker about its versions that twgen did not make."""
    names = [quoted(item.build_id) for item in versions if item.reason is VersionReason.OF_OTHERS]
    if names:
        more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        it, its, has = ("it", "its", "it has") if len(names) == 1 else ("them", "their", "they have")
        yield (
            f"nothing is rendered for {listed([*names[:_MOST_NAMED], *more])}: no label holds such a build"
            f" ID, so twgen did not make {it}; keep {its} workers until {has} drained"
        )


def doubts_about_pods(versions: Iterable[VersionPlan]) -> Iterator[str]:
    """Warnings of live pod templates that nothing recorded tells of, and that fit their hash no more."""
    for version in versions:
        if version.is_doubtful and version.live and not fits_its_hash(version.live):
            yield (
                f"{version.build_id}: its live pod template is not the one that its hash is of: it was"
                " edited by hand, or writes out what a server fills in; nothing recorded tells, so it"
                " stays as it is: record versions by `twgen lock`, and what is to stay in `patches` of a"
                " RolloutPolicy"
            )


def uncounted_versions(versions: Iterable[VersionPlan], temporal: WorkerDeployment | None) -> Iterator[str]:
    """Warnings of versions that go by a snapshot of when nobody had to count their workflows."""
    known = {version.build_id: version for version in (temporal.versions if temporal else ())}
    for version in versions:
        goes = version.action is VersionAction.SCALE_DOWN or (
            version.action is VersionAction.DROP and version.live is not None
        )
        if goes and version.build_id in known and known[version.build_id].open_workflows is None:
            yield (
                f"{version.build_id} goes though nobody has counted the workflows that are pinned to it: when"
                " the snapshot was taken that was not due; take a new one"
            )


def _about_target(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    name, spec = version.build_id, version.spec
    makes_another = "spec.workerOptions.unsafeCustomBuildID" if spec.has_custom_build_id else "the image tag"
    # with the cluster unread, only the ledger tells where the target was
    may_be_live = version.live is not None or version.world.deployments is None
    is_elsewhere = may_be_live and version.lives_elsewhere and not version.was_moved_by_hand
    if is_elsewhere and plan.action is VersionAction.KEEP:
        yield (
            f"{name} keeps the connection that it has: a changed address or Temporal namespace reaches new"
            " versions only; change the image tag as well, or undo by hand what was changed by hand"
        )
    elif is_elsewhere and plan.replaced_injection is None:
        yield (
            f"{name} leaves {version.place}, and its workflows there lose their worker:"
            f" change {makes_another} with the address or Temporal namespace"
        )
    if taken := why_not_deployed(version):
        yield taken
    if version.live and plan.action in _APPLIED and waits_to_recreate(spec, version.live):
        recreate = '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'
        yield (
            f"{name}: strategy Recreate waits: no server-side apply takes away a rollingUpdate that"
            " Kubernetes filled in, before it was applied once, or that another manager holds. Run `kubectl"
            f" patch deployment {version.live.name} -n {spec.namespace} --type=merge -p '{recreate}'`"
        )
    if plan.reason is VersionReason.TEMPLATE_CHANGED and (how_many := _open(version)):
        yield (
            f"{name} gets another pod template while {how_many}: code that changed incompatibly breaks them"
            " (nondeterminism); a new build ID leaves them on the old code"
        )
    generation = generation_of(version.applied.injected) if version.applied else None
    restarted = plan.reason is VersionReason.TEMPLATE_CHANGED
    if not restarted and generation not in {None, spec.policy.environment}:
        yield (
            f"{name} keeps its injected variables of generation {generation}: the policy's environment"
            f" {spec.policy.environment} waits for a new version"
        )


def _open(version: VersionFacts) -> str:
    """The open workflows that may run on the version, as a clause; empty: none do."""
    if version.open_workflows:
        verb = "is" if version.open_workflows == 1 else "are"
        return f"{counted(version.open_workflows, 'workflow')} {verb} open and pinned to it"
    is_counted = version.version is not None and version.version.open_workflows is not None
    # a worker of it must have polled before a workflow can run on it
    may_be_open = (
        may_have_work(version.status, version.version) and version.status is not VersionStatus.CREATED
    )
    return "workflows may be open on it" if may_be_open and not is_counted else ""


def _about_deployment(version: VersionFacts, plan: VersionPlan, live: LiveDeployment) -> Iterator[str]:
    name = version.build_id
    stays = plan.action is VersionAction.KEEP
    added = [path for path in version.applied.since.added if path != _RESTARTED] if version.applied else []
    if live.lost_labels:
        yield f"{name}: Deployment {live.name} lost its build-ID label by hand: applying puts it back"
    if stays and added:
        yield (
            f"{name}: {added[0]} was added to its Deployment by hand and is in no spec: applying leaves it;"
            " take it away by hand, or bring it into the spec with a new version"
        )
    if stays and version.gets_new_connection:
        yield (
            f"{name} keeps the connection that it has: which of its variables and volumes were injected"
            " cannot be told from the team's own; a new version gets the changed connection"
        )
    yield from _about_replaced(version, plan, live)


def _about_replaced(version: VersionFacts, plan: VersionPlan, live: LiveDeployment) -> Iterator[str]:
    """Objects that nothing deletes by itself, with the commands that do."""
    policy, namespace = version.spec.policy, version.spec.namespace
    by_hand = policy.driver is Driver.NONE or policy.owner_references is not OwnerReferences.RENDER
    if not plan.replaced or not (by_hand or policy.driver is Driver.AUTO):
        return
    goes = listed([f"{item.kind} {item.name}" for item in plan.replaced])
    waits = [f"{item.kind} {item.name}" for item in plan.following]
    if not waits and plan.replicas_are_external and version.spec.replicas is not None:
        waits = ["spec.replicas"]
    follows = f", and {listed(waits)} {'waits' if len(waits) == 1 else 'wait'} until then" if waits else ""
    gone = ",".join(f"{item.kind}/{item.name}" for item in plan.replaced)
    commands = [f"kubectl delete {item.kind.lower()} -n {namespace} {item.name}" for item in plan.replaced]
    commands.append(f"kubectl annotate deployment -n {namespace} {live.name} --overwrite {GONE}={gone}")
    run = f"run `{' && '.join(commands)}` and apply a new render"
    have = (
        "has no template any more and is" if len(plan.replaced) == 1 else "have no template any more and are"
    )
    who = run if by_hand else f"the Job of its rollout does so; without one, {run}"
    yield f"{version.build_id}: {goes} {have} to be deleted{follows}: {who}"
