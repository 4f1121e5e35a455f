"""What runs the rollouts of a render: one kind of Job for all workers, since a hook holds up the sync."""

from collections.abc import Sequence
from dataclasses import replace

from twgen.errors import InvalidInput
from twgen.model.operator import Caller
from twgen.model.plan import Plan
from twgen.model.policy import Driver
from twgen.model.spec import Strategy, WorkerSpec
from twgen.planning.sentences import listed

NEEDS_IMAGE = (
    "its rollout needs the image of a Job: the operator names it as rollout.image of an OperatorConfig. Where"
    " a person or CI rolls out, spec.driver of a RolloutPolicy says so"
)
"""Why a worker is not rendered that `lacking_image` has."""


def rollout_driver(specs: Sequence[WorkerSpec], *, in_argocd: bool) -> Driver:
    """Hook or Job, for every worker whose policy does not say None.

    Elsewhere than in Argo CD nothing runs a hook. Raises InvalidInput where policies contradict each other: a
    sync that has a hook waits for the Jobs of the others as well.
    """
    by_driver = {driver: [spec for spec in specs if spec.policy.driver is driver] for driver in Driver}
    hooks = by_driver[Driver.HOOK]
    if not hooks:
        undecided = by_driver[Driver.AUTO]
        waits = by_driver[Driver.JOB] or any(_takes_long(spec) or _is_autoscaled(spec) for spec in undecided)
        return Driver.HOOK if in_argocd and undecided and not waits else Driver.JOB
    slow = [spec for spec in by_driver[Driver.AUTO] if _takes_long(spec)] + by_driver[Driver.JOB]
    if slow:
        names = listed([spec.worker_deployment for spec in slow])
        raise InvalidInput(
            f"driver Hook of {hooks[0].worker_deployment} would hold up the sync until {names}"
            f" {'is' if len(slow) == 1 else 'are'} rolled out too: set spec.driver of all to Job"
        )
    return Driver.HOOK


def driver_of_render(specs: Sequence[WorkerSpec], caller: Caller, image: str, *, needs_image: bool) -> Driver:
    """As `rollout_driver`, where all is there that such a Job needs: its image, and as whom it acts.

    Without an image people or CI roll out, unless a policy names a driver, or `needs_image` says that there
    are none. Raises InvalidInput, too, for what is missing.
    """
    driven = _driven(specs)
    if lacking := lacking_image(specs, image) or (driven if needs_image and not image else []):
        raise InvalidInput(f"{lacking[0].worker_deployment}: {NEEDS_IMAGE}")
    if not image:
        return Driver.JOB
    if nameless := [spec for spec in driven if not caller.of(spec.policy)]:
        raise InvalidInput(
            f"{nameless[0].worker_deployment}: its rollout needs a manager identity: give --identity, or a"
            " RolloutPolicy has spec.identity"
        )
    return rollout_driver(driven, in_argocd=bool(caller.application))


def lacking_image(specs: Sequence[WorkerSpec], image: str) -> list[WorkerSpec]:
    """Those whose policy names a driver that is a Job, while nobody names its image: no render has them."""
    return [] if image else [spec for spec in _driven(specs) if spec.policy.driver is not Driver.AUTO]


def warned_of_image(plan: Plan, image: str) -> Plan:
    """The plan, with a warning for each worker that no render has for want of an image."""
    lacking = {spec.key for spec in lacking_image([worker.spec for worker in plan.workers], image)}
    if not lacking:
        return plan
    workers = []
    for worker in plan.workers:
        versions = worker.versions
        if worker.spec.key in lacking:
            versions = replace(versions, warnings=(*versions.warnings, NEEDS_IMAGE))
        workers.append(replace(worker, versions=versions))
    return replace(plan, workers=tuple(workers))


def tracks_jobs(specs: Sequence[WorkerSpec], image: str) -> bool:
    """Whether rollouts of a render in Argo CD are Jobs that a sync waits for, and not hooks.

    A policy that asks for Jobs tells so before the operator names an image. Raises as `rollout_driver` does.
    """
    driven = _driven(specs)
    if not image and not any(spec.policy.driver is Driver.JOB for spec in driven):
        return False
    return bool(driven) and rollout_driver(driven, in_argocd=True) is Driver.JOB


def drivers_with_objects(image: str) -> frozenset[Driver]:
    """The drivers of a policy by which a worker gets objects for its rollout."""
    return frozenset(Driver if image else {Driver.NONE})


def _driven(specs: Sequence[WorkerSpec]) -> list[WorkerSpec]:
    """Those whose rollout something in the cluster carries out."""
    return [spec for spec in specs if spec.policy.driver is not Driver.NONE]


def _takes_long(spec: WorkerSpec) -> bool:
    """It may not be rolled out within `holdFor`, and a sync should not wait for it."""
    needs_others = spec.rollout.strategy is Strategy.MANUAL or spec.rollout.gate is not None
    return needs_others or spec.policy.replay is not None or spec.rollout.pauses >= spec.policy.hold_for


def _is_autoscaled(spec: WorkerSpec) -> bool:
    """A sync that has a hook waits for its autoscaler too, which may be long without metrics."""
    return any(resource.autoscales for resource in spec.attached)
