"""What a rollout is told of its intent and of other rollouts, while both change."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.strategies import a_spec
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.rollout import RolloutInCluster
from twgen.planning.cluster_changes import Condition
from twgen.reading.objects import attached_objects, read_attached
from twgen.reading.rollouts import RolloutReader, read_intent, specs_of
from twgen.records.intent import Intent, UnusableIntent, intent_of, write_intent

OLD, NEW = (replace(intent_of(a_spec(build_id=build_id), "twgen/me"), uid="1") for build_id in ("v3", "v4"))
NEWER_JOB = {
    "metadata": {
        "name": "newer",
        "namespace": "shop",
        "uid": "u",
        "creationTimestamp": "2026-11-21T12:00:00Z",
        "annotations": {"twgen.io/intent-hash": NEW.hash},
    }
}


class Cluster:
    """Answers with what it holds; a newer intent and then its Job are applied before the nth request."""

    def __init__(self, *, newer_before: int = 99) -> None:
        self.intent: Mapping[str, Any] = write_intent(OLD)
        self.intent["metadata"]["uid"] = "1"
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


def test_intent_that_was_deleted_and_made_again_is_another_one() -> None:
    cluster = Cluster()
    cluster.intent["metadata"]["uid"] = "2"
    assert read(cluster) == RolloutInCluster(is_superseded=True)


def test_intent_that_lost_its_annotation_by_hand_is_no_newer_one() -> None:
    cluster = Cluster()
    assert read(cluster) == RolloutInCluster()
    del cluster.intent["metadata"]["annotations"]
    with pytest.raises(StateUnavailable, match=r"edited by hand, and twgen\.io/intent-hash is missing"):
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
    intent = replace(OLD, attached_kinds=(GroupKind("autoscaling", "Any"),))
    with pytest.raises(StateUnavailable, match="/apis/autoscaling cannot be read: no endpoints"):
        asyncio.run(attached_objects(client, intent, Deadline(5)))


def at(second: int, uid: str, intent: Intent = OLD, owner: str = "") -> Mapping[str, Any]:
    """A Job, or a Pod of one."""
    annotations = {"twgen.io/intent-hash": intent.hash}
    metadata = {"name": uid, "namespace": "shop", "uid": uid, "annotations": annotations}
    owners = {"ownerReferences": [{"uid": owner}]} if owner else {}
    return {"metadata": metadata | owners | {"creationTimestamp": f"2026-11-21T12:00:{second:02}Z"}}


def test_jobs_of_one_intent_agree_on_which_of_them_is_the_older_one() -> None:
    cluster = Cluster()
    cluster.jobs = [at(5, "newest"), at(3, "first"), at(5, "a-tie"), at(9, "another-one", NEW)]
    cluster.pods = [at(6, "its-pod", owner="newest"), at(4, "older-pod", owner="first"), at(1, "by-hand")]
    found = read(cluster)
    assert {job.name for job in found.older_jobs} == {"first", "a-tie", "another-one"}
    assert found.older_pods == ("older-pod",)


def test_pod_whose_job_is_gone_is_waited_for() -> None:
    cluster = Cluster()
    cluster.jobs, cluster.pods = [at(5, "newest")], [at(4, "left-over", owner="deleted")]
    assert read(cluster).older_pods == ("left-over",)


def test_rollout_in_place_of_a_hook_goes_on_only_until_that_has_a_job() -> None:
    cluster = Cluster()
    reader = RolloutReader(cast("KubernetesClient", cluster), OLD, in_place_of_hook=True)

    def state() -> RolloutInCluster:
        return asyncio.run(reader.read(Deadline(5)))

    assert state() == RolloutInCluster()
    cluster.pods = [at(5, "of-a-deleted-job")]
    assert state().older_pods == ("of-a-deleted-job",), "it may still move the traffic"
    cluster.pods = []
    cluster.jobs = [at(5, "its-hook")]
    assert state() == RolloutInCluster(is_superseded=True)


@pytest.mark.parametrize(("has_ended", "goes_on"), [(True, True), (False, False)])
def test_hook_that_ended_before_its_intent_was_made_again_takes_nothing_back(
    *, has_ended: bool, goes_on: bool
) -> None:
    cluster = Cluster()
    cluster.intent["metadata"]["creationTimestamp"] = "2026-11-21T12:30:00Z"
    end = {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-21T12:10:00Z"}
    cluster.jobs = [{**at(5, "its-hook"), "status": {"conditions": [end] if has_ended else []}}]
    reader = RolloutReader(cast("KubernetesClient", cluster), OLD, in_place_of_hook=True)
    assert asyncio.run(reader.read(Deadline(5))).is_superseded is not goes_on


@pytest.mark.parametrize("change", [{"namespace": "mail"}, {"worker": "another"}, {"target": "v9"}])
def test_intent_speaks_only_for_its_own_worker_in_its_own_namespace(change: dict[str, str]) -> None:
    spec = replace(a_spec(), has_custom_build_id=False)
    with pytest.raises(UnusableIntent, match="but this release of twgen parses it as shop/payments:"):
        specs_of(replace(intent_of(spec, "me"), **change))  # type: ignore[arg-type]


def test_what_objects_say_of_themselves_is_read_and_a_kind_that_may_not_be_listed_stops_no_other() -> None:
    asked: list[str] = []
    said = {"type": "ScalingActive", "status": "False", "reason": "Failed", "message": "no\n  metric"}
    conditions = [said, {"type": "AbleToScale"}, "by hand"]

    class Attached:
        async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
            asked.append(path)
            group = path.removeprefix("/apis/")
            if "/" not in group:
                return 200, {"preferredVersion": {"groupVersion": f"{group}/v1"}}
            if "policy" in path:
                return 403, {"message": "forbidden"}
            metadata = {"name": "cpu", "namespace": "shop", "uid": "u"}
            item = {"metadata": metadata, "status": {"conditions": conditions}}
            return 200, {"items": [item]}

    kinds = {GroupKind("policy", "PodDisruptionBudget"), GroupKind("autoscaling", "HorizontalPodAutoscaler")}
    client = cast("KubernetesClient", Attached())
    read = asyncio.run(read_attached(client, {"shop": kinds}, Deadline(5)))["shop"]
    [item] = read.found
    assert item.conditions == (
        Condition("ScalingActive", "False", "Failed", "no metric"),
        Condition("AbleToScale", "", "", ""),
    )
    path = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
    assert read.unread == {"PodDisruptionBudget": f"{path} cannot be read: forbidden"}
    assert len(asked) == 4, "one list of each kind, and which version of its group is served"
