"""Putting a version's connection to Temporal into its pods."""

from collections.abc import Iterable, Mapping
from typing import Any

from twgen.model.spec import WorkerSpec
from twgen.versioning.environment import (
    INJECTED_NAMES,
    TLS_VOLUME,
    Identity,
    environment,
    volume_mounts,
    volumes,
)


def inject(pod: Mapping[str, Any], spec: WorkerSpec, identity: Identity) -> dict[str, Any]:
    """A pod spec with the variables and volumes that connect it, which it does not have yet."""
    variables = environment(spec.connection, identity, spec.policy.environment)
    mounts = volume_mounts(spec.connection)
    containers = [
        _with_lists(container, env=variables, volumeMounts=mounts)
        for container in pod.get("containers") or ()
    ]
    return _with_lists({**pod, "containers": containers}, volumes=volumes(spec.connection))


def replace_injection(pod: Mapping[str, Any], spec: WorkerSpec, identity: Identity) -> dict[str, Any]:
    """A connected pod spec, connected as the spec says now; variables that stay keep their place."""
    variables = environment(spec.connection, identity, spec.policy.environment)
    mounts = volume_mounts(spec.connection)
    containers = [
        {
            **container,
            "env": _replaced(container.get("env") or (), variables, INJECTED_NAMES),
            "volumeMounts": _replaced(container.get("volumeMounts") or (), mounts, {TLS_VOLUME}),
        }
        for container in pod["containers"]
    ]
    changed = _replaced(pod.get("volumes") or (), volumes(spec.connection), {TLS_VOLUME})
    emptied = {**pod, "containers": [_without_empty(item) for item in containers], "volumes": changed}
    return _without_empty(emptied)


def _with_lists(owner: Mapping[str, Any], **additions: list[dict[str, Any]]) -> dict[str, Any]:
    extended = {name: [*(owner.get(name) or ()), *items] for name, items in additions.items() if items}
    return {**owner, **extended}


def _replaced(
    items: Iterable[Mapping[str, Any]], wanted: list[dict[str, Any]], injected: Iterable[str]
) -> list[Mapping[str, Any]]:
    new = {item["name"]: item for item in wanted}
    kept = [
        new.pop(item["name"], item) for item in items if item["name"] in new or item["name"] not in injected
    ]
    return [*kept, *new.values()]


def _without_empty(owner: Mapping[str, Any]) -> dict[str, Any]:
    lists = {"env", "volumeMounts", "volumes"}
    return {name: value for name, value in owner.items() if value or name not in lists}
