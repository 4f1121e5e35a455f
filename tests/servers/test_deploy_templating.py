"""What copies kustomize and helm into the sidecar, by each of the three ways to install it."""

from pathlib import Path

import pytest

from testing.kubernetes.cluster import Cluster
from tests.servers.test_deploy import (
    OF_ARGO_CD,
    REPO_SERVER,
    ROOT,
    Object,
    by_name,
    kustomized,
    made_by_chart,
    pod,
    sidecar,
    typed,
)

pytestmark = pytest.mark.server
COMPONENT = "twgen/deploy/templating"


def copies(found: dict[str, Object]) -> Object:
    """The init container that copies them."""
    [one] = [item for item in pod(found)["initContainers"] if item["name"] == "twgen-programs"]
    assert isinstance(one, dict)
    return one


def test_programs_come_out_of_the_image_of_argo_cd_and_change_nothing_else(tmp_path: Path) -> None:
    for name in ("plain", "more"):
        (tmp_path / name).mkdir()
    plain, more = kustomized(tmp_path / "plain"), kustomized(tmp_path / "more", COMPONENT)
    assert copies(more)["image"] == OF_ARGO_CD
    for name in ("initContainers", "volumes"):
        assert [item for item in pod(more)[name] if item["name"] != "twgen-programs"] == pod(plain)[name]
    [place] = [mount["mountPath"] for mount in copies(more)["volumeMounts"]]
    [path] = [entry["value"] for entry in sidecar(more)["env"] if entry["name"] == "PATH"]
    assert path.endswith(f":{place}"), "what the image has comes first"


def test_chart_copies_them_as_the_component_does(tmp_path: Path) -> None:
    by_chart, by_component = made_by_chart("templating/values.yaml"), kustomized(tmp_path, COMPONENT)
    for found in (by_chart, by_component):
        del pod(found)["serviceAccountName"]
    assert by_name(pod(by_chart)) == by_name(pod(by_component))


def test_commands_of_the_page_copy_them(tmp_path: Path, cluster: Cluster, namespace: str) -> None:
    kustomized(tmp_path)
    cluster.apply([{**REPO_SERVER, "metadata": {"name": "argocd-repo-server", "namespace": namespace}}])
    patch = f"--patch-file={ROOT / 'deploy' / 'sidecar.yaml'}"
    cluster.kubectl("patch", "-n", namespace, "deployment", "argocd-repo-server", patch)
    typed("image=", tmp_path, cluster.kubeconfig, "(?<= )argocd(?= )", namespace)
    live = {"Deployment/argocd-repo-server": cluster.get("deployment", "argocd-repo-server", namespace)}
    assert copies(live)["image"] == OF_ARGO_CD
