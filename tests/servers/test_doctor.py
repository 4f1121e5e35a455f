"""`twgen doctor` on installations that are broken in one way each, and on one that is not."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testing.asking import succeeds
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.processes import eventually
from testing.recipes import ARGO_CD, KUBECTL
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    PATIENT,
    Document,
    Ended,
    connection_document,
    in_namespace,
    policy_document,
    run,
    worker_document,
)
from tests.strategies import NOW
from twgen import __version__
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import write_rollout_status
from twgen.versioning.names import TRACKING_ID, rollout_labels, rollout_status_name
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
ROOT = Path(__file__).parents[2]
RIGHTS = ("ServiceAccount", "Role", "RoleBinding")
IMAGE = f"registry.example.com/tools/twgen:{__version__}"
NEEDED = (
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete", "list"]},
    {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["list"]},
)


@dataclass(frozen=True, slots=True)
class Installed:
    """An Argo CD, as far as its objects tell, and a worker, all in one namespace."""

    cluster: Cluster
    namespace: str
    temporal: TemporalServer
    folder: Path

    def argocd(
        self, version: str = "v3.6.1", image: str = IMAGE, namespace: str = "", **parameters: str
    ) -> None:
        containers = [{"name": "argocd-repo-server", "image": f"quay.io/argoproj/argocd:{version}"}]
        containers += [{"name": "twgen", "image": image}] if image else []
        labels = {"app.kubernetes.io/name": "argocd-repo-server"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"namespace": namespace or self.namespace}
        repo_server = {"name": "argocd-repo-server", **metadata}
        self.cluster.apply(
            [
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": repo_server, "spec": spec},
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "argocd-cmd-params-cm", **metadata},
                    "data": {name.replace("_", "."): text for name, text in parameters.items()},
                },
            ]
        )

    def application(self, automated: Mapping[str, bool] | None, **annotations: str) -> None:
        source = {"repoURL": "https://git.example.com/a.git", "path": ".", "plugin": {"name": "twgen"}}
        metadata = {"name": "payments", "namespace": self.namespace, "annotations": annotations}
        policy = {"syncPolicy": {"automated": automated}} if automated is not None else {}
        spec = {"project": "default", "source": source, "destination": {"namespace": "shop"}, **policy}
        head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
        self.cluster.apply([{**head, "metadata": metadata, "spec": spec}])

    def worker(self, build_id: str = "v1", **policy: Any) -> Path:
        """The specs of a worker."""
        specs = self.folder / "specs"
        specs.mkdir(exist_ok=True)
        documents = in_namespace(
            self.namespace,
            connection_document(self.temporal.address),
            worker_document("greeter", build_id, steps=()),
            policy_document("greeter", **policy),
        )
        (specs / "specs.yaml").write_text(write_documents(documents))
        return specs

    def doctor(
        self, *options: str, image: str = IMAGE, rules: Sequence[Document] = NEEDED, code: int = 1
    ) -> list[Document]:
        """What it finds."""
        operator = self.folder / "operator.json"
        head = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig"}
        operator.write_text(json.dumps({**head, "rollout": {"image": image}}))
        user = self.cluster.user(f"doctor-{len(list(self.folder.iterdir()))}", rules, self.namespace)
        for rule in rules:
            name = user.stem.removeprefix(f"{self.namespace}-").removesuffix(".kubeconfig")
            self.cluster.await_rights(name, self.namespace, rule)
        (self.folder / f"{user.name}.used").touch()
        access = ("--kubeconfig", str(user), "--operator-config", str(operator), *PATIENT)
        ended = self.asked("-o", "json", *options, *access)
        assert ended.code == code, ended
        found: list[Document] = json.loads(ended.stdout)["findings"]
        return found

    def rendered(self, **policy: Any) -> list[Document]:
        """What a render of the worker prints, as Argo CD's application `payments` tracks it."""
        operator = self.folder / "operator-of-render.json"
        head = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig"}
        operator.write_text(json.dumps({**head, "rollout": {"image": IMAGE}}))
        access = ("--kubeconfig", str(self.cluster.kubeconfig), "--operator-config", str(operator))
        options = (*access, "--identity", "twgen/prod-eu/payments", "-q", *PATIENT)
        ended = run(self.worker(**policy), "render", options=options)
        assert ended.code == 0, ended
        manifests: list[Document] = list(read_documents(ended.stdout))
        for item in manifests:
            place = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            annotations = item["metadata"].setdefault("annotations", {})
            annotations[TRACKING_ID] = f"payments:/{item['kind']}:{place}"
        return manifests

    def waits(self, pod: Document, reason: str, message: str = "") -> None:
        """Let a Pod wait, as its node would say."""
        waiting = {"reason": reason} | ({"message": message} if message else {})
        container = {"name": pod["spec"]["containers"][0]["name"], "image": IMAGE, "imageID": ""}
        told = {**container, "ready": False, "restartCount": 0, "state": {"waiting": waiting}}
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}/status"
        self.cluster.api.patch(path, {"status": {"phase": "Pending", "containerStatuses": [told]}})

    def seen(
        self,
        of: str = "rollouts",
        *,
        code: int | None = None,
        kubeconfig: Path | None = None,
        argocd: str = "",
    ) -> list[Document]:
        """What the doctor finds of the rollouts of the cluster, or of the specs of its workers."""
        access = ("--kubeconfig", str(kubeconfig or self.cluster.kubeconfig), *PATIENT)
        place = ("-n", self.namespace, "--argocd-namespace", argocd or self.namespace)
        ended = run(
            self.folder / "specs",
            "doctor",
            options=(*access, *place, "-o", "json"),
            takes_paths=of == "workers",
        )
        found: list[Document] = json.loads(ended.stdout)["findings"]
        assert ended.code == (bool(told(found)) if code is None else code), ended
        return found

    def mend(self, found: Iterable[Document]) -> None:
        """Run the commands that the remedies of some findings name."""
        kubectl = f'kubectl() {{ {installed(KUBECTL)} --kubeconfig {self.cluster.kubeconfig} "$@"; }}'
        commands = [line for one in found for line in re.findall(r"`([^`]*kubectl[^`]*)`", one["remedy"])]
        assert commands
        for command in commands:
            script = f"set -eo pipefail; {kubectl}; {command}"
            ended = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, check=False)
            assert ended.returncode == 0, (command, ended.stderr)

    def asked(self, *options: str) -> Ended:
        here = ("--argocd-namespace", self.namespace, "-n", self.namespace)
        return run(self.folder / "specs", "doctor", options=(*options, *here))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One of its own: the node that other tests share would start the Pods, and say how they are."""
    with kubernetes_cluster(tmp_path_factory.mktemp("without-node")) as running:
        running.define_kinds(installed(ARGO_CD).with_name("crds") / "application-crd.yaml")
        yield running


@pytest.fixture
def installation(
    cluster: Cluster, namespace: str, newest_temporal: TemporalServer, tmp_path: Path
) -> Installed:
    made = Installed(cluster, namespace, newest_temporal, tmp_path)
    made.argocd()
    made.worker()
    return made


def told(findings: Sequence[Document], severity: str = "Problem") -> list[str]:
    return [one["says"] for one in findings if one["severity"] == severity]


def test_installation_that_is_as_it_should_be_has_nothing_to_mend(installation: Installed) -> None:
    installation.application({"prune": True, "selfHeal": True})
    assert installation.doctor(code=0) == []


def test_account_without_rights_is_told_each_and_what_does_not_work_for_it(installation: Installed) -> None:
    few = [rule for rule in NEEDED if rule["resources"] not in (["pods"], ["jobs"])]
    found = installation.doctor(rules=few)
    namespace = installation.namespace
    assert {one for one in told(found, "Advice") if "account" in one} == {
        f"this account is not allowed to {what} in {namespace}"
        for what in ("list pods", "list jobs.batch", "delete and create jobs.batch")
    }
    installation.mend(found)
    assert eventually(lambda: not told(installation.doctor(code=0), "Advice"))


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("registry.example.com/tools/twgen", "can be a different image tomorrow"),
        ("registry.example.com/tools/twgen:latest", "can be a different image tomorrow"),
        ("registry.example.com/tools/twgen:0.2.0", f"its plugin runs image {IMAGE}, but the Jobs run"),
    ],
)
def test_image_of_jobs_that_is_not_that_of_the_plugin_is_told(
    installation: Installed, image: str, says: str
) -> None:
    assert any(says in one for one in told(installation.doctor(image=image)))


def test_argocd_that_cannot_run_the_plugin_is_told(installation: Installed) -> None:
    installation.argocd("v2.12.3", image="")
    installation.application({"prune": True, "selfHeal": True})
    assert told(installation.doctor()) == [
        "its version is v2.12.3",
        "its repo-server has no container named twgen",
    ]


def test_settings_of_argocd_that_stop_a_hook_or_hide_commits_are_told(installation: Installed) -> None:
    installation.argocd(reposerver_plugin_tar_exclusions=".git/**", controller_sync_timeout_seconds="60")
    installation.worker(driver="Hook", holdFor="2h")
    found = installation.doctor()
    assert told(found) == ["controller.sync.timeout.seconds is 60, but a hook may take 2h"]
    [hidden, skipped] = told(found, "Advice")
    assert hidden == "reposerver.plugin.tar.exclusions hides .git from plugins"
    assert skipped.startswith("its version (v3.6.1) may apply a commit without the hook of 1 worker")


def test_application_that_leaves_work_undone_is_told(installation: Installed) -> None:
    installation.application({"prune": False, "selfHeal": False})
    advised = ["automated.selfHeal is false", "automated.prune is false"]
    assert told(installation.doctor(code=0), "Advice") == advised
    installation.application(None, **{"argocd.argoproj.io/manifest-generate-paths": "."})
    found = installation.doctor()
    assert told(found) == ["it has the annotation argocd.argoproj.io/manifest-generate-paths"]
    assert "it is synced manually" in told(found, "Advice")


def test_worker_that_somebody_else_manages_and_rollout_that_nobody_goes_on_with_are_told(
    installation: Installed,
) -> None:
    namespace = installation.namespace
    worker = DeployedWorker(installation.temporal, f"{namespace}/greeter", f"doctor-{namespace}")
    # that makes a render fail, and is a finding here
    installation.worker(missingTemplate="Fail")
    with worker.version("v0"):
        eventually(lambda: succeeds(lambda: worker.set_current("v0")))
        eventually(lambda: succeeds(lambda: worker.set_manager("somebody/else")))
        left = RolloutStatus(
            f"{namespace}/other", Phase.WAITING, "RampPaused", "it stays at 5%", "v2", "v1", 5, NOW, None
        )
        metadata = {"name": rollout_status_name("other"), "namespace": namespace}
        metadata_of = {**metadata, "labels": rollout_labels("other")}
        data = write_rollout_status(left)
        installation.cluster.apply(
            [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata_of, "data": data}]
        )
        found = [
            f"{one['about']}: {one['says']}" for one in installation.doctor() if one["severity"] == "Problem"
        ]
    [managed] = [one for one in found if "its manager is" in one]
    assert managed.startswith(f"{namespace}/greeter: its manager is somebody/else")
    [alone] = [one for one in found if one.startswith(f"{namespace}/other")]
    assert "its traffic is not moving: it has no Job" in alone
    assert any("v0 has no manifest to render" in one for one in found)


def test_temporal_that_cannot_be_reached_and_argocd_that_is_not_there_are_told(
    installation: Installed,
) -> None:
    specs = installation.worker() / "specs.yaml"
    specs.write_text(specs.read_text().replace(installation.temporal.address, "127.0.0.1:1"))
    kubeconfig = ("--kubeconfig", str(installation.cluster.kubeconfig))
    ended = run(
        specs.parent, "doctor", options=(*kubeconfig, "--argocd-namespace", "nowhere", "--timeout", "3s")
    )
    assert ended.code == 1, ended
    assert "✗ reading: Temporal at 127.0.0.1:1" in ended.stdout
    assert "- not checked: Argo CD: there is no repo-server in namespace nowhere" in ended.stdout
    assert ended.stdout.endswith("checked 1 worker: 1 problem, 0 pieces of advice\n")


def test_accounts_of_jobs_that_lack_what_a_render_gives_them_are_told_first(installation: Installed) -> None:
    i, account = installation, f"account {installation.namespace}/greeter-rollout"
    rendered = i.rendered()
    i.cluster.apply([item for item in rendered if item["kind"] not in RIGHTS])
    first = i.seen()[0]
    assert (first["about"], first["says"]) == (account, "this ServiceAccount does not exist")
    assert "`argocd app sync payments`" in first["remedy"]
    # no Pod can be made of an account that is not there, and Kubernetes says so itself
    no_pod = eventually(lambda: [one for one in i.seen() if "has no Pod" in one["says"]])
    assert 'serviceaccount "greeter-rollout" not found' in no_pod[0]["says"]
    i.cluster.apply([item for item in rendered if item["kind"] == "ServiceAccount"])
    first = i.seen()[0]
    assert first["about"] == account
    assert first["says"].startswith(
        f"the account of the Jobs of {i.namespace}/greeter is not allowed to get configmaps"
    )
    i.cluster.apply(rendered)
    assert eventually(lambda: not [one for one in i.seen() if one["about"] == account])


def test_account_of_the_teams_own_tick_takes_over_by_the_commands_that_are_told(
    installation: Installed,
) -> None:
    i = installation
    i.cluster.apply(i.rendered(serviceAccountName="payments"))
    i.mend(one for one in i.seen() if "this ServiceAccount does not exist" in one["says"])

    def lacking() -> list[Document]:
        return [one for one in i.seen() if one["about"] == f"account {i.namespace}/payments"]

    needed = lacking()
    assert len(needed) > 1
    i.mend(needed)
    assert eventually(lambda: not lacking())


def test_what_keeps_the_pod_of_a_rollout_from_running_is_told_in_kubernetes_words(
    installation: Installed,
) -> None:
    i = installation
    i.cluster.apply(i.rendered())

    def pod_of_job() -> Document:
        found = i.cluster.list("pods", i.namespace, "twgen.io/rollout")
        assert found
        return dict(found[0])

    pod = eventually(pod_of_job)
    i.waits(pod, "ImagePullBackOff", "manifest unknown")
    [first, *_] = i.seen()
    waits = f"Pod {i.namespace}/{pod['metadata']['name']} of its rollout waits"
    assert first["says"] == f"{waits} (ImagePullBackOff: manifest unknown)"
    assert first["remedy"].startswith("correct rollout.image, or rollout.imagePullSecrets")
    i.waits(pod, "ContainerCreating")
    said = 'MountVolume.SetUp failed for volume "temporal-key" : secret "temporal-api-key" not found'
    involved = {"kind": "Pod", "namespace": i.namespace, **{n: pod["metadata"][n] for n in ("name", "uid")}}
    event = {"metadata": {"name": "mount.1"}, "involvedObject": involved, "type": "Warning", "message": said}
    i.cluster.api.create(f"/api/v1/namespaces/{i.namespace}/events", {**event, "reason": "FailedMount"})
    assert told(i.seen()) == [f"{waits} (ContainerCreating): {said}"]
    of_target = eventually(lambda: i.cluster.list("pods", i.namespace, "temporal.io/build-id=v1"))
    for reason, number in (("ContainerCreating", 1), ("CrashLoopBackOff", 2)):
        for one in of_target:
            i.waits(one, reason)
        assert len(says := told(i.seen())) == number, says
    assert any(f"and its newest Pod waits ({reason})" in one for one in says)


def test_autoscalers_that_the_account_may_not_list_are_not_checked(installation: Installed) -> None:
    i = installation
    i.cluster.apply(i.rendered())
    user = i.cluster.user("reader", NEEDED, i.namespace)
    ended = i.asked("--kubeconfig", str(user), *PATIENT)
    folder = f"/apis/autoscaling/v2/namespaces/{i.namespace}/horizontalpodautoscalers"
    unread = f"- not checked: autoscalers in namespace {i.namespace}: {folder} cannot be read: "
    assert unread in ended.stdout, ended


def test_intent_that_was_edited_and_worker_that_nothing_renders_are_told(installation: Installed) -> None:
    i = installation
    i.cluster.apply(i.rendered())
    intent = f"/api/v1/namespaces/{i.namespace}/configmaps/greeter-rollout"
    i.cluster.api.patch(intent, {"data": {"target": "v2"}})
    [edited] = i.seen()
    assert "greeter-rollout was edited by hand" in edited["says"]
    assert edited["remedy"].startswith("apply it again")
    i.cluster.api.delete(intent)
    [orphan] = i.seen(code=0)
    assert orphan["says"] == "greeter-v1 is no longer rendered, but Argo CD does not prune it"
    access = ("-n", i.namespace, "--kubeconfig", str(i.cluster.kubeconfig), *PATIENT)
    shown = run(i.folder, "status", "--from-cluster", options=access, takes_paths=False)
    assert f"{orphan['says']}: {orphan['because']}" in shown.stdout, shown
    i.mend([orphan])
    assert i.seen(code=0) == []


def test_what_argocd_says_against_its_applications_is_told_and_not_what_another_one_does(
    installation: Installed,
) -> None:
    i = installation
    i.application({"prune": True, "selfHeal": True})
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{i.namespace}/applications/payments"
    failed = "rpc error: `twgen render . -o json` failed exit status 3: twgen: no Temporal\nprofile"
    error = {"type": "ComparisonError", "message": failed}
    kind = {"group": "autoscaling", "version": "v2", "kind": "HorizontalPodAutoscaler"}
    refused = {**kind, "namespace": "shop", "name": "pay", "status": "SyncFailed", "message": "is invalid"}
    operation = {
        "operation": {},
        "phase": "Running",
        "startedAt": "2026-01-01T00:00:00Z",
        "syncResult": {"revision": "", "resources": [refused]},
    }
    status = {"conditions": [error], "operationState": operation}
    plugin = {"source": {"plugin": {"name": "twgn"}}}
    policy = {"automated": None, "syncOptions": ["PruneLast=true", "CreateNamespace=true"]}
    i.cluster.api.patch(path, {"status": status, "spec": {**plugin, "syncPolicy": policy}})
    found = i.seen("workers")
    assert told(found) == [
        "it uses a plugin named twgn, but the plugin's name is twgen",
        "Argo CD reports ComparisonError: twgen: no Temporal profile",
        "Argo CD reports its last sync failed: HorizontalPodAutoscaler pay: is invalid",
    ]
    assert told(found, "Advice") == ["it has sync option PruneLast=true", "it is synced manually"]
    i.mend(one for one in found if one["says"] == "it is synced manually")
    assert "it is synced manually" not in told(i.seen("workers"), "Advice")
    home = f"{i.namespace}-home"
    i.cluster.create_namespace(home)
    i.argocd(namespace=home)
    assert i.seen("workers", argocd=home, code=0) == []
    i.argocd(namespace=home, application_namespaces=f"team-*, {i.namespace[:-1]}*")
    assert told(i.seen("workers", argocd=home)) == told(found)


def test_plugin_without_what_its_operator_says_tick_takes_over_by_the_commands_that_are_told(
    installation: Installed,
) -> None:
    i = installation
    i.application({"prune": True, "selfHeal": True})
    i.cluster.api.create(
        f"/api/v1/namespaces/{i.namespace}/serviceaccounts", {"metadata": {"name": "argocd-repo-server"}}
    )
    mount = {"name": "twgen-operator", "mountPath": "/etc/twgen/operator"}
    own = {"name": "argocd-repo-server", "image": "quay.io/argoproj/argocd:v3.6.1"}
    pod = {
        "automountServiceAccountToken": False,
        "serviceAccountName": "argocd-repo-server",
        "containers": [own, {"name": "twgen", "image": IMAGE, "volumeMounts": [mount]}],
        "volumes": [{"name": "twgen-operator", "configMap": {"name": "twgen-operator", "optional": True}}],
    }
    path = f"/apis/apps/v1/namespaces/{i.namespace}/deployments/argocd-repo-server"
    i.cluster.api.patch(path, {"spec": {"template": {"spec": pod}}})
    assert told(i.seen("workers")) == ["its plugin mounts ConfigMap twgen-operator, which does not exist"]
    operator = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "OperatorConfig",
        "clusters": [{"project": "*", "inCluster": True}],
        "rollout": {"image": IMAGE.replace(__version__, "99.0.0")},
    }
    metadata = {"name": "twgen-operator", "namespace": i.namespace}
    data = {"operator.yaml": json.dumps(operator)}
    i.cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}])
    found = i.seen("workers")
    assert told(found) == [
        f"the account of the plugin is not allowed to list deployments.apps in {i.namespace}",
        f"its plugin runs image {IMAGE}, but the Jobs run {operator['rollout']['image']}",
        "the OperatorConfig sets inCluster, but the plugin has no token",
    ]
    i.mend(found)
    assert eventually(lambda: i.seen("workers", code=0) == [])


def test_tick_that_cannot_look_tick_takes_over_by_the_command_that_is_told(installation: Installed) -> None:
    i = installation
    labels = {"app.kubernetes.io/name": "twgen-tick"}
    variables = [{"name": "TWGEN_ALL_NAMESPACES", "value": "true"}]
    container = {"name": "tick", "image": IMAGE, "env": variables}
    pod = {"serviceAccountName": "twgen-tick", "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "twgen-tick", "namespace": i.namespace}
    i.cluster.apply([
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
    ])  # fmt: skip
    [first] = i.seen("workers")
    rights = "list configmaps, list pods, list deployments.apps, list and delete jobs.batch"
    assert first["says"] == f"the account of tick is not allowed to {rights} in all namespaces"
    try:
        i.mend([first])
        assert eventually(lambda: i.seen("workers", code=0) == [])
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            i.cluster.api.delete(f"/apis/rbac.authorization.k8s.io/v1/{kind}/twgen-tick")


def test_what_draining_of_a_policy_lacks_is_told_until_tick_carries_it_out(installation: Installed) -> None:
    i = installation
    i.worker(draining=[{"after": "24h", "action": "Cancel", "allowTermination": True}])

    def lacks() -> list[str]:
        says = [one["says"] for one in i.seen("workers") if "`draining`" in one["says"]]
        return [text.partition("has no effect: ")[2] for text in says]

    assert lacks() == ["there is no `twgen tick` in the cluster"]
    labels = {"app.kubernetes.io/name": "twgen-tick"}
    variables = {"TWGEN_NAMESPACE": i.namespace, "TWGEN_OPERATOR_CONFIG": "/etc/twgen/operator/operator.yaml"}
    container = {
        "name": "tick",
        "image": IMAGE,
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "volumeMounts": [{"name": "operator", "mountPath": "/etc/twgen/operator"}],
    }
    volumes = [{"name": "operator", "configMap": {"name": "twgen-operator"}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "twgen-tick", "namespace": i.namespace}
    i.cluster.apply([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}])
    without_intent = "it has no intent in the cluster, so tick does not know it"
    for drains in (False, True):
        operator = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", "tick": {"drains": drains}}
        place = {"name": "twgen-operator", "namespace": i.namespace}
        data = {"operator.yaml": write_documents([operator])}
        i.cluster.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": data}])
        may_not = f"Deployment {i.namespace}/twgen-tick is not allowed to end workflows"
        assert lacks() == [*([] if drains else [may_not]), without_intent]


def test_plugins_own_account_needs_no_more_than_it_is_installed_with(installation: Installed) -> None:
    i = installation
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}
    user = i.cluster.user("argocd-repo-server", [rule], i.namespace)
    path = f"/apis/apps/v1/namespaces/{i.namespace}/deployments/argocd-repo-server"
    i.cluster.api.patch(path, {"spec": {"template": {"spec": {"serviceAccountName": "argocd-repo-server"}}}})
    assert i.seen("workers", kubeconfig=user, code=0) == []
    assert i.seen(kubeconfig=user, code=0) == []


def test_worker_of_another_identity_is_told_once(installation: Installed) -> None:
    i = installation
    i.cluster.apply(i.rendered(identity="twgen/prod-eu/payments"))
    i.worker(identity="twgen/prod-us/payments")
    [found] = i.seen("workers")
    assert (
        "greeter-v1 belongs to manager twgen/prod-eu/payments, and twgen acts as twgen/prod-us/payments"
        in found["says"]
    )


def test_settings_that_end_hooks_and_renders_are_mended_by_the_commands_that_are_told(
    installation: Installed,
) -> None:
    i = installation
    slow = {"controller_sync_timeout_seconds": "60", "controller_repo_server_timeout_seconds": "30"}
    i.argocd(**slow)
    i.worker(driver="Hook", holdFor="2h")
    [*found, skipped] = i.seen("workers")
    assert [one["says"] for one in found] == [
        "controller.sync.timeout.seconds is 60, but a hook may take 2h",
        "it ends a render after 30s, but the plugin reads servers for up to 40s",
    ]
    assert "may apply a commit without the hook" in skipped["says"]
    i.mend(found)
    assert i.seen("workers", code=0) == [skipped], "that takes another driver, or tick"
