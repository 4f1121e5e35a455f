"""What may be attached to a version, and what twgen makes of what it will fill in."""

from typing import Any

import pytest

from tests.refused import bases, changed, documents, refusals, strictly
from twgen.model.operator import NEVER_ATTACHED, GroupKind
from twgen.model.problem import MOST_REPORTED, Document
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule

MONITOR = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "spec": {"anything": [1]}}


def parsed(template: dict[str, Any], *more: GroupKind) -> Specs:
    read = [Document("specs.yaml", index, value) for index, value in enumerate(documents(template))]
    return parse_specs(read, NamespaceRule("shop"), more)


def template_of(specs: Specs) -> Any:
    assert specs.problems == ()
    return specs.workers[0].attached[0].template


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


@pytest.mark.parametrize(("inner", "scales"), [({"scaleTargetRef": {}}, True), ({"targetRef": {}}, False)])
def test_what_an_operator_allows_sets_the_replicas_where_it_has_the_target_of_an_autoscaler(
    inner: dict[str, Any], *, scales: bool
) -> None:
    kind = GroupKind("datadoghq.com", "WatermarkPodAutoscaler")
    template = {"apiVersion": "datadoghq.com/v1alpha1", "kind": kind.kind, "spec": inner}
    [attached] = parsed(template, kind).workers[0].attached
    assert attached.autoscales is scales


@pytest.mark.parametrize("items", [[{"apiVersion": "v1", "kind": "Secret"}], [], {}, None])
def test_object_that_others_take_for_a_list_is_not_attached(items: object) -> None:
    (problem,) = parsed(
        {**MONITOR, "items": items}, GroupKind("monitoring.coreos.com", "PodMonitor")
    ).problems
    assert (problem.path, problem.message) == (
        "spec.template.items",
        "makes kubectl and Argo CD treat this object as a List: remove items",
    )


@pytest.mark.parametrize("kind", sorted(NEVER_ATTACHED))
@pytest.mark.parametrize("group", ["apps", "batch", "rbac.authorization.k8s.io", "example.com"])
def test_no_operator_can_allow_what_runs_pods_or_grants_rights(group: str, kind: str) -> None:
    template = {"apiVersion": f"{group}/v1", "kind": kind}
    (problem,) = parsed(template, GroupKind(group, kind)).problems
    assert problem.message == f"{kind} can never be attached to a version"


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("v1", "Namespace"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("keda.sh/v1alpha1", "ClusterTriggerAuthentication"),
    ],
)
def test_kind_without_a_namespace_is_refused_also_where_the_operator_allows_it(api: str, kind: str) -> None:
    template = {"apiVersion": api, "kind": kind}
    (problem,) = parsed(template, GroupKind.of(template)).problems
    assert problem.path == "spec.template.kind"
    assert problem.message == (
        f"{GroupKind.of(template)} is cluster-scoped, but a version's copy must be"
        " namespaced: keep it next to the specs, as a plain manifest"
    )


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


@pytest.mark.parametrize(
    "text",
    ["x{{ .Build }}", "{{ temporal_worker_build_id }}", "{{.temporal_namespace}}", "{{temporal_build_id}}"],
)
def test_placeholder_that_nothing_fills_in_is_refused(text: str) -> None:
    (refused,) = strictly(changed(bases()["horizontalpodautoscaler"], {"metadata.annotations": {"x": text}}))
    assert refused.startswith("spec.template.metadata.annotations.x: only {{ .DeploymentName }}, {{ .Build")


@pytest.mark.parametrize("key", ["{{temporal_worker_build_id}}", "of-{{ .BuildID }}", "{{ .Values.key }}"])
def test_placeholder_in_a_key_is_refused(key: str) -> None:
    (refused,) = refusals(changed(bases()["scaledobject"], {"metadata.annotations": {key: "x"}}))
    assert refused.endswith("has a placeholder in its key: placeholders are only allowed in values")


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


@pytest.mark.parametrize("selector", [None, {}])
def test_budget_that_selects_none_or_all_pods_is_warned_of(selector: object) -> None:
    (warning,) = strictly(changed(bases()["poddisruptionbudget"], {"spec.selector": selector}))
    assert "matchLabels: {}" in warning


def warnings(kind: str, changes: dict[str, Any]) -> list[str]:
    found = parsed(changed(bases()[kind], changes))
    assert (found.problems, found.unknown_fields) == ((), ())
    return [f"{item.path}: {item.message}" for item in found.warnings]


def test_metric_of_an_object_that_is_the_same_for_every_version_is_warned_of() -> None:
    (warning,) = warnings("horizontalpodautoscaler", {"spec.metrics[3].object.metric.name": "requests"})
    assert warning.startswith("spec.template.spec.metrics[3].object: does not select a version")


def test_metric_whose_name_differs_only_by_temporal_namespace_is_that_of_all_versions() -> None:
    metric = {"name": "backlog-{{ .TemporalNamespace }}"}
    (warning,) = warnings("horizontalpodautoscaler", {"spec.metrics[1].external.metric": metric})
    assert warning.startswith("spec.template.spec.metrics[1].external.metric.selector: is missing")


EXPRESSION = {"key": "app", "operator": "NotIn", "values": ["web"]}


def test_budget_that_selects_by_expressions_alone_is_the_same_for_every_version() -> None:
    selector = {"spec.selector": {"matchExpressions": [EXPRESSION]}}
    (warning,) = warnings("poddisruptionbudget", selector)
    assert warning == (
        "spec.template.spec.selector: selects the same pods for every version, and a pod with"
        " two budgets cannot be evicted: write matchLabels: {} next to matchExpressions"
    )


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {}, "matchExpressions": [EXPRESSION]},
        {"matchExpressions": [{**EXPRESSION, "values": ["{{ .BuildID }}"]}]},
        {"matchExpressions": [{**EXPRESSION, "values": ["{{ .DeploymentName }}"]}]},
    ],
    ids=["labels", "build ID", "Deployment"],
)
def test_budget_that_selects_the_pods_of_each_version_is_in_order(selector: dict[str, Any]) -> None:
    assert warnings("poddisruptionbudget", {"spec.selector": selector}) == []


def test_budget_that_says_the_same_of_each_namespace_is_the_same_for_every_version() -> None:
    selector = {"matchExpressions": [{**EXPRESSION, "values": ["{{ .TemporalNamespace }}"]}]}
    assert len(warnings("poddisruptionbudget", {"spec.selector": selector})) == 1


def test_share_of_a_budget_may_have_more_digits_than_anybody_can_count() -> None:
    changes = {"spec.maxUnavailable": "9" * 5000 + "%"}
    (wrong,) = parsed(changed(bases()["poddisruptionbudget"], changes)).unknown_fields
    assert wrong.message.endswith(" is above 100%")


@pytest.mark.parametrize("limit", ["(removed)", None])
def test_budget_without_a_limit_protects_no_pods(limit: str | None) -> None:
    assert warnings("poddisruptionbudget", {"spec.maxUnavailable": limit}) == [
        "spec.template.spec: protects no pods: write minAvailable or maxUnavailable"
    ]


def test_misspelt_limit_of_a_budget_is_told_once() -> None:
    limits = {"spec.maxUnavailable": "(removed)", "spec.maxUnavailible": 1}
    (told,) = strictly(changed(bases()["poddisruptionbudget"], limits))
    assert told.endswith("did you mean maxUnavailable?")


@pytest.mark.parametrize("selector", [None, {}])
def test_selector_of_a_metric_that_is_not_filled_in_is_warned_of(selector: object) -> None:
    metric = {"name": "backlog", "selector": selector}
    source = {"metric": metric, "target": {"type": "Value", "value": "1"}}
    metrics = {"spec.metrics": [{"type": "External", "external": source}]}
    (warning,) = warnings("horizontalpodautoscaler", metrics)
    assert warning.startswith("spec.template.spec.metrics[0].external.metric.selector: is not filled in")


def test_external_metric_without_a_selector_is_warned_of() -> None:
    source = {"metric": {"name": "backlog"}, "target": {"type": "Value", "value": "1"}}
    metrics = {"spec.metrics": [{"type": "External", "external": source}]}
    [warning] = warnings("horizontalpodautoscaler", metrics)
    assert warning == (
        "spec.template.spec.metrics[0].external.metric.selector: is missing, so each version scales on the"
        " total of all versions: write {matchLabels: {}} to measure each version separately"
    )


@pytest.mark.parametrize(
    "metric",
    [
        {"name": "backlog", "selector": {"matchExpressions": [EXPRESSION]}},
        {"name": "backlog", "selector": {"matchLabels": {"queue": "payments"}}},
        {"name": "backlog_of_{{ .BuildID }}"},
    ],
)
def test_metric_that_is_chosen_by_its_author_is_not(metric: dict[str, Any]) -> None:
    source = {"metric": metric, "target": {"type": "Value", "value": "1"}}
    assert (
        warnings("horizontalpodautoscaler", {"spec.metrics": [{"type": "External", "external": source}]})
        == []
    )


@pytest.mark.parametrize("kind", [name for name in bases() if name != "pods"])
@pytest.mark.parametrize(
    ("field", "mark"),
    [
        ("labels", "temporal.io/deployment-name"),
        ("labels", "temporal.io/build-id"),
        ("labels", "twgen.io/rollout"),
        ("annotations", "argocd.argoproj.io/sync-options"),
        ("annotations", "argocd.argoproj.io/compare-options"),
        ("annotations", "twgen.io/identity"),
    ],
)
def test_marks_that_each_version_has_of_its_own_are_refused(kind: str, field: str, mark: str) -> None:
    (refused,) = refusals(changed(bases()[kind], {f"metadata.{field}": {mark: "mine"}}))
    assert refused == f"spec.template.metadata.{field}['{mark}']: is set for each version: remove it"


def test_owners_of_a_template_are_refused() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
    (refused,) = refusals(changed(bases()["poddisruptionbudget"], {"metadata.ownerReferences": [owner]}))
    assert refused == "spec.template.metadata.ownerReferences: is generated for each version: remove it"


def test_marks_of_others_stay() -> None:
    marks = {
        "metadata.labels": {"app.kubernetes.io/managed-by": "Helm", "temporal.io/team": "payments"},
        "metadata.annotations": {"argocd.argoproj.io/sync-wave": "3", "autoscaling.keda.sh/paused": "true"},
    }
    assert strictly(changed(bases()["scaledobject"], marks)) == []


def test_unknown_fields_are_never_rendered_however_many_are_told() -> None:
    base = bases()["poddisruptionbudget"]
    many: dict[str, Any] = {"spec": base["spec"] | {f"u{number}": {"a": 1} for number in range(3000)}}
    found = parsed(base | many)
    assert template_of(found) == base
    assert len(found.unknown_fields) == MOST_REPORTED + 1
    assert found.unknown_fields[-1].message == "there are more: only the first 100 are shown"


def policy(selector: Any) -> dict[str, Any]:
    """A NetworkPolicy for the pods of the selector."""
    spec = {"podSelector": selector, "ingress": [{"from": [{"podSelector": {}}]}]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}


POLICIES = GroupKind("networking.k8s.io", "NetworkPolicy")


@pytest.mark.parametrize("labels", [None, {}])
def test_labels_that_are_not_filled_in_are_warned_of_with_their_path(labels: Any) -> None:
    (warning,) = parsed(policy({"matchLabels": labels}), POLICIES).warnings
    assert warning.path == "spec.template.spec.podSelector.matchLabels"
    assert "each version's copy selects everything" in warning.message
    of_pods = {"type": "Pods", "pods": {"metric": {"name": "a", "selector": {"matchLabels": labels}}}}
    target = {"target": {"type": "AverageValue", "averageValue": "1"}}
    of_pods["pods"] |= target  # type: ignore[operator]
    scaler = changed(bases()["horizontalpodautoscaler"], {"spec.metrics": [of_pods]})
    (warning,) = parsed(scaler).warnings
    assert warning.path == "spec.template.spec.metrics[0].pods.metric.selector.matchLabels"


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": {"temporal.io/build-id": "{{ .BuildID }}"}},
        {"matchLabels": {}, "matchExpressions": [{"key": "app", "operator": "Exists"}]},
    ],
)
def test_selector_that_says_what_it_selects_is_not_warned_of(selector: Any) -> None:
    assert parsed(policy(selector), POLICIES).warnings == ()


@pytest.mark.parametrize("labels", [None, {}])
def test_labels_that_are_filled_in_are_not_warned_of(labels: Any) -> None:
    budget = changed(bases()["poddisruptionbudget"], {"spec.selector": {"matchLabels": labels}})
    assert parsed(budget).warnings == ()
    metric = {"name": "backlog", "selector": {"matchLabels": labels}}
    external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}
    metrics = [{"type": "External", "external": external}]
    scaler = changed(bases()["horizontalpodautoscaler"], {"spec.metrics": metrics})
    assert parsed(scaler).warnings == ()
