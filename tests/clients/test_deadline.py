from threading import Event

import pytest

from twgen.clients.deadline import Deadline
from twgen.errors import OutOfTime


def test_work_that_is_done_in_time_gives_its_answer() -> None:
    assert Deadline(10).cut("somebody", lambda: 5) == 5


def test_work_that_fails_raises_its_own_error() -> None:
    def fail() -> None:
        message = "no"
        raise KeyError(message)

    with pytest.raises(KeyError):
        Deadline(10).cut("somebody", fail)


def test_error_of_the_work_that_is_a_timeout_is_no_missed_deadline() -> None:
    def fail() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Deadline(10).cut("somebody", fail)


def test_work_that_hangs_is_left_behind_at_the_deadline() -> None:
    release = Event()
    with pytest.raises(OutOfTime, match=r"^the server did not answer within 0\.05 s: .*--timeout"):
        Deadline(0.05).cut("the server", release.wait)
    release.set()
