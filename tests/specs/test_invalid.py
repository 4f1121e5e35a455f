"""Every rule, with a document that breaks it: a folder is a case, `expected.txt` is what `validate` says."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from twgen.cli.main import twgen

FOLDERS = sorted((Path(__file__).parents[1] / "fixtures" / "invalid").iterdir())


def validated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(twgen, ["validate", "documents.yaml", "--quiet"]).stdout


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_broken_rule_is_told_where_it_is_broken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert validated(folder, monkeypatch) == (folder / "expected.txt").read_text()


def test_every_case_says_something() -> None:
    assert len(FOLDERS) > 40
    assert [folder.name for folder in FOLDERS if not (folder / "expected.txt").read_text()] == []
