"""Charts and overlays that the plugin of a real Argo CD renders with helm and kustomize."""

import json

import pytest

from tests.servers.gitops import ApplicationStory
from tests.servers.side_by_side import side_by_side
from tests.servers.test_templated import CHART, COMPONENT
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
TWICE = COMPONENT.replace("value: 7", "value: 2")
OF_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def in_checkout(story: ApplicationStory, files: dict[str, str]) -> None:
    """Change files of the checkout, those of the Application's own folder below `app/`."""
    for name, text in files.items():
        file = story.argo.repository.clone / name.replace("app/", f"{story.application.name}/", 1)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def takes(story: ApplicationStory, **parameters: str | list[str]) -> None:
    """Give these plugin parameters in place of those that its Application has."""
    given = [
        {"name": name, "string" if isinstance(value, str) else "array": value}
        for name, value in parameters.items()
    ]
    in_checkout(story, {"app/.argocd-source.yaml": write_documents([{"plugin": {"parameters": given}}])})


def described(story: ApplicationStory, build_id: str) -> str:
    """The worker and its connection, which name no namespace."""
    documents = story.documents(build_id, steps=())
    for document in documents:
        del document["metadata"]["namespace"]
    return write_documents(documents)


def overlay(story: ApplicationStory) -> None:
    in_checkout(
        story,
        {
            "base/kustomization.yaml": "resources: [specs.yaml]\n",
            "base/specs.yaml": described(story, "v1"),
            "twice/kustomization.yaml": TWICE,
            "app/kustomization.yaml": "resources: [../base]\ncomponents: [../twice]\n",
        },
    )
    takes(story, input="Kustomize")


@side_by_side
def test_overlay_with_a_component_is_deployed_and_one_that_is_broken_takes_nothing_away(
    story: ApplicationStory,
) -> None:
    overlay(story)
    commit = story.argo.repository.commit("an overlay")
    story.application.create()
    story.stands("Settled", "v1")
    story.application.synced(commit)
    assert story.replicas("v1") == 2, "the component says so"

    in_checkout(story, {"app/kustomization.yaml": "resources: [../base]\ncomponents: [../thrice]\n"})
    story.argo.repository.commit("a component that is not there")
    story.application.refresh()
    story.application.fails_with("kustomize failed: ", "thrice")
    assert story.replicas("v1") == 2

    overlay(story)
    in_checkout(story, {"base/specs.yaml": described(story, "v1").replace("AllAtOnce", "AtOnce")})
    story.argo.repository.commit("a mistake in a document")
    story.application.refresh()
    story.application.fails_with("rendered by kustomize, document ", "spec.rollout.strategy", "AtOnce")
    assert story.replicas("v1") == 2


@side_by_side
def test_chart_is_deployed_with_its_values_and_a_changed_value_is_a_new_version(
    story: ApplicationStory,
) -> None:
    in_checkout(
        story,
        {
            "app/Chart.yaml": CHART,
            "app/values.yaml": "buildID: none\n",
            "values/prod.yaml": "buildID: v1\n",
            "app/templates/specs.yaml": described(story, "{{ .Values.buildID }}"),
        },
    )
    takes(story, input="Helm", release="greeter", valueFiles=["../values/prod.yaml"])
    story.argo.repository.commit("a chart")
    story.application.create()
    story.stands("Settled", "v1")

    takes(story, input="Helm", valueFiles=["../values/prod.yaml"], values="buildID: v2\n")
    commit = story.argo.repository.commit("another value")
    story.application.refresh()
    story.stands("Settled", "v2")
    story.application.synced(commit)
    assert story.replicas("v2") == 1


SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": f"file://{OF_ACCOUNT}"}
OUTSIDE: dict[str, tuple[str, dict[str, str]]] = {
    "token by the schema of a chart": (
        "Helm",
        {"app/Chart.yaml": CHART, "app/values.schema.json": json.dumps(SCHEMA)},
    ),
    "token by a resource of an overlay": (
        "Kustomize",
        {"app/kustomization.yaml": f"resources: [{OF_ACCOUNT}]\n"},
    ),
}


@pytest.mark.parametrize("way", OUTSIDE)
@side_by_side
def test_neither_chart_nor_overlay_reads_what_else_the_sidecar_has(story: ApplicationStory, way: str) -> None:
    kind, files = OUTSIDE[way]
    in_checkout(story, files)
    takes(story, input=kind)
    story.argo.repository.commit(way)
    story.application.create()
    said = story.application.fails_with(f"{kind.lower()} failed: ")
    token = (story.argo.sidecar.folder / "twgen-token" / "token").read_text()
    assert token not in said
    if "schema" in way:
        assert "permission denied" in said, "the kernel keeps what the program would read"
    assert story.cluster.list("deployments,jobs", story.namespace) == []
