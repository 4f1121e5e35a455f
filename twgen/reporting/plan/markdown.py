"""A plan as Markdown, for a comment on a pull request."""

import re
from collections.abc import Iterator
from datetime import datetime

from twgen.model.status import Status, WorkerReport
from twgen.reporting.phrases import COLUMNS, several, version_rows, warnings_once
from twgen.reporting.printable import printable_copy
from twgen.reporting.status.lines import head_phrases, phase_phrase, urgency_of

_PIECE = re.compile(r"`[\w ./:=-]+`|[^\s`]+|`")
"""Matches code between backticks, a word, or a single backtick."""
_WORD = re.compile(r"([(\"']*)(.*?)([.,;:)\"']*)")
_TIME = re.compile(r"\d\d:\d\d:\d\d")
_PLAIN = re.compile(r"[\w./:;,()'\"%+=?→-]*")
_MEANS_MORE = re.compile(r"://|www\.|:\w+:|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE)
"""Matches plain characters that some Markdown dialects turn into a link, an emoji, or emphasis."""


def plan_markdown(status: Status) -> str:
    """The plan's time, then a section for each worker: the next change, its reason, and the versions."""
    status = printable_copy(status)
    workers = sorted(status.workers, key=urgency_of)
    # inline code keeps GitHub from rendering parts of the time, such as `:24:`, as emoji
    sections = [f"As of `{status.now:%Y-%m-%d %H:%M:%S} UTC`"]
    sections += ["\n".join(_worker(worker, status.now)) for worker in workers]
    sections += [f"> **Warning:** {sentence(warning)}" for warning in status.warnings]
    return "\n\n".join(sections) + "\n"


def _worker(worker: WorkerReport, now: datetime) -> Iterator[str]:
    # the name and the phase are escaped together, because a name such as `a:1` would form an emoji (`:1:`)
    # with the colon that follows
    yield f"### {sentence(f'{worker.worker}: {phase_phrase(worker, now)}')}"
    yield ""
    if worker.alarm:
        yield f"> **{sentence(worker.alarm).strip()}**"
        yield ""
    for label, text in head_phrases(worker, now):
        yield f"- **{label}:** {sentence(text)}"
    for warning in warnings_once(worker):
        yield ""
        yield f"> **Warning:** {sentence(warning)}"
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- | --- | --- | ---: | --- |"
    for versions, cells in version_rows(worker):
        names = several([code(version.build_id) for version in versions])
        yield f"| {' | '.join([names, *map(sentence, cells)])} |"


def sentence(text: str) -> str:
    """Convert words that could be markup, mentions or links to code. Existing code does not change."""
    return _PIECE.sub(lambda piece: _word(piece.group()), text)


def code(text: str) -> str:
    """The text as code, so that no part of it becomes markup, a mention or a link."""
    if text and (_TIME.fullmatch(text) or all(map(_is_plain, text.split(" ")))):
        return f"`{text}`"
    # a character reference is never markup: https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
    references = (item if item.isalnum() else f"&#{ord(item)};" for item in text)
    return f"<code>{''.join(references)}</code>"


def _word(word: str) -> str:
    if _is_plain(word) or (len(word) > 1 and word.startswith("`")):
        return word
    before, core, after = _WORD.fullmatch(word).groups()  # type: ignore[union-attr]  # it matches everything
    return f"{before}{code(core)}{after}"


def _is_plain(word: str) -> bool:
    return bool(_PLAIN.fullmatch(word)) and not _MEANS_MORE.search(word)
