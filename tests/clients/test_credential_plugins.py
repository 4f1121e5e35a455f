"""Credential plugins of a kubeconfig: what they get, what they may print, and how long they may take."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from testing.processes import eventually
from tests.clients.tls_server import Served, ask, authority, kubeconfig, serving
from twgen.clients import credential_plugins
from twgen.clients.programs import program_on_path
from twgen.errors import OutOfTime, StateUnavailable

V1 = "client.authentication.k8s.io/v1"
ROOT = Path(__file__).parents[2]
RUN_NUMBER = "t$(wc -l < runs)"


def program(folder: Path, script: str, **more: object) -> dict[str, Any]:
    """A user who logs in with a script next to the kubeconfig."""
    file = folder / "login"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o700)
    return {"exec": {"apiVersion": V1, "command": "./login", "interactiveMode": "Never", **more}}


def credential(token: str = "", **status: str) -> str:
    status |= {"token": token} if token else {}
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def config(folder: Path, served: Served, user: Mapping[str, Any]) -> Path:
    return kubeconfig(folder / "config", served.cluster, user)


def test_program_is_run_again_when_its_token_ends(tmp_path: Path) -> None:
    ended = credential(RUN_NUMBER, expirationTimestamp="2020-01-01T00:00:00Z")
    with serving() as served:
        user = program(tmp_path, f"cd {tmp_path}; echo >> runs; cat <<END\n{ended}\nEND")
        ask(config(tmp_path, served, user), 2)
    assert [sent.split() for sent in served.authorizations] == [["Bearer", "t1"], ["Bearer", "t2"]]


@pytest.mark.parametrize(
    "end", ["2199-01-01T00:00:00.123456789Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
)
def test_program_is_run_once_for_a_token_that_lasts_or_never_ends_whatever_files_are_read_again(
    tmp_path: Path, end: str
) -> None:
    script = f"echo >> {tmp_path}/runs; echo '{credential('t', expirationTimestamp=end)}'"
    with serving() as served:
        assert ask(config(tmp_path, served, program(tmp_path, script)), 3) == [200] * 3
    assert served.authorizations == ["Bearer t"] * 3
    assert (tmp_path / "runs").read_text() == "\n"


def test_program_is_run_again_after_a_refusal_and_not_again_at_once(tmp_path: Path) -> None:
    token = credential(RUN_NUMBER)
    with serving() as served:
        served.statuses = [401, 401, 401]
        user = program(tmp_path, f"cd {tmp_path}; echo >> runs; cat <<END\n{token}\nEND")
        assert ask(config(tmp_path, served, user), 3) == [401, 401, 200]
    assert [sent.split()[1] for sent in served.authorizations] == ["t1", "t2", "t2", "t2"]


def test_requests_that_are_refused_at_once_share_the_next_login(tmp_path: Path) -> None:
    token = credential(RUN_NUMBER)
    with serving() as served:
        served.refused = "Bearer t1"
        user = program(tmp_path, f"cd {tmp_path}; echo >> runs; cat <<END\n{token}\nEND")
        assert ask(config(tmp_path, served, user), at_once=10) == [200] * 10
    assert (tmp_path / "runs").read_text() == "\n\n"


@pytest.mark.parametrize("more", [{}, {"token": "both"}])
def test_certificate_of_a_program_is_shown_and_renewed_when_it_ends(
    tmp_path: Path, more: dict[str, str]
) -> None:
    own = authority().client()
    texts = {"clientCertificateData": own.certificate.read_text(), "clientKeyData": own.key.read_text()}
    (tmp_path / "credential").write_text(
        credential(**texts, **more, expirationTimestamp="2020-01-01T00:00:00+02:00")
    )
    with serving() as served:
        user = program(tmp_path, f"echo >> {tmp_path}/runs; cat {tmp_path}/credential")
        assert ask(config(tmp_path, served, user), 2) == [200, 200]
    sent = f"Bearer {more['token']}" if more else ""
    assert [(bool(one.certificate), one.authorization) for one in served.asked] == [(True, sent)] * 2
    assert (tmp_path / "runs").read_text() == "\n\n"


@pytest.mark.parametrize("other", [{"token": "t"}, {"username": "ana", "password": "p"}])
def test_program_is_not_run_if_the_user_has_something_else_or_the_server_no_tls(
    tmp_path: Path, other: dict[str, str]
) -> None:
    user = program(tmp_path, f"touch {tmp_path}/ran; exit 1")
    with serving() as served, serving(plain=True) as plain:
        assert ask(config(tmp_path, served, user | other)) == [200]
        assert ask(kubeconfig(tmp_path / "config", {"server": plain.address}, user)) == [200]
    assert not (tmp_path / "ran").exists()


def test_program_gets_its_arguments_its_variables_and_the_cluster_and_never_our_input(tmp_path: Path) -> None:
    script = f"""echo "$1 $REGION $(cat)" > {tmp_path}/seen; echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info
echo '{credential("t")}'"""
    more = {"args": ["get-token"], "env": [{"name": "REGION", "value": "eu"}], "provideClusterInfo": True}
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod"}}
    with serving() as served:
        user = program(tmp_path, script, **more)
        cluster = {**served.cluster, "extensions": [extension]}
        assert ask(kubeconfig(tmp_path / "config", cluster, user)) == [200]
        asked = json.loads((tmp_path / "info").read_text())["spec"]
        assert asked["cluster"] == {**served.cluster, "config": {"audience": "prod"}}
    assert ((tmp_path / "seen").read_text(), asked["interactive"]) == ("get-token eu \n", False)


FAILED = "its credential plugin login printed no credential: "


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo the-secret; echo one >&2; echo no >&2; exit 7",
            r"its credential plugin login exited with 7 \(no\)",
        ),
        ("echo --key=$KEY >&2; exit 1", r".*exited with 1 \(--key=\.\.\.\)"),
        ("echo --client-secret $2 $3 >&2; exit 1", r".*exited with 1 \(--client-secret \.\.\. --flag\)"),
        ("exit 1", r".*exited with 1 \(it printed no error\)"),
        ("echo the-secret", f"{FAILED}its output is not a JSON object"),
        ("printf '\\377'", f"{FAILED}its output is not a JSON object"),
        ("echo '[]'", f"{FAILED}its output is not a JSON object"),
        ("echo '{}'", f"{FAILED}apiVersion is invalid"),
        (f"echo '{credential()}'", f"{FAILED}its status has no token and no certificate"),
        (f"echo '{credential(clientCertificateData='the-secret')}'", f"{FAILED}it needs both"),
        (
            'echo \'{"apiVersion": "client.authentication.k8s.io/v9", "status": {}}\'',
            f"{FAILED}its apiVersion",
        ),
        (
            f"echo '{credential('the-secret', expirationTimestamp='soon')}'",
            ".*expirationTimestamp is invalid",
        ),
        ("head -c 2000000 /dev/zero", ".*printed more than 1048576 bytes"),
    ],
)
def test_program_that_gives_no_credential_is_an_error_and_nobody_is_asked(
    tmp_path: Path, script: str, told: str
) -> None:
    with serving() as served:
        arguments, variables = (
            ["--client-secret", "hunter2", "--flag"],
            [{"name": "KEY", "value": "the-secret"}],
        )
        user = program(tmp_path, script, args=arguments, env=variables)
        with pytest.raises(StateUnavailable, match=f"cannot be used: {told}") as failed:
            ask(config(tmp_path, served, user))
        assert served.asked == []
    assert "the-secret" not in str(failed.value)
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"installHint": "install it from\nthe shop"}, "install it from the shop"),
        ({}, "it is not on PATH"),
        ({"command": "sh", "args": ["a\0b"]}, "its arguments or variables cannot be passed"),
        ({"interactiveMode": "Always"}, "needs a terminal .*, and there is none"),
    ],
)
def test_program_that_cannot_be_started_is_an_error(tmp_path: Path, more: dict[str, str], why: str) -> None:
    user = {"exec": {"apiVersion": V1, "command": "absent-login", "interactiveMode": "Never", **more}}
    with serving() as served, pytest.raises(StateUnavailable, match=why):
        ask(config(tmp_path, served, user))


@pytest.mark.parametrize("folder", ["", ".", "bin"])
def test_program_of_the_working_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "their-login").symlink_to("/bin/true")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    assert program_on_path("their-login") == ""
    assert program_on_path("true") == "/bin/true"


def test_program_is_not_looked_for_where_its_own_variables_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    own = {"env": [{"name": "PATH", "value": "/bin"}], "interactiveMode": "Never"}
    with serving() as served, pytest.raises(StateUnavailable, match="it is not on PATH"):
        ask(config(tmp_path, served, {"exec": {"apiVersion": V1, "command": "true", **own}}))


def test_program_that_may_not_be_stopped_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, _: int) -> None:
        raise PermissionError(pid)

    script = f"echo $$ > {tmp_path}/pid; exec sleep 1000"
    with serving() as served, monkeypatch.context() as patched:
        patched.setattr(os, "killpg", refuse)
        patched.setattr(credential_plugins, "_terminal", lambda: None)
        with pytest.raises(OutOfTime, match="the credential plugin login did not finish within 2 s"):
            ask(config(tmp_path, served, program(tmp_path, script)), seconds=2)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


RUN = """
import asyncio, sys
from twgen.clients.deadline import Deadline
from twgen.clients.kubeconfig import ClusterAccess
from twgen.clients.kubernetes import KubernetesClient
from twgen.errors import TwgenError

async def main():
    client = KubernetesClient(ClusterAccess(sys.argv[1]))
    for _ in range(2):
        try:
            deadline = Deadline(float(sys.argv[2]))
            status, _ = await client.ask("GET", "/api/v1/namespaces/shop/configmaps/x", deadline)
            print(status, flush=True)
        except TwgenError as error:
            print(type(error).__name__, error, flush=True)
asyncio.run(main())
"""


def run(path: Path, seconds: float, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(path), str(seconds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def test_program_that_hangs_with_nobody_at_a_terminal_is_stopped_with_its_children_and_asked_anew(
    tmp_path: Path,
) -> None:
    script = f"""echo $$ >> {tmp_path}/pids
if [ -e {tmp_path}/second ]; then echo '{credential("t")}'; exit; fi
touch {tmp_path}/second; sleep 1000 & echo $! >> {tmp_path}/pids; wait"""
    with serving() as served:
        path = config(tmp_path, served, program(tmp_path, script))
        first, second = run(path, 3, start_new_session=True).communicate(timeout=60)[0].splitlines()
    assert first.startswith("OutOfTime the credential plugin login did not finish within 3 s: run")
    assert second == "200"
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    eventually(lambda: not any(map(psutil.pid_exists, pids)), 10)


def test_program_ends_with_the_run_that_waits_for_it(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > {tmp_path}/pid; echo $$ > {tmp_path}/started; wait"
    with serving() as served:
        path = config(tmp_path, served, program(tmp_path, script))
        process = run(path, 300, start_new_session=True, stderr=subprocess.DEVNULL)
        eventually((tmp_path / "started").exists, 60)
        process.send_signal(2)
        process.communicate(timeout=60)
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not psutil.pid_exists(pid), 10)


def test_process_that_a_program_leaves_behind_does_not_hold_up_the_login(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; echo '{credential('t')}'"
    began = time.monotonic()
    with serving() as served:
        assert ask(config(tmp_path, served, program(tmp_path, script))) == [200]
    assert time.monotonic() - began < 30
    psutil.Process(int((tmp_path / "pid").read_text())).kill()


@pytest.mark.parametrize("mode", ["Never", "IfAvailable", "Always"])
def test_person_at_the_terminal_may_take_longer_than_the_deadline(tmp_path: Path, mode: str) -> None:
    reads = (
        "read answer" if mode != "Never" else f"until [ -e {tmp_path}/answer ]; do sleep 0.1; done; answer=t"
    )
    script = f"echo 'Your code:' >&2; {reads}; echo '{credential('ANSWER')}' | sed s/ANSWER/$answer/"
    controller, terminal = pty.openpty()
    with serving() as served:
        path = config(tmp_path, served, program(tmp_path, script, interactiveMode=mode))
        with (tmp_path / "specs").open("w+") as specs:
            specs.write("never read")
            specs.seek(0)
            # a session of its own, whose terminal this is
            attach = [
                "import fcntl, os, sys, termios",
                "os.setsid()",
                f"fcntl.ioctl({terminal}, termios.TIOCSCTTY, 0)",
            ]
            code = "; ".join(
                [*attach, f"os.execv(sys.executable, [sys.executable, '-c', {RUN!r}, *sys.argv[1:]])"]
            )
            process = subprocess.Popen(
                [sys.executable, "-c", code, str(path), "4"],
                cwd=ROOT,
                stdin=specs,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[terminal],
            )
            assert process.stderr
            assert process.stderr.readline() == "Your code:\n"
            time.sleep(4.5)  # longer than the deadline
            os.write(controller, b"t\n")
            (tmp_path / "answer").touch()
            stdout, _ = process.communicate(timeout=60)
            assert specs.tell() == 0
    os.close(controller)
    os.close(terminal)
    assert stdout.splitlines() == ["200", "200"]
    assert served.authorizations == ["Bearer t"] * 2
