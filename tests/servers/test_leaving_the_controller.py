"""A worker moves here from the Temporal Worker Controller, and back, by the commands of the pages about it.

Kubernetes, Argo CD, Temporal and the controller are real.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

from testing.argocd.application import PLUGIN
from testing.asking import succeeds
from testing.install import installed
from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.processes import ENVIRONMENT, eventually
from testing.recipes import KUBECTL
from testing.servers import TemporalServer
from testing.worker_controller import define_kinds, worker_controller
from testing.workers import DeployedWorker
from tests.servers.gitops import SOON, ApplicationStory, budget_document, uid
from tests.servers.live import (
    TWGEN,
    connection_document,
    in_namespace,
    worker_container,
    worker_document,
)
from tests.servers.pods import deployment, shell
from tests.servers.side_by_side import side_by_side
from twgen.cluster.server_defaults import Comparison, compare
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

DOCS = Path(__file__).parents[2] / "docs"
FINALIZER = "temporal.io/delete-protection"
GROUP = "/apis/temporal.io/v1alpha1"
SUNSET = {"scaledownDelay": "1h", "deleteDelay": "24h"}
WITHOUT_OWNERS = '{"metadata": {"ownerReferences": null}}'
WITHOUT_FINALIZERS = '{"metadata": {"finalizers": null}}'
FILES = {
    "Connection": "connection-temporal.yaml",
    "WorkerDeployment": "payments.yaml",
    "WorkerResourceTemplate": "template-budget.yaml",
}
"""Where the page has each object."""


def steps_of(half: str) -> list[str]:
    """The commands of each step of one half of the page, in order."""
    section = (DOCS / "controller.md").read_text().partition(f"\n## {half}\n")[2].partition("\n## ")[0]
    _, *steps = re.split(r"^### \d\. ", section, flags=re.MULTILINE)
    return ["".join(re.findall(r"^```\n(.*?)^```$", step, re.MULTILINE | re.DOTALL)) for step in steps]


@dataclass(frozen=True, slots=True)
class Terminal:
    """A shell of a person who reads the page, in the folder of the specs, with the cluster at hand."""

    story: ApplicationStory
    controller: str
    """The identity by which the controller manages traffic."""

    @property
    def identity(self) -> str:
        """Of twgen in this Argo CD."""
        return f"twgen/testing/{self.story.application.name}"

    def run(self, commands: str) -> str:
        """What the commands print, with the names of the story; AssertionError when one fails."""
        here = {
            r"(?<=-n )shop\b": self.story.namespace,
            r"(?<=application )payments\b": self.story.application.name,
            r"twgen/prod-eu/payments": self.identity,
            r"temporal-worker-controller/temporal-system/[-0-9a-f]+": self.controller,
        }
        for named, name in here.items():
            commands = re.sub(named, name, commands)
        folder = self.story.cluster.folder
        programs = f"{TWGEN.parent}:{installed(KUBECTL).parent}"
        environment = {
            **{key: text for key, text in ENVIRONMENT.items() if not key.startswith(("TEMPORAL_", "TWGEN_"))},
            "PATH": f"{programs}:{ENVIRONMENT['PATH']}",
            "KUBECONFIG": str(self.story.cluster.kubeconfig),
            "HOME": str(folder),
            "KUBECACHEDIR": str(folder / "cache"),
            "TWGEN_YES": "true",
            "TWGEN_TIMEOUT": "2m",
        }
        ended = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", commands],
            cwd=self.story.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, (commands, ended.stdout, ended.stderr)
        return f"{ended.stdout}{ended.stderr}"


def custom_resource(cluster: Cluster, namespace: str, kind: str, name: str) -> Object | None:
    return cluster.api.find(f"{GROUP}/namespaces/{namespace}/{kind.lower()}s/{name}")


def owned_by(owner: Object | None) -> dict[str, Any]:
    """The metadata of what the controller makes for a custom resource."""
    assert owner
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {
        "ownerReferences": [{**reference, "uid": uid(owner), "controller": True, "blockOwnerDeletion": True}]
    }


def standing(story: ApplicationStory) -> dict[str, Any]:
    """What must not change: every Deployment, budget and pod, and where new workflows go, and since when."""
    found = {
        f"{kind} {item['metadata']['name']}": uid(item)
        for kind in ("deployments", "pods", "poddisruptionbudgets")
        for item in story.cluster.list(
            kind, story.namespace, f"temporal.io/deployment-name={story.worker_name}"
        )
    }
    routing = story.described().routing_config
    current = (
        routing.current_deployment_version.build_id,
        routing.current_version_changed_time.ToMilliseconds(),
    )
    return {**found, "current": current, "ramping": routing.ramping_deployment_version.build_id}


def standing_with(story: ApplicationStory, parts: int) -> dict[str, Any]:
    """The same, of so many parts: a controller may be behind."""
    found = standing(story)
    assert len(found) == parts, found
    return found


def begin(story: ApplicationStory) -> str:
    """Commit the first version of the worker, as the page lays files out."""
    documents = story.documents("v1", budget_document(story.worker_name), steps=(), spec={"sunset": SUNSET})
    story.folder.mkdir(exist_ok=True)
    for document in documents:
        # the build ID is the controller's to compute
        document["spec"].get("workerOptions", {}).pop("unsafeCustomBuildID", None)
        (story.folder / FILES[document["kind"]]).write_text(write_documents([document]))
    return story.argo.repository.commit("v1")


def bring(story: ApplicationStory, tag: str, before: str) -> str:
    """Commit another version of the worker, which changes its image alone."""
    file = story.folder / FILES["WorkerDeployment"]
    text = file.read_text()
    assert f":{before}" in text
    file.write_text(text.replace(f":{before}", f":{tag}"))
    return story.argo.repository.commit(tag)


def current(story: ApplicationStory, tag: str) -> str:
    """The build ID of a version, once it is current."""

    def found() -> str:
        build_id = str(story.described().routing_config.current_deployment_version.build_id)
        assert build_id.startswith(f"{tag}-"), (build_id, story.application.errors())
        return build_id

    return eventually(lambda: succeeds(found) and found(), SOON)


def owners(story: ApplicationStory, kind: str) -> set[tuple[str, str]]:
    """The owners of all objects of a kind, by kind and UID."""
    selector = f"temporal.io/deployment-name={story.worker_name}"
    found = story.cluster.list(kind, story.namespace, selector)
    lists = [item["metadata"].get("ownerReferences") or [{"kind": "", "uid": ""}] for item in found]
    return {(owner["kind"], owner["uid"]) for one in lists for owner in one}


def leave(story: ApplicationStory, terminal: Terminal, versions: Mapping[str, str]) -> None:
    """The way to twgen; `versions` are the build IDs of v1, which drains, and of v2, which is current."""
    write_down, stop, claim, disown, remove, render, start = steps_of("From the controller")
    told = f"WorkerDeployment/payments owns 2 Deployments (payments-{versions['v1']} and "
    before = eventually(lambda: standing_with(story, 8))
    # whoever forgets all steps loses nothing: the render fails, so that Argo CD prunes nothing
    story.application.change({"spec": {"source": PLUGIN}})
    eventually(lambda: told in " ".join(story.application.errors()), SOON)
    for kind, name in (("WorkerDeployment", "payments"), ("Connection", "temporal")):
        found = custom_resource(story.cluster, story.namespace, kind, name)
        assert found
        assert "deletionTimestamp" not in found["metadata"]
    story.application.change({"spec": {"source": {"plugin": None}}})

    said = terminal.run(write_down)
    assert "and 1 older version in" in said
    assert told in said
    commit = story.argo.repository.commit("what runs")
    remembered_as_they_run(story)
    terminal.run(stop)
    said = terminal.run(claim)
    assert f"manager changes from {terminal.controller} to {terminal.identity}" in said
    assert not succeeds(lambda: story.worker.set_current("")), "from here on Temporal refuses everybody else"
    assert "ownerReferences" not in terminal.run(disown)
    terminal.run(remove)
    for kind, name in (("WorkerDeployment", "payments"), ("Connection", "temporal")):
        assert not custom_resource(story.cluster, story.namespace, kind, name)
    terminal.run(render)
    story.application.synced(commit)
    story.stands("Settled", versions["v2"])
    terminal.run(start)
    assert standing(story) == before
    assert story.manager() == terminal.identity


def remembered_as_they_run(story: ApplicationStory) -> None:
    """Git alone renders all versions with the pods that they have."""
    rendered = story.run("render", "--no-hooks", "--no-cluster", "-q")
    assert rendered.code == 0, rendered.stderr
    manifests = [one for one in read_documents(rendered.stdout) if one["kind"] == "Deployment"]
    assert len(manifests) == 2
    for manifest in manifests:
        live = story.cluster.get("deployment", manifest["metadata"]["name"], story.namespace)
        assert compare(manifest["spec"]["template"], live["spec"]["template"]) == Comparison()


def return_(story: ApplicationStory, terminal: Terminal) -> None:
    """The way back to the controller."""
    stop, create, own, unmark, start, apply = steps_of("Back to the controller")
    before = eventually(lambda: standing_with(story, 11))
    assert "No resources found" in terminal.run(stop)
    terminal.run(create)
    [titles, *owned] = [line.split() for line in terminal.run(own).splitlines() if " patched" not in line]
    assert titles == ["NAME", "OWNER"]
    assert {owner for _, owner in owned} == {"WorkerDeployment"}
    worker = custom_resource(story.cluster, story.namespace, "WorkerDeployment", "payments")
    assert owners(story, "deployments") == {("WorkerDeployment", uid(worker))}
    assert " annotated" in terminal.run(unmark)
    assert "condition met" in terminal.run(start)
    assert story.manager() == ""
    terminal.run(apply)

    def is_taken_over() -> bool:
        found = custom_resource(story.cluster, story.namespace, "WorkerDeployment", "payments") or {}
        template = custom_resource(story.cluster, story.namespace, "WorkerResourceTemplate", "budget")
        conditions = {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])}
        assert conditions.get("Ready") == "True", found.get("status")
        return owners(story, "poddisruptionbudgets") == {("WorkerResourceTemplate", uid(template))}

    eventually(is_taken_over, SOON)
    eventually(lambda: succeeds(story.application.refresh) and not story.application.differing(), SOON)
    assert standing(story) == before


@side_by_side
def test_worker_moves_from_the_controller_into_argo_cd_and_back_and_keeps_every_pod_and_its_traffic(
    story: ApplicationStory,
) -> None:
    story = replace(story, worker_name="payments")
    with worker_controller(story.cluster, story.namespace) as controller:
        terminal = Terminal(story, controller)
        commit = begin(story)
        story.application.create(
            {"limit": 30, "backoff": {"duration": "2s", "maxDuration": "5s"}}, is_plain=True
        )
        story.application.synced(commit)
        v1 = current(story, "v1")
        story.worker.start("WaitingWorkflow", story.namespace, pinned_to=v1)
        story.application.synced(bring(story, "v2", "v1"))
        v2 = current(story, "v2")
        assert story.manager() == controller
        leave(story, terminal, {"v1": v1, "v2": v2})

        story.application.synced(bring(story, "v3", "v2"))
        story.stands("Settled", current(story, "v3"))
        assert story.manager() == terminal.identity
        return_(story, terminal)

        before = standing(story)
        bring(story, "v4", "v3")
        story.application.refresh()
        current(story, "v4")
        assert story.manager() == controller
        after = standing(story)
        assert {name: after[name] for name in before if " " in name} == {
            name: text for name, text in before.items() if " " in name
        }
        story.worker.finish(story.namespace)
        execution = WorkflowExecution(workflow_id=story.namespace)
        request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)

        def has_completed() -> bool:
            info = story.temporal.ask("describe_workflow_execution", request).workflow_execution_info
            return bool(info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED)

        eventually(has_completed, SOON)


def test_finalizer_holds_up_no_pruning_and_an_apply_takes_no_owner_away(
    cluster: Cluster, namespace: str
) -> None:
    define_kinds(cluster)
    document = worker_document("pay", "v1")
    document["metadata"] = {"name": "pay", "namespace": namespace, "finalizers": [FINALIZER]}
    document["spec"]["sunset"] = SUNSET
    cluster.apply([document])
    owner = owned_by(custom_resource(cluster, namespace, "WorkerDeployment", "pay"))
    made = {name: deployment(namespace, name, shell("true"), replicas=0) for name in ("owned", "freed")}
    for manifest in made.values():
        manifest["metadata"] |= owner
        cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))
        manifest["metadata"].pop("ownerReferences")
    cluster.apply(made.values())
    for name in made:
        assert cluster.get("deployment", name, namespace)["metadata"]["ownerReferences"]
    cluster.kubectl("patch", "-n", namespace, "deployment", "freed", "--type=merge", "-p", WITHOUT_OWNERS)
    # as Argo CD prunes
    cluster.kubectl(
        "delete", "-n", namespace, "workerdeployment", "pay", "--cascade=foreground", "--wait=false"
    )
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    eventually(lambda: cluster.api.find(f"{deployments}/owned") is None, SOON)

    def is_held_by_the_controllers_finalizer_alone() -> bool:
        held = custom_resource(cluster, namespace, "WorkerDeployment", "pay")
        assert held
        finalizers: list[str] = held["metadata"]["finalizers"]
        return finalizers == [FINALIZER]

    eventually(is_held_by_the_controllers_finalizer_alone, SOON)
    cluster.kubectl(
        "patch", "-n", namespace, "workerdeployment", "pay", "--type=merge", "-p", WITHOUT_FINALIZERS
    )
    eventually(lambda: not custom_resource(cluster, namespace, "WorkerDeployment", "pay"), SOON)
    freed = cluster.get("deployment", "freed", namespace)
    assert "deletionTimestamp" not in freed["metadata"]


@pytest.mark.usefixtures("node")
def test_controller_that_sees_a_deletion_takes_the_traffic_away_and_waits_for_the_pods_to_go(
    cluster: Cluster, newest_temporal: TemporalServer, namespace: str
) -> None:
    worker = DeployedWorker(newest_temporal, f"{namespace}/pay", f"pay-{namespace}")
    document = worker_document("pay", "v1", steps=())
    document["spec"]["sunset"] = SUNSET
    document["spec"]["template"]["spec"]["containers"] = [worker_container("v1", worker.task_queue)]
    connection = connection_document(newest_temporal.address)

    def routed_to(build_id: str) -> bool:
        routing = worker.described().routing_config
        return bool(routing.current_deployment_version.build_id == build_id)

    with worker_controller(cluster, namespace):
        cluster.apply(in_namespace(namespace, connection, document))
        eventually(lambda: routed_to("v1"), SOON)
        deletion = ("delete", "-n", namespace, "workerdeployment", "pay", "--cascade=orphan", "--wait=false")
        cluster.kubectl(*deletion)
        eventually(lambda: routed_to(""), SOON)
        left = cluster.get("deployment", "pay-v1", namespace)
        assert "deletionTimestamp" not in left["metadata"]
        held = custom_resource(cluster, namespace, "WorkerDeployment", "pay")
        assert held
        assert FINALIZER in held["metadata"]["finalizers"]
        cluster.kubectl("scale", "-n", namespace, "deployment", "pay-v1", "--replicas=0")
