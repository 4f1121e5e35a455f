"""The controller's objects of a real cluster become specs of the same versions."""

import json
from pathlib import Path

import pytest

from testing.kubernetes.cluster import Cluster
from tests.servers.live import run
from tests.servers.test_leaving_the_controller import define_kinds

pytestmark = pytest.mark.server
VECTORS = Path(__file__).parents[1] / "fixtures" / "vectors" / "plans.json"


def test_worker_of_a_cluster_is_imported_with_its_build_id(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    define_kinds(cluster)
    case = next(one for one in json.loads(VECTORS.read_text()) if one["name"] == "advances-step")
    documents = [
        {**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in case["documents"]
    ]
    cluster.apply(documents)
    kinds = "workerdeployments,connections,workerresourcetemplates"
    (tmp_path / "objects.yaml").write_text(cluster.kubectl("get", kinds, "-n", namespace, "-o", "yaml"))
    (tmp_path / "git").mkdir()
    in_git = {"kind": "List", "apiVersion": "v1", "items": documents}
    (tmp_path / "git" / "specs.json").write_text(json.dumps(in_git))
    ended = run(tmp_path, "import", "objects.yaml", options=("--folder", "workers"), takes_paths=False)
    assert ended.code == 0, ended
    [mine, theirs] = (
        json.loads(run(tmp_path / folder, "simulate", "-o", "json", options=("-q",)).stdout)["workers"]
        for folder in ("workers", "git")
    )
    assert [one["targetBuildID"] for one in mine] == [one["targetBuildID"] for one in theirs]
    written = (tmp_path / "workers").rglob("*.yaml")
    assert not [file for file in written if "resourceVersion" in file.read_text()]
