"""What a RolloutPolicy has replayed, as people write it and mistake it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.specs.parsing import CONNECTION, parsed, policy, told, worker
from twgen.model.policy import Replay, ReplayBefore, Sample

NO_BYTES = "is not a number of bytes such as 64Mi"
COMMAND = ["python", "-m", "shop.replay", "/histories"]


def found(**replay: Any) -> Any:
    return parsed(worker(), CONNECTION, policy(replay=replay))


def test_replay_says_its_command_how_much_and_what_waits_for_it() -> None:
    specs = found(command=COMMAND)
    assert (specs.problems, specs.warnings) == ((), ())
    assert specs.workers[0].policy.replay == Replay(tuple(COMMAND), Sample(50, 64 * 2**20))
    specs = found(command=COMMAND, sample=5, maxBytes="1500k", when="Both", within="5m", inMemory=True)
    assert specs.workers[0].policy.replay == Replay(
        tuple(COMMAND), Sample(5, 1_500_000), ReplayBefore.BOTH, timedelta(minutes=5), in_memory=True
    )


@pytest.mark.parametrize(
    ("wrong", "replay"),
    [
        ("spec.replay.command: is required: a program in the worker's image that replays histories", {}),
        ("spec.replay.command: must not be empty", {"command": []}),
        ("spec.replay.command[1]: must not be empty", {"command": ["python", ""]}),
        ("spec.replay.sample: 0 is below 1", {"command": COMMAND, "sample": 0}),
        (f"spec.replay.maxBytes: {NO_BYTES}", {"command": COMMAND, "maxBytes": "64MB"}),
        (f"spec.replay.maxBytes: {NO_BYTES}", {"command": COMMAND, "maxBytes": "0"}),
        (f"spec.replay.maxBytes: {NO_BYTES}", {"command": COMMAND, "maxBytes": ""}),
        ("spec.replay.within: 1s is shorter than 10s", {"command": COMMAND, "within": "1s"}),
        ("spec.replay.within: is longer than 24h", {"command": COMMAND, "within": "25h"}),
        ("spec.replay.maxBytes: is more than 10Gi", {"command": COMMAND, "maxBytes": "11Gi"}),
    ],
)
def test_mistake_is_told(wrong: str, replay: dict[str, Any]) -> None:
    assert told(found(**replay).problems) == [wrong]


def test_replay_before_a_move_lets_a_policy_move_without_further_consent() -> None:
    move = [{"after": "168h", "action": "Move"}]
    for when, problems in (("BeforeMove", 0), ("Both", 0), ("BeforeRamp", 1)):
        specs = parsed(worker(), CONNECTION, policy(draining=move, replay={"command": COMMAND, "when": when}))
        assert len(specs.problems) == problems, when


def test_word_of_a_command_may_be_a_whole_script() -> None:
    specs = found(command=["sh", "-c", "replay /histories\n" * 200])
    assert told(specs.problems) == []
