"""What a rollout changes in its cluster, and what it leaves there to read."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.situations import MAIN, NOW, RAMPS, live, routing, situation, temporal, version
from tests.planning.times import MINUTE, SECOND
from tests.strategies import AUTOSCALER, with_policy
from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.adjustments import Adjustments
from twgen.executing.journal import Journal
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.rollout import JobReference, RolloutInCluster
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster, Owning, ReplicasChange
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.records.intent import intent_of
from twgen.versioning.names import attached_resource_name

ME = Caller("me", forced=True, drives=True)
SCALED = replace(RAMPS, attached=(AUTOSCALER,), replicas=None)
OTHER = replace(MAIN, name="other")
KIND = GroupKind("autoscaling", "HorizontalPodAutoscaler")
OWNED = frozenset({"uid-v1"})
LEFT = [AttachedInCluster(KIND, f"/apis/{n}", "v2", n, f"uid-{n}", OWNED) for n in ("one", "two")]
WANTED = [
    AttachedInCluster(KIND, f"/apis/{n}", "v2", n, f"uid-{n}", frozenset())
    for n in (attached_resource_name("payments", "cpu", build_id) for build_id in ("v1", "v3"))
]
REFUSED, LATE = StateUnavailable("the API server refuses"), OutOfTime("the API server did not answer")


ALL_OF_THEM = [
    *LEFT,
    *(replace(item, owners=frozenset({uid})) for item, uid in zip(WANTED, ("uid-v1", "uid-v3"), strict=True)),
]


@dataclass
class Writer:
    """A cluster that takes what it is told, but for these failures, which come first."""

    failures: list[Exception | None] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def scale(self, change: ReplicasChange) -> None:
        self._do(f"scale {change.deployment} {change.replicas}")

    async def delete(self, path: str, uid: str) -> None:
        self._do(f"delete {path} {uid}")

    async def own(self, owning: Owning) -> None:
        self._do(f"{owning.deployment} owns {owning.item.name}")

    async def delete_job(self, job: JobReference) -> None:
        self._do(f"delete {job.name}")

    async def record(self, status: Any) -> None:
        self._do(f"record {status['reason']}")

    async def add_event(self, kind: str, reason: str, *_: object) -> None:
        self._do(f"{kind} {reason}")

    async def report(self, failure: str) -> None:
        self.told.append(failure)

    def _do(self, what: str) -> None:
        if failure := self.failures.pop(0) if self.failures else None:
            raise failure
        self.done.append(what)


def world(percentage: float | None = 5, age: timedelta = MINUTE, **rollout: Any) -> World:
    says = temporal(
        version("v1", VersionStatus.CURRENT),
        version(status=VersionStatus.RAMPING if percentage else VersionStatus.INACTIVE),
        traffic=routing("v1", ("v3", percentage) if percentage else None, age=age),
    )
    found = situation(says, [live("v1"), live("v3", 0)] if percentage is None else [live("v1"), live("v3")])
    return found.with_rollout(SCALED.key, RolloutInCluster(**rollout))


def plan_of(found: World) -> WorkerPlan:
    (plan,) = make_plan([SCALED], found, NOW, ME).workers
    return plan


def adjusted(writer: Writer, *looks: World) -> list[str]:
    async def attached() -> list[AttachedInCluster]:
        return [item for item in ALL_OF_THEM if f"delete {item.path} {item.uid}" not in writer.done]

    adjustments = Adjustments(writer, attached, writer.said.append, writer.report)

    async def all_of_them() -> None:
        for look in looks:
            await adjustments.make(plan_of(look), look.workers[SCALED.key].rollout)

    asyncio.run(all_of_them())
    return writer.done


ALL = ["scale payments-v1 3", "scale payments-v3 1", "delete /apis/one uid-one", "delete /apis/two uid-two"]


def test_nothing_is_made_twice() -> None:
    assert adjusted(writer := Writer(), *[world(None)] * 3) == ALL
    assert len(writer.said) == len(ALL)


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("failure", [REFUSED, LATE])
def test_what_fails_is_said_once_stops_nothing_and_is_made_at_a_later_look(
    position: int, failure: Exception
) -> None:
    # the same one fails at the second look too, where it is all that is left to do
    failures = [failure if index == position else None for index in range(4)]
    writer = Writer([*failures, failure])
    assert set(adjusted(writer, *[world(None)] * 3)) == set(ALL)
    assert writer.done == [*ALL[:position], *ALL[position + 1 :], ALL[position]]
    assert writer.said.count(str(failure)) == 1


def test_older_job_and_whatever_else_fails_at_once_are_each_said_once_and_tried_again() -> None:
    look = world(None, older_jobs=(JobReference("older", "uid"),))
    writer = Writer([REFUSED, LATE, None, None, None, REFUSED, LATE])
    assert adjusted(writer, *[look] * 3) == [*ALL[1:], "delete older", ALL[0]]
    assert [line for line in writer.said if line in {str(REFUSED), str(LATE)}] == [str(REFUSED), str(LATE)]
    assert writer.told == [str(REFUSED), str(LATE)] * 2, "it lasts"


def test_attached_objects_get_their_owners_once_also_those_that_come_late() -> None:
    writer, looks = Writer(), [[], WANTED, ALL_OF_THEM[2:]]

    async def attached() -> list[AttachedInCluster]:
        return looks.pop(0)  # whoever asks again once nothing is left to do fails

    adjustments = Adjustments(writer, attached, writer.said.append, writer.report)
    for _ in range(5):
        asyncio.run(adjustments.make(plan_of(world(5)), RolloutInCluster()))
    assert not looks
    owned = [line for line in writer.done if " owns " in line]
    assert owned == [
        f"payments-{name} owns {item.name}" for name, item in zip(("v1", "v3"), WANTED, strict=True)
    ]


def test_rollout_whose_objects_have_no_owners_does_not_ask_for_them() -> None:
    async def attached() -> list[AttachedInCluster]:
        raise AssertionError("its account may not list them")

    spec = with_policy(SCALED, owner_references=OwnerReferences.NONE)
    [plan] = make_plan([spec], world(None), NOW, ME).workers
    adjustments = Adjustments(Writer(), attached, print, Writer().report)
    asyncio.run(adjustments.make(plan, RolloutInCluster()))


@pytest.mark.parametrize("held", [{"is_superseded": True}, {"is_paused": True}, {"older_pods": ("another",)}])
def test_rollout_that_is_held_changes_nothing_beside_ending_older_ones(held: dict[str, Any]) -> None:
    jobs = () if "is_superseded" in held else (JobReference("older", "uid"),)
    assert adjusted(Writer(), world(None, older_jobs=jobs, **held)) == [f"delete {job.name}" for job in jobs]


def recorded(writer: Writer, *looks: tuple[timedelta, World]) -> list[str]:
    journal = Journal(writer, intent_of(SCALED, "twgen/me"), writer.said.append)

    async def all_of_them() -> None:
        for later, look in looks:
            plan = make_plan([SCALED], look, NOW + later, ME)
            await journal.record(make_status(plan, look, ME))

    asyncio.run(all_of_them())
    return writer.done


def test_pause_of_a_step_is_recorded_once_for_its_whole_length() -> None:
    looks = [(second * SECOND, world(5)) for second in range(0, 8 * 60, 30)]
    assert recorded(Writer(), *looks) == ["record RampPaused", "Normal RampPaused"]


def test_change_of_phase_or_reason_is_an_event_and_what_else_is_news_only_a_record() -> None:
    looks = [(0 * SECOND, world(None)), (SECOND, world(5)), (MINUTE, world(25)), (31 * MINUTE, world(25))]
    assert recorded(Writer(), *looks) == [
        "record NotServing", "Normal NotServing", "record RampPaused", "Normal RampPaused",
        "record RampPaused", "record NextStep", "Normal NextStep",
    ]  # fmt: skip


def test_record_is_never_behind_what_its_document_tells() -> None:
    found = world(5)
    said = found.workers[SCALED.key]
    assert said.temporal
    polled = tuple(replace(item, task_queues=(MAIN, OTHER)) for item in said.temporal.versions)
    then = replace(said, temporal=replace(said.temporal, versions=polled))
    looks = [(0 * SECOND, found), (SECOND, replace(found, workers={SCALED.key: then}))]
    assert recorded(Writer(), *looks) == ["record RampPaused", "Normal RampPaused", "record RampPaused"]


def test_superseded_rollout_records_nothing() -> None:
    looks = [(SECOND, world(5, is_superseded=True)), (MINUTE, world(25, is_superseded=True))]
    assert recorded(Writer(), (0 * SECOND, world(5)), *looks) == ["record RampPaused", "Normal RampPaused"]


def test_status_that_is_refused_is_said_once_and_written_as_soon_as_it_is_taken() -> None:
    writer = Writer([REFUSED] * 3)
    written = recorded(writer, *[(second * SECOND, world(5)) for second in range(5)])
    assert written == ["Normal RampPaused", "record RampPaused"]
    assert writer.said == ["the status could not be written: the API server refuses"]
