"""`twgen doctor` on installations that are broken in one way each, and on one that is not."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testing.asking import succeeds
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from testing.recipes import ARGO_CD
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
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.records.rollout_status import write_rollout_status
from twgen.versioning.names import rollout_labels, rollout_status_name
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
IMAGE = "registry.example.com/tools/twgen:0.1.0"
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

    def argocd(self, version: str = "v3.2.6", image: str = IMAGE, **parameters: str) -> None:
        containers = [{"name": "argocd-repo-server", "image": f"quay.io/argoproj/argocd:{version}"}]
        containers += [{"name": "twgen", "image": image}] if image else []
        labels = {"app.kubernetes.io/name": "argocd-repo-server"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"namespace": self.namespace}
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

    def asked(self, *options: str) -> Ended:
        here = ("--argocd-namespace", self.namespace, "-n", self.namespace)
        return run(self.folder / "specs", "doctor", options=(*options, *here))


@pytest.fixture
def installation(
    cluster: Cluster, namespace: str, newest_temporal: TemporalServer, tmp_path: Path
) -> Installed:
    kind = installed(ARGO_CD).with_name("crds") / "application-crd.yaml"
    cluster.kubectl("apply", "--server-side", "-f", str(kind))
    eventually(lambda: cluster.kubectl("wait", "--for=condition=Established", "-f", str(kind)), 120)
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
        f"this account may not {verb} {resource} in {namespace}"
        for verb, resource in (
            ("list", "pods"),
            ("list", "jobs.batch"),
            ("delete", "jobs.batch"),
            ("create", "jobs.batch"),
        )
    }


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("registry.example.com/tools/twgen", "is another image tomorrow"),
        ("registry.example.com/tools/twgen:latest", "is another image tomorrow"),
        ("registry.example.com/tools/twgen:0.2.0", f"its plugin is {IMAGE}, and the Jobs are"),
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
        "it is v2.12.3",
        "its repo-server has no container that is called twgen",
    ]


def test_settings_of_argocd_that_stop_a_hook_or_hide_commits_are_told(installation: Installed) -> None:
    installation.argocd(reposerver_plugin_tar_exclusions=".git/**", controller_sync_timeout_seconds="60")
    installation.worker(driver="Hook", holdFor="2h")
    found = installation.doctor()
    assert told(found) == ["controller.sync.timeout.seconds is 60, and a hook may take 2h"]
    assert told(found, "Advice") == ["reposerver.plugin.tar.exclusions keeps .git from plugins"]


def test_application_that_leaves_work_undone_is_told(installation: Installed) -> None:
    installation.application({"prune": False, "selfHeal": False})
    advised = ["automated.selfHeal is false", "automated.prune is false"]
    assert told(installation.doctor(code=0), "Advice") == advised
    installation.application(None, **{"argocd.argoproj.io/manifest-generate-paths": "."})
    found = installation.doctor()
    assert told(found) == ["it has the annotation argocd.argoproj.io/manifest-generate-paths"]
    assert "it is synced by hand" in told(found, "Advice")


def test_worker_that_somebody_else_manages_and_rollout_that_nobody_goes_on_with_are_told(
    installation: Installed,
) -> None:
    namespace = installation.namespace
    worker = DeployedWorker(installation.temporal, f"{namespace}/greeter", f"doctor-{namespace}")
    with worker.version("v0"):
        eventually(lambda: succeeds(lambda: worker.set_current("v0")), 120)
        eventually(lambda: succeeds(lambda: worker.set_manager("somebody/else")), 120)
        left = RolloutStatus(
            f"{namespace}/other", Phase.WAITING, "RampPaused", "it stays at 5 %", "v2", "v1", 5, NOW, {}
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
    [managed] = [one for one in found if "manages it" in one]
    assert managed.startswith(f"{namespace}/greeter: somebody/else manages it")
    [alone] = [one for one in found if one.startswith(f"{namespace}/other")]
    assert "nobody moves its traffic: there is no Job of it" in alone
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
    assert ended.stdout.endswith("looked at 1 worker: 1 problem, 0 pieces of advice\n")
