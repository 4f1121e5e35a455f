"""A plan as Markdown, for a comment on a pull request."""

import re
from collections.abc import Iterator
from datetime import datetime

from twgen.model.plan import Plan, WorkerPlan
from twgen.planning.sentences import clock_time
from twgen.reporting.plan.phrases import (
    COLUMNS,
    actions_of_versions,
    actions_phrase,
    judgement_phrase,
    next_with_reason,
    records_phrase,
    several,
    version_rows,
    warnings_once,
)
from twgen.reporting.printable import printable_copy

_PIECE = re.compile(r"`[\w ./:=-]+`|[^\s`]+|`")
"""A piece of code, a word, or a single backtick."""
_WORD = re.compile(r"([(\"']*)(.*?)([.,;:)\"']*)")
_PLAIN = re.compile(r"[\w./:;,()'\"%+=?→-]*")
_MEANS_MORE = re.compile(r"://|www\.|:\w+:|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE)
"""Plain characters that some dialects turn into a link, an emoji, or emphasis (underscores)."""


def plan_markdown(plan: Plan) -> str:
    """Its time, and a section for each worker: what happens next and why, then a table of its versions."""
    plan = printable_copy(plan)
    # as code, in which no part of a time is an emoji
    sections = [f"As of `{plan.now:%Y-%m-%d %H:%M:%S} UTC`"]
    sections += ["\n".join(_worker(worker, plan.now)) for worker in plan.workers]
    sections += [f"> **Warning:** {sentence(warning)}" for warning in plan.warnings]
    return "\n\n".join(sections) + "\n"


def _worker(worker: WorkerPlan, now: datetime) -> Iterator[str]:
    spec, routing = worker.spec, worker.routing
    # a name is read together with the text next to it: `:1` and a colon are an emoji
    yield f"### {sentence(f'{spec.worker_deployment}: {routing.phase}')}"
    yield ""
    if worker.unserved:
        yield f"> **{sentence(worker.unserved).strip()}**"
        yield ""
    due = f" (due `{clock_time(routing.due_at, now)}`)" if routing.due_at else ""
    next_change = sentence(f"{next_with_reason(worker)}{due}")
    yield f"Target {code(spec.build_id)}. **Next:** {next_change}{'' if next_change.endswith('?') else '.'}"
    for gate in worker.gates:
        yield ""
        yield f"Gate: starts {sentence(gate.workflow_type)} on task queue {sentence(gate.task_queue)}."
    for judged in worker.judgements:
        yield ""
        yield f"Analysis: {sentence(judgement_phrase(judged))}."
    for scheduled_actions in actions_of_versions(worker.scheduled_actions):
        yield ""
        yield f"Drains: {sentence(actions_phrase(scheduled_actions, now))}."
    if worker.old_records:
        yield ""
        yield f"Prunes: {sentence(records_phrase(worker))}."
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- | --- | --- | ---: | --- |"
    for versions, cells in version_rows(worker):
        names = several([code(version.build_id) for version in versions])
        yield f"| {' | '.join([names, *map(sentence, cells)])} |"
    for warning in warnings_once(worker):
        yield ""
        yield f"> **Warning:** {sentence(warning)}"


def sentence(text: str) -> str:
    """The text, in which a word that could be mark-up, a mention or a link becomes code. Code stays code."""
    return _PIECE.sub(lambda piece: _word(piece.group()), text)


def code(text: str) -> str:
    """The text as code, in which nothing is mark-up, a mention or a link."""
    if text and all(map(_is_plain, text.split(" "))):
        return f"`{text}`"
    # a character reference is never structure: https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
    references = (item if item.isalnum() else f"&#{ord(item)};" for item in text)
    return f"<code>{''.join(references)}</code>"


def _word(word: str) -> str:
    if _is_plain(word) or (len(word) > 1 and word.startswith("`")):
        return word
    before, core, after = _WORD.fullmatch(word).groups()  # type: ignore[union-attr]  # it matches everything
    return f"{before}{code(core)}{after}"


def _is_plain(word: str) -> bool:
    return bool(_PLAIN.fullmatch(word)) and not _MEANS_MORE.search(word)
