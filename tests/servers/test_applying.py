"""What a render does to a real API server: nothing that it did not say, and the second time nothing."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testing.asking import succeeds
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.processes import ENVIRONMENT, eventually
from testing.recipes import KUBECTL
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import PATIENT, TWGEN, Document, run, temporal_trigger, worker_document, write_specs
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
STORIES = (ROOT / "tests" / "fixtures" / "cases").glob("*/manifests.yaml")
RENDERED = [path for path in sorted(STORIES) if path.read_text().startswith("---")]
"""The stories that do not end with an error."""
CLIENT, SERVER = (), ("--server-side", "--force-conflicts", "--field-manager", "argocd-controller")


def moved(namespace: str, documents: list[Document]) -> str:
    """The documents as text, all in the namespace."""
    return write_documents(
        [{**item, "metadata": {**item["metadata"], "namespace": namespace}} for item in documents]
    )


@pytest.mark.parametrize("how", [CLIENT, SERVER], ids=["on the client", "on the server"])
def test_every_story_and_the_example_pass_a_dry_run_of_the_server(
    cluster: Cluster, namespace: str, how: tuple[str, ...]
) -> None:
    example = ROOT / "examples" / "three-versions"
    command = [TWGEN, "render", example, "--snapshot", example / "snapshot.yaml"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    texts = [*(path.read_text() for path in RENDERED), rendered]
    documents = [document for text in texts for document in read_documents(text)]
    # each start of kubectl costs more than what it asks
    text = moved(namespace, documents)
    applied = cluster.kubectl("apply", "--dry-run=server", *how, "-f", "-", input=text)
    assert applied.count("(server dry run)") == len(documents)


@pytest.mark.parametrize(("command", "output"), [("diff", "yaml"), ("apply", "json"), ("delete", "yaml")])
def test_failed_render_in_a_pipe_is_an_error_of_kubectl_that_says_why(
    cluster: Cluster, command: str, output: str
) -> None:
    for how in ("", "--server-side") if command != "delete" else ("--ignore-not-found",):
        kubectl = f"{installed(KUBECTL)} --kubeconfig {cluster.kubeconfig} {command} {how} -f -"
        ended = subprocess.run(
            ["bash", "-c", f"{TWGEN} render nowhere -o {output} | {kubectl}"],
            env={**ENVIRONMENT, "HOME": str(cluster.folder), "KUBECACHEDIR": str(cluster.folder / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode >= (2 if command == "diff" else 1), "1 is a difference"
        assert ended.stdout == ""
        assert 'name: "nowhere: no such file or folder"' in ended.stderr
        assert 'no matches for kind "RenderFailed"' in ended.stderr


def attached(name: str, api_version: str, kind: str, **spec: Any) -> Document:
    """A resource that every version of the worker gets a copy of."""
    template = {"apiVersion": api_version, "kind": kind, "spec": spec}
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {"name": name},
        "spec": {"workerDeploymentRef": {"name": "pay"}, "template": template},
    }


AUTOSCALER = attached(
    "hpa", "autoscaling/v2", "HorizontalPodAutoscaler", scaleTargetRef={}, minReplicas=1, maxReplicas=9
)
BUDGET = attached("pdb", "policy/v1", "PodDisruptionBudget", maxUnavailable=1, selector={"matchLabels": {}})
OTHERS = (
    BUDGET,
    attached(
        "keda",
        "keda.sh/v1alpha1",
        "ScaledObject",
        scaleTargetRef={},
        triggers=[temporal_trigger("pay")],
    ),
    attached("vpa", "autoscaling.k8s.io/v1", "VerticalPodAutoscaler", targetRef={}),
)

KINDS = "deployments,horizontalpodautoscalers,poddisruptionbudgets"
OTHER_KINDS = "scaledobjects.keda.sh,verticalpodautoscalers.autoscaling.k8s.io"


class Compared(NamedTuple):
    code: int
    stdout: str
    stderr: str


class Shop:
    """A worker in a namespace of its own, rendered from what two real servers say and applied."""

    def __init__(self, cluster: Cluster, namespace: str, temporal: TemporalServer, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self._address = temporal.address

    def wants(self, *documents: Document, **spec: Any) -> None:
        worker = worker_document("pay", "v1")
        worker["spec"] |= spec
        worker["spec"] = {name: value for name, value in worker["spec"].items() if value is not None}
        write_specs(self.folder, self._address, worker, *documents)
        file = self.folder / "specs.yaml"
        file.write_text(moved(self.namespace, read_documents(file.read_text())))

    def render(self) -> str:
        ended = run(
            self.folder,
            "render",
            options=["--kubeconfig", str(self.cluster.kubeconfig), "-q", *PATIENT],
        )
        assert (ended.code, ended.stderr) == (0, "")
        return ended.stdout

    def diff(self) -> "Compared":
        """How `twgen diff` ends, with the kubectl of the tests."""
        kubectl, home = installed(KUBECTL), self.cluster.folder
        ended = run(
            self.folder,
            "diff",
            options=["--kubeconfig", str(self.cluster.kubeconfig), "-q", *PATIENT],
            variables={
                "PATH": f"{kubectl.parent}:{ENVIRONMENT['PATH']}",
                "HOME": str(home),
                "KUBECACHEDIR": str(home / "cache"),
            },
        )
        return Compared(ended.code, ended.stdout, ended.stderr)

    def apply(self, text: str, how: tuple[str, ...] = CLIENT) -> None:
        self.cluster.kubectl("apply", *how, "-f", "-", input=text)

    def deployment(self) -> Document:
        [found] = self.objects("deployments")
        return found

    def objects(self, kinds: str = KINDS) -> list[Document]:
        answer = self.cluster.kubectl(
            "get", kinds, "-n", self.namespace, "-o", "json", "--show-managed-fields"
        )
        items: list[Document] = json.loads(answer)["items"]
        return items

    def scale(self, replicas: int) -> None:
        name = self.deployment()["metadata"]["name"]
        self.cluster.kubectl("scale", "deployment", name, "-n", self.namespace, f"--replicas={replicas}")

    def apply_changes_nothing(self, text: str, how: tuple[str, ...]) -> None:
        """Applying it changes no resource version; a controller may still be busy with the last change."""

        def is_unchanged() -> bool:
            before = self.resource_versions()
            self.apply(text, how)
            return self.resource_versions() == before

        assert eventually(is_unchanged)

    def resource_versions(self) -> dict[str, str]:
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in self.objects()}

    def differences(self, text: str, how: tuple[str, ...] = CLIENT) -> str:
        return self.cluster.kubectl("diff", *how, "-f", "-", input=text)


@pytest.fixture
def shop(cluster: Cluster, namespace: str, oldest_temporal: TemporalServer, tmp_path: Path) -> Shop:
    return Shop(cluster, namespace, oldest_temporal, tmp_path / "specs")


def replicas_said(text: str) -> object:
    [deployment] = [item for item in read_documents(text) if item["kind"] == "Deployment"]
    return deployment["spec"].get("replicas", "left out")


@pytest.mark.parametrize("how", [CLIENT, SERVER], ids=["on the client", "on the server"])
def test_render_after_an_apply_shows_no_difference_and_changes_nothing(
    shop: Shop, how: tuple[str, ...]
) -> None:
    shop.wants(replicas=2)
    shop.apply(shop.render(), how)
    again = shop.render()
    assert shop.differences(again, how) == ""
    shop.apply_changes_nothing(again, how)


@pytest.mark.parametrize("how", [CLIENT, ("--server-side",), SERVER], ids=["client", "server", "Argo CD"])
def test_diff_ends_with_1_exactly_while_an_apply_would_change_something(
    shop: Shop, how: tuple[str, ...]
) -> None:
    shop.wants(replicas=2)
    created = shop.diff()
    assert created.code == 1
    assert "+kind: Deployment" in created.stdout
    shop.apply(shop.render(), how)
    assert shop.diff() == (0, "", "")
    shop.wants(replicas=3)
    changed = shop.diff()
    assert (changed.code, changed.stderr) == (1, "")
    assert "+  replicas: 3" in changed.stdout
    (shop.folder / "specs.yaml").write_text("{")
    failed = shop.diff()
    assert (failed.code, failed.stdout) == (2, "")


@pytest.mark.parametrize("how", [CLIENT, SERVER], ids=["on the client", "on the server"])
def test_attached_resource_gets_its_owner_by_the_second_apply_and_then_nothing_changes(
    shop: Shop, how: tuple[str, ...]
) -> None:
    shop.wants(AUTOSCALER, replicas=None)
    shop.apply(shop.render(), how)
    shop.apply(shop.render(), how)
    [autoscaler] = shop.objects("horizontalpodautoscalers")
    owners = [owner["uid"] for owner in autoscaler["metadata"]["ownerReferences"]]
    assert owners == [shop.deployment()["metadata"]["uid"]]
    again = shop.render()
    assert shop.differences(again, how) == ""
    shop.apply_changes_nothing(again, how)


def test_every_kind_that_may_be_attached_is_taken_by_the_server(shop: Shop) -> None:
    shop.cluster.define("keda", "vpa")
    shop.wants(*OTHERS, replicas=None)
    rendered = shop.render()
    for how in (CLIENT, SERVER):
        shop.apply(rendered, (*how, "--dry-run=server"))
    shop.apply(rendered)
    shop.apply(shop.render())
    stored = {item["kind"]: item["metadata"]["resourceVersion"] for item in shop.objects(OTHER_KINDS)}
    assert set(stored) == {"ScaledObject", "VerticalPodAutoscaler"}
    shop.apply_changes_nothing(shop.render(), CLIENT)
    assert stored == {item["kind"]: item["metadata"]["resourceVersion"] for item in shop.objects(OTHER_KINDS)}


def test_version_that_somebody_versioned_by_hand_ends_no_sync(
    shop: Shop, oldest_temporal: TemporalServer
) -> None:
    by_hand, build_id = DeployedWorker(oldest_temporal, f"{shop.namespace}/pay", "by-hand"), "1.4.0+build7"
    with by_hand.version(build_id):
        assert eventually(lambda: succeeds(lambda: by_hand.set_current(build_id)))
    shop.wants(BUDGET, AUTOSCALER, replicas=None)
    for how in (CLIENT, SERVER):
        shop.apply(shop.render(), how)
    assert {item["metadata"]["labels"]["temporal.io/build-id"] for item in shop.objects()} == {"v1"}
    assert len(shop.objects()) == 3


@pytest.mark.parametrize("how", [CLIENT, SERVER], ids=["on the client", "on the server"])
def test_scaled_replicas_survive_every_apply(shop: Shop, how: tuple[str, ...]) -> None:
    shop.wants(AUTOSCALER, replicas=None)
    first = shop.render()
    assert replicas_said(first) == "left out"
    shop.apply(first, how)
    shop.scale(7)
    second = shop.render()
    assert replicas_said(second) == "left out"
    shop.apply(second, how)
    assert shop.deployment()["spec"]["replicas"] == 7


@pytest.mark.parametrize("how", [CLIENT, SERVER], ids=["on the client", "on the server"])
def test_worker_that_gets_an_autoscaler_later_is_never_scaled_to_one(
    shop: Shop, how: tuple[str, ...]
) -> None:
    shop.wants(replicas=5)
    shop.apply(shop.render(), how)
    shop.wants(AUTOSCALER, replicas=None)
    handed_over = shop.render()
    assert replicas_said(handed_over) == 5
    shop.apply(handed_over, how)
    assert shop.deployment()["spec"]["replicas"] == 5
    shop.scale(6)
    for _ in range(2):
        shop.apply(shop.render(), how)
        assert shop.deployment()["spec"]["replicas"] == 6


def test_change_from_client_to_server_side_apply_keeps_the_scale(shop: Shop) -> None:
    shop.wants(AUTOSCALER, replicas=None)
    shop.apply(shop.render(), CLIENT)
    shop.scale(4)
    for _ in range(2):
        shop.apply(shop.render(), SERVER)
        assert shop.deployment()["spec"]["replicas"] == 4


def test_spec_with_replicas_overrules_whoever_scaled(shop: Shop) -> None:
    shop.wants(replicas=2)
    shop.apply(shop.render())
    shop.scale(6)
    again = shop.render()
    assert replicas_said(again) == 2
    shop.apply(again)
    assert shop.deployment()["spec"]["replicas"] == 2


RECREATE: Document = {"type": "Recreate"}
RECREATED: Document = {
    "replicas": 2,
    "strategy": RECREATE,
    "template": worker_document("pay", "v1")["spec"]["template"],
}
ROLLING: Document = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
DEFAULT: Document = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}


@pytest.mark.parametrize("how", [CLIENT, SERVER], ids=["on the client", "on the server"])
def test_change_of_strategy_labels_or_annotations_reaches_the_deployment_and_restarts_nothing(
    shop: Shop, how: tuple[str, ...]
) -> None:
    template = {"spec": {"containers": [{"name": "worker", "image": "example.com/worker:1.0.0"}]}}
    policy = {"apiVersion": "twgen.io/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "marks"}}
    # a client-side apply holds what it says together with what a server fills in
    recreates = [("b", RECREATE)] if how is SERVER else []
    for team, strategy in (("a", None), *recreates, ("c", ROLLING), *recreates, ("d", None)):
        marks = {"deploymentLabels": {"team": team}, "deploymentAnnotations": {"example.com/owner": team}}
        deployment = {"replicas": 2, "template": template, "strategy": strategy}
        shop.wants({**policy, "spec": marks}, template=None, replicas=None, deployment=deployment)
        shop.apply(shop.render(), how)
        live = shop.deployment()
        assert live["spec"]["strategy"] == (strategy or DEFAULT)
        assert live["metadata"]["labels"]["team"] == team
        assert live["metadata"]["annotations"]["example.com/owner"] == team
        assert live["spec"]["replicas"] == 2
        assert shop.differences(shop.render(), how) == ""
    assert eventually(lambda: len(shop.objects("replicasets")) == 1)
    [replica_set] = shop.objects("replicasets")
    assert replica_set["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


def test_strategy_that_a_server_filled_in_is_applied_once_before_it_becomes_recreate(shop: Shop) -> None:
    """By a server-side apply nobody takes away what nobody held, and no server has it beside Recreate."""
    shop.wants(replicas=2)
    shop.apply(shop.render(), SERVER)
    shop.wants(template=None, replicas=None, deployment=RECREATED)
    for strategy in (DEFAULT, RECREATE):
        shop.apply(shop.render(), SERVER)
        assert shop.deployment()["spec"]["strategy"] == strategy


def test_strategy_that_another_manager_holds_becomes_recreate_by_the_command_that_is_told(
    shop: Shop,
) -> None:
    shop.wants(replicas=2)
    shop.apply(shop.render(), SERVER)
    name = shop.deployment()["metadata"]["name"]
    surge = '{"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}'
    shop.cluster.kubectl("patch", "deployment", name, "-n", shop.namespace, "-p", surge)
    shop.wants(template=None, replicas=None, deployment=RECREATED)
    for _ in range(2):
        shop.apply(shop.render(), SERVER)
        assert shop.deployment()["spec"]["strategy"]["type"] == "RollingUpdate"
    access = ("--kubeconfig", str(shop.cluster.kubeconfig), *PATIENT)
    told = run(shop.folder, "plan", options=access).stdout
    [command] = re.findall("`kubectl (patch deployment .*)`", " ".join(told.split()))
    shop.cluster.kubectl(*shlex.split(command))
    assert shop.deployment()["spec"]["strategy"] == RECREATE
    shop.apply(shop.render(), SERVER)
    assert shop.deployment()["spec"]["strategy"] == RECREATE
