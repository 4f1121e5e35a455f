"""A live pod template beside the one that was applied: what somebody changed by hand."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.cluster.server_defaults import POD_TEMPLATE_DEFAULTS, less_defaults, with_derived
from twgen.model.paths import join_path

# by which fields an API server tells the items of a list apart: patchMergeKey in k8s.io/api/core/v1/types.go
_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
}
_KEY_DEFAULTS = {"protocol": "TCP"}


class Comparison(NamedTuple):
    """Where a live pod template is otherwise than the applied one, as paths into it."""

    changed: tuple[str, ...] = ()
    """Applied, and now another value or gone: applying again puts it right."""
    added: tuple[str, ...] = ()
    """Beyond what was applied, and from no server: applying again leaves it."""


def compare(applied: Mapping[str, Any], live: Mapping[str, Any]) -> Comparison:
    """What became of an applied pod template, but for what API servers fill in."""
    changed: list[str] = []
    added: list[str] = []
    for path, is_addition in _differences(applied, live, POD_TEMPLATE_DEFAULTS, ""):
        (added if is_addition else changed).append(path)
    return Comparison(tuple(changed), tuple(added))


def _differences(applied: Any, live: Any, defaults: Any, path: str) -> Iterator[tuple[str, bool]]:
    if isinstance(applied, dict) and isinstance(live, dict):
        yield from _of_mappings(applied, live, defaults if isinstance(defaults, dict) else {}, path)
    elif isinstance(applied, list) and isinstance(live, list):
        yield from _of_lists(applied, live, defaults[0] if isinstance(defaults, list) else {}, path)
    elif applied != live:
        yield path, False


def _of_mappings(
    applied: Mapping[str, Any], live: Mapping[str, Any], defaults: Mapping[str, Any], path: str
) -> Iterator[tuple[str, bool]]:
    for name, value in applied.items():
        if name in live:
            if value != live[name]:
                yield from _differences(value, live[name], defaults.get(name), join_path(path, name))
        # Go leaves out what is empty
        elif value not in ({}, [], None, "") and value != defaults.get(name):
            yield join_path(path, name), False
    filled_in = with_derived(defaults, live)
    for name, value in live.items():
        default = filled_in.get(name)
        if name not in applied and less_defaults(value, default) not in (default, {}, [], None):
            yield join_path(path, name), True


def _of_lists(
    applied: Sequence[Any], live: Sequence[Any], defaults: Any, path: str
) -> Iterator[tuple[str, bool]]:
    keys = _KEYS.get(path.rpartition(".")[2])
    if not keys:
        if len(applied) != len(live):
            yield path, False
            return
        for index, (one, other) in enumerate(zip(applied, live, strict=True)):
            yield from _differences(one, other, defaults, join_path(path, index))
        return
    places = {_key(item, keys): item for item in live}
    for item in applied:
        other, place = places.pop(_key(item, keys), None), f"{path}[{item.get(keys[0])}]"
        if other is None:
            yield place, False
        elif item != other:
            yield from _differences(item, other, defaults, place)
    for item in places.values():
        yield f"{path}[{item.get(keys[0])}]", True


def _key(item: Any, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in keys)
