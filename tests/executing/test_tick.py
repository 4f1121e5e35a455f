"""One look of `tick`: what an unreadable worker costs the others, and which renders are outdated."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, routing, situation, temporal, version
from tests.schemas.printed import reported
from tests.strategies import BUDGET, NOW, live_manifest, with_policy
from twgen.clients.kubernetes import Forbidden
from twgen.cluster.deployments import recorded_deployment
from twgen.executing.ports import TickServers
from twgen.executing.tick import Tick, TickResult, Worker
from twgen.model.operator import Caller, GroupKind, TickSettings
from twgen.model.plan import Phase, Plan
from twgen.model.policy import HistorySource
from twgen.model.rollout import (
    Answer,
    AnswerState,
    Driver,
    EndedJob,
    JobReference,
    PendingRequest,
    Request,
    Verb,
)
from twgen.model.spec import WorkerSpec
from twgen.model.status import RolloutStatus
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster
from twgen.planning.forgetting import NextTry
from twgen.planning.plan import make_plan, plan_versions
from twgen.planning.reads import Unread
from twgen.planning.refresh import RERUN_PAUSE_OF_TICK, plan_hash
from twgen.planning.rollout import not_begun
from twgen.planning.worker_status import AttachedRead
from twgen.records.intent import TAKEN_BACK, Intent, intent_of
from twgen.records.rollout_status import parse_rollout_status
from twgen.reporting.bugs import Bug
from twgen.versioning.names import REQUEST, attached_resource_name

KEY = SPEC.key
ENDED = EndedJob(JobReference("job", "uid"), NOW - timedelta(minutes=5))
ABORT = Request("r1", Verb.ABORT, SPEC.build_id, NOW, "ana")
Read = Callable[[Sequence[WorkerSpec]], Any]
"""What Temporal and the cluster say of these workers, now or later."""


def worker(namespace: str, name: str = "payments", spec: WorkerSpec = SPEC, stamped: str = "") -> Worker:
    intent = replace(intent_of(spec, "me"), namespace=namespace, application=namespace, plan_hash=stamped)
    return Worker(intent, replace(spec, namespace=namespace, name=name), None)


def hooked(**intent: Any) -> Worker:
    """A worker that a hook rolls out."""
    known = worker("shop")
    return known._replace(intent=replace(known.intent, has_hook=True, **intent))


def asked(request: Request, answer: Answer | None = None, namespace: str = "shop") -> Worker:
    """A worker with a request to its rollout, which is blocked and whose Job has ended."""
    status = not_begun(None, f"{namespace}/payments", SPEC.build_id, "", NOW)
    pending = (PendingRequest(REQUEST, request, "", answer, "7"),)
    return worker(namespace)._replace(
        ended=ENDED, status=replace(status, phase=Phase.BLOCKED, pending=pending)
    )


class Servers(TickServers):
    """The servers of a tick: a test reads what it says, and may do only what it allows."""

    def __init__(self, read: Read, **allowed: Callable[..., Any]) -> None:
        self._read, self._allowed = read, allowed

    def steady(self) -> datetime:
        return NOW

    async def read(self, workers: Sequence[WorkerSpec], **_: bool) -> tuple[World, list[Unread]]:
        read = self._read(workers)
        return await read if isawaitable(read) else read

    async def attached(self, kinds: Mapping[str, set[GroupKind]]) -> Mapping[str, AttachedRead]:
        return self._allowed["attached"](kinds) if "attached" in self._allowed else {}

    def writer(self, _: Intent) -> Any:
        return self

    def begin_again(self, intent: Intent) -> bool:
        if "begins" in self._allowed:
            self._allowed["begins"](intent)
        return "begins" in self._allowed

    def of(self, _: WorkerSpec) -> Any:
        return self

    def now(self) -> datetime:
        return NOW

    async def take_over(self, *, lasts: bool) -> None:
        self._allowed["takes_over"](lasts)

    async def add_event(self, kind: str, reason: str, message: str, at: datetime) -> None:
        assert (kind, at) == ("Warning", NOW)
        self._allowed["tells"](reason, message)

    async def delete_job(self, job: JobReference) -> None:
        self._allowed["deletes"](job.name)

    async def record(self, status: Mapping[str, str], *, over: str) -> None:
        manifest = {"metadata": {"namespace": "shop", "name": "payments-rollout-status"}, "data": status}
        done = self._allowed["records"](parse_rollout_status(manifest))
        assert over == ""
        if isawaitable(done):
            await done

    async def answer(self, *answered: tuple[PendingRequest, Answer]) -> None:
        assert answered[0][0].resource_version == "7"
        for _, each in answered:
            self._allowed["answers"](each)


def a_tick(read: Read, *, goes_on: bool = True, **allowed: Callable[..., Any]) -> Tick:
    return Tick(Servers(read, **allowed), print, TickSettings(), goes_on=goes_on)


def act(tick: Tick, *workers: Worker) -> TickResult:
    return asyncio.run(asyncio.wait_for(tick.act(workers), 30))


def look(read: Read, *workers: Worker, **allowed: Callable[..., Any]) -> TickResult:
    return act(a_tick(read, **allowed), *workers)


def empty(specs: Sequence[WorkerSpec]) -> World:
    found = situation(None)
    [known] = found.workers.values()
    return World(NOW, {each.key: known for each in specs})


def unknown(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
    """Temporal knows none of them."""
    return empty(specs), []


def test_server_that_does_not_answer_holds_up_no_worker_of_another_namespace() -> None:
    others_were_read = asyncio.Event()

    async def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        if specs[0].namespace == "a":
            await others_were_read.wait()
            return World(NOW, {}), [Unread("", "Temporal did not answer")]
        others_were_read.set()
        return empty(specs), []

    seen = look(read, worker("a"), worker("b"))
    assert (list(seen.applications), seen.failures) == (["b"], ["Temporal did not answer"])
    assert seen.applications["b"][0].wanted, "an intent without a plan hash"


def test_workers_that_can_be_read_are_looked_at_beside_one_that_cannot() -> None:
    def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        return empty([spec for spec in specs if spec.name != "w2"]), [Unread("", "it is w2")]

    seen = look(read, *(worker("a", f"w{number}") for number in range(4)))
    assert [item.worker for item in seen.applications["a"]] == ["a/w0", "a/w1", "a/w3"]
    assert seen.failures == ["it is w2"]


@pytest.mark.parametrize("history", [(HistorySource.LEDGER,), (HistorySource.LEDGER, HistorySource.CLUSTER)])
@pytest.mark.parametrize("reads_cluster", [True, False])
@pytest.mark.parametrize("has_ledger", [True, False])
def test_render_is_as_wanted_whether_or_not_it_has_a_ledger_and_reads_the_cluster(
    history: tuple[HistorySource, ...], *, reads_cluster: bool, has_ledger: bool
) -> None:
    spec = with_policy(SPEC, history=history)
    of_temporal = temporal(
        version("v1", VersionStatus.DRAINING), version("v3", VersionStatus.CURRENT), traffic=routing("v3")
    )
    found = situation(of_temporal, [live("v1", 2), live("v3", 2)])
    ledger = {"v1": recorded_deployment(live_manifest(spec, "v1", 2))} if has_ledger else {}
    known = replace(found.workers[KEY], ledger=ledger)
    rendering = replace(known, deployments=known.deployments if reads_cluster else None)
    [planned] = plan_versions([spec], World(NOW, {KEY: rendering}), NOW, Caller("me", forced=True)).workers
    stamped = plan_hash(planned)

    known = worker("shop", spec=spec, stamped=stamped)
    [rendered] = look(lambda _: (found, []), known).applications["shop"]
    assert stamped in rendered.wanted
    known = worker("shop", spec=spec, stamped="another")
    [outdated] = look(lambda _: (found, []), known).applications["shop"]
    assert stamped in outdated.wanted


def test_status_that_a_hook_left_is_settled_only_while_the_traffic_is_where_the_hook_left_it() -> None:
    versions = version("v1", VersionStatus.DRAINING), version("v3", VersionStatus.CURRENT)
    settled = situation(temporal(*versions, traffic=routing("v3")), [live("v1", 2), live("v3", 2)])
    without_pods = situation(settled.workers[KEY].temporal, [live("v1", 2), live("v3", 0)])
    versions = version("v1", VersionStatus.CURRENT), version("v3", VersionStatus.DRAINING)
    moved = situation(temporal(*versions, traffic=routing("v1")), [live("v1", 2), live("v3", 2)])
    hook = EndedJob(JobReference("payments-rollout", "1"), NOW - timedelta(hours=2))
    known = hooked()._replace(ended=hook)
    report = reported(worker="shop/payments")
    told = RolloutStatus(
        "shop/payments", Phase.SETTLED, "Settled", "done", "v3", "v3", 100, NOW - timedelta(hours=2), report
    )
    recorded: list[RolloutStatus] = []

    def look_at(world: World, told: RolloutStatus) -> TickResult:
        return look(lambda _: (world, []), known._replace(status=told), records=recorded.append)

    look_at(settled, told)
    look_at(without_pods, told)
    assert recorded == [], "nobody has moved the traffic"
    seen = look_at(moved, told)
    [left] = recorded
    assert (left.phase, left.reason, left.percentage) == (Phase.BLOCKED, "RolloutEnded", 0)
    assert left.message == (
        "its traffic is not moving: its hook has ended, and only a sync restarts it; before, it was"
        " Settled: done"
    )
    assert seen.newer([told]) == [left]
    look_at(moved, left)
    assert len(recorded) == 1, "it is told once"
    look_at(settled, left)
    assert (recorded[-1].phase, recorded[-1].percentage) == (Phase.SETTLED, 100)
    drains = version("v3", VersionStatus.DRAINING, metadata={"twgen.io/retired": {"by": "twgen/ana"}})
    retired = situation(temporal(drains, traffic=routing(None)), [live("v3", 2)])
    look_at(retired, told)
    assert (recorded[-1].phase, recorded[-1].reason, recorded[-1].current) == (Phase.SETTLED, "Retired", "")
    look_at(moved, recorded[-1])
    assert (recorded[-1].phase, recorded[-1].reason) == (Phase.BLOCKED, "RolloutEnded")


@pytest.mark.parametrize("reads", [True, False])
def test_job_that_ran_for_an_intent_that_was_deleted_makes_way_at_once_whatever_can_be_read(
    *, reads: bool
) -> None:
    """Argo CD makes no other one of its name; it counts as run, and would be waited for."""

    def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        return (empty(specs), []) if reads else (World(NOW, {}), [Unread("", "Temporal is away")])

    older = EndedJob(JobReference("payments-0", "1"), NOW - timedelta(minutes=1), is_older=True)
    of_it = older._replace(is_older=False)
    deleted: list[str] = []
    look(read, worker("shop")._replace(ended=older), deletes=deleted.append)
    look(read, worker("shop")._replace(ended=of_it), deletes=deleted.append)
    assert deleted == ["payments-0"], "one that ran for this intent has its ten minutes"


def test_look_says_who_has_the_traffic_of_a_rollout_that_has_not_begun() -> None:
    versions = version("v1", VersionStatus.CURRENT), version("v3", VersionStatus.INACTIVE)
    found = situation(temporal(*versions, traffic=routing("v1")), [live("v1", 2), live("v3", 2)])

    begun = not_begun(None, "shop/payments", "v3", "it has no Job yet", NOW)
    assert (begun.current, begun.percentage) == (None, None)
    [told] = look(lambda _: (found, []), worker("shop")).newer([begun])
    assert (told.reason, told.current, told.percentage) == ("RolloutNotBegun", "v1", 0)


def test_freeze_of_a_worker_that_a_person_rolls_out_is_told_with_who_has_the_traffic_meanwhile() -> None:
    versions = version("v1", VersionStatus.CURRENT), version("v3", VersionStatus.RAMPING)
    ramps = temporal(*versions, traffic=routing("v1", ("v3", 25)))
    found, by_hand = (
        situation(ramps, [live("v1", 2), live("v3", 2)]),
        replace(SPEC.policy, driver=Driver.NONE),
    )
    recorded: list[RolloutStatus] = []

    known = worker("shop", spec=replace(SPEC, policy=by_hand))
    documents = ({"spec": {"driver": "None"}},)
    intent = replace(known.intent, documents=documents, is_paused=True)
    look(lambda _: (found, []), known._replace(intent=intent), records=recorded.append)
    [told] = recorded
    assert (told.phase, told.reason) == (Phase.WAITING, "Frozen")
    assert told.message.endswith(". Meanwhile, 25% of new workflows go to v3, 75% to v1")


def test_look_reads_how_attached_objects_stand_where_there_are_any() -> None:
    spec, current = replace(SPEC, attached=(BUDGET,)), version("v3", VersionStatus.CURRENT)
    found = situation(temporal(current, traffic=routing("v3")), [live("v3", 2)])
    asked: list[Mapping[str, set[GroupKind]]] = []

    def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        return World(NOW, {each.key: found.workers[KEY] for each in specs}), []

    def attached(wanted: Mapping[str, set[GroupKind]]) -> Mapping[str, AttachedRead]:
        asked.append(wanted)
        kind = GroupKind.of(BUDGET.template)
        name = attached_resource_name(spec.name, BUDGET.name, "v3")
        return {"shop": AttachedRead((AttachedInCluster(kind, "", "", name, "uid", frozenset()),))}

    def states(spec: WorkerSpec) -> list[str]:
        seen = look(read, worker("shop", spec=spec), attached=attached)
        told = seen.statuses["shop/payments"].details
        assert told
        return [item.state for item in told.versions[0].attached]

    assert states(spec) == ["Ready"]
    assert asked == [{"shop": {GroupKind.of(BUDGET.template)}}]
    assert states(SPEC) == []
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("driver", "ended", "phase", "request_", "answer"),
    [
        (Driver.JOB, None, Phase.WAITING, ABORT, "nothing"),
        (Driver.JOB, ENDED, Phase.BLOCKED, ABORT, "its Job is deleted"),
        (
            Driver.JOB,
            ENDED,
            Phase.BLOCKED,
            ABORT._replace(at=NOW - timedelta(days=2)),
            "the request is 48h old, so it has expired",
        ),
        (Driver.JOB, ENDED, Phase.SETTLED, ABORT, "to go back, commit the spec of an older version"),
        (Driver.JOB, ENDED, Phase.BLOCKED, ABORT._replace(target="v0"), "the request is for v0"),
        (Driver.HOOK, ENDED, Phase.BLOCKED, ABORT, "its hook has ended, and only a sync"),
        (
            Driver.NONE,
            None,
            Phase.WAITING,
            ABORT,
            "its policy has driver None, so no Job carries out requests: run `twgen abort PATH`",
        ),
    ],
)
def test_request_is_refused_if_no_job_will_take_it_and_an_ended_job_runs_again_for_another(
    driver: Driver, ended: EndedJob | None, phase: Phase, request_: Request, answer: str
) -> None:
    spec = with_policy(SPEC, driver=driver)
    known = asked(request_)
    policy = {"spec": {"driver": driver.value}}
    intent = replace(known.intent, documents=(policy,), has_hook=driver is Driver.HOOK)
    assert known.status
    known = Worker(intent, spec, ended, replace(known.status, phase=phase))
    said: list[str] = []
    seen = look(
        unknown,
        known,
        records=lambda _: None,
        deletes=lambda name: said.append(f"{name}: its Job is deleted"),
        answers=lambda answer: said.append(f"{answer.state}: {answer.message}"),
    )
    assert seen.failures == []
    if answer == "nothing":
        assert said == []
    else:
        assert answer in said[0]
        assert said[0].startswith("job" if "deleted" in answer else AnswerState.REFUSED)


def test_rollout_by_tick_that_has_ended_and_has_work_begins_again_and_no_job_is_deleted() -> None:
    ramps = temporal(version("v1", VersionStatus.CURRENT), version("v3"), traffic=routing("v1"))
    found = situation(ramps, [live("v1", 2), live("v3", 2)])
    begun: list[Intent] = []

    known = worker("shop")
    by_tick = known._replace(intent=replace(known.intent, is_for_tick=True))
    for ended_at, expected in ((NOW, 0), (NOW - RERUN_PAUSE_OF_TICK, 1)):
        ended = by_tick._replace(ended=EndedJob(None, ended_at))
        assert look(lambda _: (found, []), ended, begins=begun.append).failures == []
        assert len(begun) == expected


@pytest.mark.parametrize("may", [True, False])
def test_skipped_hook_is_taken_over_where_tick_may_and_told_once(
    capsys: pytest.CaptureFixture[str], *, may: bool
) -> None:
    events: list[tuple[str, str]] = []
    taken: list[bool] = []
    allowed = TickSettings(rollouts=may)
    servers = Servers(unknown, takes_over=taken.append, tells=lambda *event: events.append(event))
    tick = Tick(servers, print, allowed, goes_on=True)
    skipped = hooked(application="argocd_shop")._replace(is_skipped=True)
    warned = [line for _ in range(2) for line in act(tick, skipped).warnings]
    says = f"Argo CD applied {SPEC.build_id} without its hooks, so "
    if may:
        says += "tick carries out its rollout"
        assert taken == [True, True], "somebody may have replaced the intent, without the annotation"
        assert says in capsys.readouterr().out
        assert warned == []
    else:
        says += "nothing carries out its rollout: run `argocd app sync argocd/shop`"
        assert taken == []
        assert warned == [f"shop/payments: {says}"]
    assert events == [("HookSkipped", says)]


def test_rollout_that_tick_took_over_is_left_to_a_hook_that_comes_later(
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken: list[bool] = []
    events: list[tuple[str, str]] = []
    own = hooked().intent
    still = hooked(taken_over=own.hash)
    assert still.driver is Driver.TICK

    def check(known: Worker, takes_over: Callable[[bool], None] = taken.append, *, may: bool = True) -> Any:
        servers = Servers(unknown, takes_over=takes_over, tells=lambda *event: events.append(event))
        return act(Tick(servers, print, TickSettings(rollouts=may), goes_on=True), known)

    assert check(still).failures == check(hooked()).failures == []
    assert (taken, events) == ([], [])
    back = hooked(taken_over=TAKEN_BACK)
    assert back.driver is Driver.HOOK
    check(back)
    assert taken == [False]
    assert "its hook carries out its rollout again" in capsys.readouterr().out
    check(hooked(taken_over="an older intent"))
    assert taken == [False, False]
    assert capsys.readouterr().out == "", "no hook has taken it back"

    def forbidden(_: bool) -> None:  # noqa: FBT001 - as the method has it
        raise Forbidden("you may not")

    skipped = hooked(taken_over="an older intent")._replace(is_skipped=True)
    checked = check(skipped, forbidden, may=False)
    assert (checked.failures, len(checked.warnings), len(events)) == ([], 1, 1), "it may change nothing"
    checked = check(still, forbidden, may=False)
    assert len(checked.warnings) == 1, "the operator no longer lets tick carry out rollouts"


def test_server_that_is_busy_is_told_of_in_its_third_look_in_a_row() -> None:
    busy = Unread("a:7233", "a:7233 limits the rate of calls for shop/payments", is_busy=True)
    answers = iter((True, True, False, True, True, True, True))

    def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        return (World(NOW, {}), [busy]) if next(answers) else (empty(specs), [])

    tick = a_tick(read)
    told = [bool(act(tick, worker("shop")).failures) for _ in range(7)]
    assert told == [False] * 5 + [True] * 2

    def is_busy(_: object) -> tuple[World, list[Unread]]:
        return World(NOW, {}), [busy]

    alone = act(a_tick(is_busy, goes_on=False), worker("shop"))
    assert alone.failures == [busy.why], "no later look could tell of it"


def test_request_that_tick_may_not_answer_is_told_of_once_and_is_no_failure() -> None:
    def answer(_: Answer) -> None:
        raise Forbidden("configmaps is forbidden")

    said: list[str] = []
    warned: list[str] = []
    tick = a_tick(unknown, answers=answer)
    tick.say = said.append
    for _ in range(2):
        seen = asyncio.run(tick.act([asked(ABORT._replace(target="v0"))]))
        assert seen.failures == []
        warned += seen.warnings
    [line] = warned
    assert said == [], "nothing was refused"
    assert "shop/payments: cannot refuse Abort of v0" in line
    assert "deploy/tick/statuses" in line


def test_request_that_was_answered_is_left_to_the_job() -> None:
    assert look(unknown, asked(ABORT, Answer(ABORT, AnswerState.DONE, "done"))).failures == []


def test_turns_of_a_server_that_never_answers_are_its_own() -> None:
    others_were_read = asyncio.Event()
    silent = replace(SPEC, connection=replace(SPEC.connection, host_port="silent:7233"))

    async def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        if specs[0].connection.host_port == "silent:7233":
            await others_were_read.wait()
            return World(NOW, {}), [Unread("silent:7233", f"silent:7233 is silent for {specs[0].namespace}")]
        others_were_read.set()
        return empty(specs), []

    of_silent = [worker(f"n{number}", spec=silent) for number in range(50)]
    seen = look(read, *of_silent, worker("z"))
    assert list(seen.applications) == ["z"]
    assert len(seen.failures) == 50


def test_bug_in_one_worker_is_said_with_its_place_and_the_others_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def plan(specs: Sequence[WorkerSpec], *arguments: Any) -> Plan:
        if specs[0].name == "broken":
            raise KeyError("secret-token")
        return make_plan(specs, *arguments)

    monkeypatch.setattr("twgen.executing.tick.make_plan", plan)

    async def read(specs: Sequence[WorkerSpec]) -> tuple[World, list[Unread]]:
        if specs[0].namespace == "c":
            raise ZeroDivisionError
        return empty(specs), []

    workers = worker("a", "broken"), worker("a", "whole"), worker("b"), worker("c")
    seen = look(read, *workers)
    assert {item.worker for items in seen.applications.values() for item in items} == {
        "a/whole",
        "b/payments",
    }
    of_worker, of_namespace = sorted({*seen.failures})
    assert isinstance(of_worker, Bug)
    assert of_worker.startswith("a/broken: a bug (KeyError at twgen/executing/tick.py:")
    assert "secret-token" not in of_worker
    assert of_namespace.startswith(
        "the workers of namespace c: a bug (ZeroDivisionError at twgen/executing/tick"
    )


def test_statuses_that_cannot_be_written_hold_up_no_other_namespace_of_their_server() -> None:
    answered = asyncio.Event()

    async def record(*_: object) -> None:
        await answered.wait()

    def answer(_: Answer) -> None:
        answered.set()

    by_hand: dict[str, Any] = {"spec": {"driver": "None"}}
    spec = with_policy(SPEC, driver=Driver.NONE)
    workers = [worker(f"n{number}", spec=spec) for number in range(8)]
    workers = [one._replace(intent=replace(one.intent, documents=(by_hand,))) for one in workers]
    refused = asked(ABORT._replace(target="v0"), namespace="z")
    look(unknown, *workers, refused, records=record, answers=answer)
    assert answered.is_set()


def test_request_that_a_rollout_by_tick_did_not_answer_before_its_end_begins_it_again() -> None:
    begun: list[Intent] = []
    known = asked(ABORT)
    by_tick = known._replace(intent=replace(known.intent, is_for_tick=True))
    for ended, number in ((None, 0), (EndedJob(None, NOW), 1)):
        assert look(unknown, by_tick._replace(ended=ended), begins=begun.append).failures == []
        assert len(begun) == number


def test_memory_of_tick_forgets_workers_that_are_gone() -> None:
    remembered = a_tick(unknown)
    for name in ("a/payments", "gone/payments"):
        remembered.begun[name]["job"] = NOW
        remembered.kept[name]["v1"] = NextTry.after(None, NOW)
        assert remembered.is_new("it may not", name)
    act(remembered, worker("a"))
    assert [*remembered.begun] == [*remembered.kept] == ["a/payments"]
    assert remembered.is_new("it may not", "gone/payments")
    assert not remembered.is_new("it may not", "a/payments")
