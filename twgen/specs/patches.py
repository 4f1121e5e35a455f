"""Read the patches of a RolloutPolicy, which change versions that are deployed already."""

import json
from collections.abc import Mapping
from typing import Any

from twgen.model.forms import LABEL
from twgen.model.paths import Path, value_at, written_path
from twgen.model.policy import VersionPatch
from twgen.model.problem import quoted
from twgen.model.shapes import Findings, Shape, listing, unchanged
from twgen.specs.declared import spec_shape
from twgen.specs.doubts import doubts_of_container, warn_of_hidden_characters
from twgen.specs.fields import Fields
from twgen.specs.templates import check_image, tag_can_move
from twgen.specs.validation.walk import refusals
from twgen.versioning.go_json import template_json
from twgen.versioning.injection import is_ever_injected
from twgen.versioning.kubernetes_types import struct_fields
from twgen.versioning.stored_form import stored_struct

_CONTAINER = "Container"
_FIELDS = ("image", "resources", "env")
_OTHERS = {field.name for field in struct_fields(_CONTAINER)} - {"name", *_FIELDS}


def _check_patch(fields: Fields, _: VersionPatch) -> None:
    fields.refuse_twins("containers", "name", "entries")
    fields.warn_of_many_pods("replicas")
    for name in filter(fields.has, _FIELDS):
        fields.problem(name, "belongs to one container: write it in containers, next to the container's name")
    if all(item is None for field, item in fields.value.items() if field != "buildID"):
        fields.warning("", "changes nothing: write containers, replicas or sunset, or remove it")


def _read_container(value: Any, path: Path, findings: Findings) -> Mapping[str, Any] | None:
    """The fields of a container that a patch changes, as an API server stores them; None: no field."""
    fields = Fields(value, written_path(path), findings)
    name = fields.text("name", LABEL, required=True)
    for field in sorted(_OTHERS & fields.value.keys()):
        if fields.has(field):
            why = "cannot be patched (only image, resources and env can): commit a new version"
            fields.problem(field, why)
    written = {field: fields.raw(field) for field in _FIELDS if fields.has(field)}
    fields.close()
    if not written:
        fields.warning("", "changes nothing: write image, resources or env, or remove it")
        return None
    _check_variables(fields, written.get("env"))
    container = _stored(fields, name, written)
    image = container.get("image") if container else None
    if image and check_image(fields, "image", image) and tag_can_move(image):
        fields.warning("image", "its tag can move, but running pods never get the changed image")
    return container


def _stored(fields: Fields, name: str, written: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields as an API server stores them; None: some are of a wrong type."""
    most = fields.findings.most
    stored = stored_struct({"name": name, **written}, _CONTAINER, fields.path, "a container", most)
    fields.findings.add_problems(stored.problems)
    fields.findings.add_unknown(stored.unknown)
    if stored.problems or not name:
        return None
    # an API server requires these fields of a whole container; a patch does not change them
    whole = {"image": "image", **stored.template}
    fields.refused(refusals(whole, _CONTAINER, fields.path, most))
    if not fields.findings.unknown:
        for place, doubt in doubts_of_container(stored.template):
            fields.warning(place, doubt)
    warn_of_hidden_characters(fields)
    text = template_json({"spec": {"containers": [stored.template]}})
    container: dict[str, Any] = json.loads(text)["spec"]["containers"][0]
    return {field: container[field] for field in ("name", *written) if field in container}


def _check_variables(fields: Fields, written: Any) -> None:
    """Check the variables of a patch. Those of a wrong type are reported elsewhere."""
    seen: set[str] = set()
    for index, variable in enumerate(written if isinstance(written, list) else ()):
        name, place = value_at(variable, "name"), f"env[{index}].name"
        if not isinstance(name, str):
            continue
        if is_ever_injected(name):
            why = "a patch cannot change the connection or the identity of a version"
            fields.problem(place, f"twgen sets {name}: {why}")
        elif name in seen:
            fields.problem(place, f"{quoted(name)} appears twice")
        seen.add(name)


PATCH = spec_shape(
    VersionPatch,
    _check_patch,
    fields={"containers": listing(Shape(_read_container, unchanged, {}))},
)
