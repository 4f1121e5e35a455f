"""A comment at the end of a line of YAML is not cut off by the column of the site."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "back",
    "charts",
    "controller",
    "plain-deployments",
    "policies",
    "scaling",
    "specs",
    "workers",
)
WIDTH = 74
"""The column shows so many characters on a screen of 1440 pixels."""


@pytest.mark.parametrize("page", PAGES)
def test_no_line_with_a_comment_is_wider_than_the_column(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert [line for line in lines if "# " in line and len(line) > WIDTH] == []
