"""A ledger is what was rendered, whole, or it is refused with the place of what is wrong."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.records.ledgers import CONNECTIONS, connected, entry, ledger, spec
from twgen.errors import InvalidInput
from twgen.model.policy import EnvironmentNames
from twgen.model.problem import Document, DocumentPath
from twgen.model.spec import Connection
from twgen.records.ledger import parse_ledgers, updated_text, write_entry
from twgen.versioning.build_ids import pod_template_hash
from twgen.versioning.stored_form import template_json
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
    assert problem.other == DocumentPath(documents[0], "versions[0]")


def test_version_that_is_recorded_twice_alike_is_no_problem() -> None:
    assert wrong(ledger(), ledger()) == []


ORDERS = entry(spec(name="orders"))
_LINES = write_documents([entry().deployment]).splitlines(keepends=True)[1:]
BY_HAND = f"""\
# what has been deployed; do not sort
apiVersion: twgen.io/v1alpha1
kind: Ledger
versions:
# the big one
- worker: shop/payments  # of team blue
  buildID: v1
  recordedAt: "2026-11-01T00:00:00Z"
  deployment:
{"".join(f"    {line}" for line in _LINES)}
# the small one
- {{worker: shop/orders, buildID: v1, deployment: {ORDERS.deployment}}}
metadata: {{name: versions}}  # nobody reads it
"""


def build_ids(text: str) -> list[tuple[str, str]]:
    [document] = read_documents(text)
    return [(item["worker"], item["buildID"]) for item in document["versions"]]


def test_ledger_that_is_not_there_yet_is_begun() -> None:
    text = updated_text("", [entry()], "a.yaml")
    assert text.startswith(
        'apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions:\n- {"worker": "shop/payments", "buildID":'
    )
    assert len(text.splitlines()) == 4
    assert read_documents(text) == [ledger(entry())]


def test_new_version_is_added_below_all_that_people_wrote() -> None:
    new = entry(spec("payments:v2", "v2"))
    text = updated_text(BY_HAND, [new], "a.yaml")
    above, _, below = BY_HAND.partition("\nmetadata:")
    assert text.startswith(above)
    assert text.endswith(f"\nmetadata:{below}")
    assert build_ids(text) == [("shop/payments", "v1"), ("shop/orders", "v1"), ("shop/payments", "v2")]
    assert read_documents(text)[0]["versions"][2] == write_entry(new)


def test_changed_template_of_a_version_replaces_it_in_its_place() -> None:
    text = updated_text(BY_HAND, [entry(spec("payments:v1-fixed"))], "a.yaml")
    assert "# the big one\n- worker: shop/payments  # of team blue\n" in text
    assert text.partition("# the small one")[2] == BY_HAND.partition("# the small one")[2]
    assert build_ids(text) == build_ids(BY_HAND)
    assert "payments:v1-fixed" in text
    assert "2026-11-21T12:00:00Z" in text


def test_entry_on_one_line_and_without_a_time_is_changed_in_its_place() -> None:
    text = updated_text(BY_HAND, [entry(spec("orders:fixed", name="orders"))], "a.yaml")
    assert text.startswith(BY_HAND.partition("- {worker: shop/orders")[0])
    assert text.endswith("\nmetadata: {name: versions}  # nobody reads it\n")
    assert build_ids(text) == build_ids(BY_HAND)
    assert read_documents(text)[0]["versions"][1] == write_entry(entry(spec("orders:fixed", name="orders")))


@pytest.mark.parametrize("begins", ["", "---\n", "# ours\n---\n# really\n", "\n# ours\n\n"])
@pytest.mark.parametrize("ends", ["", "...\n", "\n# the end\n"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize("image", ["payments:v1", "payments:v1-fixed"])
def test_comments_stay_whatever_stands_around_them(
    begins: str, ends: str, line_break: str, image: str
) -> None:
    first, second = (f"- {json.dumps(write_entry(item))}" for item in (entry(), ORDERS))
    below = f"kind: Ledger\nversions:\n# old\n{first}  # why\n\n# new\n{second}\n{ends}"
    text = f"{begins}apiVersion: twgen.io/v1alpha1  # of now\n{below}".replace("\n", line_break)
    found = updated_text(text, [entry(spec(image)), entry(spec("payments:v2", "v2"))], "a.yaml")
    assert [line.strip() for line in text.splitlines() if line.startswith("#")] == [
        line.strip() for line in found.splitlines() if line.startswith("#")
    ]
    assert found.count("# of now") == found.count("# why") == 1
    assert found.count("\n") == found.count(line_break)
    assert build_ids(found) == [("shop/payments", "v1"), ("shop/orders", "v1"), ("shop/payments", "v2")]


def test_indentation_of_a_ledger_is_kept() -> None:
    lines = [f"  - {json.dumps(write_entry(item))}\n" for item in (entry(), ORDERS)]
    text = f"kind: Ledger  # ours\napiVersion: twgen.io/v1alpha1\nversions:\n{''.join(lines)}"
    assert updated_text(text, [entry(spec("payments:v2", "v2"))], "a.yaml").startswith(f"{text}  - {{")


def test_ledger_whose_layout_cannot_be_kept_is_not_touched() -> None:
    text = (
        f"apiVersion: twgen.io/v1alpha1\nkind: Ledger\nversions:\n-\n  {json.dumps(write_entry(entry()))}\n"
    )
    with pytest.raises(
        InvalidInput, match=r"a\.yaml cannot be edited without losing its layout: write `versions`"
    ):
        updated_text(text, [ORDERS], "a.yaml")


@pytest.mark.parametrize("above", ["", "# ours\n"])
def test_version_that_two_branches_recorded_is_changed_wherever_it_stands(above: str) -> None:
    [once] = [line for line in updated_text("", [entry()], "a.yaml").splitlines() if line.startswith("- ")]
    twice = f"{above}{updated_text('', [entry()], 'a.yaml')}{once}\n"
    changed = entry(spec("payments:v1-hotfix"))
    text = updated_text(twice, [changed], "a.yaml")
    assert read_documents(text)[0]["versions"] == [write_entry(changed)] * 2


@pytest.mark.parametrize("indent", [None, 1])
def test_ledger_as_json_stays_json(indent: int | None) -> None:
    text = updated_text(json.dumps(ledger(entry()), indent=indent), [ORDERS], "a.json")
    assert json.loads(text) == ledger(entry(), ORDERS)


def test_only_a_ledger_that_somebody_edited_is_read_by_ruamel() -> None:
    program = """
import sys
from tests.records.ledgers import entry, spec
from twgen.records.ledger import updated_text
text = updated_text("", [entry()], "a.yaml")
for text in (text, "# ours\\n" + text):
    updated_text(text, [entry(spec("payments:v2", "v2"))], "a.yaml")
    print("ruamel.yaml" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("begins", ["", "# ours\n"])
def test_many_versions_are_changed_and_added_at_once(begins: str) -> None:
    known = [entry(spec(f"payments:{n}", f"v{n}")) for n in range(30)]
    text = begins + updated_text("", known, "a.yaml")
    changed = [entry(spec(f"payments:fixed-{n}", f"v{n}")) for n in range(0, 60, 2)]
    found = updated_text(text, changed, "a.yaml")
    assert found.startswith(begins)
    fixed = {item.key: item for item in changed}
    wanted = [fixed.pop(item.key, item) for item in known]
    assert read_documents(found) == [ledger(*wanted, *fixed.values())]


def test_file_that_is_no_ledger_is_not_touched() -> None:
    with pytest.raises(InvalidInput, match=r"a\.yaml is not a ledger: restore it from Git, or move it"):
        updated_text("kind: Service\n", [entry()], "a.yaml")


@pytest.mark.parametrize("begins", ["", "# ours\n"])
def test_strings_that_look_like_something_else_stay_strings(begins: str) -> None:
    odd = {
        "a": "y",
        "b": "08",
        "c": "1e3",
        "d": "null",
        "e": "a\nb\n",
        "f": "\u2028\x7f\ufeff",
        "g": "\U0001f600",
    }
    deployment = {**entry().deployment, "metadata": {"name": "on", "annotations": odd}}
    changed = replace(entry(), build_id="on", deployment=deployment)
    text = begins + updated_text("", [changed], "a.yaml")
    assert read_documents(text)[0]["versions"] == [write_entry(changed)]
    added = updated_text(text, [replace(changed, build_id="no")], "a.yaml")
    assert read_documents(added)[0]["versions"][1]["deployment"] == deployment
