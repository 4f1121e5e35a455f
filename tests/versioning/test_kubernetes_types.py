from collections.abc import Iterator
from typing import Any

from tests.versioning.vectors import vectors
from twgen.versioning.stored_form import LIST, MAP, POD_TEMPLATE, struct_fields


def test_defaults_of_a_template_are_those_of_the_controllers_schema() -> None:
    expected = {case["path"]: case["default"] for case in vectors("crd_defaults.json")}
    in_templates = {path: default for path, default in expected.items() if path.startswith("spec.template.")}
    assert dict(_defaults("spec.template", POD_TEMPLATE)) == in_templates


def test_template_metadata_keeps_five_fields() -> None:
    names = {field.name for field in struct_fields("ObjectMeta")}
    assert names == {"annotations", "finalizers", "labels", "name", "namespace"}


def _defaults(path: str, struct: str) -> Iterator[tuple[str, Any]]:
    for field in struct_fields(struct):
        below = f"{path}.{field.name}"
        if field.default is not None:
            yield below, field.default
        if (item := field.type.removeprefix(LIST)) != field.type:
            below += "[]"
        if _is_struct(item):
            yield from _defaults(below, item)


def _is_struct(type_name: str) -> bool:
    return not type_name.startswith(MAP) and type_name[0].isupper()
