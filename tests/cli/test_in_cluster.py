"""A rollout in its cluster, and the last word of its container."""

from pathlib import Path

import pytest

from twgen.cli import rollout


def test_last_word_of_a_container_is_safe_to_read_and_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "termination-log"
    log.touch()
    monkeypatch.setattr(rollout, "_TERMINATION_LOG", log)
    rollout._leave_message("Blocked: \x1b[2J" + "ü" * 4096)  # noqa: SLF001 - a container alone has such a file
    assert log.read_text(encoding="utf-8").startswith("Blocked: \\x1b[2Jüü")
    assert log.stat().st_size in {4095, 4096}
