"""Statuses that differ from a document with every field."""

from typing import Any

from tests.schemas.documents import STATUS
from twgen.model.shapes import Findings
from twgen.model.status import Status
from twgen.records.rollout_status import STATUS as SHAPE


def reported(versions: list[dict[str, Any]] | None = None, **worker: Any) -> Status:
    """The status as it is read, but its worker, or its only version, has these other fields."""
    [usual] = STATUS["workers"]
    of_versions = [{}] if versions is None else versions
    changed = {**usual, "versions": [usual["versions"][0] | version for version in of_versions], **worker}
    findings = Findings()
    status: Status = SHAPE.read({**STATUS, "workers": [changed]}, None, findings)
    assert not findings.problems
    return status
