"""A worker whose rollouts are Jobs of the cluster."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.api.workflowservice.v1 import (
    CountWorkflowExecutionsRequest,
)

from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    PATIENT,
    Document,
    Ended,
    connection_document,
    in_namespace,
    run,
    share_of,
    without_replicas_if_scaled,
    worker_container,
    worker_document,
)
from tests.servers.pods import condition
from twgen.versioning.names import NOT_PRUNED, SYNC_OPTIONS
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

IDENTITY = "twgen/testing/jobs"
SOON = 300.0
"""Seconds for what happens at once on a machine that has nothing else to do."""


PAUSE = 30.0
"""The shortest of a step, in seconds."""


@dataclass(frozen=True, slots=True)
class Story:
    """A worker whose manifests are applied, as Argo CD would."""

    cluster: Cluster
    node: LocalNode
    temporal: TemporalServer
    oldest_temporal: TemporalServer
    namespace: str
    folder: Path
    identity: str = IDENTITY
    """The manager of what is rendered."""
    operator: Document = field(default_factory=dict)
    """What the operator of what is rendered says beside."""

    @property
    def worker(self) -> DeployedWorker:
        return DeployedWorker(self.temporal, f"{self.namespace}/greeter", self.task_queue)

    @property
    def task_queue(self) -> str:
        """Its own: on one that stories share, any worker would do the work of all."""
        return f"greetings-{self.namespace}"

    def describe(
        self,
        build_id: str,
        *more: Document,
        variables: Sequence[Document] = (),
        container: Document | None = None,
        spec: Document | None = None,
        **options: Any,
    ) -> None:
        """Let Git hold a worker; `container` and `spec` add fields to it."""
        worker = worker_document("greeter", build_id, **options)
        own = {**worker_container(build_id, self.task_queue, *variables), **(container or {})}
        worker["spec"]["template"]["spec"]["containers"] = [own]
        worker["spec"] = without_replicas_if_scaled(worker, *more) | (spec or {})
        self.write(worker, *more)

    def write(self, *documents: Document) -> None:
        """Let Git hold these documents, with the connection."""
        told = in_namespace(self.namespace, connection_document(self.temporal.address), *documents)
        (self.folder / "specs.yaml").write_text(write_documents(told))

    def rendered(self, *kinds: str, image: str = "registry.example.com/twgen:testing") -> Ended:
        """What a render prints; an operator lets these kinds be attached too, each as `group/Kind`."""
        operator = self.folder.parent / "operator.json"
        more = [dict(zip(("group", "kind"), kind.split("/"), strict=True)) for kind in kinds]
        config = {
            "apiVersion": "twgen.io/v1alpha1",
            "kind": "OperatorConfig",
            "rollout": {"image": image},
            "attached": {"kinds": more},
            **self.operator,
        }
        operator.write_text(json.dumps(config))
        kubeconfig = ("--kubeconfig", str(self.cluster.kubeconfig), *PATIENT)
        return run(
            self.folder,
            "render",
            options=[*kubeconfig, "--operator-config", str(operator), "--identity", self.identity, "-q"],
        )

    def run(self, *command: str, is_of_specs: bool = True) -> Ended:
        """What a person does at a terminal, with the cluster at hand."""
        kubeconfig = ("--kubeconfig", str(self.cluster.kubeconfig), *PATIENT)
        return run(self.folder, *command, options=kubeconfig, takes_paths=is_of_specs)

    def manifests(self, *kinds: str, **options: str) -> Sequence[Object]:
        ended = self.rendered(*kinds, **options)
        assert ended.code == 0, ended.stderr
        return read_documents(ended.stdout)

    def apply(self, *kinds: str) -> None:
        self.cluster.apply(self.manifests(*kinds))

    def sync(self) -> None:
        """Apply, and prune the Deployments that are no longer rendered, as Argo CD does."""
        manifests = self.manifests()
        self.cluster.apply(manifests)
        rendered = {item["metadata"]["name"] for item in manifests if item["kind"] == "Deployment"}
        for live in self.listed("/apis/apps/v1", "deployments"):
            name = live["metadata"]["name"]
            if name not in rendered:
                assert NOT_PRUNED not in live["metadata"]["annotations"].get(SYNC_OPTIONS, "")
                assert live["spec"]["replicas"] == 0
                self.cluster.kubectl("delete", "deployment", name, "--namespace", self.namespace)

    def replicas(self) -> dict[str, int]:
        """Of the Deployment of every version, by build ID."""
        found = self.listed("/apis/apps/v1", "deployments")
        return {live["metadata"]["name"].removeprefix("greeter-"): live["spec"]["replicas"] for live in found}

    def status(self) -> dict[str, str]:
        found = self.cluster.api.find(
            f"/api/v1/namespaces/{self.namespace}/configmaps/greeter-rollout-status"
        )
        data: dict[str, str] = found["data"] if found else {}
        return data

    def stands(self, phase: str, target: str) -> dict[str, str]:
        """The status, once the rollout of this target is in that phase."""

        def reached() -> dict[str, str]:
            status = self.status()
            assert (status.get("phase"), status.get("target")) == (phase, target), status
            return status

        return eventually(reached, SOON)

    def jobs(self) -> Sequence[Object]:
        return self.listed("/apis/batch/v1", "jobs")

    def listed(self, group: str, plural: str, selector: str = "") -> Sequence[Object]:
        """The objects of a collection that the label selector takes."""
        path = f"{group}/namespaces/{self.namespace}/{plural}?labelSelector={selector}"
        items: Sequence[Object] = self.cluster.api.get(path)["items"]
        return items

    def described(self) -> Any:
        """What the server says of the worker, without the program."""
        return self.worker.described()

    def share(self, build_id: str) -> float:
        """Which share of the new workflows a version has, in percent."""
        return share_of(build_id, self.described().routing_config)

    def newest_job(self) -> Object:
        return max(self.jobs(), key=lambda job: str(job["metadata"]["creationTimestamp"]))

    def job(self, kind: str) -> Object:
        """The newest Job, once it has this condition."""

        def ended() -> Object:
            newest = self.newest_job()
            assert condition(newest, kind) == "True", newest.get("status")
            return newest

        return eventually(ended, SOON)

    def pods(self, selector: str = "twgen.io/rollout=greeter") -> Sequence[Object]:
        """Those of its rollouts."""
        return self.listed("/api/v1", "pods", selector)

    def running_pod(self) -> Object:
        """The one Pod of its rollouts that works, once those of earlier rollouts have ended."""

        def only() -> Object:
            running = [pod for pod in self.pods() if pod["status"]["phase"] == "Running"]
            [found] = [pod for pod in running if "deletionTimestamp" not in pod["metadata"]]
            return found

        return eventually(only, SOON)

    def account(self) -> str:
        """What is to be read where a story went wrong."""
        logs = [self.node.logs(self.namespace, pod["metadata"]["name"]) for pod in self.pods()]
        return "\n".join([*logs, str(self.status()), str(self.replicas())])

    def log(self) -> str:
        """What the Pods of the newest Job have written."""
        owner = self.newest_job()["metadata"]["uid"]
        pods = self.pods(f"batch.kubernetes.io/controller-uid={owner}")
        return "".join(self.node.logs(self.namespace, pod["metadata"]["name"]) for pod in pods)


def settled(story: Story) -> None:
    """Its first version is current."""
    story.describe("v1", steps=())
    story.apply()
    story.stands("Settled", "v1")


def describe_ramp(story: Story, build_id: str, **options: Any) -> None:
    story.describe(build_id, **options)
    specs = story.folder / "specs.yaml"
    specs.write_text(specs.read_text().replace("10m", f"{PAUSE:g}s"))


def ramped_at(story: Story) -> float:
    """When the share of the ramp changed last, by the server's clock."""
    changed = story.described().routing_config.ramping_version_percentage_changed_time
    return float(changed.ToMilliseconds() / 1000)


def gates_of(story: Story, build_id: str) -> int:
    """How many gate workflows were ever started on a version."""
    workflow_id = f"test-{story.worker.name}:{build_id}-{story.task_queue}"
    request = CountWorkflowExecutionsRequest(namespace="default", query=f"WorkflowId = '{workflow_id}'")
    return int(story.temporal.ask("count_workflow_executions", request).count)


def outlast(seconds: float) -> None:
    """Go on when something would have happened by then."""
    over = time.monotonic() + seconds + 5
    eventually(lambda: time.monotonic() > over, SOON)


def last_word(pod: Object) -> str:
    """What `kubectl describe` shows of the end of the Pod's container."""
    return str(pod["status"]["containerStatuses"][0]["state"]["terminated"].get("message", ""))
