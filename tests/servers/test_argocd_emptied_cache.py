"""Many Applications of an Argo CD that has lost all that it had rendered."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import monotonic

import pytest

from tests.servers.gitops import ApplicationStory
from tests.servers.live import policy_document
from tests.servers.rollouts import side_by_side

pytestmark = pytest.mark.server
APPLICATIONS = 20
BACK_WITHIN = 300.0


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
        documents = each.documents("v1", policy_document(each.worker_name, driver="None"), steps=())
        [container] = documents[1]["spec"]["template"]["spec"]["containers"]
        container["command"] = ["sleep", "infinity"]
        commit = each.commit_documents(each.worker_name, *documents)
    for each in stories:
        each.application.create()
    for each in stories:
        each.application.synced(commit)
    before = live(story)
    assert len(before) == APPLICATIONS
    rendered = renders(story)
    story.argo.empty_cache()
    began = monotonic()
    with ThreadPoolExecutor(APPLICATIONS) as pool:
        list(pool.map(lambda each: each.application.refresh(), stories))
    for each in stories:
        each.application.synced(commit)
        assert each.application.errors() == []
    assert live(story) == before
    assert monotonic() - began < BACK_WITHIN
    assert renders(story) >= rendered + APPLICATIONS, "all were rendered anew"
    for each in stories:
        each.application.discard()


def renders(story: ApplicationStory) -> int:
    """How many have succeeded since Argo CD was started."""
    return (story.argo.folder / "cmp-server.log").read_text().count("Plugin command successful")


def live(story: ApplicationStory) -> Mapping[str, tuple[str, int]]:
    """UID and replicas of every Deployment."""
    return {
        item["metadata"]["name"]: (item["metadata"]["uid"], item["spec"]["replicas"])
        for item in story.cluster.list("deployments", story.namespace)
    }
