"""What KEDA would refuse or ignore is told before it is deployed."""

from typing import Any

import pytest

from tests.refused import bases, changed, documents, refusals, strictly
from twgen.model.operator import GroupKind
from twgen.model.problem import Document
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule

METADATA = "spec.triggers[0].metadata"
GONE = "(removed)"


def scaled(**metadata: Any) -> dict[str, Any]:
    """A ScaledObject whose trigger has these beside its own, or instead of them."""
    return changed(bases()["scaledobject"], {f"{METADATA}.{name}": value for name, value in metadata.items()})


@pytest.mark.parametrize("field", ["namespace", "workerDeploymentName", "workerDeploymentBuildId"])
@pytest.mark.parametrize(
    "value",
    [
        *("fixed", "build-id", "namespace", " ", ["a"], 5),
        *("{{ .DeploymentName }}", "{{temporal_worker_deployment_name}}"),
    ],
)
def test_fixed_worker_in_a_temporal_trigger_is_refused(field: str, value: Any) -> None:
    assert (
        f"spec.template.spec.triggers[0].metadata.{field}: differs for each version"
        in refusals(scaled(**{field: value}))[0]
    )


@pytest.mark.parametrize("value", ["", None])
def test_empty_worker_in_a_temporal_trigger_is_filled_in(value: str | None) -> None:
    assert strictly(scaled(namespace=value, workerDeploymentName=value)) == []


@pytest.mark.parametrize(
    ("namespace", "build_id"),
    [
        ("{{ .TemporalNamespace }}", "{{.BuildID}}"),
        ("{{temporal_namespace}}", "{{temporal_worker_build_id}}"),
    ],
)
def test_temporal_trigger_may_name_what_is_replaced(namespace: str, build_id: str) -> None:
    assert strictly(scaled(namespace=namespace, workerDeploymentBuildId=build_id)) == []


@pytest.mark.parametrize("kind", ["prometheus", "datadog", "kafka"])
@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"query": "sum(backlog)"}, ".query"),
        ({"query": 'sum(backlog{in="{{ .TemporalNamespace }}"})'}, ".query"),
        ({"query": 'sum(backlog{of="{{temporal_worker_deployment_name}}"})'}, ".query"),
        ({"lagThreshold": "5", "passwordFromEnv": "PASSWORD"}, ""),
        ({"query": 'sum(backlog{build="{{ .BuildID }}"})'}, None),
        ({"query": 'sum(backlog{build="{{temporal_worker_build_id}}"})'}, None),
        ({"podSelector": "deployment={{ .DeploymentName }}", "namespace": "fixed"}, None),
        ({"queryFromEnv": "TEMPORAL_WORKER_BUILD_ID"}, None),
    ],
)
def test_trigger_that_selects_no_version_is_warned_of(
    kind: str, metadata: dict[str, str], place: str | None
) -> None:
    told = strictly(
        changed(bases()["scaledobject"], {"spec.triggers": [{"type": kind, "metadata": metadata}]})
    )
    why = (
        "does not select a version, so each version scales on the total of all versions: filter by {{"
        " .BuildID }}"
    )
    assert told == ([] if place is None else [f"spec.template.{METADATA}{place}: {why}"])


@pytest.mark.parametrize("kind", ["cron", "external", "external-push"])
def test_trigger_without_a_total_needs_no_version(kind: str) -> None:
    trigger = {"type": kind, "metadata": {"scalerAddress": "scaler:9090"}}
    assert strictly(changed(bases()["scaledobject"], {"spec.triggers": [trigger]})) == []


@pytest.mark.parametrize("written", ["Temporal", "TEMPORAL", " temporal"])
def test_type_of_a_trigger_is_written_as_keda_knows_it(written: str) -> None:
    assert refusals(changed(bases()["scaledobject"], {"spec.triggers[0].type": written})) == [
        f"spec.template.spec.triggers[0].type: KEDA has no trigger type {written!r}: write temporal"
    ]


def test_trigger_whose_type_is_misspelt_is_still_one_of_temporal() -> None:
    told = refusals(changed(scaled(namespace="fixed"), {"spec.triggers[0].type": "Temporal"}))
    assert len(told) == 2
    assert told[0].startswith(f"spec.template.{METADATA}.namespace: differs for each version")


@pytest.mark.parametrize("field", ["endpoint", "taskQueue"])
@pytest.mark.parametrize(
    ("value", "wrong"), [(GONE, "is required"), ("", "must not be empty"), (" ", "must not be empty")]
)
def test_temporal_trigger_without_what_keda_requires_is_refused(field: str, value: str, wrong: str) -> None:
    assert refusals(scaled(**{field: value})) == [f"spec.template.{METADATA}.{field}: {wrong}"]


@pytest.mark.parametrize("field", ["endpoint", "taskQueue"])
def test_temporal_trigger_may_take_what_keda_requires_from_the_environment(field: str) -> None:
    assert strictly(scaled(**{field: GONE, f"{field}FromEnv": "TEMPORAL_ADDRESS"})) == []


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("WorkerDeploymentBuildId", "workerDeploymentBuildId"),
        ("workerDeploymentBuildID", "workerDeploymentBuildId"),
        ("workerdeploymentname", "workerDeploymentName"),
        ("Endpoint", "endpoint"),
        ("taskqueue", "taskQueue"),
        ("Namespace", "namespace"),
    ],
)
def test_field_that_keda_ignores_for_its_capitals_is_told_once(written: str, right: str) -> None:
    told = [f"spec.template.{METADATA}.{written}: KEDA has no such field; did you mean {right}?"]
    assert strictly(scaled(**{right: GONE, written: "a"})) == told
    assert strictly(scaled(**{written: "a"})) == told


@pytest.mark.parametrize(
    ("left_out", "beside"),
    [
        ("workerDeploymentName", "workerDeploymentBuildId"),
        ("workerDeploymentBuildId", "workerDeploymentName"),
    ],
)
def test_half_of_what_tells_a_version_is_refused(left_out: str, beside: str) -> None:
    assert refusals(scaled(**{left_out: GONE})) == [
        f'spec.template.{METADATA}.{left_out}: is required with {beside}: write "", which twgen fills in'
    ]


NEITHER = {"workerDeploymentName": GONE, "workerDeploymentBuildId": GONE}


@pytest.mark.parametrize("build_id", [{}, {"buildId": ""}])
def test_temporal_trigger_that_selects_no_version_is_warned_of(build_id: dict[str, str]) -> None:
    assert refusals(scaled(**NEITHER, **build_id)) == []
    (doubt,) = strictly(scaled(**NEITHER, **build_id))
    assert doubt.startswith(f"spec.template.{METADATA}: does not select a version")


def test_temporal_trigger_may_take_its_version_from_the_environment() -> None:
    version = {
        "workerDeploymentNameFromEnv": "TEMPORAL_DEPLOYMENT_NAME",
        "workerDeploymentBuildIdFromEnv": "TEMPORAL_WORKER_BUILD_ID",
    }
    assert strictly(scaled(**NEITHER, **version)) == []


@pytest.mark.parametrize(
    ("kind", "written", "told"),
    [
        ("temporal", "averageValue", "AverageValue, Value; did you mean AverageV"),
        ("temporal", "Utilization", "AverageValue, Value"),
        ("cpu", "utilization", "AverageValue, Value, Utilization; did you mean U"),
    ],
)
def test_metric_type_that_keda_does_not_know_is_refused(kind: str, written: str, told: str) -> None:
    trigger = {"spec.triggers[0].type": kind, "spec.triggers[0].metricType": written}
    trigger |= {"spec.fallback": GONE}
    (refused,) = refusals(changed(bases()["scaledobject"], trigger))
    assert refused.startswith(f"spec.template.spec.triggers[0].metricType: {written!r} is not one of {told}")


@pytest.mark.parametrize("metric_type", [None, "", "Value", "AverageValue", "Utilization"])
def test_metric_type_that_keda_knows_is_in_order(metric_type: str | None) -> None:
    trigger = {"spec.triggers[0].type": "cpu", "spec.triggers[0].metricType": metric_type}
    trigger |= {"spec.fallback": GONE}
    assert strictly(changed(bases()["scaledobject"], trigger)) == []


def test_triggers_of_other_kinds_are_not_kedas() -> None:
    values = documents(
        {"apiVersion": "example.com/v1", "kind": "Sensor", "spec": {"triggers": [{"type": "HTTP"}]}}
    )
    read = [Document("specs.yaml", index, value) for index, value in enumerate(values)]
    kinds = (GroupKind("example.com", "Sensor"),)
    found = parse_specs(read, NamespaceRule("shop"), kinds)
    assert (found.problems, found.unknown_fields, found.warnings) == ((), (), ())


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"spec.minReplicaCount": 0}, "minReplicaCount"),
        ({"spec.minReplicaCount": None}, "minReplicaCount"),
        ({"spec.minReplicaCount": 1, "spec.idleReplicaCount": 0}, "idleReplicaCount"),
        ({"spec.minReplicaCount": 2}, ""),
    ],
)
def test_scaled_object_that_rests_at_zero_is_warned_of(changes: dict[str, Any], path: str) -> None:
    told = strictly(changed(bases()["scaledobject"], changes))
    assert [line.partition(": ")[0] for line in told if "pods" in line] == (
        [f"spec.template.spec.{path}"] if path else []
    )


@pytest.mark.parametrize(("least", "idle"), [(0, 0), (1, 1), (1, 2), (None, 1)])
def test_idle_replicas_that_are_no_fewer_than_the_fewest_are_refused(least: int | None, idle: int) -> None:
    changes = {"spec.minReplicaCount": least, "spec.idleReplicaCount": idle}
    told = strictly(changed(bases()["scaledobject"], changes))
    why = (
        f"spec.template.spec.idleReplicaCount: {idle} is not below minReplicaCount ({least or 0}): remove it"
    )
    assert why in told


def test_name_that_two_triggers_have_is_refused() -> None:
    scaled = bases()["scaledobject"]
    [trigger] = scaled["spec"]["triggers"]
    told = strictly(changed(scaled, {"spec.triggers": [{**trigger, "name": "a"}, {**trigger, "name": "a"}]}))
    assert told == ["spec.template.spec.triggers[1].name: 'a' is also the name of an earlier trigger"]


@pytest.mark.parametrize("name", ["payments", "{{ .TemporalNamespace }}"])
def test_name_of_the_autoscaler_that_keda_makes_is_of_each_version(name: str) -> None:
    place = "spec.advanced.horizontalPodAutoscalerConfig.name"
    [told] = refusals(changed(bases()["scaledobject"], {place: name}))
    assert told.startswith(f"spec.template.{place}: gives the autoscalers of all versions the same name")
    for own in ("payments-{{ .BuildID }}", "{{ .DeploymentName }}"):
        assert strictly(changed(bases()["scaledobject"], {place: own})) == []


def test_replicas_that_a_pause_holds_would_be_those_of_every_version() -> None:
    marks = {"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "0"}}}
    [told] = refusals({**bases()["scaledobject"], **marks})
    assert "would keep every version at this number" in told
    paused = {"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}}
    assert strictly({**bases()["scaledobject"], **paused}) == []


MODIFIERS = "spec.advanced.scalingModifiers"
NUMBER = "write one that gives a number, such as backlog > 2 ? 1 : 0"
TRIGGER = bases()["scaledobject"]["spec"]["triggers"][0]
BUSY = {"type": "cpu", "name": "busy", "metricType": "Utilization", "metadata": {"value": "70"}}


def composed(formula: str | None, target: str | None = "5", **more: Any) -> list[str]:
    modifiers = {"formula": formula, "target": target, **more}
    values = {name: value for name, value in modifiers.items() if value is not None}
    triggers = [{**TRIGGER, "name": "backlog"}, {**TRIGGER, "name": "nexus_2"}, BUSY]
    return refusals(changed(bases()["scaledobject"], {MODIFIERS: values, "spec.triggers": triggers}))


@pytest.mark.parametrize(
    "formula",
    [
        "backlog",
        "float(backlog + nexus_2)",
        "backlog > 0 ? backlog : nexus_2 * 2",
        "count([backlog, nexus_2], {# > 1}) > 1 ? 5 : 0",
        "let most = max(backlog, nexus_2); most * 1.5e3",
        "not (backlog in [1, 2]) and 'busy' != \"(\" ? 1 : 2",
        "{busy: backlog}.busy",
        "let big = backlog > 2; backlog == nexus_2 ? 1 : 0",
        "backlog /* = busy */ + nexus_2",
        "float(backlog) // = busy",
        "if backlog >= 2 {1} else {0}",
        '"5"',
    ],
)
def test_formula_of_the_names_of_triggers_is_in_order(formula: str) -> None:
    assert composed(formula) == []


@pytest.mark.parametrize(
    ("formula", "wrong"),
    [
        (
            "backlog > 0 ? backlog : busy",
            "refers to busy, but KEDA excludes cpu and memory triggers from formulas",
        ),
        (
            "backlog > 0 ? busy : backlog",
            "refers to busy, but KEDA excludes cpu and memory triggers from formulas",
        ),
        ("bakclog", "refers to bakclog, but no trigger has this name; did you mean backlog?"),
        ("float(backlog", "has 1 ( but 0 )"),
        ("backlog = 2", f"has a single =, which compares nothing: {NUMBER}"),
        ("backlog => 2 ? 1 : 0", f"has a single =, which compares nothing: {NUMBER}"),
        ("backlog == 2", f"is true or false: {NUMBER}"),
        ("!(backlog > 2) and true", f"is true or false: {NUMBER}"),
        ("true", f"is true or false: {NUMBER}"),
        ('"abc"', f"is a text, not a formula: {NUMBER}"),
        *(
            (cut, f"begins or ends with an operator: {NUMBER}")
            for cut in ("backlog +", "* backlog", "backlog ?")
        ),
        ("'2 * backlog'", f"is a text, not a formula: {NUMBER}"),
        ("[backlog][0", "has 2 [ but 1 ]"),
        ("", "is required"),
        (None, "is required"),
    ],
)
def test_formula_that_keda_cannot_compile_is_refused(formula: str | None, wrong: str) -> None:
    assert composed(formula) == [f"spec.template.{MODIFIERS}.formula: {wrong}"]


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        (None, "is required with a formula"),
        ("", "is required with a formula"),
        ("0", "'0' is not a number above 0"),
        ("five", "'five' is not a number above 0"),
    ],
)
def test_target_that_keda_cannot_divide_by_is_refused(target: str | None, wrong: str) -> None:
    assert composed("backlog", target) == [f"spec.template.{MODIFIERS}.target: {wrong}"]


def test_fallback_needs_an_average_value() -> None:
    needs = "needs a trigger with metricType AverageValue that is neither cpu nor memory"
    for triggers in ([BUSY], [{**TRIGGER, "metricType": "Value"}, BUSY]):
        told = refusals(changed(bases()["scaledobject"], {"spec.triggers": triggers}))
        assert told == [f"spec.template.spec.fallback: {needs}"]
    assert refusals(changed(bases()["scaledobject"], {"spec.triggers": [TRIGGER, BUSY]})) == []
    instead = "must be AverageValue, because there is a fallback"
    assert composed("backlog", metricType="Value") == [f"spec.template.{MODIFIERS}.metricType: {instead}"]
