"""Entries of a ledger as `twgen lock` makes them."""

from dataclasses import replace
from typing import Any

from tests.strategies import NOW, a_spec
from twgen.model.policy import EnvironmentNames
from twgen.model.spec import Connection, SecretKey, WorkerSpec
from twgen.records.ledger import KIND, LedgerEntry, write_entry
from twgen.rendering.deployments import target_deployment
from twgen.versioning.names import TWGEN_API

CONNECTIONS = (
    Connection("plain", "temporal.example.com:7233"),
    Connection("named", "temporal.example.com:7233", tls_server_name="temporal"),
    Connection("mtls", "temporal.example.com:7233", mutual_tls_secret="certificate"),  # noqa: S106 - a name
    Connection("key", "temporal.example.com:7233", api_key_secret=SecretKey("secret", "key")),
)


def spec(image: str = "payments:v1", build_id: str = "v1", name: str = "payments") -> WorkerSpec:
    return a_spec(name, image, build_id)


def connected(connection: Connection, names: EnvironmentNames) -> WorkerSpec:
    """A worker of this connection, under a generation of variable names."""
    found = spec()
    return replace(found, connection=connection, policy=replace(found.policy, environment=names))


def entry(found: WorkerSpec | None = None) -> LedgerEntry:
    worker = found or spec()
    return LedgerEntry(worker.worker_deployment, worker.build_id, target_deployment(worker), NOW)


def ledger(*entries: LedgerEntry) -> dict[str, Any]:
    versions = [write_entry(each) for each in entries or (entry(),)]
    return {"apiVersion": TWGEN_API, "kind": KIND, "versions": versions}
