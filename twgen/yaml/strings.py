"""How a string is written: unquoted only where no reader takes it for anything else."""

import json
import re
from typing import Any

from twgen.yaml.scalars import NotAScalar, resolve_plain

_NEVER_PLAIN = r"\s:#\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff"
# no indicator first, no ": " or " #" inside, no space or colon last, nothing that may break a line
_PLAIN = re.compile(
    rf"(?:[^{_NEVER_PLAIN}\-?,\[\]{{}}&*!|>'\"%@`]|[-?:](?=[\w./-]))"
    rf"(?:[^{_NEVER_PLAIN}]++|:(?=[^\s])|(?<=[^\s])#|\ +(?=[^\s#]))*+"
)
# what Kubernetes leaves alone, but other readers take for a number, a date or a sign of their own
_AMBIGUOUS = re.compile(
    r"=|<<|---.*|\.\.\..*"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
    r"|(?=[-+.0-9])[-+]?[0-9a-fA-FxXoO.]*_[0-9a-fA-F_.+-]*"
)
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)}
_NOT_IN_BLOCKS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def is_plain(text: str) -> bool:
    """Say whether Kubernetes, YAML 1.1 and YAML 1.2 all read the unquoted text as exactly this string."""
    if not _PLAIN.fullmatch(text) or _AMBIGUOUS.fullmatch(text):
        return False
    try:
        return resolve_plain(text) == text
    except NotAScalar:
        return False


def quote(text: str) -> str:
    """Return the string as YAML on one line: plain where possible, else in quotes."""
    if is_plain(text):
        return text
    if ('"' in text or "\\" in text) and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return in_one_line(text)


def in_one_line(value: Any) -> str:
    """Return a value of JSON as JSON on one line, which all YAML readers read as the same."""
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)


def block(text: str, pad: str) -> str | None:
    """Return a string of several lines as a literal block below `pad`, None where it needs quotes."""
    first = text.lstrip("\n")[:1]
    if not first or _NOT_IN_BLOCKS.search(text):
        return None
    indentation = "2" if first in " \t" else ""
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    lines = text.removesuffix("\n").split("\n")
    body = "\n".join(f"{pad}  {line}" if line else "" for line in lines)
    return f"|{indentation}{chomping}\n{body}"
