"""What a person who changes one worker is shown."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result

from tests.planning.situations import NOW, RAMPS, drained, live, routing, situation, temporal, version
from tests.planning.test_requests import MOVING
from tests.planning.times import HOUR
from twgen.cli import by_name, forget, intervention
from twgen.cli.main import twgen
from twgen.cli.rolling import LocalClock
from twgen.cli.settings import settings_of
from twgen.clients.kubeconfig import ClusterAccess
from twgen.errors import NegativeAnswer
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.forgetting import OldRecord

WORLD = situation(
    temporal(
        version("v3", VersionStatus.RAMPING),
        version("v2", VersionStatus.CURRENT),
        *(drained(HOUR * age, f"v1-{age}") for age in range(30, 37)),
        traffic=routing("v2", ("v3", 5)),
    ),
    [live("v3"), live("v2", 0)],
)
"""No pods serve the current version; there are seven old records."""


class Worker(LocalClock):
    """The servers of this worker, which take every mark and delete no record."""

    spec = RAMPS

    def __init__(self, *_: Any) -> None: ...

    async def read(self, **_: Any) -> World:
        return WORLD

    async def without_open_workflows(self, records: Sequence[OldRecord]) -> Sequence[OldRecord]:
        return records

    def temporal(self, _: str) -> Self:
        return self

    async def mark(self, *_: Any) -> None: ...

    async def delete_version(self, *_: Any) -> None:
        raise NegativeAnswer("it is polled")


class Servers:
    """Its connections, and a cluster for a worker by name."""

    kubernetes = None
    reached = ClusterAccess("")

    def __init__(self, *_: Any) -> None:
        self.settings = settings_of({"timeout": 10.0})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, _: Any, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(work(self))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    async def status(*_: Any) -> Any:
        return MOVING

    settings = settings_of({"quiet": True, "identity": "me"})
    for module in (forget, intervention):
        monkeypatch.setattr(module, "the_worker", lambda _: (settings, RAMPS))
        monkeypatch.setattr(module, "clock", lambda: NOW)
        monkeypatch.setattr(module, "WorkerServers", Worker)
        monkeypatch.setattr(module, "Servers", Servers)
    monkeypatch.setattr("twgen.cli.rolling.clock", lambda: NOW)
    monkeypatch.setattr(by_name, "Servers", Servers)
    monkeypatch.setattr(by_name, "_status", status)
    return lambda *arguments: CliRunner().invoke(twgen, arguments, catch_exceptions=False)


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(
    ("arguments", "would"),
    [
        (
            ("pause", "."),
            "shop/payments: would pause the rollout of v3, until `twgen resume` or a new build ID",
        ),
        (
            ("pause", "worker/pay", "-n", "shop", "--kubeconfig", "none"),
            "shop/pay: would request Pause of v2, now Waiting at 25%",
        ),
    ],
)
def test_dry_run_of_a_change_says_on_stderr_which_worker_it_would_change(
    run: Callable[..., Result], arguments: tuple[str, ...], would: str, output: str
) -> None:
    ended = run(*arguments, "--dry-run", "-o", output)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", f"{would}\n")


def test_dry_run_of_forget_says_on_stderr_which_records_it_would_delete(run: Callable[..., Result]) -> None:
    ended = run("forget", ".", "--dry-run")
    assert (ended.exit_code, ended.stdout) == (0, "")
    *_, last = ended.stderr.splitlines()
    assert last == "shop/payments: would delete the 2 records of these versions"


def test_change_of_a_worker_with_an_alarm_shows_its_state_too(run: Callable[..., Result]) -> None:
    alarm, state = run("pause", ".").stdout.splitlines()
    assert alarm.startswith("shop/payments: ALARM: new workflows go to v2, but ")
    assert ", target v3: " in state


def test_forget_says_how_many_records_were_refused_and_why_the_first_was(run: Callable[..., Result]) -> None:
    refused = "shop/payments: 2 records could not be deleted; the first: v1-36: it is polled"
    with pytest.raises(NegativeAnswer, match=f"^{refused}$"):
        run("forget", ".", "-y")
