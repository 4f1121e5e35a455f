"""`make stack`, `make demo-live` and `make demo-rollout`, each a process that starts servers of its own."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from testing.processes import ENVIRONMENT, eventually, running
from tests.servers.side_by_side import side_by_side

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
_ENDS_WITHIN = 120.0
_SOON = 300.0
_LABEL = re.compile(r" {2}(?P<label>[A-Za-z ]{13}) (?P<command>\S.*)")
_MORE = re.compile(r" {16}(?P<command>[a-z].*)")
_COMMITTER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a person"), ("EMAIL", "person@example.com"))
}


def printed_by(module: str, folder: Path) -> str:
    """The output of a demonstration, which must succeed."""
    ended = subprocess.run(
        [sys.executable, "-m", module],
        cwd=folder,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@side_by_side
def test_demo_live_rolls_out_breaks_and_goes_back_and_loses_no_workflow(tmp_path: Path) -> None:
    printed = printed_by("testing.demo_live", tmp_path)
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
        place = printed.index(sentence, place) + 1
    [started] = re.findall(r"(\d+) workflows started, \1 completed", printed)
    assert int(started) > 100, printed
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


@side_by_side
def test_demo_rollout_rolls_out_breaks_and_rolls_back(tmp_path: Path) -> None:
    printed = printed_by("testing.demo_rollout", tmp_path)
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
        assert sentence in printed[place:], printed
        place = printed.index(sentence, place) + 1


@side_by_side
def test_stack_does_what_it_prints_and_leaves_nothing_behind(tmp_path: Path) -> None:
    log = tmp_path / "stack.log"
    with running([sys.executable, "-m", "testing.argocd.stack"], log, grace=_ENDS_WITHIN) as process:

        def told() -> str:
            assert process.poll() is None, log.read_text()
            printed = log.read_text()
            return printed if "Ctrl-C stops and removes everything" in printed else ""

        person = Person(eventually(told, _SOON), tmp_path)
        watched = person.does("watch it")
        assert re.search(r"^shop +Synced ", watched, re.MULTILINE), watched
        assert "deployment.apps/greeter-v1" in watched
        assert person.rollout() == "Settled v1 100"
        described = person.does("Temporal")
        assert re.search(r"CurrentVersionBuildID +v1", described), described
        assert "shop/greeter" in person.does("twgen")
        assert "argocd/shop" in person.does("Argo CD")
        assert "Settled" in person.does("pod logs")
        assert person.may_sync()
        person.does("next version")
        eventually(lambda: person.rollout().endswith(" v2 25"), _SOON)
        person.does("roll back")
        eventually(lambda: person.rollout() == "Settled v1 100", _SOON)
        person.does("refresh")
        assert process.poll() is None, log.read_text()
        assert person.sees_processes()
        process.send_signal(signal.SIGINT)
        assert process.wait(_ENDS_WITHIN) == 0, log.read_text()
    assert not person.folder.exists()
    eventually(lambda: person.sees_processes() == [])


class Person:
    """Somebody with a shell, who pastes what is printed."""

    def __init__(self, printed: str, home: Path) -> None:
        """Clone the repository, as the first lines say."""
        self._home = home
        [begin] = re.findall(r"(?:^  (?:export|git clone) .*\n)+", printed, re.MULTILINE)
        self._exports = [line for line in begin.splitlines() if "export" in line]
        self._commands: dict[str, list[str]] = {}
        label = ""
        for line in printed.splitlines():
            if found := _LABEL.fullmatch(line):
                label = found["label"].strip()
            if found := found or _MORE.fullmatch(line):
                self._commands.setdefault(label, []).append(found["command"])
        self.folder = Path(re.findall(r"current\. (\S+) has all files", printed)[0])
        self._bash(begin)

    def does(self, label: str) -> str:
        """What the command with that label prints, in the clone."""
        return self._bash("\n".join((*self._exports, "cd workers", *self._commands[label])))

    def rollout(self) -> str:
        """The phase, the target, and its share of the traffic."""
        fields = "{.data.phase} {.data.target} {.data.percentage}"
        command = f"kubectl get -n shop configmap/greeter-rollout-status -o jsonpath='{fields}'"
        return self._bash("\n".join((*self._exports, command)))

    def may_sync(self) -> bool:
        """Whether `argocd` is logged in as a person who deploys workers has to be."""
        command = "argocd account can-i sync applications '*/*'"
        return self._bash("\n".join((*self._exports, command))).strip() == "yes"

    def sees_processes(self) -> list[str]:
        """The commands of the stack that run."""
        commands = (" ".join(found.info["cmdline"] or ()) for found in psutil.process_iter(["cmdline"]))
        return [command for command in commands if str(self.folder) in command]

    def _bash(self, script: str) -> str:
        environment: Mapping[str, str] = ENVIRONMENT | _COMMITTER
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ENDS_WITHIN,
        )
        assert ended.returncode == 0, (script, ended.stdout, ended.stderr)
        return ended.stdout
