"""A comment at the end of a line of YAML is not cut off by the column of the site."""

import re
from pathlib import Path

import pytest

from tests.docs.test_pages import PAGES

WIDTH = 74
"""The column shows so many characters on a screen of 1440 pixels."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_line_with_a_comment_is_wider_than_the_column(page: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert [line for line in lines if "# " in line and len(line) > WIDTH] == []
