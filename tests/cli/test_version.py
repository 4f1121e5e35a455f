"""Which version says what: a development build names its commit, a release does not."""

from pathlib import Path

import pytest

import twgen
from twgen.cli.version import commit, full_version


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(twgen, "__path__", [str(tmp_path)])
    return tmp_path


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.1.0.dev0", "0.1.0.dev0+g1a2b3c4d5e6f"), ("0.1.0", "0.1.0"), ("0.2.0rc1", "0.2.0rc1")],
)
def test_only_a_development_build_shows_its_commit(
    installation: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    (installation / "revision").write_text("1a2b3c4d5e6f\n")
    monkeypatch.setattr(twgen, "__version__", version)
    assert full_version() == told
    assert commit() == "1a2b3c4d5e6f"


def test_checkout_shows_none(installation: Path) -> None:
    assert commit() == ""
    assert full_version() == twgen.__version__
    assert not (installation / "revision").exists()
