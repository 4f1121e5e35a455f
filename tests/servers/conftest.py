from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from testing.argocd.argocd import ArgoCD, argocd
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.leaks import leaks_below
from testing.local_node.node import LocalNode, local_node
from testing.servers import NEWEST, OLDEST, TemporalServer, temporal_server
from tests.servers import terminal
from tests.servers.gitops import ApplicationStory, new_story
from tests.servers.rollouts import Story
from tests.servers.side_by_side import (
    APPLICATIONS_AT_ONCE,
    STORIES_AT_ONCE,
    Told,
    given,
    kind_of_story,
    side_by_side_tests,
    told_side_by_side,
)


@pytest.fixture(scope="session", autouse=True)
def no_log_shows_a_credential(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Once all servers have stopped: theirs, those of Pods, and all that was written into a cluster."""
    yield
    assert leaks_below(tmp_path_factory.getbasetemp()) == {}


@pytest.fixture(scope="session")
def shared_temporals() -> list[TemporalServer]:
    """Those that run by now."""
    return []


@pytest.fixture(scope="module", autouse=True)
def nothing_goes_on_in_them(shared_temporals: list[TemporalServer]) -> Iterator[None]:
    """What a module has started there ends with it, which else keeps servers busy for the others."""
    yield
    for server in shared_temporals:
        server.end_workflows()


@pytest.fixture(scope="session")
def oldest_temporal(
    tmp_path_factory: pytest.TempPathFactory, shared_temporals: list[TemporalServer]
) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal"), OLDEST) as server:
        shared_temporals.append(server)
        yield server


@pytest.fixture(scope="session")
def newest_temporal(
    tmp_path_factory: pytest.TempPathFactory, shared_temporals: list[TemporalServer]
) -> Iterator[TemporalServer]:
    with temporal_server(tmp_path_factory.mktemp("temporal"), NEWEST) as server:
        shared_temporals.append(server)
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
    cluster.define("keda")
    with argocd(cluster, tmp_path_factory.mktemp("argocd")) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A Kubernetes namespace of its own, in which nothing runs after the test."""
    with cluster.own_namespace() as name:
        yield name


@pytest.fixture(scope="module")
def told_stories(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """The stories of the module's tests that are told side by side, by the names of the tests.

    Each kind of story has the servers that it needs; one of a folder alone starts its own.
    """
    # made before stories begin, which would make it at the same moment
    base = tmp_path_factory.getbasetemp()
    kinds = {kind_of_story(test) for test in side_by_side_tests(request)}
    if kinds != {Path}:
        oldest_temporal: TemporalServer = request.getfixturevalue("oldest_temporal")
        newest_temporal: TemporalServer = request.getfixturevalue("newest_temporal")
    if kinds - {Path, terminal.Story}:
        cluster: Cluster = request.getfixturevalue("cluster")
        node: LocalNode = request.getfixturevalue("node")
    if ApplicationStory in kinds:
        argo: ArgoCD = request.getfixturevalue("argo")
        argo.configure([newest_temporal.address])

    def begin(test: pytest.Function, tell: Callable[..., None]) -> None:
        if kind_of_story(test) is ApplicationStory:
            with new_story(argo, node, newest_temporal) as told:
                tell(told)
            return
        name = f"test-{uuid4().hex[:8]}"
        if kind_of_story(test) is Path:
            (folder := base / name).mkdir()
            tell(folder)
            return
        if kind_of_story(test) is terminal.Story:
            server = oldest_temporal if given(test).get("server") == OLDEST else newest_temporal
            (folder := base / name).mkdir()
            with terminal.telling(server, folder, name) as alone:
                tell(alone)
            return
        with cluster.own_namespace() as namespace:
            (folder := cluster.folder / namespace / "specs").mkdir(parents=True)
            story = Story(cluster, node, newest_temporal, oldest_temporal, namespace, folder)
            try:
                tell(story)
            except BaseException as error:
                error.add_note(story.account())
                raise

    at_once = APPLICATIONS_AT_ONCE if ApplicationStory in kinds else STORIES_AT_ONCE
    with told_side_by_side(request, begin, at_once) as told:
        yield told
