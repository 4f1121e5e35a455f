"""The form of both tables."""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

Reason = TypeVar("Reason")
Subject = TypeVar("Subject")
Outcome = TypeVar("Outcome")


class Row(NamedTuple, Generic[Reason, Subject, Outcome]):
    """A condition, its outcome, and the stable name of the reason."""

    reason: Reason
    when: Callable[[Subject], bool]
    then: Callable[[Subject], Outcome]


def first_match(
    table: Iterable[Row[Reason, Subject, Outcome]], subject: Subject
) -> Row[Reason, Subject, Outcome]:
    """The row that decides; the last one of a table always fits."""
    return next(row for row in table if row.when(subject))
