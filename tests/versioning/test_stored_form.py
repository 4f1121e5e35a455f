from copy import deepcopy
from typing import Any

import pytest

from twgen.model.problem import Finding
from twgen.versioning.stored_form import Stored, stored_template


def _stored(container: dict[str, Any]) -> Stored:
    return stored_template({"spec": {"containers": [{"name": "w", **container}]}}, "spec.template")


def _container(fields: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = _stored(fields).value["spec"]["containers"][0]
    return container


def _problems(container: dict[str, Any]) -> list[tuple[str, str]]:
    prefix = "spec.template.spec.containers[0]."
    return [(each.path.removeprefix(prefix), each.message) for each in _stored(container).problems]


def test_default_is_set_where_its_parent_is_present() -> None:
    assert _container({"ports": [{"containerPort": 1}]})["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert _container({}) == {"name": "w"}


def test_null_becomes_the_default_or_goes() -> None:
    port = {"containerPort": 1, "protocol": None, "name": None}
    assert _container({"ports": [port]})["ports"] == [{"containerPort": 1, "protocol": "TCP"}]


def test_null_in_a_map_goes_and_in_a_list_is_refused() -> None:
    stored = stored_template({"metadata": {"labels": {"a": None, "b": "c"}}}, "spec.template")
    assert stored == Stored({"metadata": {"labels": {"b": "c"}}}, (), ())
    assert _problems({"args": ["a", None]}) == [("args[1]", "must be a string, not null")]


def test_unknown_fields_go_and_are_reported() -> None:
    stored = _stored({"imagee": "hello", "x/y": {"z": 1}})
    assert stored.value == {"spec": {"containers": [{"name": "w"}]}}
    container, wrong = "spec.template.spec.containers[0]", "is not a field of a pod template"
    assert stored.unknown == (
        Finding(f"{container}.imagee", f"{wrong}; did you mean image?", instead_of=f"{container}.image"),
        Finding(f"{container}.x/y", wrong),
    )


def test_empty_time_that_kubectl_writes_into_templates_is_no_mistake() -> None:
    stored = stored_template({"metadata": {"creationTimestamp": None, "name": "n"}}, "spec.template")
    assert stored == Stored({"metadata": {"name": "n"}}, (), ())


def test_metadata_that_an_api_server_sets_is_not_kept() -> None:
    metadata = {"name": "n", "creationTimestamp": "2026-11-21T12:00:00Z", "uid": "u"}
    stored = stored_template({"metadata": metadata}, "spec.template")
    assert stored.value == {"metadata": {"name": "n"}}
    assert [each.path for each in stored.unknown] == [
        "spec.template.metadata.creationTimestamp",
        "spec.template.metadata.uid",
    ]


def test_all_problems_are_reported_at_once() -> None:
    container = {
        "env": [{"name": "A", "value": 5}, {"value": "x"}],
        "ports": [{"containerPort": "80"}, {"containerPort": 2**31}, {"containerPort": 80.5}],
        "resources": {"limits": {"cpu": "1K", "example.com/gpu": True}},
        "tty": "yes",
        "command": "run",
        "securityContext": [],
    }
    assert _problems(container) == [
        ("env[0].value", "must be a string, not a whole number; put it in quotes"),
        ("env[1].name", "is required"),
        ("ports[0].containerPort", "must be a whole number, not a string; remove the quotes"),
        ("ports[1].containerPort", "must be from -2147483648 to 2147483647"),
        ("ports[2].containerPort", "must be a whole number, not a fraction"),
        ("resources.limits.cpu", 'must be a quantity, such as 500m, 1.5 or 2Gi, not "1K"'),
        (
            "resources.limits['example.com/gpu']",
            "must be a quantity, such as 500m, 1.5 or 2Gi, not true or false",
        ),
        ("tty", "must be true or false, not a string"),
        ("command", "must be a list, not a string"),
        ("securityContext", "must be a mapping, not a list"),
    ]


def test_missing_containers_are_a_problem() -> None:
    assert stored_template({"spec": {}}, "t").problems == (Finding("t.spec.containers", "is required"),)


@pytest.mark.parametrize("template", [None, [], "x", 5])
def test_template_that_is_no_map_is_a_problem(template: object) -> None:
    stored = stored_template(template, "spec.template")
    assert stored.value == {}
    assert [each.path for each in stored.problems] == ["spec.template"]


def test_whole_number_written_as_a_fraction_is_a_whole_number() -> None:
    port = _container({"ports": [{"containerPort": 80.0}]})["ports"][0]["containerPort"]
    assert (port, type(port)) == (80, int)


@pytest.mark.parametrize("number", [1e18, 2**63, True, "1"])
def test_what_is_no_int64_is_refused(number: object) -> None:
    assert len(_problems({"securityContext": {"runAsUser": number}})) == 1


@pytest.mark.parametrize("quantity", [1, 0.25, "1", "500m", 10**30])
def test_quantity_may_be_a_number(quantity: object) -> None:
    assert _container({"resources": {"limits": {"cpu": quantity}}})["resources"]["limits"]["cpu"] == quantity


@pytest.mark.parametrize("quantity", ["", " 1", "k", "-", ".", float("inf"), 10**400])
def test_quantity_needs_digits(quantity: object) -> None:
    assert len(_problems({"resources": {"limits": {"cpu": quantity}}})) == 1


def test_port_may_be_a_number_or_a_name() -> None:
    for port in (8080, "metrics"):
        probe = {"httpGet": {"port": port}}
        assert _container({"livenessProbe": probe})["livenessProbe"] == probe
    assert _problems({"livenessProbe": {"httpGet": {"port": True}}}) == [
        ("livenessProbe.httpGet.port", "must be a whole number or a string, not true or false")
    ]


def test_half_of_a_surrogate_pair_becomes_the_replacement_character() -> None:
    assert _container({"args": ["\ud83d", "\ud83d\ude00", "é\udc00z"]})["args"] == [
        "\ufffd",
        "\U0001f600",
        "é\ufffdz",
    ]


def test_template_itself_is_not_changed() -> None:
    template = {"spec": {"containers": [{"name": "w", "ports": [{"containerPort": 1.0}], "x": None}]}}
    before = deepcopy(template)
    stored_template(template, "spec.template")
    assert template == before
