"""`make demo-live`: commits roll out, break and roll back a worker of Argo CD while its workflows run."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)

from testing.argocd.application import Application
from testing.argocd.stack import EXAMPLE, WORKER, Stack, stack
from testing.building import say
from testing.processes import ENVIRONMENT, eventually, running
from testing.workers import DeployedWorker

TWGEN = Path(sys.executable).with_name("twgen")
PAGE = Path("demo-live.html")
_STATUS = "/api/v1/namespaces/shop/configmaps/greeter-rollout-status"
_SOON = 300.0
_EVERY = 0.5
"""Seconds from one new workflow to the next."""
_LASTS = 15.0
"""Seconds of an order."""
_DONE = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED
_TASK = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@dataclass
class Orders:
    """Workflows that start all the time: orders stay where they began, subscriptions move with traffic."""

    worker: DeployedWorker
    open_since: dict[str, float] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    subscriptions: list[str] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start them until the block ends; then all are finished."""
        ended = Event()
        thread = Thread(target=self._run, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if self.failed:
            raise self.failed[0]
        for name in (*self.open_since, *self.subscriptions):
            self.worker.finish(name)

    def _run(self, ended: Event) -> None:
        try:
            while not ended.wait(_EVERY):
                self._start_one()
        except Exception as error:  # noqa: BLE001 - of another thread, for the block
            self.failed.append(error)

    def _start_one(self) -> None:
        number, now = len(self.started), time.monotonic()
        if number % 10 == 0:
            name = f"subscription-{number}"
            self.worker.start("UpgradingWorkflow", name)
            self.subscriptions.append(name)
        else:
            name = f"order-{number}"
            self.worker.start("WaitingWorkflow", name)
            self.open_since[name] = now
        self.started.append(name)
        if self.subscriptions:
            self.worker.finish(self.subscriptions[number % len(self.subscriptions)], "poke")
        for order in [name for name, since in self.open_since.items() if now - since > _LASTS]:
            self.worker.finish(order)
            del self.open_since[order]

    def versions_of(self, workflow_id: str) -> list[str]:
        """The versions that completed its workflow tasks, each once, in order."""
        execution = WorkflowExecution(workflow_id=workflow_id)
        request = GetWorkflowExecutionHistoryRequest(namespace="default", execution=execution)
        events = self.worker.server.ask("get_workflow_execution_history", request).history.events
        tasks = (one.workflow_task_completed_event_attributes for one in events if one.event_type == _TASK)
        return list(dict.fromkeys(task.deployment_version.build_id for task in tasks))

    def is_completed(self, workflow_id: str) -> bool:
        """It came to its own end."""
        execution = WorkflowExecution(workflow_id=workflow_id)
        request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
        info = self.worker.server.ask("describe_workflow_execution", request).workflow_execution_info
        return bool(info.status == _DONE)


@dataclass
class Demo:
    """The stack, its one worker, and what is committed of it."""

    stack: Stack
    application: Application
    orders: Orders
    began: float = field(default_factory=time.monotonic)

    def tell(self) -> None:
        """The whole story."""
        self.commit("v1", "the first version: its gate is all that it has to pass")
        self.application.create()
        self.stands(lambda told: told["phase"] == "Settled", "v1 is current")
        with self.orders.running():
            self.say("orders and subscriptions start, two a second")
            self.commit("v2", "a version that is well: its gate passes, and it ramps")
            self.stands(lambda told: told["percentage"] == "25", "v2 has 25 % of the new workflows")
            self.stands(lambda told: (told["phase"], told["target"]) == ("Settled", "v2"), "v2 is current")
            self.commit("v3", "a version whose gate fails", GATE_FAILS="1")
            self.stands(lambda told: told["reason"] == "GateFailed", "v3 got nothing: its gate has failed")
            self.commit("v4", "a version that crashes", command='["false"]')
            self.stands(lambda told: "Crash" in told["message"], "v4 got nothing: its pods crash")
            self.commit("v1", "back to v1, which was current until recently: at once, without gate and steps")
            self.stands(lambda told: (told["phase"], told["target"]) == ("Settled", "v1"), "v1 is current")
        self.prove()

    def say(self, text: str) -> None:
        """Tell the audience, and when it is."""
        sys.stdout.write(f"{time.monotonic() - self.began:5.0f} s  {text}\n")
        sys.stdout.flush()

    def commit(self, build_id: str, text: str, command: str = "", **variables: str) -> None:
        """Commit a version as the target."""
        address, python = self.stack.temporal.address, sys.executable
        spec = EXAMPLE.format(address=address, python=python, worker=WORKER).replace("v1\n", f"{build_id}\n")
        own = "".join(f", {{name: {name}, value: {json.dumps(text)}}}" for name, text in variables.items())
        spec = spec.replace("value: greetings}]", f"value: greetings}}{own}]")
        if command:
            spec = spec.replace(f'command: ["{python}", -P, "{WORKER}"]', f"command: {command}")
        folder = self.stack.argo.repository.clone / "shop"
        folder.mkdir(exist_ok=True)
        (folder / "worker.yaml").write_text(spec)
        self.stack.argo.repository.commit(f"greeter {build_id}")
        self.say(f"commit {build_id}: {text}")

    def stands(self, condition: Callable[[Mapping[str, str]], bool], text: str) -> None:
        """Wait until what the rollout leaves in the cluster says so."""

        def told() -> bool:
            found = self.stack.argo.cluster.api.find(_STATUS)
            return bool(found and condition(found["data"]))

        eventually(told, _SOON)
        self.say(text)

    def prove(self) -> None:
        """Count what became of every workflow that was started; raises AssertionError where one is lost."""
        orders, started = self.orders, self.orders.started
        eventually(lambda: all(map(orders.is_completed, started)), _SOON)
        versions = {name: orders.versions_of(name) for name in started}
        on = Counter(found[0] for name, found in versions.items() if name not in orders.subscriptions)
        moved = sum(len(versions[name]) > 1 for name in orders.subscriptions)
        strayed = [name for name in started if name not in orders.subscriptions and len(versions[name]) > 1]
        if strayed or {"v3", "v4"} & {build_id for found in versions.values() for build_id in found}:
            raise AssertionError(strayed, versions)
        self.say(
            f"proven: {len(started)} workflows started, {len(started)} completed, lost: 0; orders"
            f" {', '.join(f'{number} on {build_id}' for build_id, number in sorted(on.items()))}, each on the"
            f" version that it began on; {moved} of {len(orders.subscriptions)} subscriptions moved with the"
            " traffic; none ever met v3 or v4"
        )


def main() -> None:
    """Tell the story beside a page that shows it, and leave the page as a file."""
    with TemporaryDirectory(prefix="twgen-demo-") as name, stack(Path(name)) as found:
        found.argo.cluster.create_namespace("shop")
        kubeconfig = {"KUBECONFIG": str(found.argo.cluster.kubeconfig)}
        command, log = (
            [str(TWGEN), "dashboard", "-A", "--no-browser", "--interval=1s"],
            Path(name) / "page.log",
        )
        with running(command, log, kubeconfig):
            url = eventually(lambda: next(iter(log.read_text().splitlines()), ""), _SOON)
            say(f"watch it at {url}")
            orders = Orders(DeployedWorker(found.temporal, "shop/greeter", "greetings"))
            demo = Demo(found, Application(found.argo, "shop", "shop"), orders)
            demo.tell()
        page = subprocess.run(
            [TWGEN, "status", "--from-cluster", "-A", "-o", "html"],
            env={**ENVIRONMENT, **kubeconfig},
            capture_output=True,
            check=True,
        )
        PAGE.write_bytes(page.stdout)
        demo.say(f"{PAGE} has the page as it is now")


if __name__ == "__main__":
    main()
