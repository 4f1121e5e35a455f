"""A cluster that cannot be asked: one line that says why, and never an empty answer."""

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from testing.processes import free_ports
from tests.clients import tls_server
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient, Part
from twgen.errors import OutOfTime, StateUnavailable


def kubeconfig(folder: Path, server: str, **user: object) -> Path:
    return tls_server.kubeconfig(folder / "kubeconfig", {"server": server}, user)


@pytest.fixture
def silent_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def ask(path: Path | str, context: str = "", timeout: float = 60) -> object:
    with closing(KubernetesClient(ClusterAccess(str(path), context))) as client:
        return asyncio.run(client.deployments("shop", "a", Deadline(timeout)))


def test_refused_connection_names_the_kubeconfig_and_the_namespace(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(
        StateUnavailable, match=rf"^Kubernetes \({path}\), namespace 'shop' cannot be reached.*refused"
    ):
        ask(path)


def test_server_that_never_answers_is_cut_by_the_deadline(tmp_path: Path, silent_port: int) -> None:
    started = time.monotonic()
    with pytest.raises(OutOfTime, match=r"^Kubernetes .* within 0\.4 s"):
        ask(kubeconfig(tmp_path, f"http://127.0.0.1:{silent_port}"), timeout=0.4)
    assert time.monotonic() - started < 5


def connected(folder: Path, address: str) -> closing[KubernetesClient]:
    return closing(KubernetesClient(ClusterAccess(str(kubeconfig(folder, address)))))


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """The address of a server that answers so many requests with these bytes, whatever they ask."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as pool:

        def answer() -> None:
            for text in answers:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(text)

        pool.submit(answer)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("date", "told"),
    [
        ("Sun, 22 Nov 2026 10:20:30 GMT", "2026-11-22T10:20:30+00:00"),
        ("Sun, 22 Nov 2026 10:20:30 -0000", "2026-11-22T10:20:30+00:00"),
        ("soon", None),
    ],
)
def test_time_of_an_answer_is_heard_when_it_tells_one(date: str, told: str | None, tmp_path: Path) -> None:
    head = f"HTTP/1.1 404 Not Found\r\nDate: {date}\r\nContent-Length: 2\r\n\r\n"
    with answering(head.encode() + b"{}") as address, connected(tmp_path, address) as client:
        asyncio.run(client.ask("GET", "/api/v1/nodes", Deadline(60)))
        heard = client.heard
    assert (heard and heard.server_time.isoformat()) == told
    assert not heard or time.monotonic() - heard.at < 10


def test_answer_that_is_cut_short_is_told_alike_however_much_of_it_came(tmp_path: Path) -> None:
    told = set()
    for came in (b"", b'{"items": ['):
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + came
        with answering(cut, cut) as address, pytest.raises(StateUnavailable) as failed:
            ask(kubeconfig(tmp_path, address))
        told.add(str(failed.value).replace(address, "there"))
    [only] = told
    assert only.endswith("(the answer was cut short)")


@pytest.mark.parametrize("content", [b"<html>Sign in</html>", b"[1, 2]", b""])
def test_what_answers_and_is_no_api_server_does_not_say_that_there_is_nothing(
    content: bytes, tmp_path: Path
) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    told = r"/api: the answer is not from an API server: check its address"
    with (
        answering(head + content) as address,
        connected(tmp_path, address) as client,
        pytest.raises(StateUnavailable, match=told),
    ):
        asyncio.run(client.ask("GET", "/api", Deadline(60)))


def test_login_that_failed_is_tried_again_by_the_next_request(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}")
    right = path.read_text()
    path.write_text("nothing: yet")

    async def twice() -> None:
        with closing(KubernetesClient(ClusterAccess(str(path)))) as client:
            with pytest.raises(StateUnavailable, match="cannot be used"):
                await client.ask("GET", "/api", Deadline(60))
            path.write_text(right)
            with pytest.raises(StateUnavailable, match="cannot be reached"):
                await client.ask("GET", "/api", Deadline(60))

    asyncio.run(twice())


def test_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateUnavailable, match=r"context 'there' of .* cannot be used: .*name 'there'"):
        ask(kubeconfig(tmp_path, "http://127.0.0.1:1"), "there")


def test_only_a_command_that_can_do_without_a_cluster_is_advised_to(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", kubeconfig(tmp_path, "http://127.0.0.1:1")):
        for is_optional in (False, True):
            access = ClusterAccess(str(path), is_optional=is_optional)
            with (
                closing(KubernetesClient(access)) as client,
                pytest.raises(StateUnavailable, match=r"cannot be (used|reached)") as refused,
            ):
                asyncio.run(client.ask("GET", "/api", Deadline(60)))
            assert ("--no-cluster" in str(refused.value)) is is_optional


def test_list_of_a_part_of_each_object_is_asked_for_as_such(tmp_path: Path) -> None:
    async def ask_all() -> None:
        with closing(KubernetesClient(ClusterAccess(str(path)))) as client:
            for only in (None, Part.METADATA, Part.NAME):
                await client.ask("GET", tls_server.PLACE, Deadline(60), only=only)

    with tls_server.serving() as served:
        path = tls_server.kubeconfig(tmp_path / "config", served.cluster, {"token": "a-token"})
        asyncio.run(ask_all())
    whole = "application/json"
    parts = [
        f"{whole};as={kind};g=meta.k8s.io;v=v1,{whole}" for kind in ("PartialObjectMetadataList", "Table")
    ]
    assert [one.accept for one in served.asked] == [whole, *parts]
