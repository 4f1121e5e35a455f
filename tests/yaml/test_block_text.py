"""The fast path reads what the reader reads, or nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.yaml.test_writer import VALUES
from twgen.yaml.block_text import read_block
from twgen.yaml.events import read_all
from twgen.yaml.limits import Budget, Limits
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

LINES = """\
a: 1|b:|c: x y|- d|  e: f|  g:|- h: i|  - j|- - k|    l: m|    - n|      o:|---||  # c| p: 1|- q:|  - r:
    - - s: t|u: {}|v: []|   w:|x: "y"|  - z|- - - |...|--- a|-|- |y: no|~: 1|a: b: c|'k': v|k: 'it''s'
k: "\\n"|k: &a b|k: *a|k: >|k: v # c|k:  v|k : v|? k|<<: {}|k: -1|- -|- ---|k: .inf|k: 0x1F|k: http://a:80
f:k: {}|f:k:v: w|f:k::|a:b|- f:k:|k: a#b|k: "a: b # c"|\tk: v|k: v |é: v"""
TEXTS = st.lists(st.sampled_from(LINES.replace("\n", "|").split("|")), max_size=8).map("\n".join)
PIECES = st.lists(
    st.sampled_from([*"ab: -#'\"\n{}[]&*!|>%@?,~.01yn", "\n  ", "\n- ", ": ", "key:\n", "---\n", "- - "]),
    max_size=14,
).map("".join)


def same_as_the_reader(text: str) -> bool:
    fast = read_block(text, Budget())
    # a difference between 1, 1.0 and true matters
    return fast is None or repr(fast) == repr(read_all(text, Budget()))


@settings(max_examples=10 * settings.default.max_examples)
@given(TEXTS | PIECES)
def test_any_text_is_read_as_the_reader_reads_it_or_left_to_it(text: str) -> None:
    assert same_as_the_reader(text)


@given(st.lists(VALUES, max_size=3))
def test_what_the_writer_wrote_is_read_as_the_reader_reads_it(values: list[Any]) -> None:
    assert same_as_the_reader(write_documents(values))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "---\n---\na: 1\n",
        "a:\nb:\n- c: 1\n  d:\n  - - e\n    - f: g\n  h: {}\n",
        "a: 1\n\n---\n- x\n# c\n- y: 0x1f\n---\n",
        "image: registry.example.com:5000/a/b:v1.2\nargs:\n- --queue\n- \"main queue\"\n- '{{ .BuildID }}'\n",
        "y: no\n",
        "fieldsV1:\n  f:spec:\n    f:replicas: {}\n",
    ],
)
def test_manifests_as_programs_write_them_take_the_fast_path(text: str) -> None:
    assert read_block(text, Budget()) == read_all(text, Budget())


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: b: c\n",
        "a: b\n  c\n",
        "a: b\n  c: d\n",
        "- a\n - b\n",
        "a:\n  b\n",
        "a: |\n  b\n",
        "a: &x b\n",
        "a: b # c\n",
        "- \n",
        "a: .inf\n",
        "null: 1\n",
        "a: é\n",
        "a: b\r\n",
        "--- a\n",
        "  a: 1\n",
        "a: 1\n- b\n",
    ],
)
def test_all_else_is_left_to_the_reader(text: str) -> None:
    assert read_block(text, Budget()) is None


def test_what_is_read_counts_towards_the_limits() -> None:
    text = "---\na: 1\nb:\n- c\n- d\n---\ne: f\n"
    budget = Budget()
    read_block(text, budget)
    assert (budget.documents, budget.nodes) == (2, 5)
    assert read_block(text, Budget(Limits(nodes=4))) is None
    assert read_block(text, Budget(Limits(documents=1))) is None
    assert read_block(text, Budget(Limits(depth=1))) is None


def test_text_longer_than_a_window_is_read_whole() -> None:
    values = [{"items": [{"name": f"n{number}", "list": [number, {}]} for number in range(4000)]}]
    text = write_documents(values)
    assert read_block(text, Budget()) == values == read_documents(text)
