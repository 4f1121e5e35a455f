"""`twgen tick` as an operator installs it: its accounts, and its process."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.processes import running
from testing.recipes import KUBECTL
from tests.servers.live import ENVIRONMENT, PATIENT, TWGEN, Document
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@contextmanager
def tick_account(
    cluster: Cluster, namespace: str, folder: Path, name: str, components: Sequence[str] = ()
) -> Iterator[Path]:
    """The kubeconfig of an account with the rights of `deploy/tick`, and of these components of it."""
    (home := folder / name).mkdir()
    shutil.copytree(ROOT / "deploy", home / "deploy")
    more = [f"deploy/tick/{component}" for component in components]
    (home / "kustomization.yaml").write_text(json.dumps({"resources": ["deploy/tick"], "components": more}))
    command = [installed(KUBECTL), "kustomize", home]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = {item["kind"]: item for item in read_documents(text)}
    account, role, binding = (
        objects[kind] for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    )
    of_cluster = f"tick-{namespace}-{name}"
    role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = of_cluster
    account["metadata"] = {"name": name, "namespace": namespace}
    binding["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    cluster.apply([account, role, binding])
    try:
        yield cluster.write_kubeconfig(of_cluster, cluster.token(name, namespace))
    finally:
        cluster.api.delete(f"{_RBAC}/clusterrolebindings/{of_cluster}")
        cluster.api.delete(f"{_RBAC}/clusterroles/{of_cluster}")


@contextmanager
def ticking(
    kubeconfig: Path, namespace: str, folder: Path, operator: Document, *options: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A tick that goes on, with its OperatorConfig; its output is in `tick.log` of the folder."""
    (config := folder / "operator-of-tick.json").write_text(
        json.dumps({"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", **operator})
    )
    given = ("-n", namespace) if namespace else ("-A",)
    command = [TWGEN, "tick", *given, "--every", "5s", "--operator-config", config, *PATIENT, *options]
    words = [*map(str, command), "--kubeconfig", str(kubeconfig)]
    with running(words, folder / "tick.log", ENVIRONMENT) as process:
        yield process
