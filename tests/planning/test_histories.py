"""Which histories are taken."""

from twgen.model.world import RecordedRun
from twgen.planning.routing.gates import chosen, left_out_altogether


def run(
    number: int, workflow_type: str = "Order", *, is_open: bool = True, build_id: str = ""
) -> RecordedRun:
    return RecordedRun(workflow_type, f"w{number}", f"r{number}", is_open, build_id)


def test_open_ones_come_first_and_each_type_has_its_own_number() -> None:
    ended, refunds = run(1, is_open=False), [run(4, "Refund", is_open=False), run(5, "Refund", is_open=False)]
    recorded = [ended, run(2), run(3), *refunds]
    assert chosen(recorded, 3) == [run(2), refunds[0], run(3), refunds[1], ended]
    assert chosen(recorded, 1) == [run(2), refunds[0]]
    assert chosen([], 5) == []


def test_each_version_that_holds_open_ones_has_its_turn_and_one_of_each_is_taken() -> None:
    newest = [run(number, build_id="v3") for number in range(9)]
    older = [run(10, build_id="v2"), run(11, build_id="v2"), run(12, build_id="v1")]
    assert chosen([*newest, *older], 4) == [newest[0], older[0], older[2], newest[1]]
    assert chosen([*newest, *older], 1) == [newest[0], older[0], older[2]]


def test_types_and_versions_are_told_of_which_nothing_fits() -> None:
    fits, of_other, ended = run(1, build_id="v1"), run(2, build_id="v2"), run(3, is_open=False)
    large = run(4, build_id="v1")
    assert left_out_altogether([fits, of_other], [large, ended]) == []
    assert left_out_altogether([fits], [of_other, large]) == ["open Order of v2"]
    # what ended is no word on what is open
    assert left_out_altogether([ended], [run(5)]) == ["open Order"]
    assert left_out_altogether([fits], [run(6, "Refund", is_open=False)]) == ["Refund"]
