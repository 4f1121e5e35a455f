"""The effects of a policy's patches on a version: on its containers, its replicas, and its reason."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twgen.cluster.patches import Containers, changed_fields, container_names, patched_template, reaching
from twgen.cluster.server_defaults import compare
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.problem import counted, did_you_mean, quoted
from twgen.model.reasons.versions import VersionReason as Reason
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.planning.sentences import listed
from twgen.planning.versions.attached import autoscalers_of
from twgen.planning.versions.facts import VersionFacts
from twgen.planning.versions.table import Decision

_HAS_PODS = {VersionAction.KEEP, VersionAction.CREATE, VersionAction.UPDATE}


def with_patch(version: VersionFacts, decision: Decision) -> Decision:
    """The decision about a version with the patches of its policy, once its manifest is known.

    If its pods change, that is a rolling update with its own reason.
    """
    applied = version.live.patch if version.live else None
    if not (version.patch or applied):
        return decision
    base = _unpatched_template(version.spec, version.build_id, decision.recorded)
    if base is None:
        return decision
    containers = _patched_containers(version, base)
    decision = decision._replace(patch=containers)
    if decision.action not in _HAS_PODS:
        return decision
    # a target is patched on top of its spec, later of its ledger entry: when it is replaced, its pods stay
    replicas = version.patch.replicas if version.patch else None
    if replicas is not None and not autoscalers_of(version):
        because = f"{decision.because}; patches of its policy give it {counted(replicas, 'replica')}"
        decision = decision._replace(replicas=replicas, because=because)
    changed = changed_fields(base, reaching(applied.containers if applied else (), base), containers)
    if not version.live or not changed or is_as_patched(version, version.live, base):
        patched = changed_fields(base, (), containers)
        return decision._replace(
            because=decision.because + (f"; patched: {listed(patched)}" if patched else "")
        )
    change = f"patches of its policy change its {listed(changed)}"
    if not containers:
        change = f"the patch of its {listed(changed)} was removed: the deployed values come back"
    decision = decision._replace(because=f"{decision.because}; {change}, and {effect_on_pods(version.live)}")
    is_kept = decision.action is VersionAction.KEEP
    return decision._replace(reason=Reason.PATCHED, action=VersionAction.UPDATE) if is_kept else decision


def effect_on_pods(live: LiveDeployment) -> str:
    """What a change of its pod template does to the pods of a Deployment."""
    restart = "its pods restart when it is resumed" if live.paused else "its pods restart"
    return restart if live.replicas else "it has no pods"


def is_as_patched(version: VersionFacts, live: LiveDeployment, base: Mapping[str, Any]) -> bool:
    """A person edited its live pods, and the patch of the version makes the same of this pod template."""
    containers = _patched_containers(version, base)
    if not containers or live.patch:
        return False
    since = compare(patched_template(base, containers).template, live.manifest["spec"]["template"])
    return not since.changed and not since.added


def patch_warnings(version: VersionFacts, plan: VersionPlan) -> Iterator[str]:
    """The warnings about parts of a version's patch that have no effect."""
    base = _unpatched_template(version.spec, version.build_id, plan.recorded) if version.patch else None
    if not version.patch or base is None:
        return
    names = container_names(base)
    for container in version.patch.containers:
        if (name := container["name"]) not in names:
            yield (
                f"{version.build_id}: patches of its RolloutPolicy name container {quoted(name)}, but it only"
                f" has {listed(names)}{did_you_mean(name, names)}"
            )
    if version.patch.replicas and (scalers := autoscalers_of(version)):
        yield (
            f"{version.build_id}: replicas in patches of its RolloutPolicy have no effect: attached template"
            f" {scalers[0].name} sets the replicas"
        )


def stray_patches(workers: Sequence[WorkerVersions]) -> Iterator[str]:
    """Warnings about patches for versions that no worker of their policy has, or more than one."""
    by_policy: dict[tuple[str, str], list[WorkerVersions]] = {}
    for worker in workers:
        if worker.spec.policy.patches:
            by_policy.setdefault((worker.spec.namespace, worker.spec.policy.worker), []).append(worker)
    for (namespace, name), of_policy in by_policy.items():
        subject = f"{namespace}/{name}" if name else f"workers of {namespace}"
        existing = {
            worker.spec.worker_deployment: {
                version.build_id for version in worker.versions if version.action is not VersionAction.DROP
            }
            for worker in of_policy
        }
        every_build_id = set().union(*existing.values())
        for patch in of_policy[0].spec.policy.patches:
            owners = [worker for worker, build_ids in existing.items() if patch.build_id in build_ids]
            if not owners:
                hint = did_you_mean(patch.build_id, every_build_id)
                yield (
                    f"{subject}: version {patch.build_id} does not exist or no longer exists: remove it from"
                    f" patches of the RolloutPolicy{hint}"
                )
            elif len(owners) > 1:
                yield (
                    f"{subject}: the RolloutPolicy patches {patch.build_id}, a version of {listed(owners)}:"
                    " give each worker its own policy, unless the patch is for all of them"
                )


def _patched_containers(version: VersionFacts, base: Mapping[str, Any]) -> Containers:
    return reaching(version.patch.containers if version.patch else (), base)


def _unpatched_template(
    spec: WorkerSpec, build_id: str, recorded: RecordedDeployment | None
) -> Mapping[str, Any] | None:
    """The pod template before the patch; None: unknown."""
    if recorded:
        template: Mapping[str, Any] = recorded.manifest["spec"]["template"]
        return template
    return spec.template.content if build_id == spec.build_id else None
