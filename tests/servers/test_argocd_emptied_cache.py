"""Many Applications of an Argo CD that has lost all that it had rendered."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from testing.argocd.application import errors_in, has_synced
from testing.processes import eventually
from tests.servers.gitops import ApplicationStory
from tests.servers.live import policy_document
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server
APPLICATIONS = 16
WITHIN = 300.0


@side_by_side
def test_applications_whose_cache_was_emptied_all_come_back_and_lose_nothing(
    story: ApplicationStory,
) -> None:
    stories = [
        replace(
            story,
            worker_name=f"greeter-{number}",
            application=replace(story.application, name=f"{story.namespace}-{number}"),
        )
        for number in range(APPLICATIONS)
    ]
    for each in stories:
        describe(each)
    commit = story.argo.repository.commit("All of them")
    for each in stories:
        each.application.create()
    settle(story, commit)
    before = live(story)
    assert len(before) == APPLICATIONS
    rendered = renders(story)
    story.argo.empty_cache()
    for each in stories:
        each.application.begin_to_refresh()
    settle(story, commit)
    assert live(story) == before
    assert renders(story) >= rendered + APPLICATIONS, "all were rendered anew"
    for each in stories:
        each.application.discard()


def describe(story: ApplicationStory) -> None:
    """Write its worker, of which no Pod ever runs: what matters here is what Argo CD makes of it."""
    documents = story.documents("v1", policy_document(story.worker_name, driver="None"), steps=())
    documents[1]["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/never"}]
    story.write(*documents)


def settle(story: ApplicationStory, commit: str) -> None:
    """Wait until all Applications are as this commit has them and show no error; one request asks for all."""

    def all_have_synced() -> bool:
        found = story.application.siblings()
        assert len(found) == APPLICATIONS
        left = [item for item in found if not has_synced(item, commit) or errors_in(item)]
        assert left == [], f"{len(left)} of them, first of all {left[0].get('status')}"
        return True

    eventually(all_have_synced, WITHIN)


def renders(story: ApplicationStory) -> int:
    """How many have succeeded since Argo CD was started."""
    return (story.argo.folder / "cmp-server.log").read_text().count("Plugin command successful")


def live(story: ApplicationStory) -> Mapping[str, tuple[str, int]]:
    """UID and replicas of every Deployment."""
    return {
        item["metadata"]["name"]: (item["metadata"]["uid"], item["spec"]["replicas"])
        for item in story.cluster.list("deployments", story.namespace)
    }
