"""Chooses the driver of a render's rollouts, and the tick that handles a worker if there are several ticks.

Either all Jobs of a render are hooks or none are, since a hook delays the whole sync.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from twgen.errors import InvalidInput
from twgen.model.operator import Caller, Operator
from twgen.model.plan import Plan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.problem import Problem, Rule
from twgen.model.rollout import Driver, LastSync
from twgen.model.spec import AttachedResource, Strategy, WorkerSpec
from twgen.planning.sentences import listed, spoken

DRIVER = Rule("unusable-driver", "The operator's configuration does not support the chosen driver.")
NEEDS_IMAGE = (
    "its rollout is a Job that needs an image: set rollout.image in an OperatorConfig. If a person or CI"
    " rolls it out instead, set `spec.driver: None` in a RolloutPolicy"
)
"""Why a worker whose rollout is a Job cannot be rendered in Argo CD."""
NEEDS_TICK = (
    "its driver is Tick, but `twgen tick` carries out no rollouts: set tick.rollouts in the OperatorConfig,"
    " or set spec.driver of a RolloutPolicy to Job"
)
"""Why a worker that tick should roll out cannot be rendered in Argo CD."""


def rollout_driver(specs: Sequence[WorkerSpec]) -> Driver:
    """Hook if a policy requests a hook, otherwise Job. Workers without a rollout Job are ignored.

    A hook is never the default: if Argo CD (from 3.5 on) sees a commit during a sync, it may apply the commit
    by self-heal, which runs no hooks. Raises InvalidInput if policies contradict each other: a sync with a
    hook also waits for the Jobs of the other workers.
    """
    hooks = [spec for spec in specs if spec.policy.driver is Driver.HOOK]
    if not hooks:
        return Driver.JOB
    if slow := [spec for spec in specs if _why_no_hook(spec)]:
        names = listed([spec.worker_deployment for spec in slow])
        raise InvalidInput(
            f"driver Hook of {hooks[0].worker_deployment} would delay the sync until {names}"
            f" {'is' if len(slow) == 1 else 'are'} rolled out too: set spec.driver to Job for all workers"
        )
    return Driver.HOOK


def with_hooks(specs: Sequence[WorkerSpec]) -> tuple[tuple[WorkerSpec, ...], tuple[Problem, ...]]:
    """Apply the operator's choice of driver Hook to the workers whose policy says Auto.

    If the rollout of one worker takes too long for a hook, all workers get tracked Jobs, with one warning.
    """
    slow = [(spec, why) for spec in specs if (why := _why_no_hook(spec))]
    if slow:
        first, why = slow[0]
        message = (
            f"{why}, and a sync should not wait for that: rollout.driver Hook of the OperatorConfig has no"
            " effect here. The rollouts of all these workers are tracked Jobs"
        )
        drivers = {spec.policy.driver for spec in specs}
        # a policy that requests a hook is rejected later, and a policy that requests a Job gets one
        is_news = Driver.AUTO in drivers and Driver.HOOK not in drivers
        return tuple(specs), (Problem.at(first.document, "spec", DRIVER(message)),) if is_news else ()
    hook = [
        replace(spec, policy=replace(spec.policy, driver=Driver.HOOK))
        if spec.policy.driver is Driver.AUTO
        else spec
        for spec in specs
    ]
    return tuple(hook), ()


def driver_of_render(
    specs: Sequence[WorkerSpec], caller: Caller, operator: Operator, *, leaves_none_out: bool
) -> Driver:
    """Check that the rollouts have everything that they need, then return the driver from `rollout_driver`.

    Raises InvalidInput if a rollout has no manager identity. If the image or the tick that a rollout needs is
    missing, the rollout is left to people or CI; with `leaves_none_out`, it raises InvalidInput instead.
    """
    for spec in specs if leaves_none_out else ():
        if why := _why_not_driven(spec.policy.driver, operator):
            raise InvalidInput(f"{spec.worker_deployment}: {why}")
    for spec in specs:
        driver = spec.policy.driver
        is_left_to_people = driver is Driver.NONE or _why_not_driven(driver, operator)
        if not (is_left_to_people or caller.of(spec.policy)):
            raise InvalidInput(
                f"{spec.worker_deployment}: its rollout needs a manager identity: use --identity, or"
                " set spec.identity of a RolloutPolicy"
            )
    if not operator.rollout.image:
        return Driver.JOB
    return rollout_driver(specs)


def _why_not_driven(driver: Driver, operator: Operator) -> str:
    """Why the cluster cannot roll out a worker.

    Empty if the cluster can, or if a person or CI rolls it out.
    """
    if driver is Driver.TICK:
        return "" if operator.tick.rollouts else NEEDS_TICK
    return NEEDS_IMAGE if driver.has_job and not operator.rollout.image else ""


def left_out(spec: WorkerSpec, operator: Operator) -> str:
    """A warning if the policy names a driver that cannot roll out the worker, otherwise empty."""
    driver = spec.policy.driver
    why = "" if driver is Driver.AUTO else _why_not_driven(driver, operator)
    return f"a render omits its rollout objects, and fails in Argo CD: {why}" if why else ""


def warned_of_drivers(plan: Plan, operator: Operator) -> Plan:
    """The plan, with a warning for each worker whose rollout objects a render omits."""
    warned = (replace(item, versions=warned_of_driver(item.versions, operator)) for item in plan.workers)
    return replace(plan, workers=tuple(warned))


def warned_of_driver(worker: WorkerVersions, operator: Operator) -> WorkerVersions:
    """The versions of one worker, with a warning if a render omits its rollout objects."""
    return worker.warned(filter(None, [left_out(worker.spec, operator)]))


def tracks_jobs(specs: Sequence[WorkerSpec], image: str) -> bool:
    """Whether the rollouts of a render in Argo CD are tracked Jobs rather than hooks.

    A policy can request Jobs even before the operator sets an image. Raises InvalidInput if policies
    contradict each other.
    """
    driven = [spec for spec in specs if spec.policy.driver.has_job]
    if not image and not any(spec.policy.driver is Driver.JOB for spec in driven):
        return False
    return bool(driven) and rollout_driver(driven) is Driver.JOB


def drivers_with_objects(operator: Operator) -> frozenset[Driver]:
    """The drivers whose rollouts have objects in a render."""
    return frozenset(driver for driver in Driver if not _why_not_driven(driver, operator))


def _why_no_hook(spec: WorkerSpec) -> str:
    """Why a sync should not wait for the rollout, such as steps longer than `holdFor`.

    Empty if the sync can wait.
    """
    if spec.policy.driver is not Driver.AUTO:
        return "its RolloutPolicy has driver Job" if spec.policy.driver is Driver.JOB else ""
    if spec.rollout.strategy is Strategy.MANUAL:
        return "its strategy is Manual"
    if spec.rollout.gate is not None:
        return "it has a gate"
    if spec.policy.replay is not None:
        return "its RolloutPolicy has a replay"
    pauses, hold_for = spec.rollout.pauses, spec.policy.hold_for
    is_long = pauses >= hold_for
    return f"its steps pause for {spoken(pauses)}, and holdFor is {spoken(hold_for)}" if is_long else ""


def is_applied_by_hook(spec: WorkerSpec, resource: AttachedResource) -> bool:
    """Whether, with driver Hook, the hook's Job applies this object.

    If the sync applied the object, it would wait until the autoscaler has metrics. Such an object is deleted
    only together with its owner.
    """
    return resource.autoscales and spec.policy.owner_references is OwnerReferences.RENDER


_HOOK_COMES_WITHIN = timedelta(minutes=1)
"""The maximum time from the change of an intent until the start of the sync that runs its hook."""


def may_hook_come(changed: datetime, now: datetime) -> bool:
    """Whether the intent changed so recently that Argo CD may still run its hook."""
    return now - changed < _HOOK_COMES_WITHIN


def hook_is_skipped(last_sync: LastSync) -> bool:
    """Whether Argo CD applied an intent without its hook, and will not run the hook by itself."""
    return last_sync.leaves_out_hooks and not last_sync.is_running


class Shard(NamedTuple):
    """One of several ticks that divide the workers of a cluster among themselves, by Temporal namespace.

    Temporal rate-limits each namespace, so one tick handles all workers of a namespace.
    """

    number: int
    """The index of the tick, counted from 0."""
    total: int

    def has(self, spec: WorkerSpec) -> bool:
        """Whether this tick handles the worker. Exactly one tick handles each worker."""
        place = f"{spec.connection.host_port}/{spec.temporal_namespace}"
        digest = sha256(place.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number

    @property
    def is_first(self) -> bool:
        """Whether this is the first tick, which also reports workers with an unknown Temporal namespace."""
        return self.number == 0


ALL = Shard(0, 1)
"""A single tick, which handles every worker."""
