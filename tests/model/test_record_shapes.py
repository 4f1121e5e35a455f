from typing import Annotated, NamedTuple

import pytest

from twgen.model.record_shapes import FieldRule, OneOf, record_of


class _Inner(NamedTuple):
    text: str


class _Inline(NamedTuple):
    inner: Annotated[_Inner, FieldRule.INLINE]


class _OneOf(NamedTuple):
    inner: Annotated[_Inner, OneOf({"text": _Inner})]


@pytest.mark.parametrize("declared", [_Inline, _OneOf])
def test_record_never_loses_an_attribute_with_several_fields(declared: type) -> None:
    with pytest.raises(AssertionError, match="inner has several fields"):
        record_of(declared)
