"""`make bench-fleet`: a fleet at rest on two real servers, without pods: what a look costs, and its calls."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.live import served
from benchmarks.measuring import TWGEN, Cost, Row, measured
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.kubernetes.ready_pods import make_ready
from testing.pollers import polled
from testing.processes import eventually, free_ports, running
from testing.servers import NEWEST, TemporalServer, temporal_server
from testing.workers import DeployedWorker
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

SIZES = (100, 500)
"""Workers, of which each further size has all the earlier ones."""
_TEMPORAL_NAMESPACES = 5
_IN_A_NAMESPACE = 10
"""Workers of one Kubernetes namespace."""
_AT_ONCE = 8
_LOOKS = 5
_ALL_RAMP_WITHIN, _ROLLING_FOR = 900.0, 120.0
"""Seconds."""
_ROLLOUTS_AT_ONCE, _MOST_MEMORY, _MOST_CORES = 500, 400, 0.5
"""What so many rollouts at once may take: MiB, and a share of a core."""
_MOST_MEMORY_AT_REST = 300
"""MiB, for any size."""
_MOST_GROWTH = 1.3
"""How much faster than its size the cost of a command may grow."""


_ROLLS_OUT = "apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\ntick: {rollouts: true}\n"
_STEPS = [{"rampPercentage": share, "pauseDuration": "1m"} for share in (1, 5, 25)]
_RAMP = {"strategy": "Progressive", "steps": [*_STEPS, {"rampPercentage": 50, "pauseDuration": "1h"}]}


@dataclass(frozen=True, slots=True)
class Fleet:
    """Workers that Git, Temporal and a cluster know; a person rolls them out, so tick writes their status."""

    temporal: TemporalServer
    cluster: Cluster
    specs: Path

    def grow(self, begin: int, end: int) -> None:
        """Add the workers of these numbers, each settled with one version."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._register, range(begin, end)))
        added = self.specs.parent / f"added-{begin}"
        for number in range(begin, end):
            self._write(self.specs, number)
            self._write(added, number)
        rendered = subprocess.run(
            [TWGEN, "render", str(added), *self.options], check=True, capture_output=True, text=True
        )
        documents = read_documents(rendered.stdout)
        for namespace in sorted({item["metadata"]["namespace"] for item in documents}):
            self.cluster.kubectl("create", "namespace", namespace)
        self.cluster.apply(documents)

    @property
    def options(self) -> Sequence[str]:
        """Of commands that read specs."""
        return ("--kubeconfig", str(self.cluster.kubeconfig), "--allow-unlisted-connections", "-q")

    @property
    def commands(self) -> dict[str, Sequence[str]]:
        """What is measured, by name."""
        by_cluster = ("--kubeconfig", str(self.cluster.kubeconfig), "-A")
        return {
            "a look of tick": [TWGEN, "tick", *by_cluster, "--timeout", "60s"],
            "status --from-cluster": [TWGEN, "status", "--from-cluster", *by_cluster],
            "status PATH": [TWGEN, "status", str(self.specs), *self.options, "--timeout", "9m"],
            "render": [TWGEN, "render", str(self.specs), *self.options, "--timeout", "9m"],
        }

    def roll_out(self, number: int) -> None:
        """Give each worker a second version, whose ramp tick carries out."""
        for each in range(number):
            self._write(self.specs, each, "v2")
        config = self.specs.parent / "operator.yaml"
        config.write_text(_ROLLS_OUT)
        command = [TWGEN, "render", str(self.specs), *self.options, "--timeout", "9m"]
        rendered = subprocess.run(
            [*command, "--operator-config", str(config)], check=True, capture_output=True, text=True
        )
        documents = read_documents(rendered.stdout)
        self.cluster.apply(documents)
        for namespace in sorted({item["metadata"]["namespace"] for item in documents}):
            eventually(partial(self._is_available, namespace))

    def _is_available(self, namespace: str) -> bool:
        make_ready(self.cluster, namespace)
        live = self.cluster.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
        return all(item["status"].get("availableReplicas", 0) == item["spec"]["replicas"] for item in live)

    def worker(self, number: int) -> DeployedWorker:
        """The worker of a number in Temporal."""
        name = f"{_namespace(number)}/{_name(number)}"
        return DeployedWorker(self.temporal, name, _name(number), _temporal_namespace(number))

    def check_all_settled(self, number: int) -> None:
        """Raise RuntimeError if the status of a worker is anything else."""
        command = [*self.commands["status --from-cluster"], "-o", "json"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        phases = Counter(item["phase"] for item in json.loads(shown)["workers"])
        if phases != {"Settled": number}:
            raise RuntimeError(f"the fleet is not at rest: {phases}")

    def calls(self) -> tuple[int, int]:
        """How many calls Temporal and the API server have answered so far."""
        return sum(self.temporal.calls().values()), served(self.cluster)

    def _register(self, number: int) -> None:
        worker = self.worker(number)
        worker.create()
        worker.create_version("v1")
        worker.set_current("v1")
        worker.set_manager("twgen/fleet")

    def _write(self, folder: Path, number: int, build_id: str = "v1") -> None:
        folder.mkdir(exist_ok=True)
        namespace = _namespace(number)
        worker = {
            "replicas": 0 if build_id == "v1" else 1,
            "workerOptions": {
                "connectionRef": {"name": "temporal"},
                "temporalNamespace": _temporal_namespace(number),
                "unsafeCustomBuildID": build_id,
            },
            "rollout": {"strategy": "AllAtOnce"} if build_id == "v1" else _RAMP,
            "template": {"spec": {"containers": [{"name": "worker", "image": "example.com/pay:1.0.0"}]}},
        }
        driver = "None" if build_id == "v1" else "Tick"
        connection, policy = {"hostPort": self.temporal.address}, {"identity": "fleet", "driver": driver}
        documents = [
            _document("temporal.io", "WorkerDeployment", _name(number), namespace, worker),
            _document("temporal.io", "Connection", "temporal", namespace, connection),
            _document("twgen.io", "RolloutPolicy", "fleet", namespace, policy),
        ]
        if number % _IN_A_NAMESPACE:
            documents = documents[:1]
        (folder / f"worker-{number}.yaml").write_text(write_documents(documents))


@contextmanager
def _servers(folder: Path) -> Iterator[Fleet]:
    folder.mkdir(exist_ok=True)
    with temporal_server(folder, NEWEST) as temporal, kubernetes_cluster(folder) as cluster:
        for number in range(_TEMPORAL_NAMESPACES):
            temporal.create_namespace(_temporal_namespace(number))
        yield Fleet(temporal, cluster, folder / "specs")


def fleet(folder: Path, sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Each command with each size: its cost, its calls, and how it grew since the size before."""
    with _servers(folder) as known:
        before: dict[str, tuple[int, Cost]] = {}
        for begin, end in zip((0, *sizes), sizes, strict=False):
            known.grow(begin, end)
            # the first look writes the status of every worker
            subprocess.run(known.commands["a look of tick"], check=True, capture_output=True)
            known.check_all_settled(end)
            yield _at_rest(known, folder / "tick.log", end)
            for name, command in known.commands.items():
                asked = known.calls()
                [cost] = measured(command, rounds=1)
                temporal, kubernetes = (
                    (now - then) // 2 for now, then in zip(known.calls(), asked, strict=True)
                )
                calls = f"{temporal} calls to Temporal, {kubernetes} to Kubernetes"
                yield _row(f"{name}, {end} workers", cost, calls, before.get(name), end)
                before[name] = end, cost
        yield _rolling(known, folder / "tick.log", min(end, _ROLLOUTS_AT_ONCE))


def _rolling(known: Fleet, log: Path, size: int) -> Row:
    """What a tick costs that carries out as many rollouts at once, through their first steps."""
    [port] = free_ports(1)
    with polled(known.temporal.address, [(known.worker(number), "v2") for number in range(size)]):
        known.roll_out(size)
        command = [*known.commands["a look of tick"], "--every", "1m", "--metrics", f"127.0.0.1:{port}"]
        command += ["--operator-config", str(known.specs.parent / "operator.yaml")]
        with running(command, log) as process:
            began, asked = time.monotonic(), known.calls()
            eventually(lambda: log.read_text().count("1% of new workflows") >= size, _ALL_RAMP_WITHIN)
            cpu, since = _cpu_seconds(process.pid), time.monotonic()
            eventually(lambda: time.monotonic() > since + _ROLLING_FOR)
            cores = (_cpu_seconds(process.pid) - cpu) / (time.monotonic() - since)
            temporal, kubernetes = (now - then for now, then in zip(known.calls(), asked, strict=True))
            [kib] = re.findall(r"^VmHWM:\s+(\d+) kB$", _of_process(process.pid, "status"), re.MULTILINE)
            steps = log.read_text().count("of new workflows go to v2 now")
    return Row(
        f"{size} rollouts at once by tick",
        f"{int(kib) / 1024:.0f} MiB at most, {cores:.2f} cores; all ramp after {since - began:.0f} s,"
        f" {steps} steps, {temporal} calls to Temporal, {kubernetes} to Kubernetes",
        f"{_MOST_MEMORY} MiB, {_MOST_CORES} cores",
        holds=int(kib) / 1024 <= _MOST_MEMORY and cores <= _MOST_CORES,
    )


def _at_rest(known: Fleet, log: Path, size: int) -> Row:
    """What a look of a tick that stays costs, after its first look."""
    [port] = free_ports(1)
    command = [*known.commands["a look of tick"], "--every", "1s", "--metrics", f"127.0.0.1:{port}"]
    with running(command, log) as process:
        eventually(lambda: _looks(port) >= 1)
        began, asked, looks = _cpu_seconds(process.pid), known.calls(), _looks(port)
        # before the tenth, which describes every worker
        eventually(lambda: _looks(port) >= looks + _LOOKS)
        seconds, looks = _cpu_seconds(process.pid) - began, _looks(port) - looks
        temporal, kubernetes = (now - then for now, then in zip(known.calls(), asked, strict=True))
        [kib] = re.findall(r"^VmHWM:\s+(\d+) kB$", _of_process(process.pid, "status"), re.MULTILINE)
    most, memory = 5 + size // 20, int(kib) / 1024
    return Row(
        f"a look of tick at rest, {size} workers",
        f"{temporal / looks:.0f} calls to Temporal, {kubernetes / looks:.0f} to Kubernetes,"
        f" {seconds / looks:.2f} s of CPU; {memory:.0f} MiB at most",
        f"{most} calls to Temporal, {_MOST_MEMORY_AT_REST} MiB",
        holds=temporal / looks <= most and memory <= _MOST_MEMORY_AT_REST,
    )


def _looks(port: int) -> int:
    """How many looks a tick has made."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            numbers = re.findall(r"^twgen_tick_looks_total (\d+)", answer.read().decode(), re.MULTILINE)
            return int(numbers[0]) if numbers else 0
    except OSError:
        return 0


def _cpu_seconds(process: int) -> float:
    """What it has used so far."""
    fields = _of_process(process, "stat").rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _of_process(process: int, name: str) -> str:
    return Path(f"/proc/{process}/{name}").read_text()


def _row(what: str, cost: Cost, calls: str, before: tuple[int, Cost] | None, size: int) -> Row:
    if not before:
        return Row(what, f"{cost}; {calls}", "it is reported", holds=True)
    smaller, cheaper = before
    ratio, most = cost.seconds / cheaper.seconds, _MOST_GROWTH * size / smaller
    return Row(
        what,
        f"{ratio:.3g} times what {smaller} take: {cost}; {calls}",
        f"{most:.3g} times",
        holds=ratio <= most,
    )


def _document(group: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def _name(number: int) -> str:
    return f"worker-{number}"


def _namespace(number: int) -> str:
    return f"team-{number // _IN_A_NAMESPACE}"


def _temporal_namespace(number: int) -> str:
    return f"temporal-{number % _TEMPORAL_NAMESPACES}"


def main() -> int:
    """Print a row for each command and size; 1 when one grows too fast."""
    sizes = [int(size) for size in sys.argv[1:]] or [*SIZES, 2000]
    failed = False
    with tempfile.TemporaryDirectory() as name:
        for row in fleet(Path(name) / "fleet", sizes):
            failed |= not row.holds
            print(
                f"{'yes' if row.holds else 'NO':3}  {row.what}: {row.measured}; reach: {row.reach}",
                flush=True,
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
