"""The example of the documentation, deployed by a real Argo CD."""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from testing.processes import eventually
from tests.servers.gitops import SOON, ApplicationStory, attached
from tests.servers.side_by_side import side_by_side
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
EXAMPLES = Path(__file__).parents[2] / "examples"
WORKER = EXAMPLES / "worker-python" / "worker.py"
IMAGE = "registry.example.com/shop/payments"


def describe(story: ApplicationStory) -> None:
    """Write the documents of the example into Git; its worker is the example of one.

    Without what is recorded of another server: its snapshots, and the ledger of versions that were there. No
    pause of its ramp needs to be shorter: the first version becomes current at once, and nobody waits here
    for the end of the first step of the next.
    """
    recorded = shutil.ignore_patterns("before.yaml", "snapshot.yaml", "twgen.lock")
    shutil.copytree(EXAMPLES / "three-versions", story.folder, ignore=recorded)
    for file in story.folder.iterdir():
        text = file.read_text().replace("namespace: shop", f"namespace: {story.namespace}")
        file.write_text(text.replace("temporal.example.com:7233", story.temporal.address))
    release(story, "v3.0.0")


def release(story: ApplicationStory, tag: str) -> None:
    """Let it be of this image; what stands in for the image is its command."""
    file = story.folder / "worker.yaml"
    container = f'image: {IMAGE}:{tag}\n        command: ["{sys.executable}", "{WORKER}"]'
    file.write_text(re.sub(rf"image: {IMAGE}:\S+(\n +command: .*)?", container, file.read_text()))


@side_by_side
def test_second_sync_of_the_example_finds_no_difference_nor_does_one_in_mid_ramp(
    story: ApplicationStory,
) -> None:
    story = replace(story, worker_name="payments")
    describe(story)
    commit = story.argo.repository.commit("The example")
    story.application.create()
    first = build_id_of(story, "v3.0.0")
    story.stands("Settled", first)
    story.application.refresh("hard")
    assert set(attached(story, first)) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    # what is attached gets its owner by the second render: before the first, the Deployment had no UID
    before = story.application.synced(commit)["status"]["operationState"]["startedAt"]
    assert story.application.differing_anew() == []
    assert story.application.synced(commit)["status"]["operationState"]["startedAt"] == before

    release(story, "v3.1.0")
    commit = story.argo.repository.commit("The next version")
    story.application.refresh()
    second = build_id_of(story, "v3.1.0")
    story.reaches(second, 5)
    story.application.refresh("hard")
    before = story.application.synced(commit)["status"]["operationState"]["startedAt"]
    assert story.application.differing_anew() == []
    assert story.application.synced(commit)["status"]["operationState"]["startedAt"] == before
    assert (story.share(first), story.share(second)) == (95, 5)
    assert set(attached(story, second)) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}

    def scaled() -> bool:
        deployments = story.cluster.list("deployments", story.namespace)
        return [item["spec"]["replicas"] for item in deployments] == [2, 2]

    eventually(scaled, SOON)  # to the least that the autoscalers allow: nobody tells them of a backlog here


@side_by_side
def test_application_of_the_example_is_one_that_argo_cd_takes(story: ApplicationStory) -> None:
    [application] = read_documents((EXAMPLES / "argocd" / "application.yaml").read_text())
    application["metadata"]["namespace"] = story.namespace
    file = story.argo.folder / f"{story.namespace}.yaml"
    file.write_text(write_documents([application]))
    story.argo.cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(file))


def build_id_of(story: ApplicationStory, tag: str) -> str:
    """The build ID of the version of this image, once it has a Deployment."""

    def found() -> str:
        ids = [
            str(item["metadata"]["labels"]["temporal.io/build-id"])
            for item in story.cluster.list("deployments", story.namespace)
        ]
        of_tag = [one for one in ids if one.startswith(tag)]
        assert of_tag, (ids, story.application.errors())
        return of_tag[0]

    return eventually(found, SOON)
