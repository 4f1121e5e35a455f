"""The page of all reasons, from the tables themselves."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise

from twgen.model.marks import MarkKey
from twgen.model.reasons.routing import RoutingReason
from twgen.model.reasons.versions import VersionReason
from twgen.planning.routing.table import TABLE
from twgen.planning.versions.table import LIVE, WITHOUT_DEPLOYMENT

_HEAD = """\
# Reasons

Every decision of `twgen plan` and `twgen status` has a `reason`: a word that stays, for programs, beside the
sentence for people, which may be worded better one day. In each list the first one that fits decides.
"Nothing" means that it goes on by itself, or is as it should be.

This page is written by `make documentation` from the tables that decide.
"""


_MARKS = """\
## Marks

A decision about a version is a mark: an entry of its metadata in Temporal, as JSON, with author (`by`), time
(`at`), reason (`because`) and stay (`stay`). A stay begins when the version is created, gets a share, becomes
current, or loses its share. `false` takes a mark back.

| mark | written by, and what it does | it counts until |
| --- | --- | --- |"""


def reasons_page() -> str:
    """The page as Markdown."""
    version_reasons = [*(row.reason for row in (*LIVE, *WITHOUT_DEPLOYMENT))]
    beside = [reason for reason in VersionReason if reason not in version_reasons]
    beside_the_table = (
        *(RoutingReason.ROLLOUT_NOT_BEGUN, RoutingReason.LOOK_FAILED, RoutingReason.CLAIM_FAILED),
        *(RoutingReason.INVALID_INTENT, RoutingReason.ROLLOUT_ENDED),
    )
    sections = [
        _HEAD,
        "## What becomes of a version\n",
        _order("With a Deployment", (row.reason for row in LIVE)),
        _order("Without one, or with the cluster unread", (row.reason for row in WITHOUT_DEPLOYMENT)),
        _order("Decided after these", beside),
        *_meanings((*version_reasons, *beside)),
        "## Which change of traffic comes next\n",
        _order("In this order", (row.reason for row in TABLE)),
        _order("Where a change is wanted", (RoutingReason.MANUAL,)),
        _order("Where a rollout in a cluster cannot begin or go on, or ended too early", beside_the_table),
        *_meanings((*(row.reason for row in TABLE), RoutingReason.MANUAL, *beside_the_table)),
        _MARKS,
        *(f"| `{key}` | {' '.join(_docstring(key).split())} | {key.lifetime.value} |" for key in MarkKey),
        "",
    ]
    return "\n".join(sections)


def _order(title: str, found: Iterable[StrEnum]) -> str:
    links = (f"[{reason}](#{'-'.join(_title(reason).lower().split())})" for reason in found)
    return f"{title}: {', '.join(links)}.\n"


def _title(reason: StrEnum) -> str:
    """What both tables have keeps its bare name where it is a version's."""
    is_of_both = isinstance(reason, RoutingReason) and reason in map(str, VersionReason)
    return f"{reason} of traffic" if is_of_both else reason


def _meanings(found: Iterable[StrEnum]) -> Iterator[str]:
    for reason in dict.fromkeys(found):
        when, what_to_do = _meaning(reason)
        yield f"### {_title(reason)}\n\n{when}\n\nWhat to do: {what_to_do}\n"


def _meaning(reason: StrEnum) -> tuple[str, str]:
    """When it fits and what to do."""
    when, _, what_to_do = _docstring(reason).partition("\n\n")
    return " ".join(when.split()), " ".join(what_to_do.split())


def _docstring(wanted: StrEnum) -> str:
    """The docstring that stands below a member of an enumeration."""
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
