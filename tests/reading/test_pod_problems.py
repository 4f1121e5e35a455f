"""What the status of a Pod says against it, in one line."""

from typing import Any

import pytest

from twgen.reading.kubernetes import pod_problem

BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container=worker"}


def container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "worker", "state": state, **more}


def pod(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"status": {"containerStatuses": list(containers), **status}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"reason": reason, "exitCode": code}}


PULLS = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "a"'}}
INITIALIZES = container({"waiting": {"reason": "PodInitializing"}})
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available:\n3 Insufficient cpu.",
}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (pod(container(PULLS)), 'waits (ImagePullBackOff: Back-off pulling image "a")'),
        (
            pod(container({"waiting": BACK_OFF}, lastState=ended(137, "OOMKilled"))),
            "crashes (OOMKilled, exit code 137) and waits (CrashLoopBackOff)",
        ),
        (pod(container({"running": {}}, lastState=ended(1))), "crashes (Error, exit code 1)"),
        (pod(container(ended(2))), "crashes (Error, exit code 2)"),
        (pod(INITIALIZES, initContainerStatuses=[container(ended(5))]), "crashes (Error, exit code 5)"),
        (pod(INITIALIZES, initContainerStatuses=[container(ended(0))]), "waits (PodInitializing)"),
        (
            pod(conditions=[UNSCHEDULABLE]),
            "has no node (Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.)",
        ),
        (
            pod(phase="Failed", reason="Evicted", message="The node was low on memory."),
            "failed (Evicted: The node was low on memory.)",
        ),
        (pod(container({"running": {}})), ""),
        (pod(), ""),
        ({}, ""),
    ],
)
def test_pod_is_told_by(found: dict[str, Any], said: str) -> None:
    assert pod_problem(found) == said
