"""A worker that a team keeps in Git, and what Argo CD, Kubernetes and Temporal say of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from testing.argocd.application import Application
from testing.argocd.argocd import ArgoCD
from testing.argocd.repository import new_repository
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
    attached_document,
    connection_document,
    in_namespace,
    run,
    share_of,
    without_replicas_if_scaled,
    worker_container,
    worker_document,
)
from twgen.records.intent import parse_intent
from twgen.versioning.names import HOOK
from twgen.yaml.writer import write_documents

SOON = 300.0
AT_ONCE: Document = {"sunset": {"scaledownDelay": "1s", "deleteDelay": "1s"}}
"""A version that has drained goes as soon as it may."""
RESTS: Document = {"sunset": {"scaledownDelay": "1s", "deleteDelay": "1h"}}
"""A version that has drained stays at zero."""


@dataclass(frozen=True, slots=True)
class ApplicationStory:
    """A folder of the repository, its Application, and the namespace that it deploys into."""

    argo: ArgoCD
    node: LocalNode
    temporal: TemporalServer
    application: Application
    worker_name: str = "greeter"
    elsewhere: Cluster | None = None
    """Where it deploys, if not into the cluster of Argo CD."""

    @property
    def cluster(self) -> Cluster:
        return self.elsewhere or self.argo.cluster

    @property
    def namespace(self) -> str:
        return self.application.namespace

    @property
    def worker(self) -> DeployedWorker:
        return DeployedWorker(self.temporal, f"{self.namespace}/{self.worker_name}", self.task_queue)

    @property
    def folder(self) -> Path:
        """What its Application deploys, in a clone."""
        return self.argo.repository.clone / self.application.name

    @property
    def task_queue(self) -> str:
        return f"{self.namespace}-{self.worker_name}"

    def commit(self, build_id: str, *more: Document, **options: Any) -> str:
        """Describe the worker at this version, as `documents` does, and commit; the hash."""
        return self.commit_documents(
            f"{self.worker_name} {build_id}", *self.documents(build_id, *more, **options)
        )

    def documents(
        self,
        build_id: str,
        *more: Document,
        variables: Sequence[Document] = (),
        spec: Document | None = None,
        address: str = "",
        unless: Path | None = None,
        **options: Any,
    ) -> Sequence[Document]:
        """The connection, the worker at this version with its fields over the usual ones, and more.

        Its Pods crash once there is the file of `unless`.
        """
        worker = worker_document(self.worker_name, build_id, **options)
        container = worker_container(build_id, self.task_queue, *variables)
        if unless:
            container["command"] = [
                "sh",
                "-c",
                f'test ! -e {unless} && exec "$@"',
                "sh",
                *container["command"],
            ]
        worker["spec"]["template"]["spec"]["containers"] = [container]
        worker["spec"] = without_replicas_if_scaled(worker, *more) | (spec or {})
        connection = connection_document(address or self.temporal.address)
        return in_namespace(self.namespace, connection, worker, *more)

    def commit_documents(self, message: str, *documents: Document) -> str:
        self.write(*documents)
        return self.argo.repository.commit(message)

    def write(self, *documents: Document) -> None:
        """Change what the next commit has of it."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "specs.yaml").write_text(write_documents(documents))

    def run(self, *command: str) -> Ended:
        """What a person does at a terminal, in the clone, with the cluster at hand."""
        return run(self.folder, *command, options=("--kubeconfig", str(self.cluster.kubeconfig), *PATIENT))

    def status(self) -> dict[str, str]:
        name = f"{self.worker_name}-rollout-status"
        found = self.cluster.api.find(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")
        data: dict[str, str] = found["data"] if found else {}
        return data

    def settled(self) -> None:
        """Create the application of the first version, and wait until that is current."""
        self.commit("v1", steps=())
        self.application.create()
        self.stands("Settled", "v1")

    def stands(self, phase: str, target: str, within: float = SOON) -> dict[str, str]:
        """The status, once the rollout of this target is in that phase."""

        def reached() -> dict[str, str]:
            self.sync_what_was_healed()
            status = self.status()
            assert (status.get("phase"), status.get("target")) == (phase, target), (
                status,
                self.application.errors(),
            )
            return status

        return eventually(reached, within)

    def ramps_to(self, percentage: str) -> None:
        """Wait until its rollout has given its target this share."""

        def reached() -> bool:
            self.sync_what_was_healed()
            return bool(self.status().get("percentage") == percentage)

        eventually(reached, SOON)

    def sync_what_was_healed(self) -> None:
        """Begin a full sync, as a person does, where Argo CD healed to a commit and has run no hook of it.

        From 3.5 on it does so with a commit that it saw while a sync went on, or whose first render failed. A
        tracked Job is healed with the rest, so a story without hooks gets no help.
        """
        found = self.application.find()
        state = found.get("status", {}).get("operationState", {})
        was_healed = bool(state.get("operation", {}).get("sync", {}).get("resources"))
        if "operation" in found or not was_healed or state["phase"] != "Succeeded":
            return
        if any(HOOK not in job["metadata"].get("annotations", {}) for job in self.jobs()):
            return
        name = f"{self.worker_name}-rollout"
        intent = self.cluster.api.find(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")
        if intent and parse_intent(intent).hash != self.status().get("intent") and not self.active_jobs():
            self.application.sync()

    def active_jobs(self) -> Sequence[Object]:
        """Those that work on a rollout."""
        return [job for job in self.jobs() if job.get("status", {}).get("active")]

    def waits_for_its_hook(self) -> bool:
        """The sync that runs waits for its rollout."""
        running = self.application.operation()
        return running["phase"] == "Running" and "waiting for completion of hook" in running["message"]

    def described(self) -> Any:
        """What the server says of the worker, without the program."""
        return self.worker.described()

    def manager(self) -> str:
        """Who may change its traffic."""
        return str(self.described().manager_identity)

    def share(self, build_id: str) -> float:
        """Which share of the new workflows a version has, in percent."""
        return share_of(build_id, self.described().routing_config)

    def reaches(self, build_id: str, share: float) -> None:
        """Wait until the version has that share."""
        eventually(lambda: self.share(build_id) == share, SOON)

    def deployment(self, build_id: str) -> Object | None:
        return self.cluster.api.find(
            f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.worker_name}-{build_id}"
        )

    def replicas(self, build_id: str) -> int | None:
        found = self.deployment(build_id)
        return int(found["spec"]["replicas"]) if found else None

    def jobs(self) -> Sequence[Object]:
        return self.cluster.list("jobs", self.namespace)

    def running_job(self) -> Object:
        """The one that moves traffic now; its status may be behind."""

        def only() -> Object:
            [found] = self.active_jobs()
            return found

        return eventually(only, SOON)

    def account(self) -> str:
        """What is to be read where a story went wrong."""
        operation = self.application.find().get("status", {}).get("operationState", {})
        deployments = self.cluster.list("deployments", self.namespace)
        replicas = {item["metadata"]["name"]: item["spec"]["replicas"] for item in deployments}
        said = f"{operation.get('phase')}: {operation.get('message')}"
        conditions = self.application.find().get("status", {}).get("conditions", [])
        return "\n".join(map(str, (self.status(), replicas, said, conditions)))

    def discard(self) -> None:
        """Nothing of it runs any more."""
        self.application.discard()
        self.cluster.clear(self.namespace)


def budget_document(worker: str) -> Document:
    selector: Document = {"matchLabels": {}}
    more: Document = {"maxUnavailable": 1, "selector": selector}
    return attached_document(worker, "budget", "policy/v1", "PodDisruptionBudget", **more)


@contextmanager
def new_story(argo: ArgoCD, node: LocalNode, temporal: TemporalServer) -> Iterator[ApplicationStory]:
    """A story in a namespace and a repository of its own; where it goes wrong, what is to be read is told."""
    namespace = f"test-{uuid4().hex[:8]}"
    argo.cluster.create_namespace(namespace)
    (folder := argo.folder / namespace).mkdir()
    own = replace(argo, repository=new_repository(folder))
    story = ApplicationStory(own, node, temporal, Application(own, namespace, namespace))
    try:
        yield story
    except BaseException as error:
        error.add_note(story.account())
        raise
    finally:
        story.discard()


def uid(document: Object | None) -> str:
    assert document
    return str(document["metadata"]["uid"])


def attached_objects(story: ApplicationStory, build_id: str) -> Sequence[Object]:
    """What is attached to a version, and is not being deleted."""
    return [
        item
        for kind in ("horizontalpodautoscalers", "poddisruptionbudgets", "scaledobjects")
        for item in story.cluster.list(kind, story.namespace, f"temporal.io/build-id={build_id}")
        if "deletionTimestamp" not in item["metadata"]
    ]


def attached(story: ApplicationStory, build_id: str) -> dict[str, Any]:
    """The UID of the owner of each object that is attached to a version, by kind."""
    return {
        item["kind"]: next((owner["uid"] for owner in item["metadata"].get("ownerReferences", [])), None)
        for item in attached_objects(story, build_id)
    }


def is_protected(deployment: Document) -> bool:
    options = deployment["metadata"]["annotations"].get("argocd.argoproj.io/sync-options", "")
    return "Prune=false" in options.split(",")
