"""The pages as pages: short, led to, and the reference as the program has it."""

import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from tools.reference import fields_page, options_page
from tools.website import home

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
    made_of_readme = {"README.md": "index.md"}
    assert sorted(listed) == sorted(made_of_readme.get(page.name, page.name) for page in PAGES)


def test_home_page_of_the_site_is_the_readme_with_links_from_its_own_folder() -> None:
    readme = (ROOT / "README.md").read_text()
    link = re.compile(r"(?<=\]\()[^)]+")
    before, after = link.findall(readme), link.findall(home(readme))
    assert len(before) == len(after) > 20
    for path, there in zip(before, after, strict=True):
        if "://" in path:
            assert there == path
        else:
            assert (ROOT / "docs" / there).resolve() == ROOT / path
    words = re.compile(r"\w+")
    assert [word for word in words.findall(link.sub("", home(readme))) if word != "danger"] == words.findall(
        link.sub("", readme)
    )


def test_warning_of_the_readme_is_a_box_on_the_site() -> None:
    assert '\n!!! danger "Do not `kubectl apply` the specs"\n    ' in home((ROOT / "README.md").read_text())
    shown = home("Text.\n\n> **Stop:** read\n> [this](docs/a.md).\n\nMore.\n")
    assert shown == 'Text.\n\n!!! danger "Stop"\n    read\n    [this](a.md).\n\nMore.\n'


def test_home_page_shows_pictures_that_the_readme_has_as_html() -> None:
    shown = '<source srcset="docs/dark.svg"><img src="docs/light.svg"><a href="https://temporal.io">'
    assert home(shown) == shown.replace("docs/", "")
