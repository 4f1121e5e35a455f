"""Read the fields of a spec one by one, or into the dataclass that declares them.

When the reader finds a mistake, it notes the mistake and continues, so that it can find more. Dataclasses of
specs are declared like dataclasses of records (model.record_shapes).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING
from enum import StrEnum
from functools import partial
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from twgen.model.forms import WORDS
from twgen.model.paths import Path, written_path
from twgen.model.problem import (
    CONFLICT,
    DUPLICATE,
    MISSING_FIELD,
    UNLIKELY,
    DocumentPath,
    Finding,
    Message,
    Rule,
    noun,
    quoted,
    unknown_field,
    wrong_type,
)
from twgen.model.record_shapes import Field, FieldRule, Hint, OneOf, default_of, fields_of, marks_of, shape_of
from twgen.model.shapes import Findings, Shape, listing

_ITEMS = listing(Shape(lambda value, *_: (value,)))
_MANY_PODS = 5000
"""So many pods for one worker are probably a mistake: Kubernetes supports only this many nodes."""
_NULL = Rule("null-default", "A null field gets its default value, and not the value that means none.")


class Fields:
    """The fields of one mapping. As in an API server, null means absent."""

    __slots__ = ("_read", "findings", "path", "value")

    def __init__(self, value: Any, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._read: set[str] = set()
        self.value: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self.problem("", wrong_type(noun(dict), value))

    def problem(self, name: str, message: str, other: DocumentPath | None = None) -> None:
        """Note a problem with a field, a value inside a field (`a.b[1]`), or the whole mapping ("")."""
        self.findings.problem(self.at(name), message, other)

    def warning(self, name: str, message: Message) -> None:
        """Note a warning about a field."""
        self.findings.warning(self.at(name), message)

    def refused(self, findings: Iterable[Finding]) -> None:
        """Note errors that an API server would report, except at paths that already have a problem."""
        wrong = {finding.path for finding in self.findings.problems}
        self.findings.add_unknown(finding for finding in findings if finding.path not in wrong)

    def at(self, name: str) -> str:
        """The path of a field."""
        if not name or not self.path or name.startswith("["):
            return self.path + name
        return f"{self.path}.{name}"

    def has(self, name: str) -> bool:
        """Whether the field is present and not null."""
        return self.raw(name) is not None

    def raw(self, name: str) -> Any:
        """The field's value in the document; None if the field is absent."""
        self._read.add(name)
        return self.value.get(name)

    def expect(self, names: AbstractSet[str]) -> None:
        """Allow these fields even if they are never read."""
        self._read |= names

    def get(
        self, name: str, shape: Shape, default: Any = None, *, required: bool = False, hint: str = ""
    ) -> Any:
        """The value of a field, or the default if the field is absent or invalid.

        `hint` is appended to the message about an absent required field.
        """
        value = self.raw(name)
        if value is None:
            if required:
                self.problem(name, MISSING_FIELD(f"is required{hint}"))
            elif shape.none and name in self.value and default and str(default) != shape.none:
                why = "is null, so the default applies"
                self.warning(name, _NULL(f"{why}: write {shape.none} if you mean none, or remove it"))
            return default
        if value == "" and shape.may_be_empty and not required:
            return value
        read = shape.read(value, self.at(name), self.findings)
        return default if read is None else read

    def read(self, shape: Shape) -> Any:
        """Read the whole mapping with this shape."""
        return shape.read(self.value, self.path, self.findings)

    def text(self, name: str, shape: Shape = WORDS, *, required: bool = False) -> str:
        """A field's string; empty if the field is absent."""
        read: str = self.get(name, shape, "", required=required)
        return read

    def refuse_twins(self, name: str, field: str, nouns: str) -> None:
        """Note each mapping in the list `name` whose `field` has the same value in an earlier mapping."""
        seen = set()
        for fields in self.mappings(name):
            value = fields.value.get(field)
            if isinstance(value, str | int | float):
                if value in seen:
                    shown = quoted(value) if isinstance(value, str) else f"{value:g}"
                    fields.problem(field, DUPLICATE(f"{shown} appears twice: merge the two {nouns}"))
                seen.add(value)

    def warn_of_many_pods(self, *names: str) -> None:
        """Warn about each of these fields that has an improbably large number of pods."""
        for name in names:
            value = self.value.get(name)
            if isinstance(value, int) and value < 2**31 and value >= _MANY_PODS:
                why = f"{value} pods are more than one worker needs: check the number"
                self.warning(name, UNLIKELY(why))

    def mapping(self, name: str) -> "Fields":
        """The fields of a nested mapping, which is empty if the field is absent."""
        return Fields(self.raw(name), self.at(name), self.findings)

    def mappings(self, name: str) -> "Iterator[Fields]":
        """The fields of each mapping in a list field."""
        for index, (item,) in enumerate(self.get(name, _ITEMS, ())):
            path = f"{self.at(name)}[{index}]"
            if item is None:
                self.findings.problem(path, wrong_type(noun(dict), item))
            yield Fields(item, path, self.findings)

    def close(self, *also: str, elsewhere: str = "") -> None:
        """Report as unknown each field that was not read and is not in `also`.

        `elsewhere` is the mapping in which a field probably belongs, if no field here has a similar name.
        """
        names = self._read.union(also)
        if names.issuperset(self.value):
            return
        self.findings.add_unknown(
            unknown_field(self.path, name, names, elsewhere=elsewhere)
            for name in self.value
            if name not in names
        )


Shapes = Mapping[Any, Shape]
Check = Callable[[Fields, Any], None]
"""A function that checks rules between fields, given a mapping and the value that was read from it."""


def spec_shape(
    kind: Any,
    checks: Mapping[Any, Check] = MappingProxyType({}),
    *,
    fields: Mapping[str, Shape] = MappingProxyType({}),
    shapes: Shapes = MappingProxyType({}),
) -> Shape:
    """The Shape of a mapping whose fields a dataclass declares.

    `checks` (by class) are called with each value that was read. `fields` (by attribute) and `shapes` (by
    class) override the Shapes that follow from the types. All three apply at any depth. The Shape has no
    writer, because twgen never writes specs, and no schema, because a separate tool generates the schemas of
    specs.
    """
    nested = partial(spec_shape, checks=checks, fields=fields)
    read_fields, check = _reader(kind, nested, shapes, fields), checks.get(kind)

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value is None:
            findings.problem(path, wrong_type(noun(dict), value))
        fields = Fields(value, written_path(path), findings)
        declared_value = read_fields(fields)
        if check and declared_value is not None:
            check(fields, declared_value)
        fields.close()
        return declared_value

    return Shape(read)


def _reader(
    kind: Any, nested: Callable[..., Shape], shapes: Shapes, given: Mapping[str, Shape]
) -> Callable[[Fields], Any]:
    """The function that reads a mapping into a dataclass."""
    inline: dict[str, Callable[[Fields], Any]] = {}
    defaults: dict[str, Any] = {}
    """The values of attributes whose fields are absent or invalid."""
    for attribute, annotation in kind.__annotations__.items():
        default, marks = default_of(kind, attribute), marks_of(annotation)
        one_of = next((mark.kinds for mark in marks if isinstance(mark, OneOf)), None)
        if one_of:
            inline[attribute] = _one_of(one_of, nested, shapes)
        elif FieldRule.INLINE in marks:
            inline[attribute] = _reader(get_args(annotation)[0], nested, shapes, given)
        else:
            defaults[attribute] = _blank(annotation) if default is MISSING else default
    entries: list[tuple[Field, tuple[str, ...], str]] = []
    """Each field, the parts of its path within the mapping, and the hint for an error if it is absent."""
    for entry in fields_of(kind, *defaults, given=given, shapes=shapes, otherwise=nested):
        hint = next((f": {mark.text}" for mark in entry.marks if isinstance(mark, Hint)), "")
        entries.append((entry, tuple(entry.name.split(".")), hint))
    names_here = frozenset(names[0] for _, names, _ in entries)

    def read(fields: Fields) -> Any:
        attributes = dict(defaults)
        for attribute, read_inline in inline.items():
            attributes[attribute] = read_inline(fields)
        fields.expect(names_here)
        holders: dict[tuple[str, ...], Fields] = {}
        for entry, names, hint in entries:
            if names[0] not in fields.value and not entry.required:
                continue
            holder, is_held = fields, False
            for depth, name in enumerate(names[:-1], 1):
                is_held = holder.has(name)
                holder = holders.setdefault(names[:depth], holder.mapping(name))
            required = entry.required or (FieldRule.OF_HOLDER in entry.marks and is_held)
            default = defaults[entry.attribute]
            value = holder.get(names[-1], entry.shape, default, required=required, hint=hint)
            attributes[entry.attribute] = value
        for holder in holders.values():
            holder.close()
        # if the field that determines a value's class is absent, the value cannot be read
        return None if any(attributes[attribute] is None for attribute in inline) else kind(**attributes)

    return read


def _one_of(
    kinds: Mapping[str, Any], nested: Callable[..., Shape], shapes: Shapes
) -> Callable[[Fields], Any]:
    """The function that reads a value whose class depends on which field is present."""
    by_name = {name: shape_of(kind, shapes, nested) for name, kind in kinds.items()}

    def read(fields: Fields) -> Any:
        names = [name for name in by_name if fields.has(name)]
        if len(names) != 1:
            fields.problem("", CONFLICT(f"needs exactly one of {', '.join(by_name)}"))
        return fields.get(names[0], by_name[names[0]]) if names else None

    return read


def _blank(annotation: Any) -> Any:
    """A substitute for an absent or invalid required value, so that other rules can still be checked."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(item for item in get_args(annotation) if item is not NoneType)
    base = get_origin(annotation) or annotation
    if issubclass(base, StrEnum):
        return next(iter(base))
    return None if hasattr(base, "__annotations__") and base.__annotations__ else base()
