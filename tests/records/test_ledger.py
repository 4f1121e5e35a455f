"""A ledger is what was rendered, whole, or it is refused with the place of what is wrong."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.records.ledgers import CONNECTIONS, connected, entry, ledger, spec
from twgen.model.policy import EnvironmentNames
from twgen.model.problem import Document, Place
from twgen.model.spec import Connection
from twgen.records.ledger import parse_ledgers
from twgen.versioning.build_ids import pod_template_hash
from twgen.versioning.go_json import template_json
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

TEMPLATE = "versions[0].deployment.spec.template"
# a recorded connection has no namespace, and of a Secret only its name
NOT_VOUCHED_FOR = {"TEMPORAL_NAMESPACE", "TEMPORAL_API_KEY"}


def wrong(*values: Any) -> list[str]:
    documents = [Document(f"{index}.yaml", 0, value) for index, value in enumerate(values)]
    return [f"{problem.path}: {problem.message}" for problem in parse_ledgers(documents)[1]]


def changed(change: Callable[[dict[str, Any]], object], document: dict[str, Any] | None = None) -> Any:
    found = copy.deepcopy(document or ledger())
    change(found)
    return found


def template_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["versions"][0]["deployment"]["spec"]["template"]
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
    assert line.startswith(f"{TEMPLATE}: does not match its temporal.io/pod-template-spec-hash")


def test_template_without_a_recorded_hash_is_refused_since_nothing_vouches_for_it() -> None:
    def forget(document: dict[str, Any]) -> None:
        template_of(document)["metadata"]["annotations"].pop("temporal.io/pod-template-spec-hash")

    [line] = wrong(changed(forget))
    assert line.startswith(
        f"{TEMPLATE}: has no annotation temporal.io/pod-template-spec-hash, so twgen cannot know"
    )


@pytest.mark.parametrize("names", EnvironmentNames)
@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda connection: connection.name)
def test_injected_value_that_was_changed_is_refused_under_any_generation_of_names(
    connection: Connection, names: EnvironmentNames
) -> None:
    document = ledger(entry(connected(connection, names)))
    injected = container(document)["env"]
    checked = [variable for variable in injected if variable["name"] not in NOT_VOUCHED_FOR]
    assert len(checked) > 2
    for variable in checked:
        index = injected.index(variable)
        refused = changed(lambda found, at=index: container(found)["env"][at].update(value="evil"), document)
        assert_changed_by_hand(refused)


def test_connection_that_was_changed_with_its_hash_kept_is_refused() -> None:
    def elsewhere(found: dict[str, Any]) -> None:
        container(found)["volumeMounts"][0]["mountPath"] = "/tmp/tls"  # noqa: S108 - a place in a container

    secured = ledger(entry(connected(CONNECTIONS[2], EnvironmentNames.CURRENT)))
    assert_changed_by_hand(changed(elsewhere, secured))
    volumes = changed(
        lambda found: template_of(found)["spec"]["volumes"][0]["secret"].update(secretName="other"), secured
    )
    assert_changed_by_hand(volumes)
    assert_changed_by_hand(
        changed(
            lambda found: template_of(found)["metadata"]["annotations"].pop(
                "temporal.io/connection-spec-hash"
            )
        )
    )


def test_container_that_alone_was_given_another_temporal_is_refused() -> None:
    worker = spec()
    beside = {"name": "beside", "image": "payments:beside"}
    content = {
        **worker.template.content,
        "spec": {"containers": [*worker.template.content["spec"]["containers"], beside]},
    }
    hashed = replace(worker.template, content=content, hash=pod_template_hash(template_json(content)))
    [document] = read_documents(write_documents([ledger(entry(replace(worker, template=hashed)))]))
    assert wrong(document) == []

    def lead_astray(found: dict[str, Any]) -> None:
        [*_, last] = template_of(found)["spec"]["containers"]
        next(item for item in last["env"] if item["name"] == "TEMPORAL_NAMESPACE")["value"] = "other"

    assert_changed_by_hand(changed(lead_astray, document))


@pytest.mark.parametrize(
    "change",
    [
        lambda deployment: deployment["spec"]["selector"]["matchLabels"].update(tier="gold"),
        lambda deployment: deployment["spec"]["template"]["metadata"]["labels"].pop("temporal.io/build-id"),
        lambda deployment: deployment["metadata"]["annotations"].update({"example.com/added": "yes"}),
    ],
    ids=["selector", "labels", "annotations"],
)
def test_deployment_that_was_changed_beside_its_pods_is_refused(
    change: Callable[[dict[str, Any]], object],
) -> None:
    assert_changed_by_hand(changed(lambda found: change(found["versions"][0]["deployment"])))


def assert_changed_by_hand(document: dict[str, Any]) -> None:
    [line] = wrong(document)
    assert line.endswith("was changed by hand; restore it from Git, or remove the entry"), line


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
        (
            lambda found: found["versions"][0]["deployment"]["spec"].update(progressDeadlineSeconds="ten"),
            "versions[0].deployment.spec.progressDeadlineSeconds: must be a whole number, not a string",
        ),
        (
            lambda found: found["versions"][0]["deployment"]["spec"].update(strategy={"type": "Bogus"}),
            "versions[0].deployment.spec.strategy.type: 'Bogus' is not RollingUpdate or Recreate",
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
        "shop/payments v1 appears twice, with different Deployments: keep the one that ran; the other is at"
    )
    assert problem.other == Place(documents[0], "versions[0]")


def test_version_that_is_recorded_twice_alike_is_no_problem() -> None:
    assert wrong(ledger(), ledger()) == []
