"""`make demo-rollout` tells its whole story."""

import subprocess
import sys
from pathlib import Path

import pytest

from testing.processes import ENVIRONMENT

pytestmark = pytest.mark.server


def test_demo_rolls_out_breaks_and_rolls_back_in_about_a_minute() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "testing.demo_rollout"],
        cwd=Path(__file__).parents[2],
        env=dict(ENVIRONMENT),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stderr
    told = [
        "v1 is current now",
        "25% of new workflows go to v2 now",
        "v2 is current now",
        "drains: v1: move all workflows to the current version (not possible yet: its replay has not begun",
        "has ended: 3 of 3 workflows",
        "the gate on task queue greetings ended as Failed",
        "v1 is current now (it was current until recently",
    ]
    place = 0
    for sentence in told:
        place = ended.stdout.index(sentence, place) + 1
