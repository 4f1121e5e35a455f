"""Which requests a rollout takes, which are refused by its state alone, and which are offered."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.routing.test_replay import FAILED, PASSED
from tests.planning.routing.test_replay import target as replaying
from tests.planning.situations import mark
from tests.planning.test_interventions import MARK, STATES, a_target
from tests.planning.times import MINUTE, SECOND
from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.rollout import Answer, AnswerState, Driver, PendingRequest, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.planning.interventions import Intervention
from twgen.planning.requests import (
    advised,
    after_interruption,
    decided,
    has_ended,
    is_in_effect,
    offered,
    refused_after_abort,
    refused_at_once,
    refused_without_job,
    same_that_waits,
    taken,
)
from twgen.planning.routing.target import Target
from twgen.versioning.names import ABORT_REQUEST, REQUEST

FASTER = (Verb.PROMOTE, Verb.RETRY)
MOVING = RolloutStatus(
    *("shop/pay", Phase.WAITING, Reason.RAMP_PAUSED, "it waits", "v2", "v1", 25, NOW, None), permits=FASTER
)


def asked(verb: Verb, target: str = "v2", **facts: object) -> Request:
    return Request("r1", verb, target, NOW, "ana")._replace(**facts)  # type: ignore[arg-type]


def waits(request: Request | None, answer: Answer | None = None, wrong: str = "") -> PendingRequest:
    is_abort = request is not None and request.verb is Verb.ABORT
    return PendingRequest(ABORT_REQUEST if is_abort else REQUEST, request, wrong, answer, "7")


@pytest.mark.parametrize("verb", list(Verb))
def test_rollout_that_moves_may_take_every_request_and_a_settled_one_none(verb: Verb) -> None:
    assert refused_at_once(MOVING, asked(verb)) == ""
    why = refused_at_once(replace(MOVING, permits=()), asked(verb))
    assert ("`rollout.requests` of the OperatorConfig" in why) == (verb in FASTER)
    why = refused_at_once(replace(MOVING, phase=Phase.SETTLED, reason=Reason.SETTLED), asked(verb))
    assert why.startswith("the rollout of v2 is settled")
    assert ("commit the spec of an older version" in why) == (verb is Verb.ABORT)


def test_aborted_rollout_takes_what_lets_it_continue() -> None:
    aborted = replace(MOVING, phase=Phase.BLOCKED, reason=Reason.ABORTED)
    refused = {verb for verb in Verb if refused_at_once(aborted, asked(verb))}
    assert refused == {Verb.ABORT, Verb.PAUSE}


@pytest.mark.parametrize(
    ("reason", "verb"),
    [
        (Reason.PAUSED, Verb.RESUME),
        (Reason.ABORTED, Verb.RETRY),
        (Reason.GATE_FAILED, Verb.RETRY),
        (Reason.ROLLOUT_ENDED, Verb.RETRY),
        (Reason.UNTIL_PROMOTED, Verb.PROMOTE),
        (Reason.MANUAL, Verb.PROMOTE),
        (Reason.RAMP_PAUSED, None),
        (Reason.FOREIGN_MANAGER, None),
    ],
)
def test_advice_is_what_continues_a_rollout_that_needs_a_person(reason: Reason, verb: Verb | None) -> None:
    status = replace(MOVING, reason=reason, resource_version="7")
    assert advised(status) is verb
    assert advised(replace(status, permits=())) is (Verb.RESUME if verb is Verb.RESUME else None)
    assert advised(replace(status, resource_version="")) is None, "no rollout is in a cluster"
    assert advised(replace(status, phase=Phase.SETTLED)) is None
    assert advised(replace(status, pending=(waits(asked(Verb.RETRY)),))) is None


@pytest.mark.parametrize("waiting", [asked(Verb.ABORT), asked(Verb.PROMOTE), asked(Verb.PAUSE)])
@pytest.mark.parametrize("verb", list(Verb))
def test_while_a_request_waits_only_an_abort_is_taken(verb: Verb, waiting: Request) -> None:
    pending = waits(waiting)
    why = refused_at_once(replace(MOVING, pending=(pending,)), asked(verb))
    assert (f"{waiting} waits for its answer" in why) == (verb is not Verb.ABORT)
    status = replace(MOVING, pending=(pending,), resource_version="7")
    assert offered(status) == (Verb.ABORT,)
    others = (
        pending._replace(answer=Answer(waiting, AnswerState.REFUSED, "no")),
        pending._replace(request=waiting._replace(target="v1")),
        pending._replace(request=waiting._replace(at=NOW - timedelta(days=1))),
        pending._replace(request=None),
    )
    for one in others:
        assert refused_at_once(replace(MOVING, pending=(one,)), asked(verb)) == ""


def test_request_that_a_manifest_has_takes_no_button_away() -> None:
    status = replace(MOVING, resource_version="7")
    ignored = waits(None)._replace(is_ignored=True)
    assert offered(replace(status, pending=(ignored,))) == offered(status)


@pytest.mark.parametrize(
    ("pending", "answers", "is_taken"),
    [
        ((), (), False),
        ((waits(asked(Verb.RETRY)),), (), True),
        ((), (Answer(asked(Verb.RETRY), AnswerState.DONE, "done"),), True),
        ((), (Answer(asked(Verb.RETRY), AnswerState.REFUSED, "no"),), False),
        ((), (Answer(asked(Verb.ABORT), AnswerState.DONE, "done"),), False),
    ],
)
def test_aborted_version_is_aborted_again_only_if_somebody_may_have_retried_it(
    pending: tuple[PendingRequest, ...], answers: tuple[Answer, ...], *, is_taken: bool
) -> None:
    aborted = replace(MOVING, phase=Phase.BLOCKED, reason=Reason.ABORTED, pending=pending, answers=answers)
    why = refused_at_once(aborted, asked(Verb.ABORT, id="r2"))
    assert why == ("" if is_taken else "v2 is already aborted")
    assert (Verb.ABORT in offered(replace(aborted, resource_version="7"))) == bool(pending)


def test_request_for_a_target_that_was_replaced_is_refused_when_it_is_judged_again() -> None:
    assert refused_at_once(replace(MOVING, target="v3"), asked(Verb.ABORT)) == "its target is v3 now"


def test_request_that_waits_already_is_not_made_twice() -> None:
    mine = asked(Verb.PROMOTE, id="mine")
    others = asked(Verb.PROMOTE, by="ben")
    assert same_that_waits(replace(MOVING, pending=(waits(others),)), mine) == others
    for other in (asked(Verb.PROMOTE, full=True), asked(Verb.PAUSE), asked(Verb.PROMOTE, "v1")):
        assert same_that_waits(replace(MOVING, pending=(waits(other),)), mine) is None
    answered = waits(others, Answer(others, AnswerState.DONE, "done"))
    assert same_that_waits(replace(MOVING, pending=(answered,)), mine) is None


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.RAMP_PAUSED, False),
        (Reason.PAUSED, False),
        (Reason.GATE_FAILED, True),
        (Reason.ABORTED, True),
        (Reason.ROLLOUT_ENDED, True),
        (Reason.ROLLOUT_NOT_BEGUN, False),
    ],
)
def test_job_has_ended_if_its_rollout_needs_a_person_or_was_left(reason: Reason, *, expected: bool) -> None:
    assert has_ended(replace(MOVING, reason=reason)) is expected


def test_failed_version_is_not_offered_for_promotion() -> None:
    for reason in (Reason.GATE_FAILED, Reason.STEP_GATE_FAILED, Reason.REPLAY_FAILED):
        failed = replace(MOVING, reason=reason, resource_version="7")
        assert offered(failed) == (Verb.ABORT, Verb.RETRY)
    aborted = replace(MOVING, reason=Reason.ABORTED, resource_version="7")
    assert offered(aborted) == (Verb.RETRY,)
    assert offered(replace(MOVING, resource_version="7")) == (Verb.PAUSE, Verb.ABORT, Verb.PROMOTE)


def test_reason_of_another_release_refuses_nothing_that_stops_a_rollout() -> None:
    other = replace(MOVING, reason="NewReason")
    assert not any(refused_at_once(other, asked(verb)) for verb in (Verb.PAUSE, Verb.ABORT))


def test_request_for_another_target_is_refused_without_a_job() -> None:
    request = Request("r1", Verb.ABORT, "v1", NOW)
    assert "no longer the target" in refused_without_job(request, MOVING, NOW, Driver.JOB)
    same = request._replace(target="v2")
    assert refused_without_job(same, MOVING, NOW, Driver.JOB) == ""
    invalid = replace(MOVING, reason=Reason.INVALID_INTENT, message="it was edited by hand")
    why = refused_without_job(same, invalid, NOW, Driver.JOB)
    assert why == "its Job cannot carry out its intent: it was edited by hand"
    of_hook = refused_without_job(same, MOVING, NOW, Driver.HOOK)
    assert "only a sync restarts it" in of_hook


def test_abort_of_the_target_refuses_whatever_waits_with_it() -> None:
    target, abort = STATES["ramping at 5%"], asked(Verb.ABORT, "v3")
    for verb in set(Verb) - {Verb.ABORT}:
        other = asked(verb, "v3", id="r2")
        for answer in (None, Answer(other, AnswerState.TAKEN, "do it")):
            pending = waits(other, answer)
            [(refused, end)] = refused_after_abort(abort, [pending], target)
            assert (refused, end.request, end.state) == (pending, other, AnswerState.REFUSED)
            assert "an abort was requested too" in end.message
        assert (
            refused_after_abort(abort, [waits(other, Answer(other, AnswerState.DONE, "done"))], target) == []
        )
        assert refused_after_abort(other, [waits(abort)], target) == []
        assert refused_after_abort(asked(Verb.ABORT, "v2"), [waits(other)], target) == [], (
            "it aborts another version"
        )


def ended_as(request: Request, target: Target, *, taken: bool = True) -> Answer | Intervention:
    answer = Answer(request, AnswerState.TAKEN, "do it", "1") if taken else None
    return decided(request, waits(request, answer), target, FASTER)


@pytest.mark.parametrize(
    ("state", "is_retried"),
    [("aborted", False), ("aborted, still ramping", False), ("gate failed", False), ("gate passed", True)],
)
def test_retry_is_in_effect_once_nothing_is_left_to_retry(state: str, *, is_retried: bool) -> None:
    assert is_in_effect(asked(Verb.RETRY, "v3"), STATES[state]) is is_retried


def test_retry_is_not_in_effect_while_a_replay_has_failed() -> None:
    assert not is_in_effect(asked(Verb.RETRY, "v3"), replaying(FAILED))
    assert is_in_effect(asked(Verb.RETRY, "v3"), replaying(PASSED))


def test_retry_that_was_taken_is_done_only_if_the_version_is_no_longer_aborted() -> None:
    request = asked(Verb.RETRY, "v3", at=NOW + MINUTE)
    done = ended_as(request, STATES["aborted once, retried"])
    assert isinstance(done, Answer)
    assert (done.state, done.message) == (AnswerState.DONE, "do it")
    foreign = ended_as(request, a_target(manager="somebody/else", aborted=MARK))
    assert isinstance(foreign, Answer)
    assert foreign.state is AnswerState.REFUSED


@pytest.mark.parametrize("reason", ["", Reason.ABORTED, Reason.GATE_FAILED, Reason.RAMP_PAUSED])
def test_retry_by_who_has_not_seen_the_abort_does_not_undo_it(reason: str) -> None:
    end = ended_as(asked(Verb.RETRY, "v3", reason=reason), STATES["aborted"], taken=False)
    assert isinstance(end, Intervention) == (reason in {"", Reason.ABORTED})
    if isinstance(end, Answer):
        assert "its status did not show the abort yet" in end.message
    seen = ended_as(asked(Verb.RETRY, "v3", reason=Reason.GATE_FAILED), STATES["gate failed"], taken=False)
    assert isinstance(seen, Intervention)


@pytest.mark.parametrize("verb", [Verb.RESUME, Verb.RETRY])
def test_interrupted_request_for_an_earlier_target_is_not_ended_by_a_stop_of_the_present_one(
    verb: Verb,
) -> None:
    stopped = a_target(paused=mark(SECOND))
    for target, expected in (("v3", "do it: it has been stopped again since then"), ("v2", None)):
        request = asked(verb, target, at=NOW - MINUTE)
        end = after_interruption(Answer(request, AnswerState.TAKEN, "do it"), stopped)
        assert (end.message if end else None) == expected


@pytest.mark.parametrize("fast", [-10, 0, 10])
@pytest.mark.parametrize("verb", [Verb.RESUME, Verb.RETRY])
def test_interrupted_request_does_not_undo_a_later_stop_whatever_the_clocks(verb: Verb, fast: int) -> None:
    request = asked(verb, "v3", at=NOW + fast * MINUTE)
    before = a_target(paused=mark(-MINUTE), aborted=mark(-MINUTE))
    decision = decided(request, waits(request), before, FASTER)
    assert isinstance(decision, Intervention)
    answer = taken(request, decision, before)
    assert after_interruption(answer, before) is None
    end = after_interruption(answer, a_target(paused=mark(SECOND)))
    assert end
    assert end.message.endswith("it has been stopped again since then")


@pytest.mark.parametrize(
    ("recorded", "state", "end"),
    [
        pytest.param(100, "current", AnswerState.DONE, id="it has all"),
        pytest.param(100, "current, another ramps", AnswerState.REFUSED, id="a ramp leaves it 90%"),
        pytest.param(None, "current", AnswerState.REFUSED, id="its share was not recorded"),
    ],
)
def test_interrupted_promotion_is_done_if_the_target_has_the_share_that_was_recorded(
    recorded: float | None, state: str, end: AnswerState
) -> None:
    answer = Answer(asked(Verb.PROMOTE, "v3"), AnswerState.TAKEN, "promote", "an earlier token", recorded)
    found = after_interruption(answer, STATES[state])
    assert found
    assert found.state is end
    assert found.message.endswith("the target's share is 90% now") == ("another" in state)


@pytest.mark.parametrize("verb", list(Verb))
def test_request_whose_last_answer_is_unknown_is_repeated_only_if_it_slows(verb: Verb) -> None:
    request = asked(verb, "v3")
    end = decided(request, waits(request, wrong="the answer cannot be read"), STATES["ramping at 5%"], FASTER)
    assert isinstance(end, Intervention) == verb.slows
    if isinstance(end, Answer):
        assert (
            end.message
            == "the answer cannot be read: check the status of the rollout, then make the request again"
        )


def test_request_that_comes_back_after_other_answers_is_answered_already() -> None:
    newest = None
    for number in range(40):
        request = asked(Verb.RESUME, id=f"r{number}")
        newest = Answer(request, AnswerState.DONE, "done").after(newest)
    assert newest
    assert len(newest.earlier) == 30
    back = waits(asked(Verb.RESUME, id="r20"), newest)
    assert (back.waiting, back.answer_to_it) == (None, None)
    assert waits(asked(Verb.RESUME, id="r40"), newest).waiting
