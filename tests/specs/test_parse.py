from typing import Any

import pytest

from tests.strategies import a_spec
from twgen.model.document import Document
from twgen.specs.spec_document import NamespaceRule
from twgen.specs.parse import Specs, parse_specs

CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "temporal", "namespace": "shop"},
    "spec": {"hostPort": "temporal.example.com:7233"},
}


def worker(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": "payments", "namespace": "shop"},
        "spec": {
            "workerOptions": {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"},
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"spec": {"containers": [{"name": "w", "image": "payments:v3"}]}},
            **changes,
        },
    }


def budget(**spec: Any) -> dict[str, Any]:
    template = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"maxUnavailable": 1}}
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {"name": "budget", "namespace": "shop"},
        "spec": {"workerDeploymentRef": {"name": "payments"}, "template": template} | spec,
    }


def parsed(*values: Any, rule: NamespaceRule | None = None) -> Specs:
    documents = [Document("f.yaml", index, value) for index, value in enumerate(values)]
    return parse_specs(documents, rule or NamespaceRule())


@pytest.mark.parametrize("kind", ["TemporalWorkerDeployment", "TemporalWorker"])
def test_old_kind_of_a_worker_is_read(kind: str) -> None:
    found = parsed({**worker(), "kind": kind}, CONNECTION)
    assert (found.workers, found.problems) == (parsed(worker(), CONNECTION).workers, ())
    assert found.deprecations == (f"kind {kind} is now WorkerDeployment",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"rollout": None, "cutover": {"strategy": "AllAtOnce"}}, "spec.cutover is now spec.rollout"),
        (
            {"workerOptions": {"connection": "temporal", "temporalNamespace": "default"}},
            "spec.workerOptions.connection is now spec.workerOptions.connectionRef.name",
        ),
    ],
)
def test_old_spelling_means_the_same(old: dict[str, Any], new: str) -> None:
    found = parsed(worker(**old), CONNECTION)
    assert (found.workers, found.problems) == (parsed(worker(), CONNECTION).workers, ())
    assert found.deprecations == (new,)


@pytest.mark.parametrize("field", ["customBuildID", "buildID"])
def test_old_spelling_of_a_custom_build_id_is_read(field: str) -> None:
    options = worker()["spec"]["workerOptions"] | {field: "billing-7"}
    (found,) = parsed(worker(workerOptions=options), CONNECTION).workers
    assert (found.build_id, found.has_custom_build_id) == ("billing-7", True)


@pytest.mark.parametrize("kind", ["Connection", "TemporalConnection"])
def test_connection_is_that_of_the_namespace(kind: str) -> None:
    (found,) = parsed(worker(), {**CONNECTION, "kind": kind}).workers
    assert found.connection.host_port == "temporal.example.com:7233"


def test_cluster_connection_serves_every_namespace() -> None:
    cluster = {**CONNECTION, "kind": "ClusterConnection", "metadata": {"name": "temporal"}}
    (found,) = parsed(worker(), cluster).workers
    assert found.connection.host_port == "temporal.example.com:7233"


@pytest.mark.parametrize("reference", ["workerDeploymentRef", "temporalWorkerDeploymentRef", "workerRef"])
def test_attached_resource_belongs_to_its_worker(reference: str) -> None:
    resource = budget()
    resource["spec"][reference] = resource["spec"].pop("workerDeploymentRef")
    (found,) = parsed(worker(), CONNECTION, resource).workers
    assert [attached.name for attached in found.attached] == ["budget"]


def test_old_spelling_of_an_attached_template_is_read() -> None:
    resource = budget()
    resource["spec"]["object"] = resource["spec"].pop("template")
    (found,) = parsed(worker(), CONNECTION, {**resource, "kind": "TemporalWorkerOwnedResource"}).workers
    assert found.attached[0].template["kind"] == "PodDisruptionBudget"


def test_attached_resource_of_nobody_is_a_warning() -> None:
    (warning,) = parsed(worker(), CONNECTION, budget(workerDeploymentRef={"name": "refunds"})).warnings
    assert "refunds" in warning.message


def test_policy_of_the_namespace_is_for_those_without_their_own() -> None:
    policy = {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": {"identity": "everybody"},
    }
    own = {
        **policy,
        "metadata": {"name": "own", "namespace": "shop"},
        "spec": {"workerRef": {"name": "payments"}, "identity": "payments"},
    }
    other = worker()
    other["metadata"] = {"name": "refunds", "namespace": "shop"}
    payments, refunds = parsed(worker(), other, CONNECTION, policy, own).workers
    assert (payments.policy.identity, refunds.policy.identity) == ("payments", "everybody")


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
    assert [warning.message for warning in found.warnings] == ["has no apiVersion and kind: left out"]


def test_namespace_is_that_of_the_document_or_the_default() -> None:
    bare = worker()
    del bare["metadata"]["namespace"]
    assert parsed(bare, CONNECTION, rule=NamespaceRule("shop")).workers[0].namespace == "shop"
    assert parsed(worker(), CONNECTION, rule=NamespaceRule("other")).workers[0].namespace == "shop"
    assert parsed(bare, CONNECTION).problems


def test_another_namespace_than_the_applications_is_refused() -> None:
    (problem, *_) = parsed(worker(), CONNECTION, rule=NamespaceRule("other", only=True)).problems
    assert (problem.path, problem.message) == (
        "metadata.namespace",
        "'shop' is not 'other', the application's own",
    )


def test_name_that_temporal_refuses_is_a_warning() -> None:
    dotted = worker()
    dotted["metadata"]["name"] = "payments.eu"
    (warning,) = parsed(dotted, CONNECTION).warnings
    assert (warning.path, "dot" in warning.message) == ("metadata.name", True)


def test_defaults_of_a_worker() -> None:
    found = a_spec()
    assert found.progress_deadline_seconds == 600
    assert found.sunset.scaledown_delay.total_seconds() == 3600
    assert found.sunset.delete_delay.total_seconds() == 86400


@pytest.mark.parametrize("image", ["payments", "payments:latest", "registry:5000/payments"])
def test_image_that_can_change_under_its_build_id_is_a_warning(image: str) -> None:
    template = {"spec": {"containers": [{"name": "w", "image": image}]}}
    (warning,) = parsed(worker(template=template), CONNECTION).warnings
    assert warning.path == "spec.template.spec.containers[0].image"


@pytest.mark.parametrize("image", ["payments:v3", "payments@sha256:" + "a" * 64])
def test_image_that_cannot_change_is_none(image: str) -> None:
    template = {"spec": {"containers": [{"name": "w", "image": image}]}}
    assert parsed(worker(template=template), CONNECTION).warnings == ()
