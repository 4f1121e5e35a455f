"""What a rollout changes in its cluster, and what it leaves there to read."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from tests.held_replicas import ARGOCD, ROLLOUT, HeldReplicas
from tests.planning.situations import MAIN, NOW, RAMPS, live, routing, situation, temporal, version
from tests.planning.times import MINUTE, SECOND
from tests.strategies import AUTOSCALER, SIZED_BY_HPA, with_policy
from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.adjustments import Adjustments
from twgen.executing.journal import Journal
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import WorkerPlan
from twgen.model.policy import OwnerReferences
from twgen.model.rollout import JobReference, RolloutInCluster
from twgen.model.spec import AttachedWhile, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster, AttachedRecord, Owning, ReplicasChange
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.records.intent import intent_of
from twgen.versioning.names import attached_resource_name

ME = Caller("me", forced=True, drives=True)
SCALED = replace(RAMPS, attached=(AUTOSCALER,), replicas=None)
OTHER = replace(MAIN, name="other")
KIND = GroupKind("autoscaling", "HorizontalPodAutoscaler")
OWNED = frozenset({"uid-v1"})
DRAINED = frozenset({AttachedWhile.DRAINED})
PARTED = replace(
    SCALED, attached=(AUTOSCALER, *(replace(AUTOSCALER, name=n, when=DRAINED) for n in ("one", "two")))
)
"""The same, with two templates that are not for its versions."""
LEFT = [
    AttachedInCluster(
        KIND, f"/apis/{n}", "v2", attached_resource_name("payments", n, "v1"), f"uid-{n}", OWNED
    )
    for n in ("one", "two")
]
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

    async def delete(self, path: str, uid: str) -> bool:
        self._do(f"delete {path} {uid}")
        return True

    async def remember(self, deployment: str, record: AttachedRecord) -> None:
        added, gone = (" ".join(sorted(names)) for names in record)
        self._do(f"{deployment} has [{added}] and lost [{gone}]")

    async def attach(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> AttachedInCluster:
        name = manifest["metadata"]["name"]
        self._do(f"{'try' if dry_run else 'attach'} {name}")
        return AttachedInCluster(KIND, f"/apis/{name}", "v2", name, f"uid-{name}", frozenset())

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
    (plan,) = make_plan([PARTED], found, NOW, ME).workers
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


def looked(
    writer: Writer, spec: WorkerSpec, manifest: dict[str, Any], live_objects: Sequence[AttachedInCluster]
) -> bool:
    """One look at a worker whose only version has this Deployment; whether it lets the rollout go on."""

    async def attached() -> list[AttachedInCluster]:
        return [*live_objects]

    says = temporal(version(status=VersionStatus.CURRENT), traffic=routing("v3"))
    [plan] = make_plan([spec], situation(says, [manifest]), NOW, ME).workers
    adjustments = Adjustments(writer, attached, writer.said.append, writer.report, has_hook=True)
    return asyncio.run(adjustments.make(plan, RolloutInCluster()))


def test_object_is_recorded_on_its_deployment_before_it_replaces_another() -> None:
    old, new = (attached_resource_name("payments", name, "v3") for name in ("cpu", "other"))
    renamed = replace(SCALED, attached=(replace(AUTOSCALER, name="other"),))
    before = AttachedInCluster(KIND, f"/apis/{old}", "v2", old, f"uid-{old}", frozenset({"uid-v3"}))
    manifest = live("v3", managedFields=SIZED_BY_HPA)
    # it was replaced by the new one once before
    marks = {"attached": f"{KIND.kind}/{old}", "gone": f"{KIND.kind}/{new}"}
    manifest["metadata"]["annotations"] |= {f"twgen.io/{name}": text for name, text in marks.items()}
    assert looked(writer := Writer(), renamed, manifest, [before])
    assert writer.done[:5] == [
        f"try {new}",
        f"payments-v3 has [{KIND.kind}/{new}] and lost []",
        f"delete /apis/{old} uid-{old}",
        f"attach {new}",
        f"payments-v3 has [{KIND.kind}/{new}] and lost [{KIND.kind}/{old}]",
    ]
    assert looked(writer := Writer([None, REFUSED]), renamed, manifest, [before]) is False
    assert writer.done == [f"try {new}"], "nothing changes that the next render would not know"


def test_autoscaler_that_the_render_does_not_name_is_recorded_before_the_job_of_a_hook_attaches_it() -> None:
    name = attached_resource_name("payments", "cpu", "v3")
    manifest = live("v3", managedFields=SIZED_BY_HPA)
    assert looked(writer := Writer(), SCALED, manifest, [])
    assert writer.done[:2] == [f"payments-v3 has [{KIND.kind}/{name}] and lost []", f"attach {name}"]
    manifest["metadata"]["annotations"]["twgen.io/attached"] = f"{KIND.kind}/{name}"
    assert looked(writer := Writer(), SCALED, manifest, [])
    assert writer.done[0] == f"attach {name}"


def test_job_of_a_hook_attaches_no_autoscaler_while_argo_cd_sets_the_replicas() -> None:
    held = HeldReplicas(3, {ARGOCD, ROLLOUT})
    assert looked(writer := Writer(), SCALED, live("v3", managedFields=held.managed_fields()), [])
    assert writer.done == []
    held.sync(None)
    assert looked(writer, SCALED, live("v3", managedFields=held.managed_fields()), [])
    assert any(line.startswith("attach ") for line in writer.done)


def test_settled_rollout_goes_on_until_it_holds_the_replicas_of_an_autoscaled_version() -> None:
    manifest = live("v3", managedFields=HeldReplicas(3).managed_fields())
    assert looked(writer := Writer([REFUSED]), SCALED, manifest, []) is False
    assert looked(writer, SCALED, manifest, [])
    assert writer.done == ["scale payments-v3 3"]


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
            await journal.record(plan.workers[0], make_status(plan, look, ME))

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
