"""One Pod of a rollout in a modelled cluster, which runs the code that a real one runs."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.executing.api_server import DEPLOYMENTS, EVENTS, INTENT, JOBS, PODS, STATUS
from tests.executing.trouble import SLOW, Client
from tests.planning.situations import NOW, live
from tests.strategies import SIZED_BY_HPA
from twgen.clients.deadline import Deadline
from twgen.cluster.deployments import live_deployments
from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.executing.ports import Reported, RolloutView
from twgen.executing.unattended import carry_out
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.plan import RoutingPlan, WorkerPlan
from twgen.model.rollout import RolloutInCluster
from twgen.model.status import RolloutStatus
from twgen.model.world import LiveDeployment, World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.reading.objects import attached_objects
from twgen.reading.rollouts import RolloutReader, read_intent, read_reported, read_rollout_status
from twgen.records.intent import Intent
from twgen.versioning.names import INTENT_HASH, MarkKey

if TYPE_CHECKING:
    from tests.executing.in_cluster import Cluster

BUILD_IDS = ("v1", "v3", "v4")


@cache
def _live(build_id: str, replicas: int, *, is_scaled: bool) -> LiveDeployment:
    managers = {"managedFields": SIZED_BY_HPA} if is_scaled else {}
    (found,) = live_deployments([live(build_id, replicas, **managers)])
    return found


@dataclass
class Pod(Client):
    """One run of a rollout in the cluster: it reads and writes through the real readers and writers."""

    server: "Cluster"
    intent: Intent = None
    stood: bool = False
    """By the truth at the moment of its last read: its intent did, and nobody had annotated it."""
    seen_at: datetime = NOW
    """When it read its intent last, in full or only its routing."""
    was_alone: bool = False
    since: str = ""
    """When its Job was created."""
    is_own: bool = False
    """By the truth when it read its intent last, be it beside its looks: nobody had superseded it."""

    def __post_init__(self) -> None:
        self.beside: Any = Beside(self)

    async def read(self) -> World:
        world = await super().read()
        deployments = tuple(
            _live(
                next(build_id for build_id in BUILD_IDS if item["metadata"]["name"].endswith(build_id)),
                item["spec"]["replicas"],
                is_scaled=bool(item["metadata"].get("managedFields")),
            )
            for item in self.server.api.listed(DEPLOYMENTS)
        )
        ((key, worker),) = world.workers.items()
        return World(self.server.model.now, {key: replace(worker, deployments=deployments)})

    async def state(self) -> RolloutInCluster:
        """What its cluster says, without which a read of Temporal justifies nothing."""
        read, self.read_last = self.read_last, None
        found = await self.reader.read(Deadline(9))
        self.is_requested = self.server.requested > 0
        self.was_alone, self.read_last = not self._others(), read
        return found

    def _others(self) -> list[str]:
        return [
            item["metadata"]["name"]
            for item in self.server.api.listed(PODS)
            if item["status"]["phase"] == "Running"
            and (
                item["metadata"]["annotations"][INTENT_HASH] != self.intent.hash
                or item["metadata"]["creationTimestamp"] < self.since
            )
        ]

    def sees_intent(self) -> bool:
        """Whether it stands, and nobody has annotated it."""
        manifest = self.server.api.objects.get(INTENT, {})
        annotations = value_at(manifest, "metadata", "annotations") or {}
        self.is_own = annotations.get(INTENT_HASH) == self.intent.hash
        return self.is_own and MarkKey.PAUSED not in annotations

    async def ask(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        query: Any = None,
        body: Any = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """As a KubernetesClient, with trouble."""
        if path == STATUS or path.startswith(EVENTS):
            return await self.beside.ask(method, path, deadline, query=query, body=body)
        api, before = self.server.api, self.server.serving()
        trouble = await self._trouble()
        if trouble == "slow":
            await self.server.sleep(SLOW)
        if path == INTENT:
            self.stood, self.seen_at = self.sees_intent(), self.server.model.now
        if method != "GET" and not path.startswith(JOBS):
            assert self.stood, f"{method} {path} after a newer intent, or while paused"
            assert self.was_alone, f"{method} {path} beside an older rollout"
        if method == "DELETE" and path.startswith(JOBS):
            job = api.objects.get(path)
            if job and job["metadata"]["uid"] == body["preconditions"]["uid"]:
                is_newest = path.rpartition("/")[2] == self.server.job_name
                is_ours = job["metadata"]["annotations"][INTENT_HASH] == self.intent.hash
                assert not (is_ours and is_newest), "the Job that is to run"
                self.server.end_job(path.rpartition("/")[2])
            return 200, {}
        if method == "PATCH":
            body = {**body, "metadata": {**body["metadata"], "managedFields": SIZED_BY_HPA}}
        answer = await api.ask(method, path, deadline, query=query, body=body)
        assert before <= self.server.serving() or method == "GET", "it takes pods away"
        if trouble == "lost answer":
            raise OutOfTime("nobody knows")
        return answer

    async def route(self, change: RoutingPlan, conflict_token: str) -> None:
        assert self.seen_at == self.server.model.now, "traffic, by an intent that was read some time ago"
        await super().route(change, conflict_token)

    async def _write(self, name: str, apply: Any, conflict_token: str | None = None) -> None:
        assert self.stood, f"{name} after a newer intent, or while paused"
        assert self.was_alone, f"{name} beside an older rollout"
        await super()._write(name, apply, conflict_token)

    async def _trouble(self) -> str:
        trouble = await super()._trouble()
        if trouble == "killed":
            raise asyncio.CancelledError
        return trouble

    async def attached(self) -> list[AttachedInCluster]:
        kinds = (GroupKind("autoscaling", "HorizontalPodAutoscaler"),)
        return await attached_objects(self, replace(self.intent, attached_kinds=kinds), Deadline(9))

    async def reported(self) -> Reported:
        requests, entries = await read_reported(self.beside, self.intent, Deadline(9))
        return Reported(requests, entries, is_news=bool(requests))

    async def replay_again(self) -> str:
        raise AssertionError("none of its specs has a replay")

    async def read_intent(self, told: str) -> Intent | None:
        return await read_intent(self.beside, "shop", f"{self.intent.worker}-rollout", told, Deadline(9))

    async def read_status(self, intent: Intent) -> RolloutStatus | None:
        return await read_rollout_status(self.beside, "shop", intent.worker, Deadline(9))

    def writer(self, intent: Intent) -> ClusterWriter:
        return ClusterWriter(self, intent, 9)

    def servers(self, intent: Intent) -> "Pod":
        assert intent.hash == self.intent.hash, "another one than the Job is for"
        self.intent, self.cluster, self.reader = intent, self.writer(intent), RolloutReader(self, intent)
        return self

    def carrying_out(self) -> Coroutine[Any, Any, WorkerPlan | None]:
        """As `twgen rollout --intent` does it."""
        self.name, self.view = f"shop/{self.intent.worker}-rollout", RolloutView(self.said.append)
        return carry_out(self, self.intent.hash, None)


@dataclass
class Beside:
    """A Pod's way to its API server beside its looks: to its intent, its status and its Events."""

    pod: Pod

    async def ask(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        query: Any = None,
        body: Any = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """As a KubernetesClient, with trouble."""
        server = self.pod.server
        trouble = server.beside.pop(0) if server.beside else ""
        match trouble:
            case "killed":
                raise asyncio.CancelledError
            case "refused":
                raise StateUnavailable("refused")
            case "lost request":
                raise OutOfTime("nobody knows")
            case "slow":
                await server.sleep(SLOW)
            case "paused":
                server.api.annotate(INTENT, **{MarkKey.PAUSED: "true"})
                await server.sleep(SLOW)
            case "newer":
                server.apply("newer")
                await server.sleep(SLOW)
        if path == INTENT:
            self.pod.sees_intent()
        assert path != STATUS or method == "GET" or self.pod.is_own, "a status of somebody else's intent"
        self.pod.is_requested = server.requested > 0  # also since its last look
        answer = await server.api.ask(method, path, deadline, query=query, body=body)
        if trouble == "lost answer":
            raise OutOfTime("nobody knows")
        return answer
