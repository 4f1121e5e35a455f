"""Markdown that nobody breaks out of."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.planning.situations import live, routing, situation, temporal, version
from tests.reporting.reports import a_status, with_texts
from tests.reporting.statuses import of_situation, of_story
from tests.strategies import specs, worlds
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import GitHistory, World
from twgen.reporting.plan.markdown import code, plan_markdown, sentence

MARKUP = "`|<>[]()!@#*_~$&\\:/=-+.\n\x1b"
markup_texts = st.text(st.sampled_from(MARKUP) | st.sampled_from("ab1 "), max_size=12)
OURS = {
    "heading_open", "heading_close", "inline", "paragraph_open", "paragraph_close", "blockquote_open",
    "blockquote_close", "table_open", "table_close", "thead_open", "thead_close", "tbody_open", "tbody_close",
    "tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close",
    "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
    "text", "code_inline", "html_inline", "strong_open", "strong_close", "softbreak",
}  # fmt: skip
REFERENCE = re.compile(r"[@#]\w|://|www\.|:\w+:", re.IGNORECASE)


def tokens(markdown: str) -> list[Token]:
    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    return [*parsed, *(child for token in parsed for child in token.children or ())]


def text_outside_of_code(markdown: str) -> str:
    shown, in_code = [], False
    for token in tokens(markdown):
        if token.type == "html_inline":
            in_code = token.content == "<code>"
        elif token.type == "text" and not in_code:
            shown.append(token.content)
    return "\n".join(shown)


@given(specs, worlds(), markup_texts)
def test_no_name_is_markup_a_link_or_a_mention(spec: WorkerSpec, world: World, hostile: str) -> None:
    status = a_status(spec, world)
    # a longer text of any kind: warnings that no longer begin with their version's reason are not folded
    honest = tokens(plan_markdown(with_texts(status, lambda text: f"{text}{'x' if hostile else ''}")))
    markdown = plan_markdown(with_texts(status, lambda text: f"{text}{hostile}"))
    found = tokens(markdown)
    assert {token.type for token in found} <= OURS
    assert {token.content for token in found if token.type == "html_inline"} <= {"<code>", "</code>"}
    for kind in ("heading_open", "blockquote_open", "list_item_open", "tr_open", "td_open", "strong_open"):
        assert sum(token.type == kind for token in found) == sum(token.type == kind for token in honest), kind
    assert not REFERENCE.search(text_outside_of_code(markdown))


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("it is the target", "it is the target"),
        ("nothing runs shop/payments:v3 (yet)", "nothing runs shop/payments:v3 (yet)"),
        ("the queue my_queue, or __x__", "the queue my_queue, or <code>&#95;&#95;x&#95;&#95;</code>"),
        ("ask @admin, or see #1", "ask <code>&#64;admin</code>, or see <code>&#35;1</code>"),
        ("see https://evil.example", "see <code>https&#58;&#47;&#47;evil&#46;example</code>"),
        ("driver None: `twgen rollout` does", "driver None: `twgen rollout` does"),
        ("a | b", "a <code>&#124;</code> b"),
    ],
)
def test_word_is_code_only_where_it_could_be_more(text: str, markdown: str) -> None:
    assert sentence(text) == markdown


def test_build_id_is_code() -> None:
    assert code("v1.4.2-458f") == "`v1.4.2-458f`"
    assert code("a`b") == "<code>a&#96;b</code>"


def test_target_that_nobody_serves_is_said_first() -> None:
    status = of_story("mid-ramp-waits")
    worker = replace(status.workers[0], unserved="25% of new workflows go to nobody")
    alarmed = replace(status, workers=(worker,))
    lines = [line for line in plan_markdown(alarmed).splitlines() if line]
    assert lines[2] == "> **25% of new workflows go to nobody**"


def test_comment_that_is_read_hours_later_says_when_it_was_written_and_what_is_due_when() -> None:
    said = plan_markdown(of_story("mid-ramp-waits"))
    assert said.startswith("As of `2026-11-21 12:00:00 UTC`\n\n### ")
    assert "- **target:** v2.0.1-c656: it stays at 25% for 18m more\n" in said
    assert "- **next:** send 75% of new workflows to v2.0.1-c656 in 18m (`12:18:00` UTC)\n" in said


def test_lost_manifests_are_told_once_with_the_reason() -> None:
    lost = [version(f"old-{number}", VersionStatus.DRAINING) for number in range(3)]
    says = temporal(version("v3", VersionStatus.CURRENT), *lost, traffic=routing("v3"))
    world = situation(says, [live("v3")])
    [(key, _)] = world.workers.items()
    world = world.with_history({key: GitHistory(ends="the clone is shallow")})
    said = plan_markdown(of_situation(world))
    assert said.count("the clone is shallow") == 1
    assert "in twgen.lock again. The same is true for old-1 and old-2\n" in said
