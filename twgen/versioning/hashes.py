"""The hashes that a version's Deployment records, to notice later what changed."""

from hashlib import sha256


def pod_template_hash(template_json: str) -> str:
    """Return the hash of a stored pod template, from Go's JSON of it."""
    return sha256(template_json.encode()).hexdigest()


def connection_hash(host_port: str, server_name: str, secret_name: str) -> str:
    """Return the hash of a connection, "" for one without an address.

    `secret_name` is the name of the mTLS secret, or else of the API key's secret, or "".
    """
    if not host_port:
        return ""
    return sha256(f"{host_port}{server_name}{secret_name}".encode()).hexdigest()
