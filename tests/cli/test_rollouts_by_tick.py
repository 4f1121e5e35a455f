"""The rollouts of one `tick`: what they share, and what one of them costs the others."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.planning.situations import SPEC, situation
from twgen.cli import rollout, rollouts_by_tick
from twgen.cli.live import CommonPrometheus, Connections
from twgen.cli.rolling import RolloutServers
from twgen.cli.rollout import ClusterServers, JobPlace
from twgen.cli.rollouts_by_tick import RolloutsByTick, metadata_of
from twgen.clients.prometheus import PrometheusServers
from twgen.executing.ports import IntentPlace, IntentServers, Reported
from twgen.model.operator import PrometheusServer
from twgen.model.plan import WorkerPlan
from twgen.model.rollout import RolloutMetadata
from twgen.model.world import World
from twgen.reading.rollouts import parse_intent
from twgen.records.intent import Intent, intent_of, write_intent

unused: Any = None
SHARED, OTHER = (PrometheusServer(name, f"https://{name}.example.com") for name in ("shared", "other"))


def intent(number: int, *servers: PrometheusServer) -> Intent:
    spec = replace(SPEC, name=f"w{number}")
    by_tick = replace(intent_of(spec, "me"), worker=spec.name, prometheus=servers, is_for_tick=True)
    manifest = write_intent(by_tick)
    return parse_intent({**manifest, "metadata": {"uid": f"uid-{number}", **manifest["metadata"]}})


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


class Process:
    """A tick whose rollouts read the state of their workers, and then do as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: Callable[[IntentServers], Any]) -> None:
        self.read: list[str] = []
        self.usable: dict[str, PrometheusServers] = {}
        self.bugs: list[str] = []
        self.after = after
        self.slow: Callable[[], Awaitable[World]] | None = None
        settings: Any = SimpleNamespace(shard=0, shards=1, timeout=5, namespace="")
        opened = Connections(settings, unused, unused, unused, CommonPrometheus((SHARED, OTHER), "ask").of)
        monkeypatch.setattr(Connections, "cluster_for", lambda *_: None)
        monkeypatch.setattr(JobPlace, "read_intent", lambda place, _: self._intent(place))
        monkeypatch.setattr(RolloutServers, "read", lambda servers, **_: self._read(servers))
        monkeypatch.setattr(ClusterServers, "reported", self._reported)
        monkeypatch.setattr(rollouts_by_tick, "carry_out", self._carry_out)
        for module in (rollout, rollouts_by_tick):
            monkeypatch.setattr(module, "specs_of", lambda _: SimpleNamespace(workers=(SPEC,)))
        self.rollouts = RolloutsByTick(
            unused, opened, print, lambda subject, error: self.bugs.append(f"{subject}: {error!r}")
        )
        self.intents: dict[str, Intent] = {}

    def see(self, *intents: Intent) -> None:
        self.intents = {"/".join(metadata_of(one).place): one for one in intents}
        self.rollouts.see(map(metadata_of, intents))

    async def _intent(self, place: JobPlace) -> Intent:
        return self.intents[place.name]

    async def _read(self, servers: ClusterServers) -> World:
        self.read.append(servers.intent.worker)
        self.usable[servers.intent.worker] = servers.opened.prometheus_of(SPEC)
        return await self.slow() if self.slow else situation(None)

    async def _reported(self) -> Reported:
        return Reported(("a request",))  # type: ignore[arg-type]

    async def _carry_out(self, place: IntentPlace, intent_hash: str, _: None) -> WorkerPlan | None:
        found = await place.read_intent(intent_hash)
        assert found
        servers = place.servers(found)
        await servers.read()
        await self.after(servers)
        return None


def test_intent_that_was_made_again_for_a_job_is_left_to_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have the same hash: whether a hook or a Job carries it out is no part of that."""
    found: list[Intent | None] = []

    async def story() -> None:
        process = Process(monkeypatch, lambda _: asyncio.sleep(0))
        hooked = replace(intent(0), is_for_tick=False, has_hook=True)
        hooked = replace(hooked, taken_over=hooked.hash)

        async def carry_out(place: IntentPlace, *_: object) -> None:
            found.append(await place.read_intent(""))
            process.intents["shop/w0-rollout"] = replace(hooked, uid="2", has_hook=False)
            found.append(await place.read_intent(""))

        monkeypatch.setattr(rollouts_by_tick, "carry_out", carry_out)
        process.see(hooked)
        await settle()
        assert process.bugs == []

    asyncio.run(story())
    assert [each and each.uid for each in found] == ["uid-0", None]


def test_no_rollout_begins_before_it_is_known_which_ones_an_earlier_process_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def after(_: ClusterServers) -> None: ...

    async def listed(*_: object) -> list[RolloutMetadata]:
        return [metadata_of(intent(0))]

    async def story() -> None:
        process = Process(monkeypatch, after)
        process.intents = {"shop/w0-rollout": intent(0)}
        monkeypatch.setattr(rollouts_by_tick, "list_rollouts", listed)
        following = asyncio.create_task(process.rollouts.follow())
        await settle()
        assert process.read == []
        process.rollouts.remember((), {})
        await settle()
        assert process.read == ["w0"]
        following.cancel()

    asyncio.run(story())


def test_status_is_read_once_after_somebody_has_changed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    async def after(servers: ClusterServers) -> None:
        while True:
            reads.append(len((await servers.reported()).requests))
            await asyncio.sleep(0)

    async def story() -> None:
        process = Process(monkeypatch, after)
        process.intents = {"shop/w0-rollout": intent(0)}
        for version, is_read in (("7", False), ("7", False), ("9", True), ("", True)):
            process.rollouts.see([metadata_of(intent(0))._replace(status_version=version)])
            before = sum(reads)
            await settle()
            assert sum(reads) - before == is_read
        process.rollouts.stop()

    asyncio.run(story())


def test_eight_rollouts_that_wait_for_a_status_to_be_written_delay_no_request_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered: list[Any] = []

    async def after(servers: ClusterServers) -> None:
        if servers.intent.worker == "w8":
            answered.extend((await servers.reported()).requests)
        else:
            await asyncio.Event().wait()

    async def story() -> None:
        process = Process(monkeypatch, after)
        asked = metadata_of(intent(8))._replace(request="abort")
        process.see(*map(intent, range(9)))
        process.rollouts.see([*map(metadata_of, map(intent, range(8))), asked])
        await settle()
        assert process.read == [f"w{number}" for number in range(9)]
        process.rollouts.stop()

    asyncio.run(story())
    assert answered == ["a request"]


def test_at_most_eight_rollouts_read_one_server_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def after(*_: object) -> None: ...

    async def story() -> None:
        process, reading = Process(monkeypatch, after), 0
        may_end = asyncio.Event()

        async def slow() -> World:
            nonlocal reading
            reading += 1
            await may_end.wait()
            return situation(None)

        process.slow = slow
        process.see(*map(intent, range(20)))
        await settle()
        assert reading == 8
        may_end.set()
        await settle()
        assert reading == 20

    asyncio.run(story())


def test_rollout_has_the_prometheus_servers_that_its_intent_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async def after(*_: object) -> None: ...

    async def story() -> Process:
        process = Process(monkeypatch, after)
        process.see(intent(0, SHARED), intent(1))
        await settle()
        return process

    process = asyncio.run(story())
    assert process.bugs == []
    assert process.usable["w0"].usable == (SHARED,)
    assert process.usable["w1"].usable == ()


def test_bug_in_a_look_for_new_intents_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def after(*_: object) -> None: ...

    async def listed(*_: object) -> list[Any]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise KeyError("secret-token")
        return [metadata_of(intent(0))]

    async def sleep(_: object) -> None:
        await settle()
        if looks == 2:
            raise asyncio.CancelledError

    async def story() -> Process:
        process = Process(monkeypatch, after)
        process.intents = {"shop/w0-rollout": intent(0)}
        monkeypatch.setattr(rollouts_by_tick, "list_rollouts", listed)
        monkeypatch.setattr(rollouts_by_tick, "sleep", sleep)
        process.rollouts.remember((), {})
        with pytest.raises(asyncio.CancelledError):
            await process.rollouts.follow()
        return process

    process = asyncio.run(story())
    assert process.bugs == ["listing intents and requests: KeyError('secret-token')"]
    assert process.read == ["w0"]
