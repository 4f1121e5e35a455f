"""Versions that the policy patches: a rolling update, and back."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import (
    SPEC,
    decided,
    drained,
    live,
    planned,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, ago
from tests.planning.versions.known import S, drained_v1, knows
from tests.planning.versions.running import KEEP, UPDATE, container, template
from tests.strategies import AUTOSCALER, IMAGE_PATCH, STRAY_PATCH, WHOLE_PATCH, patched, with_policy
from twgen.model.operator import Caller
from twgen.model.plan import VersionPlan
from twgen.model.policy import ConnectionChanges, HistorySource, VersionPatch
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import make_plan
from twgen.rendering.deployments import target_deployment, version_deployment

ON_V1 = VersionPatch("v1", (IMAGE_PATCH,))
ON_V3 = VersionPatch("v3", (IMAGE_PATCH,))
DRAINING = temporal(
    version("v1", VersionStatus.DRAINING, first_activated_at=ago(DAY)),
    version("v3", VersionStatus.CURRENT),
    traffic=routing("v3"),
)
WITH_AND_WITHOUT_LEDGER = pytest.mark.parametrize("ledger", [{}, {"v1": live("v1")}], ids=["none", "ledger"])


def patching(*patches: VersionPatch, spec: WorkerSpec = SPEC) -> WorkerSpec:
    return with_policy(spec, patches=patches)


def plan_of(
    spec: WorkerSpec, *deployments: dict[str, Any], build_id: str = "v1", **known: Any
) -> VersionPlan:
    says = known.pop("says", DRAINING)
    return decided(situation(says, deployments, **known), build_id, spec)


def image(plan: VersionPlan, spec: WorkerSpec) -> str:
    [found] = template(plan, spec)["spec"]["containers"]
    return str(found["image"])


def annotations(plan: VersionPlan, spec: WorkerSpec) -> dict[str, str]:
    found: dict[str, str] = version_deployment(spec, plan, "me")["metadata"]["annotations"]
    return found


@WITH_AND_WITHOUT_LEDGER
def test_patch_is_a_rolling_update_with_its_reason(ledger: dict[str, Any]) -> None:
    spec = patching(ON_V1)
    plan = plan_of(spec, live("v1"), live("v3"), ledger=ledger)
    assert (plan.action, plan.reason, plan.replicas) == (UPDATE, "Patched", 3)
    assert plan.because == (
        "it is draining: workflows may still need it; its policy's patches change its"
        " containers[worker].image, and its pods restart"
    )
    assert image(plan, spec) == "payments:v1-cve"
    hashes = template(plan, spec)["metadata"]["annotations"]
    assert hashes == live("v1")["spec"]["template"]["metadata"]["annotations"], "it is the same version"


@pytest.mark.parametrize(
    ("of_spec", "of_patch", "are_external"),
    [(3, None, False), (None, None, True), (None, 2, False), (3, 2, False)],
)
def test_patch_without_replicas_leaves_them_to_the_spec(
    of_spec: int | None, of_patch: int | None, *, are_external: bool
) -> None:
    spec = patching(replace(ON_V3, replicas=of_patch), spec=replace(SPEC, replicas=of_spec))
    assert plan_of(spec, live("v3"), build_id="v3").replicas_are_external is are_external


@WITH_AND_WITHOUT_LEDGER
def test_patched_version_is_kept_and_says_so(ledger: dict[str, Any]) -> None:
    spec = patching(ON_V1)
    plan = plan_of(spec, patched(live("v1"), IMAGE_PATCH), live("v3"), ledger=ledger)
    assert (plan.action, plan.reason) == (KEEP, "MayBeNeeded")
    assert "; patched: containers[worker].image" in plan.because
    assert plan.changed_marks == plan_of(SPEC, live("v1"), live("v3")).changed_marks
    assert template(plan, spec) == patched(live("v1"), IMAGE_PATCH)["spec"]["template"]


@WITH_AND_WITHOUT_LEDGER
def test_version_goes_back_to_what_was_deployed_when_its_patch_is_gone(ledger: dict[str, Any]) -> None:
    plan = plan_of(SPEC, patched(live("v1"), WHOLE_PATCH), live("v3"), ledger=ledger)
    assert (plan.action, plan.reason) == (UPDATE, "Patched")
    assert "was removed: the original values are restored, and its pods restart" in plan.because
    assert template(plan) == live("v1")["spec"]["template"]
    assert "twgen.io/patched" not in annotations(plan, SPEC)


@WITH_AND_WITHOUT_LEDGER
def test_changed_patch_takes_the_place_of_the_one_before(ledger: dict[str, Any]) -> None:
    spec = patching(ON_V1)
    plan = plan_of(spec, patched(live("v1"), WHOLE_PATCH), live("v3"), ledger=ledger)
    assert (plan.action, plan.reason) == (UPDATE, "Patched")
    assert "change its containers[worker].resources and containers[worker].env" in plan.because
    assert template(plan, spec) == patched(live("v1"), IMAGE_PATCH)["spec"]["template"]


@WITH_AND_WITHOUT_LEDGER
def test_edit_by_hand_of_what_is_patched_is_put_right_and_the_message_names_patches(
    ledger: dict[str, Any],
) -> None:
    spec, edited = patching(ON_V1), patched(live("v1"), IMAGE_PATCH)
    container(edited)["image"] = "payments:by-hand"
    plan = plan_of(spec, edited, live("v3"), ledger=ledger)
    assert (plan.action, plan.reason) == (UPDATE, "EditedByHand")
    assert "(spec.containers[worker].image): the edit is undone" in plan.because
    assert "to keep the edit, add it to patches of a RolloutPolicy" in plan.because
    assert image(plan, spec) == "payments:v1-cve"


def test_edit_by_hand_beside_a_patch_is_put_right_from_the_ledger() -> None:
    spec, edited = patching(ON_V1), patched(live("v1"), IMAGE_PATCH)
    container(edited)["env"].pop()
    plan = plan_of(spec, edited, live("v3"), ledger={"v1": live("v1")})
    assert (plan.action, plan.reason) == (UPDATE, "EditedByHand")
    assert template(plan, spec) == patched(live("v1"), IMAGE_PATCH)["spec"]["template"]


def test_lost_annotation_comes_back_with_the_ledger_and_restarts_nothing() -> None:
    spec, edited = patching(ON_V1), patched(live("v1"), IMAGE_PATCH)
    told = edited["metadata"]["annotations"].pop("twgen.io/patched")
    plan = plan_of(spec, edited, live("v3"), ledger={"v1": live("v1")})
    assert plan.action is KEEP
    assert annotations(plan, spec)["twgen.io/patched"] == told


@pytest.mark.parametrize("build_id", ["v1", "v3"])
def test_what_was_done_by_hand_and_is_written_down_since_restarts_nothing(build_id: str) -> None:
    spec, edited = patching(replace(ON_V1, build_id=build_id)), live(build_id)
    container(edited)["image"] = "payments:v1-cve"
    others = [live(other) for other in ("v1", "v3") if other != build_id]
    ledger = {"v1": live("v1")}
    plan = plan_of(spec, edited, *others, build_id=build_id, ledger=ledger)
    assert plan.action is KEEP
    assert "; patched: containers[worker].image; applying changes its annotations" in plan.because
    assert template(plan, spec) == edited["spec"]["template"]
    # gone from Git, it goes back to what the ledger or the spec says
    back = plan_of(SPEC, patched(live(build_id), IMAGE_PATCH), *others, build_id=build_id, ledger=ledger)
    assert template(back) == live(build_id)["spec"]["template"]


def test_what_the_controller_let_somebody_patch_stays_when_it_is_written_down_without_a_ledger() -> None:
    spec, edited = patching(ON_V1), live("v1")
    container(edited)["image"] = "payments:v1-cve"
    edited["metadata"]["annotations"] = {}
    plan = plan_of(spec, edited, live("v3"))
    assert plan.action is KEEP
    assert template(plan, spec) == edited["spec"]["template"]
    [warning] = planned(situation(DRAINING, [edited, live("v3")]), spec).versions.warnings
    assert "v1: its live pod template does not match its hash" in warning


def test_lost_version_comes_back_patched() -> None:
    spec = patching(ON_V1)
    plan = plan_of(spec, live("v3"), ledger={"v1": live("v1")})
    assert plan.action == "Create"
    assert plan.because.endswith("; patched: containers[worker].image")
    assert image(plan, spec) == "payments:v1-cve"


def test_cluster_that_is_no_source_of_the_history_leaves_a_patched_version_to_its_ledger() -> None:
    spec = with_policy(patching(ON_V1), history=(HistorySource.LEDGER,))
    edited = patched(live("v1"), IMAGE_PATCH)
    container(edited)["image"] = "payments:by-hand"
    assert plan_of(spec, edited, live("v3")).reason == "ManifestLost"
    assert plan_of(spec, edited, live("v3"), ledger={"v1": live("v1")}).reason == "EditedByHand"


MOVED = replace(
    with_policy(patching(ON_V1), connection_changes=ConnectionChanges.ALL_VERSIONS),
    connection=replace(SPEC.connection, tls_server_name="temporal.example.com"),
)


def test_changed_connection_reaches_a_patched_version_with_its_patch() -> None:
    plan = plan_of(MOVED, patched(live("v1"), IMAGE_PATCH), live("v3"))
    assert (plan.action, plan.reason) == (UPDATE, "ConnectionChanged")
    [found] = template(plan, MOVED)["spec"]["containers"]
    values = {item["name"]: item.get("value") for item in found["env"]}
    assert (found["image"], values["TEMPORAL_TLS_SERVER_NAME"]) == ("payments:v1-cve", "temporal.example.com")


def test_patch_beside_a_connection_that_changes_is_told_too() -> None:
    plan = plan_of(MOVED, live("v1"), live("v3"))
    assert (plan.action, plan.reason) == (UPDATE, "ConnectionChanged")
    assert "its policy's patches change its containers[worker].image" in plan.because


def test_target_can_be_patched_and_keeps_its_pods_when_it_drains() -> None:
    spec = patching(ON_V3)
    first = plan_of(spec, live("v3"), build_id="v3", says=knows(current="v3"))
    assert (first.action, first.reason) == (UPDATE, "Patched")
    deployed = patched(live("v3"), IMAGE_PATCH)
    kept = plan_of(spec, deployed, build_id="v3", says=knows(current="v3"))
    assert (kept.action, kept.reason) == (KEEP, "Target")
    assert template(kept, spec) == deployed["spec"]["template"]
    # another version is the target tomorrow
    tomorrow = replace(spec, build_id="v4", template=replace(spec.template, hash="another"))
    drains = temporal(version("v3", VersionStatus.DRAINING), version("v4"), traffic=routing("v4"))
    plan = plan_of(tomorrow, deployed, build_id="v3", says=drains)
    assert (plan.action, plan.reason) == (KEEP, "MayBeNeeded")
    assert template(plan, tomorrow) == deployed["spec"]["template"]


def test_new_target_is_created_patched() -> None:
    spec = patching(ON_V3)
    plan = plan_of(spec, build_id="v3", says=None)
    assert plan.action == "Create"
    assert image(plan, spec) == "payments:v1-cve"


def test_patch_that_changes_nothing_restarts_nothing() -> None:
    spec = patching(VersionPatch("v1", ({"name": "worker", "image": container(live("v1"))["image"]},)))
    plan = plan_of(spec, live("v1"), live("v3"))
    assert plan.action is KEEP


def test_container_that_the_version_does_not_have_is_warned_of() -> None:
    spec = patching(VersionPatch("v1", (STRAY_PATCH, IMAGE_PATCH)))
    worker = planned(serving(DRAINING), spec)
    assert worker.versions.warnings == (
        "v1: patches of its RolloutPolicy name container 'sidecar', but its pods only have worker",
    )
    [plan] = [item for item in worker.versions.versions if item.build_id == "v1"]
    assert plan.patch == (IMAGE_PATCH,)


@pytest.mark.parametrize("of_spec", [3, None])
@pytest.mark.parametrize(("own", "expected"), [(1, 1), (5, 5), (None, 3)])
def test_replicas_of_a_patch_are_the_persons_word(
    own: int | None, expected: int, of_spec: int | None
) -> None:
    spec = replace(patching(VersionPatch("v1", replicas=own)), replicas=of_spec)
    plan = plan_of(spec, live("v1"), live("v3"))
    assert (plan.action, plan.replicas) == (KEEP, expected)
    assert plan.replicas_are_external is (own is of_spec is None)
    assert own is None or f"its policy's patches give it {own} replica" in plan.because


def test_ledger_remembers_a_target_without_its_patch() -> None:
    assert target_deployment(patching(ON_V3)) == target_deployment(SPEC)


def test_replicas_of_a_patch_do_not_fight_an_autoscaler() -> None:
    spec = replace(patching(VersionPatch("v1", replicas=5)), replicas=None, attached=(AUTOSCALER,))
    worker = planned(serving(DRAINING), spec)
    [plan] = [item for item in worker.versions.versions if item.build_id == "v1"]
    assert plan.replicas == 3
    assert (
        "v1: replicas in patches of its RolloutPolicy have no effect,"
        " because the autoscaler cpu sets the replicas" in worker.versions.warnings
    )


def test_patch_goes_before_what_draining_versions_have() -> None:
    spec = with_policy(patching(VersionPatch("v1", replicas=5)), draining_replicas=1)
    assert plan_of(spec, live("v1"), live("v3")).replicas == 5


def test_sunset_of_a_patch_is_that_version_alone() -> None:
    longer = patching(VersionPatch("v1", scaledown_delay=timedelta(hours=5)))
    both = drained(2 * HOUR), drained(2 * HOUR, "v2")
    found = serving(temporal(*both, version("v3", S.CURRENT), traffic=routing("v3")), "v1", "v2", "v3")
    first, second, _ = planned(found, longer).versions.versions
    assert (first.reason, second.reason) == ("Drained", "DrainedPastScaledown")
    assert "scaledownDelay (5h)" in first.because


def test_version_on_its_way_to_zero_is_not_restarted_for_its_patch() -> None:
    says = drained_v1(2 * HOUR)
    plan = plan_of(patching(ON_V1), live("v1"), live("v3"), says=says)
    assert (plan.action, plan.reason, plan.replicas) == ("ScaleDown", "DrainedPastScaledown", 0)


def test_patch_for_a_version_that_is_gone_is_warned_of_with_one_that_is_there() -> None:
    spec = patching(VersionPatch("v11", (IMAGE_PATCH,)), spec=SPEC)
    [warning] = warnings(serving(DRAINING), spec)
    assert warning == (
        "workers of shop: version v11 does not exist, or no longer exists. Remove it from patches of the"
        " RolloutPolicy; did you mean v1?"
    )


def test_policy_of_many_workers_names_a_version_that_one_of_them_has() -> None:
    spec = patching(ON_V1)
    other = replace(spec, name="orders")
    found, beside = serving(DRAINING), WorkerWorld("shop/orders", "default", temporal(version("v3")), ())

    def warned(other_world: WorkerWorld) -> tuple[str, ...]:
        return warnings(replace(found, workers={**found.workers, beside.key: other_world}), spec, other)

    assert warned(beside) == ()
    [warning] = warned(replace(beside, temporal=DRAINING))
    assert warning.startswith(
        "workers of shop: the RolloutPolicy patches v1, a version of shop/payments and shop/orders"
    )


def warnings(found: World, *specs: WorkerSpec) -> tuple[str, ...]:
    return make_plan(specs, found, found.taken_at, Caller("me", forced=True)).warnings
