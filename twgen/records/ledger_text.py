"""The text of a ledger, a file that people own: comments, order and all other entries stay as they are.

A Deployment is one line of JSON, so that two branches that lock the same worker meet in one conflict:
in longer entries Git takes every few lines that both share for agreement, and reports a dozen.
"""

import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from twgen.errors import InvalidInput
from twgen.model.problem import Document
from twgen.records.ledger import KIND, LedgerEntry, parse_ledgers, write_entry
from twgen.versioning.names import TEMPLATE_HASH, TWGEN_API
from twgen.versioning.pod_templates import annotation_of
from twgen.yaml.lines import Place, lines_of
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import in_one_line, quote

_MARKER = re.compile(r"(?P<marker><{7}|\|{7}|={7}|>{7})(?: (?P<label>.*))?")


class Sides(NamedTuple):
    """The two texts that a merge could not make one of, and what it called them."""

    ours: str
    theirs: str
    our_name: str = ""
    their_name: str = ""


def sides_of(text: str) -> Sides | None:
    """The texts of both sides; None: there is no conflict marker. One that stands alone is left out."""
    kept: dict[str, list[str]] = {"<<<<<<<": [], ">>>>>>>": []}
    names = dict.fromkeys(kept, "")
    both = goes_to = tuple(kept)
    lines = text.splitlines(keepends=True)
    markers = [_MARKER.fullmatch(line.rstrip("\r\n")) for line in lines]
    # a conflict is whole where its markers follow one another: the last of a merge that is resolved by hand
    order = [matched["marker"] for matched in markers if matched]
    whole = "".join(order).replace("|||||||", "") == "<<<<<<<=======>>>>>>>" * order.count("<<<<<<<")
    for line, matched in zip(lines, markers, strict=True):
        if not matched:
            for side in goes_to:
                kept[side].append(line)
            continue
        marker = matched["marker"]
        if whole:
            # what both sides come from (|||||||) is neither's
            goes_to = {"<<<<<<<": ("<<<<<<<",), "|||||||": (), "=======": (">>>>>>>",)}.get(marker, both)
        if marker in names:
            names[marker] = names[marker] or matched["label"] or ""
    if not order:
        return None
    return Sides("".join(kept["<<<<<<<"]), "".join(kept[">>>>>>>"]), names["<<<<<<<"], names[">>>>>>>"])


_NEW = f"apiVersion: {TWGEN_API}\nkind: {KIND}\nversions:\n"
_REPLACED = {"recordedAt", "deployment"}


def updated_text(text: str, entries: Iterable[LedgerEntry], source: str) -> str:
    """The ledger with these versions: a changed one in its place, a new one at the end; empty: a new ledger.

    Raises InvalidInput when the text is no ledger, or one whose layout cannot be kept.
    """
    new = {entry.key: entry for entry in entries}
    if not new:
        return text
    if not text:
        return _NEW + "".join(line for entry in new.values() for line in _entry_lines(entry, ""))
    document = _only_document(text, source)
    items = document["versions"]
    changed = {
        index: new.pop(key)
        for index, item in enumerate(items)
        if (key := (item["worker"], item["buildID"])) in new
    }
    wanted = [write_entry(changed[index]) if index in changed else item for index, item in enumerate(items)]
    result = {**document, "versions": [*wanted, *map(write_entry, new.values())]}
    lines = (text if text.endswith("\n") else f"{text}\n").splitlines(keepends=True)
    # first with only the lines changed that must be, then, for other layouts, with whole new entries
    for replaced in (_REPLACED, None):
        written = "".join(_updated_lines(lines, document, changed, new.values(), replaced))
        with suppress(YamlError):
            if read_documents(written) == [result]:
                return written
    raise InvalidInput(f"{source} cannot be added to as it is: lay `versions` out as a list of blocks")


def _updated_lines(
    lines: list[str],
    document: dict[str, Any],
    changed: Mapping[int, LedgerEntry],
    new: Iterable[LedgerEntry],
    replaced: Container[str] | None,
) -> list[str]:
    """The lines with some entries changed, whole or only in the fields that are replaced, and new ones."""
    items = document["versions"]
    places: list[Place] = [(0, name) for name in document]
    places += ((0, "versions", index) for index in range(len(items)))
    places += ((0, "versions", index, name) for index in changed for name in items[index])
    begins = {
        place: (line or 1) - 1 for place, line in zip(places, lines_of("".join(lines), places), strict=True)
    }
    first = begins[0, "versions", 0]
    lead = lines[first][: len(lines[first]) - len(lines[first].lstrip(" "))]
    last = min((begins[0, name] for name in document if begins[0, name] > first), default=len(lines))
    result = [*lines[:last], *(line for entry in new for line in _entry_lines(entry, lead)), *lines[last:]]
    for index, entry in sorted(changed.items(), reverse=True):
        start, end = begins[0, "versions", index], begins.get((0, "versions", index + 1), last)
        while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
            end -= 1  # what stands above the next entry is about that one
        if replaced is None:
            result[start:end] = _entry_lines(entry, lead)
            continue
        fields = {name: begins[0, "versions", index, name] for name in items[index]}
        item = {name: value for name, value in write_entry(entry).items() if name in replaced}
        for name in sorted(item.keys() & fields.keys(), key=fields.__getitem__, reverse=True):
            following = min((line for line in fields.values() if line > fields[name]), default=end)
            before = lines[fields[name]].partition(name)[0]
            result[fields[name] : following] = [f"{before}{name}: {_value(item[name])}\n"]
    return result


def _entry_lines(entry: LedgerEntry, lead: str) -> list[str]:
    fields = [f"{name}: {_value(value)}\n" for name, value in write_entry(entry).items()]
    return [f"{lead}{'  ' if index else '- '}{line}" for index, line in enumerate(fields)]


def _value(value: Any) -> str:
    return quote(value) if isinstance(value, str) else in_one_line(value)


def merged_text(sides: Sides, source: str) -> str:
    """The ledger that holds the versions of both sides of a merge, laid out as ours.

    Raises InvalidInput when a side is no ledger, or both have another Deployment for one version.
    """
    found = []
    for text, name in ((sides.ours, sides.our_name), (sides.theirs, sides.their_name)):
        side = f"{source} ({name})" if name else source
        places, problems = parse_ledgers([Document(side, 0, _only_document(text, side))])
        for problem in problems:
            raise InvalidInput(f"{side}: {problem.path}: {problem.message.removesuffix('; the other is at')}")
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
    try:
        documents = read_documents(text)
    except YamlError as error:
        raise InvalidInput(f"{source}: {error}: take the file back from Git") from error
    if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != KIND:
        raise InvalidInput(f"{source} is not a ledger: take it back from Git, or move it away")
    found: dict[str, Any] = documents[0]
    return found


def _told(entry: LedgerEntry) -> str:
    template = entry.deployment["spec"]["template"]
    recorded = annotation_of(template, TEMPLATE_HASH)
    image = template["spec"]["containers"][0].get("image") or "a container without image"
    return f"{image} (template {recorded[:8]})" if recorded else str(image)
