"""The warnings about versions in a plan."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from twgen.cluster.marks import waits_to_recreate
from twgen.cluster.patches import container_names
from twgen.cluster.pods import fits_its_hash
from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.problem import counted, did_you_mean, quoted
from twgen.model.reasons import VersionReason
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.planning.sentences import listed
from twgen.planning.version_status import IN_ROUTING, may_have_work
from twgen.planning.versions.facts import VersionFacts, autoscalers_of
from twgen.versioning.injection import generation_of
from twgen.versioning.names import ADDED, DEPLOYMENT_API, GONE, RESTARTED_AT
from twgen.versioning.pod_references import name_without_hash, referenced_objects
from twgen.versioning.pod_templates import holders_of, holders_wanted

_RESTARTED = f"metadata.annotations['{RESTARTED_AT}']"
_LOST = "no worker can run its workflows until its manifest is in twgen.lock again"
_STAYS = "its Deployment is not rendered, and stays as it is"
_LOOSE = "its live Deployment is rendered unchanged, because it is not protected from pruning"
_ANOTHER_BUILD_ID = "change the image tag, or set spec.workerOptions.unsafeCustomBuildID"
_MOST_NAMED = 10
_APPLIED = {VersionAction.KEEP, VersionAction.UPDATE}
_UNREAD = "if its Deployment exists, prune protection keeps it"


def version_warnings(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    """The warnings about one version, each of which begins with the build ID."""
    name = version.build_id
    why = f" ({version.world.history.ends})" if version.world.history.ends else ""
    if version.lives_elsewhere:
        yield from _about_another_place(version, plan)
    if plan.reason is VersionReason.RUNS_ANOTHER_BUILD and version.live:
        yield (
            f"{name}: the pods of Deployment {version.live.name} run as"
            f" {version.live.other_build_id}. Deploy that version with its own spec, then delete this"
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
        source = "its spec says" if version.spec.replicas == 0 else "its Deployment has"
        yield f"{name} is {version.status.value.lower()}, but {source} zero replicas"
    if version.is_target:
        yield from _about_target(version, plan)
    yield from _about_patch(version, plan)
    for twin in version.twins:
        fate = "stays as it is" if twin.protected else "may be pruned, because nothing protects it"
        yield (
            f"{name} has two Deployments: twgen renders {plan.deployment}, but not {twin.name}, which"
            f" {fate}. Delete {twin.name} if you do not need it"
        )
    if version.live:
        yield from _about_deployment(version, plan, version.live)


def _about_patch(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    """The warnings about parts of a patch that have no effect."""
    base = version.unpatched_template(plan.recorded) if version.patch else None
    if not version.patch or base is None:
        return
    names = container_names(base)
    for container in version.patch.containers:
        if (name := container["name"]) not in names:
            yield (
                f"{version.build_id}: patches of its RolloutPolicy name container {quoted(name)}, but its"
                f" pods only have {listed(names)}{did_you_mean(name, names)}"
            )
    if version.patch.replicas and (scalers := autoscalers_of(version)):
        yield (
            f"{version.build_id}: replicas in patches of its RolloutPolicy have no effect, because the"
            f" autoscaler {scalers[0].name} sets the replicas"
        )


def _about_another_place(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    name, place = version.build_id, version.place
    if plan.reason is VersionReason.LIVES_ELSEWHERE:
        yield (
            f"{name} stays as it is, whatever Temporal reports about it here: delete it by hand once its"
            f" workflows at {place} have ended"
        )
    elif plan.reason is VersionReason.CONNECTION_CHANGED:
        yield (
            f"{name} moves to the spec's address and Temporal namespace: no worker will run its workflows at"
            f" {place}"
        )
    elif plan.action is VersionAction.CREATE and plan.recorded:
        yield (
            f"{name} is recreated from its record, whose pods connect to {place}: no worker runs its"
            " workflows here as long as its spec and its record have different connections"
        )


def why_not_deployed(version: VersionFacts) -> str:
    """Why the pod template of the spec is not deployed, or empty if it is."""
    if not version.is_target or not _is_taken(version.spec, version.recorded):
        return ""
    return (
        f"{version.build_id} is already the build ID of another pod template: this one will NOT be deployed;"
        f" {_ANOTHER_BUILD_ID}"
    )


def build_id_taken(spec: WorkerSpec, recorded: RecordedDeployment | None) -> str:
    """Why the spec must not be recorded under its build ID, or empty if it can be recorded."""
    if not _is_taken(spec, recorded):
        return ""
    return (
        f"{spec.worker_deployment}: {spec.build_id} is recorded with another pod template, and pods with that"
        f" template may be running: {_ANOTHER_BUILD_ID}"
    )


def _is_taken(spec: WorkerSpec, recorded: RecordedDeployment | None) -> bool:
    """Whether another pod template has the spec's build ID, since only 10,000 different hashes exist."""
    is_another = recorded is not None and recorded.template_hash not in {"", spec.template.hash}
    return is_another and not spec.has_custom_build_id


def versions_of_others(versions: Iterable[VersionPlan]) -> Iterator[str]:
    """A warning that names all of a worker's versions that twgen did not create."""
    names = [quoted(item.build_id) for item in versions if item.reason is VersionReason.OF_OTHERS]
    if names:
        it, its, has = ("it", "its", "it has") if len(names) == 1 else ("them", "their", "they have")
        yield (
            f"twgen renders nothing for {listed(names, _MOST_NAMED)}: such a build ID is not a valid"
            f" label value, so twgen did not create {it}. Keep {its} workers running until {has} drained"
        )


def warnings_about_pods(versions: Iterable[VersionPlan]) -> Iterator[str]:
    """Warnings about live pod templates that are not recorded and do not match their recorded hash."""
    for version in versions:
        if version.is_doubtful and version.live and not fits_its_hash(version.live):
            yield (
                f"{version.build_id}: its live pod template does not match its hash: it was edited by hand,"
                " or a server added defaults. Without a record twgen cannot distinguish these, so the"
                " template stays as it is. Record versions with `twgen lock`, and keep edits in `patches` of"
                " a RolloutPolicy"
            )


def unused_patches(workers: Sequence[WorkerVersions]) -> Iterator[str]:
    """Warnings about patches for a version that none or several of the policy's workers have."""
    by_policy: dict[tuple[str, str], list[WorkerVersions]] = {}
    for worker in workers:
        if worker.spec.policy.patches:
            by_policy.setdefault((worker.spec.namespace, worker.spec.policy.worker), []).append(worker)
    for (namespace, name), of_policy in by_policy.items():
        subject = f"{namespace}/{name}" if name else f"workers of {namespace}"
        owners_by_build_id: dict[str, list[str]] = {}
        for worker in of_policy:
            for version in worker.versions:
                if version.action is not VersionAction.DROP:
                    owners_by_build_id.setdefault(version.build_id, []).append(worker.spec.worker_deployment)
        for patch in of_policy[0].spec.policy.patches:
            owners = owners_by_build_id.get(patch.build_id, [])
            if not owners:
                hint = did_you_mean(patch.build_id, owners_by_build_id)
                yield (
                    f"{subject}: version {patch.build_id} does not exist, or no longer exists. Remove it from"
                    f" patches of the RolloutPolicy{hint}"
                )
            elif len(owners) > 1:
                yield (
                    f"{subject}: the RolloutPolicy patches {patch.build_id}, a version of {listed(owners)}:"
                    " give each worker its own policy, unless the patch is for all of them"
                )


def uncounted_versions(versions: Iterable[VersionPlan], temporal: WorkerDeployment | None) -> Iterator[str]:
    """Warnings about versions that scale to zero although the snapshot has no count of their workflows."""
    in_temporal = {version.build_id: version for version in (temporal.versions if temporal else ())}
    for version in versions:
        is_dropped = version.action is VersionAction.DROP and version.live is not None
        goes = is_dropped or version.action is VersionAction.SCALE_DOWN
        if goes and version.build_id in in_temporal and in_temporal[version.build_id].open_workflows is None:
            yield (
                f"{version.build_id} scales to zero, but its pinned workflows were not counted: when the"
                " snapshot was taken, this was not needed yet. Take a new snapshot"
            )


def _about_target(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    name, spec = version.build_id, version.spec
    makes_another = "spec.workerOptions.unsafeCustomBuildID" if spec.has_custom_build_id else "the image tag"
    # if the cluster was not read, only the ledger contains the target's earlier connection
    may_be_live = version.live is not None or version.world.deployments is None
    is_elsewhere = may_be_live and version.lives_elsewhere and not version.was_moved_by_hand
    if is_elsewhere and plan.action is VersionAction.KEEP:
        yield (
            f"{name} keeps its connection: a changed address or Temporal namespace applies only to new"
            " versions. Change the image tag too, or undo the manual change of its Deployment"
        )
    elif is_elsewhere and plan.replaced_injection is None:
        yield (
            f"{name} moves away from {version.place}, so no worker will run its workflows there. Change"
            f" {makes_another} together with the address or Temporal namespace"
        )
    if not_deployed := why_not_deployed(version):
        yield not_deployed
    if version.live and plan.action in _APPLIED and waits_to_recreate(spec, version.live):
        recreate = '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'
        yield (
            f"{name}: strategy Recreate cannot be applied yet, because server-side apply does not remove a"
            " rollingUpdate that Kubernetes set by default or that another field manager owns. Run `kubectl"
            f" patch deployment {version.live.name} -n {spec.namespace} --type=merge -p '{recreate}'`"
        )
    if plan.reason is VersionReason.TEMPLATE_CHANGED and (how_many := _open(version)):
        yield (
            f"{name} gets another pod template while {how_many}: incompatible code breaks such workflows"
            " (nondeterminism). With a new build ID they stay on the old code"
        )
    generation = generation_of(version.applied.injected) if version.applied else None
    restarted = plan.reason is VersionReason.TEMPLATE_CHANGED
    if not restarted and generation not in {None, spec.policy.environment}:
        yield (
            f"{name} keeps the injected variables of environment {generation}: its policy's environment"
            f" {spec.policy.environment} applies only to a new version"
        )
    if not restarted and version.applied and holders_of(version.applied.template) != holders_wanted(spec):
        yield (
            f"{name} keeps its credentials in the same containers: its policy's credentialContainers apply"
            " only to a new version"
        )


def _open(version: VersionFacts) -> str:
    """A clause about the open workflows that may run on the version, or empty if there are none."""
    if version.open_workflows:
        verb = "is" if version.open_workflows == 1 else "are"
        return f"{counted(version.open_workflows, 'workflow')} {verb} open and pinned to it"
    is_counted = version.version is not None and version.version.open_workflows is not None
    # no workflow can run on a version before one of its workers has polled
    if is_counted or version.status is VersionStatus.CREATED:
        return ""
    return "workflows may be open on it" if may_have_work(version.status, version.version) else ""


def _about_deployment(version: VersionFacts, plan: VersionPlan, live: LiveDeployment) -> Iterator[str]:
    """Warnings about manual changes, and about objects to replace by hand, with the commands to run."""
    name, spec, stays = version.build_id, version.spec, plan.action is VersionAction.KEEP
    added = [path for path in version.applied.since.added if path != _RESTARTED] if version.applied else []
    if live.lost_labels:
        yield (
            f"{name}: the build-ID label of Deployment {live.name} was removed by hand: applying restores it"
        )
    if stays and added:
        yield (
            f"{name}: {added[0]} was added to its Deployment by hand, and applying does not remove it. Remove"
            " it by hand, or add it to the spec with a new version"
        )
    if stays and version.gets_new_connection:
        yield (
            f"{name} keeps its connection, because twgen cannot distinguish its injected variables and"
            " volumes from the team's own. A new version gets the changed connection"
        )
    place, driver = f"-n {spec.namespace}", spec.policy.driver
    by_job = "the rollout's Job does this; without a Job, "
    has_no_job = driver is Driver.NONE or spec.policy.owner_references is not OwnerReferences.RENDER
    if plan.replaced and (has_no_job or driver is Driver.AUTO):
        waits = [f"{item.kind} {item.name}" for item in plan.following]
        if not waits and plan.replicas_are_external and spec.replicas is not None:
            waits = ["spec.replicas"]
        wait = "waits" if len(waits) == 1 else "wait"
        follows = f", and {listed(waits)} {wait} until then" if waits else ""
        commands = [
            *(f"kubectl delete {item.kind.lower()} {place} {item.name}" for item in plan.replaced),
            f"kubectl annotate deployment {place} {live.name} --overwrite"
            f" {GONE}={','.join(map(str, plan.replaced))}" + (f" {ADDED}-" if live.added else ""),
        ]
        objects = listed([f"{item.kind} {item.name}" for item in plan.replaced])
        verb = "has" if len(plan.replaced) == 1 else "have"
        yield (
            f"{name}: {objects} no longer {verb} a template and must be deleted{follows}:"
            f" {'' if has_no_job else by_job}run `{' && '.join(commands)}` and apply a new render"
        )
    if plan.waiting and driver in {Driver.NONE, Driver.AUTO}:
        names = listed([f"{item.kind} {item.name}" for item in plan.waiting])
        # no render adds this field manager, only a Job or a person
        manifest = (
            f'{{"apiVersion": "{DEPLOYMENT_API}", "kind": "Deployment", "metadata": {{"name": "{live.name}",'
            f' "namespace": "{spec.namespace}"}}, "spec": {{"replicas": {live.replicas}}}}}'
        )
        yield (
            f"{name}: {names} {'waits' if len(plan.waiting) == 1 else 'wait'} until a field manager other"
            f" than Argo CD owns the replicas of Deployment {live.name}:"
            f" {'' if driver is Driver.NONE else by_job}run `echo '{manifest}' | kubectl apply --server-side"
            " --field-manager=twgen -f -` and apply a new render"
        )


class ObjectName(NamedTuple):
    """The kind, namespace and name of a ConfigMap or Secret."""

    kind: str
    namespace: str
    name: str


def with_lost_references(
    workers: Iterable[WorkerVersions], rendered: Collection[ObjectName]
) -> tuple[WorkerVersions, ...]:
    """Add a warning for each version that uses an object whose name has a different hash in this render.

    `rendered` contains the objects that Argo CD prunes once they are no longer rendered.
    """
    plain = ((item._replace(name=name_without_hash(item.name)), item.name) for item in rendered)
    new_names = {item: name for item, name in plain if item.name}
    if not new_names:
        return tuple(workers)
    return tuple(worker.warned(_lost_references(worker, rendered, new_names)) for worker in workers)


def _lost_references(
    worker: WorkerVersions, rendered: Collection[ObjectName], new_names: Mapping[ObjectName, str]
) -> Iterator[str]:
    for version in worker.versions:
        manifest = version.recorded.manifest if version.recorded and version.is_rendered else {}
        pod = value_at(manifest, "spec", "template", "spec") or {}
        for kind, name in dict.fromkeys(referenced_objects(pod)):
            referenced = ObjectName(kind, worker.spec.namespace, name)
            replacement = new_names.get(referenced._replace(name=name_without_hash(name)), "")
            if replacement and referenced not in rendered:
                # twgen does not know the old object's content and cannot render it, so it only warns
                yield (
                    f"{version.build_id} uses {kind} {name}, but the render has {replacement} instead. Once"
                    f" {name} is pruned, pods of this version can no longer start. Restore it if it is"
                    " already gone. To keep such objects, generate them with the annotation"
                    " argocd.argoproj.io/sync-options: Prune=false"
                )
