import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twgen.model.times import parse_duration
from twgen.planning.sentences import spoken


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("+1.5h", timedelta(minutes=90)),
        (".5ms", timedelta(microseconds=500)),
        ("0", timedelta()),
        ("2562047h47m16s", timedelta(hours=2562047, minutes=47, seconds=16)),
    ],
)
def test_duration_is_what_go_reads(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a duration such as 90s or 1h30m"),
        ("5", "'5' is not a duration such as 5s, 5m or 5h"),
        ("h", "'h' is not a duration such as 90s or 1h30m"),
        ("1e3s", "'1e3s' is not a duration such as 90s or 1h30m"),
        ("300 ms", "'300 ms' is not a duration such as 90s or 1h30m"),
        ("-1s", "'-1s' is negative"),
        ("2562047h47m17s", "'2562047h47m17s' is too long: at most 2562047h"),
        ("99999999h", "'99999999h' is too long: at most 2562047h"),
        ("9999999 days", "'9999999 days' is too long: at most 2562047h"),
        ("1d", "'1d' is not a duration: write 24h"),
        ("1d 2h", "'1d 2h' is not a duration: write 26h"),
        ("10min", "'10min' is not a duration: write 10m"),
        ("1 hour 30 minutes", "'1 hour 30 minutes' is not a duration: write 1h30m"),
        ("2 Weeks", "'2 Weeks' is not a duration: write 336h"),
    ],
)
def test_what_go_does_not_read_says_how_to_write_it(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_duration(text)


@given(st.integers(1, 10**9).map(lambda seconds: timedelta(seconds=seconds)))
def test_length_that_twgen_prints_can_be_read_back(length: timedelta) -> None:
    assert parse_duration(spoken(length, units=3)) == length
