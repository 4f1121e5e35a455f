"""The notes of a release are its section of the changelog."""

import re

import pytest

from tools.release_notes import main, notes
from twgen import __version__

CHANGELOG = """# Changelog

## Unreleased

- Not yet.

## 1.2.0

First line.

- A change.

## 1.2.0rc1

## 1.1.0

- Another one.
"""


def test_notes_are_the_section_of_the_version() -> None:
    assert notes(CHANGELOG, "1.2.0") == "First line.\n\n- A change."
    assert notes(CHANGELOG, "1.1.0") == "- Another one."


@pytest.mark.parametrize("version", ["1.2", "1.2.0rc1", "2.0.0", "1x1.0"])
def test_version_without_notes_is_not_released(version: str) -> None:
    with pytest.raises(SystemExit, match=f"no section for {re.escape(version)}"):
        notes(CHANGELOG, version)


def test_tag_of_another_version_than_the_program_is_not_released() -> None:
    with pytest.raises(SystemExit, match=re.escape(f"has {__version__}")):
        main("99.0.0")


def test_version_of_the_program_can_be_released(capsys: pytest.CaptureFixture[str]) -> None:
    main(__version__)
    assert "### Added\n" in capsys.readouterr().out
