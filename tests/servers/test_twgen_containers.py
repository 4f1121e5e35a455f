"""A container of twgen is a fork of a process that has imported it, and is like one that is started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testing.kubernetes.api import Object
from testing.local_node.container import Container, Place
from testing.local_node.materials import Materials
from testing.local_node.node import mounts_alone
from testing.processes import eventually

ROOT = Path(__file__).parents[2]
# it is only heeded when Python starts, so that a container with it is started
STARTED = {"name": "PYTHONUNBUFFERED", "value": "1"}
# it waits for the cluster, which is none
WAITING = ("rollout", "--intent", "shop/greeter", "--intent-hash", "0")
NODE = """
import json, sys
from pathlib import Path
from tests.servers.test_twgen_containers import WAITING, container
print(container(Path(sys.argv[1]), json.loads(sys.argv[2]), *WAITING).process, flush=True)
sys.stdin.read()
"""
pytestmark = [
    pytest.mark.server,
    pytest.mark.parametrize("variables", [[], [STARTED]], ids=["forked", "started"]),
]


def container(folder: Path, variables: list[Object], *arguments: str, **more: Any) -> Container:
    """One container that has begun; its folder `config` is seen as `/config`."""
    (config := folder / "config").mkdir(parents=True)
    metadata = {"name": "one", "namespace": "shop", "labels": {}}
    volumes = [{"name": "config", "hostPath": {"path": str(config)}}]
    pod = {"metadata": metadata, "spec": {"volumes": volumes}}
    api: Any = None  # nothing is asked of it
    materials = Materials(api, "https://127.0.0.1:1", pod)
    place = Place(folder, materials, lambda: {"config": config}, mounts_alone(), {}, 0.1, lambda: None)
    spec = {
        "name": "main",
        "command": ["twgen"],
        "args": arguments,
        "env": variables,
        "volumeMounts": [{"name": "config", "mountPath": "/config", "readOnly": True}],
        **more,
    }
    made = Container(spec, "Never", place)
    made.advance()
    return made


def ended(made: Container) -> Object:
    """How it ended."""

    def over() -> Object:
        made.advance()
        terminated: Object = made.state["terminated"]
        return terminated

    return eventually(over)


def waits(made: Container) -> None:
    eventually(lambda: "trying again" in made.log.read_text())


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["version"], 0, "twgen 0"),
        (["no-such"], 2, "twgen: no such command 'no-such'; see twgen --help\n"),
        (["validate", "/config"], 2, "no document found in /config"),
    ],
)
def test_exit_code_and_log(
    tmp_path: Path, variables: list[Object], words: list[str], code: int, said: str
) -> None:
    made = container(tmp_path / "pod", variables, *words)
    assert ended(made)["exitCode"] == code
    assert said in made.log.read_text()
    assert not made.is_running


def test_environment_and_termination_message(tmp_path: Path, variables: list[Object]) -> None:
    within = {"name": "TWGEN_WITHIN", "value": "1s"}
    made = container(tmp_path, [*variables, within], *WAITING)
    assert ended(made)["exitCode"] == 4
    assert made.state["terminated"]["message"].startswith("shop/greeter is not settled within 1s")


def test_folder_that_is_not_there_is_said(tmp_path: Path, variables: list[Object]) -> None:
    made = container(tmp_path, variables, "version", workingDir="/no-such")
    assert ended(made)["exitCode"] == 128
    told = "twgen cannot be started: [Errno 2] No such file or directory: '/no-such'\n"
    assert made.log.read_text() == told


def test_it_has_mounts_a_session_and_a_folder_of_its_own(tmp_path: Path, variables: list[Object]) -> None:
    made = container(tmp_path, variables, *WAITING, workingDir="/config")
    waits(made)
    process = made.process
    assert process
    is_forked = not variables and "--map-root-user" not in mounts_alone()
    assert ("forking.py" in Path(f"/proc/{process}/cmdline").read_text()) == is_forked
    assert os.getsid(process) == os.getpgid(process) == process
    assert Path(f"/proc/{process}/cwd").readlink().name == "config"
    mounted = [line.split() for line in Path(f"/proc/{process}/mounts").read_text().splitlines()]
    [options] = [fields[3] for fields in mounted if fields[1] == "/config"]
    assert "ro" in options.split(",")
    assert f" {tmp_path / 'root'}" not in Path("/proc/self/mounts").read_text()
    made.end(signal.SIGKILL)
    assert ended(made)["exitCode"] == 137


def test_signals_reach_it(tmp_path: Path, variables: list[Object]) -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, 137)):
        made = container(tmp_path / number.name, variables, *WAITING)
        waits(made)
        made.end(number)
        assert ended(made)["exitCode"] == code
        # at once, when it may not have entered yet
        made = container(tmp_path / f"at-once-{number.name}", variables, *WAITING)
        made.end(number)
        assert ended(made)["exitCode"] == code


def test_it_does_not_outlive_a_node_that_is_killed(tmp_path: Path, variables: list[Object]) -> None:
    command = [sys.executable, "-c", NODE, str(tmp_path), json.dumps(variables)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdout
        process = int(node.stdout.readline())
        eventually(lambda: "trying again" in (tmp_path / "main.log").read_text())
        node.kill()
    eventually(lambda: not is_alive(process))
