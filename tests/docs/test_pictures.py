"""The pictures of the documentation are made from what the program prints now."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tools.pictures import PICTURES, THEMES, dashboard, drawings, fingerprint

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LARGEST = 150_000


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return dict(drawings())


def test_drawings_are_as_the_program_has_them(drawn: dict[str, str]) -> None:
    # to write them: make documentation
    assert {name: (PICTURES / name).read_text() for name in drawn} == drawn


def test_photograph_of_the_dashboard_is_of_the_page_as_it_is() -> None:
    # to take another: make documentation
    assert fingerprint(dashboard()) == (PICTURES / "dashboard.sha256").read_text()


def test_each_picture_is_small_and_there_in_light_and_dark() -> None:
    files = [file for file in PICTURES.iterdir() if file.suffix in {".svg", ".webp"}]
    names = {re.sub("-(light|dark)$", "", file.stem) for file in files}
    assert {file.stem for file in files} == {f"{name}-{theme}" for name in names for theme in THEMES}
    assert [file.name for file in files if file.stat().st_size > LARGEST] == []


def test_drawing_loads_nothing(drawn: dict[str, str]) -> None:
    for text in drawn.values():
        loaded = re.findall(r"(?:https?:|url\()[^)\"'\s]*", text)
        assert [one for one in loaded if one != "http://www.w3.org/2000/svg" and "(#" not in one] == []


def test_drawing_of_the_tree_says_that_it_is_one_and_names_each_object(drawn: dict[str, str]) -> None:
    tree = drawn["argocd-light.svg"]
    assert "A drawing, not a screenshot" in tree
    assert len(re.findall(">payments-v[-0-9a-f]+<", tree)) == 3, "a Deployment for each version"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_shows_a_picture_in_light_and_dark_with_words_for_it(page: Path) -> None:
    shown = re.findall(r"!\[([^\]]*)\]\((\S*pictures/[^)]+)\)", page.read_text())
    for words, address in shown:
        assert words.count(" ") > 3, address
    light = [address for _, address in shown if address.endswith("#gh-light-mode-only")]
    dark = [address for _, address in shown if address.endswith("#gh-dark-mode-only")]
    assert len(light) + len(dark) == len(shown)
    assert dark == [address.replace("light", "dark") for address in light]


def test_pictures_are_shown() -> None:
    text = "".join(page.read_text() for page in PAGES)
    shown = {name for file in PICTURES.iterdir() if (name := file.name) in text}
    assert shown == {file.name for file in PICTURES.iterdir() if file.suffix in {".svg", ".webp"}}
