"""A comment at the end of a line of YAML is not cut off by the column of the site."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, blocks

WIDTH = 74
"""The column shows so many characters on a screen of 1440 pixels."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_line_with_a_comment_is_wider_than_the_column(page: Path) -> None:
    lines = "".join(blocks(page, "yaml")).splitlines()
    assert [line for line in lines if "# " in line and len(line) > WIDTH] == []
