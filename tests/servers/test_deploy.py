"""What `deploy/` makes of an Argo CD's repo-server is what an API server takes, and what the plugin needs."""

import re
import shlex
import shutil
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from testing.install import installed
from testing.kubernetes.api import Refused
from testing.kubernetes.cluster import Cluster
from testing.processes import ENVIRONMENT
from testing.recipes import KUBECTL
from tests.docs.test_removing_a_worker import UNINSTALL, commands
from twgen import __version__
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

ROOT = Path(__file__).parents[2]
IMAGE, OF_ARGO_CD = f"registry.example.com/tools/twgen:{__version__}", "quay.io/argoproj/argocd:v3.6.1"
pytestmark = pytest.mark.server
Object = dict[str, Any]

REPO_SERVER: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "argocd-repo-server"},
    "spec": {
        "selector": {"matchLabels": {"app.kubernetes.io/name": "argocd-repo-server"}},
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/name": "argocd-repo-server"}},
            "spec": {
                "automountServiceAccountToken": False,
                "containers": [
                    {
                        "name": "argocd-repo-server",
                        "image": OF_ARGO_CD,
                        "volumeMounts": [{"name": "plugins", "mountPath": "/home/argocd/cmp-server/plugins"}],
                    }
                ],
                "initContainers": [
                    {
                        "name": "copyutil",
                        "image": OF_ARGO_CD,
                        "volumeMounts": [{"name": "var-files", "mountPath": "/var/run/argocd"}],
                    }
                ],
                "serviceAccountName": "argocd-repo-server",
                "volumes": [{"name": name, "emptyDir": {}} for name in ("var-files", "plugins", "tmp")],
            },
        },
    },
}
"""What the patches rely on, as Argo CD's own manifests have it."""

# https://github.com/argoproj/argo-helm/blob/main/charts/argo-cd/values.yaml
CHART_LISTS = ("extraContainers", "initContainers", "volumes")
CHART_VALUES: Object = {"automountServiceAccountToken": True, **{key: [] for key in CHART_LISTS}}
"""The defaults of the argo-cd chart for what `deploy/values.yaml` sets of its repo-server."""

CHART_NAMES = {
    "argo-cd.repoServer.serviceAccountName": "gitops-repo-server",
    "argo-cd.namespace": "gitops",
}
"""Templates of the chart, and what they give for a release `gitops` in a namespace of that name."""

IMAGE_OF_CHART = (
    "{{ default .Values.global.image.repository .Values.repoServer.image.repository }}:"
    '{{ default (include "argo-cd.defaultTag" .) .Values.repoServer.image.tag }}'
)
"""What the chart's own init container has, too."""


@pytest.fixture
def built(tmp_path: Path) -> dict[str, Object]:
    """What kustomize makes of an installation as the page shows it, by kind and name."""
    return kustomized(tmp_path)


def kustomized(tmp_path: Path, *more: str) -> dict[str, Object]:
    """The same, with more components."""
    shutil.copytree(ROOT / "deploy", tmp_path / "twgen" / "deploy")
    shutil.copy(ROOT / "deploy" / "twgen-operator.yaml", tmp_path)
    shutil.copy(ROOT / "deploy" / "temporal.yaml", tmp_path)
    (tmp_path / "install.yaml").write_text(write_documents([REPO_SERVER]))
    page = (ROOT / "docs" / "argocd.md").read_text()
    [shown] = re.findall(r"^```yaml\n(namespace: argocd\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [kustomization] = read_documents(shown)
    kustomization["components"] += more
    (tmp_path / "kustomization.yaml").write_text(write_documents([kustomization]))
    text = subprocess.run(
        [installed(KUBECTL), "kustomize", tmp_path], capture_output=True, text=True, check=True
    ).stdout
    return {
        f"{document['kind']}/{document['metadata']['name']}": document for document in read_documents(text)
    }


@pytest.fixture
def charted() -> dict[str, Object]:
    """What the argo-cd chart makes of its values as the page shows it, by kind and name.

    It adds containers and volumes to those of its repo-server, and fills in names in containers and objects.
    """
    return made_by_chart("values.yaml")


def made_by_chart(values_file: str) -> dict[str, Object]:
    text = (ROOT / "deploy" / values_file).read_text().replace("image: twgen\n", f"image: {IMAGE}\n")
    for template, name in CHART_NAMES.items():
        text = text.replace(f'{{{{ include "{template}" . }}}}', name)
    text = text.replace(IMAGE_OF_CHART, OF_ARGO_CD)
    assert "{{" not in text
    [values] = read_documents(text)
    # what it does not know, Helm ignores
    assert values.keys() == {"repoServer", "extraObjects"}
    assert values["repoServer"].keys() <= CHART_VALUES.keys()
    repo_server, own = deepcopy(REPO_SERVER), CHART_VALUES | values["repoServer"]
    repo_server["metadata"]["namespace"] = CHART_NAMES["argo-cd.namespace"]
    found = {
        f"{each['kind']}/{each['metadata']['name']}": each for each in (repo_server, *values["extraObjects"])
    }
    spec = pod(found)
    spec["serviceAccountName"] = CHART_NAMES["argo-cd.repoServer.serviceAccountName"]
    spec["automountServiceAccountToken"] = own["automountServiceAccountToken"]
    spec["containers"] += own["extraContainers"]
    spec["initContainers"] += own["initContainers"]
    spec["volumes"] += own["volumes"]
    return found


def by_name(value: Any) -> Any:
    """The same, with each list of things that have names as what they are by their names, in no order."""
    if isinstance(value, dict):
        return {key: by_name(inner) for key, inner in value.items()}
    if isinstance(value, list) and all(isinstance(each, dict) and "name" in each for each in value):
        named = {each["name"]: by_name(each) for each in value}
        assert len(named) == len(value)
        return named
    return value


def pod(built: dict[str, Object]) -> Object:
    spec: Object = built["Deployment/argocd-repo-server"]["spec"]["template"]["spec"]
    return spec


def sidecar(built: dict[str, Object]) -> Object:
    [found] = [container for container in pod(built)["containers"] if container["name"] == "twgen"]
    assert isinstance(found, dict)
    return found


def test_patched_repo_server_and_all_beside_it_are_taken_by_an_api_server(
    built: dict[str, Object], cluster: Cluster
) -> None:
    places = {
        "Deployment": "apis/apps/v1/namespaces/default/deployments",
        "ConfigMap": "api/v1/namespaces/default/configmaps",
        "Secret": "api/v1/namespaces/default/secrets",
        "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    }
    for document in built.values():
        if "namespace" in document["metadata"]:
            document["metadata"]["namespace"] = "default"
        place = f"/{places[document['kind']]}/{document['metadata']['name']}"
        assert cluster.api.apply(place, document, is_stored=False)["kind"] == document["kind"]
    sidecar(built)["securityContext"]["readOnlyRootFileSystem"] = True
    with pytest.raises(Refused, match="field not declared in schema"):
        cluster.api.apply(
            f"/{places['Deployment']}/argocd-repo-server",
            built["Deployment/argocd-repo-server"],
            is_stored=False,
        )


def test_patches_add_a_sidecar_and_change_nothing_that_is_there(built: dict[str, Object]) -> None:
    spec = pod(built)
    before = REPO_SERVER["spec"]["template"]["spec"]
    for name in ("containers", "volumes"):
        assert [each for each in spec[name] if not each["name"].startswith("twgen")] == before[name]
    assert {**spec, "containers": 0, "volumes": 0} == {**before, "containers": 0, "volumes": 0}
    assert sidecar(built)["image"] == IMAGE
    # the token of the cluster is the sidecar's alone
    mounted = {mount["name"] for mount in sidecar(built)["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["volumes"]} - {"tmp"}


def test_kubectl_patches_to_the_same_sidecar_as_kustomize(
    built: dict[str, Object], cluster: Cluster, namespace: str
) -> None:
    cluster.apply([REPO_SERVER | {"metadata": {"name": "argocd-repo-server", "namespace": namespace}}])
    for name in ("sidecar.yaml", "in-cluster/token.yaml"):
        patch = f"--patch-file={ROOT / 'deploy' / name}"
        cluster.kubectl("patch", "-n", namespace, "deployment", "argocd-repo-server", patch)
    live = {"Deployment/argocd-repo-server": cluster.get("deployment", "argocd-repo-server", namespace)}
    patched, expected = sidecar(live), sidecar(built) | {"image": "twgen"}
    assert {key: patched[key] for key in expected.keys() - {"volumeMounts"}} == {
        key: value for key, value in expected.items() if key != "volumeMounts"
    }
    assert {mount["mountPath"] for mount in patched["volumeMounts"]} == {
        mount["mountPath"] for mount in expected["volumeMounts"]
    }


def test_page_takes_the_sidecar_out_of_the_repo_server_again(cluster: Cluster, namespace: str) -> None:
    cluster.apply([REPO_SERVER | {"metadata": {"name": "argocd-repo-server", "namespace": namespace}}])
    before = cluster.get("deployment", "argocd-repo-server", namespace)["spec"]["template"]["spec"]
    for name in ("sidecar.yaml", "in-cluster/token.yaml"):
        patch = f"--patch-file={ROOT / 'deploy' / name}"
        cluster.kubectl("patch", "-n", namespace, "deployment", "argocd-repo-server", patch)
    [command] = [line for line in commands("kubectl", UNINSTALL) if " patch -n argocd deployment " in line]
    cluster.kubectl(*shlex.split(command.replace("-n argocd", f"-n {namespace}"))[1:])
    assert cluster.get("deployment", "argocd-repo-server", namespace)["spec"]["template"]["spec"] == before


def test_chart_and_kustomization_make_the_same_pod_and_give_its_account_the_same_rights(
    built: dict[str, Object], charted: dict[str, Object]
) -> None:
    accounts = [pod(found).pop("serviceAccountName") for found in (built, charted)]
    assert accounts == ["argocd-repo-server", "gitops-repo-server"]
    assert by_name(pod(charted)) == by_name(pod(built))
    for account, found in zip(accounts, (built, charted), strict=True):
        [subject] = found["ClusterRoleBinding/twgen"].pop("subjects")
        namespace = found["Deployment/argocd-repo-server"]["metadata"]["namespace"]
        assert subject == {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    for name in ("ClusterRole/twgen", "ClusterRoleBinding/twgen"):
        assert charted[name] == built[name]


def typed(beginning: str, folder: Path, kubeconfig: Path, name: str, other: str) -> None:
    """Run the block of commands of the page that begins so, as a reader does, with another name."""
    page = (ROOT / "docs" / "charts.md").read_text()
    block = rf"^```\n({re.escape(beginning)}.*?)^```$"
    [commands] = re.findall(block, page, re.MULTILINE | re.DOTALL)
    commands = re.sub(name, other, commands)
    programs = f"{installed(KUBECTL).parent}:{ENVIRONMENT['PATH']}"
    environment = {**ENVIRONMENT, "HOME": str(folder), "KUBECONFIG": str(kubeconfig), "PATH": programs}
    subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=environment, check=True)


def test_commands_of_the_page_make_a_kubeconfig_for_another_cluster_that_lists_deployments_alone(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    # by other names: an Argo CD of the cluster may have them
    form = tmp_path / "twgen" / "deploy" / "other-cluster.yaml"
    form.parent.mkdir(parents=True)
    form.write_text(re.sub("(?<=: )twgen", namespace, (ROOT / "deploy" / form.name).read_text()))
    administrator = Path(shutil.copy(cluster.kubeconfig, tmp_path / "administrator"))
    cluster.kubectl("config", "rename-context", "testing", "prod-eu", kubeconfig=administrator)
    try:
        typed("kubectl --context prod-eu ", tmp_path, administrator, "(?<= |/)twgen(?= )", namespace)
        list_deployments = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}
        cluster.await_rights(namespace, namespace, list_deployments)
        made = tmp_path / "kubeconfig"
        cluster.kubectl("get", "deployments", "-A", "--context=prod-eu", kubeconfig=made)
        with pytest.raises(AssertionError, match=rf"serviceaccount:{namespace}:{namespace}\" cannot list"):
            cluster.kubectl("get", "secrets", "-A", "--context=prod-eu", kubeconfig=made)
    finally:
        cluster.kubectl(
            "delete", "clusterrole,clusterrolebinding", f"{namespace}-reader", "--ignore-not-found"
        )


def test_account_of_the_sidecar_lists_deployments_and_nothing_else(
    built: dict[str, Object], cluster: Cluster
) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    # by another name: an Argo CD of the cluster may have them
    name = {"name": "twgen-alone"}
    role, binding = built["ClusterRole/twgen"], built["ClusterRoleBinding/twgen"]
    cluster.api.create(f"{rbac}/clusterroles", {**role, "metadata": name})
    bound = {**binding, "metadata": name, "roleRef": binding["roleRef"] | name}
    cluster.api.create(f"{rbac}/clusterrolebindings", bound)

    def may(verb: str, group: str, resource: str) -> bool:
        asked = {"verb": verb, "group": group, "resource": resource, "namespace": "shop"}
        return cluster.may("argocd-repo-server", "argocd", asked)

    try:
        cluster.await_rights("argocd-repo-server", "argocd", role["rules"][0])
        assert may("list", "apps", "deployments")
        more = [("get", "apps", "deployments"), ("list", "", "secrets"), ("patch", "apps", "deployments")]
        assert [asked for asked in more if may(*asked)] == []
    finally:
        cluster.api.delete(f"{rbac}/clusterrolebindings/twgen-alone")
        cluster.api.delete(f"{rbac}/clusterroles/twgen-alone")
