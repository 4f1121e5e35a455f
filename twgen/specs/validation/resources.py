"""The rules for resources: of a container, and of a pod as a whole."""

from collections.abc import Iterable, Mapping
from typing import Any

from twgen.model.problem import quoted
from twgen.specs.validation import syntax
from twgen.specs.validation.rules import Wrong
from twgen.versioning.quantities import quantity_nanos

NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES = "hugepages-"
_KUBERNETES = "kubernetes.io/"
_WHOLE = 10**9
_OF_PODS = ("cpu", "memory")

Amounts = Mapping[str, Any]
"""Quantities by the names of their resources."""


def resources(struct: Mapping[str, Any]) -> Wrong:
    """What a container asks for, and may have."""
    limits, requests = struct.get("limits") or {}, struct.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if wrong := resource_name(name) or _resource_amount(name, amount):
                yield (field, name), wrong
    for name, amount in requests.items():
        native = "/" not in name and not name.startswith(HUGE_PAGES)
        if name not in limits:
            if not native:
                yield ("limits", name), "is required: it must equal the request"
        elif native and quantity_nanos(amount) > quantity_nanos(limits[name]) >= 0:
            yield ("requests", name), f"{amount} is above its limit ({limits[name]})"
        elif not native and quantity_nanos(amount) != quantity_nanos(limits[name]):
            yield ("requests", name), f"{amount} must equal its limit ({limits[name]})"
    if _are_huge_pages_alone({*limits, *requests}):
        yield (), "has huge pages, which need cpu or memory too"


def resource_name(name: str) -> str:
    """The name of a resource of a container."""
    if name in NATIVE_RESOURCES:
        return ""
    if wrong := syntax.qualified_name(name):
        return wrong
    if "/" not in name:
        if name.startswith(HUGE_PAGES):
            return ""
        return f"{quoted(name)} is not a resource of containers: use {', '.join(NATIVE_RESOURCES)}"
    if _KUBERNETES not in name and (
        name.startswith("requests.") or syntax.qualified_name(f"requests.{name}")
    ):
        return f"{quoted(name)} is not a valid name of an extended resource"
    return ""


def _resource_amount(name: str, amount: str | float) -> str:
    if wrong := syntax.not_negative(amount):
        return wrong
    if "/" in name and _KUBERNETES not in name and quantity_nanos(amount) % _WHOLE:
        return f"{amount} must be a whole number"
    if name.startswith(HUGE_PAGES):
        try:
            size = quantity_nanos(name.removeprefix(HUGE_PAGES))
        except ValueError:
            size = 0
        if size <= 0 or quantity_nanos(amount) % size:
            return f"{amount} is not a multiple of the page size"
    return ""


def _are_huge_pages_alone(names: Iterable[str]) -> bool:
    found = set(names)
    return any(name.startswith(HUGE_PAGES) for name in found) and found.isdisjoint(_OF_PODS)


def overhead(pod: Mapping[str, Any]) -> Wrong:
    """What the runtime of a pod needs for itself."""
    amounts: Amounts = pod.get("overhead") or {}
    for name, amount in amounts.items():
        if wrong := resource_name(name) or _resource_amount(name, amount):
            yield ("overhead", name), wrong
    if _are_huge_pages_alone(amounts):
        yield ("overhead",), "has huge pages, which need cpu or memory too"


def resources_of_pod(pod: Mapping[str, Any]) -> Wrong:
    """What all containers share: enough for what they ask for, and no container may have more."""
    struct = pod.get("resources") or {}
    if struct.get("claims"):
        yield ("resources", "claims"), "must be left out: only containers have claims"
    limits: Amounts = struct.get("limits") or {}
    for field in ("limits", "requests"):
        for name, amount in (struct.get(field) or {}).items():
            place = ("resources", field, name)
            if name not in _OF_PODS and not name.startswith(HUGE_PAGES):
                yield place, f"is not a resource of a pod: use {', '.join(_OF_PODS)} or huge pages"
                continue
            asked = _together(pod, name)
            if quantity_nanos(amount) < asked:
                yield place, f"{amount} is less than its containers request together"
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(field) or ()):
            for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
                if name in limits and quantity_nanos(amount) > quantity_nanos(limits[name]):
                    at = (field, index, "resources", "limits", name)
                    yield at, f"{amount} is above the pod's limit ({limits[name]})"


def _together(pod: Mapping[str, Any], name: str) -> int:
    """The nanos that containers request at most at one time: init containers run one after the other."""
    highest = beside = 0
    for container in pod.get("initContainers") or ():
        requested = _requested(container, name)
        highest = max(highest, beside + requested)
        if container.get("restartPolicy") == "Always":
            beside += requested
    running = sum(_requested(container, name) for container in pod.get("containers") or ())
    return max(highest, beside + running)


def _requested(container: Mapping[str, Any], name: str) -> int:
    """An API server takes the limit for a request that is left out."""
    struct = container.get("resources") or {}
    amounts = ((struct.get(field) or {}).get(name) for field in ("requests", "limits"))
    return next((quantity_nanos(amount) for amount in amounts if amount is not None), 0)
