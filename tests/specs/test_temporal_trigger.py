"""Every field of KEDA's `temporal` trigger: what KEDA reads is in order, and all else is told."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.refused import bases, changed, refusals, strictly
from tests.specs.parsing import CONNECTION, attach, parsed, told, worker

METADATA = "spec.template.spec.triggers[0].metadata"
GONE = "(removed)"
FROM_ENVIRONMENT = (
    "endpoint",
    "namespace",
    "taskQueue",
    "workerDeploymentName",
    "workerDeploymentBuildId",
    "workflowTaskQueueForCount",
)
WHOLE = {
    "activationTargetQueueSize": "0",
    "enableTLS": "true",
    "endpoint": "temporal:7233",
    "includeRunningWorkflowCount": "true",
    "minConnectTimeout": "5",
    "namespace": "",
    "queueTypes": "workflow, activity,nexus",
    "targetQueueSize": "5",
    "taskQueue": "pay",
    "tlsServerName": "temporal.example.com",
    "unsafeSsl": "false",
    "workerDeploymentBuildId": "",
    "workerDeploymentName": "",
    "workflowTaskQueueForCount": "pay-workflows",
}
NUMBERS = ("activationTargetQueueSize", "minConnectTimeout", "targetQueueSize")
BOOLEANS = ("enableTLS", "includeRunningWorkflowCount", "unsafeSsl")
REMOVED = ("buildId", "buildIdFromEnv", "selectAllActive", "selectUnversioned")
BLANK = st.sampled_from(["", " "])
A_NUMBER = st.sampled_from(
    ["5", " 5 ", "-0", "0", "-1", "007", "+5", "1.0", "1e3", "ten", "null", "5 5", str(2**63 - 1), str(2**63)]
) | st.integers(-3, 2**70).map(str)
A_BOOLEAN = st.sampled_from(["true", " True ", "TRUE", "1", "t", "false", "F", "0", "tRUE", "yes", "on", "2"])
TYPES = st.lists(st.sampled_from(["workflow", " activity", "nexus ", "", "Workflow", "query"]), max_size=3)
A_NAME = st.sampled_from(["pay", "shop/pay:v1", "pay {{ .BuildID }}", "pay-{{ .BuildID }}", "pay's", "päy"])
VALUES: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(NUMBERS, BLANK | A_NUMBER),
    **dict.fromkeys(BOOLEANS, BLANK | A_BOOLEAN),
    **dict.fromkeys(REMOVED, BLANK | st.sampled_from(["false", "v1", "{{ .BuildID }}"])),
    "queueTypes": TYPES.map(",".join),
    "taskQueue": BLANK | A_NAME,
    "taskQueueFromEnv": BLANK | st.just("QUEUE"),
    "workflowTaskQueueForCount": BLANK | A_NAME,
    "workflowTaskQueueForCountFromEnv": BLANK | st.just("QUEUE"),
}


def scaled(**metadata: Any) -> dict[str, Any]:
    changes = {f"spec.triggers[0].metadata.{name}": value for name, value in metadata.items()}
    return changed(bases()["scaledobject"], changes)


def refused(metadata: dict[str, str]) -> set[str]:
    return {line.removeprefix(f"{METADATA}.").partition(":")[0] for line in refusals(scaled(**metadata))}


def number(text: str) -> int | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


def wrong_for_keda(metadata: dict[str, str]) -> set[str]:
    """The fields that KEDA cannot read, that it or its autoscaler refuses, or by which it counts nothing."""
    version = {name: text.replace("{{ .BuildID }}", "v1").strip() for name, text in metadata.items()}
    read = {name: text for name, text in version.items() if text}
    wrong = {name for name in REMOVED if name in read}
    for name in NUMBERS:
        value = number(read.get(name, "5"))
        if value is None or value < (name == "targetQueueSize"):
            wrong.add(name)
    true, false = {"1", "t", "T", "true", "True", "TRUE"}, {"0", "f", "F", "false", "False", "FALSE"}
    wrong |= {name for name in BOOLEANS if read.get(name, "true") not in true | false}
    types = {item.strip() for item in read.get("queueTypes", "nexus").split(",")}
    if types - {"workflow", "activity", "nexus", ""} or types == {""}:
        wrong.add("queueTypes")
    if {"taskQueue", "taskQueueFromEnv"}.isdisjoint(read):
        wrong.add("taskQueue")
    counted, counts = "workflowTaskQueueForCount", read.get("includeRunningWorkflowCount", "false")
    if counts in true:
        wrong |= {name for name in ("taskQueue", counted) if {" ", "'", "ä"} & {*read.get(name, "")}}
    if counts in false and not {counted, f"{counted}FromEnv"}.isdisjoint(read):
        wrong.add(counted)
    return wrong


@given(st.fixed_dictionaries({}, optional=VALUES))
@example({"targetQueueSize": str(2**63)})
@example({"queueTypes": ","})
def test_what_keda_refuses_is_refused_and_nothing_else(metadata: dict[str, str]) -> None:
    assert refused(metadata) == wrong_for_keda({"taskQueue": "pay", **metadata})


def test_all_fields_that_keda_has_are_in_order() -> None:
    assert strictly(scaled(**WHOLE)) == []


@pytest.mark.parametrize("name", [*FROM_ENVIRONMENT, "apiKey"])
def test_fields_that_keda_takes_from_the_environment_are_in_order(name: str) -> None:
    of_pods = {f"{name}FromEnv": "VARIABLE"} | ({name: GONE} if name in WHOLE else {})
    changes = {f"spec.triggers[0].metadata.{field}": value for field, value in of_pods.items()}
    assert strictly(changed(scaled(**WHOLE), changes)) == []


@pytest.mark.parametrize("name", sorted(WHOLE.keys() - FROM_ENVIRONMENT))
def test_field_that_keda_takes_from_no_environment_is_refused(name: str) -> None:
    assert refused({f"{name}FromEnv": "VARIABLE"}) == {f"{name}FromEnv"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("queueType", "queueTypes"),
        ("targetQueSize", "targetQueueSize"),
        ("namespac", "namespace"),
        ("buildID", "workerDeploymentBuildId"),
        ("taskQueues", "taskQueue"),
        ("threshold", "targetQueueSize"),
        ("backlogAge", ""),
    ],
)
def test_field_that_keda_does_not_know_is_refused(written: str, meant: str) -> None:
    hint = f"; did you mean {meant}?" if meant else ""
    assert strictly(scaled(**{written: "5"})) == [f"{METADATA}.{written}: KEDA has no such field{hint}"]


@pytest.mark.parametrize("name", ["apiKey", "ca", "cert", "key", "keyPassword"])
def test_credential_that_stands_in_the_trigger_is_refused(name: str) -> None:
    why = "KEDA reads this value only from a TriggerAuthentication: name one in authenticationRef"
    assert strictly(scaled(**{name: "secret"})) == [f"{METADATA}.{name}: {why}"]


@pytest.mark.parametrize(("name", "value"), [("buildId", "{{ .BuildID }}"), ("selectUnversioned", "false")])
def test_field_of_rules_based_versioning_is_refused_with_what_to_write(name: str, value: str) -> None:
    why = (
        "belongs to rules-based versioning: it does not select a version here, and KEDA 2.21 and later"
        " reject it"
    )
    assert strictly(scaled(**{name: value})) == [f"{METADATA}.{name}: {why}; remove it"]
    neither = {"workerDeploymentName": GONE, "workerDeploymentBuildId": GONE}
    pair = 'write workerDeploymentName: "" and workerDeploymentBuildId: ""'
    assert strictly(scaled(**neither, **{name: value})) == [f"{METADATA}.{name}: {why}; {pair}"]


def test_target_of_none_is_in_order_where_only_that_of_the_formula_counts() -> None:
    formula = {
        "spec.advanced.scalingModifiers": {"formula": "a + 1", "target": "2"},
        "spec.triggers[0].name": "a",
    }
    assert refused({"targetQueueSize": "0"}) == {"targetQueueSize"}
    assert refusals(changed(scaled(targetQueueSize="0"), formula)) == []


def of_worker(trigger: dict[str, Any], temporal_namespace: str = "default", **connection: Any) -> list[str]:
    """What is told of a worker's trigger, beside what a whole one has."""
    metadata = {"endpoint": "temporal.example.com:7233", "taskQueue": "pay", "namespace": ""}
    pair = {"workerDeploymentName": "", "workerDeploymentBuildId": ""}
    given = {
        name: value
        for name, value in {**metadata, **pair, **trigger.pop("metadata", {})}.items()
        if value is not GONE
    }
    triggers = [{"type": "temporal", "metadata": given, **trigger}]
    spec = {"scaleTargetRef": {}, "minReplicaCount": 1, "triggers": triggers}
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": temporal_namespace}
    found = parsed(
        worker(workerOptions=options),
        {**CONNECTION, "spec": {**CONNECTION["spec"], **connection}},
        attach({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": spec}),
    )
    return told((*found.problems, *found.unknown_fields, *found.warnings))


@pytest.mark.parametrize(
    ("metadata", "temporal_namespace", "is_told"),
    [
        ({"namespace": GONE}, "shop.a1b2c", True),
        ({"namespace": GONE, "namespaceFromEnv": " "}, "shop.a1b2c", True),
        ({"namespace": GONE}, "default", False),
        ({"namespace": None}, "shop.a1b2c", False),
        ({"namespace": "{{temporal_namespace}}"}, "shop.a1b2c", False),
        ({"namespace": GONE, "namespaceFromEnv": "TEMPORAL_NAMESPACE"}, "shop.a1b2c", False),
    ],
)
def test_trigger_without_a_namespace_is_warned_of_where_the_worker_has_another(
    metadata: dict[str, Any], temporal_namespace: str, *, is_told: bool
) -> None:
    why = "without namespace, KEDA queries Temporal namespace default, but the worker uses shop.a1b2c"
    found = of_worker({"metadata": metadata}, temporal_namespace)
    assert found == ([f'{METADATA}: {why}: write namespace: ""'] if is_told else [])


def test_namespace_that_is_misspelt_is_told_once() -> None:
    [found] = of_worker({"metadata": {"namespace": GONE, "namespac": ""}}, "shop.a1b2c")
    assert found == f"{METADATA}.namespac: KEDA has no such field; did you mean namespace?"


KEY, CERTIFICATE = {"apiKeySecretRef": {"name": "s", "key": "k"}}, {"mutualTLSSecretRef": {"name": "s"}}
CLOUD = "us-west-2.aws.api.temporal.io:7233"
REFERENCE = {"authenticationRef": {"name": "keda"}}


@pytest.mark.parametrize(
    ("trigger", "connection", "address"),
    [
        ({}, KEY, "temporal.example.com:7233"),
        ({}, CERTIFICATE, "temporal.example.com:7233"),
        (
            {"metadata": {"endpoint": GONE, "endpointFromEnv": "TEMPORAL_ADDRESS"}},
            KEY,
            "temporal.example.com:7233",
        ),
        ({"metadata": {"endpoint": CLOUD}}, {}, CLOUD),
        ({"metadata": {"apiKeyFromEnv": " "}}, KEY, "temporal.example.com:7233"),
        ({}, {}, None),
        (REFERENCE, KEY, None),
        ({"metadata": {"apiKeyFromEnv": "TEMPORAL_API_KEY"}}, KEY, None),
        ({"metadata": {"endpoint": "frontend.temporal:7233"}}, KEY, None),
        ({"metadata": {"endpoint": GONE, "endpointFromEnv": "FRONTEND"}}, KEY, None),
        ({"metadata": {"endpoint": CLOUD}, **REFERENCE}, {}, None),
    ],
)
def test_trigger_without_the_credentials_that_its_server_asks_for_is_warned_of(
    trigger: dict[str, Any], connection: dict[str, Any], address: str | None
) -> None:
    why = "so it cannot scale any version: name a TriggerAuthentication in authenticationRef"
    doubt = f"spec.template.spec.triggers[0]: KEDA has neither a key nor a certificate for {address}, {why}"
    assert of_worker(dict(trigger), "shop.a1b2c", **connection) == ([doubt] if address else [])


@pytest.mark.parametrize(
    "endpoint",
    [
        "temporal.example.com",
        "temporal.example.com:",
        ":7233",
        "temporal:0",
        "temporal:65536",
        "temporal :7233",
    ],
)
def test_address_without_a_host_and_a_port_is_refused(endpoint: str) -> None:
    why = f"{endpoint!r} is not host:port, such as temporal.example.com:7233"
    assert strictly(scaled(endpoint=endpoint)) == [f"{METADATA}.endpoint: {why}"]


@pytest.mark.parametrize("endpoint", ["[::1]:7233", "dns:///temporal.example.com:7233", "Temporal:7233"])
def test_address_that_grpc_takes_is_in_order(endpoint: str) -> None:
    assert refused({"endpoint": endpoint}) == set()


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("temporal.example.com:7233", ""),
        ("frontend.temporal:7233", ""),
        ("shop.a1b2c.tmprl.cloud:7233", ""),
        (CLOUD, ""),
        ("Temporal.example.com:7243", "connection temporal uses port 7233 of this host, not 7243"),
        (
            "other.a1b2c.tmprl.cloud:7233",
            "other.a1b2c.tmprl.cloud:7233 does not serve the worker's Temporal namespace shop.a1b2c",
        ),
    ],
)
def test_address_where_the_worker_is_not_is_warned_of(endpoint: str, why: str) -> None:
    found = of_worker({"metadata": {"endpoint": endpoint}, **REFERENCE}, "shop.a1b2c")
    assert found == ([f"{METADATA}.endpoint: {why}: write temporal.example.com:7233"] if why else [])


def test_credential_that_stands_in_the_trigger_is_told_once() -> None:
    [found] = of_worker({"metadata": {"apiKey": "secret"}}, **KEY)
    assert found.startswith(f"{METADATA}.apiKey: KEDA reads this value only from a TriggerAuthentication")
    assert "secret" not in found


def test_example_of_the_controller_for_keda_is_in_order() -> None:
    labels = ("temporal_worker_deployment_name", "temporal_worker_build_id", "temporal_namespace")
    tokens = ",".join(f'{label}="{{{{{label}}}}}"' for label in labels)
    prometheus = {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": f"x{{{tokens}}}"}}
    both = [*bases()["scaledobject"]["spec"]["triggers"], prometheus]
    assert strictly(changed(bases()["scaledobject"], {"spec.triggers": both})) == []
