"""Reading Connections."""

from twgen.model.problem import Document
from twgen.model.spec import Connection, SecretKey
from twgen.specs.fields import Fields
from twgen.specs.limits import HOST_PORT, SERVER_NAME


def parse_connection(name: str, spec: Fields, document: Document) -> Connection:
    """The Connection of a document, and of its `spec`."""
    if spec.has("mutualTLSSecretRef") and spec.has("apiKeySecretRef"):
        spec.problem("apiKeySecretRef", "a connection has mutualTLSSecretRef or apiKeySecretRef, not both")
    tls, certificate, key = (
        spec.mapping(field) for field in ("tls", "mutualTLSSecretRef", "apiKeySecretRef")
    )
    connection = Connection(
        name=name,
        host_port=spec.text("hostPort", required=True, form=HOST_PORT),
        tls_server_name=tls.text("serverName", form=SERVER_NAME),
        mutual_tls_secret=certificate.object_name("name", required=spec.has("mutualTLSSecretRef")),
        api_key_secret=parse_data_key(key) if spec.has("apiKeySecretRef") else None,
        document=document,
    )
    for fields in (tls, certificate, spec):
        fields.close()
    return connection


def parse_data_key(reference: Fields) -> SecretKey:
    """A reference to one key of a Secret or a ConfigMap."""
    selected = SecretKey(reference.object_name("name", required=True), reference.data_key("key"))
    if reference.boolean("optional"):
        reference.warning("optional", "has no effect: the key must be there")
    reference.close()
    return selected
