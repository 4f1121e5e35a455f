"""The variables and volumes that connect a worker's pods to Temporal, as the controller injects them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twgen.model.connection import Connection
from twgen.model.policy import EnvironmentNames

TLS_VOLUME = "temporal-tls"
_TLS_FOLDER = "/etc/temporal/tls"


@dataclass(frozen=True, slots=True)
class _Names:
    address: str
    build_id: str
    tls: str
    client_key: str
    client_certificate: str


# Older names: what workers built for older releases of the controller read.
_NAMES = {
    EnvironmentNames.CURRENT: _Names(
        "TEMPORAL_ADDRESS",
        "TEMPORAL_WORKER_BUILD_ID",
        "TEMPORAL_TLS",
        "TEMPORAL_TLS_CLIENT_KEY_PATH",
        "TEMPORAL_TLS_CLIENT_CERT_PATH",
    ),
    EnvironmentNames.HOST_PORT: _Names(
        "TEMPORAL_HOST_PORT", "WORKER_BUILD_ID", "", "TEMPORAL_TLS_KEY_PATH", "TEMPORAL_TLS_CERT_PATH"
    ),
    EnvironmentNames.BINARY_CHECKSUM: _Names(
        "TEMPORAL_HOST_PORT", "WORKER_BINARY_CHECKSUM", "", "TEMPORAL_TLS_KEY_PATH", "TEMPORAL_TLS_CERT_PATH"
    ),
}
ADDRESS_NAMES = tuple(dict.fromkeys(names.address for names in _NAMES.values()))
NAMESPACE_NAME = "TEMPORAL_NAMESPACE"
DEPLOYMENT_NAME = "TEMPORAL_DEPLOYMENT_NAME"
_RECORDED_NAMES = {*ADDRESS_NAMES, NAMESPACE_NAME, DEPLOYMENT_NAME}
_CONNECTION_NAMES = frozenset(
    {"TEMPORAL_TLS_SERVER_NAME", "TEMPORAL_API_KEY"}.union(
        *({names.tls, names.client_key, names.client_certificate} for names in _NAMES.values())
    )
)
INJECTED_NAMES = frozenset(
    {NAMESPACE_NAME, DEPLOYMENT_NAME}.union(
        _CONNECTION_NAMES, *({names.address, names.build_id} for names in _NAMES.values())
    )
) - {""}
"""Every variable that may be injected, under any of the generations of names."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the pods of a version are, for Temporal."""

    temporal_namespace: str
    worker_deployment: str
    build_id: str


def environment(connection: Connection, who: Identity, names: EnvironmentNames) -> list[dict[str, Any]]:
    """The variables of every container, in the controller's order."""
    named = _NAMES[names]
    plain = {
        named.address: connection.host_port,
        NAMESPACE_NAME: who.temporal_namespace,
        DEPLOYMENT_NAME: who.worker_deployment,
        named.build_id: who.build_id,
    }
    if connection.tls_server_name:
        plain["TEMPORAL_TLS_SERVER_NAME"] = connection.tls_server_name
    if connection.mutual_tls_secret:
        plain |= {named.tls: "true"} if named.tls else {}
        plain |= {
            named.client_key: f"{_TLS_FOLDER}/tls.key",
            named.client_certificate: f"{_TLS_FOLDER}/tls.crt",
        }
    variables: list[dict[str, Any]] = [_variable(name, value) for name, value in plain.items()]
    if connection.api_key_secret and not connection.mutual_tls_secret:
        selector = {"name": connection.api_key_secret.name, "key": connection.api_key_secret.key}
        variables.append({"name": "TEMPORAL_API_KEY", "valueFrom": {"secretKeyRef": selector}})
    return variables


def volumes(connection: Connection) -> list[dict[str, Any]]:
    """The volumes of the pod that hold the worker's credentials."""
    if not connection.mutual_tls_secret:
        return []
    return [{"name": TLS_VOLUME, "secret": {"secretName": connection.mutual_tls_secret}}]


def volume_mounts(connection: Connection) -> list[dict[str, Any]]:
    """The mounts of every container for those volumes."""
    return [{"name": TLS_VOLUME, "mountPath": _TLS_FOLDER}] if connection.mutual_tls_secret else []


def recorded_variables(pod_template: Mapping[str, Any]) -> dict[str, str]:
    """The plain variables of the first container that records where its worker lives."""
    for container in pod_template.get("spec", {}).get("containers") or ():
        values = {
            item["name"]: item.get("value", "") for item in container.get("env") or () if "name" in item
        }
        if values.keys() & _RECORDED_NAMES:
            return values
    return {}


def _variable(name: str, value: str) -> dict[str, Any]:
    # Go's encoder leaves an empty value out
    return {"name": name, "value": value} if value else {"name": name}
