"""Who carries out the rollouts of a render: one kind of Job for all workers, since a hook delays the sync.

And which of several ticks looks after a worker.
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
from twgen.model.problem import Problem
from twgen.model.rollout import Driver, LastSync
from twgen.model.spec import AttachedResource, Strategy, WorkerSpec
from twgen.planning.sentences import listed, spoken

NEEDS_IMAGE = (
    "its rollout is a Job that needs an image: set rollout.image in an OperatorConfig. If a person or CI"
    " rolls it out instead, say so in spec.driver of a RolloutPolicy"
)
"""Why Argo CD does not render a worker whose rollout is a Job."""
NEEDS_TICK = (
    "its driver is Tick, but `twgen tick` carries out no rollouts: set tick.rollouts in the OperatorConfig,"
    " or set spec.driver of a RolloutPolicy to Job"
)
"""Why Argo CD does not render a worker that tick should roll out."""


def rollout_driver(specs: Sequence[WorkerSpec]) -> Driver:
    """Hook if a policy asks for it, or else Job. Workers that no Job rolls out do not matter.

    Nobody gets a hook unasked: if Argo CD (from 3.5 on) sees a commit while a sync goes on, it may apply the
    commit afterwards by self-heal, which runs no hook. Raises InvalidInput if policies contradict each other:
    a sync with a hook also waits for the Jobs of the other workers.
    """
    hooks = [spec for spec in specs if spec.policy.driver is Driver.HOOK]
    if not hooks:
        return Driver.JOB
    if slow := [spec for spec in specs if _why_no_hook(spec)]:
        names = listed([spec.worker_deployment for spec in slow])
        raise InvalidInput(
            f"driver Hook of {hooks[0].worker_deployment} would delay the sync until {names}"
            f" {'is' if len(slow) == 1 else 'are'} rolled out too: set spec.driver to Job for all of them"
        )
    return Driver.HOOK


def with_hooks(specs: Sequence[WorkerSpec]) -> tuple[tuple[WorkerSpec, ...], tuple[Problem, ...]]:
    """The workers of an operator who chose hooks: those whose policy chooses nothing get driver Hook.

    If one of them cannot be a hook and no policy asks for one, all keep tracked Jobs, with one warning.
    """
    slow = [(spec, why) for spec in specs if (why := _why_no_hook(spec))]
    if slow:
        first, why = slow[0]
        message = (
            f"{why}, and a sync should not wait for that: rollout.driver Hook of the OperatorConfig has no"
            " effect here, and the rollouts of all these workers are tracked Jobs"
        )
        drivers = {spec.policy.driver for spec in specs}
        # a policy that asks for a hook is refused, and one that asks for a Job gets it
        is_news = Driver.AUTO in drivers and Driver.HOOK not in drivers
        return tuple(specs), (Problem.at(first.document, "spec", message),) if is_news else ()
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
    """As `rollout_driver`, if the rollouts have all that they need: an image or tick, and an identity.

    Without the former, people or CI do the rollouts; if `leaves_none_out` excludes that, it raises
    InvalidInput. It also raises without an identity.
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
    """Why a render cannot let the cluster roll out a worker; empty: it can, or a person or CI does."""
    if driver is Driver.TICK:
        return "" if operator.tick.rollouts else NEEDS_TICK
    return NEEDS_IMAGE if driver.has_job and not operator.rollout.image else ""


def left_out(spec: WorkerSpec, operator: Operator) -> str:
    """The warning about a worker whose driver is named but cannot roll it out; empty: there is none."""
    driver = spec.policy.driver
    why = "" if driver is Driver.AUTO else _why_not_driven(driver, operator)
    return f"a render omits its rollout objects, and fails in Argo CD: {why}" if why else ""


def warned_of_drivers(plan: Plan, operator: Operator) -> Plan:
    """The plan, with a warning for each worker whose rollout objects a render leaves out."""
    warned = (replace(item, versions=warned_of_driver(item.versions, operator)) for item in plan.workers)
    return replace(plan, workers=tuple(warned))


def warned_of_driver(worker: WorkerVersions, operator: Operator) -> WorkerVersions:
    """The versions of one worker, with the same warning."""
    return worker.warned(filter(None, [left_out(worker.spec, operator)]))


def tracks_jobs(specs: Sequence[WorkerSpec], image: str) -> bool:
    """Whether rollouts of a render in Argo CD are Jobs that a sync waits for, and not hooks.

    A policy may ask for Jobs before the operator names an image. Raises as `rollout_driver` does.
    """
    driven = [spec for spec in specs if spec.policy.driver.has_job]
    if not image and not any(spec.policy.driver is Driver.JOB for spec in driven):
        return False
    return bool(driven) and rollout_driver(driven) is Driver.JOB


def drivers_with_objects(operator: Operator) -> frozenset[Driver]:
    """The drivers with which a worker gets objects for its rollout."""
    return frozenset(driver for driver in Driver if not _why_not_driven(driver, operator))


def _why_no_hook(spec: WorkerSpec) -> str:
    """Why a sync should not wait for its rollout, which may take longer than `holdFor`; empty: it may."""
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
    """If rollouts run in hooks, the hook's Job applies this object: a sync would wait for its metrics.

    Such an object is deleted only together with its owner.
    """
    return resource.autoscales and spec.policy.owner_references is OwnerReferences.RENDER


_HOOK_COMES_WITHIN = timedelta(minutes=1)
"""From the change of an intent to the sync that runs its hook."""


def may_hook_come(changed: datetime, now: datetime) -> bool:
    """The intent has changed so recently that Argo CD may still be about to run its hook."""
    return now - changed < _HOOK_COMES_WITHIN


def hook_is_skipped(last_sync: LastSync) -> bool:
    """Argo CD applied an intent that has no Job without its hook, and does nothing more about it."""
    return last_sync.leaves_out_hooks and not last_sync.is_running


class Shard(NamedTuple):
    """One of the ticks that share the workers of a cluster, by their Temporal namespaces.

    A namespace limits the calls to it, so all of its workers have the same tick.
    """

    number: int
    """From 0."""
    total: int

    def has(self, spec: WorkerSpec) -> bool:
        """It looks after this worker; each worker has exactly one of them."""
        place = f"{spec.connection.host_port}/{spec.temporal_namespace}"
        digest = sha256(place.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number

    @property
    def is_first(self) -> bool:
        """It also tells of workers whose Temporal namespace is unknown."""
        return self.number == 0


ALL = Shard(0, 1)
"""The only tick, which has every worker."""
