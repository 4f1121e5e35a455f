"""Whatever goes wrong on the way to Temporal: one line on stderr, nothing on stdout, inside the deadline."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.faults import Trouble, forwarding, hanging, refusing
from testing.processes import eventually
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker
from tests.servers.live import (
    ALONE,
    SLACK,
    Document,
    Ended,
    connection_document,
    planned,
    run,
    worker_document,
    write_specs,
)

pytestmark = pytest.mark.server

UNAVAILABLE, OUT_OF_TIME = 3, 4
WORKER = worker_document("troubled", "v1", gate="GateWorkflow")
READS_OF_A_PLAN = 7
"""The SDK's own hello, deployment, server, version, two task queues, one gate."""


@pytest.fixture(scope="module")
def server(
    newest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TemporalServer]:
    """A server on which a plan has much to read."""
    folder = write_specs(tmp_path_factory.mktemp("troubled"), newest_temporal.address, WORKER)
    with DeployedWorker(newest_temporal, "live/troubled", "troubled").version("v1"):
        eventually(lambda: planned(folder)[0]["gates"])
        yield newest_temporal


def run_against(
    address: str, folder: Path, *command: str, timeout: float, workers: tuple[Document, ...] = (WORKER,)
) -> Ended:
    write_specs(folder, address, *workers)
    return run(folder, *command, options=(*ALONE, "--timeout", f"{timeout * 1000:.0f}ms"))


def is_one_clean_line(ended: Ended, address: str, timeout: float, *codes: int) -> None:
    assert ended.code in codes, ended
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"twgen: Temporal at {address}, namespace 'default' (for live/")
    assert ended.seconds < timeout + SLACK


@pytest.mark.parametrize("command", ["render", "plan", "snapshot"])
def test_address_that_refuses(command: str, tmp_path: Path) -> None:
    with refusing() as address:
        ended = run_against(address, tmp_path, command, timeout=5)
    is_one_clean_line(ended, address, 0, UNAVAILABLE)
    assert "(Connection refused)" in ended.stderr


@pytest.mark.parametrize("command", ["render", "plan", "snapshot"])
def test_address_that_never_answers(command: str, tmp_path: Path) -> None:
    with hanging() as address:
        ended = run_against(address, tmp_path, command, timeout=0.5)
    is_one_clean_line(ended, address, 0.5, OUT_OF_TIME)


def test_address_of_something_else(server: TemporalServer, tmp_path: Path) -> None:
    address = f"127.0.0.1:{server.metrics_port}"
    is_one_clean_line(
        run_against(address, tmp_path, "render", timeout=1), address, 1, UNAVAILABLE, OUT_OF_TIME
    )


def test_slow_answers_are_waited_for(server: TemporalServer, tmp_path: Path) -> None:
    with forwarding(server.address, Trouble(pause=0.2)) as slow:
        ended = run_against(slow.address, tmp_path, "plan", timeout=20)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.seconds > 0.2 * READS_OF_A_PLAN


def test_answers_that_are_too_slow(server: TemporalServer, tmp_path: Path) -> None:
    with forwarding(server.address, Trouble(pause=2)) as slow:
        ended = run_against(slow.address, tmp_path, "plan", timeout=1)
    is_one_clean_line(ended, slow.address, 1, OUT_OF_TIME)


def test_server_that_takes_9_seconds_for_one_answer_in_a_hundred_is_read_inside_the_deadline(
    server: TemporalServer, tmp_path: Path
) -> None:
    with forwarding(server.address, Trouble(slow_every=100, slow_by=9)) as slow:
        write_specs(tmp_path, slow.address, *some(120))
        # without --timeout: all is read within 20 s, as at a terminal, or it ends with 4
        ended = run(tmp_path, "plan", options=("--no-cluster", "-q"))
    assert (ended.code, ended.stderr) == (0, "")
    assert slow.requests > 120
    assert ended.seconds > 9


def test_reads_of_a_worker_that_need_not_wait_for_each_other_do_not(
    server: TemporalServer, tmp_path: Path
) -> None:
    pause, steps = 3, 4
    # the SDK's hello; the deployment; the version and the server's; the task queues and the gate
    with forwarding(server.address, Trouble(slow_every=1, slow_by=pause)) as slow:
        timeout = pause * (steps + 2.5)
        assert timeout < pause * READS_OF_A_PLAN
        ended = run_against(slow.address, tmp_path, "plan", timeout=timeout)
    assert (ended.code, ended.stderr, slow.requests) == (0, "", READS_OF_A_PLAN)
    assert ended.seconds > pause * steps


@pytest.mark.parametrize("answer_bytes", [0, 1, 9, 40, 100, 200])
def test_answer_that_ends_in_the_middle(server: TemporalServer, tmp_path: Path, answer_bytes: int) -> None:
    with forwarding(server.address, Trouble(answer_bytes=answer_bytes)) as broken:
        ended = run_against(broken.address, tmp_path, "plan", timeout=1)
    is_one_clean_line(ended, broken.address, 1, UNAVAILABLE, OUT_OF_TIME)


@pytest.mark.parametrize("answered", range(READS_OF_A_PLAN))
def test_server_that_dies_after_some_reads(server: TemporalServer, tmp_path: Path, answered: int) -> None:
    with forwarding(server.address, Trouble(last_request=answered)) as dying:
        ended = run_against(dying.address, tmp_path, "plan", timeout=1)
    is_one_clean_line(ended, dying.address, 1, UNAVAILABLE, OUT_OF_TIME)


def test_plan_has_no_more_reads_than_those(server: TemporalServer, tmp_path: Path) -> None:
    with forwarding(server.address, Trouble(last_request=READS_OF_A_PLAN)) as counting:
        ended = run_against(counting.address, tmp_path, "plan", timeout=20)
    assert (ended.code, ended.stderr, counting.requests) == (0, "", READS_OF_A_PLAN)


def test_one_server_that_is_gone_fails_the_render_of_another(server: TemporalServer, tmp_path: Path) -> None:
    with refusing() as address:
        far = worker_document("far", "v1")
        far["spec"]["workerOptions"]["connectionRef"]["name"] = "far"
        connection = {
            "apiVersion": "temporal.io/v1alpha1",
            "kind": "Connection",
            "metadata": {"name": "far", "namespace": "live"},
            "spec": {"hostPort": address},
        }
        ended = run_against(server.address, tmp_path, "render", timeout=5, workers=(WORKER, far, connection))
    is_one_clean_line(ended, address, 5, UNAVAILABLE)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """A server that answers one deployment read a second in each namespace."""
    settings = {
        "frontend.globalNamespaceWorkerDeploymentReadRPS": 1,
        "frontend.globalNamespaceWorkerDeploymentReadBurstRatio": 1.0,
    }
    with temporal_server(tmp_path_factory.mktemp("limited"), NEWEST, settings=settings) as started:
        yield started


def some(count: int) -> tuple[Document, ...]:
    return tuple(worker_document(f"some-{number}", "v1") for number in range(count))


def test_status_shows_the_workers_of_a_healthy_server_beside_one_that_never_answers(
    server: TemporalServer, tmp_path: Path
) -> None:
    with hanging() as address:
        silent = connection_document(address)
        silent["metadata"]["name"] = "silent"
        workers = some(300)
        for worker in workers:
            worker["spec"]["workerOptions"]["connectionRef"]["name"] = "silent"
        write_specs(tmp_path, server.address, WORKER, silent, *workers)
        text, document = (
            run(tmp_path, "status", *form, options=(*ALONE, "--timeout", "5s"))
            for form in ((), ("-o", "json"))
        )
    assert text.code == document.code == OUT_OF_TIME
    assert text.stdout.startswith("live/troubled: ")
    assert "some-" not in text.stdout
    [line] = text.stderr.splitlines()
    assert line.startswith(f"twgen: 300 workers of {address} were not read: Temporal at {address}")
    assert text.seconds < 2 * 5 + SLACK
    assert document.stdout == "", "a program would take these workers for all of them"


def test_rate_limit_that_cannot_be_waited_out(limited: TemporalServer, tmp_path: Path) -> None:
    ended = run_against(limited.address, tmp_path, "render", timeout=2, workers=some(20))
    is_one_clean_line(ended, limited.address, 2, UNAVAILABLE, OUT_OF_TIME)
    assert "--timeout" in ended.stderr


def test_rate_limit_is_waited_out(limited: TemporalServer, tmp_path: Path) -> None:
    ended = run_against(limited.address, tmp_path, "render", timeout=30, workers=some(4))
    assert (ended.code, ended.stderr) == (0, "")
