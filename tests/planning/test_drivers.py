"""What runs the rollouts of a render, and what it needs for that."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import NOW, routing, serving, temporal, version
from tests.strategies import STEPS, a_spec, with_policy
from twgen.errors import InvalidInput
from twgen.model.operator import Caller, Operator, RolloutPod, TickSettings
from twgen.model.policy import Replay
from twgen.model.rollout import Driver
from twgen.model.spec import AttachedResource, Gate, Rollout, Strategy, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.planning.drivers import (
    NEEDS_IMAGE,
    NEEDS_TICK,
    driver_of_render,
    drivers_with_objects,
    rollout_driver,
    tracks_jobs,
    warned_of_drivers,
    with_hooks,
)
from twgen.planning.plan import make_plan

SPEC = a_spec()
HOOKED = with_policy(SPEC, driver=Driver.HOOK)
BY_HAND = with_policy(SPEC, driver=Driver.NONE)
ME, NOBODY = Caller("twgen/me"), Caller()
IMAGE = "registry.example.com/twgen:1"
NONE = Operator()
WITH_IMAGE = Operator(rollout=RolloutPod(image=IMAGE))
WITH_TICK = Operator(tick=TickSettings(rollouts=True))
BY_TICK = with_policy(SPEC, driver=Driver.TICK)
SLOW = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, STEPS))
QUICK = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, (replace(STEPS[0], pause=timedelta(minutes=1)),)))
GATED = replace(SPEC, rollout=replace(SPEC.rollout, gate=Gate("Check")))
SCALED = replace(SPEC, attached=(AttachedResource("scaler", {}, autoscales=True),))
MANUAL = replace(SPEC, rollout=replace(SPEC.rollout, strategy=Strategy.MANUAL))


@pytest.mark.parametrize(
    ("specs", "driver"),
    [
        ([SPEC], Driver.JOB),
        ([SPEC, QUICK, SLOW, GATED, MANUAL], Driver.JOB),
        ([SPEC, with_policy(SPEC, driver=Driver.JOB)], Driver.JOB),
        ([SPEC, QUICK, HOOKED], Driver.HOOK),
        ([SPEC, with_policy(SCALED, driver=Driver.HOOK)], Driver.HOOK),
        ([with_policy(SLOW, driver=Driver.HOOK)], Driver.HOOK),
    ],
)
def test_all_rollouts_of_a_render_have_one_driver_and_nobody_gets_a_hook_unasked(
    specs: list[WorkerSpec], driver: Driver
) -> None:
    assert rollout_driver(specs) is driver


@pytest.mark.parametrize("other", [SLOW, GATED, MANUAL, with_policy(SPEC, driver=Driver.JOB)])
def test_hook_beside_a_rollout_that_takes_long_is_refused(other: WorkerSpec) -> None:
    with pytest.raises(InvalidInput, match="would delay the sync"):
        rollout_driver([HOOKED, other])


def test_operator_who_chooses_hooks_gives_one_to_each_worker_whose_policy_chooses_nothing() -> None:
    specs = [SPEC, QUICK, BY_TICK, BY_HAND]
    hooks, warnings = with_hooks(specs)
    assert [spec.policy.driver for spec in hooks] == [Driver.HOOK, Driver.HOOK, Driver.TICK, Driver.NONE]
    assert warnings == ()
    assert rollout_driver(hooks) is Driver.HOOK


@pytest.mark.parametrize(
    ("slow", "why"),
    [
        (MANUAL, "its strategy is Manual"),
        (GATED, "it has a gate"),
        (with_policy(SPEC, replay=Replay(command=("replay",))), "its RolloutPolicy has a replay"),
        (SLOW, "its steps pause for 1h40m, and holdFor is 5m"),
        (with_policy(SPEC, driver=Driver.JOB), "its RolloutPolicy has driver Job"),
    ],
    ids=["manual", "gate", "replay", "pauses", "Job"],
)
def test_application_that_cannot_have_hooks_keeps_tracked_jobs_with_one_warning(
    slow: WorkerSpec, why: str
) -> None:
    specs = [SPEC, slow, MANUAL]
    same, [warning] = with_hooks(specs)
    assert [*same] == specs
    assert with_hooks([with_policy(spec, driver=Driver.JOB) for spec in specs])[1] == (), "it is chosen"
    assert rollout_driver(same) is Driver.JOB
    assert warning.message.startswith(f"{why}, and a sync should not wait for that: ")


@pytest.mark.parametrize("other", [SLOW, GATED, MANUAL])
def test_policy_that_asks_for_a_hook_is_refused_beside_one_that_takes_long_whatever_the_operator_chose(
    other: WorkerSpec,
) -> None:
    hooks, warnings = with_hooks([HOOKED, SPEC, other])
    assert warnings == ()
    with pytest.raises(InvalidInput, match="would delay the sync"):
        rollout_driver(hooks)


@pytest.mark.parametrize("driver", [Driver.AUTO, Driver.JOB, Driver.HOOK])
def test_rollout_in_argo_cd_needs_an_image(driver: Driver) -> None:
    with pytest.raises(InvalidInput, match="payments: its rollout is a Job that needs an image"):
        driver_of_render([BY_HAND, with_policy(SPEC, driver=driver)], ME, NONE, leaves_none_out=True)


@pytest.mark.parametrize(
    ("driver", "operator", "warning"),
    [
        (Driver.HOOK, NONE, NEEDS_IMAGE),
        (Driver.JOB, WITH_TICK, NEEDS_IMAGE),
        (Driver.JOB, WITH_IMAGE, ""),
        (Driver.AUTO, NONE, ""),
        (Driver.NONE, NONE, ""),
        (Driver.TICK, WITH_IMAGE, NEEDS_TICK),
        (Driver.TICK, WITH_TICK, ""),
    ],
)
def test_plan_warns_of_rollout_objects_that_a_render_leaves_out(
    driver: Driver, operator: Operator, warning: str
) -> None:
    spec = with_policy(SPEC, driver=driver)
    says = temporal(version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
    plan = make_plan([spec], serving(says, "v3"), NOW, ME)
    before = plan.workers[0].versions.warnings
    warned = warned_of_drivers(plan, operator).workers[0].versions.warnings
    said = f"a render omits its rollout objects, and fails in Argo CD: {warning}"
    assert warned == ((*before, said) if warning else before)


@pytest.mark.parametrize(
    ("operator", "drivers"),
    [
        (NONE, {Driver.NONE}),
        (WITH_IMAGE, {Driver.NONE, Driver.AUTO, Driver.JOB, Driver.HOOK}),
        (WITH_TICK, {Driver.NONE, Driver.TICK}),
    ],
)
def test_worker_gets_objects_of_a_driver_that_has_what_it_needs(
    operator: Operator, drivers: set[Driver]
) -> None:
    assert drivers_with_objects(operator) == drivers


@pytest.mark.parametrize(
    ("specs", "leaves_none_out"), [([SPEC], False), ([HOOKED], False), ([BY_HAND], True), ([], True)]
)
def test_nobody_needs_an_image_where_people_roll_out(
    specs: list[WorkerSpec], *, leaves_none_out: bool
) -> None:
    assert driver_of_render(specs, NOBODY, NONE, leaves_none_out=leaves_none_out) is Driver.JOB


def test_rollout_by_tick_in_argo_cd_needs_permission_and_no_image() -> None:
    assert driver_of_render([BY_TICK], ME, WITH_TICK, leaves_none_out=True) is Driver.JOB
    with pytest.raises(InvalidInput, match=r"payments: its driver is Tick, but .* set tick\.rollouts"):
        driver_of_render([BY_TICK], ME, WITH_IMAGE, leaves_none_out=True)


def test_rollout_by_tick_delays_no_sync() -> None:
    slow = with_policy(SLOW, driver=Driver.TICK)
    in_argocd = replace(ME, application="shop")
    both = replace(WITH_IMAGE, tick=TickSettings(rollouts=True))
    assert driver_of_render([HOOKED, slow], in_argocd, both, leaves_none_out=True) is Driver.HOOK


@pytest.mark.parametrize(("spec", "operator"), [(SPEC, WITH_IMAGE), (BY_TICK, WITH_TICK)])
def test_rollout_in_the_cluster_needs_an_identity(spec: WorkerSpec, operator: Operator) -> None:
    with pytest.raises(InvalidInput, match="payments: its rollout needs a manager identity"):
        driver_of_render([spec], NOBODY, operator, leaves_none_out=False)
    assert driver_of_render([BY_HAND], NOBODY, operator, leaves_none_out=False) is Driver.JOB
    named = with_policy(spec, identity="prod")
    assert driver_of_render([named], NOBODY, operator, leaves_none_out=False) is Driver.JOB


@pytest.mark.parametrize(
    ("specs", "image", "is_tracked"),
    [
        ([SPEC], IMAGE, True),
        ([SPEC], "", False),
        ([with_policy(SPEC, driver=Driver.JOB)], "", True),
        ([HOOKED, SPEC], IMAGE, False),
        ([BY_HAND], IMAGE, False),
        ([BY_TICK], IMAGE, False),
        ([with_policy(SLOW, driver=Driver.NONE), HOOKED], IMAGE, False),
    ],
)
def test_jobs_are_tracked_where_an_image_or_a_policy_makes_some_that_are_no_hooks(
    specs: list[WorkerSpec], image: str, *, is_tracked: bool
) -> None:
    assert tracks_jobs(specs, image) is is_tracked
