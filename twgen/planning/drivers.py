"""What runs the rollouts of a render: one kind of Job for all workers, since a hook holds up the sync."""

from collections.abc import Sequence
from datetime import timedelta

from twgen.errors import InvalidInput
from twgen.model.spec import Driver, Strategy, WorkerSpec
from twgen.planning.sentences import listed


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


def longest_rollout(spec: WorkerSpec) -> timedelta:
    """How long all pauses of a rollout take."""
    return sum((step.pause for step in spec.rollout.steps), timedelta())


def _takes_long(spec: WorkerSpec) -> bool:
    """It may not be rolled out within `holdFor`, and a sync should not wait for it."""
    needs_others = spec.rollout.strategy is Strategy.MANUAL or spec.rollout.gate is not None
    return needs_others or longest_rollout(spec) >= spec.policy.hold_for


def _is_autoscaled(spec: WorkerSpec) -> bool:
    """A sync that has a hook waits for its autoscaler too, which may be long without metrics."""
    return any(resource.autoscales for resource in spec.attached)
