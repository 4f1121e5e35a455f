"""The workers that the documentation shows, with nothing but what twgen injects into their pods."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testing.building import built_program
from testing.install import TEMPORAL_CLI, installed
from testing.processes import eventually, running
from testing.security import Security
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import credential_variables
from twgen.model.policy import EnvironmentNames
from twgen.model.spec import Connection, SecretKey
from twgen.versioning.injection import Identity, injection

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
WORKER = "shop/payments"
SECRETS: Mapping[Security, Mapping[str, Any]] = {
    Security.NONE: {},
    Security.MUTUAL_TLS: {"mutual_tls_secret": "temporal-client"},
    Security.API_KEY: {"api_key_secret": SecretKey("temporal-key", "key")},
}


@pytest.fixture(scope="module", params=SECRETS, ids=lambda security: security.value)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TemporalServer]:
    if request.param is Security.NONE:
        yield request.getfixturevalue("newest_temporal")
        return
    folder = tmp_path_factory.mktemp("temporal")
    with temporal_server(folder, NEWEST, security=request.param) as started:
        yield started


def program(language: str) -> Sequence[str]:
    if language == "go":
        return [str(built_program(EXAMPLES / "worker-go"))]
    return [sys.executable, str(EXAMPLES / "worker-python" / "worker.py")]


def injected_variables(server: TemporalServer, build_id: str) -> Mapping[str, str]:
    """What the pod would have, with the secrets of the server where Kubernetes would mount them."""
    connection = Connection("temporal", server.address, **SECRETS[server.security])
    wanted = injection(connection, Identity("default", WORKER, build_id), EnvironmentNames.CURRENT)
    secrets = credential_variables(server, "default")
    variables = {item["name"]: secrets.get(item["name"], item.get("value", "")) for item in wanted.variables}
    # the server's certificate is of an authority of its own, which is what a Connection cannot say
    authority = {name: value for name, value in secrets.items() if name == "TEMPORAL_TLS_SERVER_CA_CERT_PATH"}
    return {**variables, **authority}


def log(server: TemporalServer, build_id: str) -> Path:
    return server.log.with_name(f"{build_id}.log")


@contextmanager
def started(language: str, server: TemporalServer, build_id: str) -> Iterator[subprocess.Popen[bytes]]:
    with running(program(language), log(server, build_id), injected_variables(server, build_id)) as process:
        yield process


def registered(server: TemporalServer) -> set[str]:
    from temporalio.api.workflowservice.v1 import ListWorkerDeploymentsRequest

    listed = server.ask(
        "list_worker_deployments", ListWorkerDeploymentsRequest(namespace="default", page_size=1000)
    )
    newest = (summary.latest_version_summary for summary in listed.worker_deployments)
    return {
        f"{version.deployment_version.deployment_name}:{version.deployment_version.build_id}"
        for version in newest
    }


@pytest.mark.parametrize("language", ["python", "go"])
def test_example_worker_registers_its_version_with_the_injected_variables_alone(
    language: str, server: TemporalServer
) -> None:
    with started(language, server, f"v1-{language}") as process:
        eventually(lambda: f"{WORKER}:v1-{language}" in registered(server))
        process.terminate()
        # its exit code says nothing: threads of the SDK can crash an interpreter that is being taken apart,
        # when all is done: https://github.com/temporalio/sdk-python/issues/300
        process.wait(120)
    assert "stopped\n" in log(server, f"v1-{language}").read_text()


def test_page_for_workers_shows_commands_that_find_the_version(newest_temporal: TemporalServer) -> None:
    page = (ROOT / "docs" / "workers.md").read_text()
    commands = re.findall("^temporal (.*)$", page.replace("\\\n", ""), re.MULTILINE)
    assert len(commands) == 2
    with started("python", newest_temporal, "v3.0.0-97f7"):
        eventually(lambda: f"{WORKER}:v3.0.0-97f7" in registered(newest_temporal))
        for command in commands:
            arguments = shlex.split(command.replace("temporal.example.com:7233", newest_temporal.address))
            ended = subprocess.run(
                [installed(TEMPORAL_CLI), *arguments], capture_output=True, text=True, check=False, timeout=60
            )
            assert ended.returncode == 0, ended.stderr
            assert "v3.0.0-97f7" in ended.stdout
