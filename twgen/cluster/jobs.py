"""Whether Jobs have ended, and which of them is the newest."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.times import parse_time

Job = Mapping[str, Any]

_ENDS = ("Complete", "Failed")


class JobEnd(NamedTuple):
    """How a Job has ended, and when."""

    type: str
    """`Complete` or `Failed`."""
    why: str
    at: datetime


def end_of_job(job: Job) -> JobEnd | None:
    """How a Job has ended; None: it has not ended.

    A status written by others may lack the time of the end: then it is the time of the Job's creation.
    """
    conditions = value_at(job, "status", "conditions") or ()
    ends = (item for item in conditions if item["type"] in _ENDS and item["status"] == "True")
    if not (end := next(ends, None)):
        return None
    why = " ".join(filter(None, (end.get("reason"), end.get("message"))))
    try:
        at = parse_time(end.get("lastTransitionTime") or "")
    except ValueError:
        at = parse_time(job["metadata"]["creationTimestamp"])
    return JobEnd(end["type"], why, at)


def is_older(job: Job, than: Mapping[str, Any]) -> bool:
    """The Job was created before another object; False if one of them has no time."""
    try:
        created, other = (
            parse_time(value_at(item, "metadata", "creationTimestamp") or "") for item in (job, than)
        )
    except ValueError:
        return False
    return created < other


def oldest_first(jobs: Iterable[Job]) -> list[Job]:
    """Jobs by creation time; two of the same second always get the same order."""
    return sorted(
        jobs,
        key=lambda job: (
            str(value_at(job, "metadata", "creationTimestamp")),
            str(value_at(job, "metadata", "uid")),
        ),
    )
