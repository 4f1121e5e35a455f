"""Lines of problems: found in the file, and not looked for without end."""

from pathlib import Path

import pytest

from twgen.model.problem import Document, Place, Problem
from twgen.reading import documents
from twgen.reading.documents import Sources

TEXT = "kind: List\nitems:\n- a: 1\n- b:\n    c: 2\n"


@pytest.fixture
def document(tmp_path: Path) -> Document:
    (tmp_path / "a.yaml").write_text(TEXT)
    return Document(str(tmp_path / "a.yaml"), 0, {"c": 2}, "items[1].b")


def test_item_of_a_list_has_its_own_line(document: Document) -> None:
    ((problem, line),) = documents.located([Problem.at(document, "c", "is wrong")], Sources())
    assert (problem.path, line) == ("items[1].b.c", 5)


def test_other_place_stands_at_the_end_of_the_message(document: Document) -> None:
    other = Place(document, "items[0].a")
    problem = Problem.at(document, "c", "is there twice; the other is at", other)
    ((found, _),) = documents.located([problem], Sources())
    assert found.message == f"is there twice; the other is at {document.source}:3"


def test_lines_of_a_large_file_are_not_looked_for_again_and_again(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_MOST_BYTES", 2 * len(TEXT))
    found = documents.located([Problem.at(document, "c", f"is wrong {n}") for n in range(9)], Sources())
    assert [line for _, line in found] == [5, 5, *[None] * 7]
