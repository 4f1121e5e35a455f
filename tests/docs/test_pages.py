"""The pages as pages: short, led to, and the reference as the program has it."""

import json
import re
import shlex
import shutil
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from tools.fields import KINDS, fields_page
from tools.printed import DOCUMENTS, Printed, json_documents, json_page
from tools.published_schemas import SCHEMAS
from tools.reference import commands_page
from twgen.model.problem import Document
from twgen.reading.schemas import schema_problems
from twgen.yaml.reader import read_documents

ROOT = Path(__file__).parents[2]
GENERATED = (*KINDS, "commands", "json", "reasons")
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


def test_page_of_commands_is_as_the_program_has_it() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == commands_page()


def test_page_of_printed_documents_is_as_the_program_prints_them() -> None:
    assert (ROOT / "docs" / "json.md").read_text() == json_page()


@pytest.mark.parametrize("kind", KINDS)
def test_page_of_a_kind_lists_every_field_of_its_schema_once(kind: str) -> None:
    page = (ROOT / "docs" / f"{kind}.md").read_text()
    assert page == fields_page(kind)
    described = (SCHEMAS / f"{kind}.json").read_text().count('"description":')
    listed = re.findall(r"^- `\S+`", page, re.MULTILINE)
    # the spec itself and the items of lists have no line
    assert described - 4 <= len(listed) <= described


@pytest.mark.parametrize("kind", KINDS)
def test_example_of_a_kind_fits_its_schema(kind: str) -> None:
    examples = re.findall(r"^```yaml\n(.*?)^```$", fields_page(kind), re.MULTILINE | re.DOTALL)
    assert examples
    for text in examples:
        [document] = read_documents(text)
        assert list(schema_problems([Document("", 0, document)], ())) == []


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
