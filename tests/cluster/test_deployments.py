"""What a live Deployment's manifest says of the version that it runs."""

import json
from typing import Any

import pytest

from tests.planning.situations import live
from twgen.cluster.deployments import live_deployments, recorded_deployment
from twgen.model.world import LiveDeployment


def read(manifest: dict[str, Any]) -> LiveDeployment:
    (found,) = live_deployments([manifest])
    return found


def held_by(
    manager: str, *, subresource: str = "", field: str = "f:replicas", operation: str = "Update"
) -> dict[str, Any]:
    entry = {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {field: {}}}}
    return entry | ({"subresource": subresource} if subresource else {})


def last_applied(**spec: Any) -> dict[str, str]:
    return {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": spec})}


BY_DEFAULT = held_by("kubectl-client-side-apply")
APPLIED = held_by("argocd-controller", operation="Apply")
APPLIED_WITHOUT = held_by("argocd-controller", operation="Apply", field="f:template")
SCALED = held_by("keda", subresource="scale")


@pytest.mark.parametrize(
    ("replicas", "fields", "annotations", "external"),
    [
        pytest.param(1, [BY_DEFAULT], last_applied(), True, id="applied without, so the default"),
        pytest.param(1, [APPLIED_WITHOUT], {}, True, id="applied on the server without, so the default"),
        pytest.param(5, [BY_DEFAULT], last_applied(), False, id="applied without, five by no scaling"),
        pytest.param(1, [BY_DEFAULT], last_applied(replicas=1), False, id="applied as one"),
        pytest.param(1, [APPLIED], {}, False, id="applied on the server as one"),
        pytest.param(
            7, [APPLIED_WITHOUT], {}, True, id="applied on the server without, scaled by nobody known"
        ),
        pytest.param(7, [BY_DEFAULT, SCALED], last_applied(replicas=1), False, id="applied, then scaled"),
        pytest.param(7, [BY_DEFAULT, SCALED], last_applied(), True, id="applied without, then scaled"),
        pytest.param(7, [APPLIED, SCALED], {}, True, id="applied on the server, then scaled"),
        pytest.param(1, [], {}, False, id="one, and nothing is known of it"),
        pytest.param(1, [{"manager": "kubelet"}], {}, False, id="one, and nobody holds a field"),
        pytest.param(1, [held_by("argocd-controller")], {}, False, id="one, by Argo CD"),
        pytest.param(1, [held_by("kubectl", subresource="scale")], {}, True, id="one, by kubectl scale"),
    ],
)
def test_replicas_may_be_left_out_only_when_that_changes_nothing(
    replicas: int, fields: list[dict[str, Any]], annotations: dict[str, str], *, external: bool
) -> None:
    manifest = live("v1", replicas, managedFields=fields)
    manifest["metadata"]["annotations"] |= annotations
    assert read(manifest).replicas_are_external is external


@pytest.mark.parametrize("broken", ['{"replicas"', '{"replicas": ' + "[" * 100_000], ids=["cut", "deep"])
def test_last_applied_manifest_that_cannot_be_read_may_have_said_anything(broken: str) -> None:
    manifest = live("v1", 1, managedFields=[SCALED])
    manifest["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = broken
    assert not read(manifest).replicas_are_external


def test_replicas_are_read_and_left_out_they_are_one() -> None:
    assert [read(live("v1", replicas)).replicas for replicas in (0, 5)] == [0, 5]
    manifest = live("v1")
    del manifest["spec"]["replicas"]
    assert read(manifest).replicas == 1


@pytest.mark.parametrize(
    ("status", "serving"),
    [
        pytest.param({}, True, id="available"),
        pytest.param({"observedGeneration": 0}, False, id="of an older generation"),
        pytest.param({"availableReplicas": 0}, False, id="without a replica"),
        pytest.param(
            {"conditions": [{"type": "Available", "status": "Unknown"}]}, False, id="of unknown state"
        ),
        pytest.param(
            {"conditions": [{"type": "Progressing", "status": "True"}]}, False, id="only progressing"
        ),
        pytest.param({"conditions": None}, False, id="without conditions"),
    ],
)
def test_deployment_serves_only_when_it_is(status: dict[str, Any], *, serving: bool) -> None:
    manifest = live("v1")
    manifest["status"] |= status
    assert read(manifest).serving is serving


def test_new_deployment_without_status_does_not_serve() -> None:
    manifest = live("v1")
    del manifest["status"]
    assert not read(manifest).serving


def test_deployment_without_a_build_id_is_none_of_ours() -> None:
    manifest = live("v1")
    del manifest["metadata"]["labels"]["temporal.io/build-id"]
    del manifest["spec"]["selector"]
    manifest["spec"]["template"]["spec"]["containers"][0]["env"].pop()
    assert list(live_deployments([manifest, {"metadata": {}}])) == []


@pytest.mark.parametrize(
    "variable", ["TEMPORAL_WORKER_BUILD_ID", "WORKER_BUILD_ID", "WORKER_BINARY_CHECKSUM"]
)
@pytest.mark.parametrize("has_selector", [True, False])
def test_deployment_that_lost_its_build_id_label_counts_under_its_build_id(
    variable: str, *, has_selector: bool
) -> None:
    manifest = live("v1")
    assert not read(manifest).lost_labels
    del manifest["metadata"]["labels"]["temporal.io/build-id"]
    if not has_selector:
        del manifest["spec"]["selector"]
    manifest["spec"]["template"]["spec"]["containers"][0]["env"][-1]["name"] = variable
    found = read(manifest)
    assert (found.build_id, found.lost_labels) == ("v1", True)


def test_label_that_was_changed_by_hand_makes_no_other_version() -> None:
    manifest = live("v1")
    manifest["metadata"]["labels"]["temporal.io/build-id"] = "v2"
    assert (read(manifest).build_id, read(manifest).lost_labels) == ("v1", True)


def test_build_id_variable_of_somebody_elses_deployment_is_none_of_ours() -> None:
    env = [{"name": "WORKER_BUILD_ID", "value": "v1"}]
    pod = {"containers": [{"name": "web", "env": env}]}
    assert list(live_deployments([{"metadata": {"name": "web"}, "spec": {"template": {"spec": pod}}}])) == []


def test_deployment_that_has_been_deleted_is_terminating() -> None:
    assert not read(live("v1")).terminating
    assert read(live("v1", deletionTimestamp="2026-11-21T11:59:00Z")).terminating


def test_deployment_whose_rollout_somebody_paused_is_paused() -> None:
    manifest = live("v1")
    assert not read(manifest).paused
    manifest["spec"]["paused"] = True
    assert read(manifest).paused


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("conditions", "stalled"),
    [
        ([condition("Progressing", "True", "NewReplicaSetAvailable")], ""),
        ([condition("Available", "False", "MinimumReplicasUnavailable")], ""),
        (
            [condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "a" has\n timed out')],
            'ProgressDeadlineExceeded: ReplicaSet "a" has timed out',
        ),
        (
            [
                condition("Progressing", "True"),
                condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota"),
            ],
            "FailedCreate: exceeded quota",
        ),
        ([condition("ReplicaFailure", "True")], "ReplicaFailure"),
        ([{"type": "Progressing", "status": "False"}], "Progressing"),
    ],
)
def test_deployment_says_in_one_line_why_it_cannot_progress(
    conditions: list[dict[str, str]], stalled: str
) -> None:
    manifest = live("v1")
    manifest["status"]["conditions"] += conditions
    assert read(manifest).stalled == stalled


def test_manifest_tells_of_its_connection_by_any_generation_of_variables() -> None:
    manifest = live("v1")
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["env"] = [
        {"name": "TEMPORAL_HOST_PORT", "value": "old.example.com:7233"},
        {"name": "TEMPORAL_NAMESPACE", "value": "payments"},
    ]
    recorded = recorded_deployment(manifest)
    assert (recorded.address, recorded.temporal_namespace) == ("old.example.com:7233", "payments")
    assert recorded.worker_deployment == ""


def test_manifest_that_records_nothing_says_nothing() -> None:
    recorded = recorded_deployment({"spec": {"template": {"spec": {"containers": [{"name": "worker"}]}}}})
    assert (recorded.template_hash, recorded.connection_hash, recorded.address) == ("", "", "")
