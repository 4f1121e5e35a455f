"""What `twgen tick` reads of real servers, and what it writes into a real cluster."""

from pathlib import Path

import pytest

from testing.kubernetes.cluster import Cluster
from testing.servers import TemporalServer
from tests.servers.live import Document, connection_document, run, worker_document
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

MANY = 300
OPERATOR = "apiVersion: twgen.io/v1alpha1\nkind: OperatorConfig\nrollout: {image: twgen}\n"


def write_specs(folder: Path, namespace: str, *documents: Document) -> None:
    for document in documents:
        document["metadata"]["namespace"] = namespace
    folder.mkdir()
    (folder / "specs.yaml").write_text(write_documents(documents))


def rendered(folder: Path, *options: str) -> list[Document]:
    operator = folder.with_suffix(".operator.yaml")
    operator.write_text(OPERATOR)
    given = ("--operator-config", str(operator), "--identity", "twgen/testing", "-q", *options)
    ended = run(folder, "render", options=given)
    assert ended.code == 0, ended.stderr
    return read_documents(ended.stdout)


def test_many_workers_are_all_read_however_long_their_server_makes_that_last(
    cluster: Cluster, namespace: str, newest_temporal: TemporalServer, tmp_path: Path
) -> None:
    """At 45 calls a second, which is below the server's limit, they last longer than one answer may."""
    workers = (worker_document(f"many-{number}", "v1") for number in range(MANY))
    write_specs(tmp_path / "specs", namespace, connection_document(newest_temporal.address), *workers)
    made = rendered(tmp_path / "specs", "--no-cluster", "--timeout", "2m")
    cluster.apply([item for item in made if item["kind"] == "ConfigMap"])
    before = newest_temporal.calls()
    options = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), "--timeout", "4s")
    ended = run(tmp_path, "tick", options=options, takes_paths=False)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.seconds > 4
    # no call was refused and made again
    assert newest_temporal.calls() - before == {"DescribeWorkerDeployment": MANY, "GetSystemInfo": 1}
