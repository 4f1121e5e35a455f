"""A connection that changes reaches the pods once, whatever it was before."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live
from tests.planning.versions.running import plan, template, versions
from tests.strategies import live_manifest, with_policy
from twgen.model.spec import Connection, SecretKey, WorkerSpec
from twgen.rendering.deployments import version_deployment

CONNECTIONS = [
    replace(SPEC.connection, **more)
    for more in (
        {},
        {"tls_server_name": "server"},
        {"mutual_tls_secret": "client"},
        {"mutual_tls_secret": "client", "tls_server_name": "server"},
        {"ca_secret": "authority"},
        {"ca_secret": "authority", "api_key_secret": SecretKey("key", "k")},
        {"ca_secret": "authority", "tls_server_name": "server"},
        {"api_key_secret": SecretKey("key", "k")},
        {"api_key_secret": SecretKey("key", "k"), "tls_server_name": "server"},
    )
]


@pytest.mark.parametrize("before", range(len(CONNECTIONS)))
@pytest.mark.parametrize("after", range(len(CONNECTIONS)))
def test_connection_that_changes_restarts_the_pods_once(before: int, after: int) -> None:
    def rendered(connection: Connection, deployment: dict[str, Any]) -> dict[str, Any]:
        spec = replace(SPEC, connection=connection)
        target = versions(plan([live("v1"), deployment], spec))["v3"]
        return version_deployment(spec, target, "me")

    found = live("v3")
    for connection in (CONNECTIONS[before], CONNECTIONS[after]):
        changed = rendered(connection, found)
        found = {**found, **changed, "metadata": {**found["metadata"], **changed["metadata"]}}
        again = rendered(connection, found)
        assert again["spec"]["template"] == changed["spec"]["template"]


SIDECAR = {"name": "proxy", "image": "envoy:1", "resources": {}}
BESIDE = replace(
    SPEC,
    connection=replace(SPEC.connection, api_key_secret=SecretKey("key", "k")),
    template=replace(
        SPEC.template,
        content={
            **SPEC.template.content,
            "spec": {"containers": [*SPEC.template.content["spec"]["containers"], SIDECAR]},
        },
    ),
)
"""The worker with a sidecar and an API key."""
LIMITED = with_policy(BESIDE, credential_containers=("worker",))


def holders(pods: dict[str, Any]) -> set[str]:
    containers = pods["spec"]["containers"]
    return {item["name"] for item in containers for one in item["env"] if one["name"] == "TEMPORAL_API_KEY"}


def test_new_version_gets_its_credentials_only_where_the_policy_says() -> None:
    assert holders(template(versions(plan([live("v1")], LIMITED))["v3"], LIMITED)) == {"worker"}
    assert holders(template(versions(plan([live("v1")], BESIDE))["v3"], BESIDE)) == {"worker", "proxy"}


@pytest.mark.parametrize(("deployed_by", "spec"), [(BESIDE, LIMITED), (LIMITED, BESIDE)])
@pytest.mark.parametrize("in_ledger", [True, False])
def test_pods_of_running_versions_stay_as_they_are_when_the_policy_changes(
    deployed_by: WorkerSpec, spec: WorkerSpec, *, in_ledger: bool
) -> None:
    deployed = [live_manifest(deployed_by, build_id, 3) for build_id in ("v1", "v3")]
    ledger = {item["metadata"]["labels"]["temporal.io/build-id"]: item for item in deployed}
    found = plan(deployed, spec, ledger if in_ledger else None)
    for before in deployed:
        version = versions(found)[before["metadata"]["labels"]["temporal.io/build-id"]]
        assert template(version, spec) == before["spec"]["template"]
    [warning] = [text for text in found.warnings if "credential" in text]
    assert warning.startswith("v3 keeps its credentials in the same containers: its policy's")
    assert not [text for text in plan(deployed, deployed_by).warnings if "credential" in text]


@pytest.mark.parametrize(("spec", "edited"), [(BESIDE, "proxy"), (BESIDE, "worker"), (LIMITED, "worker")])
@pytest.mark.parametrize("build_id", ["v1", "v3"])
def test_credentials_that_a_person_removed_from_a_container_come_back(
    spec: WorkerSpec, edited: str, build_id: str
) -> None:
    applied, deployed = live_manifest(spec, build_id, 3), live_manifest(spec, build_id, 3)
    for container in deployed["spec"]["template"]["spec"]["containers"]:
        if container["name"] == edited:
            container["env"] = [item for item in container["env"] if item["name"] != "TEMPORAL_API_KEY"]
    found = versions(plan([deployed], spec, {build_id: applied}))[build_id]
    assert template(found, spec) == applied["spec"]["template"] != deployed["spec"]["template"]


def test_changed_connection_leaves_the_credentials_in_their_containers() -> None:
    deployed = live_manifest(LIMITED, "v3", 3)
    for connection in (
        replace(LIMITED.connection, tls_server_name="server"),
        replace(LIMITED.connection, api_key_secret=SecretKey("other", "k")),
    ):
        moved = replace(BESIDE, connection=connection)
        pods = template(versions(plan([deployed], moved))["v3"], moved)
        assert holders(pods) == {"worker"}
        assert pods != deployed["spec"]["template"]
