import re
from datetime import timedelta

import pytest

from twgen.specs.durations import parse_duration


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


@pytest.mark.parametrize("text", ["", "5", "-1s", "1 h", "1d", "h", "2562047h47m17s", "99999999h", "1e3s"])
def test_what_go_does_not_read_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        parse_duration(text)
