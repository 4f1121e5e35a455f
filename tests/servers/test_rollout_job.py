"""The Job that a render holds, run as its real command line by the local node, beside real workers."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import testing.worker_program
from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import Document, Ended, connection_document, run, worker_document
from tests.servers.pods import condition
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

IDENTITY = "twgen/testing/jobs"
SOON = 60.0
OPERATOR = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "OperatorConfig",
    "rollout": {"image": "registry.example.com/twgen:testing"},
}


@dataclass(frozen=True, slots=True)
class Story:
    """A worker whose manifests are applied, as Argo CD would: with what is no longer rendered pruned."""

    cluster: Cluster
    node: LocalNode
    temporal: TemporalServer
    namespace: str
    folder: Path

    @property
    def worker(self) -> DeployedWorker:
        return DeployedWorker(self.temporal, f"{self.namespace}/greeter", "greetings")

    def describe(self, build_id: str, *more: Document, **options: Any) -> None:
        worker = worker_document("greeter", build_id, **options)
        worker["spec"]["template"]["spec"]["containers"] = [
            {
                "name": "worker",
                "image": f"example.com/worker:{build_id}",
                "command": [sys.executable, "-P", testing.worker_program.__file__],
                "env": [{"name": "TASK_QUEUE", "value": "greetings"}],
            }
        ]
        documents = [connection_document(self.temporal.address), worker, *more]
        for document in documents:
            document["metadata"]["namespace"] = self.namespace
        (self.folder / "specs.yaml").write_text(write_documents(documents))

    def rendered(self) -> Ended:
        operator = self.folder.parent / "operator.json"
        operator.write_text(json.dumps(OPERATOR))
        kubeconfig = ("--kubeconfig", str(self.cluster.kubeconfig))
        return run(
            self.folder,
            "render",
            options=[*kubeconfig, "--operator-config", str(operator), "--identity", IDENTITY, "-q"],
        )

    def apply(self, *options: str) -> None:
        ended = self.rendered()
        assert ended.code == 0, ended.stderr
        self.cluster.apply(ended.stdout, "--force-conflicts", *options)

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
        return self.cluster.list("jobs", self.namespace)

    def job(self, kind: str) -> Object:
        """The newest Job, once it has this condition."""

        def ended() -> Object:
            newest = max(self.jobs(), key=lambda job: job["metadata"]["creationTimestamp"])
            assert condition(newest, kind) == "True", newest.get("status")
            return newest

        return eventually(ended, SOON)

    def log(self) -> str:
        pods = self.cluster.list("pods", self.namespace, "twgen.io/rollout=greeter")
        newest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])
        return self.node.logs(self.namespace, newest["metadata"]["name"])


@pytest.fixture
def story(
    cluster: Cluster, node: LocalNode, newest_temporal: TemporalServer, namespace: str, tmp_path: Path
) -> Story:
    folder = tmp_path / "specs"
    folder.mkdir()
    return Story(cluster, node, newest_temporal, namespace, folder)


def test_job_makes_the_first_version_current_and_tells_so(story: Story) -> None:
    story.describe("v1", steps=())
    story.apply()
    status = story.stands("Settled", "v1")
    assert (status["reason"], status["current"], status["percentage"]) == ("Settled", "v1", "100")
    done = story.job("Complete")
    [pod] = story.cluster.list("pods", story.namespace, f"job-name={done['metadata']['name']}")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["message"] == "Settled: it is current and nothing ramps"
    events = story.cluster.list("events", story.namespace)
    told = [event for event in events if event["involvedObject"]["name"] == "greeter-rollout"]
    assert [event["reason"] for event in told if event["type"] != "Normal"] == []
    assert {"FirstVersion", "Settled"} <= {event["reason"] for event in told}
