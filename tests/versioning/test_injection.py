"""A changed connection changes the injected variables and volumes of a recorded pod, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from tests.strategies import a_spec
from twgen.model.policy import EnvironmentNames
from twgen.model.spec import SecretKey, WorkerSpec
from twgen.versioning.build_ids import connection_hash
from twgen.versioning.injection import (
    Identity,
    Injection,
    connection_fits,
    injection,
    injection_found,
    is_injected_throughout,
    possible_names,
    with_injection,
)

IDENTITY = Identity("default", "shop/payments", "v3")
PLAIN = a_spec()
SECURED = replace(PLAIN, connection=replace(PLAIN.connection, mutual_tls_secret="client"))  # noqa: S106 - a name
POD = {"containers": [{"name": "worker", "env": [{"name": "MODE", "value": "fast"}]}], "nodeSelector": {}}


def of(spec: WorkerSpec) -> Injection:
    return injection(spec.connection, IDENTITY, spec.policy.environment)


def names(pod: dict[str, Any]) -> list[str]:
    return [item["name"] for item in pod["containers"][0]["env"]]


def test_variable_that_stays_keeps_its_place() -> None:
    pod = with_injection(POD, of(PLAIN))
    pod["containers"][0]["env"].append({"name": "LAST", "value": "$(TEMPORAL_ADDRESS)"})
    moved = replace(PLAIN, connection=replace(PLAIN.connection, host_port="elsewhere:7233"))
    changed = with_injection(pod, of(moved), of(PLAIN).names)
    assert names(changed) == names(pod)
    values = {item["name"]: item["value"] for item in changed["containers"][0]["env"]}
    assert values["TEMPORAL_ADDRESS"] == "elsewhere:7233"


def test_connection_that_gains_and_loses_its_secret_leaves_the_pod_as_it_was() -> None:
    plain, secured = with_injection(POD, of(PLAIN)), with_injection(POD, of(SECURED))
    assert with_injection(plain, of(SECURED), of(PLAIN).names) == secured
    assert with_injection(secured, of(PLAIN), of(SECURED).names) == plain


def test_pod_that_is_connected_anew_is_not_changed_in_place() -> None:
    pod = with_injection(POD, of(PLAIN))
    before = repr(pod)
    with_injection(pod, of(SECURED), of(PLAIN).names)
    assert repr(pod) == before
    assert POD["containers"] == [{"name": "worker", "env": [{"name": "MODE", "value": "fast"}]}]


def test_variable_of_the_team_s_own_is_never_taken_for_an_injected_one() -> None:
    own = {"name": "TEMPORAL_API_KEY", "value": "of the team"}
    volume = {"name": "temporal-tls", "emptyDir": {}}
    pod = {"containers": [{"name": "worker", "env": [own]}], "volumes": [volume]}
    connected = with_injection(pod, of(PLAIN))
    changed = with_injection(connected, of(PLAIN), of(PLAIN).names)
    assert changed == connected
    assert own in changed["containers"][0]["env"]
    assert changed["volumes"] == [volume]


TWO = {"containers": [{"name": "proxy"}, {"name": "worker"}]}


@pytest.mark.parametrize("generation", EnvironmentNames)
@pytest.mark.parametrize(
    ("credentials", "secret"),
    [
        ({"api_key_secret": SecretKey("key", "k")}, {"TEMPORAL_API_KEY"}),
        ({"mutual_tls_secret": "client"}, {"temporal-tls"}),
    ],
)
def test_only_the_holders_get_the_credentials_and_all_containers_the_rest(
    generation: EnvironmentNames, credentials: dict[str, Any], secret: set[str]
) -> None:
    connection = replace(PLAIN.connection, tls_server_name="server", **credentials)
    everywhere = with_injection(TWO, injection(connection, IDENTITY, generation))
    limited = with_injection(TWO, injection(connection, IDENTITY, generation, ("worker",)))
    proxy, worker = limited["containers"]
    assert worker == everywhere["containers"][1]
    assert limited.get("volumes") == everywhere.get("volumes")
    kept = {item["name"] for item in (*proxy["env"], *proxy.get("volumeMounts", ()))}
    left_out = {item["name"] for item in (*worker["env"], *worker.get("volumeMounts", ()))} - kept
    assert secret <= left_out <= {*secret, *(name for name in left_out if "KEY" in name or "CERT" in name)}
    found = injection_found(limited, injection(connection, IDENTITY, generation).names)
    assert found == injection(connection, IDENTITY, generation)
    of_version = (found.names, IDENTITY.worker_deployment, IDENTITY.build_id)
    assert is_injected_throughout(limited, *of_version, {"worker"})
    assert not is_injected_throughout(limited, *of_version), "the proxy has lost its credentials"


TRUSTING = replace(PLAIN, connection=replace(PLAIN.connection, ca_secret="temporal-ca"))  # noqa: S106 - a name
KEY = SecretKey("key", "k")
TRUSTING_KEY = replace(TRUSTING, connection=replace(TRUSTING.connection, api_key_secret=KEY))
MOUNT = {"name": "temporal-tls-ca", "mountPath": "/etc/temporal/tls-ca"}
VOLUME = {"name": "temporal-tls-ca", "secret": {"secretName": "temporal-ca"}}


def test_certificates_to_trust_are_injected_last() -> None:
    found = of(TRUSTING_KEY)
    assert found.variables[-3:] == (
        {"name": "TEMPORAL_API_KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
        {"name": "TEMPORAL_TLS", "value": "true"},
        {"name": "TEMPORAL_TLS_SERVER_CA_CERT_PATH", "value": "/etc/temporal/tls-ca/ca.crt"},
    )
    assert (found.mounts, found.volumes) == ((MOUNT,), (VOLUME,))


@pytest.mark.parametrize("spec", [PLAIN, SECURED, TRUSTING, TRUSTING_KEY])
@pytest.mark.parametrize("other", [PLAIN, SECURED, TRUSTING, TRUSTING_KEY])
def test_injection_of_any_connection_makes_room_for_that_of_any_other(
    spec: WorkerSpec, other: WorkerSpec
) -> None:
    found = with_injection(with_injection(POD, of(spec)), of(other), of(spec).names)
    wanted = with_injection(POD, of(other))
    # what stays keeps its place
    assert sorted(names(found)) == sorted(names(wanted))
    assert injection_found(found, of(other).names).names == of(other).names
    assert (found.get("volumes"), found["containers"][0].get("volumeMounts")) == (
        wanted.get("volumes"),
        wanted["containers"][0].get("volumeMounts"),
    )


@pytest.mark.parametrize("generation", EnvironmentNames)
@pytest.mark.parametrize("spec", [PLAIN, SECURED, TRUSTING, TRUSTING_KEY])
def test_names_and_hash_of_an_injection_are_found_again_in_a_pod(
    spec: WorkerSpec, generation: EnvironmentNames
) -> None:
    wanted = injection(spec.connection, IDENTITY, generation)
    pod = with_injection(POD, wanted)
    assert possible_names(pod)[0] == wanted.names
    assert connection_fits(pod, wanted.names, connection_hash(spec.connection))
    assert is_injected_throughout(pod, wanted.names, IDENTITY.worker_deployment, IDENTITY.build_id)
