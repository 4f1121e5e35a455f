"""Records of versions that are over, deleted in real servers by a person and by tick."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testing.asking import succeeds
from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from testing.servers import NEWEST, OLDEST, temporal_server
from testing.workers import DeployedWorker
from tests.servers.live import (
    PATIENT,
    Document,
    connection_document,
    in_namespace,
    policy_document,
    run,
    worker_container,
    worker_document,
)
from tests.servers.rollouts import SOON
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
MANAGER = "twgen/testing"
BUILD_IDS = tuple(f"v{number}" for number in range(1, 9))
HELD = ("v1", "v3")
"""Versions to which workflows are pinned after they have drained."""
KEPT_BY_TICK, KEPT_BY_HAND = 3, 1


def deletable(kept: int) -> set[str]:
    """The versions whose records go: neither the target, nor the newest, nor held."""
    return {*BUILD_IDS[: -1 - kept]} - {*HELD}


BY_HAND = ("--keep", str(KEPT_BY_HAND))
RELEASES = pytest.mark.parametrize("release", [NEWEST, OLDEST], ids=["newest", "oldest"])


@dataclass(frozen=True, slots=True)
class Story:
    """A worker of many versions, all but the last one drained."""

    worker: DeployedWorker
    cluster: Cluster
    namespace: str
    folder: Path

    @property
    def left(self) -> set[str]:
        """The build IDs that Temporal knows."""
        summaries = self.worker.described().version_summaries
        return {version.deployment_version.build_id for version in summaries}

    def write(self, *policies: Document) -> None:
        self.folder.mkdir(exist_ok=True)
        document = worker_document("greeter", BUILD_IDS[-1], steps=())
        document["spec"]["template"]["spec"]["containers"] = [worker_container(BUILD_IDS[-1], "greetings")]
        document["spec"]["sunset"] = {"scaledownDelay": "1s", "deleteDelay": "1s"}
        connection = connection_document(self.worker.server.address)
        documents = in_namespace(self.namespace, connection, document, *policies)
        (self.folder / "specs.yaml").write_text(write_documents(documents))

    def hold(self) -> None:
        for build_id in HELD:
            self.worker.start("WaitingWorkflow", f"held-by-{build_id}", pinned_to=build_id)

    def is_over(self) -> bool:
        """Every version but the last has drained for longer than its delays, as a plan sees it."""
        options = ("--kubeconfig", str(self.cluster.kubeconfig), *BY_HAND, "--dry-run", *PATIENT)
        ended = run(self.folder, "forget", options=options)
        assert ended.code == 0, ended
        # if a version never drains, the message of the test names it
        assert f"would delete the {len(BUILD_IDS) - 1 - KEPT_BY_HAND} records" in ended.stderr, (
            f"{ended.stderr}\n{self.worker.described()}"
        )
        return True


@contextmanager
def drained_versions(cluster: Cluster, folder: Path, release: str) -> Iterator[Story]:
    """Each was current once; nobody polls for any of them."""
    # a version that was polled lately is not deleted, and by default five minutes are lately
    settings = {
        "matching.PollerHistoryTTL": "3s",
        "matching.wv.VersionDrainageStatusRefreshInterval": "1s",
    }
    with cluster.own_namespace() as namespace, temporal_server(folder, release, settings=settings) as server:
        worker = DeployedWorker(server, f"{namespace}/greeter", "greetings")
        for number, build_id in enumerate(BUILD_IDS):
            with worker.version(build_id):
                current = lambda build_id=build_id: succeeds(lambda: worker.set_current(build_id))  # noqa: E731
                eventually(current, SOON)
                # 1.32.2 may miss that a version has drained while another one registers; twgen asks for it
                # only after 15 minutes
                if number:
                    worker.drains(BUILD_IDS[number - 1])
        yield Story(worker, cluster, namespace, folder / "specs")


@RELEASES
def test_tick_and_then_a_person_delete_old_records_and_those_with_open_workflows_and_the_newest_stay(
    cluster: Cluster, tmp_path: Path, release: str
) -> None:
    with drained_versions(cluster, tmp_path, release) as story:
        story.write(policy_document("greeter", rollbackWindow="1s", keepRecords=KEPT_BY_TICK))
        by_tick(story)
        by_hand(story)


def by_tick(story: Story) -> None:
    """It deletes what the policy no longer keeps, if its operator lets it."""
    operator, access = story.folder.parent / "operator.json", ("--kubeconfig", str(story.cluster.kubeconfig))

    def lets(*, forgets: bool) -> None:
        head = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig"}
        operator.write_text(json.dumps({**head, "rollout": {"image": "twgen"}, "tick": {"forgets": forgets}}))

    def ticked() -> str:
        options = ("-n", story.namespace, "--operator-config", str(operator), *access, *PATIENT)
        return run(story.folder, "tick", options=options, takes_paths=False).stdout

    lets(forgets=False)
    given = ("--operator-config", str(operator), "--identity", MANAGER, "-q", *PATIENT)
    rendered = run(story.folder, "render", options=(*given, "--no-cluster"))
    assert rendered.code == 0, rendered
    story.cluster.apply([one for one in read_documents(rendered.stdout) if one["kind"] == "ConfigMap"])
    eventually(story.is_over, SOON)
    assert ticked() == "", "nobody manages the worker, and the operator does not let it"
    eventually(lambda: succeeds(lambda: story.worker.set_manager(MANAGER)), SOON)
    assert ticked() == "", "the operator does not let it"
    plan = run(story.folder, "plan", options=(*given, *access))
    assert "forgets v1, v2, v3 and 1 more in Temporal" in " ".join(plan.stdout.split()), plan
    story.hold()
    lets(forgets=True)
    expected, said = deletable(KEPT_BY_TICK), list[str]()

    def all_gone() -> bool:
        said.extend(ticked().splitlines())
        return not expected & story.left

    eventually(all_gone, SOON)
    assert story.left == {*BUILD_IDS} - expected
    # with a short history of pollers, a server lets go of some only later
    assert {line.split()[1].removesuffix(":") for line in said} == expected
    assert len(said) == len(expected), "each once"


def by_hand(story: Story) -> None:
    """A person keeps fewer."""
    access = ("--kubeconfig", str(story.cluster.kubeconfig), "--identity", MANAGER)
    options = (*access, *BY_HAND, *PATIENT)
    assert run(story.folder, "forget", options=options).code == 2, "it asks, and nobody is there"
    expected, gone = deletable(KEPT_BY_HAND) - deletable(KEPT_BY_TICK), set[str]()

    def all_gone() -> bool:
        ended = run(story.folder, "forget", options=("-y", "-o", "json", *options))
        gone.update(json.loads(ended.stdout)["deleted"])
        assert gone == expected, ended
        return True

    eventually(all_gone, SOON)
    assert story.left == {*BUILD_IDS} - deletable(KEPT_BY_HAND)
    again = run(story.folder, "forget", options=("-y", *options))
    assert (again.code, again.stdout) == (0, f"{story.namespace}/greeter: deleted 0 records\n")
    again = run(story.folder, "forget", options=("--dry-run", *options))
    assert "no version is old enough to delete its record" in again.stderr
