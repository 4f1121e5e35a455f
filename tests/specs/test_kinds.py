"""Which documents are ours, which pass through, and which are a mistake."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.model.problem import Document
from twgen.specs.kinds import without_lists
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

APIVERSION = "temporal.io/v1alpha1; did you mean apiVersion instead of 'apiversion'?"


def test_documents_of_others_pass_through_in_their_order() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    found = parsed(service, worker(), role, CONNECTION)
    assert [document.value for document in found.passthrough] == [service, role]


@pytest.mark.parametrize("kind", ["Snapshot", "Ledger", "Plan", "Status", "RolloutPolicy", "Whatever"])
def test_kind_of_twgen_never_passes_through(kind: str) -> None:
    found = parsed(
        {"apiVersion": "twgen.io/v1alpha1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}}
    )
    assert found.passthrough == ()


def test_document_without_kind_is_left_out_with_a_warning() -> None:
    found = parsed({"replicas": 3})
    assert found.passthrough == ()
    assert [warning.message for warning in found.warnings] == [
        ("has no apiVersion and kind, so it is left out")
    ]


def test_item_of_a_list_is_a_document_and_its_problems_name_its_place() -> None:
    broken = worker(replicas="2")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    whole = {"apiVersion": "v1", "kind": "List", "items": [service, CONNECTION, broken, None]}
    found = parse_specs(list(without_lists(Document("f.yaml", 0, whole))), NamespaceRule())
    assert [document.value for document in found.passthrough] == [service]
    assert told(found.problems) == [
        "items[2].spec.replicas: must be a whole number, not a string; remove the quotes"
    ]
    assert told(found.warnings) == ["items[3]: has no apiVersion and kind, so it is left out"]


def test_items_of_a_list_of_one_kind_are_of_that_kind() -> None:
    bare = {"metadata": {"name": "s"}}
    whole = {"apiVersion": "v1", "kind": "ServiceList", "items": [bare]}
    nested = {"apiVersion": "v1", "kind": "List", "items": [whole]}
    (item,) = without_lists(Document("f.yaml", 0, nested))
    assert item.value == {"apiVersion": "v1", "kind": "Service", **bare}
    assert item.path == "items[0].items[0]"


def test_list_without_items_is_refused() -> None:
    found = parsed({"apiVersion": "v1", "kind": "List"})
    assert (told(found.problems), found.passthrough) == (["items: must be a list"], ())


@pytest.mark.parametrize("kind", ["ConfigMap", "list", "Lists"])
@pytest.mark.parametrize("items", [[{"apiVersion": "v1", "kind": "Secret"}], [], {}, None])
def test_document_that_others_take_for_a_list_hides_no_items_from_checks(kind: str, items: object) -> None:
    found = parsed({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "items": items})
    message = (
        "items: makes kubectl and Argo CD treat this document as a List: write kind: List, or remove items"
    )
    assert (told(found.problems), found.passthrough) == ([message], ())


def test_items_of_a_document_that_is_left_out_are_no_mistake() -> None:
    assert parsed({"items": [1, 2]}).problems == ()


@pytest.mark.parametrize(
    ("api", "kind", "place", "right"),
    [
        ("temporal.io/v1alpha1", "WorkerDeploymnt", "kind", "; did you mean WorkerDeployment?"),
        ("temporal.io/v1alpha1", "connection", "kind", "; did you mean Connection?"),
        ("temporal.io/v1alpha1", "Zebra", "kind", "temporal.io/v1alpha1 has no kind 'Zebra'"),
        ("temporal.io/v1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
        ("temporal.io", "Connection", "apiVersion", ": write temporal.io/v1alpha1"),
        ("temporal.io/v1alpha1", "RolloutPolicy", "apiVersion", ": write twgen.io/v1alpha1"),
        ("twgen.io/v1alpha1", "RolloutPolicies", "kind", "; did you mean RolloutPolicy?"),
        ("twgen.io/v2", "Snapshot", "apiVersion", ": write twgen.io/v1alpha1"),
        ("temporalio/v1alpha1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
        ("Temporal.io/v1alpha1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
        ("apps/v1", "WorkerDeployment", "apiVersion", ": write temporal.io/v1alpha1"),
    ],
)
def test_kind_or_version_that_is_none_of_ours_is_refused_with_the_right_one(
    api: str, kind: str, place: str, right: str
) -> None:
    found = parsed({"apiVersion": api, "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": {}})
    (problem,) = found.problems
    assert (problem.path, found.passthrough) == (place, ())
    assert problem.message.endswith(right)


NOT_A_STRING = "must be a string, not {}; put it in quotes"
API = "temporal.io/v1alpha1"


@pytest.mark.parametrize(
    ("api", "kind", "message"),
    [
        (("apiVersion", API), ("knid", "Connection"), "kind: is required"),
        (
            ("apiVersion", API),
            ("kinds", "Connection"),
            "kind: is required; did you mean kind instead of 'kinds'?",
        ),
        (("apiversion", API), ("kind", "Connection"), f"apiVersion: is required: {APIVERSION}"),
        (("apiVersion", 1), ("kind", "Service"), f"apiVersion: {NOT_A_STRING.format('a whole number')}"),
        (("apiVersion", True), ("kind", "List"), f"apiVersion: {NOT_A_STRING.format('true or false')}"),
        (("apiVersion", "v1"), ("kind", ["Service"]), "kind: must be a string, not a list"),
    ],
)
def test_mistyped_mark_of_a_document_is_refused(api: tuple[str, Any], kind: Any, message: str) -> None:
    found = parsed(dict((api, kind)))
    assert (told(found.problems), found.passthrough, found.warnings) == ([message], (), ())


def test_mistyped_mark_of_anybodys_document_is_warned_of() -> None:
    assert told(parsed({"apiversion": "v1", "kind": "Service"}).warnings) == [
        "has no apiVersion, so it is left out; did you mean apiVersion instead of 'apiversion'?"
    ]


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("temporal.io/v1beta1", "TemporalCluster"),  # another project's, in the same group
        ("example.com/v1", "Connection"),
        ("upgrade.cattle.io/v1", "Plan"),
        ("apps/v1", "Deployment"),
    ],
)
def test_kind_of_somebody_else_passes_through(api: str, kind: str) -> None:
    found = parsed({"apiVersion": api, "kind": kind, "metadata": {"name": "a"}})
    assert (len(found.passthrough), found.problems) == (1, ())


KUSTOMIZATION = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}


@pytest.mark.parametrize(
    ("file", "document", "kind", "command"),
    [
        ("a/Chart.yaml", {"apiVersion": "v2"}, "Helm", "helm template a"),
        ("kustomization.yaml", {}, "Kustomize", "kustomize build ."),
        ("my app/k.yaml", KUSTOMIZATION, "Kustomize", "kustomize build 'my app'"),
    ],
)
def test_input_of_another_tool_says_which_command_to_run_first(
    file: str, document: dict[str, Any], kind: str, command: str
) -> None:
    found = parse_specs([Document(file, 0, document)], NamespaceRule())
    what = {"Helm": "a Helm chart", "Kustomize": "for kustomize"}[kind]
    folder = command.split(" ", 2)[2]
    option = f"with --input {kind} (in Argo CD, parameter input)"
    message = f"is {what}: pass only {folder}, {option}, or run `{command} | twgen render -`"
    assert (told(found.problems), found.passthrough) == ([message], ())


def test_kustomization_of_flux_is_an_object_of_the_cluster() -> None:
    found = parsed({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {}})
    assert len(found.passthrough) == 1


def test_values_beside_a_chart_are_not_told_again() -> None:
    chart = Document("app/Chart.yaml", 0, {"apiVersion": "v2", "name": "pay"})
    values = Document("app/values.yaml", 0, {"replicas": 2})
    assert parse_specs([chart, values], NamespaceRule()).warnings == ()
    assert told(parse_specs([values], NamespaceRule()).warnings) == [
        "has no apiVersion and kind, so it is left out; Helm values are only for `helm template`"
    ]


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [("Snapshot", "--snapshot"), ("OperatorConfig", "--operator-config"), ("Plan", "is not a spec")],
)
def test_record_in_place_of_specs_says_what_it_is_and_where_it_belongs(kind: str, remedy: str) -> None:
    record = {"apiVersion": "twgen.io/v1alpha1", "kind": kind}
    (warning,) = told(parsed(record).warnings)
    assert warning.startswith(f"kind: a {kind} is not a spec")
    assert remedy in warning
    assert parsed(record, worker(), CONNECTION).warnings == ()


def test_what_a_render_printed_is_no_spec_and_is_told_once_for_each_file() -> None:
    label = {"app.kubernetes.io/managed-by": "twgen"}
    kinds = [("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("policy/v1", "PodDisruptionBudget")]
    made = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": "payments-v2", "labels": label}}
        for api, kind in kinds
    ]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"}}
    files = {"a.yaml": [worker(), CONNECTION, service], "old.yaml": [service, *made], "older.yaml": made[:1]}
    documents = [Document(file, at, one) for file, all_ in files.items() for at, one in enumerate(all_)]
    found = parse_specs(documents, NamespaceRule("shop"))
    assert [problem.document.source for problem in found.problems] == ["old.yaml", "older.yaml"]
    [message] = set(told(found.problems))
    assert message.startswith("is output of `twgen render` (see its label app.kubernetes.io/managed-by or")
    assert message.endswith("keep it out of the specs' folder")
    assert [document.source for document in found.passthrough] == ["a.yaml"]


@pytest.mark.parametrize(
    ("metadata", "hint"),
    [
        ({"metdata": {"name": "s"}}, "; did you mean metadata instead of 'metdata'?"),
        ({"metadata": {}}, ""),
        ({"metadata": {"nmae": "s"}}, ""),
        ({}, ""),
    ],
)
def test_document_without_a_name_passes_through_with_a_warning(metadata: Any, hint: str) -> None:
    found = parsed({"apiVersion": "v1", "kind": "Service", **metadata})
    assert len(found.passthrough) == 1
    assert told(found.warnings) == [f"has no metadata.name: an API server rejects it{hint}"]


def test_document_whose_name_a_server_makes_is_not_warned_of() -> None:
    assert parsed({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}).warnings == ()


def test_what_tick_would_take_for_an_intent_does_not_pass_through() -> None:
    labels = {"twgen.io/rollout": "payments"}
    found = parsed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}})
    assert (len(found.passthrough), len(found.manifests)) == (0, 1)


@pytest.mark.parametrize("labels", [None, "twgen", {"app.kubernetes.io/managed-by": "Helm"}])
def test_what_another_tool_manages_passes_through(labels: object) -> None:
    found = parsed({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": labels}})
    assert (len(found.passthrough), found.problems) == (1, ())
