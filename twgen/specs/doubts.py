"""What an API server takes of a worker's pods, and nobody means."""

from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any

from twgen.model.paths import join_path, value_at
from twgen.model.problem import hidden_character, quoted
from twgen.model.spec import AttachedResource
from twgen.specs.fields import Fields
from twgen.versioning.quantities import quantity_nanos

_MEASURED = ("cpu", "memory")
_BYTES = ("memory", "ephemeral-storage")
_LEAST_BYTES = 2**20
_NANOS = 10**9
# machines with more exist, and --strict must not reject a worker that really needs one
_MANY_CORES, _MUCH_MEMORY, _WHOLE_MACHINE = 100, 4 * 2**40, 100 * 2**30
"""From here on a unit was mistaken; of cores, unless the memory beside them is a whole machine's."""
_LONG_GRACE = 30 * 86_400
"""Activities may take days; from here on milliseconds were meant."""
_LONGEST_SHORT_TEXT = 253
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ASKED = ("httpGet", "tcpSocket")


def doubts_of_pod(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is doubtful about the stored form of a pod that an API server takes, each with its path in it."""
    grace = pod.get("terminationGracePeriodSeconds") or 0
    if grace >= _LONG_GRACE:
        why = f"a node waits {grace // 86_400} days for such a pod to end"
        yield "terminationGracePeriodSeconds", f"{why}: check the number of seconds"
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or ()):
            for place, doubt in doubts_of_container(container):
                yield f"{field}[{index}].{place}", doubt


def doubts_of_container(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is doubtful about the stored form of one container of it, each with its path in that."""
    resources = container.get("resources") or {}
    for field in ("limits", "requests"):
        for name in _BYTES:
            amount = value_at(resources, field, name)
            if amount and 0 < quantity_nanos(amount) < _LEAST_BYTES * _NANOS:
                why = f"{amount} is less than a mebibyte, too little for any container: write Mi or Gi"
                yield f"resources.{field}.{name}", why
    for field in ("limits", "requests"):
        cores, memory = (quantity_nanos(value_at(resources, field, name) or 0) / _NANOS for name in _MEASURED)
        if memory >= _MUCH_MEMORY:
            amount = container["resources"][field]["memory"]
            yield f"resources.{field}.memory", f"{amount} is more than a node has: write Mi or Gi"
        elif cores >= _MANY_CORES and memory < _WHOLE_MACHINE:
            amount = str(container["resources"][field]["cpu"])
            meant = amount.lower() if amount.endswith("M") else f"{int(cores)}m"
            yield (
                f"resources.{field}.cpu",
                f"is {int(cores)} whole cores: write {meant} for thousandths of a core",
            )
    ports = {port.get("name") for port in container.get("ports") or ()}
    for probe in _PROBES:
        for asked in _ASKED if container.get(probe) else ():
            port = value_at(container, probe, asked, "port")
            if isinstance(port, str) and port not in ports:
                yield (
                    f"{probe}.{asked}.port",
                    f"there is no port named {quoted(port)}: the probe always fails",
                )


def unmeasured(autoscaler: AttachedResource, pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an autoscaler cannot measure of a pod, each with its path in it: utilization is of a request.

    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#how-does-a-horizontalpodautoscaler-work
    """
    if value_at(pod, "resources", "requests"):
        return  # the whole pod has some
    running = list(running_containers(pod))
    for resource, only in utilizations(value_at(autoscaler.template, "spec")):
        if only and not any(container.get("name") == only for _, container in running):
            yield "containers", f"there is no {quoted(only)}, but {autoscaler.name} scales on its {resource}"
        for place, container in running:
            asked = (value_at(container, "resources", field, resource) for field in ("requests", "limits"))
            if only in {"", container.get("name")} and not any(asked):
                why = f"{autoscaler.name} scales on its utilization; a LimitRange may set it"
                yield f"{place}.resources.requests.{resource}", f"is missing, but {why}"


def running_containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The containers that run as long as their pod, sidecars included, each with its path in it."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(field) or ()):
            if container and (field == "containers" or container.get("restartPolicy") == "Always"):
                yield f"{field}[{index}]", container


def warn_of_hidden_characters(template: Fields) -> None:
    """Note what a template holds that nobody sees, but where something is wrong already."""
    if "\\u" not in dumps(template.value):  # it escapes what is not ASCII
        return
    found = template.diagnostics
    told = {finding.path for finding in (*found.problems, *found.unknown)}
    for place, doubt in _hidden(template.value):
        if template.at(place) not in told:
            template.warning(place, doubt)


def _hidden(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The short texts of a value that hold what nobody sees, each with its path.

    One with ordinary blanks is for people, where a blank that breaks no line has its place.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _hidden(item, join_path(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _hidden(item, join_path(path, index))
    elif isinstance(value, str) and hidden_character(value) and _is_short(value):
        yield path, f"{quoted(value)} contains an invisible character: retype it"


def _is_short(text: str) -> bool:
    return len(text) <= _LONGEST_SHORT_TEXT and " " not in text


def utilizations(spec: Any) -> Iterator[tuple[str, str]]:
    """The resources whose utilization an autoscaler goes by, and the container of each; empty: all."""
    if value_at(spec, "targetCPUUtilizationPercentage"):
        yield "cpu", ""
    for metric in _items(spec, "metrics"):
        for field in ("resource", "containerResource"):
            name = value_at(metric, field, "name")
            if name in _MEASURED and value_at(metric, field, "target", "type") == "Utilization":
                yield name, str(value_at(metric, field, "container") or "")
    for trigger in _items(spec, "triggers"):
        kind = value_at(trigger, "type")
        measure = value_at(trigger, "metricType") or value_at(trigger, "metadata", "type") or "Utilization"
        if kind in _MEASURED and measure == "Utilization":
            yield kind, str(value_at(trigger, "metadata", "containerName") or "")


def _items(spec: Any, field: str) -> list[Any]:
    items = value_at(spec, field)
    return items if isinstance(items, list) else []
