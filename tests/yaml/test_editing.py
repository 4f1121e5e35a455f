"""A file that people own keeps their comments and their order."""

from typing import Any

import pytest

from twgen.yaml.editing import commented, edited
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents


def as_block(value: Any) -> str:
    return write_documents([value])


OWNED = """\
# of the payments team
kind: Worker # theirs
spec:
  steps:   # slowly
  - {share: 5, pause: 10m}   # first
  - {share: 50, pause: 1h}
  replicas: 3
  gone: true
apiVersion: v1
"""


def test_comments_and_order_stay_where_fields_stay() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Worker",
        "spec": {
            "replicas": 4,
            "steps": [{"share": 5, "pause": "10m"}, {"share": 60, "pause": "1h"}],
            "new": {"on": "yes", "time": "1:30"},
        },
    }
    text = edited(OWNED, document, as_block) or ""
    assert read_documents(text) == [document]
    assert "# of the payments team\nkind: Worker # theirs\n" in text
    assert "steps:   # slowly\n" in text
    assert "- {share: 5, pause: 10m}   # first\n" in text
    assert "gone" not in text


def test_same_document_leaves_the_file_as_it_is() -> None:
    [document] = read_documents(OWNED)
    assert edited(OWNED, document, as_block) == OWNED


def test_new_file_has_comments_beside_fields() -> None:
    text = commented({"spec": {"hostPort": "a:1", "on": "off"}}, {("spec", "hostPort"): "fill in"})
    assert text == 'spec:\n  hostPort: a:1  # fill in\n  "on": "off"\n'


def test_lists_grow_and_shrink_where_they_are() -> None:
    longer = edited("a:\n  - 1 # one\n  - {b: 2}\n", {"a": [1, {"b": 3}, 4]}, as_block)
    assert longer == "a:\n  - 1 # one\n  - {b: 3}\n  - 4\n"
    assert edited(longer, {"a": [1]}, as_block) == "a:\n  - 1 # one\n"
    assert edited("a: []\n", {"a": ["x"]}, as_block) == "a:\n- x\n"


def test_what_is_the_same_keeps_its_spelling() -> None:
    text = "at: 2026-11-21T05:24:15Z\nhow: 'on'\nis: 1\n"
    [document] = read_documents(text)
    changed = edited(text, {**document, "is": True}, as_block)
    assert changed == "at: 2026-11-21T05:24:15Z\nhow: 'on'\nis: true\n"


@pytest.mark.parametrize("text", ["- a\n", "just words\n", "a: &b {c: 1}\nd: *b\n"])
def test_text_that_cannot_be_changed_in_its_layout_gives_none(text: str) -> None:
    assert edited(text, {"a": {"c": 2}, "d": {"c": 1}}, as_block) is None
