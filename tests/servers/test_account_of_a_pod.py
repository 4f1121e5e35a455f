"""twgen in a Pod reads the cluster with the Pod's own account, and nothing that the account may not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from testing.kubernetes.api import Object
from testing.kubernetes.cluster import Cluster
from testing.local_node.node import LocalNode
from testing.processes import eventually
from testing.servers import TemporalServer
from tests.servers.live import TWGEN, connection_document, in_namespace, worker_document
from tests.servers.pods import condition, job, pods
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

MAY_LIST = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}


@pytest.fixture
def specs(namespace: str, oldest_temporal: TemporalServer, tmp_path: Path) -> Path:
    connection = connection_document(oldest_temporal.address)
    documents = in_namespace(namespace, connection, worker_document("pay", "v1"))
    path = tmp_path / "specs.yaml"
    path.write_text(write_documents(documents))
    return path


def ended_job(
    cluster: Cluster, node: LocalNode, namespace: str, specs: Path, rules: Sequence[Object]
) -> tuple[Object, str]:
    """The Job that plans the specs, once it has ended, and what it printed."""
    cluster.user("planner", rules, namespace)
    # a terminal's kubeconfig would go before the account
    command = ["env", "-u", "KUBECONFIG", f"HOME={specs.parent}", str(TWGEN), "plan", str(specs)]
    container = {"name": "plan", "image": "local", "command": command}
    planned = job(namespace, "plan", container, backoffLimit=0)
    planned["spec"]["template"]["spec"]["serviceAccountName"] = "planner"
    planned["spec"]["template"]["metadata"] = {"labels": {"app": "plan"}}
    cluster.apply([planned])

    def ended() -> Object | None:
        found = cluster.get("job", "plan", namespace)
        return found if "True" in {condition(found, "Complete"), condition(found, "Failed")} else None

    done = eventually(ended)
    [pod] = pods(cluster, namespace, "plan")
    return done or {}, node.logs(namespace, pod["metadata"]["name"])


def test_account_that_may_list_deployments_is_enough(
    cluster: Cluster, node: LocalNode, namespace: str, specs: Path
) -> None:
    done, log = ended_job(cluster, node, namespace, specs, [MAY_LIST])
    assert condition(done, "Complete") == "True", log
    assert "it is the target; it has no Deployment" in log


def test_account_that_may_nothing_is_told_what_it_needs(
    cluster: Cluster, node: LocalNode, namespace: str, specs: Path
) -> None:
    done, log = ended_job(cluster, node, namespace, specs, [])
    assert condition(done, "Failed") == "True"
    assert "Kubernetes (this Pod's cluster)" in log
    assert "the account needs the verb list on deployments.apps" in log
