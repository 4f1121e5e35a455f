"""Many rollouts at a glance."""

from dataclasses import replace
from datetime import timedelta

from tests.strategies import NOW
from twgen.model.plan import Phase
from twgen.model.status import RolloutStatus
from twgen.reporting.status.fleet import fleet_document, fleet_lines

RAMPS = RolloutStatus(
    worker="shop/pay",
    phase=Phase.WAITING,
    reason="RampPaused",
    message="it stays at 25 %\x1b[2J",
    target="v2",
    current="v1",
    percentage=25,
    since=NOW,
    document={"workers": [{"worker": "shop/pay"}]},
)
FIRST = RolloutStatus("shop/new", Phase.BLOCKED, "GateFailed", "it failed", "v1", "", 0, NOW, {})


def test_line_says_where_a_rollout_stands_for_how_long_and_why() -> None:
    lines = fleet_lines([RAMPS, FIRST], NOW + timedelta(minutes=12))
    assert lines == [
        "shop/pay: Waiting for 12m, target v2 at 25 %, current v1; RampPaused: it stays at 25 %\\x1b[2J",
        "shop/new: Blocked for 12m, target v1 at 0 %, current none; GateFailed: it failed",
    ]


def test_rollout_whose_intent_cannot_be_used_tells_nothing_of_traffic() -> None:
    edited = replace(FIRST, reason="InvalidIntent", message="edited by hand")
    assert fleet_lines([edited], NOW) == [
        "shop/new: Blocked for 0s, target v1; InvalidIntent: edited by hand"
    ]


def test_documents_of_all_rollouts_are_one_status() -> None:
    document = fleet_document([RAMPS, FIRST], NOW)
    assert (document["kind"], document["workers"]) == ("Status", [{"worker": "shop/pay"}])
