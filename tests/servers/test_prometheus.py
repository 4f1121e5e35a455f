"""A ramp that is measured by a real Prometheus, of what a version itself exposes."""

import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

from testing.credentials import Authority
from testing.install import installed
from testing.leaks import credential
from testing.processes import eventually, free_ports, running
from testing.recipes import PROMETHEUS
from tests.servers.live import in_namespace, policy_document
from tests.servers.rollouts import Story as InCluster
from tests.servers.rollouts import describe_ramp, settled
from tests.servers.side_by_side import side_by_side
from tests.servers.terminal import SOON, Story, becomes_current, rolled_out
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
EXPOSED = b"""# TYPE failed_ratio gauge
failed_ratio{build_id="v2"} 0.25
failed_ratio{build_id="v1"} 0
# TYPE ratio_of_nothing gauge
ratio_of_nothing{build_id="v2"} NaN
"""


@contextmanager
def exposing() -> Iterator[str]:
    """What the workers expose; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(EXPOSED)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def prometheus(folder: Path, port: int, target: str) -> Iterator[None]:
    """One that asks the target every second; a second one of the same folder knows what the first one saw."""
    folder.mkdir(exist_ok=True)
    scraped = {"job_name": "workers", "static_configs": [{"targets": [target]}]}
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scraped]}
    (folder / "prometheus.yaml").write_text(write_documents([config]))
    command = [
        str(installed(PROMETHEUS)),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, folder / "log"):
        eventually(lambda: answers(f"http://127.0.0.1:{port}/-/ready"), SOON)
        yield


def answers(url: str) -> bool:
    try:
        with urlopen(url):  # noqa: S310 - that of a server of ours
            return True
    except OSError:
        return False


def metric(name: str, series: str, most: float, **more: Any) -> dict[str, Any]:
    query = f"sum({series}{{build_id='{{{{ .BuildID }}}}'}})"
    asked = {"query": query, "thresholdRange": {"max": most}, "interval": "10s", **more}
    return {"name": name, "prometheus": asked}


@side_by_side
def test_version_is_taken_back_by_what_it_exposes_and_held_while_prometheus_is_away(story: Story) -> None:
    [port] = free_ports(1)
    here = ("--prometheus", f"shared=http://127.0.0.1:{port}")
    metrics = [
        metric("well", "failed_ratio", 0.5),
        metric("broken", "failed_ratio", 0.1, server="shared", failureLimit=1),
        metric("absent", "nothing_of_the_kind", 1),
        metric("nothing", "ratio_of_nothing", 1),
    ]
    policy = {"analysis": {"initialDelay": "0s", "metrics": metrics}}

    def told(*options: str) -> tuple[str, dict[str, tuple[str, str]]]:
        """The reason of the traffic, and verdict and sentence of each metric."""
        plan = story.planned(*options)
        said = {one["metric"]: (one["verdict"], one["because"]) for one in plan["analysis"]}
        return plan["routing"]["reason"], said

    def fails() -> dict[str, tuple[str, str]]:
        reason, said = told(*here)
        assert reason == "AnalysisFailed", said
        return said

    folder = story.folder.with_name(f"{story.folder.name}-prometheus")
    with exposing() as target:
        with prometheus(folder, port, target):
            becomes_current(story, "v1")
            story.describe("v2", steps=(50,), policy=policy)
            story.start("v2")
            story.goes_to({"v1": 50, "v2": 50}, *here)
            said = eventually(fails, SOON)
            assert said["well"][0] == "Passes"
            assert said["well"][1].startswith("the newest point is 0.25; 0 of ")
            assert said["broken"][0] == "Fails"
            for name in ("absent", "nothing"):
                verdict, because = said[name]
                assert verdict == "Undecided"
                assert because.startswith("the newest point has no data")
        reason, said = told(*here)
        assert {verdict for verdict, _ in said.values()} == {"Undecided"}
        assert reason in {"RampPaused", "UpdateInProgress"}
        for _, because in said.values():
            assert because.startswith(
                f"it cannot be read: Prometheus shared at http://127.0.0.1:{port} cannot"
            )
        _, said = told()
        assert {because for _, because in said.values()} == {
            f"it cannot be read: no Prometheus {name}is available here: give --prometheus NAME=URL,"
            " or an --operator-config that lists it"
            for name in ("", "'shared' ")
        }
        with socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            _, said = told("--prometheus", f"shared=http://127.0.0.1:{silent.getsockname()[1]}")
        assert all("did not answer within 10 s" in because for _, because in said.values()), said
        assert story.shares() == {"v1": 50, "v2": 50}
        with prometheus(folder, port, target):
            rolled_out(story, lambda: story.shares() == {"v1": 100, "v2": 0}, *here)
            assert "are above 0.1" in story.planned()["routing"]["because"]


@contextmanager
def guarded(port: int, authority: Authority, token: str) -> Iterator[tuple[str, list[int]]]:
    """What stands before a Prometheus and lets only this token in; its address, and its answers."""
    answered: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, content = 401, b"who are you?"
            if (
                self.headers.get("Authorization") == f"Bearer {token}"
                and self.headers["X-Scope-OrgID"] == "a"
            ):
                kind = {"Content-Type": self.headers["Content-Type"]}
                request = Request(f"http://127.0.0.1:{port}{self.path}", body, kind)
                with urlopen(request) as answer:  # noqa: S310 - as above
                    status, content = 200, answer.read()
            answered.append(status)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    certificate, context = authority.server(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}", answered
        server.shutdown()


@side_by_side
def test_job_asks_with_the_secret_of_its_namespace_and_takes_its_version_back(story: InCluster) -> None:
    [port] = free_ports(1)
    folder = story.folder.parent / "prometheus"
    folder.mkdir()
    authority, token = Authority(folder, "authority"), credential(f"token-of-prometheus-{story.namespace}")
    held = {"token": token.encode(), "ca.crt": authority.file.read_bytes()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "gate", "namespace": story.namespace},
    }
    data = {name: b64encode(content).decode() for name, content in held.items()}
    story.cluster.apply([secret | {"data": data}])
    with exposing() as target, prometheus(folder, port, target), guarded(port, authority, token) as gate:
        url, answered = gate
        server = {"name": "shared", "url": url, "headers": {"X-Scope-OrgID": "a"}, "secretName": "gate"}
        told = replace(story, operator={"prometheus": [server]})
        settled(told)
        broken = metric("broken", "failed_ratio", 0.1)
        policy = policy_document("greeter", analysis={"initialDelay": "0s", "metrics": [broken]})
        worker = told.folder / "specs.yaml"
        describe_ramp(told, "v2")
        worker.write_text(worker.read_text() + write_documents([in_namespace(told.namespace, policy)[0]]))
        told.apply()
        status = told.stands("Blocked", "v2")
    assert status["reason"] == "Aborted", status
    assert "broken: the newest point is 0.25" in status["message"], status
    assert set(answered) == {200}
    assert told.share("v1") == 100
