"""A version that takes a ConfigMap under a hash that the render no longer has is warned of."""

from typing import Any

import pytest

from tests.planning.versions.test_edited_by_hand import SPEC, live, plan
from twgen.planning.versions.references import ObjectName, with_lost_references

OLD, NEW = "settings-hf678c7m2b", "settings-47668c6k28"
CONTAINER: dict[str, Any] = {"envFrom": [{"configMapRef": {"name": OLD}}]}


def warned(change: Any, *rendered: ObjectName, field: str = "containers") -> list[str]:
    """The warnings about v1, whose pods have the change."""
    old = live("v1")
    pod = old["spec"]["template"]["spec"]
    if field == "containers":
        pod["containers"][0] |= {**change, "env": [*pod["containers"][0]["env"], *change.get("env", ())]}
    else:
        pod[field] = change
    del old["spec"]["template"]["metadata"]["annotations"]["temporal.io/pod-template-spec-hash"]
    [worker] = with_lost_references([plan([old, live("v3")]).versions], rendered)
    return [text for text in worker.warnings if " uses " in text]


def config_map(name: str, namespace: str = SPEC.namespace) -> ObjectName:
    return ObjectName("ConfigMap", namespace, name)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("containers", CONTAINER),
        ("containers", {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": OLD, "key": "a"}}}]}),
        ("initContainers", [{"name": "i", "image": "i:1", **CONTAINER}]),
        ("volumes", [{"name": "v", "configMap": {"name": OLD}}]),
        ("volumes", [{"name": "v", "projected": {"sources": [{"configMap": {"name": OLD}}]}}]),
    ],
)
def test_version_that_takes_what_is_rendered_under_another_hash_is_warned_of(field: str, change: Any) -> None:
    [warning] = warned(change, config_map(NEW), field=field)
    assert warning.startswith(f"v1 uses ConfigMap {OLD}, but the render has {NEW} instead. ")


def test_secret_of_a_volume_is_told_by_its_own_field() -> None:
    volume = [{"name": "v", "secret": {"secretName": OLD}}]
    [warning] = warned(volume, ObjectName("Secret", SPEC.namespace, NEW), field="volumes")
    assert warning.startswith(f"v1 uses Secret {OLD}")


@pytest.mark.parametrize(
    "rendered",
    [
        [],  # somebody else has it
        [config_map(OLD), config_map(NEW)],
        [config_map(NEW, "elsewhere")],
        [config_map("other-47668c6k28")],
        [config_map("settings")],
        [ObjectName("Secret", SPEC.namespace, NEW)],
    ],
)
def test_version_whose_objects_are_not_replaced_by_the_render_is_not_warned_of(
    rendered: list[ObjectName],
) -> None:
    assert warned(CONTAINER, *rendered) == []
