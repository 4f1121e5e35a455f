"""A live pod template that somebody changed by hand, and what becomes of it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, drained, live, planned, routing, situation, temporal, version
from tests.planning.times import DAY
from tests.planning.versions.running import KEEP, UPDATE, Manifest, container, plan, template, versions
from tests.strategies import with_policy
from twgen.model.plan import VersionAction
from twgen.model.policy import EnvironmentNames, HistorySource
from twgen.model.temporal import VersionStatus as S
from twgen.rendering.deployments import version_deployment

RESTARTED = {"kubectl.kubernetes.io/restartedAt": "2026-11-20T09:00:00Z"}


def with_image(manifest: Manifest) -> None:
    container(manifest)["image"] = "payments:by-hand"


def with_other_build_id(manifest: Manifest) -> None:
    container(manifest)["env"][-1]["value"] = "another"


def without_address(manifest: Manifest) -> None:
    del container(manifest)["env"][0]


def with_other_address(manifest: Manifest) -> None:
    container(manifest)["env"][0]["value"] = "elsewhere.example.com:7233"


def without_build_id(manifest: Manifest) -> None:
    container(manifest)["env"].pop()


EDITS = [with_image, with_other_build_id, without_address, with_other_address, without_build_id]


@pytest.mark.parametrize("edit", EDITS)
def test_target_edited_by_hand_is_put_right_and_the_plan_says_that_its_pods_restart(edit: Any) -> None:
    before, edited = live("v3"), live("v3")
    edit(edited)
    target = versions(plan([live("v1"), edited]))["v3"]
    assert (target.action, target.reason) == (UPDATE, "EditedByHand")
    assert target.because.endswith("the edit is undone, and its pods restart")
    assert template(target) == before["spec"]["template"]


@pytest.mark.parametrize("edit", EDITS)
def test_older_version_edited_by_hand_is_put_right_from_the_ledger(edit: Any) -> None:
    locked, edited = live("v1"), live("v1")
    edit(edited)
    old = versions(plan([edited, live("v3")], ledger={"v1": locked}))["v1"]
    assert (old.action, old.reason) == (UPDATE, "EditedByHand")
    assert template(old) == locked["spec"]["template"]


@pytest.mark.parametrize(
    ("current", "status", "replicas"), [("v1", S.CURRENT, 3), ("v3", S.DRAINING, 3), ("v3", S.INACTIVE, 0)]
)
def test_version_that_is_put_right_gets_the_pods_that_its_work_needs(
    current: str, status: S, replicas: int
) -> None:
    """While its address was another one by hand, Temporal's word for its place did not count."""
    locked, edited = live("v1"), live("v1", 0)
    with_other_address(edited)
    says = temporal(version("v1", status), version("v3"), traffic=routing(current))
    found = situation(says, [edited, live("v3")], {"v1": locked})
    old = versions(planned(found))["v1"]
    assert (old.reason, old.replicas) == ("EditedByHand", replicas)


def test_version_whose_time_is_over_is_scaled_down_and_its_pods_are_not_put_right() -> None:
    locked, edited = live("v1"), live("v1")
    with_image(edited)
    says = temporal(drained(DAY), version("v3", S.CURRENT), traffic=routing("v3"))
    old = versions(planned(situation(says, [edited, live("v3")], {"v1": locked})))["v1"]
    assert (old.action, old.reason) == (VersionAction.SCALE_DOWN, "DrainedPastScaledown")


@pytest.mark.parametrize("edit", EDITS)
def test_older_version_that_nothing_recorded_tells_of_stays_as_it_is(edit: Any) -> None:
    edited = live("v1", 5)
    edit(edited)
    worker = plan([edited, live("v3")])
    old = versions(worker)["v1"]
    assert old.action is KEEP
    is_told = any("v1: its live pod template does not match" in text for text in worker.versions.warnings)
    # an address that was changed may as well be another server's
    assert is_told is (edit is not with_other_address)
    assert template(old) == edited["spec"]["template"]


@pytest.mark.parametrize(("manager", "is_doubted"), [("argocd-controller", False), ("kubectl-set", True)])
def test_field_managers_tell_whether_a_template_is_doubted_at_all(manager: str, *, is_doubted: bool) -> None:
    edited = live("v1")
    with_image(edited)
    held = {"manager": manager, "fieldsV1": {"f:spec": {"f:template": {}}}}
    edited["metadata"]["managedFields"] = [held]
    warnings = plan([edited, live("v3")]).versions.warnings
    assert any("v1: its live pod template" in text for text in warnings) is is_doubted


def held_by_hand(manager: str, *path: str) -> list[Manifest]:
    fields: Manifest = {}
    for name in reversed(path):
        fields = {f"f:{name}" if not name.startswith("k:") else name: fields}
    return [{"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:template": fields}}}]


@pytest.mark.parametrize("name", ["TEMPORAL_NAMESPACE", "TEMPORAL_DEPLOYMENT_NAME"])
@pytest.mark.parametrize(("manager", "is_told"), [("kubectl-edit", True), ("argocd-controller", False)])
@pytest.mark.parametrize("build_id", ["v1", "v3"])
def test_place_changed_by_hand_is_put_right_where_a_field_manager_tells(
    name: str, manager: str, build_id: str, *, is_told: bool
) -> None:
    before, edited = live(build_id, 5), live(build_id, 5)
    (variable,) = (item for item in container(edited)["env"] if item["name"] == name)
    variable["value"] = "by-hand"
    key = ('k:{"name":"' + name + '"}', "value")
    edited["metadata"]["managedFields"] = held_by_hand(
        manager, "spec", "containers", 'k:{"name":"worker"}', "env", *key
    )
    says = temporal(version("v1"), version("v3", S.CURRENT), traffic=routing("v3"))
    others = [live(other) for other in ("v1", "v3") if other != build_id]
    worker = planned(situation(says, [edited, *others], {build_id: before}))
    found = versions(worker)[build_id]
    assert found.action is (UPDATE if is_told else KEEP)
    assert template(found) == (before if is_told else edited)["spec"]["template"]
    assert ("; its pod template was edited by hand" in found.because) is is_told
    if build_id == "v1":
        # whatever Temporal says of it at the place where it should be
        assert (found.replicas, found.protected) == (5, True)


def test_restart_of_a_paused_deployment_is_promised_for_when_it_is_resumed() -> None:
    edited = live("v3")
    with_image(edited)
    edited["spec"]["paused"] = True
    because = versions(plan([live("v1"), edited]))["v3"].because
    assert because.endswith("and its pods restart when it is resumed")


@pytest.mark.parametrize(("manager", "is_ours"), [("kubectl-rollout", False), ("argocd-controller", True)])
def test_mark_of_a_restart_is_rendered_only_where_it_was_applied(manager: str, *, is_ours: bool) -> None:
    restarted = live("v1")
    restarted["spec"]["template"]["metadata"]["annotations"] |= RESTARTED
    (held,) = held_by_hand(manager, "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
    restarted["metadata"]["managedFields"] = [held | ({"operation": "Apply"} if is_ours else {})]
    old = versions(plan([restarted, live("v3")]))["v1"]
    assert old.action is KEEP
    assert (RESTARTED.items() <= template(old)["metadata"]["annotations"].items()) is is_ours


def test_restart_by_hand_is_no_edit() -> None:
    restarted = live("v3")
    restarted["spec"]["template"]["metadata"]["annotations"] |= RESTARTED
    worker = plan([live("v1"), restarted])
    target = versions(worker)["v3"]
    assert target.action is KEEP
    assert template(target) == restarted["spec"]["template"]
    assert worker.versions.warnings == ()


def test_variable_added_by_hand_stays_with_a_warning() -> None:
    edited = live("v3")
    container(edited)["env"].append({"name": "DEBUG", "value": "1"})
    worker = plan([live("v1"), edited])
    target = versions(worker)["v3"]
    assert target.action is KEEP
    assert template(target) == edited["spec"]["template"]
    (warning,) = worker.versions.warnings
    assert warning.startswith("v3: spec.containers[worker].env[DEBUG] was added to its Deployment by hand")


def test_pace_of_a_rollout_reaches_a_live_target_at_once() -> None:
    pace = {"minReadySeconds": 30, "progressDeadlineSeconds": 900, "strategy": {"type": "Recreate"}}
    spec = replace(SPEC, pace=pace)
    target = versions(plan([live("v3")], spec))["v3"]
    assert target.action is KEEP
    assert version_deployment(spec, target, "me")["spec"].items() >= pace.items()


def test_history_without_the_ledger_does_not_ask_it() -> None:
    spec = with_policy(SPEC, history=(HistorySource.CLUSTER,))
    edited = live("v1")
    with_image(edited)
    assert versions(plan([edited, live("v3")], spec, {"v1": live("v1")}))["v1"].action is KEEP


def test_history_without_the_cluster_leaves_what_only_the_cluster_knows_to_its_protection() -> None:
    spec = with_policy(SPEC, history=(HistorySource.LEDGER,))
    worker = plan([live("v1"), live("v3")], spec)
    old, target = versions(worker).values()
    assert (old.action, old.reason, target.action) == (VersionAction.NONE, "ManifestLost", KEEP)


def test_second_deployment_of_a_build_id_is_noticed_and_left_alone() -> None:
    twin = live("v1", 4)
    twin["metadata"]["name"] = "payments-v1-by-hand"
    worker = plan([twin, live("v1", 2), live("v3")])
    old = versions(worker)["v1"]
    assert (old.deployment, old.replicas) == ("payments-v1", 2)
    (warning,) = worker.versions.warnings
    assert warning.startswith(
        "v1 has two Deployments: twgen renders payments-v1, but not payments-v1-by-hand"
    )


@pytest.mark.parametrize(
    ("build_id", "because"),
    [
        ("v1", "; its Deployment is being deleted, and will be recreated"),
        ("v0", "Temporal does not know it, and its Deployment is being deleted"),
    ],
)
def test_deployment_that_is_being_deleted_is_created_again(build_id: str, because: str) -> None:
    going = live(build_id, 2, deletionTimestamp="2026-11-21T11:59:00Z")
    old = versions(plan([going, live("v3")]))[build_id]
    assert (old.action, old.replicas, old.protected) == (VersionAction.CREATE, 2, True)
    assert old.because.endswith(because)


def test_version_on_its_way_to_zero_is_rendered_as_it_runs() -> None:
    locked = version_deployment(
        with_policy(SPEC, environment=EnvironmentNames.HOST_PORT),
        replace(versions(plan([]))["v3"], build_id="v1"),
        "",
    )
    running = live("v1", 3)
    says = temporal(version("v1"), version("v3", S.CURRENT), traffic=routing("v3"))
    worker = planned(situation(says, [running, live("v3")], {"v1": locked}))
    old = versions(worker)["v1"]
    assert (old.action, old.replicas) == (VersionAction.SCALE_DOWN, 0)
    assert template(old) == running["spec"]["template"]


def test_version_restarted_by_hand_is_known_to_a_history_of_the_ledger_alone() -> None:
    spec = with_policy(SPEC, history=(HistorySource.LEDGER,))
    restarted = live("v1")
    restarted["spec"]["template"]["metadata"]["annotations"] |= RESTARTED
    assert versions(plan([restarted, live("v3")], spec, {"v1": live("v1")}))["v1"].action is KEEP


RECREATE = {"type": "Recreate"}
FILLED_IN = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
HELD = {
    "manager": "argocd-controller",
    "operation": "Apply",
    "fieldsV1": {"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}},
}


@pytest.mark.parametrize("is_held", [False, True])
def test_strategy_becomes_recreate_where_nobody_else_holds_its_rolling_update(*, is_held: bool) -> None:
    spec = replace(SPEC, pace={**SPEC.pace, "strategy": RECREATE})
    # what a second manager holds too, the first one cannot take away
    others = [] if is_held else [{**HELD, "manager": "kubectl-edit", "operation": "Update"}]
    found = live("v3", managedFields=[HELD, *others])
    found["spec"]["strategy"] = FILLED_IN
    worker = plan([live("v1"), found], spec)
    target = versions(worker)["v3"]
    assert version_deployment(spec, target, "me")["spec"]["strategy"] == (RECREATE if is_held else FILLED_IN)
    assert ("strategy" in target.changed_marks) is is_held
    assert bool(worker.versions.warnings) is not is_held
    said = "v3: strategy Recreate cannot be applied yet, because "
    assert all(warning.startswith(said) for warning in worker.versions.warnings)
    assert all("kubectl patch deployment" in warning for warning in worker.versions.warnings)


def test_order_of_what_is_injected_is_not_changed_for_its_own_sake() -> None:
    """A connection that changed leaves what stays in its place: another order would be other pods."""
    found = live("v3")
    variables = found["spec"]["template"]["spec"]["containers"][0]["env"]
    variables.reverse()
    target = versions(plan([live("v1"), found]))["v3"]
    assert target.action is KEEP
    assert version_deployment(SPEC, target, "me")["spec"]["template"] == found["spec"]["template"]
