"""Which histories a new version is to replay before it gets traffic."""

from collections import Counter
from collections.abc import Iterable

from twgen.model.histories import Recorded


def chosen(recorded: Iterable[Recorded], of_each_type: int) -> list[Recorded]:
    """So many of each type: those of open workflows first, which have to be replayed, then what ended lately.

    Of both, those come first that come first here.
    """
    taken: Counter[str] = Counter()
    found = []
    for one in sorted(recorded, key=lambda one: not one.is_open):
        if taken[one.workflow_type] < of_each_type:
            taken[one.workflow_type] += 1
            found.append(one)
    return found
