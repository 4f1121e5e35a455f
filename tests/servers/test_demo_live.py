"""`make demo-live` tells its whole story, and proves that no workflow is lost."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT

pytestmark = pytest.mark.server
ROOT = Path(__file__).parents[2]


def test_demo_rolls_out_breaks_and_goes_back_and_loses_no_workflow(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "testing.demo_live"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stderr
    place = 0
    for sentence in (
        "v1 is current",
        "v2 has 25 %",
        "v2 is current",
        "its gate has failed",
        "its pods crash",
        "v1 is current",
        "lost: 0",
    ):
        place = ended.stdout.index(sentence, place) + 1
    [started] = re.findall(r"proven: (\d+) workflows started", ended.stdout)
    assert int(started) > 100, ended.stdout
    assert "shop/greeter" in (tmp_path / "demo-live.html").read_text()
