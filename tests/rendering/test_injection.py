"""A changed connection changes the injected variables and volumes of a recorded pod, and nothing else."""

from dataclasses import replace
from typing import Any

from tests.strategies import a_spec
from twgen.rendering.injection import inject, replace_injection
from twgen.versioning.environment import Identity

IDENTITY = Identity("default", "shop/payments", "v3")
PLAIN = a_spec()
SECURED = replace(PLAIN, connection=replace(PLAIN.connection, mutual_tls_secret="client"))  # noqa: S106 - a name
POD = {"containers": [{"name": "worker", "env": [{"name": "MODE", "value": "fast"}]}], "nodeSelector": {}}


def names(pod: dict[str, Any]) -> list[str]:
    return [item["name"] for item in pod["containers"][0]["env"]]


def test_variable_that_stays_keeps_its_place() -> None:
    pod = inject(POD, PLAIN, IDENTITY)
    pod["containers"][0]["env"].append({"name": "LAST", "value": "$(TEMPORAL_ADDRESS)"})
    moved = replace(PLAIN, connection=replace(PLAIN.connection, host_port="elsewhere:7233"))
    changed = replace_injection(pod, moved, IDENTITY)
    assert names(changed) == names(pod)
    values = {item["name"]: item["value"] for item in changed["containers"][0]["env"]}
    assert values["TEMPORAL_ADDRESS"] == "elsewhere:7233"


def test_connection_that_gains_and_loses_its_secret_leaves_the_pod_as_it_was() -> None:
    plain, secured = inject(POD, PLAIN, IDENTITY), inject(POD, SECURED, IDENTITY)
    assert replace_injection(plain, SECURED, IDENTITY) == secured
    assert replace_injection(secured, PLAIN, IDENTITY) == plain


def test_pod_that_is_connected_anew_is_not_changed_in_place() -> None:
    pod = inject(POD, PLAIN, IDENTITY)
    before = repr(pod)
    replace_injection(pod, SECURED, IDENTITY)
    assert repr(pod) == before
    assert POD["containers"] == [{"name": "worker", "env": [{"name": "MODE", "value": "fast"}]}]
