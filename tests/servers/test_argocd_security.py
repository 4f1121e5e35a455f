"""What a repository may try against the plugin of a real Argo CD, and what becomes of it."""

import json
import re
import socket
from contextlib import closing
from pathlib import Path

import pytest

from testing.argocd.argocd import OF_ANOTHER_PROJECT, TEAMS
from testing.leaks import credential
from testing.processes import eventually
from tests.servers.gitops import SOON, ApplicationStory
from tests.servers.live import Document, attached_document
from tests.servers.side_by_side import side_by_side
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

PAGE = Path(__file__).parents[2] / "docs" / "first-application.md"
pytestmark = pytest.mark.server
HIDDEN = credential("hunter2-is-what-nobody-may-see")


def refused(story: ApplicationStory, *parts: str) -> None:
    """The first render fails, its error has these parts and nothing hidden, and nothing was deployed."""
    story.application.create()
    assert HIDDEN not in story.application.fails_with(*parts)
    assert story.cluster.list("deployments,jobs", story.namespace) == []


@side_by_side
def test_repository_cannot_send_a_credential_to_another_host(story: ApplicationStory) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as elsewhere:
        elsewhere.settimeout(0)
        address = f"127.0.0.1:{elsewhere.getsockname()[1]}"
        story.commit("v1", steps=(), address=address)
        refused(story, "no Temporal profile matches connection", address)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@side_by_side
def test_repository_cannot_use_a_credential_for_another_namespace(story: ApplicationStory) -> None:
    story.commit("v1", steps=(), temporal_namespace="payments")
    refused(story, "no Temporal profile matches connection", "payments")


@side_by_side
def test_repository_cannot_use_the_profile_of_another_project(story: ApplicationStory) -> None:
    story.commit("v1", steps=(), address=OF_ANOTHER_PROJECT)
    refused(story, "may not use profile 'payments'")


@pytest.mark.parametrize(
    "plugin",
    [
        {"parameters": [{"name": "kubeconfig", "string": "admin.kubeconfig"}]},
        {"env": [{"name": "TWGEN_KUBECONFIG", "value": "admin.kubeconfig"}]},
    ],
    ids=["parameter", "variable"],
)
@side_by_side
def test_repository_cannot_set_an_option_of_the_operator(story: ApplicationStory, plugin: Document) -> None:
    story.folder.mkdir()
    (story.folder / ".argocd-source.yaml").write_text(write_documents([{"plugin": plugin}]))
    story.commit("v1", steps=())
    refused(story, "'kubeconfig' is for the operator, not for a repository", "TWGEN_KUBECONFIG")


@side_by_side
def test_mistaken_parameter_is_told_in_the_application(story: ApplicationStory) -> None:
    give(story, [{"name": "strict", "map": {"is": "true"}}])
    refused(story, "plugin parameter 'strict' must be a single text")


@side_by_side
def test_parameter_that_a_repository_may_set_has_its_effect(story: ApplicationStory) -> None:
    give(story, [{"name": "identity", "string": "repositories/own"}])
    story.application.create()
    made = eventually(lambda: story.deployment("v1"), SOON)
    assert made["metadata"]["annotations"]["twgen.io/identity"] == "twgen/repositories/own"


def give(story: ApplicationStory, parameters: list[Document]) -> None:
    """Commit a worker, and parameters in place of those that its Application has."""
    story.folder.mkdir()
    plugin = {"plugin": {"parameters": parameters}}
    (story.folder / ".argocd-source.yaml").write_text(write_documents([plugin]))
    story.commit("v1", steps=())


@side_by_side
def test_repository_cannot_read_files_outside_of_its_folder(story: ApplicationStory) -> None:
    story.folder.mkdir()
    (story.folder / "more.yaml").symlink_to("../README.md")
    story.commit("v1", steps=())
    refused(story, "link")


@side_by_side
def test_repository_cannot_attach_a_kind_that_is_not_allowed(story: ApplicationStory) -> None:
    story.commit("v1", attached_document("greeter", "more", "v1", "Secret"), steps=())
    refused(story, "Secret")


@side_by_side
def test_project_and_application_of_the_page_deploy_a_worker_and_nothing_of_the_whole_cluster(
    story: ApplicationStory,
) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    documents = [document for block in blocks for document in read_documents(block)]
    project, application = (
        next(one for one in documents if isinstance(one, dict) and one.get("kind") == kind)
        for kind in ("AppProject", "Application")
    )
    [goes_on] = [one for one in documents if isinstance(one, dict) and "syncPolicy" in one.get("spec", {})]
    project["metadata"]["name"] = team = TEAMS.replace("*", story.namespace)
    application["metadata"]["name"] = story.application.name
    application["spec"] |= {"project": team, **goes_on["spec"]}
    application["spec"]["source"] |= {"path": story.application.name}
    application["spec"]["source"]["repoURL"] = story.argo.repository.address
    project["spec"]["sourceRepos"] = [story.argo.repository.address]
    for destination in (application["spec"]["destination"], project["spec"]["destinations"][0]):
        destination["namespace"] = story.namespace
    commit = story.commit("v1", steps=())
    story.cluster.apply([project, application])
    story.stands("Settled", "v1")
    story.application.synced(commit)

    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{story.namespace}-is-admin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }
    story.write(*story.documents("v1", steps=()), binding)
    story.argo.repository.commit("a right that a team may not have")
    story.application.refresh()

    def is_refused() -> bool:
        told = json.dumps(story.application.operation())
        assert "ClusterRoleBinding is not permitted in project" in told, told
        return True

    assert eventually(is_refused, SOON)
    names = [one["metadata"]["name"] for one in story.cluster.list("clusterrolebindings")]
    assert binding["metadata"]["name"] not in names


CONNECTION = "apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: other}\n"


@side_by_side
def test_repository_cannot_run_code(story: ApplicationStory) -> None:
    story.folder.mkdir()
    proof = story.argo.folder / story.namespace / "was-here"
    names = {
        "tagged.yaml": f'!!python/object/apply:os.system ["touch {proof}"]',
        "template.yaml": f"'{{{{ exec `touch {proof}` }}}}'",
        "$(touch was-here).yaml": f"'$(touch {proof})'",
    }
    for name, text in names.items():
        (story.folder / name).write_text(f"{CONNECTION}spec: {{hostPort: {text}}}\n")
    story.commit("v1", steps=())
    refused(story, *names)
    assert not proof.exists()


@side_by_side
def test_repository_cannot_fill_a_log_with_a_secret(story: ApplicationStory) -> None:
    mistake = f"kind: Secret\nstringData: {{password: {HIDDEN}, password: {HIDDEN}}}\n"
    story.folder.mkdir()
    (story.folder / "secret.yaml").write_text(f"apiVersion: v1\nmetadata: {{name: secret}}\n{mistake}")
    story.commit("v1", steps=())
    refused(story, "secret.yaml")
    for log in story.argo.folder.glob("*.log"):
        assert HIDDEN not in log.read_text(errors="replace"), log.name
