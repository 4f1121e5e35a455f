"""Make the page of all reasons from the planner's tables."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from twgen.model.reasons import RoutingReason, VersionReason
from twgen.planning.routing.table import TABLE
from twgen.planning.versions.table import LIVE, WITHOUT_DEPLOYMENT
from twgen.versioning.names import MarkKey

_HEAD = """\
# Reasons

Every decision of `twgen plan` and `twgen status` has a `reason`, such as `RampPaused`. The JSON output shows
it next to a sentence that explains it:

```
twgen status . -o json | jq -r '.workers[] | .reason, .because'
```

The reason is a stable identifier for programs. The sentence is for people, and its wording may change.

Find the reason in the tables, and follow its link for details. `make documentation` writes this page from the
program.
"""
_GROUPS = {
    "Needs you": "The rollout or the version needs your attention.",
    "Wait first, then check": "These reasons usually disappear within minutes.",
    "Nothing to do": "The rollout continues by itself, or it is complete.",
}
_MOST = 25
"""The most words in a cell of a table."""
_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z`])")
_OUTSIDE = (
    *(RoutingReason.ROLLOUT_NOT_BEGUN, RoutingReason.LOOK_FAILED, RoutingReason.CLAIM_FAILED),
    *(RoutingReason.INVALID_INTENT, RoutingReason.ROLLOUT_ENDED, RoutingReason.HOOK_SKIPPED),
)
"""The reasons why a rollout in a cluster cannot begin or continue."""
_ORDER = """\
## Order of the reasons

Several reasons can apply at the same time. twgen checks them in this order, and the first that applies
decides.
"""
_MARKS = """\
## Marks

A mark records a decision about a version. It is an entry in the version's metadata in Temporal, as JSON, with
the author (`by`), the time (`at`), the reason (`because`) and the beginning of a period (`stay`). A period
begins when the version is created, gets a share, becomes current, or loses its share. The value `false`
withdraws a mark.

| mark | writer and effect | valid until |
| --- | --- | --- |"""


class _Entry(NamedTuple):
    reason: StrEnum
    meaning: str
    what_to_do: str

    @property
    def title(self) -> str:
        """The heading. If both traffic and versions have the reason, traffic gets a longer heading."""
        is_of_both = isinstance(self.reason, RoutingReason) and self.reason in map(str, VersionReason)
        return f"{self.reason} of traffic" if is_of_both else self.reason

    @property
    def subject(self) -> str:
        return "traffic" if isinstance(self.reason, RoutingReason) else "version"

    @property
    def group(self) -> str:
        """The title of the table that contains this reason."""
        needs_you, wait_first, nothing = _GROUPS
        if not self.what_to_do.startswith("Nothing"):
            return needs_you
        return wait_first if re.match(r"Nothing (at first|for)\b", self.what_to_do) else nothing


def reasons_page() -> str:
    """The page as Markdown."""
    with_deployment, without = ([row.reason for row in table] for table in (LIVE, WITHOUT_DEPLOYMENT))
    of_table = [*with_deployment, *without]
    afterwards = [reason for reason in VersionReason if reason not in of_table]
    of_traffic = [*(row.reason for row in TABLE), RoutingReason.MANUAL]
    traffic = [_entry(reason) for reason in (*of_traffic, *_OUTSIDE)]
    versions = [_entry(reason) for reason in dict.fromkeys((*of_table, *afterwards))]
    sections = [
        _HEAD,
        *(_table(group, [*traffic, *versions]) for group in _GROUPS),
        "## Reasons of traffic\n",
        *map(_section, traffic),
        "## Reasons of versions\n",
        *map(_section, versions),
        _ORDER,
        _ordered("Traffic", of_traffic),
        _ordered("A version with a Deployment", with_deployment),
        _ordered("A version without a Deployment, or if the cluster was not read", without),
        _MARKS,
        *(f"| `{key}` | {' '.join(_docstring(key).split())} | {key.lifetime.value} |" for key in MarkKey),
        "",
    ]
    return "\n".join(sections)


def _entry(reason: StrEnum) -> _Entry:
    meaning, _, what_to_do = _docstring(reason).partition("\n\n")
    return _Entry(reason, " ".join(meaning.split()), " ".join(what_to_do.split()))


def _table(group: str, entries: Iterable[_Entry]) -> str:
    rows = "\n".join(_rows(entry for entry in entries if entry.group == group))
    return (
        f"## {group}\n\n{_GROUPS[group]}\n\n| reason | about | meaning | what to do |"
        f"\n| --- | --- | --- | --- |\n{rows}\n"
    )


def _rows(entries: Iterable[_Entry]) -> Iterator[str]:
    for entry in entries:
        anchor = "-".join(entry.title.lower().split())
        cells = (entry.subject, first_sentences(entry.meaning), first_sentences(entry.what_to_do))
        yield f"| [`{entry.reason}`](#{anchor}) | {' | '.join(cells)} |"


def first_sentences(text: str) -> str:
    """The first sentences that fit into a cell."""
    first, *others = _SENTENCE.split(text)
    for sentence in others:
        if len(f"{first} {sentence}".split()) > _MOST:
            break
        first = f"{first} {sentence}"
    return first


def _section(entry: _Entry) -> str:
    return f"### {entry.title}\n\n{entry.meaning}\n\nWhat to do: {entry.what_to_do}\n"


def _ordered(title: str, reasons: Iterable[StrEnum]) -> str:
    return f"**{title}**:\n\n" + "".join(f"1. `{reason}`\n" for reason in reasons)


def _docstring(wanted: StrEnum) -> str:
    """The docstring below a member of an enumeration."""
    for statement in ast.parse(inspect.getsource(type(wanted))).body:
        body = statement.body if isinstance(statement, ast.ClassDef) else []
        for member, following in pairwise(body):
            match member, following:
                case (
                    ast.Assign(targets=[ast.Name(id=name)]),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ) if name == wanted.name:
                    return text
    raise LookupError(f"{wanted!r} has no docstring")
