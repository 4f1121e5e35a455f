"""A live pod template that somebody changed by hand, and what becomes of it."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, planned, routing, situation, temporal, version
from twgen.model.plan import VersionAction, VersionPlan, WorkerPlan
from twgen.model.spec import ConnectionChanges, EnvironmentNames, HistorySource, WorkerSpec
from twgen.model.world import VersionStatus
from twgen.rendering.deployments import version_deployment

KEEP, UPDATE = VersionAction.KEEP, VersionAction.UPDATE
RESTARTED = {"kubectl.kubernetes.io/restartedAt": "2026-11-20T09:00:00Z"}
OWN_KEY = {"name": "TEMPORAL_API_KEY", "value": "of the team"}
Manifest = dict[str, Any]


def container(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["spec"]["template"]["spec"]["containers"][0]
    return found


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


def plan(
    deployments: list[Manifest], spec: WorkerSpec = SPEC, ledger: dict[str, Manifest] | None = None
) -> WorkerPlan:
    says = temporal(
        version("v1", VersionStatus.DRAINING), version("v3", VersionStatus.CURRENT), traffic=routing("v3")
    )
    return planned(situation(says, deployments, ledger), spec)


def versions(worker: WorkerPlan) -> dict[str, VersionPlan]:
    return {item.build_id: item for item in worker.versions.versions}


def template(item: VersionPlan, spec: WorkerSpec = SPEC) -> Manifest:
    found: Manifest = version_deployment(spec, item, "me")["spec"]["template"]
    return found


@pytest.mark.parametrize("edit", EDITS)
def test_target_edited_by_hand_is_put_right_and_the_plan_says_that_its_pods_restart(edit: Any) -> None:
    before, edited = live("v3"), live("v3")
    edit(edited)
    target = versions(plan([live("v1"), edited]))["v3"]
    assert (target.action, target.reason) == (UPDATE, "EditedByHand")
    assert target.because.endswith("it is put right, and its pods restart")
    assert template(target) == before["spec"]["template"]


@pytest.mark.parametrize("edit", EDITS)
def test_older_version_edited_by_hand_is_put_right_from_the_ledger(edit: Any) -> None:
    locked, edited = live("v1"), live("v1")
    edit(edited)
    old = versions(plan([edited, live("v3")], ledger={"v1": locked}))["v1"]
    assert (old.action, old.reason) == (UPDATE, "EditedByHand")
    assert template(old) == locked["spec"]["template"]


@pytest.mark.parametrize("edit", EDITS)
def test_older_version_that_nothing_recorded_tells_of_stays_as_it_is(edit: Any) -> None:
    edited = live("v1", 5)
    edit(edited)
    worker = plan([edited, live("v3")])
    old = versions(worker)["v1"]
    assert old.action is KEEP
    is_told = any("v1: its live pod template is not the one" in text for text in worker.versions.warnings)
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
    says = temporal(version("v1"), version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
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


def test_ledger_locked_under_another_environment_restarts_nothing() -> None:
    legacy = replace(SPEC, policy=replace(SPEC.policy, environment=EnvironmentNames.HOST_PORT))
    locked = version_deployment(legacy, versions(plan([]))["v3"], "")
    running = live("v3")
    worker = plan([live("v1"), running], legacy, {"v3": locked})
    target = versions(worker)["v3"]
    assert target.action is KEEP
    assert template(target, legacy) == running["spec"]["template"]
    (warning,) = worker.versions.warnings
    assert warning == (
        "v3 keeps its injected variables of generation Current: the policy's environment HostPort waits for a"
        " new version"
    )


def secured(spec: WorkerSpec, changes: ConnectionChanges = ConnectionChanges.ALL_VERSIONS) -> WorkerSpec:
    connection = replace(spec.connection, mutual_tls_secret="renewed")  # noqa: S106 - the name of a Secret
    return replace(spec, connection=connection, policy=replace(spec.policy, connection_changes=changes))


def with_own_names(manifest: Manifest) -> Manifest:
    changed = deepcopy(manifest)
    container(changed)["env"].insert(0, OWN_KEY)
    changed["spec"]["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return changed


@pytest.mark.parametrize("annotated", [True, False])
def test_changed_connection_leaves_the_team_s_own_variables_and_volumes(*, annotated: bool) -> None:
    running = with_own_names(live("v1"))
    if not annotated:
        del running["metadata"]["annotations"]["twgen.io/injected"]
    spec = secured(SPEC)
    old = versions(plan([running, live("v3")], spec, {"v1": with_own_names(live("v1"))}))["v1"]
    assert (old.action, old.reason) == (UPDATE, "ConnectionChanged")
    pod = template(old, spec)["spec"]
    assert OWN_KEY in pod["containers"][0]["env"]
    assert [item["name"] for item in pod["volumes"]] == ["scratch", "temporal-tls"]


def test_changed_connection_that_would_take_a_name_of_the_team_s_own_is_not_applied() -> None:
    running = live("v1")
    running["spec"]["template"]["spec"]["volumes"] = [{"name": "temporal-tls", "emptyDir": {}}]
    worker = plan([running, live("v3")], secured(SPEC))
    old = versions(worker)["v1"]
    assert old.action is KEEP
    assert template(old) == running["spec"]["template"]
    assert any(text.startswith("v1 keeps the connection that it has: ") for text in worker.versions.warnings)


def test_names_injected_by_the_controller_are_told_by_its_hash() -> None:
    running = live("v1")
    del running["metadata"]["annotations"]["twgen.io/injected"]
    spec = secured(SPEC)
    old = versions(plan([running, live("v3")], spec))["v1"]
    assert old.reason == "ConnectionChanged"
    names = [item["name"] for item in template(old, spec)["spec"]["containers"][0]["env"]]
    assert names.count("TEMPORAL_ADDRESS") == 1
    assert "TEMPORAL_TLS_CLIENT_KEY_PATH" in names


def test_pace_of_a_rollout_reaches_a_live_target_at_once() -> None:
    spec = replace(SPEC, min_ready_seconds=30, progress_deadline_seconds=900)
    target = versions(plan([live("v3")], spec))["v3"]
    assert target.action is KEEP
    body = version_deployment(spec, target, "me")["spec"]
    assert (body["minReadySeconds"], body["progressDeadlineSeconds"]) == (30, 900)


def test_history_without_the_ledger_does_not_ask_it() -> None:
    spec = replace(SPEC, policy=replace(SPEC.policy, history=(HistorySource.CLUSTER,)))
    edited = live("v1")
    with_image(edited)
    assert versions(plan([edited, live("v3")], spec, {"v1": live("v1")}))["v1"].action is KEEP


def test_history_without_the_cluster_leaves_what_only_the_cluster_knows_to_its_protection() -> None:
    spec = replace(SPEC, policy=replace(SPEC.policy, history=(HistorySource.LEDGER,)))
    worker = plan([live("v1"), live("v3")], spec)
    assert (versions(worker)["v1"].action, versions(worker)["v1"].reason) == (
        VersionAction.NONE,
        "ManifestLost",
    )
    assert versions(worker)["v3"].action is KEEP


def test_second_deployment_of_a_build_id_is_noticed_and_left_alone() -> None:
    twin = live("v1", 4)
    twin["metadata"]["name"] = "payments-v1-by-hand"
    worker = plan([twin, live("v1", 2), live("v3")])
    old = versions(worker)["v1"]
    assert (old.deployment, old.replicas) == ("payments-v1", 2)
    (warning,) = worker.versions.warnings
    assert warning.startswith(
        "v1 has two Deployments: payments-v1 is the version's own, and payments-v1-by-hand"
    )


def test_deployment_that_is_being_deleted_is_created_again() -> None:
    going = live("v1", 2, deletionTimestamp="2026-11-21T11:59:00Z")
    old = versions(plan([going, live("v3")]))["v1"]
    assert (old.action, old.replicas, old.protected) == (VersionAction.CREATE, 2, True)
    assert "created again when it is gone" in old.because


def test_changed_connection_keeps_the_generation_of_names_that_the_code_reads() -> None:
    spec = secured(SPEC)
    spec = replace(spec, policy=replace(spec.policy, environment=EnvironmentNames.HOST_PORT))
    worker = plan([live("v1"), live("v3")], spec)
    for item in versions(worker).values():
        names = [entry["name"] for entry in template(item, spec)["spec"]["containers"][0]["env"]]
        assert item.reason == "ConnectionChanged"
        assert {"TEMPORAL_ADDRESS", "TEMPORAL_WORKER_BUILD_ID"} <= set(names)
        assert "TEMPORAL_HOST_PORT" not in names
    assert any("environment HostPort waits for a new version" in text for text in worker.versions.warnings)


def test_changed_address_that_reaches_running_versions_warns_of_the_workflows_there() -> None:
    moved = replace(SPEC.connection, host_port="elsewhere.example.com:7233")
    policy = replace(SPEC.policy, connection_changes=ConnectionChanges.ALL_VERSIONS)
    warnings = plan(
        [live("v1"), live("v3")], replace(SPEC, connection=moved, policy=policy)
    ).versions.warnings
    for name in ("v1", "v3"):
        assert any(text.startswith(f"{name} leaves temporal.example.com:7233 default") for text in warnings)


def test_variable_added_by_hand_stays_when_the_connection_changes() -> None:
    running = live("v1")
    container(running)["env"].append(OWN_KEY)
    spec = replace(SPEC, connection=replace(SPEC.connection, tls_server_name="temporal"))
    policy = replace(SPEC.policy, connection_changes=ConnectionChanges.ALL_VERSIONS)
    old = versions(plan([running, live("v3")], replace(spec, policy=policy)))["v1"]
    assert old.reason == "ConnectionChanged"
    assert OWN_KEY in template(old, spec)["spec"]["containers"][0]["env"]


@pytest.mark.parametrize("annotated", [True, False])
def test_key_added_by_hand_is_told_from_an_injected_one_by_the_recorded_connection(
    *, annotated: bool
) -> None:
    running = live("v1")
    key = {"name": "TEMPORAL_API_KEY", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "key"}}}
    container(running)["env"].append(key)
    if not annotated:
        del running["metadata"]["annotations"]["twgen.io/injected"]
    spec = replace(SPEC, connection=replace(SPEC.connection, tls_server_name="temporal"))
    policy = replace(SPEC.policy, connection_changes=ConnectionChanges.ALL_VERSIONS)
    old = versions(plan([running, live("v3")], replace(spec, policy=policy)))["v1"]
    rendered = template(old, spec)["spec"]["containers"][0]["env"]
    assert key in rendered


def test_version_on_its_way_to_zero_is_rendered_as_it_runs() -> None:
    locked = version_deployment(
        replace(SPEC, policy=replace(SPEC.policy, environment=EnvironmentNames.HOST_PORT)),
        replace(versions(plan([]))["v3"], build_id="v1"),
        "",
    )
    running = live("v1", 3)
    says = temporal(version("v1"), version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
    worker = planned(situation(says, [running, live("v3")], {"v1": locked}))
    old = versions(worker)["v1"]
    assert (old.action, old.replicas) == (VersionAction.SCALE_DOWN, 0)
    assert template(old) == running["spec"]["template"]


def test_version_restarted_by_hand_is_known_to_a_history_of_the_ledger_alone() -> None:
    spec = replace(SPEC, policy=replace(SPEC.policy, history=(HistorySource.LEDGER,)))
    restarted = live("v1")
    restarted["spec"]["template"]["metadata"]["annotations"] |= RESTARTED
    assert versions(plan([restarted, live("v3")], spec, {"v1": live("v1")}))["v1"].action is KEEP
