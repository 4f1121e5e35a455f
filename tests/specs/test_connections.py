"""How a worker names its connection, and whom it trusts."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker

CLUSTER = {**CONNECTION, "kind": "ClusterConnection", "metadata": {"name": "everywhere"}}
OWN = "a Connection is of the worker's own namespace, a ClusterConnection of none"
ABSENT = "there is no ClusterConnection 'everywher' among the documents; did you mean everywhere?"


def referring(reference: dict[str, Any]) -> dict[str, Any]:
    return worker(workerOptions={"connectionRef": reference, "temporalNamespace": "default"})


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ({"apiGroup": "temporal.io", "kind": "Connection", "name": "temporal"}, "temporal"),
        ({"apiGroup": "temporal.io", "kind": "ClusterConnection", "name": "everywhere"}, "everywhere"),
        ({"kind": "ClusterConnection", "name": "everywhere"}, "everywhere"),
    ],
)
def test_object_reference_names_a_connection_by_its_kind(reference: dict[str, Any], name: str) -> None:
    found = parsed(referring({"objectRef": reference}), CONNECTION, CLUSTER)
    assert found.problems == found.unknown_fields == found.warnings == found.deprecations == ()
    assert found.workers[0].connection.name == name


@pytest.mark.parametrize(
    ("reference", "problems"),
    [
        (
            {"objectRef": {"name": "temporal"}},
            ["objectRef.kind: is required: Connection or ClusterConnection"],
        ),
        ({"objectRef": {"kind": "Connection"}}, ["objectRef.name: is required"]),
        (
            {"objectRef": {"kind": "Connection", "name": "temporal", "namespace": "shop"}},
            [f"objectRef.namespace: must be left out: {OWN}"],
        ),
        (
            {"objectRef": {"kind": "Connection", "name": "temporal", "apiGroup": "v1"}},
            ["objectRef.apiGroup: must be temporal.io"],
        ),
        (
            {"objectRef": {"kind": "Secret", "name": "temporal"}},
            ["objectRef.kind: 'Secret' is not one of Connection, ClusterConnection"],
        ),
        (
            {"name": "temporal", "objectRef": {"kind": "Connection", "name": "temporal"}},
            ["name: cannot stand beside objectRef: write objectRef.name alone"],
        ),
        (
            {"objectRef": {"kind": "ClusterConnection", "name": "everywher"}},
            [f"objectRef.name: {ABSENT}"],
        ),
    ],
)
def test_object_reference_that_is_none_is_told_where_it_stands(
    reference: dict[str, Any], problems: list[str]
) -> None:
    found = told(parsed(referring(reference), CONNECTION, CLUSTER).problems)
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
        "spec.tls.caCertSecretRef: cannot stand beside mutualTLSSecretRef: put the certificates to trust into"
        " the Secret of mutualTLSSecretRef, as ca.crt"
    )
