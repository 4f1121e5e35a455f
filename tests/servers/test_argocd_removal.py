"""A worker, and then its Application, go from a cluster by the commands of the page as they stand there."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from testing.argocd.argocd import ArgoCD
from testing.install import installed
from testing.local_node.node import LocalNode
from testing.processes import ENVIRONMENT, eventually
from testing.recipes import ARGO_CD, KUBECTL
from testing.servers import TemporalServer
from tests.docs.test_removing_a_worker import APPLICATION, UNINSTALL, commands
from tests.servers.gitops import (
    SOON,
    ApplicationStory,
    attached,
    budget_document,
    is_protected,
    new_story,
    uid,
)
from tests.servers.live import autoscaler_document, run
from twgen.versioning.names import rollout_name

pytestmark = pytest.mark.server

OF_THE_PAGE = "payments"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who types what the page says, with the names of a story in place of its own."""

    story: ApplicationStory
    variables: Mapping[str, str]

    def types(self, command: str) -> str:
        """What it prints; the Application and the namespace have other names than on the page."""
        typed = command.replace("-n shop", f"-n {self.story.namespace}")
        if command.startswith("argocd"):
            typed = command.replace(OF_THE_PAGE, self.story.application.name)
        ended = subprocess.run(
            ["bash", "-c", typed],
            env={**ENVIRONMENT, **self.variables},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=SOON,
        )
        assert ended.returncode == 0, (typed, ended.stdout, ended.stderr)
        return ended.stdout

    def sees_rollouts(self) -> str:
        """What the program says of the cluster."""
        options = ("-n", self.story.namespace, "--kubeconfig", str(self.story.cluster.kubeconfig))
        folder = self.story.argo.folder
        ended = run(folder, "status", "--from-cluster", options=options, takes_paths=False)
        assert ended.code == 0, ended
        return ended.stdout


@pytest.fixture
def person(argo: ArgoCD, node: LocalNode, newest_temporal: TemporalServer) -> Iterator[Person]:
    argo.configure([newest_temporal.address])
    places = (str(installed(program).parent) for program in (KUBECTL, ARGO_CD))
    with argo.server() as server, new_story(argo, node, newest_temporal) as story:
        variables = {
            "KUBECONFIG": str(story.cluster.kubeconfig),
            "KUBECACHEDIR": str(story.cluster.folder / "cache"),
            "HOME": str(argo.folder),
            "PATH": os.pathsep.join((*places, ENVIRONMENT["PATH"])),
        }
        yield Person(story, {**variables, **server.administrator()})


def test_worker_goes_by_the_commands_of_the_page_and_its_application_after_it(person: Person) -> None:
    story = person.story
    payments = replace(story, worker_name=OF_THE_PAGE)
    more = (autoscaler_document(OF_THE_PAGE), budget_document(OF_THE_PAGE))
    connection, greeter = story.documents("v1", steps=())
    story.commit_documents("both", greeter, *payments.documents("v1", *more, steps=()))
    story.application.create()
    for worker in (story, payments):
        worker.stands("Settled", "v1")
    assert payments.worker.name in person.sees_rollouts()

    commit = story.commit_documents("without payments", connection, greeter)
    story.application.synced(commit)
    left = payments.deployment("v1")
    assert left
    assert (left["spec"]["replicas"], is_protected(left), payments.share("v1")) == (1, True, 100)
    assert set(attached(payments, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    intents = f"/api/v1/namespaces/{story.namespace}/configmaps"
    assert not story.cluster.api.find(f"{intents}/{rollout_name(OF_THE_PAGE)}")
    eventually(lambda: payments.status() == {}, SOON)
    seen = person.sees_rollouts()
    assert story.worker.name in seen
    assert f"{payments.worker.name}: {OF_THE_PAGE}-v1 is no longer rendered" in seen

    shown, deleted = commands("kubectl")
    kinds = ("deployment.apps", "horizontalpodautoscaler.autoscaling", "poddisruptionbudget.policy")
    listed = [line.split()[0] for line in person.types(shown).splitlines() if "/" in line.partition(" ")[0]]
    assert {name.partition("/")[0] for name in listed} == {*kinds}
    assert all(name.partition("/")[2].startswith(OF_THE_PAGE) for name in listed), listed
    person.types(deleted)
    story.application.refresh("hard")
    story.application.synced(commit)
    assert (payments.deployment("v1"), attached(payments, "v1")) == (None, {})
    assert payments.worker.name not in person.sees_rollouts()
    selector = f"temporal.io/deployment-name={OF_THE_PAGE}"
    eventually(lambda: not story.cluster.list("pods", story.namespace, selector), SOON)
    assert story.replicas("v1") == 1

    story.commit_documents("without any worker", connection)
    story.application.refresh()
    story.application.fails_with("the documents render to nothing")
    assert story.replicas("v1") == 1
    delete, confirm = commands("argocd", APPLICATION)
    person.types(delete)
    eventually(story.application.waits_for_a_person, SOON)
    assert (story.replicas("v1"), story.share("v1")) == (1, 100)
    person.types(confirm)
    story.application.goes()
    assert story.deployment("v1") is None
    eventually(lambda: story.status() == {}, SOON)


def test_twgen_is_uninstalled_by_the_commands_of_the_page_and_the_worker_stays(person: Person) -> None:
    story = replace(person.story, worker_name=OF_THE_PAGE)
    more = (autoscaler_document(OF_THE_PAGE), budget_document(OF_THE_PAGE))
    commit = story.commit("v1", *more, steps=())
    story.application.create()
    story.stands("Settled", "v1")
    story.application.refresh("hard")
    story.application.synced(commit)  # a sync that is cut off leaves a finalizer on its hook
    kept = uid(story.deployment("v1"))

    [delete] = commands("argocd", UNINSTALL)
    person.types(delete)
    story.application.goes()
    of_workers = [
        line for line in commands("kubectl", UNINSTALL) if " -n shop " in f"{line} " and " JOB " not in line
    ]
    shown, rollouts, replays, annotations, labels = of_workers
    assert "payments-v1" in person.types(shown)
    person.types(rollouts)
    person.types(replays)
    for kind in ("jobs", "roles", "rolebindings"):
        assert story.cluster.list(kind, story.namespace) == []
    intents = [item["metadata"]["name"] for item in story.cluster.list("configmaps", story.namespace)]
    assert [name for name in intents if OF_THE_PAGE in name] == []
    person.types(annotations)
    person.types(labels)
    found = story.deployment("v1")
    assert found
    assert (uid(found), found["spec"]["replicas"], story.share("v1")) == (kept, 1, 100)
    assert set(attached(story, "v1")) == {"HorizontalPodAutoscaler", "PodDisruptionBudget"}
    left = [name for name in found["metadata"]["annotations"] if "twgen.io" in name or "argocd" in name]
    assert left == []
    assert "app.kubernetes.io/managed-by" not in found["metadata"]["labels"]
