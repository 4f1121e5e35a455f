import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from testing.processes import free_ports
from testing.servers import TemporalServer, temporal_server
from tests.servers.live import SLACK
from tests.servers.reading import clients, read, read_all
from tests.servers.specs import worker_spec
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import TemporalClients
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model.problem import Document
from twgen.model.spec import Connection

SPEC = """
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {{name: here, namespace: default}}
spec: {{hostPort: "{address}"}}
---
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {{name: pay, namespace: default}}
spec:
  replicas: 1
  workerOptions: {{connectionRef: {{name: here}}, temporalNamespace: default}}
  rollout: {{strategy: AllAtOnce}}
  sunset: {{scaledownDelay: 1h, deleteDelay: 24h}}
  template: {{spec: {{containers: [{{name: worker, image: "example.com/pay:1.2.3"}}]}}}}
"""


@pytest.fixture
def silent_address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_refusal_names_address_and_namespace() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(
        StateUnavailable,
        match=rf"^Temporal at {address}, namespace 'default' .*'here';.* \(Connection refused\)$",
    ):
        read(worker_spec("pay", "v1", Connection("here", address)))


def test_name_that_does_not_resolve_is_unavailable() -> None:
    with pytest.raises(StateUnavailable, match=r"check the address of connection 'here'"):
        read(worker_spec("pay", "v1", Connection("here", "temporal.invalid:7233")))


def test_server_that_never_answers_is_cut_by_the_deadline(silent_address: str) -> None:
    started = time.monotonic()
    with pytest.raises(OutOfTime, match=rf"^Temporal at {silent_address}, .* within 0\.5 s"):
        read(worker_spec("pay", "v1", Connection("here", silent_address)), timeout=0.5)
    assert time.monotonic() - started < SLACK


def test_render_past_its_deadline_prints_one_line_on_stderr(silent_address: str, tmp_path: Path) -> None:
    (tmp_path / "worker.yaml").write_text(SPEC.format(address=silent_address))
    program = "import sys; from twgen.cli.main import main; sys.exit(main())"
    options = ["--no-cluster", "--timeout", "500ms"]
    ended = subprocess.run(
        [sys.executable, "-c", program, "render", tmp_path, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert "kind: RenderFailed" in ended.stdout
    [line] = ended.stderr.splitlines()
    asked = f"twgen: Temporal at {silent_address}, namespace 'default'"
    assert line.startswith(f"{asked} (for default/pay of {tmp_path / 'worker.yaml'}) did not answer")


def test_unlisted_connection_is_refused_by_naming_the_option(silent_address: str) -> None:
    spec = worker_spec("pay", "v1", Connection("here", silent_address))
    with pytest.raises(
        StateUnavailable, match=f"{silent_address}, .*'default'.*TWGEN_ALLOW_UNLISTED_CONNECTIONS"
    ):
        asyncio.run(read_all([spec], TemporalClients(Profiles, {})))


@pytest.mark.server
def test_unknown_namespace_is_not_an_unknown_worker(temporal: TemporalServer) -> None:
    spec = worker_spec("pay", "v1", temporal.connection, temporal_namespace="nowhere")
    with pytest.raises(StateUnavailable, match=f"{temporal.address}, namespace 'nowhere' .*no such namesp"):
        read(spec)


@pytest.mark.server
def test_refusal_of_one_worker_names_it_and_its_file(temporal: TemporalServer) -> None:
    refused = replace(
        worker_spec("a.b", "v1", temporal.connection), document=Document("specs/pay.yaml", 0, None)
    )
    others = [worker_spec(f"x{number}", "v1", temporal.connection) for number in range(5)]
    with pytest.raises(StateUnavailable) as raised:
        asyncio.run(read_all([*others, refused, *others], clients()))
    said = str(raised.value)
    assert "(for default/a.b of specs/pay.yaml): the server rejected a value in the spec: correct" in said


@pytest.mark.server
def test_worker_of_another_namespace_is_unknown(temporal: TemporalServer) -> None:
    temporal.create_namespace("payments")
    assert read(worker_spec("x", "v1", temporal.connection, temporal_namespace="payments")) is None


@pytest.mark.server
def test_one_failed_read_fails_all(temporal: TemporalServer, silent_address: str) -> None:
    spec = worker_spec("x", "v1", temporal.connection)
    hanging = replace(spec, connection=Connection("here", silent_address))
    with pytest.raises(OutOfTime, match=silent_address):
        asyncio.run(read_all([spec, hanging], clients(), timeout=1))


@pytest.mark.server
def test_many_workers_are_read_at_the_same_time(temporal: TemporalServer) -> None:
    specs = [worker_spec(f"x{number}", "v1", temporal.connection) for number in range(40)]
    world = asyncio.run(read_all(specs, clients(), for_routing=True))
    assert {key.worker_deployment: found.temporal for key, found in world.workers.items()} == {
        spec.worker_deployment: None for spec in specs
    }


@pytest.mark.server
def test_server_that_goes_away_is_asked_again_until_the_deadline(tmp_path: Path) -> None:
    with ExitStack() as until_stopped:
        server = until_stopped.enter_context(temporal_server(tmp_path))
        spec = worker_spec("x", "v1", server.connection)
        with asyncio.Runner() as runner:
            opened = clients()
            world = runner.run(read_all([spec], opened))
            assert world.workers[spec.key].temporal is None
            until_stopped.close()
            started = time.monotonic()
            with pytest.raises(StateUnavailable, match=f"{server.address}, .*is unavailable"):
                runner.run(read_all([spec], opened, timeout=5))
            assert 0.5 < time.monotonic() - started < 5 + SLACK


@pytest.mark.server
def test_nothing_of_the_sdk_reaches_stdout(
    temporal: TemporalServer, silent_address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    read(worker_spec("x", "v1", temporal.connection))
    with pytest.raises(OutOfTime):
        read(worker_spec("x", "v1", Connection("here", silent_address)), timeout=0.2)
    with pytest.raises(StateUnavailable):
        read(worker_spec("x", "v1", temporal.connection, temporal_namespace="nowhere"))
    assert capfd.readouterr().out == ""
