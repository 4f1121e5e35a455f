from collections.abc import Iterator
from uuid import uuid4

import pytest

from testing.argocd.application import Application
from testing.argocd.argocd import ArgoCD, argocd
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.node import LocalNode, local_node
from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server
from tests.servers.gitops import Story


@pytest.fixture(scope="session")
def oldest_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal"), OLDEST) as server:
        yield server


@pytest.fixture(scope="session")
def newest_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal"), NEWEST) as server:
        yield server


@pytest.fixture(scope="session", params=["oldest", "newest"])
def temporal(request: pytest.FixtureRequest) -> TemporalServer:
    server: TemporalServer = request.getfixturevalue(f"{request.param}_temporal")
    return server


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> Iterator[LocalNode]:
    with local_node(cluster) as running:
        yield running


@pytest.fixture(scope="session")
def argo(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArgoCD]:
    with argocd(cluster, tmp_path_factory.mktemp("argocd")) as running:
        yield running


@pytest.fixture
def gitops(argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer, namespace: str) -> Iterator[Story]:
    """A folder in Git, and an Application that is yet to be created."""
    argo.configure([newest_temporal.address])
    story = Story(argo, node, newest_temporal, Application(argo, namespace, namespace))
    yield story
    story.discard()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A Kubernetes namespace of its own, in which nothing runs after the test."""
    name = f"test-{uuid4().hex[:8]}"
    cluster.create_namespace(name)
    yield name
    cluster.clear(name)
