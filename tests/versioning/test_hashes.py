from hashlib import sha256

from twgen.model.spec import Connection, SecretKey
from twgen.versioning.build_ids import connection_hash


def test_connection_without_an_address_has_no_hash() -> None:
    assert connection_hash(Connection("here", "", "server", "secret")) == ""


def test_connection_is_hashed_with_whom_it_trusts_before_its_credentials() -> None:
    """As the controller does since 1.12: ComputeConnectionSpecHash of internal/k8s/deployments.go."""
    key = SecretKey("key", "k")
    trusting = Connection("c", "temporal:7233", "server", "temporal-ca", api_key_secret=key)
    assert connection_hash(trusting) == sha256(b"temporal:7233servertemporal-cakey").hexdigest()
