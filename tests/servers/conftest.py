from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest

from testing.argocd.application import Application
from testing.argocd.argocd import ArgoCD, argocd
from testing.argocd.repository import new_repository
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.leaks import leaks_below
from testing.local_node.node import LocalNode, local_node
from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server
from tests.servers.gitops import ApplicationStory
from tests.servers.rollouts import Story, Told, kind_of_story

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
    tests = [
        item
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.module
        and hasattr(item.function, "tell")
    ]
    argo: ArgoCD | None = None
    if any(kind_of_story(test.function.tell) is ApplicationStory for test in tests):
        argo = request.getfixturevalue("argo")
        argo.configure([newest_temporal.address])

    def new_story(kind: type, namespace: str) -> Story | ApplicationStory:
        if argo and kind is ApplicationStory:
            (folder := argo.folder / namespace).mkdir()
            own = replace(argo, repository=new_repository(folder))
            return ApplicationStory(own, node, newest_temporal, Application(own, namespace, namespace))
        (folder := cluster.folder / namespace / "specs").mkdir(parents=True)
        return Story(cluster, node, newest_temporal, oldest_temporal, namespace, folder)

    def begin(test: pytest.Function) -> None:
        namespace = f"test-{uuid4().hex[:8]}"
        cluster.create_namespace(namespace)
        story = new_story(kind_of_story(test.function.tell), namespace)
        try:
            test.function.tell(story, **(test.callspec.params if hasattr(test, "callspec") else {}))
        except BaseException as error:
            error.add_note(story.account())
            raise
        finally:
            story.discard()

    with ThreadPoolExecutor(STORIES_AT_ONCE) as pool:
        yield {test.name: pool.submit(begin, test) for test in tests}
        pool.shutdown(cancel_futures=True)
