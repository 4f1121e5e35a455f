"""What each command does to a rollout in each state, or why it does not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.planning.situations import MAIN, NOW, RAMPS, live, routing, situation, target_in, temporal, version
from tests.planning.times import HOUR, MINUTE
from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.plan import RoutingAction
from twgen.model.spec import Gate
from twgen.model.temporal import GateRun, GateStatus, Routing, TaskQueue, TaskQueueType, VersionStatus
from twgen.planning.interventions import Intervention, abort, is_done, pause, promote, resume, retire, retry
from twgen.planning.routing.target import Target
from twgen.versioning.names import MarkKey

GATED = replace(RAMPS, rollout=replace(RAMPS.rollout, gate=Gate("Check")))
MARK = {"by": "a person"}
KEYS = MarkKey.ABORTED, MarkKey.GATE_ATTEMPT, MarkKey.PAUSED, MarkKey.RETIRED
MARKS = dict(zip(KEYS, ("aborted", "attempt", "paused", "retired"), strict=True))
COMMANDS: Mapping[str, Callable[[Target], Intervention]] = {
    "promote": lambda target: promote(target, full=False, skip_gate=False),
    "promote --full": lambda target: promote(target, full=True, skip_gate=False),
    "promote --skip-gate": lambda target: promote(target, full=False, skip_gate=True),
    **{command.__name__: command for command in (abort, retry, pause, resume)},
}


def a_target(  # noqa: PLR0913 - each is one thing that a command asks
    traffic: Routing = routing("v1"),  # noqa: B008 - a frozen value
    gate: GateStatus | None = GateStatus.COMPLETED,
    *,
    pods: bool = True,
    is_registered: bool = True,
    manager: str = "me",
    current_polls: tuple[TaskQueue, ...] = (MAIN,),
    registered: datetime = NOW - HOUR,
    **metadata: Any,
) -> Target:
    marks = {key: metadata[name] for key, name in MARKS.items() if name in metadata}
    runs = (GateRun("main", "test-shop/payments:v3-main", gate, NOW),) if gate else ()
    target = version("v3", metadata=marks, gate_runs=runs, created_at=registered)
    versions = (version("v1", VersionStatus.CURRENT, task_queues=current_polls), target)
    told = temporal(*versions[: 1 + is_registered], traffic=traffic, manager_identity=manager)
    found = situation(told, [live("v1"), live("v3")] if pods else [live("v1")])
    return target_in(found, GATED)


POLLS_MORE = (MAIN, TaskQueue("bulk", TaskQueueType.ACTIVITY))
STATES: Mapping[str, Target] = {
    "not registered": a_target(is_registered=False),
    "gate not started": a_target(gate=None),
    "gate running": a_target(gate=GateStatus.RUNNING),
    "gate failed": a_target(gate=GateStatus.FAILED),
    "gate passed": a_target(),
    "nobody's": a_target(manager=""),
    "ramping at 5%": a_target(routing("v1", ("v3", 5))),
    "ramping at 25%": a_target(routing("v1", ("v3", 25))),
    "another ramps": a_target(routing("v1", ("v2", 50))),
    "aborted": a_target(aborted=MARK),
    "aborted, still ramping": a_target(routing("v1", ("v3", 5)), aborted=MARK),
    "aborted once, retried": a_target(aborted=False),
    "paused": a_target(paused=MARK),
    "paused while ramping": a_target(routing("v1", ("v3", 5)), paused=MARK),
    "without pods": a_target(pods=False),
    "lacks a task queue": a_target(current_polls=POLLS_MORE),
    "may poll it yet": a_target(current_polls=POLLS_MORE, registered=NOW - MINUTE),
    "current": a_target(routing("v3")),
    "current, another ramps": a_target(routing("v3", ("", 10))),
}


UNKNOWN = "Temporal does not know it yet, so nothing can be changed; `twgen status` shows the reason"
NO_GATE = "its gate has not passed; to continue without it, use --skip-gate"
ABORTED_FIRST = "it is marked aborted; run `twgen retry` first"
NO_PODS = "it has no Deployment yet"
LACKS = "it does not poll activity task queue bulk, but v1 does; the rollout continues anyway in 4m"
ALL = "it already has all traffic"
CURRENT = "it is current: to go back, commit the spec of an older version"
NOTHING_TO_PAUSE = "it is current: there is nothing left to pause"
NONE_FAILED = "it is not aborted, and no gate failed"
NOT_PAUSED = "it is not paused"
# promote; with --full; with --skip-gate; abort; retry; pause; resume
OUTCOMES: Mapping[str, tuple[str, ...]] = {
    "not registered": (UNKNOWN,) * 7,
    "gate not started": (*[NO_GATE] * 2, "5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "gate running": (*[NO_GATE] * 2, "5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "gate failed": (*[NO_GATE] * 2, "5%", "aborted", "attempt 2", "paused", NOT_PAUSED),
    "gate passed": ("5%", "all", "5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "nobody's": ("claim, 5%", "claim, all", "claim, 5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "ramping at 5%": ("25%", "all", "25%", "aborted, no ramp", NONE_FAILED, "paused", NOT_PAUSED),
    "ramping at 25%": ("all", "all", "all", "aborted, no ramp", NONE_FAILED, "paused", NOT_PAUSED),
    "another ramps": ("5%", "all", "5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "aborted": (*[ABORTED_FIRST] * 3, "it is already aborted", "not aborted", "paused", NOT_PAUSED),
    "aborted, still ramping": (*[ABORTED_FIRST] * 3, "aborted, no ramp", "not aborted", "paused", NOT_PAUSED),
    "aborted once, retried": ("5%", "all", "5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "paused": ("5%", "all", "5%", "aborted", NONE_FAILED, "it is already paused", "not paused"),
    "paused while ramping": (
        "25%", "all", "25%", "aborted, no ramp", NONE_FAILED, "it is already paused", "not paused"
    ),
    "without pods": (*[NO_PODS] * 3, "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "lacks a task queue": ("5%", "all", "5%", "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "may poll it yet": (*[LACKS] * 3, "aborted", NONE_FAILED, "paused", NOT_PAUSED),
    "current": (*[ALL] * 3, CURRENT, NONE_FAILED, NOTHING_TO_PAUSE, NOT_PAUSED),
    "current, another ramps": (*["no ramp"] * 3, CURRENT, NONE_FAILED, NOTHING_TO_PAUSE, NOT_PAUSED),
}  # fmt: skip


def done_by(intervention: Intervention) -> str:
    done = []
    for key, value in intervention.marks.items():
        number = f" {value['attempt']}" if value and "attempt" in value else ""
        done.append(f"{'not ' if value is False else ''}{MARKS[key]}{number}")
    if change := intervention.change:
        done += ["claim"] if change.claim_manager else []
        shares = {RoutingAction.SET_CURRENT: "all", RoutingAction.CLEAR_RAMP: "no ramp"}
        done.append(shares.get(change.action, f"{change.percentage}%"))
    return ", ".join(done)


@pytest.mark.parametrize(
    ("state", "command", "expected"),
    [
        (state, command, outcome)
        for state, outcomes in OUTCOMES.items()
        for command, outcome in zip(COMMANDS, outcomes, strict=True)
    ],
)
def test_command_does_what_the_state_allows_or_says_why_not(state: str, command: str, expected: str) -> None:
    target = STATES[state]
    told, intervention = "", None
    try:
        intervention = COMMANDS[command](target)
    except NegativeAnswer as error:
        told = str(error).removeprefix("shop/payments, target v3: ")
    assert (done_by(intervention) if intervention else told) == expected
    assert not intervention or not is_done(target, intervention), "it changes something"


def test_promoting_past_a_task_queue_says_which_one_is_left_behind() -> None:
    will = COMMANDS["promote"](STATES["lacks a task queue"]).will
    assert will.endswith("to v3, although it does not poll activity task queue bulk of v1")


@pytest.mark.parametrize("command", COMMANDS)
def test_worker_of_somebody_else_is_refused_to_every_command(command: str) -> None:
    with pytest.raises(OwnedBySomebodyElse, match=r"^shop/payments: its manager is else, and you act as me"):
        COMMANDS[command](a_target(manager="else"))


@pytest.mark.parametrize(
    ("before", "command", "after"),
    [
        ("gate passed", "promote", "ramping at 5%"),
        ("ramping at 5%", "promote", "ramping at 25%"),
        ("ramping at 25%", "promote", "current"),
        ("current, another ramps", "promote", "current"),
        ("aborted", "retry", "aborted once, retried"),
    ],
)
def test_new_look_tells_that_it_is_done(before: str, command: str, after: str) -> None:
    assert is_done(STATES[after], COMMANDS[command](STATES[before]))


UNVERSIONED_TOO = replace(MAIN, unversioned_pollers=True)


def test_worker_is_retired_to_workers_without_a_version_and_stays_so() -> None:
    of_a_process = TaskQueue("temporal-sys/worker-commands/shop/pod-1", TaskQueueType.NEXUS)
    done = retire(a_target(current_polls=(UNVERSIONED_TOO, of_a_process)))
    assert done.change
    assert (done.change.action, done.change.build_id) == (RoutingAction.SET_CURRENT, "")
    gone = a_target(routing(None), retired=done.marks[MarkKey.RETIRED])
    assert gone.is_paused
    assert is_done(gone, done)
    assert not is_done(a_target(retired=done.marks[MarkKey.RETIRED]), done)
    assert done_by(resume(gone)) == "not retired"
    with pytest.raises(NegativeAnswer, match="no version is current; `twgen drain`"):
        retire(gone)


@pytest.mark.parametrize("polls", [None, False])
def test_worker_whose_task_queue_nobody_else_polls_is_not_retired(*, polls: bool | None) -> None:
    queue = replace(MAIN, unversioned_pollers=polls)
    with pytest.raises(NegativeAnswer, match="is known to poll workflow task queue"):
        retire(a_target(current_polls=(UNVERSIONED_TOO, queue)))
    with pytest.raises(NegativeAnswer, match="is known to poll its task queues"):
        retire(a_target(current_polls=()))


def test_worker_that_ramps_or_that_somebody_else_manages_is_not_retired() -> None:
    with pytest.raises(NegativeAnswer, match="run `twgen abort` first"):
        retire(a_target(routing("v1", ("v3", 5)), current_polls=(UNVERSIONED_TOO,)))
    with pytest.raises(OwnedBySomebodyElse):
        retire(a_target(manager="other", current_polls=(UNVERSIONED_TOO,)))
