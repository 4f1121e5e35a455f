"""What a rollout is told of its intent and of other rollouts, while both change."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tests.strategies import a_spec
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import InvalidInput, StateUnavailable
from twgen.model.operator import GroupKind
from twgen.model.world import RolloutInCluster
from twgen.reading.rollout import RolloutReader, attached_objects, read_intent
from twgen.records.intent import intent_of, write_intent

OLD, NEW = (intent_of(a_spec(build_id=build_id), "twgen/me") for build_id in ("v3", "v4"))
NEWER_JOB = {"metadata": {"name": "newer", "uid": "u", "annotations": {"twgen.io/intent-hash": NEW.hash}}}


class Cluster:
    """Answers with what it holds; a newer intent and then its Job are applied before the nth request."""

    def __init__(self, *, newer_before: int = 99) -> None:
        self.intent: Mapping[str, Any] = write_intent(OLD)
        self._newer_before = newer_before
        self._asked = 0

    async def ask(self, _: str, path: str, *__: object, **___: object) -> tuple[int, Mapping[str, Any]]:
        self._asked += 1
        is_newer = self._asked >= self._newer_before
        if path.startswith("/apis/autoscaling"):
            return 503, {"message": "no endpoints"}
        if "configmaps" in path:
            return 200, write_intent(NEW) if is_newer else self.intent
        return 200, {"items": [NEWER_JOB] if is_newer and path.endswith("jobs") else []}


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
