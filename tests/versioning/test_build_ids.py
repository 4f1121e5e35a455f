import re

from hypothesis import given
from hypothesis import strategies as st

from twgen.versioning.build_ids import build_id

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@given(template_json=st.text(), image=st.text())
def test_build_id_of_any_image_is_a_label_value(template_json: str, image: str) -> None:
    assert _LABEL_VALUE.fullmatch(build_id(template_json, image, ""))


def test_custom_build_id_is_cleaned_before_it_is_cut() -> None:
    assert build_id("{}", "hello:v1", f"-/{'a' * 70}") == "a" * 63


def test_custom_build_id_with_nothing_legal_in_it_counts_as_absent() -> None:
    assert build_id("{}", "hello:v1", "é/._-") == build_id("{}", "hello:v1", "")


def test_cut_in_the_middle_of_a_character_leaves_a_separator() -> None:
    assert build_id("{}", "x" + "é" * 40, "").startswith("x-")


def test_tag_that_starts_with_a_separator_loses_it() -> None:
    assert build_id("{}", "hello:__v1", "").startswith("v1-")


def test_build_id_without_an_image_is_ten_safe_digits() -> None:
    assert re.fullmatch("4{6}[bcdf456789]{4}", build_id("{}", "", ""))
