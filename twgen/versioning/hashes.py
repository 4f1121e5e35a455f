"""The hashes that a version's Deployment records, to notice later what changed."""

from functools import lru_cache
from hashlib import sha256

from twgen.model.connection import Connection


def pod_template_hash(template_json: str) -> str:
    """Return the hash of a stored pod template, from Go's JSON of it."""
    return sha256(template_json.encode()).hexdigest()


@lru_cache
def connection_hash(connection: Connection) -> str:
    """Return the hash of a connection: its address, TLS server name and Secret; "" without an address."""
    if not connection.host_port:
        return ""
    told = f"{connection.host_port}{connection.tls_server_name}{connection.secret_name}"
    return sha256(told.encode()).hexdigest()
