"""The program on a real server: specs in a folder, and what its commands say of them."""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.api.deployment.v1 import RoutingConfig

import testing
from testing.forking import forker
from testing.leaks import leaks
from testing.processes import eventually
from twgen.yaml.writer import write_documents

TWGEN = Path(sys.executable).with_name("twgen")
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()  # noqa: TID251 - the program's environment is made here
    if not name.startswith(("TEMPORAL_", "TWGEN_"))
}
# 1.29.1 lets a call wait for many seconds now and then, on a busy machine for more than 20
PATIENT = ("--timeout", "2m")
ALONE = ("--no-cluster", "-q", *PATIENT)
MANAGER = "twgen/testing/live"
# What a command may take on a busy machine beside what it waits for; one that hung would take longer.
SLACK = 10.0

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and after how many seconds."""

    code: int
    stdout: str
    stderr: str
    seconds: float


def worker_document(  # noqa: PLR0913 - each is something else that a worker says
    name: str,
    build_id: str,
    *,
    temporal_namespace: str = "default",
    gate: str = "",
    steps: Sequence[float] = (25,),
    pause: str = "10m",
) -> Document:
    rollout: Document = {"strategy": "AllAtOnce"}
    if steps:
        ramp = [{"rampPercentage": percentage, "pauseDuration": pause} for percentage in steps]
        rollout = {"strategy": "Progressive", "steps": ramp}
    if gate:
        rollout["gate"] = {"workflowType": gate}
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": name, "namespace": "live"},
        "spec": {
            "replicas": 1,
            "workerOptions": {
                "connectionRef": {"name": "temporal"},
                "temporalNamespace": temporal_namespace,
                "unsafeCustomBuildID": build_id,
            },
            "rollout": rollout,
            "template": {"spec": {"containers": [{"name": "worker", "image": "example.com/worker:1.0.0"}]}},
        },
    }


def in_namespace(namespace: str, *documents: Document) -> list[Document]:
    """Copies of documents that are of this namespace: tests that run at the same time may share one."""
    return [
        {**document, "metadata": {**document["metadata"], "namespace": namespace}} for document in documents
    ]


def connection_document(address: str, **more: Any) -> Document:
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": "temporal", "namespace": "live"},
        "spec": {"hostPort": address, **more},
    }


def policy_document(name: str, **spec: Any) -> Document:
    return {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": name, "namespace": "live"},
        "spec": {"workerRef": {"name": name}, **spec},
    }


def attached_document(worker: str, name: str, api_version: str, kind: str, **spec: Any) -> Document:
    """What every version of a worker gets a copy of."""
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {"name": name, "namespace": "live"},
        "spec": {
            "workerDeploymentRef": {"name": worker},
            "template": {"apiVersion": api_version, "kind": kind, "spec": spec},
        },
    }


def autoscaler_document(worker: str, name: str = "scale") -> Document:
    spec = {"scaleTargetRef": {}, "minReplicas": 1, "maxReplicas": 3}
    return attached_document(worker, name, "autoscaling/v2", "HorizontalPodAutoscaler", **spec)


def temporal_trigger(task_queue: str) -> Document:
    """What scales each version by its own backlog, where KEDA runs."""
    filled_in = {"workerDeploymentName": "", "workerDeploymentBuildId": ""}
    metadata = {"endpoint": "temporal:7233", "taskQueue": task_queue, **filled_in}
    return {"type": "temporal", "metadata": metadata}


def without_replicas_if_scaled(worker: Document, *more: Document) -> Document:
    """The worker's `spec`, whose replicas would have no effect beside an autoscaler among the others."""
    kinds = {document.get("spec", {}).get("template", {}).get("kind") for document in more}
    spec: Document = dict(worker["spec"])
    if kinds & {"HorizontalPodAutoscaler", "ScaledObject"}:
        del spec["replicas"]
    return spec


def worker_container(build_id: str, task_queue: str, *variables: Document) -> Document:
    """A real worker, for a local node."""
    return {
        "name": "worker",
        "image": f"example.com/worker:{build_id}",
        "command": [sys.executable, "-P", str(Path(testing.__file__).with_name("worker_program.py"))],
        "env": [{"name": "TASK_QUEUE", "value": task_queue}, *variables],
    }


def write_specs(folder: Path, address: str, *documents: Document) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "specs.yaml").write_text(write_documents([connection_document(address), *documents]))
    return folder


def run(
    folder: Path,
    *command: str,
    options: Sequence[str] = ALONE,
    variables: Mapping[str, str] | None = None,
    takes_paths: bool = True,
) -> Ended:
    started = time.monotonic()
    environment = {**ENVIRONMENT, **(variables or {})}
    arguments = (*command, *([folder] if takes_paths else []), *options)
    ended = forker("urllib3").run(arguments, folder, environment)
    assert not leaks(f"{ended.stdout} {ended.stderr}".encode()), "a credential is shown"
    return Ended(ended.returncode, ended.stdout, ended.stderr, time.monotonic() - started)


def killed(seconds: float, folder: Path, *command: str | Path) -> str:
    """What a command says until it ends, or is killed after so many seconds."""
    log = folder.with_name(f"{folder.name}-killed.log")
    with log.open("wb") as output:
        streams = [output.fileno()] * 3
        process = forker("urllib3").start("twgen.__main__:main", command, folder, ENVIRONMENT, streams)
        with suppress(TimeoutError):
            process.wait(seconds)
        process.send(signal.SIGKILL)
        process.wait()
    return log.read_text()


def printed(folder: Path, *command: str) -> str:
    ended = run(folder, *command)
    assert (ended.code, ended.stderr) == (0, ""), ended
    return ended.stdout


def planned(folder: Path, *options: str) -> list[Document]:
    """The workers of `twgen plan`."""
    plan = json.loads(printed(folder, "plan", "-o", "json", "--identity", MANAGER, *options))
    workers: list[Document] = plan["workers"]
    return workers


def planned_once_known(folder: Path, *options: str) -> Document:
    """The plan of the one worker, once Temporal knows it: the oldest forgets it for a moment."""

    def known() -> Document:
        [worker] = planned(folder, *options)
        assert {version["status"] for version in worker["versions"]} != {"NotRegistered"}, worker
        return worker

    return eventually(known)


def recorded(folder: Path) -> list[Document]:
    """The workers of `twgen snapshot`."""
    workers: list[Document] = json.loads(printed(folder, "snapshot", "-o", "json"))["workers"]
    return workers


def recorded_versions(folder: Path) -> list[Document]:
    """Those that Temporal tells of the one worker; for a moment after a change the oldest knows no worker."""
    found = eventually(lambda: [worker for worker in recorded(folder) if worker["temporal"]])
    versions: list[Document] = found[0]["temporal"]["versions"]
    return versions


def share_of(build_id: str, routing: RoutingConfig) -> float:
    """Which share of the new workflows a version has, in percent."""
    if routing.ramping_deployment_version.build_id == build_id:
        return float(routing.ramping_version_percentage)
    is_current = routing.current_deployment_version.build_id == build_id
    return 100 - routing.ramping_version_percentage if is_current else 0.0
