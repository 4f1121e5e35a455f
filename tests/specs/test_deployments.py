"""What a spec says of its Deployments in `deployment`, as controllers from 1.13 on read it."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.spec import WorkerSpec
from twgen.specs.parse import Specs

ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
TEMPLATE = worker()["spec"]["template"]


def moved(**deployment: Any) -> dict[str, Any]:
    """A worker whose template stands in `deployment`, with more beside it there."""
    value = worker()
    value["spec"]["deployment"] = {"template": value["spec"].pop("template"), **deployment}
    return value


def strategy(**fields: Any) -> Specs:
    return parsed(moved(strategy=fields), CONNECTION)


def spec(found: Specs) -> WorkerSpec:
    assert found.problems == found.unknown_fields == ()
    return found.workers[0]


def test_template_and_numbers_mean_the_same_in_deployment_and_beside_it() -> None:
    numbers = {"replicas": 3, "minReadySeconds": 5, "progressDeadlineSeconds": 60}
    found, beside = (parsed(value, CONNECTION) for value in (moved(**numbers), worker(**numbers)))
    assert spec(found).pace == {**spec(beside).pace, "strategy": ROLLING}
    assert replace(spec(found), pace=spec(beside).pace) == spec(beside)
    assert (spec(found).build_id, spec(found).template) == (spec(beside).build_id, spec(beside).template)
    assert found.warnings == found.deprecations == ()


def test_strategy_and_history_are_of_no_version() -> None:
    plain = spec(parsed(worker(), CONNECTION))
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "0%"}}
    found = spec(parsed(moved(strategy=rolling, revisionHistoryLimit=2), CONNECTION))
    assert (found.build_id, found.template) == (plain.build_id, plain.template)
    assert found.pace == {"progressDeadlineSeconds": 600, "strategy": rolling, "revisionHistoryLimit": 2}


@pytest.mark.parametrize("inside", [TEMPLATE, {"spec": {"containers": []}}])
def test_template_in_both_places_is_an_error_that_names_both_also_where_they_are_equal(inside: Any) -> None:
    value = moved(template=inside)
    value["spec"]["template"] = deepcopy(TEMPLATE)
    [problem] = parsed(value, CONNECTION).problems
    assert problem.path == "spec.deployment.template"
    assert problem.message == "means the same as spec.template, which is set too: keep one; the other is at"
    assert problem.other
    assert problem.other.path == "spec.template"


@pytest.mark.parametrize(
    ("field", "beside", "inside"),
    [("replicas", 3, 4), ("minReadySeconds", 1, 2), ("progressDeadlineSeconds", 60, 61)],
)
def test_number_in_deployment_goes_before_the_older_one_with_a_warning_that_names_both(
    field: str, beside: int, inside: int
) -> None:
    value = moved(**{field: inside})
    value["spec"][field] = beside
    found = parsed(value, CONNECTION)
    assert spec(found) == spec(parsed(moved(**{field: inside}), CONNECTION))
    [warning] = found.warnings
    assert warning.path == f"spec.deployment.{field}"
    assert warning.message == f"overrides spec.{field}: remove that field, at"
    assert warning.other
    assert warning.other.path == f"spec.{field}"


@pytest.mark.parametrize(
    ("field", "beside"), [("replicas", 3), ("minReadySeconds", 1), ("progressDeadlineSeconds", 60)]
)
def test_older_number_has_no_effect_also_where_deployment_says_none(field: str, beside: int) -> None:
    value = moved()
    value["spec"][field] = beside
    found = parsed(value, CONNECTION)
    assert spec(found) == spec(parsed(moved(), CONNECTION))
    said = f"spec.{field}: has no effect if spec.deployment is set: write spec.deployment.{field}"
    assert told(found.warnings) == [said]


@pytest.mark.parametrize(
    ("field", "default", "inside"), [("minReadySeconds", 0, 10), ("progressDeadlineSeconds", 600, 60)]
)
def test_default_that_a_stored_object_has_beside_is_nobodys_word(
    field: str, default: int, inside: int
) -> None:
    stored, written = moved(**{field: inside}), moved(**{field: inside})
    stored["spec"][field] = default
    assert spec(parsed(stored, CONNECTION)).pace == spec(parsed(written, CONNECTION)).pace
    assert spec(parsed(stored, CONNECTION)).pace[field] == inside


def test_older_number_that_says_the_same_is_fine() -> None:
    numbers = {"replicas": 3, "minReadySeconds": 5, "progressDeadlineSeconds": 60}
    value = moved(**numbers)
    value["spec"] |= numbers
    found = parsed(value, CONNECTION)
    assert (found.warnings, spec(found).replicas) == ((), 3)


def test_one_and_true_are_not_equal() -> None:
    value = moved(replicas=1)
    value["spec"]["replicas"] = True
    assert [problem.path for problem in parsed(value, CONNECTION).warnings] == ["spec.deployment.replicas"]


def test_what_is_wrong_in_deployment_is_told_where_it_stands() -> None:
    value = moved(replicas=-1, minReadySeconds="5", progressDeadlineSeconds=0)
    value["spec"]["deployment"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": 1}]
    paths = {problem.path for problem in parsed(value, CONNECTION).problems}
    assert paths == {
        "spec.deployment.replicas",
        "spec.deployment.minReadySeconds",
        "spec.deployment.progressDeadlineSeconds",
        "spec.deployment.template.spec.containers[0].env[0].value",
    }


def test_pods_that_are_never_ready_in_time_are_told_by_the_field_that_is_there() -> None:
    [problem] = told(parsed(moved(minReadySeconds=600), CONNECTION).problems)
    assert problem == "spec.deployment.minReadySeconds: 600 is not below progressDeadlineSeconds (600)"


def test_hook_in_a_template_is_told_where_that_stands() -> None:
    value = moved()
    value["spec"]["deployment"]["template"]["metadata"] = {"annotations": {"helm.sh/hook": "pre-install"}}
    [problem] = parsed(value, CONNECTION).problems
    assert problem.path == "spec.deployment.template.metadata.annotations['helm.sh/hook']"


def test_deployment_without_a_template_is_told_so_there() -> None:
    value = moved()
    del value["spec"]["deployment"]["template"]
    value["spec"]["deployment"]["replicas"] = 1
    assert told(parsed(value, CONNECTION).problems) == ["spec.deployment.template: is required"]


def test_deployment_of_another_type_is_told_once() -> None:
    value = moved()
    value["spec"]["deployment"] = True
    [problem] = told(parsed(value, CONNECTION).problems)
    assert problem == "spec.deployment: must be a mapping, not true or false"


@pytest.mark.parametrize(
    ("rolling", "problem"),
    [
        ({"maxSurge": 0, "maxUnavailable": "0%"}, "maxUnavailable: must not be 0 if maxSurge is 0"),
        ({"maxSurge": 0, "maxUnavailable": "00%"}, "maxUnavailable: must not be 0 if maxSurge is 0"),
        ({"maxUnavailable": "101%"}, "maxUnavailable: 101% is more than 100%"),
        ({"maxSurge": "25"}, "maxSurge: '25' is not a percentage, such as 25%"),
        ({"maxSurge": -1}, "maxSurge: must be from 0 to 2147483647"),
        ({"maxSurge": 0.5}, "maxSurge: must be a whole number or a percentage, not a fraction"),
        ({"maxSurge": [0], "maxUnavailable": [0]}, "maxSurge: must be a whole number or a percentage, not a"),
    ],
)
def test_numbers_of_a_rolling_update_that_a_server_refuses_are_refused(
    rolling: dict[str, Any], problem: str
) -> None:
    found = told(strategy(type="RollingUpdate", rollingUpdate=rolling).problems)
    assert found[0].startswith(f"spec.deployment.strategy.rollingUpdate.{problem}")


def test_type_that_no_server_has_or_that_takes_no_numbers_is_refused() -> None:
    [unknown] = told(strategy(type="Rolling").problems)
    assert "type: 'Rolling' is not one of RollingUpdate, Recreate; did you mean" in unknown
    [numbers] = told(strategy(type="Recreate", rollingUpdate={"maxSurge": 1}).problems)
    assert "rollingUpdate: belongs to type RollingUpdate: remove it" in numbers


def test_percentage_above_all_of_them_is_a_surge_all_the_same() -> None:
    assert spec(strategy(type="RollingUpdate", rollingUpdate={"maxSurge": "200%"})).pace["strategy"]


def test_strategy_without_its_type_is_taken_and_warned_of() -> None:
    found = strategy(rollingUpdate={"maxSurge": 1})
    assert spec(found).pace["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"},
    }
    assert [problem.path for problem in found.warnings] == ["spec.deployment.strategy"]


def test_type_alone_says_the_usual_numbers() -> None:
    """Left out, they would be whatever another manager set."""
    assert spec(strategy(type="RollingUpdate")).pace["strategy"] == ROLLING
    assert spec(strategy(type="Recreate")).pace["strategy"] == {"type": "Recreate"}


def test_selector_of_a_deployment_that_was_copied_is_warned_of() -> None:
    found = parsed(moved(selector={"matchLabels": {"app": "payments"}}), CONNECTION)
    assert told(found.warnings) == [
        "spec.deployment.selector: has no effect: each version selects its own pods"
    ]
    assert spec(found)


def test_paused_deployment_is_refused() -> None:
    [problem] = told(parsed(moved(paused=True), CONNECTION).problems)
    assert problem.startswith("spec.deployment.paused: if its Deployment is paused, a new version")
    assert spec(parsed(moved(paused=False), CONNECTION))


def test_misspelt_field_of_a_deployment_is_told_which_one_is_meant() -> None:
    [problem] = told(parsed(moved(replica=3), CONNECTION).unknown_fields)
    assert problem == "spec.deployment.replica: no such field; did you mean replicas?"


@pytest.mark.parametrize("field", ["metadata", "labels", "annotations"])
def test_labels_in_a_deployment_say_where_they_belong(field: str) -> None:
    [problem] = told(parsed(moved(**{field: {"team": "a"}}), CONNECTION).problems)
    assert problem.startswith(f"spec.deployment.{field}: is not read: ")
    assert problem.endswith("set deploymentLabels and deploymentAnnotations in a RolloutPolicy")


def test_labels_and_annotations_of_a_policy_are_of_no_version() -> None:
    plain = spec(parsed(worker(), CONNECTION))
    marks = {"deploymentLabels": {"team": "a"}, "deploymentAnnotations": {"example.com/owner": "b"}}
    found = spec(parsed(worker(), CONNECTION, policy(**marks)))
    assert (found.policy.deployment_labels, found.policy.deployment_annotations) == tuple(marks.values())
    assert found.build_id == plain.build_id


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("deploymentLabels", "temporal.io/build-id"),
        ("deploymentLabels", "app.kubernetes.io/managed-by"),
        ("deploymentLabels", "app.kubernetes.io/instance"),
        ("deploymentAnnotations", "argocd.argoproj.io/sync-options"),
        ("deploymentAnnotations", "argocd.argoproj.io/hook"),
        ("deploymentAnnotations", "twgen.io/injected"),
        ("deploymentAnnotations", "helm.sh/hook"),
        ("deploymentAnnotations", "deployment.kubernetes.io/revision"),
        ("deploymentAnnotations", "kubectl.kubernetes.io/last-applied-configuration"),
    ],
)
def test_mark_that_says_what_becomes_of_a_version_is_refused(field: str, name: str) -> None:
    found = parsed(worker(), CONNECTION, policy(**{field: {name: "x"}}))
    assert told(found.problems) == [f"spec.{field}['{name}']: is set by twgen or Argo CD: remove it"]


def test_label_that_no_server_takes_is_told() -> None:
    found = parsed(worker(), CONNECTION, policy(deploymentLabels={"team": "a b", "-x": "y", "n": 1}))
    assert told(found.problems) == [
        "spec.deploymentLabels.n: must be a string, not a whole number; put it in quotes"
    ]
    assert [problem.path for problem in found.unknown_fields] == [
        "spec.deploymentLabels.team",
        "spec.deploymentLabels.-x",
    ]
