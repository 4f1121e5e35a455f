"""A changed connection changes the injected variables and volumes of a recorded pod, and nothing else."""

from dataclasses import replace
from typing import Any

from tests.strategies import a_spec
from twgen.model.spec import WorkerSpec
from twgen.versioning.injection import Identity, Injection, injection, with_injection

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
