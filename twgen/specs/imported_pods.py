"""Turn a plain Deployment's pod template into a worker's, without the variables that twgen sets."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.policy import EnvironmentNames
from twgen.model.problem import quoted
from twgen.model.spec import Connection, SecretKey
from twgen.specs.variables import Values, known_value, references, with_references
from twgen.versioning.injection import (
    ADDRESS,
    NAMESPACE,
    TASK_QUEUE,
    Identity,
    Place,
    injection,
    is_ever_injected,
    place_of,
)

_KEY = "TEMPORAL_API_KEY"
_OF_CONNECTION = ("TEMPORAL_API", "TEMPORAL_TLS")
"""Prefixes of the variables that hold credentials: a Connection names a Secret in their place."""

Container = Mapping[str, Any]


class ImportedPods(NamedTuple):
    """The `spec` of a pod template, and the settings that its variables had."""

    spec: Mapping[str, Any]
    place: Place
    task_queue: str
    """Empty: no variable names it, or the variable stays in the pods."""
    key: Mapping[str, str]
    """The key of the Secret that holds the API key; empty: there is none."""
    notes: tuple[str, ...]
    """Sentences for the person who imports: what to check."""
    worker: str
    """The container in the first place, since it seems to be the worker. Empty: there is no other."""


def knows_temporal(container: Container) -> bool:
    """One of its variables has the prefix TEMPORAL_."""
    return any(str(variable.get("name")).startswith("TEMPORAL_") for variable in container.get("env") or ())


def imported_pods(pod: Mapping[str, Any]) -> ImportedPods:
    """Import a pod template. If containers disagree on a variable of Temporal, the first container counts."""
    containers: list[Container] = list(pod["containers"])
    # the worker's container becomes the first, since the image of the first one names the version; a
    # sidecar may be listed before it, or have variables of Temporal too
    containers.sort(key=lambda container: (TASK_QUEUE not in _told(container), not knows_temporal(container)))
    all_values = [_told(container) for container in containers]
    plain = ({name: text for name, text in values.items() if text} for values in all_values)
    place = place_of({"containers": [{"env": [*map(_variable, values.items())]} for values in plain]})
    variables = [variable for container in containers for variable in container.get("env") or ()]
    keys = (
        value_at(variable, "valueFrom", "secretKeyRef")
        for variable in variables
        if variable.get("name") == _KEY
    )
    key: Mapping[str, Any] = next(
        (reference for reference in keys if value_at(reference, "name") and value_at(reference, "key")), {}
    )
    queues = {values[TASK_QUEUE] for values in all_values if TASK_QUEUE in values}
    is_used = any(TASK_QUEUE in references(str(variable.get("value"))) for variable in variables)
    # a task queue that other variables refer to, or on which containers differ, stays a variable of the pods
    queue = "" if is_used or len(queues) != 1 else queues.pop() or ""
    secret = SecretKey(str(key["name"]), str(key["key"])) if key else None
    connection = Connection("", place.address, api_key_secret=secret)
    injected = injection(connection, Identity("", "", ""), EnvironmentNames.CURRENT).names
    gone = injected | ({TASK_QUEUE} if queue else set())
    gone |= {name for values in all_values for name in values if name.startswith(_OF_CONNECTION)}
    gone = frozenset(name for name in gone if is_ever_injected(name))
    notes = [
        note for pair in zip(containers, all_values, strict=True) for note in _notes(*pair, place, gone, key)
    ]
    return ImportedPods(
        spec={**pod, "containers": [_without(container, gone) for container in containers]},
        place=place,
        task_queue=queue,
        key={"name": secret.name, "key": secret.key} if secret else {},
        notes=tuple(dict.fromkeys(notes)),
        worker=str(containers[0].get("name")) if len(containers) > 1 else "",
    )


def _variable(item: tuple[str, str]) -> dict[str, str]:
    return {"name": item[0], "value": item[1]}


def _told(container: Container) -> dict[str, str | None]:
    """The variables of a container by name; None: the value comes from a Secret, a field or the like."""
    values: dict[str, str | None] = {}
    for variable in container.get("env") or ():
        values[str(variable.get("name"))] = known_value(variable, values)
    return values


def _without(container: Container, gone: frozenset[str]) -> dict[str, Any]:
    """The container without these variables; references to them are replaced by their values."""
    kept, before = [], dict[str, str | None]()
    for variable in container.get("env") or ():
        name, text = str(variable.get("name")), variable.get("value")
        if name not in gone:
            # twgen sets its variables after those of the pods, and Kubernetes fills in only earlier ones
            known = {name: value for name, value in before.items() if name in gone and name != _KEY}
            filled = isinstance(text, str) and with_references(text, known.get)
            kept.append({**variable, "value": filled} if filled else variable)
        before[name] = known_value(variable, before)
    rest = {field: item for field, item in container.items() if field != "env"}
    return {**rest, **({"env": kept} if kept else {})}


def _notes(
    container: Container, values: Values, place: Place, gone: frozenset[str], key: Mapping[str, Any]
) -> Iterator[str]:
    places = {ADDRESS: place.address, NAMESPACE: place.temporal_namespace}
    before = dict[str, str | None]()
    for variable in container.get("env") or ():
        name = str(variable.get("name"))
        is_key = name == _KEY and key and value_at(variable, "valueFrom", "secretKeyRef") == key
        if name in gone and name.startswith(_OF_CONNECTION) and not is_key:
            yield f"{name} is left out: the Connection sets it"
        elif name in places and values[name] is None:
            is_for = "the Connection" if name == ADDRESS else "temporalNamespace"
            yield f"{name} is left out: {is_for} sets it"
        elif name in places and values[name] != places[name]:
            whose = f"{name} of container {quoted(str(container.get('name')))}"
            yield (
                f"{whose} is left out: it is {quoted(str(values[name]))} here, but all containers get"
                " the same value"
            )
        elif name not in gone:
            for reference in references(str(variable.get("value") or "")):
                if (
                    reference in gone
                    and reference in before
                    and (before[reference] is None or reference == _KEY)
                ):
                    yield f"{name} refers to {reference}, which is left out: write the value itself"
        before[name] = known_value(variable, before)
