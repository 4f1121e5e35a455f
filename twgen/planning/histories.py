"""Which histories a new version is to replay before it gets traffic."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from twgen.model.histories import Recorded

Item = TypeVar("Item")


def chosen(recorded: Iterable[Recorded], of_each_type: int) -> list[Recorded]:
    """So many of each type, the types in turn: whatever the bytes are enough for is of all of them.

    Of a type those of open workflows come first, which have to be replayed, the versions that they are pinned
    to in turn, and one of each version in any case; then what ended lately. Of equals those that come first
    here.
    """
    of_types: defaultdict[str, list[Recorded]] = defaultdict(list)
    for history in recorded:
        of_types[history.workflow_type].append(history)
    return list(_in_turn([_of_type(histories, of_each_type) for histories in of_types.values()]))


def left_out_altogether(written: Iterable[Recorded], larger: Iterable[Recorded]) -> list[str]:
    """The workflow types, and versions that hold open ones, of which all that was chosen is too large."""
    types, versions = set(), set()
    for one in written:
        types.add(one.workflow_type)
        if one.is_open:
            versions.add((one.workflow_type, one.build_id))
    missing = {
        f"open {one.workflow_type}" + (f" of {one.build_id}" if one.build_id else "")
        for one in larger
        if one.is_open and (one.workflow_type, one.build_id) not in versions
    }
    return sorted(missing | {one.workflow_type for one in larger if one.workflow_type not in types})


def _of_type(recorded: Iterable[Recorded], number: int) -> list[Recorded]:
    versions: defaultdict[str, list[Recorded]] = defaultdict(list)
    ended = []
    for one in recorded:
        if one.is_open:
            versions[one.build_id].append(one)
        else:
            ended.append(one)
    return [*_in_turn(versions.values()), *ended][: max(number, len(versions))]


def _in_turn(groups: Collection[Sequence[Item]]) -> Iterator[Item]:
    """The first of each, then the second of each."""
    return (one for one in chain.from_iterable(zip_longest(*groups)) if one is not None)
