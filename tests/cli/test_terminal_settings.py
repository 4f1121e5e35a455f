"""At a terminal, options say all there is to say."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    "text", ["temporal:7233", "temporal:7233=", "a=b", "temporal:7233=http://127.0.0.1:7233", "x:1=y:port"]
)
def test_port_forward_that_is_no_pair_of_addresses_is_refused(run: Run, story: Path, text: str) -> None:  # noqa: ARG001
    ended = run("plan", "specs", "--snapshot", "snapshot.json", "--via", text)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"twgen: --via {text!r} is not ADDRESS=ADDRESS such as temporal.prod.svc:7233=127.0.0.1:7233\n"
    )


def test_port_forward_of_an_address_that_nobody_has_is_warned_of(run: Run, story: Path) -> None:  # noqa: ARG001
    options = ("--no-cluster", "--timeout", "2s", "--via", "nobody:7233=127.0.0.1:1")
    ended = run("plan", "specs", *options)
    assert "warning: no worker's Connection has the address nobody:7233: --via has no effect" in ended.stderr


@pytest.mark.parametrize("command", ["render", "plan", "status", "validate", "lock", "simulate"])
def test_operators_configuration_is_read_outside_of_argocd_too(run: Run, story: Path, command: str) -> None:
    (story / "operator.json").write_text(
        json.dumps({"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", "instanse": "a"})
    )
    ended = run(command, "specs", "--operator-config", "operator.json")
    assert ended.returncode == 2
    assert "operator.json:1: instanse: no such field" in ended.stderr


@pytest.mark.usefixtures("story")
@pytest.mark.parametrize("option", ["identity", "namespace"])
def test_option_that_is_no_text_is_refused(run: Run, option: str) -> None:
    ended = run("render", "specs", "--snapshot", "snapshot.json", f"--{option}", os.fsdecode(b"a\xff\x1b[2J"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"twgen: --{option} a\\udcff\\x1b[2J holds a character that cannot be printed\n"
