"""Derives the status of a Pod from its containers."""

from collections.abc import Iterable, Sequence

from testing.kubernetes.api import Object
from testing.local_node.container import Container, moment
from testing.local_node.materials import ADDRESS

FINISHED = ("Succeeded", "Failed")
"""The final phases of a Pod."""


def pod_status(
    before: Object, initial: Sequence[Container], main: Sequence[Container], *, has_failed: bool
) -> Object:
    """The status for the API server. A condition keeps its time as long as its status does not change.

    `has_failed`: an init container has failed permanently, so the Pod runs no more containers.
    """
    phase = "Failed" if has_failed else _phase(main)
    initialized = all(container.exit_code == 0 for container in initial)
    ready = initialized and bool(main) and all(container.is_ready for container in main)
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
    conditions = [
        _condition("PodScheduled", holds=True),
        _condition("Initialized", holds=initialized, otherwise="ContainersNotInitialized"),
        _condition("ContainersReady", holds=ready, otherwise=reason),
        _condition("Ready", holds=ready, otherwise=reason),
    ]
    return {
        "phase": phase,
        "conditions": _with_times(before.get("conditions", []), conditions),
        "hostIP": ADDRESS,
        "hostIPs": [{"ip": ADDRESS}],
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "startTime": before.get("startTime") or moment(),
        "initContainerStatuses": [_container_status(one, ready=one.exit_code == 0) for one in initial],
        "containerStatuses": [_container_status(one, ready=one.is_ready) for one in main],
    }


def _phase(main: Iterable[Container]) -> str:
    containers = list(main)
    codes = [container.exit_code for container in containers]
    if None not in codes:
        return "Failed" if any(codes) else "Succeeded"
    started = any("waiting" not in container.state or container.restarts for container in containers)
    return "Running" if started else "Pending"


def _container_status(container: Container, *, ready: bool) -> Object:
    return {
        "name": container.name,
        "image": container.spec.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": container.is_running,
        "restartCount": container.restarts,
        "state": container.state,
        "lastState": container.last_state,
    }


def _condition(kind: str, *, holds: bool, otherwise: str = "") -> Object:
    return {"type": kind, "status": str(holds), "reason": "" if holds else otherwise}


def _with_times(before: Sequence[Object], conditions: Iterable[Object]) -> list[Object]:
    times = {(old["type"], old["status"]): old.get("lastTransitionTime") for old in before}
    ours = [
        {**new, "lastTransitionTime": times.get((new["type"], new["status"])) or moment()}
        for new in conditions
    ]
    kinds = {condition["type"] for condition in ours}
    return ours + [old for old in before if old["type"] not in kinds]
