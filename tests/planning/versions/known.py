"""What Temporal knows of a worker whose target is v3."""

from datetime import timedelta
from typing import Any

from tests.planning.situations import drained, routing, temporal, version
from tests.planning.times import HOUR, ago
from twgen.model.plan import VersionAction
from twgen.model.temporal import Version, VersionStatus, WorkerDeployment

KEEP, SCALE_DOWN, DROP = VersionAction.KEEP, VersionAction.SCALE_DOWN, VersionAction.DROP
S = VersionStatus
TARGET = version("v3")


def knows(*versions: Version, current: str | None = None, **facts: Any) -> WorkerDeployment:
    return temporal(TARGET, *versions, traffic=routing(current), **facts)


def v1(status: S = S.INACTIVE, **facts: Any) -> WorkerDeployment:
    return knows(version("v1", status, **facts))


def drained_v1(age: timedelta | None, **facts: Any) -> WorkerDeployment:
    return knows(drained(age, **facts))


CURRENT = knows(version("v1", S.CURRENT), current="v1")
INACTIVE = v1(created_at=ago(30 * HOUR))
UNREGISTERED = knows()
