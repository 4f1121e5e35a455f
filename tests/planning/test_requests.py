"""Which requests are refused by the state of a rollout alone."""

from dataclasses import replace

import pytest

from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.reasons.routing import RoutingReason as Reason
from twgen.model.requests import Answer, AnswerState, PendingRequest, Request, Verb
from twgen.model.status import RolloutStatus
from twgen.planning.requests import advised, refused_at_once, refused_without_job

MOVING = RolloutStatus(
    "shop/pay",
    Phase.WAITING,
    Reason.RAMP_PAUSED,
    "it waits",
    "v2",
    "v1",
    25,
    NOW,
    {},
    permits=(Verb.PROMOTE, Verb.RETRY),
)


@pytest.mark.parametrize("verb", list(Verb))
def test_rollout_that_moves_may_take_every_request(verb: Verb) -> None:
    assert refused_at_once(MOVING, verb) == ""


@pytest.mark.parametrize("verb", list(Verb))
def test_settled_rollout_takes_none_and_an_abort_is_told_the_way_back(verb: Verb) -> None:
    settled = replace(MOVING, phase=Phase.SETTLED, reason=Reason.SETTLED)
    why = refused_at_once(settled, verb)
    assert why.startswith("the rollout of v2 is settled")
    assert ("commit the spec of an older version" in why) == (verb is Verb.ABORT)


@pytest.mark.parametrize("verb", list(Verb))
def test_only_what_makes_faster_needs_the_operator(verb: Verb) -> None:
    why = refused_at_once(replace(MOVING, permits=()), verb)
    assert ("`rollout.requests` of the OperatorConfig" in why) == (verb in {Verb.PROMOTE, Verb.RETRY})


def test_aborted_rollout_takes_what_lets_it_continue() -> None:
    aborted = replace(MOVING, phase=Phase.BLOCKED, reason=Reason.ABORTED)
    refused = {verb for verb in Verb if refused_at_once(aborted, verb)}
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
    waiting = PendingRequest(Request("r1", Verb.RETRY, "v2", NOW, "ana"), "", None, "7")
    assert advised(replace(status, pending=waiting)) is None


@pytest.mark.parametrize("verb", list(Verb))
def test_abort_that_waits_gives_way_only_to_another_abort(verb: Verb) -> None:
    abort = Request("r1", Verb.ABORT, "v2", NOW, "ana")
    waiting = PendingRequest(abort, "", None, "7")
    why = refused_at_once(replace(MOVING, pending=waiting), verb)
    assert ("Abort of v2, requested by ana" in why) == (verb is not Verb.ABORT)
    answered = waiting._replace(answer=Answer(abort, AnswerState.REFUSED, "no"))
    of_another_target = waiting._replace(request=abort._replace(target="v1"))
    for pending in (answered, of_another_target, waiting._replace(request=None)):
        assert refused_at_once(replace(MOVING, pending=pending), verb) == ""


def test_reason_of_another_release_refuses_nothing_that_stops_a_rollout() -> None:
    other = replace(MOVING, reason="NewReason")
    assert not any(refused_at_once(other, verb) for verb in (Verb.PAUSE, Verb.ABORT))


def test_request_for_another_target_is_refused_without_a_job() -> None:
    request = Request("r1", Verb.ABORT, "v1", NOW)
    assert "no longer the target" in refused_without_job(request, MOVING, NOW, by_hand=False, is_hook=False)
    same = request._replace(target="v2")
    assert refused_without_job(same, MOVING, NOW, by_hand=False, is_hook=False) == ""
    invalid = replace(MOVING, reason=Reason.INVALID_INTENT, message="it was edited by hand")
    why = refused_without_job(same, invalid, NOW, by_hand=False, is_hook=False)
    assert why == "its Job cannot carry out its intent: it was edited by hand"
    of_hook = refused_without_job(same, MOVING, NOW, by_hand=False, is_hook=True)
    assert "only a sync starts it again" in of_hook
