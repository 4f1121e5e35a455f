from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from testing.argocd.application import Application
from testing.argocd.argocd import ArgoCD, argocd
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.leaks import leaks_below
from testing.local_node.node import LocalNode, local_node
from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server
from tests.servers.gitops import Story as ApplicationStory
from tests.servers.rollouts import Story, Told

STORIES_AT_ONCE = 4
"""Of one module; each mostly waits."""


@pytest.fixture(scope="session", autouse=True)
def no_log_shows_a_credential(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Once all servers have stopped: theirs, those of Pods, and all that was written into a cluster."""
    yield
    assert leaks_below(tmp_path_factory.getbasetemp()) == {}


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
def gitops(
    argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer, namespace: str
) -> Iterator[ApplicationStory]:
    """A folder in Git, and an Application that is yet to be created."""
    argo.configure([newest_temporal.address])
    story = ApplicationStory(argo, node, newest_temporal, Application(argo, namespace, namespace))
    yield story
    story.discard()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A Kubernetes namespace of its own, in which nothing runs after the test."""
    name = f"test-{uuid4().hex[:8]}"
    cluster.create_namespace(name)
    yield name
    cluster.clear(name)


@pytest.fixture(scope="module")
def told_stories(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    node: LocalNode,
    newest_temporal: TemporalServer,
    oldest_temporal: TemporalServer,
) -> Iterator[Told]:
    """The stories of the module's tests that are told side by side, by the names of the tests."""

    def begin(test: pytest.Function) -> None:
        namespace = f"test-{uuid4().hex[:8]}"
        (folder := cluster.folder / namespace / "specs").mkdir(parents=True)
        cluster.create_namespace(namespace)
        story = Story(cluster, node, newest_temporal, oldest_temporal, namespace, folder)
        try:
            test.function.tell(story, **(test.callspec.params if hasattr(test, "callspec") else {}))
        except BaseException as error:
            error.add_note(story.account())
            raise
        finally:
            cluster.clear(namespace)

    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    with ThreadPoolExecutor(STORIES_AT_ONCE) as pool:
        yield {
            test.name: pool.submit(begin, test)
            for test in tests
            if test.module is request.module and hasattr(test.function, "tell")
        }
        pool.shutdown(cancel_futures=True)
