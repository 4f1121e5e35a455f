"""What a rollout changes and tells in its cluster, when the cluster does not take it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tests.planning.routing import test_analysis, test_unserved
from tests.planning.situations import planned
from tests.schemas.printed import reported
from tests.strategies import AUTOSCALER, NOW, a_spec, live_manifest, world
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import StateUnavailable
from twgen.executing.cluster import ClusterWriter
from twgen.executing.journal import Journal
from twgen.executing.ports import IntentPlace
from twgen.model import credentials
from twgen.model.operator import Caller
from twgen.model.plan import Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.status import RolloutStatus, Status
from twgen.model.times import format_time
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.records.intent import Intent, intent_of
from twgen.records.rollout_status import parse_rollout_status


@dataclass
class Writer:
    """Takes what it does not refuse."""

    refused: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    status: Mapping[str, str] = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)

    async def _write(self, what: str) -> None:
        if what in self.refused:
            raise StateUnavailable(f"{what}: refused")
        self.done.append(what)

    async def record(self, status: Mapping[str, str]) -> None:
        await self._write(f"record {status['phase']}")
        self.status = status

    async def add_event(self, kind: str, reason: str, message: str, _: object) -> None:
        await self._write(f"tell {reason}")
        self.events.append((kind, reason, message))


Look = tuple[WorkerPlan, Status]
INTENT = intent_of(a_spec(), "twgen/me")


def looked() -> Look:
    spec, me = replace(a_spec(), attached=(AUTOSCALER,)), Caller("twgen/me", forced=True)
    found = world(None, [live_manifest(spec, "v3", 5)])
    plan = make_plan([spec], found, NOW, me)
    return plan.workers[0], make_status(plan, found, me)


def of_routing(plan: WorkerPlan, status: Status, routing: RoutingPlan, now: datetime = NOW) -> Look:
    """The plan with this routing, and the status that says so."""
    told = {"phase": routing.phase, "reason": routing.reason, "because": routing.because}
    worker = replace(status.workers[0], waits_until=routing.due_at, **told)
    return replace(plan, routing=routing), replace(status, now=now, workers=(worker,))


def journal_of(writer: Writer, intent: Intent = INTENT, say: Callable[[str], None] = print) -> Journal:
    return Journal(cast("ClusterWriter", writer), intent, say)


def recorded() -> tuple[Writer, Journal, Look]:
    """A journal that has recorded one look."""
    writer, (plan, status) = Writer(), looked()
    journal = journal_of(writer)
    asyncio.run(journal.record(plan, status))
    return writer, journal, (plan, status)


def fail(
    journal: Journal,
    failure: str,
    reason: RoutingReason = RoutingReason.LOOK_FAILED,
    *,
    is_current: bool = True,
    kept: RolloutStatus | Exception | None = None,
) -> None:
    """A look fails, beside what the cluster says of the intent and keeps as the status."""

    class Place:
        def now(self) -> datetime:
            return NOW

        async def read_intent(self, _: str) -> Intent | None:
            return journal.intent if is_current else None

        async def read_status(self, _: Intent) -> RolloutStatus | None:
            if isinstance(kept, Exception):
                raise kept
            return kept

    asyncio.run(journal.fail(failure, reason, cast("IntentPlace", Place())))


def test_status_that_could_not_be_written_is_written_once_the_cluster_takes_it() -> None:
    writer, said, (plan, status) = Writer(), list[str](), looked()
    event, record = f"tell {plan.routing.reason}", f"record {plan.routing.phase}"
    journal = journal_of(writer, say=said.append)
    writer.refused = {event, record}
    asyncio.run(journal.record(plan, status))
    assert journal.unwritten == (plan, status)
    writer.refused = {event}
    for _ in range(2):
        asyncio.run(journal.record(plan, status))
    assert writer.done == [record], "an Event that is refused is no reason to write the status at every look"
    assert journal.unwritten is None
    writer.refused = set()
    for _ in range(2):
        asyncio.run(journal.record(plan, status))
    assert writer.done == [record, event]
    assert said == [f"the status could not be written: {what}: refused" for what in (record, event)]


def test_status_says_why_a_look_failed_until_one_has_gone_well() -> None:
    writer, journal, (plan, status) = recorded()
    before = writer.status
    for _ in range(3):
        # a change that fails after each look that goes well
        fail(journal, "Temporal refuses it")
        asyncio.run(journal.record(plan, status))
    message = f"{before['message']}; Temporal refuses it"
    assert writer.status == {**before, "message": message, "failing": "Temporal refuses it"}
    assert [what for what in writer.done if what.startswith("record")] == [f"record {before['phase']}"] * 2
    assert writer.done.count("tell LookFailed") == 1
    asyncio.run(journal.record(plan, status))
    assert writer.status == before
    assert writer.status["failing"] == ""


def test_status_says_by_a_reason_of_its_own_that_it_cannot_become_the_manager_until_it_can() -> None:
    writer, (plan, status) = Writer(), looked()
    moving = replace(
        plan.routing, phase=Phase.MOVING, reason=RoutingReason.FIRST_STEP, action=RoutingAction.SET_RAMP,
        build_id="v3", percentage=5, claim_manager=True,
    )  # fmt: skip

    def look(routing: RoutingPlan, seconds: int) -> Look:
        return of_routing(plan, status, routing, NOW + timedelta(seconds=seconds))

    journal = journal_of(writer)
    for seconds in range(3):
        asyncio.run(journal.record(*look(moving, seconds)))
        fail(journal, "Temporal does not permit it", RoutingReason.CLAIM_FAILED)
    shown = ("phase", "reason", "message", "since", "failing")
    assert [writer.status[name] for name in shown] == [
        *("Waiting", "ClaimFailed", f"{moving.because}; Temporal does not permit it"),
        *(format_time(NOW), "Temporal does not permit it"),
    ]
    [worker] = json.loads(writer.status["status.json"])["workers"]
    assert (worker["phase"], worker["reason"]) == ("Waiting", "ClaimFailed")
    assert writer.done == ["record Moving", "tell FirstStep", "record Waiting", "tell ClaimFailed"]
    waits = replace(moving, action=RoutingAction.NONE, claim_manager=False, phase=Phase.WAITING)
    for routing in (replace(waits, reason=RoutingReason.NOT_SERVING), moving):
        asyncio.run(journal.record(*look(routing, 9)))
        assert writer.status["reason"] == routing.reason, "what stands before the claim is told first"
    assert writer.status["failing"] == ""


def test_failure_that_could_not_be_written_is_written_at_a_later_failed_look() -> None:
    writer, journal, _ = recorded()
    before = writer.status
    writer.refused = {f"record {before['phase']}", "tell LookFailed"}
    fail(journal, "Temporal is away")
    writer.refused = set()
    fail(journal, "Temporal is away", is_current=False)
    assert writer.status == before, "nobody knows whether it is superseded"
    writer.done.clear()
    for _ in range(3):
        fail(journal, "Temporal is away")
    assert writer.status["message"] == f"{before['message']}; Temporal is away"
    assert writer.done == [f"record {before['phase']}"]


def test_what_fails_in_the_cluster_stays_in_the_status_while_it_lasts() -> None:
    writer, (plan, status) = Writer(), looked()
    journal = journal_of(writer)
    for _ in range(4):
        asyncio.run(journal.record(plan, status))
        fail(journal, "a Job cannot be deleted")
        fail(journal, "a Deployment cannot be scaled")
    both = "a Job cannot be deleted; a Deployment cannot be scaled"
    assert writer.status["failing"] == both
    assert writer.status["message"] == f"{status.workers[0].because}; {both}"
    assert writer.done.count("tell LookFailed") == 2
    assert len([what for what in writer.done if what.startswith("record")]) == 3


def test_failure_that_another_has_taken_the_place_of_is_told_no_longer() -> None:
    writer, journal, _ = recorded()
    for failure in ("away", "away", "refuses", "refuses", "refuses"):
        fail(journal, failure)
    assert writer.status["message"].endswith("; refuses")
    assert "away" not in writer.status["message"]
    writer.done.clear()
    for _ in range(9):
        fail(journal, "away")
        fail(journal, "refuses")
    assert writer.done == ["record Waiting"], "two that take turns are one state"


@pytest.mark.parametrize("reason", [RoutingReason.SETTLED, RoutingReason.GATE_FAILED])
def test_last_status_of_a_rollout_tells_no_failure_that_is_over(reason: RoutingReason) -> None:
    writer, journal, (plan, status) = recorded()
    fail(journal, "Temporal did not answer")
    phase = Phase.SETTLED if reason is RoutingReason.SETTLED else Phase.BLOCKED
    routing = replace(plan.routing, phase=phase, reason=reason)
    asyncio.run(journal.record(*of_routing(plan, status, routing)))
    assert (writer.status["reason"], writer.status["message"]) == (reason, routing.because)


def test_pod_that_can_read_nothing_keeps_what_the_status_of_its_intent_knew() -> None:
    writer, intent = Writer(), INTENT
    unserved = reported(worker="shop/payments", unserved="nobody serves v1")
    kept = RolloutStatus(
        *("shop/payments", Phase.WAITING, "RampPaused", "it stays at 25%", "v3", "v1", 25),
        *(NOW, unserved, intent.hash),
    )
    journal = journal_of(writer, intent)
    fail(journal, "Temporal is away", kept=StateUnavailable("the API server is away too"))
    assert not writer.status, "what it knew is left alone"
    fail(journal, "Temporal is away", kept=kept)
    shown = ("reason", "message", "current", "percentage")
    assert [writer.status[name] for name in shown] == [
        *("LookFailed", "nothing could be read yet; Temporal is away", "v1", "25")
    ]
    [worker] = json.loads(writer.status["status.json"])["workers"]
    assert (worker["unserved"], worker["reason"]) == ("nobody serves v1", "LookFailed")
    another = journal_of(writer, intent)
    fail(another, "Temporal is away", kept=replace(kept, intent="another"))
    assert writer.status.keys().isdisjoint(("current", "percentage")), "what nobody has read"
    made_again = journal_of(writer, replace(intent, uid="2"))
    fail(made_again, "Temporal is away", kept=replace(kept, intent_uid="1"))
    assert "current" not in writer.status, "it was deleted, and took what it knew with it"


def test_journal_of_a_hook_that_is_run_again_goes_on_from_when_the_first_one_began_to_wait() -> None:
    (plan, status), intent, writer = looked(), INTENT, Writer()
    first = journal_of(writer, intent)
    asyncio.run(first.record(plan, status))
    asyncio.run(first.leave("it took too long", NOW + timedelta(minutes=5)))
    assert (writer.status["reason"], writer.status["since"]) == ("RolloutEnded", format_time(NOW))
    metadata = {"name": "payments-rollout-status", "namespace": "shop"}
    left, later = parse_rollout_status({"metadata": metadata, "data": writer.status}), timedelta(minutes=9)
    for kept, since in ((left, NOW), (replace(left, intent="2"), NOW + later)):
        again = journal_of(writer, intent)
        again.continue_from(kept)
        asyncio.run(again.record(plan, replace(status, now=NOW + later)))
        assert (writer.status["phase"], writer.status["since"]) == ("Waiting", format_time(since))


def test_rollout_that_could_read_nothing_yet_says_so_while_it_is_its_turn() -> None:
    writer, intent, (plan, status) = Writer(), INTENT, looked()
    journal = journal_of(writer, intent)
    fail(journal, "Temporal is away", is_current=False)
    assert writer.done == ["tell LookFailed"]
    fail(journal, "Temporal is still away")
    shown = ("phase", "reason", "message", "target", "intent", "settled")
    message = "nothing could be read yet; Temporal is away; Temporal is still away"
    assert [writer.status[name] for name in shown] == [
        *("Waiting", "LookFailed", message, intent.target, intent.hash, "")
    ]
    asyncio.run(journal.leave("a bug ended it", NOW))
    assert writer.status["reason"] == "RolloutEnded"
    assert "nothing could be read" in writer.status["message"]
    asyncio.run(journal.record(plan, status))
    assert writer.status["reason"] == status.workers[0].reason


TAKEN_BACK = {
    "AnalysisFailed": test_analysis.ramping(test_analysis.FAILS),
    "Unserved": planned(test_unserved.ramping(test_unserved.NOBODY), test_unserved.by()),
}


@pytest.mark.parametrize("reason", TAKEN_BACK)
def test_ramp_that_is_taken_back_is_a_warning(reason: str) -> None:
    plan, (_, status) = TAKEN_BACK[reason], looked()
    writer = Writer()
    journal = journal_of(writer)
    asyncio.run(journal.record(*of_routing(plan, status, plan.routing)))
    [(*event, message)] = writer.events
    assert event == ["Warning", reason]
    assert plan.routing.because in message


def test_no_status_and_no_event_shows_a_credential_that_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    key, bodies = "SECRETKEY-abcdef0123456789", list[str]()
    monkeypatch.setattr(credentials, "_sent", {key: None})

    class Client:
        async def ask(self, *_: object, body: object, **__: object) -> tuple[int, Mapping[str, Any]]:
            bodies.append(json.dumps(body))
            return 200, {}

    writer = ClusterWriter(cast("KubernetesClient", Client()), INTENT, 9)
    asyncio.run(writer.record({"message": f"said {key}", "status.json": json.dumps({"because": key})}))
    asyncio.run(writer.add_event("Warning", "LookFailed", "." * 1010 + key, NOW))
    assert len(bodies) == 2
    assert not [body for body in bodies if key[:10] in body]
