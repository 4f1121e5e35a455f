"""A changed connection replaces what was injected, and never a variable or volume of the team."""

from copy import deepcopy
from dataclasses import replace

import pytest

from tests.planning.situations import SPEC, live
from tests.planning.versions.running import (
    KEEP,
    OWN_KEY,
    UPDATE,
    Manifest,
    container,
    plan,
    template,
    versions,
)
from tests.strategies import with_policy
from twgen.model.policy import ConnectionChanges, EnvironmentNames
from twgen.model.spec import WorkerSpec
from twgen.rendering.deployments import version_deployment


def test_ledger_locked_under_another_environment_restarts_nothing() -> None:
    legacy = with_policy(SPEC, environment=EnvironmentNames.HOST_PORT)
    locked = version_deployment(legacy, versions(plan([]))["v3"], "")
    running = live("v3")
    worker = plan([live("v1"), running], legacy, {"v3": locked})
    target = versions(worker)["v3"]
    assert target.action is KEEP
    assert template(target, legacy) == running["spec"]["template"]
    (warning,) = worker.versions.warnings
    assert warning == (
        "v3 keeps the injected variables of environment Current: its policy's environment HostPort applies"
        " only to a new version"
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
    assert any(text.startswith("v1 keeps its connection, ") for text in worker.versions.warnings)


def test_names_injected_by_the_controller_are_told_by_its_hash() -> None:
    running, spec = live("v1"), secured(SPEC)
    del running["metadata"]["annotations"]["twgen.io/injected"]
    old = versions(plan([running, live("v3")], spec))["v1"]
    assert old.reason == "ConnectionChanged"
    names = [item["name"] for item in template(old, spec)["spec"]["containers"][0]["env"]]
    assert names.count("TEMPORAL_ADDRESS") == names.count("TEMPORAL_TLS_CLIENT_KEY_PATH") == 1


def test_changed_connection_keeps_the_generation_of_names_that_the_code_reads() -> None:
    spec = secured(SPEC)
    spec = with_policy(spec, environment=EnvironmentNames.HOST_PORT)
    worker = plan([live("v1"), live("v3")], spec)
    for item in versions(worker).values():
        names = [entry["name"] for entry in template(item, spec)["spec"]["containers"][0]["env"]]
        assert item.reason == "ConnectionChanged"
        assert {"TEMPORAL_ADDRESS", "TEMPORAL_WORKER_BUILD_ID"} <= set(names)
        assert "TEMPORAL_HOST_PORT" not in names
    told = "its policy's environment HostPort applies only to a new version"
    assert any(told in text for text in worker.versions.warnings)


def test_changed_address_that_reaches_running_versions_warns_of_the_workflows_there() -> None:
    moved = replace(SPEC, connection=replace(SPEC.connection, host_port="elsewhere.example.com:7233"))
    spec = with_policy(moved, connection_changes=ConnectionChanges.ALL_VERSIONS)
    warnings = plan([live("v1"), live("v3")], spec).versions.warnings
    for name in ("v1", "v3"):
        assert any(text.startswith(f"{name} moves to the spec's address") for text in warnings)


NAMED = with_policy(
    replace(SPEC, connection=replace(SPEC.connection, tls_server_name="temporal")),
    connection_changes=ConnectionChanges.ALL_VERSIONS,
)


KEY_OF_A_SECRET = {"name": OWN_KEY["name"], "valueFrom": {"secretKeyRef": {"name": "mine", "key": "key"}}}


@pytest.mark.parametrize(
    ("key", "annotated"), [(OWN_KEY, True), (KEY_OF_A_SECRET, True), (KEY_OF_A_SECRET, False)]
)
def test_key_added_by_hand_is_told_from_an_injected_one_by_the_recorded_connection(
    key: Manifest, *, annotated: bool
) -> None:
    running = live("v1")
    container(running)["env"].append(key)
    if not annotated:
        del running["metadata"]["annotations"]["twgen.io/injected"]
    old = versions(plan([running, live("v3")], NAMED))["v1"]
    assert old.reason == "ConnectionChanged" or not annotated
    assert key in template(old, NAMED)["spec"]["containers"][0]["env"]
