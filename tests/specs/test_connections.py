"""How a worker names its connection, and whom it trusts."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker

CLUSTER = {**CONNECTION, "kind": "ClusterConnection", "metadata": {"name": "everywhere"}}
OWN = "a Connection belongs to the worker's namespace; a ClusterConnection is cluster-scoped"
ABSENT = "there is no ClusterConnection 'everywher' among the documents; did you mean everywhere?"


def referring(reference: dict[str, Any]) -> dict[str, Any]:
    return worker(workerOptions={"connectionRef": reference, "temporalNamespace": "default"})


def reference(**fields: Any) -> dict[str, Any]:
    whole = {"apiGroup": "temporal.io", "kind": "Connection", "name": "temporal", **fields}
    return {"objectRef": {name: value for name, value in whole.items() if value is not None}}


@pytest.mark.parametrize(
    ("written", "name"),
    [(reference(), "temporal"), (reference(kind="ClusterConnection", name="everywhere"), "everywhere")],
)
def test_object_reference_names_a_connection_by_its_kind(written: dict[str, Any], name: str) -> None:
    found = parsed(referring(written), CONNECTION, CLUSTER)
    assert found.problems == found.unknown_fields == found.warnings == found.deprecations == ()
    assert found.workers[0].connection.name == name


@pytest.mark.parametrize(
    ("written", "problems"),
    [
        (reference(kind=None), ["objectRef.kind: is required: Connection or ClusterConnection"]),
        (reference(name=None), ["objectRef.name: is required"]),
        (reference(namespace="shop"), [f"objectRef.namespace: must be left out: {OWN}"]),
        (reference(apiGroup="v1"), ["objectRef.apiGroup: 'v1' is not temporal.io"]),
        (reference(apiGroup=None), ["objectRef.apiGroup: is required: temporal.io"]),
        (reference(apiGroup=""), ["objectRef.apiGroup: '' is not temporal.io"]),
        (
            reference(kind="Secret"),
            ["objectRef.kind: 'Secret' is not one of Connection, ClusterConnection"],
        ),
        (
            {"name": "temporal", **reference()},
            ["name: conflicts with objectRef: write only objectRef.name"],
        ),
        (reference(kind="ClusterConnection", name="everywher"), [f"objectRef.name: {ABSENT}"]),
    ],
)
def test_object_reference_that_is_none_is_told_where_it_stands(
    written: dict[str, Any], problems: list[str]
) -> None:
    found = told(parsed(referring(written), CONNECTION, CLUSTER).problems)
    assert found == [f"spec.workerOptions.connectionRef.{problem}" for problem in problems]


def trusting(kind: str, **spec: Any) -> dict[str, Any]:
    tls = {"caCertSecretRef": {"name": "temporal-ca"}}
    return {**CONNECTION, "kind": kind, "spec": {**CONNECTION["spec"], "tls": tls, **spec}}


@pytest.mark.parametrize("kind", ["Connection", "ClusterConnection"])
def test_connection_names_the_secret_of_whom_to_trust(kind: str) -> None:
    document = trusting(kind, apiKeySecretRef={"name": "key", "key": "k"})
    if kind == "ClusterConnection":
        document = {**document, "metadata": {"name": "temporal"}}
    found = parsed(worker(), document)
    assert found.problems == found.unknown_fields == ()
    assert found.workers[0].connection.ca_secret == "temporal-ca"  # noqa: S105 - its name
    assert found.workers[0].connection.needs_credentials


def test_certificates_to_trust_belong_into_the_secret_of_a_client_certificate() -> None:
    document = trusting("Connection", mutualTLSSecretRef={"name": "client"})
    [problem] = told(parsed(worker(), document).problems)
    assert problem == (
        "spec.tls.caCertSecretRef: conflicts with mutualTLSSecretRef: put the trusted certificates into"
        " ca.crt in the Secret of mutualTLSSecretRef"
    )


def in_cloud(host: str, namespace: str, server_name: str = "") -> list[str]:
    spec = {"hostPort": f"{host}:7233", "mutualTLSSecretRef": {"name": "certificate"}}
    tls = {"tls": {"serverName": server_name}} if server_name else {}
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": namespace}
    found = parsed(worker(workerOptions=options), {**CONNECTION, "spec": spec | tls})
    assert found.problems == ()
    return told(found.warnings)


@pytest.mark.parametrize(
    ("host", "namespace", "doubt"),
    [
        (
            "orders.a1b2c.tmprl.cloud",
            "orders",
            "orders.a1b2c.tmprl.cloud serves namespace orders.a1b2c, not orders",
        ),
        (
            "orders.a1b2c.TMPRL.cloud",
            "billing.a1b2c",
            (
                "orders.a1b2c.tmprl.cloud is the endpoint of orders.a1b2c: write that"
                " namespace, or the endpoint of billing.a1b2c in the Connection"
            ),
        ),
        (
            "eu-west-1.aws.api.temporal.io",
            "orders",
            "the name of a Temporal Cloud namespace includes the account, such as orders.a1b2c",
        ),
        (
            "aws-eu-west-1.region.tmprl.cloud",
            "orders.a1b2c.tmprl.cloud",
            "the name of a Temporal Cloud namespace includes the account, such as orders.a1b2c",
        ),
    ],
)
def test_namespace_that_temporal_cloud_does_not_know_at_an_address_is_warned_of(
    host: str, namespace: str, doubt: str
) -> None:
    assert in_cloud(host, namespace) == [f"spec.workerOptions.temporalNamespace: {doubt}"]


def test_behind_a_private_link_the_name_on_the_certificate_tells_the_namespace() -> None:
    link = "vpce-1.us-east-1.vpce.amazonaws.com"
    assert len(in_cloud(link, "orders", "orders.a1b2c.tmprl.cloud")) == 1
    assert in_cloud(link, "orders.a1b2c", "orders.a1b2c.tmprl.cloud") == []
    assert in_cloud(link, "orders") == []


@pytest.mark.parametrize(
    ("host", "namespace"),
    [
        ("orders.a1b2c.tmprl.cloud", "orders.a1b2c"),
        ("eu-west-1.aws.api.temporal.io", "orders.a1b2c"),
        ("aws-eu-west-1.region.tmprl.cloud", "orders.a1b2c"),
        ("temporal.example.com", "orders"),
        ("saas-api.tmprl.cloud", "orders"),
        ("orders.a1b2c.tmprl.cloud.example.com", "orders"),
    ],
)
def test_namespace_that_its_address_may_know_is_in_order(host: str, namespace: str) -> None:
    assert in_cloud(host, namespace) == []


def test_namespace_that_is_wrong_by_itself_is_told_of_once() -> None:
    options = {"connectionRef": {"name": "temporal"}, "temporalNamespace": "{{ .Values.namespace }}"}
    connection = {"hostPort": "orders.a1b2c.tmprl.cloud:7233", "mutualTLSSecretRef": {"name": "c"}}
    found = parsed(worker(workerOptions=options), {**CONNECTION, "spec": connection})
    assert (len(found.problems), found.warnings) == (1, ())
    options["temporalNamespace"] = "orders.a1b2c"
    connection["hostPort"] = "https://orders.a1b2c.tmprl.cloud:7233"
    found = parsed(worker(workerOptions=options), {**CONNECTION, "spec": connection})
    assert (len(found.problems), found.warnings) == (1, ())
