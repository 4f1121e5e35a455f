"""What a rollout changes and tells in its cluster, when the cluster does not take it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from tests.strategies import AUTOSCALER, NOW, a_spec, live_manifest, world
from twgen.errors import StateUnavailable
from twgen.executing.cluster import Adjustments, ClusterWriter, KubernetesEvent
from twgen.executing.journal import Journal
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import WorkerPlan
from twgen.model.spec import OwnerReferences
from twgen.model.status import Status
from twgen.model.world import JobReference, RolloutInCluster
from twgen.planning.cluster_changes import AttachedInCluster, ReplicasChange
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.records.intent import intent_of


@dataclass
class Writer:
    """Takes what it does not refuse."""

    refused: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    status: Mapping[str, str] = field(default_factory=dict)

    async def _write(self, what: str) -> None:
        if what in self.refused:
            raise StateUnavailable(f"{what}: refused")
        self.done.append(what)

    async def scale(self, change: ReplicasChange) -> None:
        await self._write(f"scale {change.deployment}")

    async def delete(self, path: str, uid: str) -> None:
        await self._write(f"delete {path} {uid}")

    async def delete_job(self, job: JobReference) -> None:
        await self._write(f"delete job {job.name}")

    async def record(self, status: Mapping[str, str]) -> None:
        await self._write(f"record {status['phase']}")
        self.status = status

    async def tell(self, event: KubernetesEvent) -> None:
        await self._write(f"tell {event.reason}")


def looked(**policy: Any) -> tuple[WorkerPlan, Status]:
    spec, me = replace(a_spec(), attached=(AUTOSCALER,)), Caller("twgen/me", forced=True)
    spec = replace(spec, policy=replace(spec.policy, **policy))
    found = world(None, [live_manifest(spec, "v3", 5)])
    plan = make_plan([spec], found, NOW, me)
    return plan.workers[0], make_status(plan, found, me)


def test_what_a_cluster_refuses_is_said_once_stops_nothing_else_and_is_tried_again() -> None:
    left = AttachedInCluster(GroupKind.of(AUTOSCALER.template), "/old", "old", "uid", frozenset({"uid-v3"}))
    said: list[str] = []
    told: list[str] = []
    writer = Writer({"scale payments-v3", "delete job older"})

    async def attached() -> list[AttachedInCluster]:
        return [left]

    async def tell_failure(failure: str) -> None:
        told.append(failure)

    adjustments = Adjustments(cast("ClusterWriter", writer), attached, said.append, tell_failure)
    older = RolloutInCluster(older_jobs=(JobReference("older", "uid"),))
    plan, _ = looked()
    asyncio.run(adjustments.make(plan, older))
    asyncio.run(adjustments.make(plan, older))
    assert writer.done == ["delete /old uid"]
    assert told == ["delete job older: refused", "scale payments-v3: refused"]
    assert [line for line in said if "refused" in line] == told
    writer.refused.clear()
    asyncio.run(adjustments.make(plan, RolloutInCluster()))
    asyncio.run(adjustments.make(plan, RolloutInCluster()))
    assert writer.done == ["delete /old uid", "scale payments-v3"]


def test_rollout_whose_objects_have_no_owners_does_not_ask_for_them() -> None:
    async def attached() -> list[AttachedInCluster]:
        raise AssertionError("its account may not list them")

    plan, _ = looked(owner_references=OwnerReferences.NONE)
    adjustments = Adjustments(cast("ClusterWriter", Writer()), attached, lambda _: None)
    asyncio.run(adjustments.make(plan, RolloutInCluster()))


def test_status_that_could_not_be_written_is_written_once_the_cluster_takes_it() -> None:
    writer, said, (plan, status) = Writer(), list[str](), looked()
    event, record = f"tell {plan.routing.reason}", f"record {plan.routing.phase}"
    journal = Journal(cast("ClusterWriter", writer), intent_of(a_spec(), "twgen/me"), said.append)
    writer.refused = {event, record}
    asyncio.run(journal.record(status))
    assert journal.unwritten is status
    writer.refused = {event}
    for _ in range(2):
        asyncio.run(journal.record(status))
    assert writer.done == [record], "an Event that is refused is no reason to write the status at every look"
    assert journal.unwritten is None
    writer.refused = set()
    for _ in range(2):
        asyncio.run(journal.record(status))
    assert writer.done == [record, event]
    assert said == [f"the status could not be written: {what}: refused" for what in (record, event)]


def test_status_says_why_a_look_failed_until_one_has_gone_well() -> None:
    writer, (_, status) = Writer(), looked()
    journal = Journal(cast("ClusterWriter", writer), intent_of(a_spec(), "twgen/me"), print)
    asyncio.run(journal.record(status))
    before = writer.status
    for _ in range(3):
        # a change that fails after each look that goes well
        asyncio.run(journal.fail("Temporal refuses it", NOW, is_current=True))
        asyncio.run(journal.record(status))
    message = f"{before['message']}; Temporal refuses it"
    assert writer.status == {**before, "message": message}
    assert [what for what in writer.done if what.startswith("record")] == [f"record {before['phase']}"] * 2
    assert writer.done.count("tell LookFailed") == 1
    asyncio.run(journal.record(status))
    assert writer.status == before


def test_rollout_that_could_read_nothing_yet_says_so_while_it_is_its_turn() -> None:
    writer, intent, (_, status) = Writer(), intent_of(a_spec(), "twgen/me"), looked()
    journal = Journal(cast("ClusterWriter", writer), intent, print)
    asyncio.run(journal.fail("Temporal is away", NOW, is_current=False))
    assert writer.done == ["tell LookFailed"]
    asyncio.run(journal.fail("Temporal is still away", NOW, is_current=True))
    shown = ("phase", "reason", "message", "target", "intent", "settled")
    message = "nothing could be read; Temporal is still away"
    assert [writer.status[name] for name in shown] == [
        *("Waiting", "LookFailed", message, intent.target, intent.hash, "")
    ]
    asyncio.run(journal.leave("a bug ended it", NOW))
    assert writer.status["reason"] == "RolloutEnded"
    assert "nothing could be read" in writer.status["message"]
    asyncio.run(journal.record(status))
    assert writer.status["reason"] == status.workers[0].plan.routing.reason
