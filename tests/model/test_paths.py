import pytest
from hypothesis import given
from hypothesis import strategies as st

from twgen.model.paths import join_path, parse_path


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ((), ""),
        (("spec",), "spec"),
        (("spec", "rollout", "steps", 1, "rampPercentage"), "spec.rollout.steps[1].rampPercentage"),
        (("metadata", "labels", "a.b/c", "d"), "metadata.labels['a.b/c'].d"),
        ((0, 1, "x-y"), "[0][1].x-y"),
        (("", "it's", "a\nb", "1"), "['']['it\\u0027s']['a\\u000ab'].1"),
    ],
)
def test_a_path_reads_as_people_write_it(steps: tuple[str | int, ...], path: str) -> None:
    assert join_path("", *steps) == path
    assert parse_path(path) == steps


def test_steps_are_appended_to_a_path() -> None:
    assert join_path("spec.steps[1]", "pause") == "spec.steps[1].pause"


@given(st.lists(st.text(max_size=5) | st.integers(0, 99)))
def test_every_path_is_parsed_back_and_stands_on_one_line(steps: list[str | int]) -> None:
    path = join_path("", *steps)
    assert parse_path(path) == tuple(steps)
    assert len(path.splitlines()) <= 1


@pytest.mark.parametrize(
    "text", [".", ".a", "a.", "a..b", "a[", "a[x]", "a[-1]", "a['b]", "[0]a", "a b", "a]", "['a']b"]
)
def test_text_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a path at character"):
        parse_path(text)
