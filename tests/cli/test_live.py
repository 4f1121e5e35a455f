"""The connections of a command, from one read to the next."""

from pathlib import Path

import pytest

from tests.clients.tls_server import PLACE, kubeconfig, serving
from twgen.cli.live import Connections, Servers
from twgen.cli.settings import settings_of
from twgen.clients.deadline import Deadline
from twgen.errors import StateUnavailable


async def read_in_vain(opened: Connections) -> None:
    await opened.cluster_for("a test").ask("GET", PLACE, Deadline(20))
    raise StateUnavailable("in vain")


def test_read_after_a_failure_does_not_reach_another_cluster(tmp_path: Path) -> None:
    with serving() as served:
        path = kubeconfig(tmp_path / "config", served.cluster, {"token": "t"})
        with Servers(settings_of({"kubeconfig": str(path), "quiet": True})) as servers:
            with pytest.raises(StateUnavailable, match="in vain"):
                servers.run((), read_in_vain)
            path.write_text(path.read_text().replace("127.0.0.1", "127.0.0.2"))
            with pytest.raises(StateUnavailable, match="context 'here' now names another server"):
                servers.run((), read_in_vain)
    assert len(served.asked) == 1


def test_renewed_connections_do_not_reach_another_cluster(tmp_path: Path) -> None:
    async def read_twice(opened: Connections) -> None:
        await opened.cluster_for("a test").ask("GET", PLACE, Deadline(20))
        path.write_text(path.read_text().replace("127.0.0.1", "127.0.0.2"))
        await servers.renewed(opened).cluster_for("a test").ask("GET", PLACE, Deadline(20))

    with serving() as served:
        path = kubeconfig(tmp_path / "config", served.cluster, {"token": "t"})
        with (
            Servers(settings_of({"kubeconfig": str(path), "quiet": True})) as servers,
            pytest.raises(StateUnavailable, match="context 'here' now names another server"),
        ):
            servers.run((), read_twice)
    assert len(served.asked) == 1
