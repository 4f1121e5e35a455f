"""The pages as pages: short, led to, and the reference as the program has it."""

import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from tools.reference import fields_page, options_page

ROOT = Path(__file__).parents[2]
GENERATED = ("fields", "options", "reasons")
FOR_MAINTAINERS = ("decisions",)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOR_USERS = [page for page in PAGES if page.stem not in {*GENERATED, *FOR_MAINTAINERS}]
WIDTH = 120


def prose(page: Path) -> str:
    """All but its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def paragraphs(page: Path) -> list[list[str]]:
    """The lines of each paragraph and of each item of a list; tables and headings are neither."""
    found: list[list[str]] = []
    for has_text, lines in groupby(prose(page).splitlines(), key=lambda line: bool(line.strip())):
        if not has_text:
            continue
        found.append([])
        for line in lines:
            if re.match(r" *([-*]|\d+\.) ", line):
                found.append([])
            if not line.startswith(("|", "#")):
                found[-1].append(line)
    return found


@pytest.mark.parametrize(("page", "text"), [("options", options_page), ("fields", fields_page)])
def test_page_of_reference_is_as_the_program_has_it(page: str, text: Callable[[], str]) -> None:
    assert (ROOT / "docs" / f"{page}.md").read_text() == text()


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.stem)
def test_page_has_at_most_1500_words(page: Path) -> None:
    assert len(prose(page).split()) <= 1_500


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.stem)
def test_no_paragraph_has_more_than_five_lines(page: Path) -> None:
    assert [lines for lines in paragraphs(page) if len(lines) > 5] == []
    assert [line for lines in paragraphs(page) for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_cell_of_a_table_has_more_than_25_words(page: Path) -> None:
    rows = [line for line in prose(page).splitlines() if line.startswith("|")]
    assert [cell for row in rows for cell in re.split(r"(?<!\\)\|", row) if len(cell.split()) > 25] == []


def test_site_leads_to_every_page() -> None:
    listed = re.findall(r'= "([\w-]+\.md)"', (ROOT / "zensical.toml").read_text())
    assert sorted(listed) == sorted(page.name for page in PAGES if page.name != "README.md")
