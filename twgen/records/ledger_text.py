"""The text of a ledger, a file that people own: comments, order and all other entries stay as they are.

A Deployment is one line of JSON, so that two branches that lock the same worker meet in one conflict:
in longer entries Git takes every few lines that both share for agreement, and reports a dozen.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from twgen.errors import InvalidInput
from twgen.model.problem import Document
from twgen.records.ledger import KIND, LedgerEntry, parse_ledgers, write_entry
from twgen.versioning.names import TEMPLATE_HASH, TWGEN_API
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import in_one_line, quote

_START = re.compile(rb"^<<<<<<< ", re.MULTILINE)
_MARKER = re.compile(r"(?P<marker><{7}|\|{7}|={7}|>{7})(?: (?P<label>.*))?")


class Sides(NamedTuple):
    """The two texts that a merge could not make one of, and what it called them."""

    ours: str
    theirs: str
    our_name: str = ""
    their_name: str = ""


def sides_of(text: str) -> Sides | None:
    """The texts of both sides; None: there is no conflict marker."""
    kept: dict[str, list[str]] = {"<<<<<<<": [], ">>>>>>>": []}
    names = {"<<<<<<<": "", ">>>>>>>": ""}
    goes_to: tuple[str, ...] = tuple(kept)
    for line in text.splitlines(keepends=True):
        matched = _MARKER.fullmatch(line.rstrip("\r\n"))
        if not matched:
            for side in goes_to:
                kept[side].append(line)
            continue
        marker = matched["marker"]
        # what both sides come from (|||||||) is neither's
        goes_to = {"<<<<<<<": ("<<<<<<<",), "|||||||": (), "=======": (">>>>>>>",)}.get(marker, tuple(kept))
        if marker in names:
            names[marker] = names[marker] or matched["label"] or ""
    if not any(names.values()):
        return None
    return Sides("".join(kept["<<<<<<<"]), "".join(kept[">>>>>>>"]), names["<<<<<<<"], names[">>>>>>>"])


def why_unreadable(source: str, content: bytes, error: YamlError, known: str = "") -> str:
    """`file:line: what is wrong` of a file that is not YAML.

    Conflict markers come first, with what to do; then `known`, what the caller found, if anything.
    """
    if marker := _START.search(content):
        from twgen.records.ledger import FOLDER  # most runs find nothing wrong

        line = content.count(b"\n", 0, marker.start()) + 1
        is_ledger = FOLDER in source.replace("\\", "/").split("/")[:-1]
        remedy = "run `twgen lock`" if is_ledger else "resolve them"
        return f"{source}:{line}: a merge left conflict markers: {remedy}"
    place = f"{source}:{error.line}" if error.line else source
    return f"{place}: {known or error.message}"


_NEW = f"apiVersion: {TWGEN_API}\nkind: {KIND}\nversions:\n"
_NO_VERSIONS = re.compile(r"^versions: *(?:\[ *\]|null|~)", re.MULTILINE)
_REPLACED = {"recordedAt", "deployment"}


def updated_text(text: str, entries: Iterable[LedgerEntry], source: str) -> str:
    """The ledger with these versions: a changed one in its place, a new one at the end; empty: a new ledger.

    Raises InvalidInput when the text is no ledger, or one whose layout cannot be kept.
    """
    text = _NO_VERSIONS.sub("versions:", text) or _NEW
    for entry in entries:
        document = _only_document(text, source)
        items: list[Any] = document.get("versions") or []
        keys = [(item["worker"], item["buildID"]) for item in items]
        index = keys.index(entry.key) if entry.key in keys else len(items)
        wanted = {**document, "versions": [*items[:index], write_entry(entry), *items[index + 1 :]]}
        written = _with_changed if index < len(items) else _with_new
        possible = (found for found in written(text, document, entry, index) if _is(found, wanted))
        text = next(possible, "")
        if not text:
            raise InvalidInput(
                f"{source} cannot be added to as it is: lay `versions` out as a list of blocks"
            )
    return text


def merged_text(sides: Sides, source: str) -> str:
    """The ledger that holds the versions of both sides of a merge, laid out as ours.

    Raises InvalidInput when a side is no ledger, or both have another Deployment for one version.
    """
    found = []
    for text, name in ((sides.ours, sides.our_name), (sides.theirs, sides.their_name)):
        document = Document(f"{source} ({name})", 0, _only_document(text, f"{source} ({name})"))
        places, problems = parse_ledgers([document])
        for problem in problems:
            raise InvalidInput(f"{document.source}: {problem.path}: {problem.message}")
        found.append(places)
    ours, theirs = found
    for key in sorted(ours.keys() & theirs.keys()):
        one, other = ours[key].entry, theirs[key].entry
        if one.deployment != other.deployment:
            raise InvalidInput(
                f"{source}: {' '.join(key)} is {_told(one)} in {sides.our_name} and {_told(other)} in"
                f" {sides.their_name}: keep the one that was deployed, and run `twgen lock` again"
            )
    new = (place.entry for key, place in theirs.items() if key not in ours)
    return updated_text(sides.ours, new, source)


def _only_document(text: str, source: str) -> dict[str, Any]:
    documents = read_documents(text)
    if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != KIND:
        raise InvalidInput(f"{source} is not a ledger: move it away")
    found: dict[str, Any] = documents[0]
    return found


def _is(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return read_documents(text) == [wanted]
    except YamlError:
        return False


def _told(entry: LedgerEntry) -> str:
    template = entry.deployment["spec"]["template"]
    recorded = ((template.get("metadata") or {}).get("annotations") or {}).get(TEMPLATE_HASH, "")
    image = template["spec"]["containers"][0].get("image") or "a container without image"
    return f"{image} (template {recorded[:8]})" if recorded else str(image)


def _with_new(text: str, document: dict[str, Any], entry: LedgerEntry, index: int) -> Iterator[str]:
    lines = _lines(text)
    lead = _indentation(lines[_line(text, "versions", 0)]) if index else ""
    end = _next_field(text, document, _line(text, "versions"), len(lines))
    yield "".join([*lines[:end], *_entry_lines(entry, lead), *lines[end:]])


def _with_changed(text: str, document: dict[str, Any], entry: LedgerEntry, index: int) -> Iterator[str]:
    """First with only the lines that must change changed, then, for other layouts, with a whole new entry."""
    lines = _lines(text)
    start, end = _line(text, "versions", index), _line(text, "versions", index + 1)
    if end <= start:
        end = _next_field(text, document, start, len(lines))
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1  # what stands above the next entry is about that one
    item = write_entry(entry)
    begins = {name: _line(text, "versions", index, name) for name in document["versions"][index]}
    changed = list(lines)
    for name in sorted(begins.keys() & item.keys() & _REPLACED, key=begins.__getitem__, reverse=True):
        line = begins[name]
        following = min((other for other in begins.values() if other > line), default=end)
        lead = lines[line].partition(name)[0]
        changed[line:following] = [f"{lead}{name}: {_value(item[name])}\n"]
    yield "".join(changed)
    yield "".join([*lines[:start], *_entry_lines(entry, _indentation(lines[start])), *lines[end:]])


def _next_field(text: str, document: dict[str, Any], line: int, last: int) -> int:
    """Where the first field of the document begins that is below a line, or the last line there is."""
    return min((found for name in document if (found := _line(text, name)) > line), default=last)


def _entry_lines(entry: LedgerEntry, lead: str) -> list[str]:
    fields = [f"{name}: {_value(value)}\n" for name, value in write_entry(entry).items()]
    return [f"{lead}{'  ' if index else '- '}{line}" for index, line in enumerate(fields)]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _value(value: Any) -> str:
    return quote(value) if isinstance(value, str) else in_one_line(value)


def _lines(text: str) -> list[str]:
    return (text if text.endswith("\n") else f"{text}\n").splitlines(keepends=True)


def _line(text: str, *path: str | int) -> int:
    """The index of the line where something begins; of what is not there, that of what would hold it."""
    from twgen.yaml.lines import line_of

    return (line_of(text, 0, path) or 1) - 1
