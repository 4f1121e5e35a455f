"""Starts Argo CD for a cluster, with twgen as its plugin. Each of its servers is a process on loopback."""

import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory
from typing import Any

from testing.argocd.repository import Repository, new_repository
from testing.argocd.server import ArgoServer
from testing.argocd.sidecar import Sidecar
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.leaks import credential
from testing.local_node.image import Image
from testing.processes import ENVIRONMENT, eventually, free_ports, running
from testing.recipes import ARGO_CD, REDIS, Server
from testing.servers import TemporalServer
from twgen.yaml.reader import read_documents

IMAGE = "registry.example.com/twgen:testing"
"""The image of the rollouts' Jobs."""

NAMESPACE = "argocd"
"""The namespace of Argo CD and its Applications. Applications may also be in namespaces `apps-...`."""

OF_ANOTHER_PROJECT = "temporal.payments.example.com:7233"
"""A Temporal that Applications in project `default` must not use, although the operator has its key."""
TEAMS = "team-*"
"""The pattern for names of further projects, which may use the other profiles."""

OWN_CLUSTER = {"project": "default", "application": "*", "inCluster": True}
"""The entry in the operator's file that lets the plugin read its own cluster."""

CHECKS_EVERY = "ARGOCD_RECONCILIATION_TIMEOUT"
"""The setting for the interval at which Argo CD checks for new commits."""

_LOOPBACK = "127.0.0.1"
_DEPLOY = Path(__file__).parents[2] / "deploy"
_PROJECTS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/appprojects"
_KINDS = ("application", "applicationset", "appproject")
_READY_WITHIN = 240.0
_MORE_NAMESPACES = "apps-*"
# as docs/settings.md advises for renders that share few cores
_RENDER_WITHIN = "--repo-server-timeout-seconds=300"
# without this, the fifth self-heal at one commit would wait for minutes
_SELF_HEAL = tuple(f"--self-heal-backoff-{name}=1" for name in ("timeout-seconds", "factor", "cap-seconds"))


@dataclass(frozen=True, slots=True)
class ArgoCD:
    """A running Argo CD. The operator's settings can be changed while it runs."""

    cluster: Cluster
    release: Server
    repository: Repository
    folder: Path
    """The folder of its logs and the operator's files."""
    places: Sequence[str]
    """The options with the addresses of its servers."""
    variables: Mapping[str, str]
    """The environment of its servers."""
    sidecar: Sidecar
    plugin: Popen[bytes]
    """The plugin's server, which starts a twgen for each render."""
    restart_repo_server: Callable[[], None]
    """Restarts the repo-server, but not the plugin."""

    def configure(
        self, addresses: Sequence[str], secured: Sequence[TemporalServer] = (), **more: Any
    ) -> None:
        """Write the operator's files with the Temporal servers that may be used. The next render uses them.

        For servers in `secured`, the credentials only permit reading.
        """
        profiles = [
            {"name": f"at-{number}", "projects": ["default", TEAMS]}
            for number in range(len(addresses) + len(secured))
        ]
        profiles.append({"name": "payments", "projects": ["payments"]})
        operator = {
            "apiVersion": "twgen.io/v1alpha1",
            "kind": "OperatorConfig",
            "instance": "testing",
            "temporal": {"configFile": "/etc/twgen/temporal/temporal.toml", "profiles": profiles},
            "clusters": [OWN_CLUSTER],
            "rollout": {"image": IMAGE},
            "attached": {"kinds": [{"group": "networking.k8s.io", "kind": "NetworkPolicy"}]},
            **more,
        }
        self.sidecar.operate(operator, addresses, secured, _profile_of_another_project())

    def empty_cache(self) -> None:
        """Empty its cache of renders."""
        address, port = self.places[0].removeprefix("--redis=").split(":")
        with socket.create_connection((address, int(port))) as redis:
            redis.sendall(b"FLUSHALL\r\n")
            if (answer := redis.recv(64)) != b"+OK\r\n":
                raise RuntimeError(answer)

    @contextmanager
    def server(self) -> Iterator[ArgoServer]:
        """Start the API server, which only clients need."""
        port, metrics_port = free_ports(2)
        command = [
            *(str(installed(self.release)), f"--namespace={NAMESPACE}", "--insecure", *self.places),
            *(f"--address={_LOOPBACK}", f"--port={port}", f"--metrics-port={metrics_port}"),
        ]
        variables = {**self.variables, "ARGOCD_BINARY_NAME": "argocd-server"}
        with running(command, self.folder / "server.log", variables):
            eventually(lambda: _listens(port), _READY_WITHIN)
            program = installed(self.release)
            yield ArgoServer(f"http://{_LOOPBACK}:{port}", program, self.cluster, NAMESPACE, self.folder)


@contextmanager
def argocd(
    cluster: Cluster,
    folder: Path,
    *,
    release: Server = ARGO_CD,
    image: Image | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[ArgoCD]:
    """Start a release of Argo CD for a cluster, with its files in the folder.

    Its plugin is the twgen of this checkout, or of the image. It must still be configured. `settings` are
    environment variables of its servers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="twgen-argocd-") as sockets, ExitStack() as servers:
        variables = {**_variables(cluster, release, Path(sockets)), **(settings or {})}

        def start(role: str, *options: str) -> Popen[bytes]:
            command = [str(installed(release)), *options]
            environment = {**variables, "ARGOCD_BINARY_NAME": f"argocd-{role}"}
            return servers.enter_context(running(command, folder / f"{role}.log", environment))

        sidecar = Sidecar(folder / "sidecar", release, image)
        sidecar.prepare(cluster, _install(cluster, release))
        plugins = Path(sockets) / "plugins"
        command, environment = sidecar.start(plugins, cluster)
        # it ignores SIGTERM
        plugin = servers.enter_context(running(command, folder / "cmp-server.log", environment, grace=0))
        store, port, *metrics = free_ports(4)
        redis = [str(installed(REDIS)), f"--port {store}", f"--bind {_LOOPBACK}", "--save", ""]
        servers.enter_context(running([*redis, f"--dir {folder}"], folder / "redis.log"))
        places = (f"--redis={_LOOPBACK}:{store}", f"--repo-server={_LOOPBACK}:{port}")
        repo_servers: list[Popen[bytes]] = []

        def restart_repo_server() -> None:
            for process in repo_servers:
                process.kill()
                process.wait()
            at = (f"--address={_LOOPBACK}", f"--port={port}", f"--metrics-port={metrics[0]}")
            repo_servers.append(start("repo-server", places[0], *at))
            eventually(lambda: _listens(port), _READY_WITHIN)

        repository = new_repository(folder)
        found = ArgoCD(
            *(cluster, release, repository, folder, places, variables, sidecar, plugin),
            restart_repo_server=restart_repo_server,
        )
        found.configure([])
        eventually((plugins / "twgen.sock").exists, _READY_WITHIN)
        restart_repo_server()
        start(
            "application-controller",
            *(f"--namespace={NAMESPACE}", f"--application-namespaces={_MORE_NAMESPACES}"),
            *(*places, _RENDER_WITHIN, f"--metrics-port={metrics[1]}", *_SELF_HEAL),
        )
        yield found


def _profile_of_another_project() -> str:
    key = credential(secrets.token_urlsafe())
    return f'[profile.payments]\naddress = "{OF_ANOTHER_PROJECT}"\nnamespace = "default"\napi_key = "{key}"'


def _variables(cluster: Cluster, release: Server, folder: Path) -> Mapping[str, str]:
    """The variables of all servers. The folder's path is short, because paths of Unix sockets are limited."""
    for name in ("plugins", "tls", "ssh"):
        (folder / name).mkdir()
    return {
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_PLUGINSOCKFILEPATH": str(folder / "plugins"),
        "ARGOCD_ASK_PASS_SOCK": str(folder / "ask-pass.sock"),
        "ARGOCD_TLS_DATA_PATH": str(folder / "tls"),
        "ARGOCD_SSH_DATA_PATH": str(folder / "ssh"),
        CHECKS_EVERY: "180s",
        "ARGOCD_RECONCILIATION_JITTER": "0s",
        "KUBECONFIG": str(cluster.kubeconfig),
        # its repo-server calls scripts in the same folder
        "PATH": f"{installed(release).parent}:{ENVIRONMENT['PATH']}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }


def _install(cluster: Cluster, release: Server) -> str:
    """Create Argo CD's objects in the cluster; returns a token of the repo-server's account."""
    kinds = installed(release).with_name("crds")
    cluster.define_kinds(*(kinds / f"{kind}-crd.yaml" for kind in _KINDS))
    cluster.create_namespace(NAMESPACE)
    maps = ("argocd-cm", "argocd-rbac-cm", "argocd-tls-certs-cm", "argocd-ssh-known-hosts-cm")
    metadata = {"namespace": NAMESPACE, "labels": {"app.kubernetes.io/part-of": "argocd"}}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}
        for kind, name in (*(("ConfigMap", name) for name in maps), ("Secret", "argocd-secret"))
    ]
    objects[-1]["stringData"] = {"server.secretkey": secrets.token_urlsafe()}
    everything = [{"group": "*", "kind": "*"}]
    objects.append(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "AppProject",
            "metadata": {"name": "default", "namespace": NAMESPACE},
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"server": "*", "namespace": "*"}],
                "clusterResourceWhitelist": everything,
                "sourceNamespaces": [_MORE_NAMESPACES],
            },
        }
    )
    account = {"name": "argocd-repo-server", "namespace": NAMESPACE}
    objects.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    role, binding = read_documents((_DEPLOY / "in-cluster" / "rbac.yaml").read_text())
    cluster.apply([*objects, role, binding])
    cluster.await_rights("argocd-repo-server", NAMESPACE, role["rules"][0])
    # Argo CD's first list comes from the API server's cache, which contains objects of new kinds only later
    eventually(lambda: cluster.api.get(f"{_PROJECTS}?resourceVersion=0")["items"], _READY_WITHIN)
    return cluster.token("argocd-repo-server", NAMESPACE)


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex((_LOOPBACK, port)) == 0
