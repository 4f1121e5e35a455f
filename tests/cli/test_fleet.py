"""`twgen status --from-cluster`, as a person and as CI follow rollouts of a cluster that answers by HTTP."""

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from testing.processes import eventually
from tests.cli.conftest import TWGEN, Run, write_kubeconfig
from tests.planning.situations import NOW, planned, routing, situation, temporal, version
from tests.strategies import live_manifest
from tests.terminal import Terminal, terminal
from twgen.model.operator import Caller
from twgen.model.plan import Plan
from twgen.model.status import RolloutStatus
from twgen.model.temporal import VersionStatus as S
from twgen.planning.worker_status import make_status, rollout_status
from twgen.records.rollout_status import write_rollout_status

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-versions"
TARGET = "v3.0.0-97f7"
KINDS = {"configmaps": "ConfigMapList", "deployments": "DeploymentList", "jobs": "JobList"}


def left_by(build_id: str, share: float | None = None) -> RolloutStatus:
    """The status of a rollout whose target is current, or ramps."""
    spec = replace(planned(situation(None)).spec, build_id=build_id)
    status = S.CURRENT if share is None else S.RAMPING
    says = temporal(
        version(build_id, status),
        version("v1", S.CURRENT if share else S.DRAINING),
        traffic=routing("v1" if share else build_id, (build_id, share) if share else None),
    )
    world = situation(says, [live_manifest(spec, build_id, 3)])
    plan = Plan(NOW, (planned(world, spec),))
    return rollout_status(make_status(plan, world, Caller("me", forced=True)), NOW, "an intent")


class Cluster(ThreadingHTTPServer):
    """An API server with the status of one rollout and nothing else."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.left = left_by("v1.0.0-0000")
        self.fails = False

    def items(self, path: str) -> list[dict[str, Any]]:
        metadata = {"name": "payments-rollout-status", "namespace": "shop"}
        labels, created = {"twgen.io/rollout": "payments"}, "2026-11-21T12:00:00Z"
        job = {
            "metadata": {"name": "one", "namespace": "shop", "labels": labels, "creationTimestamp": created}
        }
        if path.endswith("/jobs"):
            return [job]
        is_asked = path.endswith("/configmaps")
        return [{"metadata": metadata, "data": write_rollout_status(self.left)}] if is_asked else []


class Answering(BaseHTTPRequestHandler):
    """What the API server answers."""

    server: Cluster

    def do_GET(self) -> None:
        """Answer with a list."""
        path = self.path.partition("?")[0]
        version, resource = path.removeprefix("/apis/").removeprefix("/api/").partition("/namespaces/")[::2]
        kind = KINDS[resource.rpartition("/")[2]]
        answer = {"apiVersion": version, "kind": kind, "metadata": {}, "items": self.server.items(path)}
        body = json.dumps(answer).encode()
        self.send_response(403 if self.server.fails else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster, its kubeconfig `k`, and the specs of the example in `specs`."""
    with Cluster() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{server.server_port}")
        shutil.copytree(EXAMPLE, tmp_path / "specs")
        yield server
        server.shutdown()


STATUS = ("status", "--from-cluster", "--kubeconfig", "k")
WATCH = ("-w", "--interval", "1s", "--within", "2s")


def test_rollout_of_an_older_commit_that_is_settled_ends_no_wait_for_the_specs(
    run: Run, cluster: Cluster
) -> None:
    ended = run(*STATUS, *WATCH, "specs")
    assert ended.returncode == 4
    assert "shop/payments: Waiting for " in ended.stdout
    waits = f"the rollout of {TARGET} has not begun: these specs have not been applied yet"
    assert f"shop/payments is Waiting, because {waits}; before, it was Settled" in ended.stderr
    # without them nothing tells that something is to come
    assert run(*STATUS, *WATCH, "-n", "shop").returncode == 0
    cluster.left = left_by(TARGET)
    ended = run(*STATUS, *WATCH, "specs")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "shop/payments: Settled for " in ended.stdout


def test_namespace_without_a_rollout_may_belong_to_an_application_that_never_synced(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "items", lambda _: [])
    ended = run(*STATUS, "-n", "shop")
    assert ended.returncode == 0
    assert ended.stderr == (
        "warning: there is no rollout status in shop: check that it is the right cluster, and that Argo CD"
        " has synced (`argocd app get NAME`)\n"
    )


def test_worker_of_specs_that_the_cluster_does_not_have_yet_is_waited_for(run: Run, cluster: Cluster) -> None:
    cluster.left = replace(cluster.left, worker="shop/others", report=None)
    ended = run(*STATUS, *WATCH, "specs")
    assert ended.returncode == 4
    assert "shop/payments is Waiting" in ended.stderr
    assert "shop/others" not in ended.stdout + ended.stderr


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("specs", "-A"), "-A conflicts with PATHs, whose specs set their namespaces: leave out one of them"),
        (("specs", "--no-cluster"), "--from-cluster needs access to a cluster"),
        (("-n", "shop", "--now", "2026-11-21T12:00:00Z"), "leave out --snapshot and --now"),
    ],
)
def test_what_does_not_go_together_is_refused(run: Run, options: tuple[str, ...], said: str) -> None:
    ended = run(*STATUS[:2], *options) if "--no-cluster" in options else run(*STATUS, *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def on_terminal(tmp_path: Path, *options: str) -> Any:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TWGEN")}  # noqa: TID251
    command = [TWGEN, *STATUS, "-n", "shop", *options]
    return terminal(command, tmp_path, 80, {**variables, "TERM": "xterm"})


def test_terminal_shows_a_tree_in_colour(cluster: Cluster, tmp_path: Path) -> None:
    cluster.left = left_by("v2", 25)
    shown: Terminal
    with on_terminal(tmp_path) as shown:
        assert shown.end() == 0
    lines = shown.text.splitlines()
    assert re.match(r"✗ shop/payments  Moving for \d.*  Temporal namespace default", lines[0])
    assert any(line.startswith("├── v2  25%  Ramping for ") and "◀ target" in line for line in lines)
    assert any(line.startswith("└── v1  75%  Current for ") for line in lines)
    assert "\x1b[1;31m" in shown.raw, "no worker serves v1"


def test_terminal_repaints_what_changes_until_it_is_left(cluster: Cluster, tmp_path: Path) -> None:
    shown: Terminal
    with on_terminal(tmp_path, "-w", "--interval", "1s") as shown:
        eventually(lambda: "✓ shop/payments  Settled" in shown.text)
        cluster.left = left_by("v2", 25)
        eventually(lambda: "v2  25%  Ramping" in shown.text)
        cluster.fails = True
        eventually(lambda: "the last successful read was" in shown.text)
        shown.process.send_signal(signal.SIGINT)
        assert shown.end() == 130
    assert shown.screen.count("shop/payments") == 1, "each frame is painted over the one before"
    assert "Traceback" not in shown.text
