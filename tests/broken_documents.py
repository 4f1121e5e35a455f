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


PIECES: tuple[str, ...] = (
    "{{ .Values.image }}", "{{- if .Values.on }}", "{{- end }}", "${IMAGE}", "<<: *base",
    "<<: [*base, *base]", "*base", "---", "...", "%YAML 1.2", "%TAG ! x", "!!binary aGk=", "!!binary ????",
    "!!timestamp 2026-01-01", "!!set {a}", "!!python/object:os.system", "!!int 3", "!!float x", "!!map {}",
    "!x y", "? a", "- ", "- - -", "\t", "\x00", "\r", "\ufeff", "\x85", "\u2028", "\u202e", "\x1b[2J",
    "\ufffe", "0o7", "0x1F", "1e400", ".nan", "-.inf", "~", "yes", "1_000", "12:30:45", "2026-11-21",
    "0000-01-01T00:00:00Z", "2199-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z", "99999999999999999999999",
    "-99999999999999999999", "9223372036854775808", "-0", "1.10", "'", '"', "|", ">-", "[", "{", "}", "#",
    ":", "key: value: more", "@x", "-1h", "1d", "2540400h", "1ns", "P1D", "kind: List", "items:",
    "kind: Secret", "? [a]: b", "1: 2", "true: x", '"": x', "<<<<<<< HEAD", "=======", ">>>>>>> x", "a" * 70,
    "x" * 300, '"\\ud800"', '"\\e[31m"', '"\\u202e"', "]]>", "<b>&", "\U000e0001", "V2", "a/b", "..", "{}",
    "[]", "0", "99.5",
)  # fmt: skip
"""What stands in files where it does not belong."""


@st.composite
def broken_text(draw: st.DrawFn, text: str) -> bytes:
    """A text of lines, changed as people, templates, merges and transports change it."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        line, piece = lines[at], draw(st.sampled_from(PIECES) | st.text(max_size=3))
        key, colon, rest = line.partition(":")
        indentation = line[: len(line) - len(line.lstrip())]
        cut = draw(st.integers(0, len(line)))
        changes = {
            "value": f"{key}: {piece}" if colon else piece,
            "key": f"{indentation}{piece}:{rest}",
            "anchor": f"{key}: &base{rest}",
            "alias": f"{key}: *base",
            "item": f"{indentation}- {line.lstrip()}",
            "line": f"{line}\n{indentation}{piece}",
            "twice": f"{line}\n{line}",
            "inside": line[:cut] + piece + line[cut:],
            "cut": line[:cut],
            "deeper": f" {line}",
            "higher": line[1:],
        }
        lines[at] = changes[draw(st.sampled_from(list(changes)))]
    content = "\n".join(lines).encode(errors="surrogatepass")
    cut = draw(st.integers(0, len(content)))
    carried = {
        "as it is": content,
        "cut": content[:cut],
        "a byte more": content[:cut] + draw(st.binary(min_size=1, max_size=1)) + content[cut:],
        "CRLF": content.replace(b"\n", b"\r\n"),
        "CR": content.replace(b"\n", b"\r"),
        "BOM": b"\xef\xbb\xbf" + content,
        "tabs": content.replace(b"  ", b"\t"),
        "twice": content + b"\n---\n" + content,
        "UTF-16": content.decode(errors="replace").encode("utf-16"),
    }
    return carried[draw(st.sampled_from(["as it is"] * 6 + list(carried)))]


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The steps to each value in it, from above."""
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
