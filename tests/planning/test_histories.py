"""Which histories are taken."""

from twgen.model.histories import Recorded
from twgen.planning.histories import chosen


def run(number: int, workflow_type: str = "Order", *, is_open: bool = True) -> Recorded:
    return Recorded(workflow_type, f"w{number}", f"r{number}", is_open)


def test_open_ones_come_first_and_each_type_has_its_own_number() -> None:
    recorded = [
        run(1, is_open=False),
        run(2),
        run(3),
        run(4, "Refund", is_open=False),
        run(5, "Refund", is_open=False),
    ]
    assert chosen(recorded, 3) == [run(2), run(3), *(one for one in recorded if not one.is_open)]
    assert chosen(recorded, 1) == [run(2), run(4, "Refund", is_open=False)]
    assert chosen([], 5) == []
