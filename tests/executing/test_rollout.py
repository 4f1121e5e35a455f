"""Rollouts of one worker against a model of Temporal whose answers get lost, and where people interrupt."""

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.executing.server import DEEDS, ELSE, Server
from tests.executing.trouble import GATED, ME, TROUBLES, YOU, Client
from tests.planning.situations import RAMPS
from tests.planning.times import HOUR, MINUTE, SECOND
from twgen.errors import OutOfTime, StateUnavailable
from twgen.executing.rollout import RolloutLoop
from twgen.model.plan import Phase, RoutingAction, RoutingPlan, WorkerPlan
from twgen.model.reasons import RoutingReason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import WorkerDeployment
from twgen.model.world import World
from twgen.versioning.names import MarkKey


def rolled_out(client: Client, *, once: bool = False) -> WorkerPlan:
    [ended] = client.server.run(client.rolling(once=once))
    if isinstance(ended, BaseException):
        raise ended
    assert isinstance(ended, WorkerPlan)
    return ended


def told_of(client: Client) -> list[tuple[str, RoutingReason]]:
    """The failures of its rollout."""
    told: list[tuple[str, RoutingReason]] = []

    class Telling(RolloutLoop):
        async def fail(self, failure: str, reason: RoutingReason) -> None:
            told.append((failure, reason))

    client.server.run(client.rollout(Telling).run(once=False))
    return told


def test_rollout_gates_claims_ramps_and_promotes_in_this_order() -> None:
    client = Client(server := Server(), GATED)
    begin = server.model.now
    assert rolled_out(client).routing.phase is Phase.SETTLED
    assert server.done == [
        "gate main",
        f"manager {ME}",
        "SetRamp v3 5",
        "SetRamp v3 25",
        "SetCurrent v3 None",
    ]
    assert server.gate_inputs == [b'{"deep": true}']
    assert 40 * MINUTE < server.model.now - begin < 41 * MINUTE, "no pause is cut short"
    assert [line.partition(": ")[2].partition(" (")[0] for line in client.said] == [
        "started the gate test-shop/payments:v3-main on task queue main",
        f"its manager is now {ME}",
        "5% of new workflows go to v3 now",
        "25% of new workflows go to v3 now",
        "v3 is current now",
    ]


def test_clock_that_is_set_back_does_not_lengthen_the_time_between_two_looks() -> None:
    begin, looked_at, read_at = (server := Server()).model.now, list[datetime](), list[datetime]()

    class Clocked(Client):
        async def read_routing(self) -> WorkerDeployment:
            looked_at.append(server.model.now)
            return await super().read_routing()

        async def read(self) -> World:
            looked_at.append(server.model.now)
            read_at.append(server.model.now)
            return await super().read()

        def now(self) -> datetime:
            return server.model.now - (HOUR if server.model.now > begin + 2 * MINUTE else 0 * HOUR)

    rollout = Clocked(server, GATED).rollout()
    rollout.is_unattended = True
    [ended] = server.run(rollout.run(once=False))
    assert ended.routing.phase is Phase.SETTLED
    assert max(after - before for before, after in pairwise(looked_at)) <= 5 * MINUTE
    assert max(after - before for before, after in pairwise(read_at)) <= 6 * MINUTE, "and between whole ones"


@pytest.mark.parametrize(("lost", "gates"), [(1, 1), (3, 1), (4, 2)])
def test_record_of_a_change_is_written_again_when_it_gets_lost_since_gates_run_again_without_it(
    lost: int, gates: int
) -> None:
    class Losing(Client):
        lost = 0

        async def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
            self.lost += 1
            if self.lost <= lost:
                raise OutOfTime("nobody knows")
            await super().mark(build_id, marks)

    client = Losing(server := Server(), GATED)
    assert rolled_out(client).routing.phase is Phase.SETTLED
    assert sum(name.startswith("gate") for name in server.done) == gates
    assert any("could not record the routing change for v3" in line for line in client.said) == (lost > 1)


def test_change_whose_answer_was_lost_is_recorded_at_the_next_look_so_that_gates_do_not_run_again() -> None:
    class Losing(Client):
        lost = 0

        async def route(self, change: RoutingPlan, conflict_token: str) -> None:
            await super().route(change, conflict_token)
            self.lost += 1
            if self.lost == 1:
                raise OutOfTime("nobody knows")

    client = Losing(server := Server(), GATED)
    assert rolled_out(client).routing.phase is Phase.SETTLED
    assert sum(name.startswith("gate") for name in server.done) == 1
    assert "nobody knows; trying again" in client.said
    assert sum("5% of new workflows go to v3 now" in line for line in client.said) == 2, "also 25%"


def test_share_that_somebody_else_gave_meanwhile_is_not_recorded_as_ours() -> None:
    class Overtaken(Client):
        async def route(self, change: RoutingPlan, conflict_token: str) -> None:
            if not server.model.routing.ramping:
                server.change(lambda: server.model.set_ramp("v3", 5), ELSE)
            await super().route(change, conflict_token)

    client = Overtaken(server := Server(), GATED)
    assert rolled_out(client).routing.phase is Phase.SETTLED
    assert sum(name.startswith("gate") for name in server.done) == 2, "of a new stay"


@pytest.mark.parametrize("is_superseded", [True, False])
def test_change_of_intent_or_traffic_during_a_slow_adjustment_is_seen_before_the_write(
    *, is_superseded: bool
) -> None:
    """A freeze does not move the conflict token, and an API server may take a minute for each call."""
    client = Client(server := Server(), RAMPS)
    adjusted: list[int] = []  # how many changes there were before

    class Slow(RolloutLoop):
        async def adjust(self, *_: object) -> bool:
            adjusted.append(len(server.done))
            await server.sleep(MINUTE)
            if len(adjusted) == 2 and not is_superseded:
                server.change(lambda: server.model.set_ramp("v3", 3), ELSE)
            return True

        async def read_routing(self) -> WorkerDeployment | None:
            return None if len(adjusted) == 2 and is_superseded else await super().read_routing()

    server.run(client.rollout(Slow).run(once=False))
    assert adjusted[:3] == [0, 1, 1], "it looks again, and has changed nothing"
    assert not any("trying again" in line for line in client.said)


def test_pause_of_a_step_is_one_small_read_in_30_seconds() -> None:
    client = Client(Server(), RAMPS)
    rolled_out(client)
    assert client.routing_reads <= 40 * 2
    assert client.looks <= 40 / 5 + 12


def test_change_by_hand_during_a_pause_is_seen_within_30_seconds() -> None:
    client = Client(server := Server(), RAMPS)
    server.run(client.rolling(), server.person([(45, "ramp")]))
    assert server.done[:3] == [f"manager {ME}", "SetRamp v3 5", "SetRamp v3 25"]
    assert "its share of 50% matches no step; the next lower step is 25%" in client.said[2]


def test_once_makes_one_change_for_which_it_becomes_the_manager() -> None:
    client = Client(Server(), RAMPS)
    assert rolled_out(client, once=True).routing.action is RoutingAction.SET_RAMP
    assert client.server.done == [f"manager {ME}", "SetRamp v3 5"]


@pytest.mark.parametrize(("trouble", "error"), [("lost request", OutOfTime), ("refused", StateUnavailable)])
def test_first_look_that_fails_ends_the_rollout(trouble: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        rolled_out(Client(Server(), RAMPS, troubles=[trouble]))


@pytest.mark.parametrize(
    "each_time",
    [["refused"], ["", "refused"], ["", "", "refused"]],
    ids=["looks", "routing_reads", "changes"],
)
def test_failure_that_lasts_is_logged_once_and_told_to_the_cluster_each_time(each_time: list[str]) -> None:
    client = Client(Server(), RAMPS, troubles=["", "", "", *each_time * 9])
    told = told_of(client)
    assert client.said.count("refused; trying again") == 1
    assert told == [("refused", RoutingReason.LOOK_FAILED)] * 9


def test_claim_that_fails_is_told_with_a_reason_of_its_own_and_tried_again() -> None:
    client = Client(Server(), RAMPS, troubles=["", "", "refused"] * 3)
    told = told_of(client)
    why = f"{ME} could not become the manager: refused"
    assert told == [(why, RoutingReason.CLAIM_FAILED)] * 3
    assert client.said[:2] == [f"{why}; trying again", f"shop/payments: its manager is now {ME}"]


def test_claim_that_fails_at_the_only_look_ends_as_what_it_failed_by() -> None:
    with pytest.raises(StateUnavailable, match="could not become the manager: refused"):
        rolled_out(Client(Server(), RAMPS, troubles=["", "", "refused"]), once=True)


def test_worker_of_somebody_else_is_left_alone() -> None:
    client = Client(server := Server(), GATED)
    server.model.manager = ELSE
    assert rolled_out(client).routing.phase is Phase.BLOCKED
    assert server.done == []


def test_claim_made_elsewhere_under_the_same_name_lets_no_abort_be_undone() -> None:
    client = Client(server := Server(), RAMPS, troubles=["slow"])

    async def another() -> None:
        await server.sleep(SECOND)
        server.change(lambda: setattr(server.model, "manager", ME), ME)
        server.marks[MarkKey.ABORTED] = {"by": "a person"}

    server.run(client.rolling(), another())
    assert not any(name.startswith("Set") for name in server.done)


deeds = st.lists(st.tuples(st.integers(1, 400), st.sampled_from((*DEEDS, "vanish"))), max_size=8)
troubles = st.lists(st.sampled_from(TROUBLES), max_size=25)


@settings(max_examples=settings.default.max_examples // 2)
@given(troubles, troubles, deeds, st.sampled_from([RAMPS, GATED]), st.sampled_from([ME, YOU]))
def test_whatever_gets_lost_and_whoever_interrupts_two_rollouts_make_no_write_unread_and_the_next_one_settles(
    first: list[str], second: list[str], people: list[tuple[int, str]], spec: WorkerSpec, other: str
) -> None:
    server = Server()
    clients = [Client(server, spec, ME, ["", *first]), Client(server, spec, other, ["", *second])]
    server.run(*(client.rolling() for client in clients), server.person(people))
    assert rolled_out(Client(server, spec)).routing.phase is Phase.SETTLED
    current: Any = server.model.routing.current
    assert current.build_id == "v3"
    assert server.model.routing.ramping is None
    assert sum(name.startswith("gate") for name in server.done) <= server.stays, "one for each stay"
