"""Runs real Temporal servers as context managers. Several can run at the same time."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

from testing.asking import Asker, succeeds
from testing.install import TEMPORAL_CLI, TEMPORAL_SERVER, installed
from testing.metrics import published_calls
from testing.processes import eventually, free_ports, running
from testing.security import Credentials, Security, administrator_options, demands, new_credentials
from testing.temporal_configuration import PORTS, SERVICES, write_configuration
from twgen.model.spec import Connection

OLDEST, NEWEST = "1.29.1", "1.32.2"
"""The versions of the server that can be started."""

_READY_WITHIN = 240.0
_MARK = "GetClusterInfo"
# matching.PollerHistoryTTL is not changed: a poll lasts a minute, so a shorter history would lose pollers
_SETTINGS: Mapping[str, Any] = {
    "matching.wv.VersionDrainageStatusVisibilityGracePeriod": "1s",
    # for each draining version: at one second, each would take a twentieth of a core
    "matching.wv.VersionDrainageStatusRefreshInterval": "3s",
    # for a namespace, which hundreds of tests share; the default is 100
    "matching.maxDeployments": 10_000,
    # now and then a partition misses a change, and gets it with its next poll: 290 s by default
    "matching.getUserDataLongPollTimeout": "20s",
}
FOUR_PARTITIONS: Mapping[str, Any] = {
    "matching.numTaskqueueReadPartitions": 4,
    "matching.numTaskqueueWritePartitions": 4,
}
"""The default of servers. With one partition per task queue, the newest test server is twice as fast."""


@dataclass(frozen=True, slots=True)
class TemporalServer:
    """A running Temporal server, and the tests' own client."""

    address: str
    version: str
    log: Path
    metrics_port: int
    security: Security
    credentials: Credentials
    """The credentials that it accepts if it requires any."""
    asker: Asker = field(repr=False)
    process: Popen[bytes] = field(repr=False)

    @property
    def connection(self) -> Connection:
        """The Connection for specs."""
        return Connection("testing", self.address)

    def ask(self, method: str, request: Any) -> Any:
        """Make a call to the WorkflowService; raises the SDK's RPCError."""
        return self.asker.ask(method, [request])[0]

    def find(self, method: str, request: Any) -> Any:
        """Repeat a call until it succeeds: just after a change, the oldest server finds no worker."""

        def answer() -> Any:
            try:
                return self.ask(method, request)
            except RPCError as error:
                raise AssertionError(str(error)) from error

        from temporalio.service import RPCError

        return eventually(answer, _READY_WITHIN)

    def create_namespace(self, name: str) -> None:
        """Register a namespace, and wait until it can be used."""
        self._register(name)
        eventually(lambda: self.has_namespace(name))

    def has_namespace(self, name: str) -> bool:
        """Whether a call in the namespace succeeds."""
        from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest

        request = ListWorkflowExecutionsRequest(namespace=name, page_size=1)
        return succeeds(lambda: self.ask("list_workflow_executions", request))

    def is_ready(self) -> bool:
        """Whether the namespace `default` can be used. It is registered if necessary."""
        if self.process.poll() is not None:
            message = f"the server ended with {self.process.returncode}: {self.log.read_text()[-2000:]}"
            raise RuntimeError(message)
        if self.has_namespace("default"):
            return True
        succeeds(lambda: self._register("default"))
        return False

    def end_workflows(self) -> None:
        """Terminate all workflows in the namespace `default`, because draining versions cost time."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.workflowservice.v1 import (
            ListWorkflowExecutionsRequest,
            TerminateWorkflowExecutionRequest,
        )
        from temporalio.service import RPCError

        query = "ExecutionStatus = 'Running'"
        request = ListWorkflowExecutionsRequest(namespace="default", query=query, page_size=1000)
        for found in self.ask("list_workflow_executions", request).executions:
            execution = WorkflowExecution(workflow_id=found.execution.workflow_id)
            # the workflow may have ended
            with suppress(RPCError):
                self.ask(
                    "terminate_workflow_execution",
                    TerminateWorkflowExecutionRequest(namespace="default", workflow_execution=execution),
                )

    def calls(self) -> Counter[str]:
        """How often each operation was called so far, in all namespaces, by the server's metrics."""
        from temporalio.api.workflowservice.v1 import GetClusterInfoRequest

        # metrics are published every second: once they include this call, they include all earlier ones
        before = published_calls(self.metrics_port)[_MARK]
        self.ask("get_cluster_info", GetClusterInfoRequest())
        return eventually(lambda: self._calls_since(before))

    def _calls_since(self, before: int) -> Counter[str]:
        found = published_calls(self.metrics_port)
        return found if found.pop(_MARK, 0) > before else Counter()

    def _register(self, namespace: str) -> None:
        from google.protobuf.duration_pb2 import Duration
        from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

        retention = Duration(seconds=86400)
        self.ask(
            "register_namespace",
            RegisterNamespaceRequest(namespace=namespace, workflow_execution_retention_period=retention),
        )


@contextmanager
def temporal_server(
    folder: Path,
    version: str = OLDEST,
    *,
    security: Security = Security.NONE,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[TemporalServer]:
    """Start a Temporal server on loopback, with high limits, fast drainage, and its files in the folder.

    Only the newest version can require credentials. `settings` are Temporal's dynamic configuration.
    """
    ports = free_ports(PORTS)
    address, log = f"127.0.0.1:{ports[0]}", folder / f"temporal-{ports[0]}.log"
    dynamic = {**_SETTINGS, **(settings or {})}
    credentials = new_credentials(folder)
    if version == OLDEST:
        command = _development_server(ports, dynamic)
    else:
        dynamic = {**dict.fromkeys(FOUR_PARTITIONS, 1), **dynamic}
        asked = demands(folder, security, credentials)
        command = _server(write_configuration(folder, ports, dynamic, asked))
    with (
        running(command, log) as process,
        closing(Asker(address, administrator_options(security, credentials))) as asker,
    ):
        server = TemporalServer(address, version, log, ports[-1], security, credentials, asker, process)
        eventually(server.is_ready, _READY_WITHIN)
        yield server


def _development_server(ports: Sequence[int], dynamic: Mapping[str, Any]) -> list[str]:
    command = [str(installed(TEMPORAL_CLI)), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
    command += ["--port", str(ports[0]), "--http-port", str(ports[1]), "--metrics-port", str(ports[-1])]
    command += ["--log-level", "warn"]
    for key, value in dynamic.items():
        command += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
    return command


def _server(configuration: Path) -> list[str]:
    chosen = [argument for service in SERVICES for argument in ("--service", service)]
    server = str(installed(TEMPORAL_SERVER))
    return [server, "--config-file", str(configuration), "--allow-no-auth", "start", *chosen]
