"""An intent that cannot be carried out, and the requests to it."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.executing.api_server import INTENT, STATUS, ApiServer
from tests.planning.situations import SPEC
from tests.strategies import NOW
from twgen.cli.live import Connections
from twgen.cli.rollouts_by_tick import RolloutsByTick
from twgen.clients.deadline import Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.executing.cluster import ClusterWriter
from twgen.executing.ports import RolloutView
from twgen.executing.unattended import carry_out
from twgen.model.rollout import AnswerState, Request, RolloutMetadata, Verb
from twgen.model.status import RolloutStatus
from twgen.reading.rollouts import read_rollout_status
from twgen.records.intent import Intent, UnusableIntent, intent_of, write_intent
from twgen.records.rollout_status import write_request
from twgen.versioning.names import REQUEST

WHY = "ConfigMap shop/payments-rollout was edited by hand"


class Unusable:
    """A cluster with an intent that was edited by hand, and a tick that sees it every eight seconds."""

    def __init__(self) -> None:
        self.api, self.wrote, self.time = ApiServer(), Counter[str](), NOW
        self.api.put(INTENT, write_intent(intent_of(SPEC, "me")))
        uid = self.api.objects[INTENT]["metadata"]["uid"]
        self.intent = replace(intent_of(SPEC, "me"), uid=uid)
        self.said: list[str] = []
        self.fails = 0

    async def ask(
        self, method: str, path: str, *arguments: Any, **more: Any
    ) -> tuple[int, Mapping[str, Any]]:
        if self.fails:
            self.fails -= 1
            return 503, {"message": "overloaded"}
        if method in {"POST", "PATCH"}:
            self.wrote[path.rpartition("/")[2]] += 1
        return await self.api.ask(method, path, *arguments, **more)

    def request(self, name: str, verb: Verb = Verb.ABORT) -> None:
        request = Request(name, verb, SPEC.build_id, NOW, "ana")
        self.api.annotate(STATUS, **{REQUEST: write_request(request)})

    def metadata(self) -> RolloutMetadata:
        annotations = self.api.objects.get(STATUS, {}).get("metadata", {}).get("annotations", {})
        return RolloutMetadata("shop", "payments-rollout", "h", self.intent.uid, annotations.get(REQUEST, ""))

    async def see(self, tasks: RolloutsByTick, minutes: int) -> None:
        for _ in range(minutes * 60 // 8):
            tasks.see([self.metadata()])
            for _ in range(30):
                await asyncio.sleep(0)
            self.time += timedelta(seconds=8)

    name = "shop/payments-rollout"

    async def read_intent(self, _: str) -> Intent:
        raise UnusableIntent(WHY, self.intent)

    async def read_status(self, intent: Intent) -> RolloutStatus | None:
        return await read_rollout_status(cast("KubernetesClient", self), "shop", intent.worker, Deadline(5))

    async def sleep(self, _: timedelta) -> None: ...

    def now(self) -> datetime:
        return self.time

    def writer(self, intent: Intent) -> ClusterWriter:
        return ClusterWriter(cast("KubernetesClient", self), intent, 5)

    def servers(self, _: Intent) -> Any:
        raise AssertionError

    def tasks(self) -> RolloutsByTick:
        self.view = RolloutView(self.said.append)
        return Tasks(self)


class Tasks(RolloutsByTick):
    def __init__(self, cluster: Unusable) -> None:
        unused: Any = None
        settings: Any = SimpleNamespace(shard=0, shards=1)
        super().__init__(unused, Connections(settings, unused, unused, unused, unused), print, print)
        self._steady = cluster.now
        self.cluster = cluster

    async def carry_out(self, metadata: RolloutMetadata) -> None:
        await carry_out(self.cluster, metadata.intent_hash, None)


def test_intent_that_cannot_be_carried_out_is_reported_once_also_by_the_next_process() -> None:
    async def story(cluster: Unusable) -> None:
        await cluster.see(cluster.tasks(), 10)
        await cluster.see(cluster.tasks(), 10)

    cluster = Unusable()
    asyncio.run(story(cluster))
    assert cluster.wrote == {"events": 1, "payments-rollout-status": 1}
    assert cluster.api.objects[STATUS]["data"]["message"] == WHY


@pytest.mark.parametrize("verb", [Verb.ABORT, Verb.RETRY])
def test_request_to_an_intent_that_cannot_be_carried_out_is_refused_once(verb: Verb) -> None:
    async def story(cluster: Unusable) -> None:
        tasks = cluster.tasks()
        await cluster.see(tasks, 1)
        for name in ("r1", "r2"):
            cluster.request(name, verb)
            await cluster.see(tasks, 10)

    cluster = Unusable()
    asyncio.run(story(cluster))
    assert [
        (answer["request"]["id"], answer["state"], answer["message"]) for answer in cluster.api.answers
    ] == [(name, AnswerState.REFUSED, WHY) for name in ("r1", "r2")]
    assert REQUEST not in cluster.api.objects[STATUS]["metadata"]["annotations"]
    assert cluster.wrote == {"events": 1, "payments-rollout-status": 3}, "one Event, one status, two answers"


def test_request_that_cannot_be_refused_at_once_is_refused_a_little_later() -> None:
    async def story(cluster: Unusable) -> None:
        tasks = cluster.tasks()
        await cluster.see(tasks, 1)
        cluster.request("r1")
        cluster.fails = 6
        await cluster.see(tasks, 1)

    cluster = Unusable()
    asyncio.run(story(cluster))
    [line] = [line for line in cluster.said if "its requests could not be answered" in line]
    assert line.startswith("shop/payments-rollout: ")
    assert [answer["state"] for answer in cluster.api.answers] == [AnswerState.REFUSED]
