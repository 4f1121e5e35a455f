"""The answer that a person waits for who names a worker."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from tests.cli.conftest import Run, write_kubeconfig
from tests.planning.test_requests import MOVING
from tests.strategies import NOW
from twgen.cli import by_name, live
from twgen.cli.main import twgen
from twgen.clients.kubeconfig import ClusterAccess
from twgen.errors import NegativeAnswer
from twgen.model.rollout import Answer, AnswerState, PendingRequest, Request, Verb
from twgen.versioning.names import ABORT_REQUEST, ROLLOUT

MINE = Request("r1", Verb.ABORT, "v2", NOW, "ana")
OTHERS = Request("r2", Verb.ABORT, "v3", NOW, "ben")


@pytest.mark.parametrize(
    ("pending", "answer", "message"),
    [
        (None, None, "the request was withdrawn"),
        (None, Answer(OTHERS._replace(id="r0"), AnswerState.DONE, "done"), "the request was withdrawn"),
        (None, Answer(OTHERS, AnswerState.DONE, "done"), "so its outcome is unknown: Abort of v3"),
        (
            PendingRequest(ABORT_REQUEST, OTHERS, "", None, "7"),
            None,
            "so its outcome is unknown: Abort of v3",
        ),
    ],
)
def test_request_after_which_another_came_is_not_called_taken_back(
    monkeypatch: pytest.MonkeyPatch, pending: PendingRequest | None, answer: Answer | None, message: str
) -> None:
    async def status(*_: Any) -> Any:
        return replace(MOVING, pending=(pending,) if pending else (), answers=(answer,) if answer else ())

    monkeypatch.setattr(by_name, "_status", status)
    monkeypatch.setattr(by_name, "_BETWEEN_LOOKS", 0)
    unused: Any = None
    waits = by_name._answer(unused, by_name.Named("shop", "pay"), MINE, {"r0"}, "")  # noqa: SLF001
    with pytest.raises(NegativeAnswer, match=message):
        asyncio.run(waits)


class Cluster:
    """Has ConfigMaps with these labels."""

    reached = ClusterAccess("")

    def __init__(self, labels: list[Any]) -> None:
        self._items = [{"metadata": {"name": "a", "namespace": "shop", "labels": own}} for own in labels]

    async def ask(self, *_: Any, **__: Any) -> tuple[int, Any]:
        return 200, {"items": self._items}

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    "odd", [None, {}, {"a": "b"}, {ROLLOUT: "pay\nplain,worker/$(date)"}, {ROLLOUT: "p\x1b"}]
)
def test_shell_gets_only_names_of_workers_whatever_a_server_answers(
    monkeypatch: pytest.MonkeyPatch, odd: Any
) -> None:
    cluster = Cluster([{ROLLOUT: "pay"}, odd, {ROLLOUT: "mail"}])
    monkeypatch.setattr(live, "KubernetesClient", lambda _, **__: cluster)
    words = ["status", "--kubeconfig", "none", "-n", "shop"]
    items = ShellComplete(twgen, {}, "twgen", "").get_completions(words, "worker/")
    assert [item.value for item in items] == ["worker/mail", "worker/pay", "worker/"]


def test_credential_plugin_does_not_ask_the_person_who_completes_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/told; exit 1'],
        "interactiveMode": "IfAvailable",
    }
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", {"exec": program})
    monkeypatch.setattr(
        "twgen.clients.credential_plugins._terminal", lambda: os.open(os.devnull, os.O_RDONLY)
    )
    words = ["status", "--kubeconfig", str(kubeconfig), "-n", "shop"]
    items = ShellComplete(twgen, {}, "twgen", "").get_completions(words, "worker/")
    assert [item.value for item in items] == ["worker/"]
    assert json.loads((tmp_path / "told").read_text())["spec"]["interactive"] is False


@pytest.mark.parametrize("command", [("status",), ("pause",), ("abort",), ("drain",)])
def test_name_that_is_no_file_is_told_how_to_name_a_worker(run: Run, command: tuple[str, ...]) -> None:
    ended = run(*command, "payments")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "twgen: payments: no such file or folder; for a worker of the cluster write worker/payments"
        " -n NAMESPACE\n"
    )
