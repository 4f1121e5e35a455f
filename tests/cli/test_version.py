"""The commit that a build comes from: all builds between two releases have one version."""

from pathlib import Path

import pytest

import twgen
from twgen.cli.main import bug_report
from twgen.cli.version import commit


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(twgen, "__path__", [str(tmp_path)])
    return tmp_path


def test_report_of_a_bug_names_the_commit_of_the_build(installation: Path) -> None:
    (installation / "revision").write_text("1a2b3c4d5e6f\n")
    assert commit() == "1a2b3c4d5e6f"
    assert bug_report(ValueError()).startswith(f"twgen {twgen.__version__} (1a2b3c4d5e6f), Python ")


@pytest.mark.usefixtures("installation")
def test_checkout_has_no_commit_of_its_own() -> None:
    assert commit() == ""
    assert bug_report(ValueError()).startswith(f"twgen {twgen.__version__}, Python ")
