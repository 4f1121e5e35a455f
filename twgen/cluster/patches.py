"""Applies and undoes patches, which set some container fields of live versions.

The replaced values are recorded only in an annotation of the patched Deployment.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from twgen.cluster.server_defaults import compare, pull_policy
from twgen.model.world import LivePatch

_WHOLE = ("image", "resources")
"""Fields that a patch replaces completely. `env` is an exception: a patch replaces individual variables."""
_LISTS = ("initContainers", "containers")
_CONTAINER_TYPES = {"name": str, "image": str | None, "resources": dict | None, "env": list, "added": list}
_VARIABLE_TYPES = {"name": str, "value": str, "valueFrom": dict}
_DEEPEST = 9
"""The maximum nesting depth in an annotation: a `valueFrom` is at level 5, and adds at most 3 levels."""

Containers = tuple[Mapping[str, Any], ...]
"""The containers that a patch changes, each with its name and its new fields."""


class Patched(NamedTuple):
    """A patched pod template, and the values before the patch."""

    template: dict[str, Any]
    replaced: list[dict[str, Any]]
    """The previous fields of each container (null if a field was absent). `env` lists the replaced variables,
    and `added` the names of new variables."""


def reaching(containers: Iterable[Mapping[str, Any]], template: Mapping[str, Any]) -> Containers:
    """The patch's containers that exist in the pod template."""
    names = {container.get("name") for _, container in _containers(template)}
    return tuple(container for container in containers if container["name"] in names)


def container_names(template: Mapping[str, Any]) -> list[str]:
    """The names of all containers in a pod template, init containers first."""
    return [container.get("name") or "" for _, container in _containers(template)]


def patched_template(template: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Patched:
    """Apply a patch to a pod template."""
    by_name = {container["name"]: container for container in containers}
    replaced: list[dict[str, Any]] = []

    def patch(container: Mapping[str, Any]) -> Mapping[str, Any]:
        fields = by_name.get(container.get("name") or "")
        if not fields:
            return container
        new = dict(container)
        old: dict[str, Any] = {"name": fields["name"]}
        for field in _WHOLE:
            if field in fields:
                old[field], new[field] = container.get(field), fields[field]
        if "env" in fields:
            before = container.get("env") or ()
            given = {item["name"]: item for item in fields["env"]}
            old["env"] = [item for item in before if item.get("name") in given]
            names = {item["name"] for item in old["env"]}
            old["added"] = [name for name in given if name not in names]
            new["env"] = [given.get(item.get("name") or "", item) for item in before]
            new["env"] += [given[name] for name in old["added"]]
        replaced.append(old)
        return new

    return Patched(_mapped(template, patch), replaced)


def patch_text(containers: Containers, replaced: list[dict[str, Any]]) -> str:
    """The value of the annotation that records a patch."""
    record = {"containers": list(containers), "replaced": replaced}
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def without_patch(template: Mapping[str, Any], annotation: str) -> tuple[Mapping[str, Any], LivePatch | None]:
    """A live pod template without its patch, and the patch.

    If the annotation is invalid, for example after a manual edit, the template is returned unchanged, with
    None as the patch.
    """
    try:
        record = json.loads(annotation)
        # reject NaN, infinity and lone surrogates, which twgen never writes
        json.dumps(record, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return template, None
    if not isinstance(record, dict) or not _is_shallow(record, _DEEPEST):
        return template, None
    containers, replaced = record.get("containers"), record.get("replaced")
    if not _are_containers(containers) or not _are_containers(replaced):
        return template, None
    replaced_by_name = {item["name"]: item for item in replaced}
    before = _mapped(template, lambda container: _as_before(container, replaced_by_name))
    return before, LivePatch(tuple(containers), template, tuple(_edits(template, containers)))


def _are_containers(containers: Any) -> TypeGuard[list[dict[str, Any]]]:
    """Whether the annotation's containers have names, and fields of the types that twgen writes."""
    return isinstance(containers, list) and all(
        _has_types(container, _CONTAINER_TYPES)
        and all(_has_types(variable, _VARIABLE_TYPES) for variable in container.get("env", ()))
        and all(isinstance(name, str) for name in container.get("added", ()))
        for container in containers
    )


def _has_types(value: Any, types: Mapping[str, Any]) -> bool:
    """Whether the value is a mapping that has a name, and whose fields have these types."""
    return isinstance(value, dict) and all(
        isinstance(value[name], kind) if name in value else name != "name" for name, kind in types.items()
    )


def _is_shallow(value: Any, levels: int) -> bool:
    """Whether the value has at most this many levels. Deeper values would exceed the recursion limit."""
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


def changed_fields(template: Mapping[str, Any], before: Containers, after: Containers) -> tuple[str, ...]:
    """The container fields that differ between two patches, such as `containers[worker].image`."""
    old_template, new_template = (patched_template(template, patch).template for patch in (before, after))
    if old_template == new_template:
        return ()
    pairs = zip(_containers(old_template), _containers(new_template), strict=True)
    return tuple(
        f"{field}[{old.get('name')}].{name}"
        for (field, old), (_, new) in pairs
        for name in (*_WHOLE, "env")
        if old.get(name) != new.get(name)
    )


def _as_before(container: Mapping[str, Any], replaced: Mapping[str, Any]) -> Mapping[str, Any]:
    was = replaced.get(container.get("name") or "")
    if not was:
        return container
    old = dict(container)
    for field in _WHOLE:
        if field in was:
            old |= {field: was[field]}
            if was[field] is None:
                del old[field]
    if "image" in was and old.get("imagePullPolicy") == pull_policy(container.get("image") or ""):
        # the server set this default for the patched image
        del old["imagePullPolicy"]
    if "env" in was:
        variables, added = {item["name"]: item for item in was["env"]}, set(was.get("added", ()))
        present = [item for item in container.get("env") or () if item.get("name") not in added]
        missing = variables.keys() - {item.get("name") for item in present}
        old["env"] = [variables.get(item.get("name"), item) for item in present]
        old["env"] += [item for name, item in variables.items() if name in missing]
        if not old["env"]:
            del old["env"]
    return old


def _edits(template: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The paths of the patched fields whose live values differ from the patch."""
    live = {container.get("name"): (field, container) for field, container in _containers(template)}
    for container in containers:
        if container["name"] not in live:
            continue
        field, live_container = live[container["name"]]
        place = f"spec.{field}"
        compared = compare({"spec": {field: [container]}}, {"spec": {field: [live_container]}})
        yield from compared.changed
        # a patch sets these fields completely, so anything added to them is an edit
        places = [f"{place}[{container['name']}].resources."] if "resources" in container else []
        places += [
            f"{place}[{container['name']}].env[{item['name']}]." for item in container.get("env") or ()
        ]
        yield from (path for path in compared.added if path.startswith(tuple(places)))


def _containers(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in _LISTS:
        for container in template["spec"].get(field) or ():
            yield field, container


def _mapped(template: Mapping[str, Any], change: Any) -> dict[str, Any]:
    pod = template["spec"]
    lists = {field: [change(item) for item in pod[field]] for field in _LISTS if pod.get(field)}
    return {**template, "spec": {**pod, **lists}}
