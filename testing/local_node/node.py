"""A node that binds every Pod to itself, and runs it."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread

from urllib3.exceptions import HTTPError

from testing.kubernetes.api import Object, Refused, Watch
from testing.kubernetes.cluster import Cluster
from testing.local_node.image import Image
from testing.local_node.materials import ADDRESS
from testing.local_node.pod import Pod, Settings, pod_folder
from testing.local_node.status import FINISHED

_NODES = "/api/v1/nodes"
_PODS = "/api/v1/pods"
_RETRY = 0.5
_WATCH_SECONDS = 300
_UNSHARE = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))
_ROOM = {"cpu": "64", "memory": "256Gi", "pods": "1000"}


class LocalNode:
    """A node of the cluster. Use `local_node`, which also stops it."""

    def __init__(
        self, cluster: Cluster, folder: Path, name: str, back_off: float, images: Mapping[str, Image]
    ) -> None:
        self.name = name
        self.folder = folder
        self._api = cluster.api
        self._settings = Settings(cluster.api, cluster.address, folder, mounts_alone(), images, back_off)
        self._pods: dict[str, Pod] = {}
        self._stopped = Event()
        self._lock = Lock()
        self._watch: Watch | None = None
        self._register()
        self._thread = Thread(target=self._follow, name=f"node {name}", daemon=True)
        self._thread.start()

    def logs(self, namespace: str, pod: str, container: str = "") -> str:
        """The output of a Pod's containers, or of one of them, even after the Pod is gone."""
        files = pod_folder(self.folder, namespace, pod).glob(f"*/{container or '*'}.log")
        return "".join(file.read_text(errors="replace") for file in sorted(files))

    def process(self, pod: Object) -> int:
        """The process ID of a Pod's only running container."""
        return self._pods[pod["metadata"]["uid"]].process

    def stop(self) -> None:
        """Stop all processes, and leave the cluster."""
        self._stopped.set()
        with self._lock:
            if self._watch:
                self._watch.close()
        self._thread.join()
        for pod in self._pods.values():
            pod.stop()
        for pod in self._pods.values():
            pod.join()
        with suppress(HTTPError, Refused):
            self._api.delete(f"{_NODES}/{self.name}")

    def _register(self) -> None:
        labels = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}
        self._api.create(_NODES, {"metadata": {"name": self.name, "labels": labels}})
        # the API server taints new nodes until they are ready
        self._api.patch(f"{_NODES}/{self.name}", {"spec": {"taints": None}})
        status = {
            "capacity": _ROOM,
            "allocatable": _ROOM,
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "LocalNode"}],
        }
        self._api.patch(f"{_NODES}/{self.name}/status", {"status": status})

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow_once()
            except (Refused, HTTPError, OSError):
                self._stopped.wait(_RETRY)

    def _follow_once(self) -> None:
        """List the Pods, then watch them until the watch ends."""
        pods = self._api.get(_PODS)
        self._compare(pods["items"])
        version = pods["metadata"]["resourceVersion"]
        watch = self._api.watch(
            f"{_PODS}?watch=true&resourceVersion={version}&timeoutSeconds={_WATCH_SECONDS}"
        )
        with self._lock:
            self._watch = watch
            if self._stopped.is_set():
                watch.close()
        for event in watch:
            if event["type"] == "ERROR":
                return
            self._see(event["object"], is_gone=event["type"] == "DELETED")

    def _compare(self, documents: Sequence[Object]) -> None:
        there = {document["metadata"]["uid"] for document in documents}
        for uid in self._pods.keys() - there:
            self._pods[uid].lose()
        for document in documents:
            self._see(document, is_gone=False)

    def _see(self, document: Object, *, is_gone: bool) -> None:
        pod = self._pods.get(document["metadata"]["uid"])
        if pod:
            if is_gone:
                pod.lose()
            else:
                pod.see(document)
        elif not is_gone and not self._stopped.is_set():
            self._take(document)

    def _take(self, document: Object) -> None:
        node = document["spec"].get("nodeName")
        if not node:
            self._bind(document["metadata"])
        elif node == self.name and document.get("status", {}).get("phase") not in FINISHED:
            self._pods[document["metadata"]["uid"]] = Pod(self._settings, document)

    def _bind(self, metadata: Object) -> None:
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
        target = {"apiVersion": "v1", "kind": "Node", "name": self.name}
        names = {"name": metadata["name"], "uid": metadata["uid"]}
        # the Pod may have been bound by another node, or deleted: the next event shows it
        with suppress(Refused):
            self._api.create(path, {"metadata": names, "target": target})


@contextmanager
def local_node(
    cluster: Cluster,
    folder: Path | None = None,
    *,
    name: str = "local",
    back_off: float = 1.0,
    images: Mapping[str, Image] | None = None,
) -> Iterator[LocalNode]:
    """Start a node that runs all Pods in the cluster; their output is kept in the folder.

    A container that ends is restarted after `back_off` seconds, then after twice as long, and so on. A
    container of an image in `images` runs in its file system and as its user; all others use the machine's
    file system.
    """
    node = LocalNode(cluster, folder or cluster.folder / name, name, back_off, images or {})
    try:
        yield node
    finally:
        node.stop()


def mounts_alone() -> Sequence[str]:
    """The command that creates a mount namespace on this machine."""
    for command in _UNSHARE:
        with suppress(OSError):
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
    message = "a local node needs root, or user namespaces: `unshare --mount true` must succeed"
    raise RuntimeError(message)
