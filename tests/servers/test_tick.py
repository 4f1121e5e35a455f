"""`deploy/tick` is what an API server takes, and its account may do what tick does and nothing else."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from testing.building import built_program
from testing.install import installed
from testing.kubernetes.api import Refused
from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from testing.recipes import KUBECTL
from testing.servers import TemporalServer
from tests.executing.argocd import Served, serving, tracked
from tests.servers.live import PATIENT, connection_document, in_namespace, run, worker_document
from tests.servers.test_rollout_account import RESOURCES, VERBS
from twgen import __version__
from twgen.versioning.names import INTENT_HASH, TRACKING_ID, rollout_labels
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

ROOT = Path(__file__).parents[2]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
pytestmark = pytest.mark.server
Object = dict[str, Any]


def built(folder: Path, *, without: str = "") -> dict[str, Object]:
    """What kustomize makes of an installation as the page shows it, by kind; without these components.

    It has the component for the Prometheus operator, which the page leaves out because it needs CRDs.
    """
    shutil.copytree(ROOT / "deploy", folder / "twgen" / "deploy", dirs_exist_ok=True)
    page = (ROOT / "docs" / "tick.md").read_text()
    [shown] = re.findall(r"^```yaml\n(namespace: twgen\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = re.sub(r"^# (?=.*/prometheus-operator$)", "", shown, flags=re.MULTILINE)
    kept = [line for line in shown.splitlines() if not (without and re.search(without, line))]
    return kustomized(folder, "\n".join(kept))


def kustomized(folder: Path, kustomization: str) -> dict[str, Object]:
    """What kustomize makes of it in that folder, by kind."""
    (folder / "kustomization.yaml").write_text(kustomization)
    command = [installed(KUBECTL), "kustomize", folder]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    documents = read_documents(text)
    found: dict[str, Object] = {document["kind"]: document for document in documents}
    assert len(found) == len(documents)
    return found


def pod(document: Object) -> Object:
    spec = document["spec"].get("jobTemplate", document)["spec"]["template"]["spec"]
    return {**spec, "containers": 0, **spec["containers"][0]}


@pytest.fixture
def account(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """The token of tick's account, with the rights that it is installed with."""
    objects = built(tmp_path)
    if not cluster.api.find("/api/v1/namespaces/twgen"):
        cluster.create_namespace("twgen")
    rights = [objects[kind] for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")]
    cluster.apply(rights)
    cluster.await_rights("twgen-tick", "twgen", objects["ClusterRole"]["rules"][0])
    yield cluster.token("twgen-tick", "twgen")
    cluster.api.delete(f"{RBAC}/clusterrolebindings/twgen-tick")
    cluster.api.delete(f"{RBAC}/clusterroles/twgen-tick")


def test_forms_differ_in_how_they_go_on_alone(tmp_path: Path) -> None:
    every = built(tmp_path)
    assert every.keys() == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment"),
        *("PodMonitor", "PrometheusRule"),
    }
    once = built(tmp_path, without="^components:|twgen/deploy/tick/")
    assert once.keys() - every.keys() == {"CronJob"}
    deployment, cron_job = pod(every["Deployment"]), pod(once["CronJob"])
    more = {variable["name"]: variable["value"] for variable in deployment.pop("env")}
    settings = {variable["name"]: variable["value"] for variable in cron_job.pop("env")}
    assert more == settings | {"TWGEN_EVERY": "1m", "TWGEN_METRICS": ":9402"}
    probes = {deployment.pop(name)["httpGet"]["path"] for name in ("readinessProbe", "livenessProbe")}
    assert probes == {"/healthz"}
    assert cron_job.pop("restartPolicy") == "Never"
    [port] = deployment.pop("ports")
    assert deployment == cron_job
    assert deployment["image"] == f"registry.example.com/tools/twgen:{__version__}"
    [endpoint] = every["PodMonitor"]["spec"]["podMetricsEndpoints"]
    template = every["Deployment"]["spec"]["template"]["metadata"]
    assert endpoint["port"] == port["name"]
    assert template["annotations"]["prometheus.io/port"] == str(port["containerPort"])
    assert every["PodMonitor"]["spec"]["selector"]["matchLabels"] == template["labels"]
    [subject] = every["ClusterRoleBinding"]["subjects"]
    account = every["ServiceAccount"]["metadata"]
    assert (subject["namespace"], subject["name"]) == (account["namespace"], account["name"])


def test_ticks_that_share_the_workers_are_numbered_pods(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    every = built(tmp_path)
    page = (ROOT / "docs" / "tick.md").read_text()
    [shown] = re.findall(r"^```yaml\n(components:\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [installation] = read_documents((tmp_path / "kustomization.yaml").read_text())
    [change] = read_documents(shown)
    (configuration,), (more,) = installation["configMapGenerator"], change.pop("configMapGenerator")
    configuration["literals"] += more["literals"]
    shared = kustomized(tmp_path, write_documents([installation | change]))
    stateful = shared["StatefulSet"]
    assert shared.keys() == every.keys() - {"Deployment", "PodMonitor", "PrometheusRule"} | {"StatefulSet"}
    assert str(stateful["spec"]["replicas"]) == shared["ConfigMap"]["data"]["TWGEN_SHARDS"] == "3"
    *settings, number = pod(stateful)["env"]
    assert settings == pod(every["Deployment"])["env"]
    assert number["name"] == "TWGEN_SHARD"
    label = number["valueFrom"]["fieldRef"]["fieldPath"].split("'")[1]

    for document in (shared["ServiceAccount"], stateful):
        document["metadata"]["namespace"] = namespace
    cluster.apply([shared["ServiceAccount"], stateful])

    def numbers() -> list[str]:
        pods = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return sorted(item["metadata"]["labels"][label] for item in pods)

    eventually(lambda: numbers() == ["0", "1", "2"])


def test_both_forms_are_taken_by_an_api_server_where_pods_are_restricted(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    places = {
        "Deployment": "apis/apps/v1/namespaces/{}/deployments",
        "CronJob": "apis/batch/v1/namespaces/{}/cronjobs",
        "ConfigMap": "api/v1/namespaces/{}/configmaps",
        "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
        "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
    forms = built(tmp_path), built(tmp_path, without="^components:|twgen/deploy/tick/")
    cluster.api.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "twgen-tick"}}
    )
    for kind, document in [item for form in forms for item in form.items() if item[0] in places]:
        if "namespace" in document["metadata"]:
            document["metadata"]["namespace"] = namespace
        place = f"/{places[kind].format(namespace)}/{document['metadata']['name']}"
        assert cluster.api.apply(place, document, is_stored=False)["kind"] == kind
        if kind in {"Deployment", "CronJob"}:
            template = document["spec"].get("jobTemplate", document)["spec"]["template"]
            head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tick"}}
            pods = f"/api/v1/namespaces/{namespace}/pods/tick"
            assert (
                cluster.api.apply(pods, head | {"spec": template["spec"]}, is_stored=False)["kind"] == "Pod"
            )


def test_objects_of_the_prometheus_operator_are_what_its_own_definitions_take(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    tool, group = ROOT / "tools" / "kubernetes_types", "monitoring.coreos.com"
    plurals = {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"}
    for kind in plurals:
        command = [built_program(tool), "-definition", kind]
        text = subprocess.run(command, cwd=tool, capture_output=True, text=True, check=True).stdout
        cluster.define_kinds(text=text)

    def take(document: Object) -> Object:
        document["metadata"]["namespace"] = namespace
        place = f"/apis/{group}/v1/namespaces/{namespace}/{plurals[document['kind']]}"
        return cluster.api.apply(f"{place}/{document['metadata']['name']}", document, is_stored=False)

    objects = built(tmp_path)
    monitor, rule = objects["PodMonitor"], objects["PrometheusRule"]
    assert take(monitor)["spec"] == monitor["spec"]
    assert take(rule)["spec"] == rule["spec"]
    [endpoint], [group_of_rules] = monitor["spec"]["podMetricsEndpoints"], rule["spec"]["groups"]
    endpoint["honourLabels"] = endpoint.pop("honorLabels")
    with pytest.raises(Refused, match="field not declared in schema"):
        take(monitor)
    group_of_rules["rules"][0]["for"] = "2 minutes"
    with pytest.raises(Refused, match=r"for in body should match"):
        take(rule)


def test_account_may_do_what_the_page_says_and_nothing_else(cluster: Cluster, account: str) -> None:
    assert account
    found = set()
    for verb, (group, resource) in product(VERBS, RESOURCES):
        plural, _, below = resource.partition("/")
        asked = {"verb": verb, "group": group, "resource": plural, "subresource": below, "namespace": "shop"}
        if cluster.may("twgen-tick", "twgen", asked):
            found.add((verb, f"{resource}.{group}".strip(".")))
    page = (ROOT / "docs" / "tick.md").read_text()
    told = re.findall(r"^\| `(list|delete)` \| (.*) \|$", page, re.MULTILINE)
    assert found == {(verb, name.strip("`")) for verb, names in told for name in names.split(", ")}


def test_account_suffices_for_all_that_tick_does(
    cluster: Cluster, account: str, namespace: str, newest_temporal: TemporalServer, tmp_path: Path
) -> None:
    """Its target has no pod and no traffic, its Job has failed, and its render would be another one."""
    (folder := tmp_path / "specs").mkdir()
    connection = connection_document(newest_temporal.address)
    documents = in_namespace(namespace, connection, worker_document("greeter", "v1"))
    (folder / "specs.yaml").write_text(write_documents(documents))
    operator = "apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\nrollout: {image: twgen}\n"
    (tmp_path / "operator.yaml").write_text(operator)
    administrator = ("--kubeconfig", str(cluster.kubeconfig), "--identity", "twgen/testing", "-q", *PATIENT)
    given = ["--operator-config", str(tmp_path / "operator.yaml"), *administrator]
    rendered = run(folder, "render", options=given)
    assert rendered.code == 0, rendered.stderr
    manifests = {item["kind"]: item for item in read_documents(rendered.stdout)}
    intent = manifests["ConfigMap"]
    intent_hash = intent["metadata"]["annotations"][INTENT_HASH]
    intent["metadata"]["annotations"] |= {TRACKING_ID: "pay:/ConfigMap:x/y", "twgen.io/plan-hash": "older"}
    job = manifests["Job"]
    job["metadata"]["labels"] |= rollout_labels("greeter")
    job["spec"]["suspend"] = True
    assert job["metadata"]["annotations"][INTENT_HASH] == intent_hash
    cluster.apply([intent, manifests["Deployment"], job])
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job['metadata']['name']}"
    ended = [
        {"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Test"}
        for name in ("FailureTarget", "Failed")
    ]
    status = {"status": {"startTime": "2026-01-01T00:00:00Z", "conditions": ended}}
    cluster.api.patch(f"{path}/status", status)
    kubeconfig = cluster.write_kubeconfig("tick", account)
    with serving(Served({"pay": {}}, {"pay": [tracked("greeter", namespace)]})) as argocd:
        options = ["-n", namespace, "--kubeconfig", str(kubeconfig), "--argocd-server", argocd.address]
        variables = {"ARGOCD_AUTH_TOKEN": argocd.token}
        tick = run(folder, "tick", options=options, variables=variables, takes_paths=False)
    assert (tick.code, tick.stderr) == (0, ""), tick
    assert f"{namespace}/greeter: deleted Job" in tick.stdout
    assert "pay: refreshed, because a new render of" in tick.stdout
    assert not cluster.api.find(path)
