"""What may be attached to a version, and what twgen makes of what it will fill in."""

from typing import Any

import pytest

from tests.refused import bases, changed, documents, refusals, strictly
from tests.specs.parsing import CONNECTION, told, worker
from twgen.model.operator import NEVER_ATTACHED, GroupKind
from twgen.model.problem import MOST_TOLD, Document
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule

MONITOR = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "spec": {"anything": [1]}}


def parsed(template: dict[str, Any], *more: GroupKind) -> Specs:
    read = [Document("specs.yaml", index, value) for index, value in enumerate(documents(template))]
    return parse_specs(read, NamespaceRule("shop"), more)


def template_of(specs: Specs) -> Any:
    assert specs.problems == ()
    return specs.workers[0].attached[0].template


def scaled(**metadata: Any) -> dict[str, Any]:
    values = {f"spec.triggers[0].metadata.{name}": value for name, value in metadata.items()}
    return changed(bases()["scaledobject"], values)


@pytest.mark.parametrize("name", [name for name in bases() if name != "pods"])
def test_four_kinds_may_always_be_attached(name: str) -> None:
    assert template_of(parsed(bases()[name]))["kind"] == bases()[name]["kind"]


def test_template_is_read_by_itself_also_after_one_that_is_equal() -> None:
    right = changed(bases()["horizontalpodautoscaler"], {"spec.minReplicas": 1, "spec.maxReplicas": 1})
    wrong = changed(right, {"spec.minReplicas": True})
    found = parse_specs(
        [
            Document(f"{number}.yaml", index, value)
            for number, template in enumerate([right, right, wrong, wrong])
            for index, value in enumerate(documents(template, f"worker-{number}"))
        ],
        NamespaceRule("shop"),
    )
    told = [(worker.name, worker.attached[0].name) for worker in found.workers]
    assert told == [(name, name) for name in ("worker-0", "worker-1", "worker-2", "worker-3")]
    assert [(problem.document.source, problem.path) for problem in found.problems] == [
        ("2.yaml", "spec.template.spec.minReplicas"),
        ("3.yaml", "spec.template.spec.minReplicas"),
    ]


def test_kind_of_another_group_is_not_allowed_for_its_name() -> None:
    (problem,) = parsed({"apiVersion": "example.com/v1", "kind": "PodDisruptionBudget"}).problems
    assert problem.path == "spec.template.kind"
    assert problem.message.startswith("example.com/PodDisruptionBudget cannot be attached to a version")


def test_operator_allows_more_kinds_by_group_and_kind() -> None:
    assert len(parsed(MONITOR).problems) == 1
    assert len(parsed(MONITOR, GroupKind("example.com", "PodMonitor")).problems) == 1
    found = parsed(MONITOR, GroupKind("monitoring.coreos.com", "PodMonitor"))
    assert template_of(found) == MONITOR
    assert found.unknown_fields == ()


@pytest.mark.parametrize("kind", sorted(NEVER_ATTACHED))
@pytest.mark.parametrize("group", ["apps", "batch", "rbac.authorization.k8s.io", "example.com"])
def test_no_operator_can_allow_what_runs_pods_or_grants_rights(group: str, kind: str) -> None:
    template = {"apiVersion": f"{group}/v1", "kind": kind}
    (problem,) = parsed(template, GroupKind(group, kind)).problems
    assert problem.message == f"{kind} can never be attached to a version"


def test_unknown_field_is_refused_and_never_rendered() -> None:
    found = parsed(changed(bases()["poddisruptionbudget"], {"spec.maxUnavailible": 2, "status": {}}))
    (unknown,) = found.unknown_fields
    assert unknown.path == "spec.template.spec.maxUnavailible"
    assert unknown.message.endswith("did you mean maxUnavailable?")
    assert template_of(found) == bases()["poddisruptionbudget"]


def test_nulls_are_absent_but_for_those_that_ask_to_be_filled_in() -> None:
    nulls = {
        "spec.scaleTargetRef": None,
        "spec.cooldownPeriod": None,
        "spec.triggers[0].metadata.workerDeploymentBuildId": None,
        "spec.triggers[0].metadata.activationTargetQueueSize": None,
    }
    spec = template_of(parsed(changed(bases()["scaledobject"], nulls)))["spec"]
    assert spec["scaleTargetRef"] == {}
    assert "cooldownPeriod" not in spec
    assert spec["triggers"] == bases()["scaledobject"]["spec"]["triggers"]


def test_placeholders_are_checked_as_what_they_are_replaced_by() -> None:
    name = {"metadata.labels.version": "v-{{ .BuildID }}", "metadata.labels.of": "{{.TemporalNamespace}}"}
    assert strictly(changed(bases()["horizontalpodautoscaler"], name)) == []
    blank = {"metadata.labels.version": "{{ .BuildID }} of pay"}
    assert len(strictly(changed(bases()["horizontalpodautoscaler"], blank))) == 1


def test_build_id_that_does_not_fit_where_a_template_asks_for_it_is_refused() -> None:
    template = changed(bases()["poddisruptionbudget"], {"metadata.labels": {"version": "v-{{ .BuildID }}"}})
    values = documents(template)
    values[1]["spec"]["workerOptions"]["unsafeCustomBuildID"] = "b" * 62
    read = [Document("specs.yaml", index, value) for index, value in enumerate(values)]
    (refused,) = parse_specs(read, NamespaceRule("shop")).unknown_fields
    assert refused.document.index == 1
    assert refused.message == (
        "pay cannot be attached: its spec.template.metadata.labels.version is longer than 63 characters"
    )


@pytest.mark.parametrize("field", ["namespace", "workerDeploymentName", "workerDeploymentBuildId", "buildId"])
@pytest.mark.parametrize("value", ["fixed", "{{ .DeploymentName }}", ["a"], 5])
def test_fixed_worker_in_a_temporal_trigger_is_refused(field: str, value: Any) -> None:
    assert (
        f"spec.template.spec.triggers[0].metadata.{field}: is of each version"
        in refusals(scaled(**{field: value}))[0]
    )


@pytest.mark.parametrize("value", ["", None])
def test_empty_worker_in_a_temporal_trigger_is_filled_in(value: str | None) -> None:
    assert strictly(scaled(namespace=value, workerDeploymentName=value)) == []


def test_temporal_trigger_may_name_what_is_replaced() -> None:
    names = {"namespace": "{{ .TemporalNamespace }}", "workerDeploymentBuildId": "{{.BuildID}}"}
    assert strictly(scaled(**names)) == []


def test_namespace_of_another_trigger_is_its_own() -> None:
    other = {"spec.triggers[0].type": "kubernetes-workload", "spec.triggers[0].metadata.namespace": "fixed"}
    assert strictly(changed(bases()["scaledobject"], other)) == []


@pytest.mark.parametrize("selector", [None, {}])
def test_budget_that_selects_none_or_all_pods_is_warned_of(selector: object) -> None:
    (doubt,) = strictly(changed(bases()["poddisruptionbudget"], {"spec.selector": selector}))
    assert "matchLabels: {}" in doubt


def test_unknown_fields_are_never_rendered_however_many_are_told() -> None:
    base = bases()["poddisruptionbudget"]
    many: dict[str, Any] = {"spec": base["spec"] | {f"u{number}": {"a": 1} for number in range(3000)}}
    found = parsed(base | many)
    assert template_of(found) == base
    assert len(found.unknown_fields) == MOST_TOLD + 1
    assert found.unknown_fields[-1].message == "and more from here on: only the first 100 are told"


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
    said = (
        "scales Deployment payments, which is no version of worker shop/payments: make it a WorkerResourceT"
    )
    [warning] = warned(scaling(*scaler, kind="Deployment", name="payments"))
    assert warning.startswith(f"spec.{scaler[2]}.name: {said}")


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


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"spec.minReplicaCount": 0}, "minReplicaCount"),
        ({"spec.minReplicaCount": None}, "minReplicaCount"),
        ({"spec.idleReplicaCount": 0}, "idleReplicaCount"),
        ({"spec.minReplicaCount": 2}, ""),
    ],
)
def test_scaled_object_that_rests_at_zero_is_warned_of(changes: dict[str, Any], path: str) -> None:
    warnings = [
        item for item in parsed(changed(bases()["scaledobject"], changes)).warnings if "pods" in item.message
    ]
    assert [item.path for item in warnings] == ([f"spec.template.spec.{path}"] if path else [])
