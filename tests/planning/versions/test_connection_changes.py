"""A connection that changes reaches the pods once, whatever it was before."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live
from tests.planning.versions.running import plan, versions
from twgen.model.spec import Connection, SecretKey
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
