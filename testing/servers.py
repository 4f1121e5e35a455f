"""Real servers as context managers; several can run at once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from testing.install import TEMPORAL_CLI, installed
from testing.processes import eventually, free_ports, running
from twgen.clients.deadline import Deadline
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import TwgenError
from twgen.model.connection import Connection

_READY_WITHIN = 60.0
_CALL_WITHIN = 20.0
# matching.PollerHistoryTTL stays: a poll lasts a minute, and a shorter history loses pollers that are alive
_QUICK_DRAINAGE: Mapping[str, str] = {
    "matching.wv.VersionDrainageStatusVisibilityGracePeriod": '"1s"',
    "matching.wv.VersionDrainageStatusRefreshInterval": '"1s"',
}


@dataclass(frozen=True, slots=True)
class TemporalServer:
    """A running Temporal server."""

    address: str
    log: Path

    @property
    def connection(self) -> Connection:
        """How a spec says where it is."""
        return Connection("testing", self.address)

    def ask(self, method: str, request: Any, *, may_be_absent: bool = False) -> Any:
        """One call of the WorkflowService."""
        call = Call(self.connection, getattr(request, "namespace", ""), method, request, may_be_absent)
        with TemporalClients(Deadline(_CALL_WITHIN), Profiles(allow_unlisted=True)) as clients:
            return clients.ask([call])[0]

    def create_namespace(self, name: str) -> None:
        """Register a namespace and wait until it can be used."""
        from google.protobuf.duration_pb2 import Duration
        from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

        retention = Duration(seconds=86400)
        self.ask(
            "register_namespace",
            RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=retention),
        )
        eventually(lambda: self.has_namespace(name))

    def has_namespace(self, name: str) -> bool:
        """A call in the namespace succeeds."""
        from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest

        try:
            self.ask("list_workflow_executions", ListWorkflowExecutionsRequest(namespace=name, page_size=1))
        except TwgenError:
            return False
        return True


@contextmanager
def temporal_server(folder: Path) -> Iterator[TemporalServer]:
    """Temporal's development server on loopback, its log in the folder, with drainage made quick."""
    port, http_port, metrics_port = free_ports(3)
    log = folder / f"temporal-{port}.log"
    command = [str(installed(TEMPORAL_CLI)), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
    command += ["--port", str(port), "--http-port", str(http_port), "--metrics-port", str(metrics_port)]
    command += ["--log-level", "warn"]
    for key, value in _QUICK_DRAINAGE.items():
        command += ["--dynamic-config-value", f"{key}={value}"]
    with running(command, log) as process:
        server = TemporalServer(f"127.0.0.1:{port}", log)
        eventually(lambda: _is_ready(server, process), _READY_WITHIN)
        yield server


def _is_ready(server: TemporalServer, process: Popen[bytes]) -> bool:
    if process.poll() is not None:
        message = f"the server ended with {process.returncode}: {server.log.read_text()[-2000:]}"
        raise RuntimeError(message)
    return server.has_namespace("default")
