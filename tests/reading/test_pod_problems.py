"""What the status of a Pod says against it, in one line."""

from typing import Any

import pytest

from twgen.reading.kubernetes import pod_problem

BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container=worker"}


def container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "worker", "state": state, **more}


def pod(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"status": {"containerStatuses": list(containers), **status}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available:\n3 Insufficient cpu.",
}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            pod(
                container(
                    {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "a"'}}
                )
            ),
            'waits (ImagePullBackOff: Back-off pulling image "a")',
        ),
        (
            pod(
                container(
                    {"waiting": BACK_OFF}, lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}}
                )
            ),
            "crashes (OOMKilled, exit code 137) and waits (CrashLoopBackOff)",
        ),
        (
            pod(container({"running": {}}, lastState={"terminated": {"reason": "Error", "exitCode": 1}})),
            "crashes (Error, exit code 1)",
        ),
        (pod(container({"terminated": {"reason": "Error", "exitCode": 2}})), "crashes (Error, exit code 2)"),
        (
            pod(
                container({"waiting": {"reason": "PodInitializing"}}),
                initContainerStatuses=[container({"terminated": {"reason": "Error", "exitCode": 5}})],
            ),
            "crashes (Error, exit code 5)",
        ),
        (
            pod(
                container({"waiting": {"reason": "PodInitializing"}}),
                initContainerStatuses=[container({"terminated": {"reason": "Completed", "exitCode": 0}})],
            ),
            "waits (PodInitializing)",
        ),
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
