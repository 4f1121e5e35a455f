"""A Status document with every field."""

from typing import Any

from tests.schemas.documents import NOW
from twgen.model.shapes import Findings
from twgen.model.status import Status
from twgen.records.rollout_status import STATUS as SHAPE

STATUS: dict[str, Any] = {
    "apiVersion": "twgen.io/v1alpha1",
    "kind": "Status",
    "now": NOW,
    "workers": [
        {
            "worker": "d/w",
            "temporalNamespace": "t",
            "targetBuildID": "a",
            "phase": "Waiting",
            "reason": "RampPaused",
            "because": "it stays at 5% for 1min more",
            "unserved": "",
            "next": {"action": "SetRamp", "buildID": "a", "percentage": 25, "at": NOW},
            "waitsUntil": NOW,
            "owner": {"identity": "", "relation": "Nobody"},
            "lastModifierIdentity": "",
            "steps": [{"percentage": 5, "place": "Present", "gate": "", "untilPromoted": False}],
            "gates": [{"taskQueue": "main", "workflowID": "i", "workflowType": "g", "status": "NotStarted"}],
            "analysis": [{"metric": "m", "verdict": "Passes", "value": 0.1, "bound": None, "because": "b"}],
            "draining": [
                {
                    "buildID": "a",
                    "action": "Signal",
                    "workflowTypes": ["t"],
                    "at": NOW,
                    "begun": True,
                    "workflows": None,
                    "repeats": 0,
                    "heldBy": "",
                }
            ],
            "request": {
                "id": "r1",
                "verb": "Abort",
                "targetBuildID": "a",
                "by": "ana",
                "at": NOW,
                "state": "Refused",
                "message": "it is current",
            },
            "unversionedPercentage": 95,
            "versionCount": {"deployed": 1, "maxVersions": 75, "registered": 2, "mostRegistered": 100},
            "versions": [
                {
                    "buildID": "a",
                    "isTarget": True,
                    "status": "Ramping",
                    "percentage": 5,
                    "since": NOW,
                    "movedBy": None,
                    "openWorkflows": None,
                    "oldestOpenAt": None,
                    "taskQueues": [
                        {"name": "main", "type": "Workflow", "pollers": None, "unversionedPollers": False}
                    ],
                    "deployment": "w-a",
                    "clusterWasRead": True,
                    "pods": {
                        "available": 1,
                        "wanted": 3,
                        "terminating": False,
                        "paused": False,
                        "stalled": "",
                        "problem": "CrashLoopBackOff",
                    },
                    "attached": [
                        {
                            "kind": "HorizontalPodAutoscaler",
                            "name": "w-cpu-a",
                            "state": "Failing",
                            "message": "ScalingActive is False",
                        }
                    ],
                    "action": "Keep",
                    "reason": "Target",
                    "because": "it is the target",
                    "next": {"action": "ScaleDown", "at": NOW},
                }
            ],
            "warnings": [],
        }
    ],
    "warnings": [],
}


def reported(versions: list[dict[str, Any]] | None = None, **worker: Any) -> Status:
    """The status as it is read, but its worker, or its only version, has these other fields."""
    [usual] = STATUS["workers"]
    of_versions = [{}] if versions is None else versions
    changed = {**usual, "versions": [usual["versions"][0] | version for version in of_versions], **worker}
    findings = Findings()
    status: Status = SHAPE.read({**STATUS, "workers": [changed]}, None, findings)
    assert not findings.problems
    return status
