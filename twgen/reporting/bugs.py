"""Describes an unexpected error in one line, for the log of a program that keeps running."""

import traceback
from pathlib import Path
from typing import Self

from twgen.errors import first_failure

_PACKAGE = Path(__file__).parents[1]


class Bug(str):
    """A sentence about an unexpected error, with its own type so that repeated sentences are printed once."""

    __slots__ = ()

    @classmethod
    def of(cls, subject: str, error: BaseException) -> Self:
        """Name an error's type and location, but omit its message, which may contain a credential."""
        error = first_failure(error)
        place = "an unknown place"
        for frame in traceback.extract_tb(error.__traceback__):
            if Path(frame.filename).is_relative_to(_PACKAGE):
                place = f"{Path(frame.filename).relative_to(_PACKAGE.parent)}:{frame.lineno}"
        kind = type(error).__name__
        return cls(f"{subject}: a bug ({kind} at {place}); please report this line. Other work continues")
