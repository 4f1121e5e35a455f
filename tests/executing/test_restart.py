"""Starting the Job of a rollout again, and what a person reads where that does not work."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import OutOfTime
from twgen.executing.cluster import restart_job
from twgen.versioning.names import rollout_selector

ENDED = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
LATE = "Kubernetes did not answer within 5 s"
AGAIN = "Argo CD recreates the Job; without Argo CD, apply the output of `twgen render` again"
DELETE = "run `kubectl delete job newest -n shop`, and " + AGAIN
WAIT = "run `kubectl wait job/newest -n shop --for=delete --timeout=10m`, and " + AGAIN


def job(name: str, second: int, **more: Any) -> Mapping[str, Any]:
    created = {"name": name, "uid": name, "creationTimestamp": f"2026-11-21T12:00:{second:02}Z"}
    return {"metadata": created, "spec": {"template": {"metadata": {}}}, **more}


class Cluster:
    """Answers each method with one status, or not in time (None); deletions and creations are kept."""

    def __init__(self, *jobs: Mapping[str, Any], live: str = "newest", **statuses: int | None) -> None:
        self.jobs = jobs
        self.live = live
        """The UID of the Job that has its name by now."""
        self.statuses = {"GET": 200, "DELETE": 200, "POST": 201, **statuses}
        self.done: list[str] = []

    async def ask(self, method: str, path: str, *_: object, **__: object) -> tuple[int, Mapping[str, Any]]:
        status = self.statuses[method]
        if status is None:
            raise OutOfTime(LATE)
        self.done.append(f"{method} {path.rpartition('/')[2]}")
        if status >= 400:
            return status, {"message": f"{method} is not for you"} if status == 403 else {}
        return status, {"items": self.jobs} if path.endswith("jobs") else {"metadata": {"uid": self.live}}


def restarted(cluster: Cluster, seconds: float = 5) -> str:
    return asyncio.run(
        restart_job(
            cast("KubernetesClient", cluster), "shop", rollout_selector("payments"), Deadline(seconds)
        )
    )


def test_newest_job_is_started_again_when_it_has_ended() -> None:
    cluster = Cluster(job("newest", 5, **ENDED), job("older", 3, **ENDED))
    assert restarted(cluster) == "restarted Job newest"
    assert cluster.done == ["GET jobs", "DELETE newest", "POST jobs"]


def test_job_that_runs_is_left_alone_whatever_ended_before_it() -> None:
    cluster = Cluster(job("newest", 5), job("older", 3, **ENDED))
    assert restarted(cluster) == ""
    assert cluster.done == ["GET jobs"]
    assert restarted(Cluster()) == ""


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        (
            {"DELETE": 403},
            f"Job newest has ended, but could not be restarted (DELETE is not for you): {DELETE}",
        ),
        (
            {"DELETE": None},
            f"Job newest has ended, but could not be restarted ({LATE}): {DELETE}",
        ),
        ({"POST": 403}, f"Job newest was deleted, but could not be recreated (POST is not for you): {WAIT}"),
        (
            {"POST": 409},
            f"Job newest was deleted, but could not be recreated (the API server answered 409): {WAIT}",
        ),
        (
            {"POST": None},
            f"Job newest was deleted, but could not be recreated ({LATE}): {WAIT}",
        ),
    ],
)
def test_whoever_has_to_start_it_by_hand_reads_the_command(
    statuses: Mapping[str, int | None], told: str
) -> None:
    assert restarted(Cluster(job("newest", 5, **ENDED), **statuses), seconds=2) == told


def test_job_that_argo_cd_has_made_again_meanwhile_is_not_waited_for() -> None:
    cluster = Cluster(job("newest", 5, **ENDED), live="another", POST=409)
    assert restarted(cluster) == "another client restarted Job newest"


@pytest.mark.parametrize("status", [403, None])
def test_whoever_may_not_see_jobs_reads_where_to_look(status: int | None) -> None:
    told = restarted(Cluster(GET=status))
    assert told.startswith("could not check whether its Job has ended (")
    assert told.endswith("): run `kubectl get jobs -n shop -l twgen.io/rollout=payments`")
