"""The pages as pages: short, led to, and the reference as the program has it."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from itertools import groupby
from pathlib import Path

import pytest

from tests.docs.pages import EXAMPLE, PAGES, ROOT, blocks, documents
from tests.json_schemas import schema_problems
from tools.fields import KINDS, Kind, field_lists
from tools.home import SCHEMAS
from tools.parts import parts, without_parts
from tools.printed import DOCUMENTS, DOCUMENTS_PART, Printed, documents_part, json_documents
from tools.reference import commands_page
from tools.website import home
from twgen import __version__
from twgen.model.problem import Document

LOOKED_UP = ("commands", "reasons")
"""The generated pages. Nobody reads one from its beginning to its end, so it may be long."""
FOR_USERS = [page for page in PAGES if page.stem not in LOOKED_UP]
FOR_DEVELOPERS = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
RECORDS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
WIDTH = 120
WORDS_A_MINUTE = 220


def prose(page: Path) -> str:
    """The text that people wrote, without blocks of code."""
    text = without_parts(page.read_text())
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


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


def test_page_of_commands_is_as_the_program_has_it() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == commands_page()


def test_page_of_printed_documents_is_as_the_program_prints_them() -> None:
    assert parts((ROOT / "docs" / "json.md").read_text()) == {DOCUMENTS_PART: documents_part()}


@pytest.mark.parametrize("schema", KINDS)
def test_page_of_a_kind_lists_every_field_of_its_schema_once(schema: str) -> None:
    kind = KINDS[schema]
    part = parts((ROOT / "docs" / kind.page).read_text())[kind.name]
    assert part == field_lists(schema)
    described = (SCHEMAS / f"{schema}.json").read_text().count('"description":')
    listed = re.findall(r"^- `\S+`", part, re.MULTILINE)
    # the spec itself and the items of lists have no line
    assert described - 6 <= len(listed) <= described


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_page_has_a_section_with_a_valid_example_of_each_kind(kind: Kind) -> None:
    page = (ROOT / "docs" / kind.page).read_text()
    assert f"\n## {kind.name}\n" in page
    examples = documents(page, kind=kind.name)
    assert examples
    for document in examples:
        assert list(schema_problems([Document("", 0, document)])) == []


def test_page_shows_the_controllers_kinds_as_the_example_has_them() -> None:
    shown = blocks(ROOT / "docs" / "workerdeployment.md", "yaml")
    files = ("worker.yaml", "connection.yaml", "scaling.yaml")
    assert [file for file in files if (EXAMPLE / file).read_text() not in shown] == []


@pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")
@pytest.mark.parametrize("printed", DOCUMENTS, ids=lambda printed: printed.title)
def test_line_with_jq_prints_something_of_the_document(printed: Printed) -> None:
    program = shlex.split(printed.jq.partition("| jq ")[2])
    document = json_documents()[printed.title]
    given = document["versions"] if printed.title == "Ledger" else [document]
    ended = subprocess.run(
        ["jq", *program],
        input="\n".join(map(json.dumps, given)),
        capture_output=True,
        text=True,
        check=True,
    )
    # nothing of the example is about to be removed
    assert bool(ended.stdout) is (printed.title != "Plan")
    assert "null" not in ended.stdout


@pytest.mark.parametrize("page", [*FOR_USERS, *FOR_DEVELOPERS], ids=lambda page: page.stem)
def test_page_is_read_in_six_minutes(page: Path) -> None:
    # bars of tables and marks of lists are not words
    words = [word for word in prose(page).split() if any(map(str.isalnum, word))]
    assert len(words) <= 6 * WORDS_A_MINUTE


@pytest.mark.parametrize("page", [*FOR_USERS, *FOR_DEVELOPERS], ids=lambda page: page.stem)
def test_no_paragraph_has_more_than_five_lines(page: Path) -> None:
    assert [lines for lines in paragraphs(page) if len(lines) > 5] == []
    assert [line for lines in paragraphs(page) for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", [*PAGES, *FOR_DEVELOPERS], ids=lambda page: page.stem)
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


def test_few_decisions_are_recorded_and_the_index_lists_each_in_order() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    assert re.findall(r"^\d+\. \[.+\]\((.+)\)", index, re.MULTILINE) == [page.name for page in RECORDS]
    assert 0 < len(RECORDS) <= 30
    assert [int(page.name[:4]) for page in RECORDS] == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("page", RECORDS, ids=lambda page: page.stem)
def test_record_of_a_decision_is_short_and_has_its_three_parts(page: Path) -> None:
    text = page.read_text()
    assert re.findall("^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]
    assert sum(any(map(str.isalnum, word)) for word in text.split()) <= 250
    assert [lines for lines in paragraphs(page) if len(lines) > 5] == []
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []


def test_newest_release_of_the_changelog_is_the_version_of_the_program() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert pyproject["tool"]["hatch"]["version"]["path"] == "twgen/__init__.py"
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [title for title in titles if title != "Unreleased"]
    assert titles in (released, ["Unreleased", *released])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", title) for title in released)
    assert released[0] == __version__


def test_every_place_that_shows_the_version_shows_that_of_the_program() -> None:
    shown = r"(twgen(:|\.git@v| )|VERSION=|newTag: |rev: v)[0-9]+\.[0-9]+\.[0-9]+"
    # one page leads from any release to the next, and one tool only counts characters
    others = (":!docs/upgrade.md", ":!tools/sizing.py", ":!tests", ":!testing")
    command = ["git", "grep", "--untracked", "-IoE", shown, "--", *others]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if not line.endswith(__version__)] == []
