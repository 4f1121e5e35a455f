"""What is read of a real cluster, and what a cluster that is not the right one comes to."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testing.faults import Trouble, forwarding
from testing.kubernetes.cluster import Cluster
from testing.servers import TemporalServer
from tests.servers.live import (
    PATIENT,
    SLACK,
    Document,
    Ended,
    connection_document,
    in_namespace,
    policy_document,
    run,
    worker_document,
)
from twgen.clients import kubernetes
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server


@pytest.fixture
def specs(namespace: str, oldest_temporal: TemporalServer, tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    write(folder, namespace, oldest_temporal, worker_document("pay", "v1"))
    return folder


def write(folder: Path, namespace: str, temporal: TemporalServer, *documents: Document) -> None:
    folder.mkdir(exist_ok=True)
    everything = in_namespace(namespace, connection_document(temporal.address), *documents)
    (folder / "specs.yaml").write_text(write_documents(everything))


def live(cluster: Cluster, folder: Path, *command: str) -> Ended:
    return with_kubeconfig(cluster.kubeconfig, folder, *command)


def with_kubeconfig(path: Path, folder: Path, *command: str) -> Ended:
    name, *given = command
    return run(folder, name, *PATIENT, *given, options=["--kubeconfig", str(path)])


def applied(cluster: Cluster, folder: Path, *options: str) -> list[Document]:
    rendered = live(cluster, folder, "render", *options)
    assert rendered.code == 0, rendered.stderr
    cluster.kubectl("apply", "-f", "-", input=rendered.stdout)
    return read_documents(rendered.stdout)


def plan(cluster: Cluster, folder: Path, *options: str) -> Document:
    ended = live(cluster, folder, "plan", "-o", "json", *options)
    assert ended.code == 0, ended.stderr
    [worker] = json.loads(ended.stdout)["workers"]
    return dict(worker)


def test_live_deployment_is_kept(cluster: Cluster, specs: Path) -> None:
    [version] = plan(cluster, specs)["versions"]
    assert (version["action"], version["because"]) == ("Create", "it is the target; it has no Deployment")
    applied(cluster, specs)
    [version] = plan(cluster, specs)["versions"]
    assert (version["action"], version["replicas"]) == ("Keep", 1)


def test_deployment_that_lost_its_build_id_label_by_hand_is_still_seen(
    cluster: Cluster, specs: Path, namespace: str
) -> None:
    applied(cluster, specs)
    cluster.kubectl("label", "deployment", "pay-v1", "-n", namespace, "temporal.io/build-id-")
    [version] = plan(cluster, specs)["versions"]
    assert (version["deployment"], version["action"]) == ("pay-v1", "Keep")


def test_old_version_is_rendered_from_the_cluster(
    cluster: Cluster, specs: Path, namespace: str, oldest_temporal: TemporalServer
) -> None:
    [old] = applied(cluster, specs)
    write(specs, namespace, oldest_temporal, worker_document("pay", "v2"))
    versions = {version["buildID"]: version for version in plan(cluster, specs)["versions"]}
    assert {name: version["action"] for name, version in versions.items()} == {"v1": "Keep", "v2": "Create"}
    [again, _] = read_documents(live(cluster, specs, "render").stdout)
    assert again["spec"]["template"]["spec"] == old["spec"]["template"]["spec"]


def test_version_that_lives_on_another_server_is_kept_as_it_is(
    cluster: Cluster, specs: Path, namespace: str, newest_temporal: TemporalServer
) -> None:
    applied(cluster, specs)
    cluster.kubectl("scale", "deployment", "pay-v1", "-n", namespace, "--replicas=3")
    write(specs, namespace, newest_temporal, worker_document("pay", "v2"))
    found = plan(cluster, specs)
    old = next(version for version in found["versions"] if version["buildID"] == "v1")
    assert (old["action"], old["replicas"], old["protected"]) == ("Keep", 3, True)
    assert any("whatever Temporal reports about it here" in warning for warning in found["warnings"])


def test_argocd_reads_the_cluster_that_the_operator_has_mapped_and_no_other(
    cluster: Cluster, specs: Path, tmp_path: Path
) -> None:
    applied(cluster, specs, "--identity", "twgen/prod-eu/shop")
    operator = tmp_path / "operator.json"
    variables = {
        "ARGOCD_APP_NAME": "shop",
        "ARGOCD_APP_PROJECT_NAME": "payments",
        "KUBECONFIG": str(cluster.kubeconfig),
        "TWGEN_ALLOW_UNLISTED_CONNECTIONS": "1",
        "TWGEN_OPERATOR_CONFIG": str(operator),
    }
    config = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", "instance": "prod-eu"}
    mapped = {"kubeconfig": str(cluster.kubeconfig), "context": "testing"}
    for project, read in (("payments", True), ("billing", False)):
        operator.write_text(json.dumps({**config, "clusters": [{"project": project, **mapped}]}))
        ended = run(specs, "plan", "-o", "json", options=[], variables=variables)
        assert ended.code == 0, ended.stderr
        [version] = json.loads(ended.stdout)["workers"][0]["versions"]
        assert version["action"] == ("Keep" if read else "Create")


def test_snapshot_holds_the_cluster_and_is_planned_as_the_servers_are(
    cluster: Cluster, specs: Path, tmp_path: Path
) -> None:
    applied(cluster, specs)
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_text(live(cluster, specs, "snapshot").stdout)
    for command in (("plan", "-o", "json", "--identity", "twgen/me"), ("render",)):
        offline = run(specs, *command, options=["--snapshot", str(snapshot)])
        online = live(cluster, specs, *command)
        assert (offline.code, offline.stderr) == (online.code, online.stderr) == (0, "")
        assert _timeless(offline.stdout) == _timeless(online.stdout)


def _timeless(text: str) -> object:
    [first, *more] = read_documents(text)
    return [{name: value for name, value in first.items() if name != "now"}, *more]


def test_deployments_come_in_pages(cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.kubectl(
        "apply", "-f", "-", input=write_documents([deployment(namespace, f"d{i}") for i in range(5)])
    )
    monkeypatch.setattr(kubernetes, "_PAGE", 2)
    with closing(KubernetesClient(ClusterAccess(str(cluster.kubeconfig)))) as client:
        found = asyncio.run(client.deployments(namespace, "temporal.io/build-id", Deadline(20)))
    assert [item["metadata"]["name"] for item in found] == [f"d{i}" for i in range(5)]
    assert {item["kind"] for item in found} == {"Deployment"}


def deployment(namespace: str, name: str, **metadata: Any) -> Document:
    labels = {"temporal.io/deployment-name": "gone", "temporal.io/build-id": "v1"}
    variables = [{"name": "TEMPORAL_DEPLOYMENT_NAME", "value": f"{namespace}/gone"}]
    pod = {"containers": [{"name": "worker", "image": "example.com/worker:1", "env": variables}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def test_deployment_of_a_worker_that_no_spec_names_is_warned_of_and_not_rendered(
    cluster: Cluster, specs: Path, namespace: str, tmp_path: Path
) -> None:
    orphan = deployment(namespace, "gone-v1", annotations={"twgen.io/identity": "twgen/me"})
    cluster.kubectl("apply", "-f", "-", input=write_documents([orphan]))
    rendered = live(cluster, specs, "render", "--identity", "twgen/me")
    assert f"no spec names {namespace}/gone, but its Deployment carries the identity" in rendered.stderr
    assert "gone-v1" not in rendered.stdout
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_text(live(cluster, specs, "snapshot").stdout)
    offline = run(specs, "render", "--identity", "twgen/me", options=["--snapshot", str(snapshot)])
    assert (offline.stdout, offline.stderr) == (rendered.stdout, rendered.stderr)


def test_namespace_that_is_not_there_is_an_empty_one(cluster: Cluster, specs: Path) -> None:
    text = (specs / "specs.yaml").read_text()
    documents = read_documents(text)
    for document in documents:
        document["metadata"]["namespace"] = "not-there"
    (specs / "specs.yaml").write_text(write_documents(documents))
    [version] = plan(cluster, specs)["versions"]
    assert version["because"] == "it is the target; it has no Deployment"


def test_wrong_cluster_is_noticed_by_the_identity_on_its_deployments(
    cluster: Cluster, specs: Path, namespace: str, oldest_temporal: TemporalServer
) -> None:
    applied(cluster, specs, "--identity", "twgen/staging")
    refused = live(cluster, specs, "render", "--identity", "twgen/prod")
    assert (refused.code, refused.stdout) == (5, "")
    [line] = refused.stderr.splitlines()
    assert (
        "pay-v1 belongs to manager twgen/staging, and twgen acts as twgen/prod: is this the right cluster?"
        in line
    )
    adopting = policy_document("pay", identity="prod", adoptFrom=["twgen/staging"])
    write(specs, namespace, oldest_temporal, worker_document("pay", "v1"), adopting)
    assert live(cluster, specs, "render").code == 0


def test_forbidden_is_an_error_and_never_an_empty_cluster(
    cluster: Cluster, specs: Path, namespace: str
) -> None:
    ended = with_kubeconfig(cluster.user("nobody", [], namespace), specs, "render")
    assert (ended.code, ended.stdout) == (3, "")
    [line] = ended.stderr.splitlines()
    assert "does not permit this request: the account needs the verb list on deployments.apps" in line


def test_context_that_is_not_there_is_an_error(cluster: Cluster, specs: Path) -> None:
    ended = live(cluster, specs, "render", "--context", "elsewhere")
    assert (ended.code, ended.stdout) == (3, "")
    assert "context 'elsewhere'" in ended.stderr


def test_wrong_certificate_authority_is_an_error(
    cluster: Cluster, specs: Path, tmp_path: Path, oldest_temporal: TemporalServer
) -> None:
    config = read_documents(Path(cluster.kubeconfig).read_text())[0]
    for item in config["clusters"]:
        item["cluster"] = {"server": item["cluster"]["server"]}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    ended = with_kubeconfig(path, specs, "render")
    assert (ended.code, ended.stdout) == (3, "")
    [line] = ended.stderr.splitlines()
    assert "cannot be reached" in line
    assert "certificate" in line
    assert oldest_temporal.address not in line


@pytest.mark.parametrize(
    ("trouble", "end"),
    [
        pytest.param(Trouble(answer_bytes=0), (3, "cannot be reached"), id="hangs up at once"),
        pytest.param(Trouble(answer_bytes=2500), (3, "cannot be reached"), id="answers half"),
        pytest.param(Trouble(pause=20), (4, "did not answer within 8 s"), id="is slow"),
    ],
)
def test_troubled_api_server_is_one_line_inside_the_deadline(
    cluster: Cluster, specs: Path, tmp_path: Path, trouble: Trouble, end: tuple[int, str]
) -> None:
    code, said = end
    config = read_documents(Path(cluster.kubeconfig).read_text())[0]
    with forwarding(cluster.address.removeprefix("https://"), trouble) as forwarder:
        for item in config["clusters"]:
            item["cluster"]["server"] = f"https://{forwarder.address}"
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        ended = with_kubeconfig(path, specs, "render", "--timeout", "8s")
    [line] = ended.stderr.splitlines()
    assert line.startswith("twgen: Kubernetes (")
    assert (ended.code, ended.stdout, said in line) == (code, "", True)
    assert ended.seconds < 8 + SLACK


def test_cluster_is_read_with_one_list(cluster: Cluster, specs: Path) -> None:
    applied(cluster, specs)
    before = lists(cluster)
    assert live(cluster, specs, "render").code == 0
    assert lists(cluster) - before == 1


def lists(cluster: Cluster) -> int:
    metrics = cluster.kubectl("get", "--raw", "/metrics")
    wanted = ('resource="deployments"', 'scope="namespace"', 'verb="LIST"', 'code="200"')
    lines = [line for line in metrics.splitlines() if line.startswith("apiserver_request_total{")]
    counted = [line for line in lines if all(part in line for part in wanted)]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in counted)


@pytest.fixture
def logged_in(cluster: Cluster, tmp_path: Path) -> Path:
    """A kubeconfig whose user logs in with a program, as clouds do it."""
    config = read_documents(Path(cluster.kubeconfig).read_text())[0]
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": config["users"][0]["user"]["token"]},
    }
    login = {"apiVersion": "client.authentication.k8s.io/v1", "command": "printf"}
    login |= {"args": ["%s", json.dumps(credential)], "interactiveMode": "Never"}
    config["users"] = [{"name": item["name"], "user": {"exec": login}} for item in config["users"]]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_credential_plugin_of_a_kubeconfig_is_run(specs: Path, logged_in: Path) -> None:
    ended = with_kubeconfig(logged_in, specs, "render")
    assert (ended.code, ended.stderr) == (0, "")


def test_attached_kind_that_is_in_no_namespace_is_refused_by_plan_and_found_by_doctor(
    cluster: Cluster, specs: Path, namespace: str, oldest_temporal: TemporalServer
) -> None:
    group = f"{namespace}.example.com"
    kinds = {"Everywhere": "Cluster", "Somewhere": "Namespaced"}
    for kind, scope in kinds.items():
        names = {"kind": kind, "plural": f"{kind.lower()}s"}
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{names['plural']}.{group}"},
            "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
        }
        cluster.define_kinds(text=json.dumps(definition))
    operator = {"attached": {"kinds": [{"group": group, "kind": kind} for kind in (*kinds, "Nowhere")]}}
    head = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig"}
    (file := specs.parent / "operator.json").write_text(json.dumps({**head, **operator}))
    given = ("--operator-config", str(file))
    for kind, code in (("Somewhere", 0), ("Nowhere", 0), ("Everywhere", 2)):
        attached = {
            "apiVersion": "temporal.io/v1alpha1",
            "kind": "WorkerResourceTemplate",
            "metadata": {"name": "rule"},
            "spec": {
                "workerDeploymentRef": {"name": "pay"},
                "template": {"apiVersion": f"{group}/v1", "kind": kind, "spec": {}},
            },
        }
        write(specs, namespace, oldest_temporal, worker_document("pay", "v1"), attached)
        ended = live(cluster, specs, "plan", *given)
        assert ended.code == code, ended.stderr
    assert f"spec.template.kind: {group}/Everywhere is cluster-scoped" in ended.stderr
    (specs / "specs.yaml").unlink()
    write(specs, namespace, oldest_temporal, worker_document("pay", "v1"))
    found = json.loads(live(cluster, specs, "doctor", "-o", "json", *given).stdout)["findings"]
    about = [(one["about"], one["severity"], one["says"]) for one in found if group in one["says"]]
    assert about == [("attached.kinds", "Problem", f"{group}/Everywhere is a cluster-scoped kind")]
