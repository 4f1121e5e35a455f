"""Measure renders of many applications in the image: `python -m tools.sizing [APPLICATIONS[/AT ONCE]]...`.

Each render runs the plugin's own command for one worker, with a real Temporal and a real API server.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from testing.image import built_image
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.volumes import Mount
from testing.servers import temporal_server
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

_ROOT = Path(__file__).parents[1]
_OPERATOR = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "OperatorConfig",
    "instance": "sizing",
    "clusters": [{"project": "*", "kubeconfig": "/etc/twgen/kubeconfig", "context": "testing"}],
    "rollout": {"image": "registry.example.com/tools/twgen:1.0.0"},
}


def main(asked: Sequence[str]) -> None:
    """Start the servers, and print a line for each size."""
    image = built_image()
    [plugin] = read_documents((_ROOT / "plugin.yaml").read_text())
    with (
        tempfile.TemporaryDirectory() as work,
        temporal_server(Path(work)) as temporal,
        kubernetes_cluster(Path(work) / "kubernetes") as cluster,
    ):
        folder = Path(work)
        example = _ROOT / "examples" / "three-versions"
        worker, connection = ((example / f"{name}.yaml").read_text() for name in ("worker", "connection"))
        specs = folder / "specs"
        specs.mkdir()
        (specs / "worker.yaml").write_text(worker)
        (specs / "connection.yaml").write_text(re.sub("(?<=hostPort: ).*", temporal.address, connection))
        (folder / "operator.yaml").write_text(write_documents([_OPERATOR]))
        kubeconfig = cluster.kubeconfig.read_text().replace(str(cluster.authority), "/etc/twgen/authority")
        (folder / "kubeconfig").write_text(kubeconfig)
        cluster.create_namespace("shop")
        mounts = [
            Mount(specs, "/specs", read_only=True),
            Mount(folder / "operator.yaml", "/etc/twgen/operator.yaml", read_only=True),
            Mount(folder / "kubeconfig", "/etc/twgen/kubeconfig", read_only=True),
            Mount(cluster.authority, "/etc/twgen/authority", read_only=True),
        ]
        variables = {
            "ARGOCD_APP_NAME": "shop",
            "ARGOCD_APP_PROJECT_NAME": "shop",
            "TWGEN_OPERATOR_CONFIG": "/etc/twgen/operator.yaml",
            "TWGEN_ALLOW_UNLISTED_CONNECTIONS": "true",
        }

        def render(number: int) -> Sequence[str]:
            scratch = folder / f"scratch-{number}"
            scratch.mkdir(exist_ok=True)
            words = plugin["spec"]["generate"]["command"]
            return image.command(words, scratch, mounts, "/specs", variables)

        for size in asked or ("1", "20/2", "20", "100/4", "100/20", "100/30"):
            many, _, at_once = size.partition("/")
            print(
                _measured([render(number) for number in range(int(many))], int(at_once or many)), flush=True
            )


def _measured(commands: Sequence[Sequence[str]], at_once: int) -> str:
    """A line with the total cost of the commands. `at_once` of them run at the same time."""
    started, most, waiting = time.monotonic(), 0, list(commands)
    running: dict[subprocess.Popen[bytes], float] = {}
    longest, failed, mine = 0.0, 0, psutil.Process()
    before = psutil.Process().cpu_times()
    while waiting or running:
        while waiting and len(running) < at_once:
            process = subprocess.Popen(waiting.pop(), stdout=subprocess.DEVNULL)
            running[process] = time.monotonic()
        together = 0
        for child in mine.children(recursive=True):
            with suppress(psutil.Error):
                if child.name() == "twgen":
                    together += child.memory_full_info().pss
        most = max(most, together)
        for process in [each for each in running if each.poll() is not None]:
            longest = max(longest, time.monotonic() - running.pop(process))
            failed += process.returncode != 0
        time.sleep(0.02)
    after = mine.cpu_times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return (
        f"{len(commands)} applications, {at_once} at once: {time.monotonic() - started:.1f} s, the longest"
        f" {longest:.1f} s; {cpu / len(commands):.2f} s of CPU each; {most / 2**20:.0f} MiB together;"
        f" {failed} failed"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
