"""Lines of problems, found in the file."""

from pathlib import Path

import pytest

from twgen.model.problem import Document, DocumentPath, Problem
from twgen.reading.documents import Sources, located

TEXT = "kind: List\nitems:\n- a: 1\n- b:\n    c: 2\n"


@pytest.fixture
def document(tmp_path: Path) -> Document:
    (tmp_path / "a.yaml").write_text(TEXT)
    return Document(str(tmp_path / "a.yaml"), 0, {"c": 2}, "items[1].b")


def test_item_of_a_list_has_its_own_line(document: Document) -> None:
    ((problem, line),) = located([Problem.at(document, "c", "is wrong")], Sources())
    assert (problem.path, line) == ("items[1].b.c", 5)


def test_other_place_stands_at_the_end_of_the_message(document: Document) -> None:
    other = DocumentPath(document, "items[0].a")
    problem = Problem.at(document, "c", "is there twice; the other is at", other)
    ((found, _),) = located([problem], Sources())
    assert found.message == f"is there twice; the other is at {document.source}:3"


def test_file_is_read_once_for_all_its_problems(document: Document) -> None:
    sources = Counting()
    first = DocumentPath(document, "items[0].a")
    problems = [Problem.at(document, "c", f"is wrong {n}", first) for n in range(2000)]
    assert {line for _, line in located(problems, sources)} == {5}
    assert sources.reads == 1


class Counting(Sources):
    """Sources that count how often they are read."""

    reads = 0

    def text(self, source: str, most: int = 2**24) -> bytes:
        self.reads += 1
        return super().text(source, most)
