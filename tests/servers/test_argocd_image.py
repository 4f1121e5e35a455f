"""Argo CD whose plugin, Jobs and tick run in the built image, as its user and with a read-only root."""

import os
import re
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from testing.argocd.application import Application
from testing.argocd.argocd import IMAGE, ArgoCD, argocd
from testing.argocd.server import ArgoServer
from testing.argocd.tick import install_account
from testing.image import built_image
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.image import Image
from testing.local_node.node import local_node
from testing.processes import eventually, free_ports
from testing.servers import TemporalServer
from tests.servers.gitops import SOON, ApplicationStory, is_protected
from tests.servers.live import Document, policy_document
from tests.servers.test_tick import built
from twgen import __version__

USER = 999
OF_TICK = f"registry.example.com/tools/twgen:{__version__}"
"""As the page installs it."""
QUICKLY: Document = {
    "rollout": {
        "strategy": "Progressive",
        "steps": [{"rampPercentage": 25, "pauseDuration": "30s"}],
        "gate": {"workflowType": "GateWorkflow"},
    },
    "sunset": {"scaledownDelay": "1s", "deleteDelay": "1s"},
}
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(os.geteuid() != 0, reason="an image is built by root alone"),
]


@dataclass(frozen=True, slots=True)
class Installed:
    """An Argo CD whose plugin is the image, and tick beside it, in the cluster of the workers."""

    argo: ArgoCD
    server: ArgoServer
    story: ApplicationStory


@pytest.fixture(scope="module")
def image() -> Image:
    return built_image()


@pytest.fixture(scope="module")
def installed(
    image: Image, newest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    with ExitStack() as running:
        cluster = running.enter_context(kubernetes_cluster(tmp_path_factory.mktemp("image-kubernetes")))
        node = running.enter_context(local_node(cluster, images={IMAGE: image, OF_TICK: image}))
        folder = tmp_path_factory.mktemp("image-argocd")
        argo = running.enter_context(argocd(cluster, folder, image=image))
        argo.configure([newest_temporal.address])
        assert install_account(argo) == "twgen-tick"
        server = running.enter_context(argo.server())
        cluster.create_namespace("shop")
        yield Installed(
            argo, server, ApplicationStory(argo, node, newest_temporal, Application(argo, "shop", "shop"))
        )


def test_story_is_told_by_the_image_alone(installed: Installed, image: Image, tmp_path: Path) -> None:
    """The first sync, a gated ramp, a look of tick as a CronJob, and the rest by tick as a Deployment."""
    story = installed.story
    story.commit("v1", policy_document("greeter", driver="Job"), spec=QUICKLY, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    commit = story.commit("v2", policy_document("greeter", driver="Job"), spec=QUICKLY)
    story.application.refresh()
    story.reaches("v2", 25)
    runs_in_image(installed.argo.plugin.pid, image)
    runs_in_image(only_process("rollout", "--intent", "shop/greeter-rollout"), image)
    story.stands("Settled", "v2")
    story.application.synced(commit)
    story.worker.drains("v1")
    assert story.replicas("v1") == 1, "only a render knows that it has drained"

    install_tick(installed, built(tmp_path, without="^components:|twgen/deploy/tick/"))
    looked = look_once(installed)
    assert looked == "shop: refreshed, because a new render of shop/greeter would differ\n"
    eventually(lambda: story.replicas("v1") == 0, SOON)
    found = story.deployment("v1")
    assert found
    assert not is_protected(found)

    story.cluster.kubectl("delete", "cronjob/twgen-tick", "--namespace=twgen", "--cascade=foreground")
    port = install_tick(installed, built(tmp_path))
    eventually(lambda: is_available(story), SOON)
    runs_in_image(only_process("tick"), image)
    eventually(lambda: story.deployment("v1") is None, SOON)
    metrics = eventually(lambda: refreshed(port), SOON)
    assert 'twgen_rollout_phase{namespace="shop",phase="Settled",worker="greeter"} 1' in metrics
    assert fetched(port, "healthz") == "ok\n"
    story.application.synced(commit)


def only_process(*words: str) -> int:
    """The one of ours that is a twgen with these first words, once earlier ones have ended."""

    def found() -> int:
        lines = {}
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has ended since, or is a zombie
                lines[child.pid] = child.cmdline()
        ours = {pid: line[2:] for pid, line in lines.items() if line[1:] and line[1].endswith("bin/twgen")}
        [only] = [pid for pid, told in ours.items() if tuple(told[: len(words)]) == words]
        return only

    return eventually(found, SOON)


def runs_in_image(process: int, image: Image) -> None:
    """It is the image's user, and sees files of the image, which nobody may change, and none of ours."""
    assert set(psutil.Process(process).uids()) == {USER}
    root = Path(f"/proc/{process}/root")
    assert (root / "opt/twgen/bin/twgen").stat().st_ino == (image.root / "opt/twgen/bin/twgen").stat().st_ino
    assert not (root / str(Path(__file__).relative_to("/"))).exists()
    mounted = [line.split() for line in Path(f"/proc/{process}/mounts").read_text().splitlines()]
    [options] = [fields[3] for fields in mounted if fields[1] == "/opt"]
    assert "ro" in options.split(",")


def install_tick(installed: Installed, objects: Mapping[str, Document]) -> int:
    """Apply what the page has an operator apply, less what needs Prometheus; its port of metrics."""
    cluster, [port] = installed.argo.cluster, free_ports(1)
    if not cluster.api.find("/api/v1/namespaces/twgen"):
        cluster.create_namespace("twgen")
        temporal = (installed.argo.sidecar.folder / "twgen-temporal" / "temporal.toml").read_text()
        cluster.apply(
            [
                secret("twgen-tick", {"token": installed.server.token("twgen-tick")}),
                secret("twgen-temporal", {"temporal.toml": temporal}),
            ]
        )
    objects["ConfigMap"]["data"]["TWGEN_ARGOCD_SERVER"] = installed.server.address
    if "CronJob" in objects:
        # it looks when this test asks it to
        objects["CronJob"]["spec"]["suspend"] = True
    if "Deployment" in objects:
        [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
        # one that nobody else on this machine has
        container["ports"][0]["containerPort"] = port
        [metrics] = [entry for entry in container["env"] if entry["name"] == "TWGEN_METRICS"]
        metrics["value"] = f"127.0.0.1:{port}"
    cluster.apply([item for kind, item in objects.items() if kind not in {"PodMonitor", "PrometheusRule"}])
    return port


def secret(name: str, data: Mapping[str, str]) -> Document:
    head: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret"}
    return {**head, "metadata": {"name": name, "namespace": "twgen"}, "stringData": dict(data)}


def look_once(installed: Installed) -> str:
    """What a run of the CronJob prints, which ends well."""
    cluster = installed.argo.cluster
    cluster.kubectl("create", "job", "-n", "twgen", "--from=cronjob/twgen-tick", "look")
    ended = ("wait", "--for=condition=Complete", "--timeout=300s", "-n", "twgen", "job/look")
    cluster.kubectl(*ended)
    [pod] = cluster.list("pods", "twgen", "job-name=look")
    return installed.story.node.logs("twgen", pod["metadata"]["name"])


def is_available(story: ApplicationStory) -> bool:
    deployment = story.cluster.get("deployment", "twgen-tick", "twgen")
    return bool(deployment.get("status", {}).get("availableReplicas") == 1)


def refreshed(port: int) -> str:
    """The metrics, once tick has asked for a refresh."""
    text = fetched(port, "metrics")
    [asked] = re.findall(r"^twgen_tick_refreshes_total ([\d.]+)$", text, re.MULTILINE)
    return text if float(asked) else ""


def fetched(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
        return str(answer.read().decode())
