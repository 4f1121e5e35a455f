"""`make demo-live`: commits roll out, break and roll back a worker in Argo CD while its workflows run."""

import json
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
from testing.demo_page import Story, served
from testing.processes import eventually, running
from testing.workers import DeployedWorker

TWGEN = Path(sys.executable).with_name("twgen")
PAGE = Path("demo-live.html")
_STATUS = "/api/v1/namespaces/shop/configmaps/greeter-rollout-status"
_SOON = 300.0
_EVERY = 0.5
"""Seconds between the starts of workflows."""
_LASTS = 15.0
"""The duration of an order, in seconds."""
_READS_EVERY = 0.7
_PAGES_ARE_UP_TO_DATE_AFTER = 2.0
"""Seconds until all open pages show the final state."""
_DONE = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED
_TASK = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


@dataclass
class Orders:
    """Starts workflows continuously. Orders stay on their version, subscriptions move with the traffic."""

    worker: DeployedWorker
    open_since: dict[str, float] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    subscriptions: list[str] = field(default_factory=list)
    ended: int = 0
    """The number of orders that were signalled to end, which is all that an order waits for."""
    failed: list[BaseException] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start workflows until the block ends, then finish all of them."""
        with self._meanwhile(self._start_one, _EVERY):
            yield
        for name in (*self.open_since, *self.subscriptions):
            self.worker.finish(name)
        self.open_since.clear()
        self.ended = len(self.started)
        eventually(lambda: all(map(self.is_completed, self.started)), _SOON)

    @contextmanager
    def watched(self, story: Story) -> Iterator[None]:
        """Update the story with the workflows and the traffic until the block ends."""
        with self._meanwhile(lambda: self._read(story), _READS_EVERY):
            yield

    @contextmanager
    def _meanwhile(self, work: Callable[[], None], every: float) -> Iterator[None]:
        ended = Event()

        def run() -> None:
            try:
                while not ended.wait(every):
                    work()
            except Exception as error:  # noqa: BLE001 - raised again in the thread of the block
                self.failed.append(error)

        thread = Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if self.failed:
            raise self.failed[0]

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
            self.ended += 1

    def _read(self, story: Story) -> None:
        routing = self.worker.described().routing_config
        current = routing.current_deployment_version.build_id
        ramping, share = routing.ramping_deployment_version.build_id, routing.ramping_version_percentage
        story.current, story.shares = current, {current: 100 - share, **({ramping: share} if ramping else {})}
        story.open, story.started = frozenset(self.open_since), len(self.started)
        story.completed = self.ended
        for name in [name for name in list(self.open_since) if name not in story.began_on]:
            if versions := self.versions_of(name):
                story.began_on[name] = versions[0]

    def versions_of(self, workflow_id: str) -> list[str]:
        """The versions that completed the workflow's tasks, in order, without duplicates."""
        execution = WorkflowExecution(workflow_id=workflow_id)
        request = GetWorkflowExecutionHistoryRequest(namespace="default", execution=execution)
        events = self.worker.server.ask("get_workflow_execution_history", request).history.events
        tasks = (one.workflow_task_completed_event_attributes for one in events if one.event_type == _TASK)
        return list(dict.fromkeys(task.deployment_version.build_id for task in tasks))

    def is_completed(self, workflow_id: str) -> bool:
        """Whether a workflow completed."""
        execution = WorkflowExecution(workflow_id=workflow_id)
        request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
        info = self.worker.server.ask("describe_workflow_execution", request).workflow_execution_info
        return bool(info.status == _DONE)


@dataclass
class Demo:
    """The demonstration: commits versions of one worker to the stack, and tells the story on a page."""

    stack: Stack
    application: Application
    orders: Orders
    story: Story = field(default_factory=Story)

    def tell(self) -> None:
        """Run the whole demonstration."""
        self.commit("v1", "the first version; only its gate must pass")
        self.application.create()
        self.stands(lambda told: told["phase"] == "Settled", "v1 is current")
        with self.orders.watched(self.story), self.orders.running():
            self.story.say("orders and subscriptions start, two a second")
            self.roll_out()
        self.prove()

    def roll_out(self) -> None:
        """Roll out a good version, one whose gate fails, and one that crashes; then roll back."""
        self.commit("v2", "a good version; its gate passes, and it ramps")
        self.stands(lambda told: told["percentage"] == "25", "v2 has 25% of the new workflows")
        self.stands(lambda told: (told["phase"], told["target"]) == ("Settled", "v2"), "v2 is current")
        self.commit("v3", "a version whose gate fails", GATE_FAILS="1")
        self.fails("v3", "its gate failed", lambda told: told["reason"] == "GateFailed")
        self.commit("v4", "a version that crashes", command='["false"]')
        self.fails("v4", "its pods crash", lambda told: "Crash" in told["message"])
        self.commit("v1", "back to v1, which was current a minute ago: at once, without gate and steps")
        self.stands(lambda told: (told["phase"], told["target"]) == ("Settled", "v1"), "v1 is current again")

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
        self.story.committed.add(build_id)
        self.story.say(f"commit {build_id}: {text}", "commit")

    def fails(self, build_id: str, why: str, condition: Callable[[Mapping[str, str]], bool]) -> None:
        """Wait until the status in the cluster says that a version failed."""
        self.stands(condition, f"{build_id} got no workflow: {why}", "bad")
        self.story.failures[build_id] = why

    def stands(self, condition: Callable[[Mapping[str, str]], bool], text: str, kind: str = "good") -> None:
        """Wait until the status in the cluster meets a condition."""

        def told() -> bool:
            found = self.stack.argo.cluster.api.find(_STATUS)
            return bool(found and condition(found["data"]))

        eventually(told, _SOON)
        self.story.say(text, kind)

    def prove(self) -> None:
        """Check every workflow that was started; raises AssertionError if one is lost."""
        orders, started = self.orders, self.orders.started
        versions = {name: orders.versions_of(name) for name in started}
        on = Counter(found[0] for name, found in versions.items() if name not in orders.subscriptions)
        moved = sum(len(versions[name]) > 1 for name in orders.subscriptions)
        strayed = [name for name in started if name not in orders.subscriptions and len(versions[name]) > 1]
        if strayed or {"v3", "v4"} & {build_id for found in versions.values() for build_id in found}:
            raise AssertionError(strayed, versions)
        self.story.open, self.story.completed, self.story.lost = frozenset(), len(started), 0
        self.story.say(f"{len(started)} workflows started, {len(started)} completed, lost: 0", "proof")
        orders_on = ", ".join(f"{number} on {build_id}" for build_id, number in sorted(on.items()))
        self.story.say(f"orders: {orders_on}, each on the version that it began on", "proof")
        number = len(orders.subscriptions)
        self.story.say(
            f"{moved} of {number} subscriptions moved with the traffic; none met v3 or v4", "proof"
        )


def main() -> None:
    """Run the demonstration on a page, and save the page as a file."""
    with TemporaryDirectory(prefix="twgen-demo-") as name, stack(Path(name)) as found:
        found.argo.cluster.create_namespace("shop")
        kubeconfig = {"KUBECONFIG": str(found.argo.cluster.kubeconfig)}
        command = [str(TWGEN), "dashboard", "-A", "--no-browser", "--interval=1s"]
        log = Path(name) / "page.log"
        orders = Orders(DeployedWorker(found.temporal, "shop/greeter", "greetings"))
        demo = Demo(found, Application(found.argo, "shop", "shop"), orders)
        with running(command, log, kubeconfig), served(demo.story) as url:
            dashboard = eventually(lambda: next(iter(log.read_text().splitlines()), ""), _SOON)
            say(f"watch it at {url} (about three minutes), and on the dashboard at {dashboard}")
            demo.tell()
            demo.story.end()
            time.sleep(_PAGES_ARE_UP_TO_DATE_AFTER)
        PAGE.write_text(demo.story.page())
        say(f"{PAGE} contains the page with its final state")


if __name__ == "__main__":
    main()
