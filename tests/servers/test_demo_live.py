"""`make demo-live` tells its whole story, and proves that no workflow is lost."""

import json
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
        "v2 has 25%",
        "v2 is current",
        "its gate failed",
        "its pods crash",
        "v1 is current again",
        "lost: 0",
    ):
        place = ended.stdout.index(sentence, place) + 1
    [started] = re.findall(r"(\d+) workflows started, \1 completed", ended.stdout)
    assert int(started) > 100, ended.stdout
    page = (tmp_path / "demo-live.html").read_text()
    assert "shop/greeter" in page
    [state] = re.findall(r'<script type="application/json" id="state">(.*?)</script>', page)
    shown = json.loads(state)
    assert (shown["isOver"], shown["started"], shown["completed"], shown["lost"]) == (
        True,
        int(started),
        int(started),
        0,
    )
    assert shown["shares"] == {"v1": 100, "v2": 0, "v3": 0, "v4": 0}
    assert shown["versions"]["v2"] == "drained: its last order has ended"
    assert shown["versions"]["v3"] == "its gate failed: it got no workflow"
    assert shown["versions"]["v4"] == "its pods crash: it got no workflow"
    assert [line["text"] for line in shown["log"] if line["kind"] == "commit"][2:4] == [
        "commit v3: a version whose gate fails",
        "commit v4: a version that crashes",
    ]
