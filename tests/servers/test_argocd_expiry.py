"""An Argo CD that forgets its renders by itself, as each does in the end: nobody asks it to look again."""

import pytest

from testing.argocd.argocd import CHECKS_EVERY, argocd
from testing.kubernetes.control_plane import kubernetes_cluster
from testing.local_node.node import local_node
from testing.processes import eventually
from testing.servers import TemporalServer
from tests.servers.gitops import AT_ONCE, SOON, is_protected, new_story

pytestmark = pytest.mark.server
FORGETS = {"ARGOCD_REPO_CACHE_EXPIRATION": "10s", CHECKS_EVERY: "3s"}
"""Instead of after 24 h; and it looks more often."""


def test_version_that_has_drained_goes_at_the_same_commit_once_its_render_expires(
    newest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        kubernetes_cluster(tmp_path_factory.mktemp("expiry-kubernetes")) as cluster,
        local_node(cluster) as node,
        argocd(cluster, tmp_path_factory.mktemp("expiry-argocd"), settings=FORGETS) as argo,
    ):
        argo.configure([newest_temporal.address])
        with new_story(argo, node, newest_temporal) as story:
            story.commit("v1", steps=(), spec=AT_ONCE)
            story.application.create()
            story.stands("Settled", "v1")
            story.worker.start("WaitingWorkflow", story.namespace)
            commit = story.commit("v2", steps=(), spec=AT_ONCE)
            story.stands("Settled", "v2")
            old = story.deployment("v1")
            assert old
            assert (old["spec"]["replicas"], is_protected(old)) == (1, True), "a workflow is open on it"

            story.worker.finish(story.namespace)
            eventually(lambda: story.replicas("v1") == 0, SOON)
            eventually(lambda: story.deployment("v1") is None, SOON)
            assert story.application.get()["status"]["sync"]["revision"] == commit
            assert (story.share("v2"), story.replicas("v2")) == (100, 1)
            log = (argo.folder / "application-controller.log").read_text()
            assert "refresh requested" not in log.replace("controller refresh requested", "")
