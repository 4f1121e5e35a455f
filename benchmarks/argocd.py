"""What Argo CD waits for: a render by the plugin, beside the tools that it has of its own."""

import json
import os
import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.fixtures import CONNECTION, NAMESPACE, write_inputs
from benchmarks.measuring import TWGEN, Row
from benchmarks.tools import write_chart, write_kustomization
from testing.argocd.application import Application
from testing.argocd.argocd import ArgoCD, argocd
from testing.install import installed
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.processes import ENVIRONMENT, eventually
from testing.recipes import ARGO_CD, HELM, KUBECTL
from testing.servers import NEWEST, temporal_server

_WORKERS = 200
_READS_A_SECOND = 45
_ROUNDS = 3
_NAMES = ("twgen", "kustomize", "helm")
_SEEN_WITHIN = 300.0
_APPLIED_AT_ONCE = 200
_OF_A_SERVER = ("uid", "generation", "creationTimestamp", "managedFields")
_TIME = re.compile(r'"grpc\.method":"GenerateManifest".*"grpc\.time_ms":"([0-9.]+)".*"msg":"finished call"')


def sidecar(folder: Path) -> Iterator[Row]:
    """A live render of 200 workers with five versions each, by the repo-server's own clock."""
    folder.mkdir()
    # kustomize takes longer than Argo CD's 90 s on a busy machine
    settings = {"PATH": _with_tools(folder / "tools"), "ARGOCD_EXEC_TIMEOUT": "300s"}
    with (
        temporal_server(folder, NEWEST) as temporal,
        kubernetes_cluster(folder / "kubernetes") as cluster,
        argocd(cluster, folder / "argocd", settings=settings) as argo,
    ):
        argo.configure([temporal.address])
        specs = write_inputs(folder / "inputs", _WORKERS)
        snapshot = specs.parent / "snapshot.json"
        render = [TWGEN, "render", str(specs), "--snapshot", str(snapshot)]
        manifests = subprocess.run(render, check=True, capture_output=True).stdout
        _apply_versions(cluster, json.loads(snapshot.read_text()))
        clone = argo.repository.clone
        shutil.copytree(specs, clone / "twgen")
        shared = clone / "twgen" / "shared.yaml"
        shared.write_text(shared.read_text().replace(CONNECTION["spec"]["hostPort"], temporal.address))
        shutil.copytree(write_kustomization(folder, manifests), clone / "kustomize")
        shutil.copytree(write_chart(folder, manifests), clone / "helm")
        argo.repository.commit("The same workers three times")
        took = _render_times(argo)
    ours, kustomize, helm = (min(took[name]) for name in _NAMES)
    told = "; ".join(
        f"{name} {min(runs):.2f} s (median {statistics.median(runs):.2f})" for name, runs in took.items()
    )
    least = 1.1 * _WORKERS / _READS_A_SECOND
    yield Row("live render of 200 workers in Argo CD", told, "a third of kustomize", ours <= kustomize / 3)
    reach = f"helm, and {least:.1f} s: 1.1 times {_WORKERS} reads of Temporal at {_READS_A_SECOND} a second"
    yield Row("the same beside helm", f"{ours - helm:.2f} s more", reach, ours <= helm + least)


def _render_times(argo: ArgoCD) -> Mapping[str, list[float]]:
    """Seconds of each round, of each Application; the one before the rounds is not counted."""
    applications = [Application(argo, name, NAMESPACE) for name in _NAMES]
    for each in applications:
        each.create(is_plain=each.name != "twgen", is_automated=False)
    for each in applications:
        eventually(lambda: each.get()["status"]["sync"]["status"] == "OutOfSync", _SEEN_WITHIN)  # noqa: B023
    log = argo.folder / "repo-server.log"
    took: dict[str, list[float]] = {name: [] for name in _NAMES}
    for _ in range(_ROUNDS):
        for each in applications:
            before = log.stat().st_size
            each.refresh("hard")
            if errors := each.errors():
                raise subprocess.CalledProcessError(1, f"{each.name}: {errors}")
            [milliseconds] = _TIME.findall(log.read_text()[before:])
            took[each.name].append(float(milliseconds) / 1000)
    return took


def _with_tools(folder: Path) -> str:
    """A PATH with the tools that Argo CD's own image has."""
    folder.mkdir()
    (folder / "helm").symlink_to(installed(HELM))
    kustomize = folder / "kustomize"
    kustomize.write_text(f'#!/bin/sh\nshift\nexec {installed(KUBECTL)} kustomize "$@"\n')
    kustomize.chmod(0o755)
    # beside its program stand the scripts that check what Git has signed
    places = (str(folder), str(installed(ARGO_CD).parent), ENVIRONMENT["PATH"])
    return os.pathsep.join(places)


def _apply_versions(cluster: Cluster, snapshot: Mapping[str, Any]) -> None:
    """The versioned Deployments of a snapshot, none of whose pods could start here."""
    cluster.create_namespace(NAMESPACE)
    versions = [live for worker in snapshot["workers"] for live in worker["deployments"]]
    for live in versions:
        del live["status"]
        live["spec"]["replicas"] = 0
        for field in _OF_A_SERVER:
            del live["metadata"][field]
    for start in range(0, len(versions), _APPLIED_AT_ONCE):
        cluster.apply(versions[start : start + _APPLIED_AT_ONCE])
