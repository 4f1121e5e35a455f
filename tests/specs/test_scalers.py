"""Autoscalers among the documents that scale a version, or nothing."""

from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, told, worker
from twgen.model.problem import Document
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import versioned_deployment_name

HPA, KEDA, VPA = (
    ("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef"),
    ("keda.sh/v1alpha1", "ScaledObject", "scaleTargetRef"),
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "targetRef"),
)


def scaling(api: str, scaler: str, field: str, namespace: str = "shop", **target: object) -> dict[str, Any]:
    metadata = {"name": "scaler"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": scaler, "metadata": metadata, "spec": {field: target}}


def deployment(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}}


def warned(*others: dict[str, Any], namespace: str = "") -> list[str]:
    values = (worker(), CONNECTION, *others)
    read = [Document("specs.yaml", index, value) for index, value in enumerate(values)]
    return told(parse_specs(read, NamespaceRule(namespace)).warnings)


@pytest.mark.parametrize("scaler", [HPA, KEDA, VPA])
def test_scaler_of_a_deployment_that_is_called_like_a_worker_scales_nothing(
    scaler: tuple[str, str, str],
) -> None:
    said = "scales Deployment payments, which is not a version of worker shop/payments: make it a Worker"
    [warning] = warned(scaling(*scaler, kind="Deployment", name="payments"))
    assert warning.startswith(f"spec.{scaler[2]}.name: {said}")


@pytest.mark.parametrize("scaler", [HPA, KEDA, VPA])
@pytest.mark.parametrize("namespace", ["shop", ""])
def test_scaler_of_the_deployment_of_one_version_is_to_be_attached(
    scaler: tuple[str, str, str], namespace: str
) -> None:
    (spec,) = parsed(worker(), CONNECTION).workers
    target = versioned_deployment_name(spec.name, spec.build_id)
    [warning] = warned(scaling(*scaler, namespace, kind="Deployment", name=target))
    assert warning == (
        f"spec.{scaler[2]}.name: scales Deployment {target}, which is only one version of worker"
        " shop/payments: make it a WorkerResourceTemplate"
    )


def test_target_of_keda_is_a_deployment_also_where_it_does_not_say_so() -> None:
    assert len(warned(scaling(*KEDA, name="payments"))) == 1


@pytest.mark.parametrize("default", ["", "shop"])
def test_scaler_without_a_namespace_may_be_that_of_the_worker(default: str) -> None:
    assert len(warned(scaling(*HPA, "", name="payments"), namespace=default)) == 1


@pytest.mark.parametrize(
    "others",
    [
        [scaling(*HPA, name="payments"), deployment("payments", "shop")],
        [scaling(*HPA, "infra", name="payments")],
        [scaling(*HPA, name="payments-api")],
        [scaling(*HPA, kind="StatefulSet", name="payments")],
        [scaling(*HPA, name=["payments"])],
        [scaling("example.com/v1", *HPA[1:], name="payments")],
    ],
    ids=["is there", "another namespace", "another name", "another kind", "no name", "another group"],
)
def test_scaler_of_what_may_be_there_is_nobodys_mistake(others: list[dict[str, Any]]) -> None:
    assert warned(*others) == []


def test_deployment_of_another_namespace_is_not_what_is_scaled() -> None:
    assert len(warned(scaling(*HPA, name="payments"), deployment("payments", "infra"))) == 1


@pytest.mark.parametrize("kind", ["WorkerDeployment", "TemporalWorkerDeployment"])
def test_scaler_of_a_worker_itself_scales_nothing(kind: str) -> None:
    [warning] = warned(scaling(*HPA, apiVersion="temporal.io/v1alpha1", kind=kind, name="payments"))
    assert warning.startswith(
        f"spec.scaleTargetRef.name: scales {kind} payments, which is not a version of worker"
    )
    assert warned(scaling(*HPA, kind=["WorkerDeployment"], name="payments")) == []
