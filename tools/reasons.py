"""The page of all reasons, and the picture of the routing table, from the tables themselves."""

import ast
import inspect
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise

from twgen.model.reasons.routing import RoutingReason
from twgen.model.reasons.versions import VersionReason
from twgen.planning.routing.table import TABLE
from twgen.planning.versions.table import LIVE, WITHOUT_DEPLOYMENT

_HEAD = """\
# Reasons

Every decision of `twgen plan` and `twgen status` has a `reason`: a word that stays, for programs, beside the
sentence for people, which may be worded better one day. In each table the first row that fits decides.
"Nothing" means that it goes on by itself, or is as it should be.

This page is written by `make documentation` from the tables that decide.
"""


def reasons_page() -> str:
    """The page as Markdown."""
    version_reasons = [*(row.reason for row in (*LIVE, *WITHOUT_DEPLOYMENT))]
    beside = [reason for reason in VersionReason if reason not in version_reasons]
    beside_the_table = (
        *(RoutingReason.LOOK_FAILED, RoutingReason.CLAIM_FAILED),
        *(RoutingReason.INVALID_INTENT, RoutingReason.ROLLOUT_ENDED),
    )
    sections = [
        _HEAD,
        "## What becomes of a version\n\nWith a Deployment:\n",
        _table(row.reason for row in LIVE),
        "Without one, or with the cluster unread:\n",
        _table(row.reason for row in WITHOUT_DEPLOYMENT),
        "And what is decided after the row:\n",
        _table(beside),
        "## Which change of traffic comes next\n",
        _table(row.reason for row in TABLE),
        "After it, where a change is wanted:\n",
        _table((RoutingReason.MANUAL,)),
        "And where a rollout in a cluster cannot begin or go on, or has ended too early:\n",
        _table(beside_the_table),
        "As a picture:\n",
        _picture(),
    ]
    return "\n".join(sections)


def _table(found: Iterable[StrEnum]) -> str:
    rows = [f"| `{reason}` | {' | '.join(_meaning(reason))} |\n" for reason in found]
    return "| reason | when | what to do |\n| --- | --- | --- |\n" + "".join(rows)


def _picture() -> str:
    lines = ["```mermaid", "flowchart TD"]
    for index, row in enumerate(TABLE):
        question = _meaning(row.reason)[0].rstrip(".").replace('"', "'").replace("`", "")
        lines.append(f'  q{index}{{"{question}?"}} -->|yes| a{index}["{row.reason}"]')
        if index + 1 < len(TABLE):
            lines.append(f"  q{index} -->|no| q{index + 1}")
    return "\n".join([*lines, "```\n"])


def _meaning(reason: StrEnum) -> tuple[str, str]:
    """When it fits and what to do, from the docstring that stands below a member of an enumeration."""
    for statement in ast.parse(inspect.getsource(type(reason))).body:
        body = statement.body if isinstance(statement, ast.ClassDef) else []
        for member, following in pairwise(body):
            match member, following:
                case (
                    ast.Assign(targets=[ast.Name(id=name)]),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ) if name == reason.name:
                    when, _, what_to_do = text.partition("\n\n")
                    return " ".join(when.split()), " ".join(what_to_do.split())
    raise LookupError(f"{reason!r} has no docstring")
