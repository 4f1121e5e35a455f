"""What a policy, a connection and the state of a version change in the manifests."""

from dataclasses import replace
from typing import Any

import pytest

from tests.strategies import NOW, TARGET, a_spec, live_manifest, world
from twgen.model.operator import Caller
from twgen.model.policy import ConnectionChanges, EnvironmentNames, OnDelete, OwnerReferences
from twgen.model.spec import AttachedResource, Connection, SecretKey, WorkerSpec
from twgen.model.temporal import Drainage, Version, VersionStatus, WorkerDeployment
from twgen.planning.plan import plan_versions
from twgen.rendering.manifests import render_manifests

ME = Caller("me", forced=True)
TLS = "temporal-tls"
BUDGET = AttachedResource(
    "budget",
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabels": None}}},
    autoscales=False,
)
SCALER = AttachedResource(
    "scale",
    {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"annotations": {"team": "pay", "build": "{{ .BuildID }} of {{.DeploymentName}}"}},
        "spec": {"scaleTargetRef": None, "triggers": []},
    },
    autoscales=True,
    scales_from_zero=True,
)


def rendered(
    spec: WorkerSpec, manifests: list[dict[str, Any]], temporal: WorkerDeployment | None = None
) -> list[dict[str, Any]]:
    plan = plan_versions([spec], world(temporal, manifests), NOW, ME)
    return render_manifests(plan.workers, [], ME.of)


def deployment(spec: WorkerSpec, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = (item for item in rendered(spec, manifests) if item["kind"] == "Deployment")
    return found


def variables(found: dict[str, Any]) -> dict[str, Any]:
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def drained(build_id: str = "v1") -> WorkerDeployment:
    long_ago = NOW.replace(day=20)
    version = Version(
        build_id,
        VersionStatus.DRAINED,
        first_activated_at=long_ago,
        drainage=Drainage(VersionStatus.DRAINED, long_ago.replace(hour=15)),
    )
    return WorkerDeployment(versions=(version,))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (EnvironmentNames.CURRENT, {"TEMPORAL_ADDRESS", "TEMPORAL_WORKER_BUILD_ID"}),
        (EnvironmentNames.HOST_PORT, {"TEMPORAL_HOST_PORT", "WORKER_BUILD_ID"}),
        (EnvironmentNames.BINARY_CHECKSUM, {"TEMPORAL_HOST_PORT", "WORKER_BINARY_CHECKSUM"}),
    ],
)
def test_injected_names_are_those_of_the_policy(names: EnvironmentNames, expected: set[str]) -> None:
    spec = a_spec()
    spec = replace(spec, policy=replace(spec.policy, environment=names))
    found = variables(deployment(spec, []))
    assert set(found) == expected | {"TEMPORAL_NAMESPACE", "TEMPORAL_DEPLOYMENT_NAME"}


@pytest.mark.parametrize(
    ("on_delete", "options"),
    [
        (OnDelete.CONFIRM, "ServerSideApply=true,Prune=false,Delete=confirm"),
        (OnDelete.ORPHAN, "ServerSideApply=true,Prune=false,Delete=false"),
        (OnDelete.DELETE, "ServerSideApply=true,Prune=false"),
    ],
)
def test_protection_on_deletion_is_that_of_the_policy_also_for_what_is_attached(
    on_delete: OnDelete, options: str
) -> None:
    spec = replace(a_spec(), attached=(BUDGET,))
    found = rendered(replace(spec, policy=replace(spec.policy, on_delete=on_delete)), [])
    assert len(found) == len(["the Deployment", "its budget"])
    for item in found:
        annotations = item["metadata"]["annotations"]
        assert annotations["argocd.argoproj.io/sync-options"] == options
        assert annotations["argocd.argoproj.io/compare-options"] == "IgnoreExtraneous"


def test_version_on_its_way_out_is_not_protected() -> None:
    found = rendered(
        a_spec(), [live_manifest(a_spec(), "v1", 2), live_manifest(a_spec(), TARGET, 2)], drained()
    )
    (old,) = (item for item in found if item["metadata"]["name"].endswith("v1"))
    assert old["spec"]["replicas"] == 0
    assert old["metadata"]["annotations"] == {
        "twgen.io/identity": "me",
        "twgen.io/injected": (
            "TEMPORAL_ADDRESS,TEMPORAL_DEPLOYMENT_NAME,TEMPORAL_NAMESPACE,TEMPORAL_WORKER_BUILD_ID"
        ),
        "argocd.argoproj.io/sync-options": "ServerSideApply=true",
    }


def test_attached_objects_are_owned_by_a_live_deployment_unless_the_policy_says_no() -> None:
    spec, live = replace(a_spec(), attached=(BUDGET,)), [live_manifest(a_spec(), TARGET, 2)]
    (budget,) = (item for item in rendered(spec, live) if item["kind"] == "PodDisruptionBudget")
    assert budget["metadata"]["ownerReferences"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"payments-{TARGET}", "uid": f"uid-{TARGET}"}
    ]
    assert budget["spec"]["selector"]["matchLabels"]["temporal.io/build-id"] == TARGET
    spec = replace(spec, policy=replace(spec.policy, owner_references=OwnerReferences.NONE))
    (budget,) = (item for item in rendered(spec, live) if item["kind"] == "PodDisruptionBudget")
    assert "ownerReferences" not in budget["metadata"]


def test_annotation_that_is_called_as_a_target_stays_a_text() -> None:
    template = SCALER.template | {"metadata": {"annotations": {"scaleTargetRef": ""}}}
    spec = replace(a_spec(), attached=(replace(SCALER, template=template),))
    [scaler] = (item for item in rendered(spec, []) if item["kind"] == "ScaledObject")
    assert scaler["metadata"]["annotations"]["scaleTargetRef"] == ""
    assert scaler["spec"]["scaleTargetRef"]["name"] == f"payments-{TARGET}"


def test_scaler_of_a_version_at_zero_is_paused() -> None:
    spec = replace(a_spec(), attached=(SCALER,))
    live = [live_manifest(a_spec(), "v1", 2), live_manifest(a_spec(), TARGET, 2)]
    scalers = [item for item in rendered(spec, live, drained()) if item["kind"] == "ScaledObject"]
    paused = {
        item["spec"]["scaleTargetRef"]["name"]: item["metadata"]["annotations"].get(
            "autoscaling.keda.sh/paused-replicas"
        )
        for item in scalers
    }
    assert paused == {"payments-v1": "0", f"payments-{TARGET}": None}


def test_placeholders_are_filled_in_for_each_version() -> None:
    (scaler,) = (
        item for item in rendered(replace(a_spec(), attached=(SCALER,)), []) if item["kind"] == "ScaledObject"
    )
    assert scaler["metadata"]["annotations"]["build"] == f"{TARGET} of payments-{TARGET}"
    assert SCALER.template["metadata"]["annotations"]["build"] == "{{ .BuildID }} of {{.DeploymentName}}"


def test_changed_connection_replaces_what_was_injected_and_nothing_else() -> None:
    spec = a_spec()
    live = live_manifest(spec, TARGET, 2)
    container = live["spec"]["template"]["spec"]["containers"][0]
    container["env"].insert(0, {"name": "LOG_LEVEL", "value": "info"})
    spec = replace(spec, connection=replace(spec.connection, mutual_tls_secret=TLS))
    found = deployment(spec, [live])
    assert list(variables(found))[:2] == ["LOG_LEVEL", "TEMPORAL_ADDRESS"]
    assert variables(found)["TEMPORAL_TLS"] == "true"
    assert found["spec"]["template"]["spec"]["volumes"] == [
        {"name": "temporal-tls", "secret": {"secretName": "temporal-tls"}}
    ]
    back = replace(
        spec, connection=Connection("t", spec.connection.host_port, api_key_secret=SecretKey("k", "t"))
    )
    again = deployment(back, [{**found, "metadata": {**found["metadata"], "generation": 1}}])
    assert variables(again)["TEMPORAL_API_KEY"] == {"secretKeyRef": {"name": "k", "key": "t"}}
    assert "TEMPORAL_TLS" not in variables(again)
    assert "volumes" not in again["spec"]["template"]["spec"]


def test_changed_connection_waits_for_a_new_version_when_the_policy_says_so() -> None:
    spec = a_spec()
    live = live_manifest(spec, TARGET, 2)
    policy = replace(spec.policy, connection_changes=ConnectionChanges.NEW_VERSIONS_ONLY)
    changed = replace(spec.connection, mutual_tls_secret=TLS)
    found = deployment(replace(spec, connection=changed, policy=policy), [live])
    assert "TEMPORAL_TLS" not in variables(found)


def test_what_the_server_added_is_not_rendered() -> None:
    live = live_manifest(a_spec(), TARGET, 3)
    before = deployment(a_spec(), [live])
    live["metadata"]["annotations"] |= {
        "deployment.kubernetes.io/revision": "4",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/payments",
    }
    live["metadata"] |= {"resourceVersion": "77", "managedFields": [], "generation": 1}
    live["spec"] |= {
        "revisionHistoryLimit": 10,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
    pod = live["spec"]["template"]["spec"]
    pod |= {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    pod["containers"][0] |= {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    assert deployment(a_spec(), [live]) == before


def test_what_a_team_set_is_kept_though_a_server_has_another_default() -> None:
    live = live_manifest(a_spec(), TARGET, 3)
    live["spec"]["revisionHistoryLimit"] = 3
    live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
    found = deployment(a_spec(), [live])
    assert found["spec"]["revisionHistoryLimit"] == 3
    assert found["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 600
