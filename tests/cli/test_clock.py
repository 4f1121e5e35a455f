"""By what time a rollout goes, when the clocks that it hears do not agree."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

import pytest

from tests.planning.situations import NOW
from tests.planning.times import HOUR, MINUTE, SECOND
from twgen.cli import settings
from twgen.cli.rolling import SlowestClock
from twgen.cli.settings import steady
from twgen.clients import deadline
from twgen.clients.kubernetes import Heard


class Machine:
    """A machine with its own clock, which may sleep; and what its rollout hears."""

    def __init__(self, api_server: Callable[["Machine"], Heard | None] = lambda _: None) -> None:
        self.own, self.monotonic = NOW, 0.0
        self.clock = SlowestClock(lambda: self.own, lambda: self.monotonic, lambda: api_server(self))

    def wait(self, length: timedelta) -> None:
        self.own += length
        self.monotonic += length.total_seconds()

    def see_a_change(self, stamped: datetime) -> None:
        """A look begins, the traffic changes, and the next look sees it."""
        self.clock.saw(stamped - HOUR, self.monotonic)
        self.wait(SECOND)
        self.clock.saw(stamped, self.monotonic)


def test_clock_of_temporal_that_was_wrong_once_is_forgotten_with_the_next_change() -> None:
    machine = Machine()
    machine.see_a_change(NOW - 10 * MINUTE)
    assert machine.own - machine.clock() >= 10 * MINUTE
    machine.wait(MINUTE)
    machine.see_a_change(machine.own)
    assert machine.own - machine.clock() <= SECOND


def test_machine_that_slept_unnoticed_is_right_again_with_the_next_change() -> None:
    machine = Machine()
    machine.see_a_change(machine.own)
    machine.own += 8 * HOUR
    assert machine.own - machine.clock() >= 8 * HOUR
    machine.see_a_change(machine.own)
    assert machine.own - machine.clock() <= SECOND


def test_pause_goes_by_the_clock_of_temporal_where_that_is_behind() -> None:
    machine = Machine()
    machine.see_a_change(NOW - HOUR)
    machine.wait(MINUTE)
    assert machine.clock() <= NOW - HOUR + MINUTE + SECOND


def test_clocks_are_apart_by_the_fastest_and_the_slowest_of_all() -> None:
    behind = Machine(lambda machine: Heard(machine.own - 4 * HOUR, machine.monotonic))
    assert behind.clock.apart() == 4 * HOUR
    ahead = Machine(lambda machine: Heard(machine.own + HOUR, machine.monotonic))
    assert ahead.clock.apart() == HOUR
    machine = Machine()
    machine.clock.saw(NOW + HOUR, machine.monotonic)
    assert machine.clock.apart() == HOUR, "what Temporal dated cannot be to come"
    assert machine.clock() == NOW


def test_steady_clock_goes_on_whatever_happens_to_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    monkeypatch.setattr(settings, "_began", cache(settings._began.__wrapped__))  # noqa: SLF001 - as in a new process
    monkeypatch.setattr(settings, "clock", lambda: machine.own)
    monkeypatch.setattr(deadline, "monotonic", lambda: machine.monotonic)
    assert steady() == NOW
    machine.wait(MINUTE)
    machine.own -= 3 * HOUR
    machine.wait(MINUTE)
    assert steady() == NOW + 2 * MINUTE
