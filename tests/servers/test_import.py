"""The controller's objects of a real cluster become specs of the same versions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.worker_controller import define_kinds
from tests.servers.live import PATIENT, Ended, run
from tests.specs.test_imports import deployment

pytestmark = pytest.mark.server
VECTORS = Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json"


def documents_of(namespace: str) -> list[dict[str, Any]]:
    case = next(one for one in json.loads(VECTORS.read_text()) if one["name"] == "advances-step")
    return [{**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in case["documents"]]


def targets(folder: Path) -> list[str]:
    told = json.loads(run(folder, "simulate", "-o", "json", options=("-q",)).stdout)
    return [worker["targetBuildID"] for worker in told["workers"]]


def imported(folder: Path, cluster: Cluster, namespace: str, *more: str) -> Ended:
    """What `twgen import --from-cluster` does into the folder `workers`."""
    options = ("-n", namespace, "--folder", "workers", "--kubeconfig", str(cluster.kubeconfig), *PATIENT)
    return run(folder, "import", "--from-cluster", *more, options=options, takes_paths=False)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One that nobody has told of any kind, until the last test of this file does."""
    with kubernetes_cluster(tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.mark.parametrize("is_asked", [True, False])
def test_worker_of_a_cluster_is_imported_with_its_build_id(
    cluster: Cluster, namespace: str, tmp_path: Path, *, is_asked: bool
) -> None:
    define_kinds(cluster)
    documents = documents_of(namespace)
    cluster.apply(documents)
    kinds = "workerdeployments,connections,workerresourcetemplates"
    (tmp_path / "objects.yaml").write_text(cluster.kubectl("get", kinds, "-n", namespace, "-o", "yaml"))
    (tmp_path / "git").mkdir()
    in_git = {"kind": "List", "apiVersion": "v1", "items": documents}
    (tmp_path / "git" / "specs.json").write_text(json.dumps(in_git))
    if is_asked:
        ended = imported(tmp_path, cluster, namespace)
    else:
        ended = run(tmp_path, "import", "objects.yaml", options=("--folder", "workers"), takes_paths=False)
    assert ended.code == 0, ended
    assert targets(tmp_path / "workers") == targets(tmp_path / "git")
    written = (tmp_path / "workers").rglob("*.yaml")
    assert not [file for file in written if "resourceVersion" in file.read_text()]


def test_plain_deployment_is_imported_by_name_where_nobody_knows_the_controller(
    bare: Cluster, tmp_path: Path
) -> None:
    plain = deployment()
    plain["metadata"] = {"name": "payments", "namespace": "default"}
    metadata = {"name": "payments", "namespace": "default"}
    scaled = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "payments"}}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata}
    protected = {"maxUnavailable": 1, "selector": plain["spec"]["selector"]}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata | {"name": "b"}}
    other = {**plain, "metadata": {"name": "other", "namespace": "default"}}
    bare.apply(
        [plain, other, {**scaler, "spec": {**scaled, "maxReplicas": 9}}, {**budget, "spec": protected}]
    )
    nothing = imported(tmp_path, bare, "default")
    assert (nothing.code, "nothing to import" in nothing.stderr) == (2, True), nothing
    missing = imported(tmp_path, bare, "default", "deployment/nobody")
    assert (missing.code, "nobody" in missing.stderr) == (3, True), missing
    assert not (tmp_path / "workers").exists()
    ended = imported(tmp_path, bare, "default", "deployment/payments")
    assert ended.code == 0, ended
    kinds = "WorkerDeployment, Connection and WorkerResourceTemplate"
    assert f"the API server does not have {kinds} (temporal.io/v1alpha1)" in ended.stderr
    files = {file.name for file in (tmp_path / "workers").iterdir()}
    templates = {"template-payments.yaml", "template-b.yaml"}
    assert files == {"payments.yaml", "connection-temporal.yaml", *templates}
    assert run(tmp_path / "workers", "validate", options=()).code == 0


def test_objects_of_another_release_are_imported_by_todays_names(bare: Cluster, tmp_path: Path) -> None:
    documents = documents_of("default")
    [worker] = [one for one in documents if one["kind"] == "WorkerDeployment"]
    worker["spec"]["workerOptions"]["connectionRef"] = {"kind": "ClusterConnection", "name": "everywhere"}
    everywhere = next(one for one in documents if one["kind"] == "Connection") | {
        "kind": "ClusterConnection",
        "metadata": {"name": "everywhere"},
    }
    define_anything(bare, "ClusterConnection", "Cluster")
    for one in documents:
        one["kind"] = f"Temporal{one['kind']}"
        define_anything(bare, one["kind"], "Namespaced")
    bare.apply([*documents, everywhere])
    ended = imported(tmp_path, bare, "default")
    assert ended.code == 0, ended
    assert "does not have WorkerResourceTemplate" in ended.stderr
    assert len(targets(tmp_path / "workers")) == 1
    assert (tmp_path / "workers" / "connection-everywhere.yaml").exists()


def define_anything(cluster: Cluster, kind: str, scope: str) -> None:
    """Let the API server know a kind of the controller's, of whatever content."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    name = f"{names['plural']}.temporal.io"
    spec = {"group": "temporal.io", "scope": scope, "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    cluster.define_kinds(text=json.dumps({**head, "metadata": {"name": name}, "spec": spec}))
