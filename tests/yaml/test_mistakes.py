import pytest

from twgen.yaml.events import lines_of

TEXT = """\
# a comment
kind: First
---
kind: Second
metadata:
  labels:
    'a.b/c': x
    true: y
spec:
  steps:
  - rampPercentage: 1
    pause: 30s
  -
    rampPercentage: 5
  flow: [a, {b:
    1}]
  text: |
    many
    lines
  &anchor last: *anchor
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 4),
        (("kind",), 4),
        (("metadata", "labels"), 6),
        (("metadata", "labels", "a.b/c"), 7),
        (("metadata", "labels", "true"), 8),
        (("spec", "steps", 0), 11),
        (("spec", "steps", 0, "pause"), 12),
        (("spec", "steps", 1, "rampPercentage"), 14),
        (("spec", "flow", 1, "b"), 15),
        (("spec", "text"), 17),
        (("spec", "last"), 20),
    ],
)
def test_a_path_has_the_line_of_its_key_or_item(path: tuple[str | int, ...], line: int) -> None:
    assert lines_of(TEXT, [(1, *path)]) == lines_of(TEXT.encode(), [(1, *path)]) == [line]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("metadata", "name"), 5),
        (("spec", "steps", 7, "pause"), 10),
        (("spec", "steps", "pause"), 10),
        (("spec", "text", "pause"), 17),
        (("status",), 4),
        ((0,), 4),
    ],
)
def test_a_path_that_the_text_lacks_has_the_line_of_its_deepest_ancestor(
    path: tuple[str | int, ...], line: int
) -> None:
    assert lines_of(TEXT, [(1, *path)]) == [line]


def test_a_document_that_the_text_lacks_has_no_line() -> None:
    assert lines_of(TEXT, [(2, "kind")]) == [None]
    assert lines_of("", [(0,)]) == [None]


def test_what_stands_before_an_error_is_found() -> None:
    assert lines_of("a:\n  b: 1\nc: @\n", [(0, "a", "b"), (0, "c", "d")]) == [2, 3]


def test_json_has_lines_too() -> None:
    assert lines_of('{"a":\n [1,\n {"b": 2}]}', [(0, "a", 1, "b")]) == [3]


def test_deep_nesting_is_walked_without_recursion() -> None:
    assert lines_of("a: " + "[" * 5000 + "]" * 5000 + "\nb: 1\n", [(0, "b")]) == [2]


def test_many_places_have_their_lines_in_any_order() -> None:
    paths = [("spec", "steps", 1), ("kind",), ("spec", "steps", 0, "pause"), ("spec", "steps", 1)]
    assert lines_of(TEXT, [*((1, *path) for path in paths), (0, "kind")]) == [14, 4, 12, 14, 2]
