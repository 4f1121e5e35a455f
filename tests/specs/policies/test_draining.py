"""What a RolloutPolicy does to the workflows of versions that drain, as people write it and mistake it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.draining import BatchAction, DrainingAction, DrainingEntry

SIGNAL = {"after": "24h", "action": "Signal", "signalName": "continue-as-new"}
MOVE = {"after": "168h", "action": "Move", "withoutReplay": True}
TERMINATE = {"after": "800h", "action": "Terminate", "allowTermination": True}

UNPROVEN = "no replay covers the version that these workflows would move to"

REMEDY = "set spec.replay with `when: BeforeMove`, or `withoutReplay: true` in this entry"
NO_TYPE = "is not a workflow name: one line, without quotes"


def found(*entries: Any) -> Any:
    return parsed(worker(), CONNECTION, policy(draining=list(entries)))


def without(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


def test_entries_say_when_what_and_to_which_workflows() -> None:
    specs = found({**SIGNAL, "signalInput": {"soon": True}, "workflowTypes": ["Poller"]}, MOVE, TERMINATE)
    assert (specs.problems, specs.warnings) == ((), ())
    signal = DrainingAction(
        BatchAction.SIGNAL, ("Poller",), signal_name="continue-as-new", signal_input=b'{"soon":true}'
    )
    assert specs.workers[0].policy.draining == (
        DrainingEntry(timedelta(hours=24), signal),
        DrainingEntry(timedelta(hours=168), DrainingAction(BatchAction.MOVE, without_replay=True)),
        DrainingEntry(timedelta(hours=800), DrainingAction(BatchAction.TERMINATE)),
    )


CONSENT = "ends workflows: set `allowTermination: true` in the same entry"


@pytest.mark.parametrize(
    ("wrong", "entries"),
    [
        ("spec.draining[0].after: is required", [without(SIGNAL, "after")]),
        ("spec.draining[0].action: is required", [{"after": "1h"}]),
        ("spec.draining[0].after: 0s is shorter than 1s", [{**SIGNAL, "after": "0s"}]),
        (
            "spec.draining[1].after: must not be shorter than in the entry above: sort the entries by age",
            [SIGNAL, {**MOVE, "after": "1h"}],
        ),
        (
            "spec.draining[0].action: 'End' is not one of Move, Signal, Cancel, Terminate",
            [{**TERMINATE, "action": "End"}],
        ),
        (f"spec.draining[0].action: Terminate {CONSENT}", [without(TERMINATE, "allowTermination")]),
        (
            f"spec.draining[0].action: Cancel {CONSENT}",
            [{"after": "1h", "action": "Cancel", "allowTermination": False}],
        ),
        (f"spec.draining[0].action: {UNPROVEN}: {REMEDY}", [without(MOVE, "withoutReplay")]),
        ("spec.draining[0].signalName: is required", [without(SIGNAL, "signalName")]),
        (
            "spec.draining[0].signalName: is only for action Signal, not for Move",
            [{**MOVE, "signalName": "stop"}],
        ),
        (f'spec.draining[0].workflowTypes[0]: "a\'b" {NO_TYPE}', [{**TERMINATE, "workflowTypes": ["a'b"]}]),
        ("spec.draining[0].workflowTypes: must not be empty", [{**TERMINATE, "workflowTypes": []}]),
        ("spec.draining: has 11 entries: at most 10 are allowed", [SIGNAL] * 11),
    ],
)
def test_mistake_is_told(wrong: str, entries: list[dict[str, Any]]) -> None:
    assert told(found(*entries).problems) == [wrong]


def test_consent_that_consents_to_nothing_is_doubtful() -> None:
    assert told(found({**SIGNAL, "allowTermination": True}).warnings) == [
        "spec.draining[0].allowTermination: has no effect on Signal"
    ]


def test_what_ends_workflows_while_a_rollback_may_come_is_doubtful() -> None:
    early = {"after": "30m", "action": "Cancel", "allowTermination": True}
    assert told(found({**SIGNAL, "after": "1m"}, early).warnings) == [
        "spec.draining[1].after: is shorter than rollbackWindow: a rollback to that version may come too late"
    ]
