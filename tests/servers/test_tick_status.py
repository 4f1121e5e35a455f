"""What `twgen tick` reads of real servers, and what it writes into a real cluster."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.recipes import KUBECTL
from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server
from tests.servers.live import (
    PATIENT,
    Document,
    Ended,
    connection_document,
    policy_document,
    run,
    worker_document,
)
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MANY = 300
_DESCRIBE = "DescribeWorkerDeployment"
OPERATOR = "apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\nrollout: {image: twgen}\n"


@pytest.fixture(scope="module", name="newest_temporal")
def newest_temporal_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """A server that these tests alone call: they count its calls."""
    with temporal_server(tmp_path_factory.mktemp("alone"), NEWEST) as server:
        yield server


@pytest.fixture(scope="module", name="oldest_temporal")
def oldest_temporal_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """As above."""
    with temporal_server(tmp_path_factory.mktemp("alone"), OLDEST) as server:
        yield server


def write_specs(folder: Path, namespace: str, *documents: Document) -> None:
    for document in documents:
        document["metadata"]["namespace"] = namespace
    folder.mkdir()
    (folder / "specs.yaml").write_text(write_documents(documents))


def rendered(folder: Path, *options: str) -> list[Document]:
    operator = folder.with_suffix(".operator.yaml")
    operator.write_text(OPERATOR)
    given = ("--operator-config", str(operator), "--identity", "twgen/testing", "-q", *PATIENT, *options)
    ended = run(folder, "render", options=given)
    assert ended.code == 0, ended.stderr
    return read_documents(ended.stdout)


def test_many_workers_are_all_read_however_long_their_server_makes_that_last(
    cluster: Cluster, namespace: str, newest_temporal: TemporalServer, tmp_path: Path
) -> None:
    """At 45 calls a second, which is below the server's limit, they last longer than one answer may."""
    workers = (worker_document(f"many-{number}", "v1") for number in range(MANY))
    write_specs(tmp_path / "specs", namespace, connection_document(newest_temporal.address), *workers)
    made = rendered(tmp_path / "specs", "--no-cluster")
    cluster.apply([item for item in made if item["kind"] == "ConfigMap"])
    before = newest_temporal.calls()
    options = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), "--timeout", "6s")
    ended = run(tmp_path, "tick", options=options, takes_paths=False)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.seconds > 6
    # no call was refused and made again
    assert newest_temporal.calls() - before == {_DESCRIBE: MANY, "GetSystemInfo": 1}


def test_intent_that_anybody_may_have_written_has_no_server_asked_that_no_profile_lists(
    cluster: Cluster,
    namespace: str,
    newest_temporal: TemporalServer,
    oldest_temporal: TemporalServer,
    tmp_path: Path,
) -> None:
    for name, server in (("listed", newest_temporal), ("unlisted", oldest_temporal)):
        write_specs(
            tmp_path / name, namespace, connection_document(server.address), worker_document(name, "v1")
        )
        made = rendered(tmp_path / name, "--no-cluster")
        cluster.apply([item for item in made if item["kind"] == "ConfigMap"])
    options = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), *PATIENT)
    listed = {"TEMPORAL_ADDRESS": newest_temporal.address, "TEMPORAL_NAMESPACE": "default"}

    def asked(*more: str) -> tuple[Ended, list[int]]:
        servers = (newest_temporal, oldest_temporal)
        before = [server.calls()[_DESCRIBE] for server in servers]
        given = (*options, *more)
        ended = run(tmp_path, "tick", options=given, variables=listed, takes_paths=False)
        return ended, [
            server.calls()[_DESCRIBE] - count for server, count in zip(servers, before, strict=True)
        ]

    ended, calls = asked()
    assert (ended.code, calls) == (0, [1, 1]), ended
    ended, calls = asked("--only-listed-connections")
    assert (ended.code, calls) == (3, [1, 0]), ended
    assert f"{oldest_temporal.address}, namespace 'default' (for {namespace}/unlisted of" in ended.stderr
    assert "connection 'temporal' must be listed, and no Temporal profile matches" in ended.stderr


@pytest.fixture
def kubeconfigs(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Accounts of tick, with the rights of `deploy/tick`: alone, and with the component `statuses`."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    made = {}
    for name, more in (("alone", ""), ("keeping", "components: [deploy/tick/statuses]\n")):
        (tmp_path / "kustomization.yaml").write_text(f"resources: [deploy/tick]\n{more}")
        command = [installed(KUBECTL), "kustomize", tmp_path]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        objects = {item["kind"]: item for item in read_documents(text)}
        account, role, binding = (
            objects[kind] for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
        )
        role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = f"tick-{name}"
        account["metadata"] = {"name": name, "namespace": namespace}
        binding["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
        cluster.apply([account, role, binding])
        made[name] = cluster.write_kubeconfig(f"tick-{name}", cluster.token(name, namespace))
    yield made
    for name in made:
        cluster.api.delete(f"{RBAC}/clusterrolebindings/tick-{name}")
        cluster.api.delete(f"{RBAC}/clusterroles/tick-{name}")


def test_status_of_a_worker_that_a_person_rolls_out_is_kept_by_an_account_that_may(
    cluster: Cluster,
    namespace: str,
    kubeconfigs: dict[str, Path],
    newest_temporal: TemporalServer,
    tmp_path: Path,
) -> None:
    policy = policy_document("greeter", driver="None")
    connection = connection_document(newest_temporal.address)
    write_specs(tmp_path / "specs", namespace, connection, worker_document("greeter", "v1"), policy)
    made = rendered(tmp_path / "specs", "--no-cluster")
    assert [item["kind"] for item in made] == ["ConfigMap", "Deployment"]
    cluster.apply(made)
    told = []
    for name in ("alone", "keeping", "keeping"):
        options = ("-n", namespace, "--kubeconfig", str(kubeconfigs[name]))
        told.append(run(tmp_path, "tick", options=options, takes_paths=False))
    assert [(ended.code, ended.stdout) for ended in told] == [(0, ""), (0, ""), (0, "")]
    assert "permissions in deploy/tick/statuses?" in told[0].stderr
    status = cluster.get("configmap", "greeter-rollout-status", namespace)
    assert (status["data"]["phase"], status["data"]["reason"]) == ("Waiting", "WaitingForRegistration")
    intent = cluster.get("configmap", "greeter-rollout", namespace)
    assert status["metadata"]["ownerReferences"][0]["uid"] == intent["metadata"]["uid"]
    path = f"/api/v1/namespaces/{namespace}/configmaps/greeter-rollout-status"
    fields = cluster.api.get(path)["metadata"]["managedFields"]
    assert [item["manager"] for item in fields] == ["twgen-tick"]
    options = ("--from-cluster", "-n", namespace, "--kubeconfig", str(kubeconfigs["alone"]))
    shown = run(tmp_path, "status", options=options, takes_paths=False)
    assert shown.stdout.startswith(f"{namespace}/greeter: Waiting for ")
