"""How far the replay of a target is, by the Jobs of its namespace."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC
from tests.strategies import with_policy
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.model.policy import Replay, Sample
from twgen.model.world import ReplayRun, ReplayState
from twgen.planning.routing.gates import replay_of
from twgen.reading.kubernetes import ClusterReader
from twgen.versioning.names import REPLAY_OF

REPLAYS = with_policy(SPEC, replay=Replay(("replay",), Sample(5, 1000)))


class Cluster(KubernetesClient):
    """Answers every request with one status and these Jobs."""

    def __init__(self, *jobs: Mapping[str, Any], status: int = 200) -> None:
        self.answer = status, {"items": list(jobs)} if status == 200 else {"message": "no"}
        self.asked: list[tuple[str, Any]] = []

    async def ask(self, method: str, path: str, deadline: Deadline, **more: Any) -> Any:  # noqa: ARG002
        self.asked.append((f"{method} {path}", more["query"]))
        return self.answer


def job(
    name: str, ended: str = "", of: str = replay_of(REPLAYS), second: int = 0, **metadata: Any
) -> dict[str, Any]:
    created = f"2026-11-21T12:00:{second:02}Z"
    told = {
        "name": name,
        "namespace": "shop",
        "uid": name,
        "creationTimestamp": created,
        "annotations": {REPLAY_OF: of},
    }
    condition = {"type": ended, "status": "True", "reason": "BackoffLimitExceeded", "message": "it\nfailed"}
    return {"metadata": told | metadata, "status": {"conditions": [condition] if ended else []}}


def read(cluster: Cluster) -> ReplayRun:
    return asyncio.run(ClusterReader(cluster, Deadline(30)).replay(REPLAYS))


@pytest.mark.parametrize(
    ("jobs", "run"),
    [
        ([], ReplayRun(ReplayState.MISSING)),
        ([job("a", of="of another version")], ReplayRun(ReplayState.MISSING)),
        ([job("a", deletionTimestamp="2026-11-21T12:00:00Z")], ReplayRun(ReplayState.MISSING)),
        ([job("a")], ReplayRun(ReplayState.RUNNING, "a")),
        ([job("a") | {"spec": {"suspend": True}}], ReplayRun(ReplayState.MISSING, "a", "Job a is suspended")),
        ([job("a", "Complete")], ReplayRun(ReplayState.PASSED, "a")),
        ([job("a", "Failed")], ReplayRun(ReplayState.FAILED, "a", "BackoffLimitExceeded it failed")),
        # the Job of another image of twgen for the same
        ([job("b", second=9), job("a", "Complete")], ReplayRun(ReplayState.RUNNING, "b")),
        ([job("a", second=1), job("b", "Failed")], ReplayRun(ReplayState.RUNNING, "a")),
    ],
)
def test_newest_job_of_the_version_tells(jobs: list[dict[str, Any]], run: ReplayRun) -> None:
    cluster = Cluster(*jobs)
    found = read(cluster)
    assert replace(found, created_at=None) == run
    assert (found.created_at is None) is not bool(run.job)
    wanted = {"labelSelector": "twgen.io/replay=payments"}
    assert cluster.asked == [("GET /apis/batch/v1/namespaces/shop/jobs", wanted)]


def test_account_that_may_not_look_is_told_and_a_server_that_is_away_is_a_failure() -> None:
    run = read(Cluster(status=403))
    assert (run.state, "needs the verb list on jobs" in run.because) == (ReplayState.MISSING, True)
    with pytest.raises(StateUnavailable, match="cannot be read: no"):
        read(Cluster(status=500))
