from twgen.model.spec import Connection
from twgen.versioning.build_ids import connection_hash


def test_connection_without_an_address_has_no_hash() -> None:
    assert connection_hash(Connection("here", "", "server", "secret")) == ""
