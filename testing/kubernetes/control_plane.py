"""Starts etcd, an API server and the controllers on free ports on loopback."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from urllib3.exceptions import HTTPError

from testing.install import installed
from testing.kubernetes.api import Api, Refused
from testing.kubernetes.cluster import DEFAULT_CONTEXTS, Cluster, kubeconfig_text
from testing.leaks import credential
from testing.processes import eventually, free_ports, running
from testing.recipes import ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER

_READY_WITHIN = 240.0
_LOOPBACK = "127.0.0.1"
_UNSAID = ("authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io")
# only controllers whose work matters in tests; no controller that checks the local node's lease
_CONTROLLERS = (
    *("deployment", "replicaset", "statefulset", "job", "cronjob", "disruption"),
    *("horizontal-pod-autoscaler", "garbage-collector", "ttl-after-finished", "namespace"),
    *("root-ca-certificate-publisher", "serviceaccount", "serviceaccount-token", "clusterrole-aggregation"),
)
# etcd waits for the disk at each write, and the data need not be kept
_MEMORY = Path("/dev/shm")  # noqa: S108 - only a temporary folder is created there
# logs all writes in the cluster, except Secrets
_WRITTEN = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        {"level": "None", "resources": [{"group": "", "resources": ["secrets", "nodes"]}]},
        {"level": "None", "resources": [{"group": group} for group in _UNSAID]},
        {"level": "Request", "verbs": ["create", "update", "patch"]},
    ],
}


@contextmanager
def kubernetes_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster with RBAC and the controllers, without nodes; its logs are in the folder."""
    store_port, peer_port, port, manager_port = free_ports(4)
    store = f"http://{_LOOPBACK}:{store_port}"
    token = credential(secrets.token_urlsafe())
    folder.mkdir(parents=True, exist_ok=True)
    tokens = _private(folder / "tokens.csv", f'{token},admin,admin,"system:masters"\n')
    key = _private(folder / "accounts.key", _new_key())
    with (
        TemporaryDirectory(prefix="twgen-etcd-", dir=_MEMORY if _MEMORY.exists() else folder) as data,
        running(_store(data, store, f"http://{_LOOPBACK}:{peer_port}"), folder / "etcd.log"),
        running(_api_server(folder, store, port, tokens, key), folder / "kube-apiserver.log") as process,
    ):
        cluster = _ready_cluster(folder, f"https://{_LOOPBACK}:{port}", token, process)
        manager = _controller_manager(cluster, manager_port, key)
        with running(manager, folder / "kube-controller-manager.log"):
            cluster.await_namespace("default")
            try:
                yield cluster
            finally:
                cluster.api.close()


def _store(data: str, address: str, peers: str) -> list[str]:
    return [
        str(installed(ETCD)),
        f"--data-dir={data}",
        f"--listen-client-urls={address}",
        f"--advertise-client-urls={address}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    ]


def _api_server(folder: Path, store: str, port: int, tokens: Path, key: Path) -> list[str]:
    return [
        str(installed(KUBE_APISERVER)),
        f"--etcd-servers={store}",
        f"--bind-address={_LOOPBACK}",
        f"--advertise-address={_LOOPBACK}",
        f"--secure-port={port}",
        # the folder of its self-signed certificate
        f"--cert-dir={folder}",
        # an endpoint of the service `kubernetes` must not be on loopback
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        f"--token-auth-file={tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--allow-privileged",
        f"--audit-policy-file={_private(folder / 'audit.json', json.dumps(_WRITTEN))}",
        f"--audit-log-path={folder / 'audit.log'}",
    ]


def _controller_manager(cluster: Cluster, port: int, key: Path) -> list[str]:
    return [
        str(installed(KUBE_CONTROLLER_MANAGER)),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--bind-address={_LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={cluster.folder / 'controller-manager'}",
        f"--service-account-private-key-file={key}",
        f"--root-ca-file={cluster.authority}",
        f"--controllers={','.join(f'{name}-controller' for name in _CONTROLLERS)}",
        "--leader-elect=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def _ready_cluster(folder: Path, address: str, token: str, process: Popen[bytes]) -> Cluster:
    authority = folder / "apiserver.crt"
    kubeconfig = folder / "admin.kubeconfig"
    kubeconfig_content = kubeconfig_text(address, authority, token, DEFAULT_CONTEXTS, "default")
    _private(kubeconfig, kubeconfig_content)
    eventually(lambda: _is_ready(address, authority, token, process), _READY_WITHIN)
    return Cluster(address, authority, folder, kubeconfig, Api(address, authority, token))


def _is_ready(address: str, authority: Path, token: str, process: Popen[bytes]) -> bool:
    if process.poll() is not None:
        log = authority.with_name("kube-apiserver.log").read_text()[-2000:]
        message = f"the API server ended with {process.returncode}: {log}"
        raise RuntimeError(message)
    if not authority.exists():
        return False
    api = Api(address, authority, token)
    try:
        return api.is_ready()
    except (Refused, HTTPError, OSError):
        return False
    finally:
        api.close()


def _new_key() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    # unlike PKCS 8, the API server can also read the public key from this format
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


def _private(path: Path, content: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(content)
    return path
