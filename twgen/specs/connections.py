"""The fields of a Connection, and the checks of its address."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twgen.model.problem import CONFLICT, NO_EFFECT, NOT_RENDERED, Problem, Rule
from twgen.model.spec import Connection, SecretKey, WorkerSpec
from twgen.specs.fields import Check, Fields, spec_shape

_CLOUD = (".tmprl.cloud", ".api.temporal.io")
_ENDPOINT = re.compile(r"(?P<namespace>[a-z0-9-]+\.(?!region\.)[a-z0-9-]+)\.tmprl\.cloud")
"""The endpoint of one namespace.

All other endpoints are regional: https://docs.temporal.io/cloud/namespaces.
"""
_REGION = re.compile(r"[^.]+\.(region\.tmprl\.cloud|[^.]+\.api\.temporal\.io)")
_LOOPBACK = {"::1", "0:0:0:0:0:0:0:1", "0.0.0.0", "::"}  # noqa: S104 - read, never bound

FILL_IN = "fill-in"
"""The placeholder that `twgen import` writes in place of a name that only a person knows."""
_CREDENTIALS = Rule(
    "cloud-credentials", "Temporal Cloud rejects connections without an API key or a certificate."
)
_LOCAL = Rule("local-address", "In a pod, localhost is the pod itself, not the Temporal server.")
NO_ADDRESS = f"{FILL_IN}:7233"


def _check(spec: Fields, connection: Connection) -> None:
    if connection.host_port == NO_ADDRESS:
        spec.problem("hostPort", NOT_RENDERED("is not filled in yet: write the address of Temporal"))
    if spec.has("mutualTLSSecretRef") and spec.has("apiKeySecretRef"):
        wrong = "a connection can have mutualTLSSecretRef or apiKeySecretRef, but not both"
        spec.problem("apiKeySecretRef", CONFLICT(wrong))
    if spec.mapping("tls").has("caCertSecretRef") and spec.has("mutualTLSSecretRef"):
        instead = "put the trusted certificates into ca.crt in the Secret of mutualTLSSecretRef"
        spec.problem("tls.caCertSecretRef", CONFLICT(f"conflicts with mutualTLSSecretRef: {instead}"))
    if connection.host_port and not connection.secret_name and is_cloud(connection.host_port):
        why = "is Temporal Cloud, which requires an API key or a certificate"
        if not (spec.has("mutualTLSSecretRef") or spec.has("apiKeySecretRef")):
            spec.warning("hostPort", _CREDENTIALS(f"{why}: write apiKeySecretRef or mutualTLSSecretRef"))


def _check_key(fields: Fields, reference: SecretKey) -> None:
    if reference.optional:
        fields.warning("optional", NO_EFFECT("has no effect: the key must exist"))


_CHECKS: Mapping[Any, Check] = {Connection: _check, SecretKey: _check_key}
SECRET_KEY = spec_shape(SecretKey, _CHECKS)
"""A reference to one key of a Secret or a ConfigMap."""
CONNECTION = spec_shape(Connection, _CHECKS)


def local_addresses(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each Connection whose address, such as localhost, is the pod itself."""
    all_connections = (worker.connection for worker in workers)
    connections = {
        (item.document.source, item.document.index, item.document.path): item for item in all_connections
    }
    for connection in connections.values():
        host = _host(connection.host_port).strip("[]")
        if host == "localhost" or host.endswith(".localhost") or host.startswith("127.") or host in _LOOPBACK:
            why = f"{host} is the pod itself: write the address of Temporal, unless a proxy runs in the pods"
            yield Problem.at(connection.document, "spec.hostPort", _LOCAL(why))


def is_cloud(host_port: str) -> bool:
    """Whether the address belongs to Temporal Cloud, which requires an API key or a certificate."""
    return _host(host_port).endswith(_CLOUD)


def why_not_of_cloud(host_port: str, server_name: str, namespace: str) -> str:
    """Why Temporal Cloud cannot have the namespace at this address; empty if it can, or if it is not Cloud.

    With a private link, only the TLS server name shows the namespace.
    """
    name = _host(host_port) if is_cloud(host_port) else server_name.lower()
    if endpoint := _ENDPOINT.fullmatch(name):
        own = endpoint["namespace"]
        if own == namespace:
            return ""
        if own.partition(".")[0] == namespace:
            return f"{name} serves namespace {own}, not {namespace}"
        return (
            f"{name} is the endpoint of {own}: write that namespace, or the endpoint of {namespace}"
            " in the Connection"
        )
    if _REGION.fullmatch(name) and namespace.count(".") != 1:
        such_as = f"{namespace.partition('.')[0]}.a1b2c"
        return f"the name of a Temporal Cloud namespace includes the account, such as {such_as}"
    return ""


def _host(host_port: str) -> str:
    return host_port.rpartition(":")[0].lower()
