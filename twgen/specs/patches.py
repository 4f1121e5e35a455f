"""Reading the patches of a RolloutPolicy: what a live version gets in place of what it was deployed with."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from twgen.model.paths import value_at
from twgen.model.policy import VersionPatch
from twgen.model.problem import quoted
from twgen.specs.doubts import doubts_of_container, warn_of_hidden_characters
from twgen.specs.fields import Fields
from twgen.specs.limits import BUILD_ID, LABEL, LONGEST_LABEL
from twgen.specs.templates import MUTABLE_TAGS, why_no_image
from twgen.specs.validation.walk import refusals
from twgen.versioning.build_ids import LONGEST_BUILD_ID, image_tag, is_image
from twgen.versioning.go_json import template_json
from twgen.versioning.injection import is_ever_injected
from twgen.versioning.kubernetes_types import struct_fields
from twgen.versioning.stored_form import stored_struct

_CONTAINER = "Container"
_FIELDS = ("image", "resources", "env")
_OTHERS = {field.name for field in struct_fields(_CONTAINER)} - {"name", *_FIELDS}


def parse_patches(spec: Fields) -> tuple[VersionPatch, ...]:
    """The patches of a policy's `spec`."""
    return tuple(_patches(spec))


def _patches(spec: Fields) -> Iterator[VersionPatch]:
    seen: set[str] = set()
    for fields in spec.mappings("patches"):
        build_id = fields.text("buildID", required=True, form=BUILD_ID, most=LONGEST_BUILD_ID)
        if build_id and build_id in seen:
            fields.problem("buildID", f"{quoted(build_id)} appears twice: merge the two entries")
        seen.add(build_id)
        sunset = fields.mapping("sunset")
        patch = VersionPatch(
            build_id=build_id,
            containers=tuple(_containers(fields)),
            replicas=_replicas(fields),
            scaledown_delay=_delay(sunset, "scaledownDelay"),
            delete_delay=_delay(sunset, "deleteDelay"),
        )
        sunset.close()
        for name in filter(fields.has, _FIELDS):
            fields.problem(
                name, "belongs to one container: write it in containers, next to the container's name"
            )
        if all(item is None for field, item in fields.value.items() if field != "buildID"):
            fields.warning("", "changes nothing: write containers, replicas or sunset, or remove it")
        fields.close()
        yield patch


def _replicas(fields: Fields) -> int | None:
    replicas = fields.integer("replicas")
    fields.warn_of_many_pods("replicas")
    if replicas is not None and replicas < 1:
        why = "a version that may have work needs a pod, and sunset removes the pods of the others"
        fields.problem("replicas", f"{replicas} is below 1: {why}")
    return replicas


def _delay(sunset: Fields, name: str) -> timedelta | None:
    return sunset.duration(name, timedelta()) if sunset.has(name) else None


def _containers(patch: Fields) -> Iterator[Mapping[str, Any]]:
    seen: set[str] = set()
    for fields in patch.mappings("containers"):
        name = fields.text("name", required=True, form=LABEL, most=LONGEST_LABEL)
        if name and name in seen:
            fields.problem("name", f"{quoted(name)} appears twice: merge the two entries")
        seen.add(name)
        for field in sorted(_OTHERS & fields.value.keys()):
            if fields.has(field):
                why = "cannot be patched (only image, resources and env can): commit a new version"
                fields.problem(field, why)
        written = {field: fields.raw(field) for field in _FIELDS if fields.has(field)}
        fields.close()
        if not written:
            fields.warning("", "changes nothing: write image, resources or env, or remove it")
            continue
        _check_variables(fields, written.get("env"))
        if container := _stored(fields, name, written):
            _check_image(fields, container.get("image", ""))
            yield container


def _stored(fields: Fields, name: str, written: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields as an API server stores them; None: some are of a wrong type."""
    most = fields.diagnostics.most
    stored = stored_struct({"name": name, **written}, _CONTAINER, fields.path, "a container", most)
    fields.diagnostics.add_problems(stored.problems)
    fields.diagnostics.add_unknown(stored.unknown)
    if stored.problems or not name:
        return None
    # what an API server wants of a whole container, and a patch leaves as it is
    whole = {"image": "image", **stored.template}
    fields.refused(refusals(whole, _CONTAINER, fields.path, most))
    if not fields.diagnostics.unknown:
        for place, doubt in doubts_of_container(stored.template):
            fields.warning(place, doubt)
    warn_of_hidden_characters(fields)
    text = template_json({"spec": {"containers": [stored.template]}})
    container: dict[str, Any] = json.loads(text)["spec"]["containers"][0]
    return {field: container[field] for field in ("name", *written) if field in container}


def _check_image(fields: Fields, image: str) -> None:
    if not image:
        return
    if wrong := why_no_image(image):
        fields.problem("image", wrong)
    elif not is_image(image):
        such_as = "registry.example.com/payments:v1"
        fields.warning("image", f"{quoted(image)} is not an image that a node can pull, such as {such_as}")
    elif "@" not in image and image_tag(image) in {"", *MUTABLE_TAGS}:
        fields.warning("image", "its tag can move, but running pods never get the changed image")


def _check_variables(fields: Fields, written: Any) -> None:
    """What variables of the right type may not be; of others that is told."""
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
