"""What `--strict` lets pass a real API server takes, and what it refuses a real one refuses as well."""

import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from testing.kubernetes.api import Api, Refused
from testing.kubernetes.cluster import Cluster
from tests.broken_documents import places
from tests.refused import Broken, bases, changed, corpus, documents, strictly
from tests.servers.live import TWGEN
from twgen.model.operator import CLUSTER_SCOPED, GroupKind
from twgen.model.paths import join_path
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

NAMESPACE = "shop"
PLURALS = {
    "Deployment": "deployments",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ScaledObject": "scaledobjects",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
}
REMOVED = "(removed)"
# fmt: off
OTHER_VALUES: tuple[Any, ...] = (
    REMOVED, None, "", "a b", "Upper_case", "..", "/a/../b", "a.b", "50%", "-5", "1Gi", "x" * 64, "x" * 300,
    "é", 0, -1, 1, 600, 70_000, 2**31, 0.5, True, [], {}, [1], ["a", "a"], {"a": "b"},
)
# fmt: on


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    """An API server that knows all kinds that may be attached, and a namespace for them."""
    cluster.define("keda", "vpa")
    cluster.create_namespace(NAMESPACE)
    yield cluster.api
    cluster.clear(NAMESPACE)


def refused(api: Api, manifest: dict[str, Any]) -> str:
    """What the API server says against it, whoever applies; empty when it takes it."""
    group, kind, name = manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"]
    try:
        api.apply(f"/apis/{group}/namespaces/{NAMESPACE}/{PLURALS[kind]}/{name}", manifest, is_stored=False)
    except Refused as refusal:
        return str(refusal)
    return ""


def test_every_kind_that_a_server_has_without_a_namespace_is_known(cluster: Cluster) -> None:
    told = cluster.kubectl("api-resources", "--namespaced=false", "--verbs=create,list", "--no-headers")
    columns = [line.split() for line in told.splitlines()]
    # NAME, SHORTNAMES where there are any, APIVERSION, NAMESPACED, KIND
    kinds = {GroupKind.of({"apiVersion": row[-3], "kind": row[-1]}) for row in columns}
    assert GroupKind("storage.k8s.io", "StorageClass") in kinds
    # other tests make kinds of their own
    assert {kind for kind in kinds if not kind.group.endswith(".example.com")} <= CLUSTER_SCOPED


def by_hand(broken: dict[str, Any]) -> dict[str, Any]:
    """The manifest that a person would write instead of the pod template or the attached object."""
    manifest = deepcopy(broken)
    if "kind" not in manifest:
        labels = {"example.com/worker": "pay"}
        metadata = manifest["metadata"] | {"labels": manifest["metadata"]["labels"] | labels}
        template = manifest | {"metadata": metadata}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
    manifest["metadata"] = (manifest.get("metadata") or {}) | {"name": "pay", "namespace": NAMESPACE}
    for name in ("scaleTargetRef", "targetRef"):
        if name in manifest.get("spec", {}):
            manifest["spec"][name] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "pay"}
    return manifest


@pytest.mark.parametrize("name", bases())
def test_server_takes_what_is_whole(api: Api, name: str) -> None:
    assert refused(api, by_hand(bases()[name])) == ""


@pytest.mark.parametrize("broken", corpus(), ids=lambda broken: broken.sentence)
def test_server_refuses_what_is_broken(api: Api, broken: Broken) -> None:
    assert refused(api, by_hand(broken.object)) != ""


@pytest.mark.parametrize("name", bases())
def test_server_takes_all_that_passes_strictly(api: Api, name: str, tmp_path: Path) -> None:
    passing = {where: found for where, found in variants(bases()[name]) if not strictly(found)}
    assert passing
    manifests = rendered(list(passing.values()), tmp_path)
    wrong = {where: refused(api, manifest) for where, manifest in zip(passing, manifests, strict=True)}
    assert {where: message for where, message in wrong.items() if message} == {}


def variants(base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every value of it replaced by others, one at a time; the next place takes the next third of them."""
    for index, steps in enumerate(places(base)):
        path = join_path("", *steps)
        if path not in {"apiVersion", "kind"}:
            for value in OTHER_VALUES[index % 3 :: 3]:
                yield f"{path} = {value!r}", changed(base, {path: value})


def rendered(objects: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What `twgen render` prints of them, each by a worker of its own; of a worker, the one manifest."""
    specs, workers = [], []
    for index, item in enumerate(objects):
        worker = f"w{index:05}"
        specs += documents(item, worker)
        workers.append({"name": f"{NAMESPACE}/{worker}", "temporalNamespace": NAMESPACE, "temporal": None})
    snapshot = {"apiVersion": "twgen.io/v1alpha1", "kind": "Snapshot", "takenAt": "2026-11-21T12:00:00Z"}
    (folder / "snapshot.yaml").write_text(write_documents([snapshot | {"workers": workers}]))
    (folder / "specs.yaml").write_text(write_documents(specs))
    command = [TWGEN, "render", "specs.yaml", "--snapshot", "snapshot.yaml", "--strict"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    found: list[dict[str, Any]] = read_documents(ended.stdout)
    is_attached = "kind" in objects[0]
    return [item for item in found if (item["kind"] != "Deployment") is is_attached]
