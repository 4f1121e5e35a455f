"""A worker moves here from the Temporal Worker Controller, by the steps of docs/controller.md.

Kubernetes, Argo CD and Temporal are real. The controller is not: in every step it is stopped, and what it
left is made here as its source has it; its Deployments are twgen's (`tests/planning/test_vectors.py`).
"""

import json
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest

from testing.argocd.application import PLUGIN
from testing.asking import succeeds
from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from tests.servers.gitops import SOON, ApplicationStory, budget_document, uid
from tests.servers.pods import deployment, shell
from tests.servers.rollouts import side_by_side
from twgen.yaml.reader import read_documents

pytestmark = pytest.mark.server

CONTROLLER = "temporal-worker-controller/temporal-system/5f2c1b1e-0d55-4f0c-9d4c-0d8d6c0e4f11"
"""A manager identity as the controller has it: release, namespace, and the UID of an object."""
FINALIZER = "temporal.io/delete-protection"
KINDS = ("WorkerDeployment", "Connection", "WorkerResourceTemplate")
GROUP = "/apis/temporal.io/v1alpha1"
WITHOUT_OWNERS = '{"metadata": {"ownerReferences": null}}'
WITHOUT_FINALIZERS = '{"metadata": {"finalizers": null}}'


def define_kinds(cluster: Cluster) -> None:
    """Let the API server know the controller's kinds, of whatever content."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    for kind in KINDS:
        names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
        name = f"{names['plural']}.temporal.io"
        spec = {"group": "temporal.io", "scope": "Namespaced", "names": names, "versions": [version]}
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        cluster.apply([{**head, "metadata": {"name": name}, "spec": spec}])
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=240s", f"crd/{name}")


def custom_resource(cluster: Cluster, namespace: str, kind: str, name: str) -> Object | None:
    return cluster.api.find(f"{GROUP}/namespaces/{namespace}/{kind.lower()}s/{name}")


def owned_by(owner: Object | None) -> dict[str, Any]:
    """The metadata of what the controller makes for a custom resource."""
    assert owner
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {
        "ownerReferences": [{**reference, "uid": uid(owner), "controller": True, "blockOwnerDeletion": True}]
    }


def reconcile(story: ApplicationStory, build_id: str) -> None:
    """Make what the controller makes of a new version: finalizers, a Deployment, and what is attached."""
    cluster, namespace = story.cluster, story.namespace
    worker = custom_resource(cluster, namespace, "WorkerDeployment", story.worker_name)
    template = custom_resource(cluster, namespace, "WorkerResourceTemplate", "budget")
    for kind, name in (("workerdeployments", story.worker_name), ("connections", "temporal")):
        path = f"{GROUP}/namespaces/{namespace}/{kind}/{name}"
        cluster.api.patch(path, {"metadata": {"finalizers": [FINALIZER]}})
    rendered = story.run("render", "--no-hooks")
    assert rendered.code == 0, rendered.stderr
    for manifest in read_documents(rendered.stdout):
        metadata = manifest["metadata"]
        if metadata["labels"]["temporal.io/build-id"] != build_id:
            continue
        labels = {name: value for name, value in metadata["labels"].items() if name.startswith("temporal.io")}
        owner = owned_by(worker if manifest["kind"] == "Deployment" else template)
        manifest["metadata"] = {"name": metadata["name"], "namespace": namespace, "labels": labels} | owner
        cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))


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


@side_by_side
def test_worker_moves_from_the_controller_into_argo_cd_and_keeps_every_pod_and_its_traffic(
    story: ApplicationStory,
) -> None:
    cluster, worker, name = story.cluster, story.worker, story.worker_name
    define_kinds(cluster)
    commit = story.commit("v1", budget_document(name), steps=())
    story.application.create({"limit": 30, "backoff": {"duration": "2s", "maxDuration": "5s"}}, is_plain=True)
    story.application.synced(commit)
    reconcile(story, "v1")
    eventually(lambda: succeeds(lambda: worker.set_current("v1")), SOON)
    worker.start("WaitingWorkflow", story.namespace, pinned_to="v1")
    commit = story.commit("v2", budget_document(name), steps=())
    story.application.synced(commit)
    reconcile(story, "v2")
    eventually(lambda: succeeds(lambda: worker.set_current("v2")), SOON)
    worker.set_manager(CONTROLLER)
    before = standing(story)
    assert len(before) == 8, before

    # whoever forgets all steps loses nothing: the render fails, so that Argo CD prunes nothing
    story.application.change({"spec": {"source": PLUGIN}})
    told = f"WorkerDeployment/{name} owns 2 Deployments, {name}-v1 and {name}-v2: "
    eventually(lambda: told in " ".join(story.application.errors()), SOON)
    for kind, owner in (("WorkerDeployment", name), ("Connection", "temporal")):
        found = custom_resource(cluster, story.namespace, kind, owner)
        assert found
        assert "deletionTimestamp" not in found["metadata"]

    story.application.change({"spec": {"syncPolicy": {"automated": None}}})
    assert told in story.run("plan").stdout
    identity = f"twgen/testing/{story.application.name}"
    claimed = story.run("ownership", "claim", "--from", CONTROLLER, "--identity", identity, "-y")
    assert claimed.code == 0, claimed.stderr
    assert not succeeds(lambda: worker.set_current("")), "from here on Temporal refuses everybody else"
    selector = f"temporal.io/deployment-name={name}"
    kinds = "deployments,poddisruptionbudgets"
    names = cluster.kubectl("get", kinds, "-n", story.namespace, "-l", selector, "-o", "name").split()
    cluster.kubectl("patch", "-n", story.namespace, *names, "--type=merge", "-p", WITHOUT_OWNERS)
    planned = story.run("plan")
    assert (planned.code, "ownerReferences" in planned.stdout) == (0, False), planned
    for one in (f"workerdeployments/{name}", "connections/temporal"):
        cluster.kubectl("patch", "-n", story.namespace, one, "--type=merge", "-p", WITHOUT_FINALIZERS)
    for one in (f"workerdeployments/{name}", "workerresourcetemplates/budget", "connections/temporal"):
        cluster.kubectl("delete", "-n", story.namespace, one, "--cascade=orphan", "--timeout=240s")
    story.application.change({"spec": {"syncPolicy": {"automated": {"prune": True, "selfHeal": True}}}})
    story.application.synced(commit)
    story.stands("Settled", "v2")
    assert standing(story) == before
    assert story.manager() == identity
    worker.finish(story.namespace)
    execution = WorkflowExecution(workflow_id=story.namespace)
    request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)

    def has_completed() -> bool:
        info = story.temporal.ask("describe_workflow_execution", request).workflow_execution_info
        return bool(info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED)

    eventually(has_completed, SOON)
    assert standing(story)["current"] == before["current"]


def test_finalizer_holds_up_no_pruning_and_an_apply_takes_no_owner_away(
    cluster: Cluster, namespace: str
) -> None:
    define_kinds(cluster)
    head = {"apiVersion": "temporal.io/v1alpha1", "kind": "WorkerDeployment"}
    metadata = {"name": "pay", "namespace": namespace, "finalizers": [FINALIZER]}
    cluster.apply([{**head, "metadata": metadata, "spec": {}}])
    owner = owned_by(custom_resource(cluster, namespace, "WorkerDeployment", "pay"))
    made = {name: deployment(namespace, name, shell("true"), replicas=0) for name in ("owned", "freed")}
    for manifest in made.values():
        manifest["metadata"] |= owner
        cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))
        manifest["metadata"].pop("ownerReferences")
    cluster.apply(made.values(), "--force-conflicts")
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
