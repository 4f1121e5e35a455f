"""Histories as files: what is left out, how they are called, and who may read them."""

import asyncio
from pathlib import Path
from urllib.parse import unquote

import pytest

from twgen.errors import InvalidInput
from twgen.executing.files import Written, file_name, write_histories
from twgen.model.policy import Sample
from twgen.model.world import RecordedRun

SMALL, LARGE, GONE = (
    RecordedRun("Order", name, f"r-{name}", is_open=True) for name in ("small", "large", "gone")
)
TEXTS = {SMALL: '{"a": 1}', LARGE: "{" + " " * 98 + "}"}


async def history(recorded: RecordedRun, most_bytes: int) -> str | None:
    text = TEXTS.get(recorded, "")
    return text if len(text) <= most_bytes else None


def written(folder: Path, most_bytes: int, mode: int = 0o600) -> Written:
    sample = Sample(10, most_bytes)
    return asyncio.run(write_histories(folder, mode, [LARGE, GONE, SMALL], sample, history))


def test_what_does_not_fit_or_is_gone_is_left_out_and_the_rest_is_written(tmp_path: Path) -> None:
    assert written(tmp_path / "few", 50) == Written((SMALL,), (LARGE,), 8)
    assert written(tmp_path / "all", 108) == Written((LARGE, SMALL), (), 108)
    assert written(tmp_path / "part", 107) == Written((LARGE,), (SMALL,), 100)


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_files_are_for_who_may_read_them(tmp_path: Path, mode: int) -> None:
    written(tmp_path / "new", 108, mode)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "new").iterdir()} == {mode}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_name_of_a_file_is_one_whatever_a_workflow_is_called() -> None:
    for workflow_id in ("../../etc/passwd", "a/b c%", "ü" * 900, ".", "\x00"):
        name = file_name(RecordedRun("Order", workflow_id, "r1", is_open=True))
        assert name.endswith(".r1.json")
        assert "/" not in name
        assert len(name.encode()) < 255


def test_name_of_a_file_ends_with_a_whole_character_of_its_workflow() -> None:
    for length in range(60, 70):
        name = file_name(RecordedRun("Order", "x" * length + "😀" * 40, "r1", is_open=True))
        kept = unquote(name.removesuffix(".r1.json"), errors="strict")
        assert set(kept.lstrip("x")) == {"😀"}


@pytest.mark.parametrize("beside", ["old.r0.json", "notes.txt"])
def test_folder_that_holds_anything_is_refused_and_left_alone(tmp_path: Path, beside: str) -> None:
    (tmp_path / beside).write_text("{}")
    with pytest.raises(InvalidInput, match="is not empty"):
        written(tmp_path, 108)
    assert [file.name for file in tmp_path.iterdir()] == [beside]


def test_folder_that_takes_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot write histories to"):
        written(tmp_path / "file", 108)
