"""What a rollout is told of its intent and of other rollouts, while both change."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.planning.situations import NOW
from tests.strategies import a_spec
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.plan import Phase
from twgen.model.rollout import RolloutInCluster
from twgen.model.status import RolloutStatus
from twgen.model.times import format_time
from twgen.reading.rollout import (
    RolloutReader,
    RolloutsInCluster,
    attached_objects,
    read_intent,
    rollouts_in_cluster,
    specs_of,
)
from twgen.records.intent import Intent, UnusableIntent, intent_of, write_intent
from twgen.records.rollout_status import write_rollout_status

OLD, NEW = (intent_of(a_spec(build_id=build_id), "twgen/me") for build_id in ("v3", "v4"))
NEWER_JOB = {"metadata": {"name": "newer", "uid": "u", "annotations": {"twgen.io/intent-hash": NEW.hash}}}


class Cluster:
    """Answers with what it holds; a newer intent and then its Job are applied before the nth request."""

    def __init__(self, *, newer_before: int = 99) -> None:
        self.intent: Mapping[str, Any] = write_intent(OLD)
        self.jobs: list[Mapping[str, Any]] = []
        self.pods: list[Mapping[str, Any]] = []
        self._newer_before = newer_before
        self._asked = 0

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        self._asked += 1
        is_newer = self._asked >= self._newer_before
        if path.startswith("/apis/autoscaling"):
            return 503, {"message": "no endpoints"}
        if "configmaps" in path:
            return 200, write_intent(NEW) if is_newer else self.intent
        if path.endswith("pods"):
            return 200, {"items": self.pods}
        return 200, {"items": [NEWER_JOB] if is_newer else self.jobs}


def read(cluster: Cluster) -> RolloutInCluster:
    reader = RolloutReader(cast("KubernetesClient", cluster), OLD)
    return asyncio.run(reader.read(Deadline(5)))


@pytest.mark.parametrize("newer_before", [1, 2, 3])
def test_job_of_a_newer_intent_is_never_taken_for_an_older_one(newer_before: int) -> None:
    assert read(Cluster(newer_before=newer_before)) == RolloutInCluster(is_superseded=True)


def test_intent_that_lost_its_annotation_by_hand_is_no_newer_one() -> None:
    cluster = Cluster()
    assert read(cluster) == RolloutInCluster()
    del cluster.intent["metadata"]["annotations"]
    with pytest.raises(StateUnavailable, match=r"edited by hand, it has no twgen\.io/intent-hash any more"):
        read(cluster)


def test_intent_of_a_newer_release_is_not_read_by_the_job_of_an_older_one() -> None:
    cluster = Cluster()
    cluster.intent["data"]["target"] = "what only a newer release understands"
    cluster.intent["metadata"]["annotations"]["twgen.io/intent-hash"] = "newer"
    client = cast("KubernetesClient", cluster)
    assert asyncio.run(read_intent(client, "shop", "payments-rollout", OLD.hash, Deadline(5))) is None
    with pytest.raises(InvalidInput, match="was edited by hand"):
        asyncio.run(read_intent(client, "shop", "payments-rollout", "newer", Deadline(5)))


def test_group_that_cannot_be_asked_for_is_not_taken_for_one_that_is_not_installed() -> None:
    client = cast("KubernetesClient", Cluster())
    with pytest.raises(StateUnavailable, match="/apis/autoscaling cannot be read: no endpoints"):
        asyncio.run(attached_objects(client, OLD, [GroupKind("autoscaling", "Any")], Deadline(5)))


def at(second: int, uid: str, intent: Intent = OLD, owner: str = "") -> Mapping[str, Any]:
    """A Job, or a Pod of one."""
    annotations = {"twgen.io/intent-hash": intent.hash}
    metadata = {"name": uid, "uid": uid, "annotations": annotations}
    owners = {"ownerReferences": [{"uid": owner}]} if owner else {}
    return {"metadata": metadata | owners | {"creationTimestamp": f"2026-11-21T12:00:{second:02}Z"}}


def test_jobs_of_one_intent_agree_on_which_of_them_is_the_older_one() -> None:
    cluster = Cluster()
    cluster.jobs = [at(5, "newest"), at(3, "first"), at(5, "a tie"), at(9, "another's", NEW)]
    cluster.pods = [at(6, "its pod", owner="newest"), at(4, "older pod", owner="first"), at(1, "by hand")]
    found = read(cluster)
    assert {job.name for job in found.older_jobs} == {"first", "a tie", "another's"}
    assert found.older_pods == ("older pod",)


def test_pod_whose_job_is_gone_is_waited_for() -> None:
    cluster = Cluster()
    cluster.jobs, cluster.pods = [at(5, "newest")], [at(4, "left over", owner="deleted")]
    assert read(cluster).older_pods == ("left over",)


class Fleet:
    """A cluster with the status of one rollout, and Jobs."""

    def __init__(self, *jobs: Mapping[str, Any], **told: Any) -> None:
        self.jobs = jobs
        told = {"phase": Phase.WAITING, "reason": "RampPaused", "message": "it stays at 25 %", **told}
        left = RolloutStatus(
            "shop/payments", target="v3", current="v1", percentage=25, since=NOW, document=DOCUMENT, **told
        )
        metadata = {"name": "payments-rollout-status", "namespace": "shop"}
        self.status = {"metadata": metadata, "data": write_rollout_status(left)}
        self.asked: list[str] = []

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        self.asked.append(path.rpartition("/")[2])
        if self.jobs == ("forbidden",) and path.endswith("jobs"):
            return 403, {"message": "jobs.batch is forbidden"}
        return 200, {"items": self.jobs if path.endswith("jobs") else [self.status]}

    def read(self) -> RolloutsInCluster:
        return asyncio.run(rollouts_in_cluster(cast("KubernetesClient", self), "shop", Deadline(5)))


DOCUMENT = {"workers": [{"worker": "shop/payments", "phase": "Waiting", "reason": "RampPaused"}]}


def job_of(name: str, second: int, worker: str = "payments", *, ended: bool = True) -> Mapping[str, Any]:
    found = at(second, name)
    metadata = {**found["metadata"], "namespace": "shop", "labels": {"twgen.io/rollout": worker}}
    how = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    end = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-11-21T13:00:00Z", **how}
    return {"metadata": metadata, "status": {"conditions": [end] if ended else []}}


def test_status_of_a_rollout_on_which_no_job_works_says_so() -> None:
    fleet = Fleet(job_of("first", 3), job_of("killed", 5), job_of("other", 9, "mail", ended=False))
    [status] = fleet.read().statuses
    message = (
        "nobody moves its traffic: Job killed has ended as Failed (BackoffLimitExceeded Job has reached the"
        " specified backoff limit); before, it was Waiting: it stays at 25 %"
    )
    assert (status.phase, status.reason, status.message) == (Phase.BLOCKED, "RolloutEnded", message)
    assert format_time(status.since) == "2026-11-21T13:00:00Z"
    [worker] = status.document["workers"]
    assert (worker["phase"], worker["reason"], worker["because"]) == ("Blocked", "RolloutEnded", message)
    assert fleet.asked == ["jobs", "configmaps"], (
        "a Job may end between the two, and has left its status then"
    )
    [status] = Fleet().read().statuses
    assert status.message.startswith("nobody moves its traffic: there is no Job of it; before")
    assert status.since == NOW


@pytest.mark.parametrize(
    "told",
    [
        {"phase": Phase.SETTLED, "reason": "Settled"},
        {"phase": Phase.BLOCKED, "reason": "GateFailed"},
        {"phase": Phase.BLOCKED, "reason": "Aborted"},
        {"phase": Phase.BLOCKED, "reason": "InvalidIntent"},
        {"phase": Phase.BLOCKED, "reason": "RolloutEnded"},
    ],
)
def test_status_of_a_rollout_that_has_ended_as_it_should_stays(told: Mapping[str, Any]) -> None:
    [status] = Fleet(job_of("ended", 5), **told).read().statuses
    assert (status.phase, status.reason, status.message) == (*told.values(), "it stays at 25 %")


def test_status_of_a_rollout_on_which_a_job_works_stays() -> None:
    [status] = Fleet(job_of("ended", 3), job_of("runs", 5, ended=False)).read().statuses
    assert status.reason == "RampPaused"


def test_status_is_told_as_it_is_where_nobody_may_see_jobs_and_that_is_told() -> None:
    found = Fleet("forbidden").read()  # type: ignore[arg-type]
    assert [status.reason for status in found.statuses] == ["RampPaused"]
    [told] = found.unusable
    assert told.startswith("nobody knows whether a Job works on these rollouts: ")
    assert told.endswith("/jobs cannot be read: jobs.batch is forbidden")


@pytest.mark.parametrize("change", [{"namespace": "mail"}, {"worker": "another"}, {"target": "v9"}])
def test_intent_speaks_only_for_its_own_worker_in_its_own_namespace(change: dict[str, str]) -> None:
    spec = replace(a_spec(), has_custom_build_id=False)
    with pytest.raises(UnusableIntent, match="and this release of twgen makes shop/payments:"):
        specs_of(replace(intent_of(spec, "me"), **change))  # type: ignore[arg-type]
