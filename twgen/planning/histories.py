"""The histories that a new version must replay before it gets traffic."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from twgen.model.histories import Recorded

Item = TypeVar("Item")


def chosen(recorded: Iterable[Recorded], of_each_type: int) -> list[Recorded]:
    """This many of each type, the types in turn: if only some can be stored, every type is among them.

    Within a type, open workflows come first, since they must be replayed: the versions to which they are
    pinned in turn, and at least one of each version. Then come recently ended ones. Equals keep their order.
    """
    of_types: defaultdict[str, list[Recorded]] = defaultdict(list)
    for history in recorded:
        of_types[history.workflow_type].append(history)
    return list(_in_turn([_of_type(histories, of_each_type) for histories in of_types.values()]))


def left_out_altogether(written: Iterable[Recorded], larger: Iterable[Recorded]) -> list[str]:
    """The workflow types, and versions with open workflows, whose chosen histories are all too large."""
    types, versions = set(), set()
    for history in written:
        types.add(history.workflow_type)
        if history.is_open:
            versions.add((history.workflow_type, history.build_id))
    missing = {
        f"open {history.workflow_type}" + (f" of {history.build_id}" if history.build_id else "")
        for history in larger
        if history.is_open and (history.workflow_type, history.build_id) not in versions
    }
    return sorted(
        missing | {history.workflow_type for history in larger if history.workflow_type not in types}
    )


def _of_type(recorded: Iterable[Recorded], number: int) -> list[Recorded]:
    versions: defaultdict[str, list[Recorded]] = defaultdict(list)
    ended = []
    for history in recorded:
        if history.is_open:
            versions[history.build_id].append(history)
        else:
            ended.append(history)
    return [*_in_turn(versions.values()), *ended][: max(number, len(versions))]


def _in_turn(groups: Collection[Sequence[Item]]) -> Iterator[Item]:
    """The first item of each group, then the second of each."""
    return (item for item in chain.from_iterable(zip_longest(*groups)) if item is not None)
