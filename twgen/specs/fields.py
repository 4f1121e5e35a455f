"""Read a spec field by field. A mistake is noted, and does not end the reading."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from twgen.model.forms import WORDS
from twgen.model.problem import Finding, Place, noun, quoted, unknown_field, wrong_type
from twgen.model.shapes import Findings, Shape, listing, unchanged

_ITEMS = listing(Shape(lambda value, *_: (value,), unchanged, {}))
_MANY_PODS = 5000
"""So many pods of one worker are a mistake: Kubernetes is made for this many nodes."""


class Fields:
    """The fields of one mapping. A null field counts as absent, as in an API server."""

    __slots__ = ("_read", "findings", "path", "value")

    def __init__(self, value: Any, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._read: set[str] = set()
        self.value: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self.problem("", wrong_type(noun(dict), value))

    def problem(self, name: str, message: str, other: Place | None = None) -> None:
        """Note a problem of a field, of a value inside it (`a.b[1]`), or of the mapping ("")."""
        self.findings.problem(self.at(name), message, other)

    def warning(self, name: str, message: str) -> None:
        """Note a warning about a field."""
        self.findings.warning(self.at(name), message)

    def refused(self, findings: Iterable[Finding]) -> None:
        """Note what an API server would refuse, except at paths that have a problem already."""
        wrong = {finding.path for finding in self.findings.problems}
        self.findings.add_unknown(finding for finding in findings if finding.path not in wrong)

    def at(self, name: str) -> str:
        """The path of a field."""
        if not name or not self.path or name.startswith("["):
            return self.path + name
        return f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        """The field is present and not null."""
        return self.raw(name) is not None

    def raw(self, name: str) -> Any:
        """The field as the document has it; None: it is absent."""
        self._read.add(name)
        return self.value.get(name)

    def expect(self, names: AbstractSet[str]) -> None:
        """Allow these fields, whether or not something reads them."""
        self._read |= names

    def get(
        self, name: str, shape: Shape, default: Any = None, *, required: bool = False, hint: str = ""
    ) -> Any:
        """The value of a field; the default if it is absent or unusable.

        `hint` ends the message about a required field that is absent.
        """
        value = self.raw(name)
        if value is None:
            if required:
                self.problem(name, f"is required{hint}")
            elif shape.none and name in self.value and default and str(default) != shape.none:
                why = "is null, so the default applies"
                self.warning(name, f"{why}: write {shape.none} if you mean none, or remove it")
            return default
        if value == "" and shape.may_be_empty and not required:
            return value
        read = shape.read(value, self.at(name), self.findings)
        return default if read is None else read

    def text(self, name: str, shape: Shape = WORDS, *, required: bool = False) -> str:
        """A string; empty when it is absent."""
        read: str = self.get(name, shape, "", required=required)
        return read

    def refuse_twins(self, name: str, field: str, nouns: str) -> None:
        """Note each mapping in a list whose field has the same value as in an earlier mapping."""
        seen = set()
        for fields in self.mappings(name):
            value = fields.value.get(field)
            if isinstance(value, str | int | float):
                if value in seen:
                    shown = quoted(value) if isinstance(value, str) else f"{value:g}"
                    fields.problem(field, f"{shown} appears twice: merge the two {nouns}")
                seen.add(value)

    def warn_of_many_pods(self, *names: str) -> None:
        """Note each of these fields whose number of pods is too large to be meant."""
        for name in names:
            value = self.value.get(name)
            if isinstance(value, int) and value < 2**31 and value >= _MANY_PODS:
                self.warning(name, f"{value} pods are more than one worker needs: check the number")

    def mapping(self, name: str) -> "Fields":
        """The fields of a mapping; without fields if it is absent."""
        return Fields(self.raw(name), self.at(name), self.findings)

    def mappings(self, name: str) -> "Iterator[Fields]":
        """The fields of each mapping in a list."""
        for index, (item,) in enumerate(self.get(name, _ITEMS, ())):
            path = f"{self.at(name)}[{index}]"
            if item is None:
                self.findings.problem(path, wrong_type(noun(dict), item))
            yield Fields(item, path, self.findings)

    def close(self, *also: str, elsewhere: str = "") -> None:
        """Note every field that was not read as unknown, except those in `also`.

        `elsewhere` is a mapping in which an unknown field may belong, if its name resembles no field here.
        """
        names = self._read.union(also)
        if names.issuperset(self.value):
            return
        self.findings.add_unknown(
            unknown_field(self.path, name, names, elsewhere=elsewhere)
            for name in self.value
            if name not in names
        )
