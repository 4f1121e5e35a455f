"""How long rollouts are followed, and what ends that."""

import re
from time import monotonic

import pytest

from twgen.cli.following import Patience, RolloutState
from twgen.errors import NegativeAnswer, OutOfTime
from twgen.model.plan import Phase

WAITS = RolloutState("shop/pay", Phase.WAITING, "it stays at 5%")
MOVES = RolloutState("shop/ship", Phase.MOVING, "its pause has passed")
BLOCKED = RolloutState("shop/bill", Phase.BLOCKED, "somebody has paused it")
SETTLED = RolloutState("shop/mail", Phase.SETTLED, "it has all traffic")


def test_rollouts_are_followed_while_one_goes_on_beside_one_that_is_blocked() -> None:
    assert Patience(None, 5).goes_on([SETTLED, BLOCKED, WAITS])
    assert not Patience(None, 5).goes_on([SETTLED])


def test_blocked_rollout_is_told_when_no_other_goes_on_also_when_the_time_is_over() -> None:
    for seconds in (None, 1e-9):
        with pytest.raises(NegativeAnswer, match=r"^shop/bill is Blocked, because somebody has paused it$"):
            Patience(seconds, 5).goes_on([SETTLED, BLOCKED])


def test_those_that_go_on_when_the_time_is_over_are_told_with_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patience = Patience(90 * 60, 5)
    assert patience.goes_on([WAITS, MOVES])
    late = monotonic() + 90 * 60
    monkeypatch.setattr("twgen.cli.following.monotonic", lambda: late)
    told = (
        "not settled within 1h30m: shop/pay is Waiting, because it stays at 5%; "
        "shop/ship is Moving, because its pause has passed"
    )
    with pytest.raises(OutOfTime, match=f"^{re.escape(told)}$"):
        patience.goes_on([SETTLED, WAITS, BLOCKED, MOVES])


def test_last_look_is_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twgen.cli.following.monotonic", lambda: 1000.0)
    assert [Patience(60, every).next_read() for every in (5, 60, 3600)] == [1005, 1060, 1060]
