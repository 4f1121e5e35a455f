"""Reading Connections."""

from collections.abc import Iterable, Iterator

from twgen.model.problem import Document, Problem
from twgen.model.spec import Connection, SecretKey, WorkerSpec
from twgen.specs.fields import Fields
from twgen.specs.limits import HOST_PORT, SERVER_NAME

_CLOUD = (".tmprl.cloud", ".api.temporal.io")
_LOOPBACK = {"::1", "0:0:0:0:0:0:0:1", "0.0.0.0", "::"}  # noqa: S104 - read, never bound


def parse_connection(name: str, spec: Fields, document: Document) -> Connection:
    """The Connection of a document, and of its `spec`."""
    if spec.has("mutualTLSSecretRef") and spec.has("apiKeySecretRef"):
        spec.problem("apiKeySecretRef", "a connection has mutualTLSSecretRef or apiKeySecretRef, not both")
    tls, certificate, key = (
        spec.mapping(field) for field in ("tls", "mutualTLSSecretRef", "apiKeySecretRef")
    )
    authority = tls.mapping("caCertSecretRef")
    if tls.has("caCertSecretRef") and spec.has("mutualTLSSecretRef"):
        instead = "put the certificates to trust into the Secret of mutualTLSSecretRef, as ca.crt"
        tls.problem("caCertSecretRef", f"cannot stand beside mutualTLSSecretRef: {instead}")
    connection = Connection(
        name=name,
        host_port=spec.text("hostPort", required=True, form=HOST_PORT),
        tls_server_name=tls.text("serverName", form=SERVER_NAME),
        ca_secret=authority.object_name("name", required=tls.has("caCertSecretRef")),
        mutual_tls_secret=certificate.object_name("name", required=spec.has("mutualTLSSecretRef")),
        api_key_secret=parse_data_key(key) if spec.has("apiKeySecretRef") else None,
        document=document,
    )
    if connection.host_port and not connection.secret_name and _host(connection).endswith(_CLOUD):
        why = "is Temporal Cloud, which lets nobody in without a key or a certificate"
        if not (spec.has("mutualTLSSecretRef") or spec.has("apiKeySecretRef")):
            spec.warning("hostPort", f"{why}: write apiKeySecretRef or mutualTLSSecretRef")
    for fields in (tls, authority, certificate, spec):
        fields.close()
    return connection


def local_addresses(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each Connection whose address is, for every pod, that pod itself."""
    found = (worker.connection for worker in workers)
    connections = {(item.document.source, item.document.index, item.document.path): item for item in found}
    for connection in connections.values():
        host = _host(connection).strip("[]")
        if host == "localhost" or host.endswith(".localhost") or host.startswith("127.") or host in _LOOPBACK:
            why = f"{host} is each pod itself: write the address that the cluster has for Temporal"
            yield Problem.at(connection.document, "spec.hostPort", f"{why}, unless a proxy runs in the pods")


def _host(connection: Connection) -> str:
    return connection.host_port.rpartition(":")[0].lower()


def parse_data_key(reference: Fields) -> SecretKey:
    """A reference to one key of a Secret or a ConfigMap."""
    selected = SecretKey(reference.object_name("name", required=True), reference.data_key("key"))
    if reference.boolean("optional"):
        reference.warning("optional", "has no effect: the key must be there")
    reference.close()
    return selected
