"""The one clock."""

from datetime import UTC, datetime

from twgen.errors import InvalidInput
from twgen.model.times import parse_time


def clock() -> datetime:
    """The time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def moment(text: str) -> datetime:
    """The time that `--now` names."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise InvalidInput(f"--now {text!r} is not a time such as 2026-11-21T12:00:00Z") from error
