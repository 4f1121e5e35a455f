import gc
import socket
from contextlib import ExitStack

import pytest

from testing.faults import Trouble, forwarding


def test_way_that_closes_while_clients_connect_leaves_no_connection_open(
    recwarn: pytest.WarningsRecorder,
) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
        address = ":".join(map(str, server.getsockname()))
        for _ in range(50):
            with forwarding(address, Trouble()) as way:
                for _ in range(5):
                    host, port = way.address.split(":")
                    stack.enter_context(socket.create_connection((host, int(port))))
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
