"""Comparing a live pod template with the applied one: changes that people made by hand."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.cluster.server_defaults import POD_TEMPLATE_DEFAULTS, less_defaults, with_derived
from twgen.model.paths import join_path

# the fields that identify the items of a list for an API server: patchMergeKey in k8s.io/api/core/v1/types.go
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
    """The differences of a live pod template from the applied one, as paths into it."""

    changed: tuple[str, ...] = ()
    """Applied fields that now have another value, or are gone: applying again restores them."""
    added: tuple[str, ...] = ()
    """Fields that neither the applied template nor a server set: applying again leaves them."""


def compare(applied: Mapping[str, Any], live: Mapping[str, Any]) -> Comparison:
    """The differences between an applied and a live pod template, without the defaults of API servers."""
    changed: list[str] = []
    added: list[str] = []
    for path, is_addition in _differences(applied, live, POD_TEMPLATE_DEFAULTS, ""):
        (added if is_addition else changed).append(path)
    return Comparison(tuple(changed), tuple(added))


def _differences(applied: Any, live: Any, defaults: Any, path: str) -> Iterator[tuple[str, bool]]:
    if isinstance(applied, dict) and isinstance(live, dict):
        defaults = defaults if isinstance(defaults, dict) else {}
        for name, value in applied.items():
            if name in live:
                if value != live[name]:
                    yield from _differences(value, live[name], defaults.get(name), join_path(path, name))
            # Go leaves out empty values
            elif value not in ({}, [], None, "") and value != defaults.get(name):
                yield join_path(path, name), False
        filled_in = with_derived(defaults, live)
        for name, value in live.items():
            default = filled_in.get(name)
            if name not in applied and less_defaults(value, default) not in (default, {}, [], None):
                yield join_path(path, name), True
    elif isinstance(applied, list) and isinstance(live, list):
        yield from _list_differences(applied, live, defaults[0] if isinstance(defaults, list) else {}, path)
    elif applied != live:
        yield path, False


def _list_differences(
    applied: Sequence[Any], live: Sequence[Any], defaults: Any, path: str
) -> Iterator[tuple[str, bool]]:
    keys = _KEYS.get(path.rpartition(".")[2])
    if not keys:
        if len(applied) != len(live):
            yield path, False
            return
        for index, (applied_item, live_item) in enumerate(zip(applied, live, strict=True)):
            yield from _differences(applied_item, live_item, defaults, join_path(path, index))
        return
    places = {_key(item, keys): item for item in live}
    for item in applied:
        live_item, place = places.pop(_key(item, keys), None), f"{path}[{item.get(keys[0])}]"
        if live_item is None:
            yield place, False
        elif item != live_item:
            yield from _differences(item, live_item, defaults, place)
    for item in places.values():
        yield f"{path}[{item.get(keys[0])}]", True


def _key(item: Any, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in keys)
