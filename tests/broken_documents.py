"""Hypothesis strategies: whole documents, broken in some places."""

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 0.5, -5, 10**9, 2**31, 2**63, 1e300, "", "x", "text\n", "\u202e\x00", "1",
    "2026-11-21T12:00:00", "2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z\n", "0001-01-01T00:00:00+05:00",
    "9999-12-31T23:59:59Z", [], {}, [None], [{}], {"": None}, {"name": 1}, [["x"]], "Current", "Completed",
)  # fmt: skip


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(item, (*path, key))


def broken(document: dict[str, Any], changes: list[tuple[tuple[str | int, ...], str, Any]]) -> Any:
    """The document with each place replaced, removed, nested, renamed or put twice, while it is there."""
    found = copy.deepcopy(document)
    for (*above, last), how, value in changes:
        place: Any = found
        with suppress(LookupError, TypeError, AttributeError):
            for key in above:
                place = place[key]
            match how:
                case "replace":
                    place[last] = value if place[last] is not value else None
                case "remove":
                    del place[last]
                case "nest":
                    place[last] = [place[last]]
                case "rename":
                    place[f"{last}s"] = place.pop(last)
                case "twice":
                    place.append(copy.deepcopy(place[last]))
    return found


def mutations(document: dict[str, Any]) -> st.SearchStrategy[Any]:
    paths = list(places(document))
    hows = st.sampled_from(("replace", "replace", "replace", "remove", "nest", "rename", "twice"))
    change = st.tuples(st.sampled_from(paths), hows, st.sampled_from(VALUES) | json_values)
    return st.lists(change, min_size=1, max_size=3).map(lambda changes: broken(document, changes))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
