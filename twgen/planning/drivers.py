"""The driver of the rollouts of a render: one kind of Job for all workers, since a hook delays the sync."""

from collections.abc import Sequence
from dataclasses import replace

from twgen.errors import InvalidInput
from twgen.model.operator import Caller
from twgen.model.plan import Plan, WorkerVersions
from twgen.model.policy import Driver, OwnerReferences
from twgen.model.spec import AttachedResource, Strategy, WorkerSpec
from twgen.planning.sentences import listed

NEEDS_IMAGE = (
    "its rollout is a Job that needs an image: set rollout.image in an OperatorConfig. If a person or CI"
    " rolls it out instead, say so in spec.driver of a RolloutPolicy"
)
"""Why Argo CD does not render a worker whose rollout is a Job."""
LEFT_OUT = f"a render omits its rollout objects, and fails in Argo CD: {NEEDS_IMAGE}"
"""The warning about a worker that `lacking_image` returns."""


def rollout_driver(specs: Sequence[WorkerSpec], *, in_argocd: bool) -> Driver:
    """Hook or Job, for every worker whose policy does not set the driver None.

    Only Argo CD runs hooks. Raises InvalidInput if policies contradict each other: a sync with a hook
    also waits for the Jobs of the other workers.
    """
    by_driver = {driver: [spec for spec in specs if spec.policy.driver is driver] for driver in Driver}
    hooks = by_driver[Driver.HOOK]
    if not hooks:
        undecided = by_driver[Driver.AUTO]
        waits = by_driver[Driver.JOB] or any(_takes_long(spec) or _needs_syncs(spec) for spec in undecided)
        return Driver.HOOK if in_argocd and undecided and not waits else Driver.JOB
    slow = [spec for spec in by_driver[Driver.AUTO] if _takes_long(spec)] + by_driver[Driver.JOB]
    if slow:
        names = listed([spec.worker_deployment for spec in slow])
        raise InvalidInput(
            f"driver Hook of {hooks[0].worker_deployment} would delay the sync until {names}"
            f" {'is' if len(slow) == 1 else 'are'} rolled out too: set spec.driver to Job for all of them"
        )
    return Driver.HOOK


def driver_of_render(specs: Sequence[WorkerSpec], caller: Caller, image: str, *, needs_image: bool) -> Driver:
    """As `rollout_driver`, if the Job has its image, and an identity to act as.

    Without an image, people or CI do the rollouts; if `needs_image` excludes that, it raises InvalidInput. It
    also raises without an identity.
    """
    driven = _driven(specs)
    if driven and needs_image and not image:
        raise InvalidInput(f"{driven[0].worker_deployment}: {NEEDS_IMAGE}")
    if not image:
        return Driver.JOB
    if nameless := [spec for spec in driven if not caller.of(spec.policy)]:
        raise InvalidInput(
            f"{nameless[0].worker_deployment}: its rollout needs a manager identity: use --identity, or"
            " set spec.identity of a RolloutPolicy"
        )
    return rollout_driver(driven, in_argocd=bool(caller.application))


def lacking_image(specs: Sequence[WorkerSpec], image: str) -> list[WorkerSpec]:
    """The workers whose policy names a driver that runs as a Job, if there is no image for it."""
    return [] if image else [spec for spec in _driven(specs) if spec.policy.driver is not Driver.AUTO]


def warned_of_image(plan: Plan, image: str) -> Plan:
    """The plan, with a warning for each worker whose rollout objects a render leaves out."""
    warned = versions_warned_of_image([worker.versions for worker in plan.workers], image)
    paired = zip(plan.workers, warned, strict=True)
    return replace(plan, workers=tuple(replace(worker, versions=versions) for worker, versions in paired))


def versions_warned_of_image(workers: Sequence[WorkerVersions], image: str) -> tuple[WorkerVersions, ...]:
    """The versions of workers, with the same warning."""
    lacking = {spec.key for spec in lacking_image([worker.spec for worker in workers], image)}
    return tuple(
        replace(worker, warnings=(*worker.warnings, LEFT_OUT)) if worker.spec.key in lacking else worker
        for worker in workers
    )


def tracks_jobs(specs: Sequence[WorkerSpec], image: str) -> bool:
    """Whether rollouts of a render in Argo CD are Jobs that a sync waits for, and not hooks.

    A policy may ask for Jobs before the operator names an image. Raises as `rollout_driver` does.
    """
    driven = _driven(specs)
    if not image and not any(spec.policy.driver is Driver.JOB for spec in driven):
        return False
    return bool(driven) and rollout_driver(driven, in_argocd=True) is Driver.JOB


def drivers_with_objects(image: str) -> frozenset[Driver]:
    """The drivers with which a worker gets objects for its rollout."""
    return frozenset(Driver if image else {Driver.NONE})


def _driven(specs: Sequence[WorkerSpec]) -> list[WorkerSpec]:
    """The workers whose rollout runs in the cluster."""
    return [spec for spec in specs if spec.policy.driver is not Driver.NONE]


def _takes_long(spec: WorkerSpec) -> bool:
    """It might not be rolled out within `holdFor`, and a sync should not wait for it."""
    needs_others = spec.rollout.strategy is Strategy.MANUAL or spec.rollout.gate is not None
    return needs_others or spec.policy.replay is not None or spec.rollout.pauses >= spec.policy.hold_for


def is_applied_by_hook(spec: WorkerSpec, resource: AttachedResource) -> bool:
    """If rollouts run in hooks, the hook's Job applies this object: a sync would wait for its metrics.

    Such an object is deleted only together with its owner.
    """
    return resource.autoscales and spec.policy.owner_references is OwnerReferences.RENDER


def _needs_syncs(spec: WorkerSpec) -> bool:
    """One of its autoscalers must change as time passes, and self-heal runs no hook that could do so."""
    return any(
        resource.when or resource.scales_from_zero or not is_applied_by_hook(spec, resource)
        for resource in spec.attached
        if resource.autoscales
    )
