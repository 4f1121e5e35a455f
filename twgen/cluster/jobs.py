"""Whether Jobs have ended, and which of them is the newest."""

from collections.abc import Iterable, Mapping
from typing import Any

from twgen.model.paths import value_at

Job = Mapping[str, Any]

_ENDS = ("Complete", "Failed")


def ending_of(job: Job) -> Mapping[str, Any] | None:
    """The condition by which a Job has ended; None: it has not."""
    conditions = value_at(job, "status", "conditions") or ()
    ends = (item for item in conditions if item["type"] in _ENDS and item["status"] == "True")
    return next(ends, None)


def oldest_first(jobs: Iterable[Job]) -> list[Job]:
    """Jobs by when they were created; of two in the same second all must take the same for newer."""
    return sorted(
        jobs,
        key=lambda job: (
            str(value_at(job, "metadata", "creationTimestamp")),
            str(value_at(job, "metadata", "uid")),
        ),
    )
