"""Reading Connections."""

import re

from twgen.model.connection import Connection, SecretKey
from twgen.specs.fields import Fields

_HOST_PORT = re.compile(r"[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\]:[0-9]+")


def parse_connection(name: str, spec: Fields) -> Connection:
    """The Connection of a document's `spec`."""
    host_port = spec.text("hostPort", required=True)
    if host_port and not _HOST_PORT.fullmatch(host_port):
        spec.problem("hostPort", f"{host_port!r} is not host:port")
    if spec.has("mutualTLSSecretRef") and spec.has("apiKeySecretRef"):
        spec.problem("apiKeySecretRef", "a connection has mutualTLSSecretRef or apiKeySecretRef, not both")
    tls = spec.mapping("tls")
    connection = Connection(
        name=name,
        host_port=host_port,
        tls_server_name=tls.text("serverName"),
        mutual_tls_secret=_secret_name(spec),
        api_key_secret=_api_key(spec),
    )
    tls.close()
    spec.close()
    return connection


def _secret_name(spec: Fields) -> str:
    if not spec.has("mutualTLSSecretRef"):
        return spec.raw("mutualTLSSecretRef") or ""
    reference = spec.mapping("mutualTLSSecretRef")
    name = reference.text("name", required=True)
    reference.close()
    return name


def _api_key(spec: Fields) -> SecretKey | None:
    if not spec.has("apiKeySecretRef"):
        return None
    reference = spec.mapping("apiKeySecretRef")
    secret = SecretKey(reference.text("name", required=True), reference.text("key", required=True))
    reference.close("optional")
    return secret
