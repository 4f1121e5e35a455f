"""Writes the configuration of the newest Temporal server: one process, in memory, only on loopback."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.credentials import Certificate

SERVICES = ("frontend", "internal-frontend", "matching", "history", "worker")
"""The server's own workers use the second service, which does not require credentials."""

PORTS = 2 * len(SERVICES) + 1
"""The number of ports of a server. The first is for clients, the last for metrics."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The credentials that a server requires from its clients."""

    certificate: Certificate | None = None
    """The server's own certificate; without it, the server does not use TLS."""
    client_authority: Path | None = None
    """If set, clients need a certificate of this authority."""
    key_set: Path | None = None
    """If set, clients need an API key signed with one of these keys."""


def write_configuration(
    folder: Path, ports: Sequence[int], settings: Mapping[str, Any], demands: Demands
) -> Path:
    """Write the configuration file, and the file of dynamic settings to which it refers."""
    dynamic = write_settings(folder, ports[0], settings)
    file = folder / f"configuration-{ports[0]}.yaml"
    file.write_text(json.dumps(_configuration(ports, dynamic, demands)))
    return file


def write_settings(folder: Path, port: int, settings: Mapping[str, Any]) -> Path:
    """Add or replace dynamic settings in the file of the server at this port.

    A running server reads the file every ten seconds.
    """
    file = folder / f"settings-{port}.yaml"
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**before, **{key: [{"value": value}] for key, value in settings.items()}}))
    return file


def _configuration(ports: Sequence[int], dynamic: Path, demands: Demands) -> dict[str, Any]:
    return {
        "log": {"stdout": True, "level": "warn"},
        "persistence": _persistence(),
        "global": _global(ports[-1], demands),
        "services": {
            service: {"rpc": {"grpcPort": grpc, "membershipPort": membership, "bindOnLocalHost": True}}
            for service, grpc, membership in zip(SERVICES, ports[::2], ports[1::2], strict=False)
        },
        "clusterMetadata": _cluster(ports[0]),
        "dcRedirectionPolicy": {"policy": "noop"},
        "dynamicConfigClient": {"filepath": str(dynamic), "pollInterval": "10s"},
    }


def _persistence() -> dict[str, Any]:
    stores = ("default", "visibility")
    return {
        "defaultStore": stores[0],
        "visibilityStore": stores[1],
        "numHistoryShards": 1,
        "datastores": {store: {"sql": _sqlite(store)} for store in stores},
    }


def _sqlite(name: str) -> dict[str, Any]:
    return {
        "pluginName": "sqlite",
        "databaseName": name,
        "connectAddr": "localhost",
        "connectProtocol": "tcp",
        "connectAttributes": {"mode": "memory", "cache": "private", "setup": "true"},
        "maxConns": 1,
        "maxIdleConns": 1,
        # no maxConnLifetime, because the in-memory database ends with its connection
    }


def _global(metrics_port: int, demands: Demands) -> dict[str, Any]:
    found: dict[str, Any] = {
        "membership": {"maxJoinDuration": "30s", "broadcastAddress": "127.0.0.1"},
        "metrics": {"prometheus": {"timerType": "histogram", "listenAddress": f"127.0.0.1:{metrics_port}"}},
    }
    if demands.certificate:
        found["tls"] = {"frontend": {"server": _listener(demands.certificate, demands.client_authority)}}
    if demands.key_set:
        found["authorization"] = {
            "authorizer": "default",
            "claimMapper": "default",
            "jwtKeyProvider": {"keySourceURIs": [demands.key_set.as_uri()]},
        }
    return found


def _listener(certificate: Certificate, client_authority: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "certFile": str(certificate.certificate),
        "keyFile": str(certificate.key),
        "requireClientAuth": client_authority is not None,
    }
    return {**found, "clientCaFiles": [str(client_authority)]} if client_authority else found


def _cluster(port: int) -> dict[str, Any]:
    return {
        "enableGlobalNamespace": False,
        "failoverVersionIncrement": 10,
        "masterClusterName": "active",
        "currentClusterName": "active",
        "clusterInformation": {
            "active": {
                "enabled": True,
                "initialFailoverVersion": 1,
                "rpcName": "frontend",
                "rpcAddress": f"127.0.0.1:{port}",
            }
        },
    }
