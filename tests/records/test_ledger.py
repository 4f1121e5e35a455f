"""A ledger is what was rendered, whole, or it is refused with the place of what is wrong."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.records.ledgers import CONNECTIONS, connected, entry, ledger, spec
from twgen.model.problem import Document, Place
from twgen.model.spec import Connection, EnvironmentNames
from twgen.records.ledger import parse_ledgers
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

TEMPLATE = "versions[0].deployment.spec.template"


def wrong(*values: Any) -> list[str]:
    documents = [Document(f"{index}.yaml", 0, value) for index, value in enumerate(values)]
    return [f"{problem.path}: {problem.message}" for problem in parse_ledgers(documents)[1]]


def changed(change: Callable[[dict[str, Any]], object], document: dict[str, Any] | None = None) -> Any:
    found = copy.deepcopy(document or ledger())
    change(found)
    return found


def container(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["versions"][0]["deployment"]["spec"]["template"]["spec"]["containers"][0]
    return found


def test_ledger_is_read_back_as_it_was_written() -> None:
    entries = (entry(), entry(spec("payments:v2", "v2")), entry(spec(name="orders")))
    [document] = read_documents(write_documents([ledger(*entries)]))
    places, problems = parse_ledgers([Document("a.yaml", 0, document)])
    assert problems == []
    assert [place.entry for place in places.values()] == list(entries)


@pytest.mark.parametrize("names", EnvironmentNames)
@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda connection: connection.name)
def test_recorded_template_fits_its_hash_under_any_generation_of_names(
    connection: Connection, names: EnvironmentNames
) -> None:
    document = ledger(entry(connected(connection, names)))
    assert wrong(document) == []
    [line] = wrong(changed(lambda found: container(found).update(image="payments:hacked"), document))
    assert line.startswith(f"{TEMPLATE}: is not the pod template that its temporal.io/pod-template-spec-hash")


def test_template_without_a_recorded_hash_fits_any() -> None:
    def forget(document: dict[str, Any]) -> None:
        template = document["versions"][0]["deployment"]["spec"]["template"]
        template["metadata"]["annotations"].pop("temporal.io/pod-template-spec-hash")
        container(document)["image"] = "payments:imported"

    assert wrong(changed(forget)) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda found: found.update(version=1), "version: no such field; did you mean versions?"),
        (lambda found: found.update(apiVersion="twgen.io/v2"), "apiVersion: must be twgen.io/v1alpha1"),
        (lambda found: found["versions"].append(None), "versions[1]: must be a mapping, not null"),
        (lambda found: found["versions"][0].pop("buildID"), "versions[0].buildID: is required"),
        (
            lambda found: found["versions"][0].update(buildId="v1"),
            "versions[0].buildId: no such field; did you mean buildID?",
        ),
        (
            lambda found: found["versions"][0].update(worker="payments"),
            "versions[0].worker: 'payments' is not <Kubernetes namespace>/<worker>",
        ),
        (lambda found: container(found).update(env={}), f"{TEMPLATE}.spec.containers[0].env: must be a list"),
        (
            lambda found: container(found).update(imagge="x"),
            f"{TEMPLATE}.spec.containers[0].imagge: is not a",
        ),
        (
            lambda found: found["versions"][0]["deployment"]["metadata"].update(labels={"a": 1}),
            "versions[0].deployment.metadata.labels.a: must be a string, not a whole number",
        ),
        (
            lambda found: found["versions"][0].update(buildID="v9"),
            "versions[0].deployment.spec.selector.matchLabels['temporal.io/build-id']: is not v9",
        ),
    ],
)
def test_ledger_that_is_not_whole_is_refused_at_its_path(
    change: Callable[[dict[str, Any]], object], line: str
) -> None:
    found = wrong(changed(change))
    assert any(told.startswith(line) for told in found), found


def test_version_with_two_deployments_is_refused_with_both_places() -> None:
    other = replace(entry(), deployment=entry(spec("payments:v1-fixed")).deployment)
    documents = [
        Document("a.yaml", 0, ledger()),
        Document("b.yaml", 0, ledger(entry(spec(name="orders")), other)),
    ]
    [problem] = parse_ledgers(documents)[1]
    assert (problem.document, problem.path) == (documents[1], "versions[1]")
    assert problem.message == (
        "shop/payments v1 is there with another Deployment: keep the one that ran; the other is at"
    )
    assert problem.other == Place(documents[0], "versions[0]")


def test_version_that_is_recorded_twice_alike_is_no_problem() -> None:
    assert wrong(ledger(), ledger()) == []
