"""Starts Argo CD with twgen as its plugin, beside a cluster, each of its servers a process on loopback."""

import json
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory
from typing import Any

from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.processes import ENVIRONMENT, eventually, free_ports, running
from testing.recipes import ARGO_CD, REDIS

NAMESPACE = "argocd"
"""Where Argo CD and its Applications are; Applications may be in a namespace `apps-...` too."""

OF_ANOTHER_PROJECT = "temporal.payments.example.com:7233"
"""A Temporal that Applications of the project `default` may not use, although the operator has its key."""

_LOOPBACK = "127.0.0.1"
_MORE_NAMESPACES = "apps-*"
_PLUGIN = Path(__file__).parents[2] / "plugin.yaml"
_KINDS = ("application", "applicationset", "appproject")
_READY_WITHIN = 60.0
# as docs/argocd.md advises for two cores, and for renders that wait for each other
_RENDERS_AT_ONCE = "--parallelismlimit=4"
_RENDER_WITHIN = "--repo-server-timeout-seconds=300"
# otherwise the fifth change at one commit waits for minutes
_SELF_HEAL = tuple(f"--self-heal-backoff-{name}=1" for name in ("timeout-seconds", "factor", "cap-seconds"))


@dataclass(frozen=True, slots=True)
class ArgoCD:
    """A running Argo CD; what its operator decides may be changed while it runs."""

    cluster: Cluster
    folder: Path
    """Its logs, and what its operator has configured."""
    places: Sequence[str]
    """The options by which its servers find each other."""
    variables: Mapping[str, str]
    """The environment of its servers."""
    plugin: Popen[bytes]
    """The plugin's server, which starts a twgen for each render."""
    credential: str
    """The key of a profile that only another project may use; nothing that is seen may have it."""

    @property
    def own_cluster(self) -> Mapping[str, str]:
        """The entry of the operator's file by which the plugin reads the cluster that this runs in."""
        kubeconfig = str(self.folder / "plugin.kubeconfig")
        return {"project": "default", "application": "*", "kubeconfig": kubeconfig, "context": "testing"}

    def configure(self, temporal: Sequence[str], **more: Any) -> None:
        """Write the operator's file, from the next render on: which Temporal addresses may be used."""
        profiles = [
            f'[profile.at-{number}]\naddress = "{address}"\nnamespace = "default"\n'
            for number, address in enumerate([*temporal, OF_ANOTHER_PROJECT])
        ]
        credentials = self.folder / "temporal.toml"
        credentials.write_text("\n".join(profiles) + f'api_key = "{self.credential}"\n')
        operator = {
            "apiVersion": "twgen.io/v1alpha1",
            "kind": "OperatorConfig",
            "instance": "testing",
            "temporal": {
                "configFile": str(credentials),
                "profiles": [
                    *({"name": f"at-{number}", "projects": ["default"]} for number in range(len(temporal))),
                    {"name": f"at-{len(temporal)}", "projects": ["payments"]},
                ],
            },
            "clusters": [self.own_cluster],
            "rollout": {"image": "registry.example.com/twgen:testing"},
            "attached": {"kinds": [{"group": "networking.k8s.io", "kind": "NetworkPolicy"}]},
            **more,
        }
        (self.folder / "operator.json").write_text(json.dumps(operator))

    def empty_cache(self) -> None:
        """Let it forget everything that it has rendered."""
        address, port = self.places[0].removeprefix("--redis=").split(":")
        with socket.create_connection((address, int(port))) as redis:
            redis.sendall(b"FLUSHALL\r\n")
            if (answer := redis.recv(64)) != b"+OK\r\n":
                raise RuntimeError(answer)

    @contextmanager
    def server(self) -> Iterator[str]:
        """The API server, which nothing but clients needs; its address, `http://host:port`."""
        port, metrics_port = free_ports(2)
        command = [
            *(str(installed(ARGO_CD)), f"--namespace={NAMESPACE}", "--insecure", *self.places),
            *(f"--address={_LOOPBACK}", f"--port={port}", f"--metrics-port={metrics_port}"),
        ]
        variables = {**self.variables, "ARGOCD_BINARY_NAME": "argocd-server"}
        with running(command, self.folder / "server.log", variables):
            eventually(lambda: _listens(port), _READY_WITHIN)
            yield f"http://{_LOOPBACK}:{port}"


@contextmanager
def argocd(cluster: Cluster, folder: Path, *, resync: int = 180) -> Iterator[ArgoCD]:
    """Argo CD in a cluster, which looks for new commits every `resync` seconds; its files are in the folder.

    Its plugin is the twgen of this checkout, which its operator has yet to configure.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="twgen-argocd-") as sockets, ExitStack() as servers:
        variables = _variables(cluster, Path(sockets), resync)

        def start(role: str, *options: str, grace: float = 10.0, **more: str) -> Popen[bytes]:
            command = [str(installed(ARGO_CD)), *options]
            environment = {**variables, "ARGOCD_BINARY_NAME": f"argocd-{role}", **more}
            return servers.enter_context(running(command, folder / f"{role}.log", environment, grace=grace))

        _install(cluster, folder)
        (folder / "plugin").mkdir()
        shutil.copy(_PLUGIN, folder / "plugin")
        plugin = start(
            "cmp-server",
            f"--config-dir-path={folder / 'plugin'}",
            grace=0,  # it ignores every polite signal
            # it gets no cluster and no credentials but what the operator's file names
            KUBECONFIG="",
            PATH=f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}",
            TWGEN_OPERATOR_CONFIG=str(folder / "operator.json"),
        )
        store, port, *metrics = free_ports(4)
        redis = [str(installed(REDIS)), f"--port {store}", f"--bind {_LOOPBACK}", "--save", ""]
        servers.enter_context(running([*redis, f"--dir {folder}"], folder / "redis.log"))
        places = (f"--redis={_LOOPBACK}:{store}", f"--repo-server={_LOOPBACK}:{port}")
        found = ArgoCD(cluster, folder, places, variables, plugin, secrets.token_urlsafe())
        found.configure([])
        eventually((Path(sockets) / "plugins" / "twgen.sock").exists, _READY_WITHIN)
        at = (f"--address={_LOOPBACK}", f"--port={port}")
        start("repo-server", places[0], *at, f"--metrics-port={metrics[0]}", _RENDERS_AT_ONCE)
        eventually(lambda: _listens(port), _READY_WITHIN)
        start(
            "application-controller",
            *(f"--namespace={NAMESPACE}", f"--application-namespaces={_MORE_NAMESPACES}"),
            *(*places, _RENDER_WITHIN, f"--metrics-port={metrics[1]}", *_SELF_HEAL),
        )
        yield found


def _variables(cluster: Cluster, folder: Path, resync: int) -> Mapping[str, str]:
    """What all servers share; the folder's path is short, as that of a Unix socket must be."""
    for name in ("plugins", "tls", "ssh"):
        (folder / name).mkdir()
    return {
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_PLUGINSOCKFILEPATH": str(folder / "plugins"),
        "ARGOCD_ASK_PASS_SOCK": str(folder / "ask-pass.sock"),
        "ARGOCD_TLS_DATA_PATH": str(folder / "tls"),
        "ARGOCD_SSH_DATA_PATH": str(folder / "ssh"),
        "ARGOCD_RECONCILIATION_TIMEOUT": f"{resync}s",
        "ARGOCD_RECONCILIATION_JITTER": "0s",
        "KUBECONFIG": str(cluster.kubeconfig),
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }


def _install(cluster: Cluster, folder: Path) -> None:
    """What an installation of Argo CD has in its cluster besides servers, and the account of the plugin."""
    kinds = installed(ARGO_CD).with_name("crds")
    files = [option for kind in _KINDS for option in ("-f", str(kinds / f"{kind}-crd.yaml"))]
    cluster.kubectl("apply", "--server-side", *files)
    # refused while an object has no conditions yet
    eventually(lambda: cluster.kubectl("wait", "--for=condition=Established", *files), _READY_WITHIN)
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
    reads = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}
    rbac = "rbac.authorization.k8s.io"
    account = {"name": "plugin", "namespace": NAMESPACE}
    objects += [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "plugin"}, "rules": [reads]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "plugin"},
            "subjects": [{"kind": "ServiceAccount", **account}],
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "plugin"},
        },
    ]
    cluster.apply(objects)
    cluster.await_rights("plugin", NAMESPACE, reads)
    kubeconfig = cluster.write_kubeconfig("plugin", cluster.token("plugin", NAMESPACE))
    shutil.copy(kubeconfig, folder / "plugin.kubeconfig")


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex((_LOOPBACK, port)) == 0
