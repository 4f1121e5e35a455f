"""Patches of live versions: other values of some fields of their containers, and the way back.

An annotation of the Deployment itself tells what was replaced, so that nothing else has to remember it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from twgen.cluster.comparison import compare
from twgen.cluster.server_defaults import pull_policy
from twgen.model.world import LivePatch

_WHOLE = ("image", "resources")
"""Fields that a patch replaces as a whole; of `env` it replaces single variables."""
_LISTS = ("initContainers", "containers")
_DEEPEST = 9
"""Levels of an annotation: 5 down to a `valueFrom`, which has 3 at most."""

Containers = tuple[Mapping[str, Any], ...]
"""Containers by name, each with the fields that it gets."""


class Patched(NamedTuple):
    """A pod template that was patched, and what that replaced."""

    template: dict[str, Any]
    replaced: list[dict[str, Any]]
    """By container: the fields as they were, null: absent; of `env` those that are others now, and in `added`
    the names of new ones."""


def reaching(containers: Iterable[Mapping[str, Any]], template: Mapping[str, Any]) -> Containers:
    """Those of the patch that the pod template has."""
    names = {container.get("name") for _, container in _containers(template)}
    return tuple(container for container in containers if container["name"] in names)


def container_names(template: Mapping[str, Any]) -> list[str]:
    """What the containers of a pod template are called."""
    return [container.get("name") or "" for _, container in _containers(template)]


def patched_template(template: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Patched:
    """The pod template with these fields in its containers."""
    by_name = {container["name"]: container for container in containers}
    replaced: list[dict[str, Any]] = []

    def patch(container: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = by_name.get(container.get("name") or "")
        if not wanted:
            return container
        new = dict(container)
        was: dict[str, Any] = {"name": wanted["name"]}
        for field in _WHOLE:
            if field in wanted:
                was[field], new[field] = container.get(field), wanted[field]
        if "env" in wanted:
            new["env"], was["env"], was["added"] = _with_variables(container.get("env") or (), wanted["env"])
        replaced.append(was)
        return new

    return Patched(_mapped(template, patch), replaced)


def patch_text(containers: Containers, replaced: list[dict[str, Any]]) -> str:
    """The annotation of a Deployment that was patched so."""
    told = {"containers": list(containers), "replaced": replaced}
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def without_patch(template: Mapping[str, Any], annotation: str) -> tuple[Mapping[str, Any], LivePatch | None]:
    """A live pod template as it was before it was patched, and its patch; None: the annotation tells none.

    What somebody wrote there by hand, and is not as we write it, tells none.
    """
    try:
        told = json.loads(annotation)
        # numbers that are none, and halves of characters, stand in no JSON of ours
        json.dumps(told, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return template, None
    if not isinstance(told, dict) or not _is_shallow(told, _DEEPEST):
        return template, None
    containers, replaced = told.get("containers"), told.get("replaced")
    if not _is_as_we_write(containers) or not _is_as_we_write(replaced):
        return template, None
    was = {item["name"]: item for item in replaced}
    before = _mapped(template, lambda container: _as_before(container, was))
    return before, LivePatch(tuple(containers), template, tuple(_edits(template, containers)))


def _is_as_we_write(containers: Any) -> TypeGuard[list[dict[str, Any]]]:
    """What the annotation says of containers is of the types that a patch has."""
    return isinstance(containers, list) and all(map(_is_container, containers))


def _is_container(told: Any) -> bool:
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return False
    variables, added = told.get("env", []), told.get("added", [])
    return (
        isinstance(told.get("image"), str | None)
        and isinstance(told.get("resources"), dict | None)
        and isinstance(variables, list)
        and all(map(_is_variable, variables))
        and isinstance(added, list)
        and all(isinstance(name, str) for name in added)
    )


def _is_variable(told: Any) -> bool:
    if not isinstance(told, dict) or not isinstance(told.get("name"), str):
        return False
    return isinstance(told.get("value", ""), str) and isinstance(told.get("valueFrom", {}), dict)


def _is_shallow(value: Any, levels: int) -> bool:
    """It nests no deeper: more would end a walk that calls itself."""
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


def changed_fields(template: Mapping[str, Any], before: Containers, after: Containers) -> tuple[str, ...]:
    """What of the containers another patch makes another: `containers[worker].image`."""
    one, other = (patched_template(template, patch).template for patch in (before, after))
    if one == other:
        return ()
    pairs = zip(_containers(one), _containers(other), strict=True)
    return tuple(
        f"{field}[{old.get('name')}].{name}"
        for (field, old), (_, new) in pairs
        for name in (*_WHOLE, "env")
        if old.get(name) != new.get(name)
    )


def _with_variables(
    before: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]], list[str]]:
    """The variables with the wanted ones among them, those that these replace, and the names of new ones."""
    new = {item["name"]: item for item in wanted}
    replaced = [item for item in before if item.get("name") in new]
    names = {item["name"] for item in replaced}
    added = [name for name in new if name not in names]
    kept = [new.get(item.get("name") or "", item) for item in before]
    return [*kept, *(new[name] for name in added)], replaced, added


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
        # a server filled it in for the image of the patch
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
    """Where a live pod template is not as it was patched."""
    live = {container.get("name"): (field, container) for field, container in _containers(template)}
    for container in containers:
        if container["name"] not in live:
            continue
        field, found = live[container["name"]]
        place = f"spec.{field}"
        compared = compare({"spec": {field: [container]}}, {"spec": {field: [found]}})
        yield from compared.changed
        # of the fields that a patch replaces, nothing else stands in them
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
