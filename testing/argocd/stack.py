"""`make stack`: starts Temporal, Kubernetes, Argo CD with twgen, and a Git repository with an example."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testing.argocd.application import Application
from testing.argocd.argocd import CHECKS_EVERY, NAMESPACE, OWN_CLUSTER, ArgoCD, argocd
from testing.argocd.server import ArgoServer
from testing.argocd.tick import install_account
from testing.building import say
from testing.install import installed
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.node import local_node
from testing.processes import eventually, running
from testing.recipes import ARGO_CD, KUBECTL, TEMPORAL_CLI, Server
from testing.servers import NEWEST, TemporalServer, temporal_server

_CHECKS_EVERY = 5
_SETTLES_WITHIN = 600.0
_TEMPORAL = {
    "configFile": "/etc/twgen/temporal/temporal.toml",
    "profiles": [{"name": "at-0", "projects": ["*"]}],
}
_CLUSTERS = [{**OWN_CLUSTER, "project": "*"}]
_PROGRAMS = Path(sys.executable).parent
_TOOLS = (KUBECTL, TEMPORAL_CLI, ARGO_CD)
WORKER = Path(__file__).parents[1] / "worker_program.py"
EXAMPLE = """\
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {{name: temporal}}
spec: {{hostPort: "{address}"}}
---
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {{name: greeter}}
spec:
  replicas: 2
  workerOptions:
    connectionRef: {{name: temporal}}
    temporalNamespace: default
    unsafeCustomBuildID: v1
  rollout:
    strategy: Progressive
    steps:
    - {{rampPercentage: 25, pauseDuration: 30s}}
    - {{rampPercentage: 50, pauseDuration: 30s}}
    gate: {{workflowType: GateWorkflow}}
  sunset: {{scaledownDelay: 1m, deleteDelay: 1m}}
  template:
    spec:
      containers:
      - name: worker
        image: example.com/greeter:v1
        command: ["{python}", -P, "{worker}"]
        env: [{{name: TASK_QUEUE, value: greetings}}]
"""
"""The example for version v1; replace its name for the next version."""
_TOLD = """
Everything runs, and greeter v1 is current. {folder} has all files and logs.

  export KUBECONFIG={kubeconfig}
  export TEMPORAL_ADDRESS={temporal}
  export ARGOCD_OPTS={options}
  export PATH={programs}:$PATH
  git clone {repository} workers && cd workers

  watch it      kubectl get -n {argocd} application/shop; kubectl get -n shop deployments,pods,jobs
                kubectl get -n shop configmap/greeter-rollout-status -o jsonpath='{{.data.message}}{{"\\n"}}'
  next version  sed -i 's/v1$/v2/' shop/worker.yaml && git commit -am v2 && git push
  roll back     git revert --no-edit HEAD && git push
  refresh       kubectl annotate -n {argocd} application/shop argocd.argoproj.io/refresh=hard
                (twgen tick requests it when a version has drained; see {folder}/tick.log)
  Temporal      temporal worker deployment describe --name shop/greeter
  twgen         twgen status --from-cluster -n shop; twgen plan shop -n shop
                (in the browser: twgen dashboard -A)
  Argo CD       argocd app list; argocd app get shop
                (as its administrator; no user interface is built)
  pod logs      tail -n 3 {logs}/shop/*/*/*.log
                (kubectl logs does not work: pods run as processes on this machine, without images)

To deploy a worker of your own, follow docs/first-application.md: the plugin is installed, and every project
of Argo CD may use this Temporal and this cluster. {operator} has the operator's settings.

Argo CD checks for new commits every {every} s. Ctrl-C stops and removes everything.
"""


@dataclass(frozen=True, slots=True)
class Stack:
    """The running servers."""

    folder: Path
    temporal: TemporalServer
    argo: ArgoCD
    server: ArgoServer


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Start all servers; returns when Argo CD and tick are running."""
    with ExitStack() as started:
        say("starting Temporal and Kubernetes")
        temporal = started.enter_context(temporal_server(folder, NEWEST))
        cluster = started.enter_context(kubernetes_cluster(folder / "kubernetes"))
        started.enter_context(local_node(cluster))
        say("starting Argo CD")
        often = {CHECKS_EVERY: f"{_CHECKS_EVERY}s"}
        argo = started.enter_context(argocd(cluster, folder / "argocd", settings=often))
        argo.configure([temporal.address], temporal=_TEMPORAL, clusters=_CLUSTERS)
        account = install_account(argo)
        server = started.enter_context(argo.server())
        token = folder / "tick.token"
        token.write_text(server.token(account))
        tick = [
            *(str(_PROGRAMS / "twgen"), "tick", "--all-namespaces", "--every=1m"),
            *(f"--argocd-server={server.address}", f"--argocd-token-file={token}"),
        ]
        variables = {"KUBECONFIG": str(cluster.kubeconfig)}
        started.enter_context(running(tick, folder / "tick.log", variables))
        yield Stack(folder, temporal, argo, server)


def _folder_of(program: Server) -> Path:
    return installed(program).parent


def main() -> None:
    """Start everything, deploy the example, print how to use it, and wait for Ctrl-C."""
    # SIGTERM must end everything like Ctrl-C, which background jobs of a shell ignore
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    with (
        suppress(KeyboardInterrupt),
        TemporaryDirectory(prefix="twgen-stack-") as name,
        stack(Path(name)) as found,
    ):
        say("deploying the example")
        repository, cluster = found.argo.repository, found.argo.cluster
        (repository.clone / "shop").mkdir()
        example = EXAMPLE.format(address=found.temporal.address, python=sys.executable, worker=WORKER)
        (repository.clone / "shop" / "worker.yaml").write_text(example)
        commit = repository.commit("greeter v1")
        cluster.create_namespace("shop")
        shop = Application(found.argo, "shop", "shop")
        shop.create()
        shop.synced(commit)
        settled = ("wait", "--for=jsonpath={.data.phase}=Settled", "configmap/greeter-rollout-status")
        # fails until the rollout has written its first status
        eventually(lambda: cluster.kubectl(*settled, "--namespace=shop"), _SETTLES_WITHIN)
        told = _TOLD.format(
            folder=name,
            kubeconfig=cluster.kubeconfig,
            programs=":".join(str(place) for place in (_PROGRAMS, *map(_folder_of, _TOOLS))),
            repository=repository.address,
            argocd=NAMESPACE,
            temporal=found.temporal.address,
            options=found.server.administrator()["ARGOCD_OPTS"],
            logs=cluster.kubeconfig.with_name("local"),
            operator=found.argo.sidecar.folder / "twgen-operator" / "operator.yaml",
            every=_CHECKS_EVERY,
        )
        sys.stdout.write(told)
        sys.stdout.flush()
        try:
            signal.pause()
        finally:
            say("stopping")


if __name__ == "__main__":
    main()
