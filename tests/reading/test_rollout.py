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
from twgen.reading.rollout import (
    RolloutReader,
    attached_objects,
    read_intent,
    specs_of,
)
from twgen.records.intent import Intent, UnusableIntent, intent_of, write_intent

OLD, NEW = (intent_of(a_spec(build_id=build_id), "twgen/me") for build_id in ("v3", "v4"))
NEWER_JOB = {
    "metadata": {
        "name": "newer",
        "namespace": "shop",
        "uid": "u",
        "annotations": {"twgen.io/intent-hash": NEW.hash},
    }
}


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


@pytest.mark.parametrize("answer", [{"items": []}, {"metadata": {"name": "another"}}])
def test_intent_that_another_object_answers_for_is_not_taken_for_gone(answer: Mapping[str, Any]) -> None:
    cluster = Cluster()
    cluster.intent = answer
    client = cast("KubernetesClient", cluster)
    with pytest.raises(StateUnavailable, match=r"payments-rollout cannot be read: what .* is another object"):
        asyncio.run(read_intent(client, "shop", "payments-rollout", OLD.hash, Deadline(5)))


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
    metadata = {"name": uid, "namespace": "shop", "uid": uid, "annotations": annotations}
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


@pytest.mark.parametrize("change", [{"namespace": "mail"}, {"worker": "another"}, {"target": "v9"}])
def test_intent_speaks_only_for_its_own_worker_in_its_own_namespace(change: dict[str, str]) -> None:
    spec = replace(a_spec(), has_custom_build_id=False)
    with pytest.raises(UnusableIntent, match="and this release of twgen makes shop/payments:"):
        specs_of(replace(intent_of(spec, "me"), **change))  # type: ignore[arg-type]
