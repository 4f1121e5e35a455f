"""How calls at the same time share a connection, also when it fails."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError, RPCStatusCode, ServiceClient

from tests.clients.grpc import refusing
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.profiles import Profile, Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import OutOfTime, StateUnavailable
from twgen.model import credentials
from twgen.model.credentials import without_credentials
from twgen.model.spec import Connection, NamedWorker

HERE = Connection("here", "temporal.invalid:7233")
WORKER = NamedWorker("shop/payments", "default", HERE)
CALL: Call[str] = Call(WORKER, "GetSystemInfo", {}, str)


@pytest.mark.parametrize(
    ("via", "place", "advice"),
    [
        ({}, "", "check the address of connection 'here'; from outside its network, forward a port and pass"),
        (
            {HERE.host_port: "127.0.0.1:1"},
            " via 127.0.0.1:1",
            "is the port forwarding for --via still running?",
        ),
    ],
)
def test_server_that_nobody_answers_for_is_to_be_reached_through_a_forwarded_port(
    via: dict[str, str], place: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceClient, "connect", Network(refused=1).connect)
    clients = TemporalClients(lambda: Profiles(allow_unlisted=True), via)
    with pytest.raises(StateUnavailable) as refused:
        asyncio.run(clients.ask(CALL, Deadline(60)))
    who = f"Temporal at temporal.invalid:7233{place}, namespace 'default' (for shop/payments)"
    assert str(refused.value).startswith(f"{who} cannot be reached: {advice}")
    assert str(refused.value).endswith("(Connection refused)")


class Network:
    """Where the first `refused` connections fail, and all later ones work."""

    def __init__(self, refused: int) -> None:
        self.refused = refused
        self.opened = 0

    async def connect(self, _: Any) -> Any:
        self.opened += 1
        is_refused = self.opened <= self.refused
        await asyncio.sleep(0)
        if is_refused:
            raise RuntimeError("Connection refused")
        return SimpleNamespace(workflow_service=SimpleNamespace(get_system_info=self.answer))

    async def answer(self, _: Any, *, retry: bool) -> str:
        return f"answered, retry {retry}"


async def ask_until_it_answers(clients: TemporalClients) -> str:
    while True:
        try:
            return await clients.ask(CALL, Deadline(60))
        except StateUnavailable:
            continue


def hanging(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many connections never open, and all later ones work."""
    network, left = Network(refused=0), iter([True] * times)

    async def connect(options: Any) -> Any:
        if next(left, False):
            await asyncio.Event().wait()
        return await network.connect(options)

    monkeypatch.setattr(ServiceClient, "connect", connect)
    monkeypatch.setattr("twgen.clients.temporal._CONNECTED_WITHIN", (0.05, 0.1))


def test_connection_that_hangs_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging(1, monkeypatch)
    clients = TemporalClients(lambda: Profiles(allow_unlisted=True), {})
    assert asyncio.run(clients.ask(CALL, Deadline(60))) == "answered, retry False"


def test_connection_that_hangs_holds_up_no_later_call(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging(2, monkeypatch)

    async def story() -> str:
        clients = TemporalClients(lambda: Profiles(allow_unlisted=True), {})
        with pytest.raises(OutOfTime):
            await clients.ask(CALL, Deadline(0.01))
        with pytest.raises(StateUnavailable, match="no answer within"):
            await clients.ask(CALL, Deadline(60))
        return await clients.ask(CALL, Deadline(60))

    assert asyncio.run(story()) == "answered, retry False"


def test_waiter_on_a_connection_that_failed_does_not_forget_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Network(refused=2)
    monkeypatch.setattr(ServiceClient, "connect", network.connect)

    async def story() -> list[str]:
        clients = TemporalClients(lambda: Profiles(allow_unlisted=True), {})
        # the first to hear of a failure asks anew before the others hear of it
        together = await asyncio.gather(*(ask_until_it_answers(clients) for _ in range(3)))
        return [*together, await clients.ask(CALL, Deadline(60))]

    assert asyncio.run(story()) == ["answered, retry False"] * 4
    assert network.opened == 3


def test_namespace_out_of_its_rate_limit_is_not_asked_again_for_long_by_a_look_that_has_no_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    async def refuse(*_: Any, **__: Any) -> None:
        calls.append(1)
        raise RPCError("namespace rate limit exceeded", RPCStatusCode.RESOURCE_EXHAUSTED, b"")

    async def connect(_: Any) -> Any:
        return SimpleNamespace(workflow_service=SimpleNamespace(get_system_info=refuse))

    monkeypatch.setattr(ServiceClient, "connect", connect)
    clients = TemporalClients(lambda: Profiles(allow_unlisted=True), {})
    with pytest.raises(StateUnavailable, match="limits the rate of calls"):
        asyncio.run(clients.ask(CALL, AnswerDeadline(4)))
    assert len(calls) == 3


@pytest.mark.parametrize("times", [2, 1000])
def test_change_that_the_server_lost_is_tried_again(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    said = "Unable to perform workflow execution update due to unexpected workflow task failure."
    calls = []

    async def answer(*_: Any, **__: Any) -> str:
        calls.append(1)
        if len(calls) <= times:
            raise RPCError(said, RPCStatusCode.FAILED_PRECONDITION, b"")
        return "changed"

    async def connect(_: Any) -> Any:
        return SimpleNamespace(workflow_service=SimpleNamespace(get_system_info=answer))

    monkeypatch.setattr(ServiceClient, "connect", connect)
    clients = TemporalClients(lambda: Profiles(allow_unlisted=True), {})
    call = replace(CALL, is_retried=False)
    if times == 2:
        assert asyncio.run(clients.ask(call, Deadline(20))) == "changed"
    else:
        with pytest.raises(StateUnavailable, match="the server could not make this change: try again"):
            asyncio.run(clients.ask(call, Deadline(1)))


@pytest.mark.parametrize("end", [RuntimeError("Connection refused"), asyncio.CancelledError()])
def test_connection_that_failed_at_the_same_moment_is_no_failure_of_another_one(
    monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    async def story() -> None:
        is_over = asyncio.Event()

        async def refuse(*_: Any, **__: Any) -> None:
            await is_over.wait()
            raise RPCError("denied", RPCStatusCode.PERMISSION_DENIED, b"")

        async def connect(config: Any) -> Any:
            if config.target_host == HERE.host_port:
                return SimpleNamespace(workflow_service=SimpleNamespace(get_system_info=refuse))
            await is_over.wait()
            raise end

        monkeypatch.setattr(ServiceClient, "connect", connect)
        clients = TemporalClients(lambda: Profiles(allow_unlisted=True), {})
        there = replace(CALL, spec=replace(WORKER, connection=Connection("there", "another.invalid:7233")))
        asked = [asyncio.create_task(clients.ask(call, Deadline(60))) for call in (there, CALL)]
        await asyncio.sleep(0.05)
        is_over.set()  # both come in by one turn of the event loop
        ends = await asyncio.gather(*asked, return_exceptions=True)
        assert "does not permit this call" in str(ends[1])

    asyncio.run(story())


def test_connection_whose_certificate_was_not_there_yet_is_tried_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    network = Network(refused=0)
    monkeypatch.setattr(ServiceClient, "connect", network.connect)
    certificate = tmp_path / "ca.pem"

    class Credentials:
        api_key = None
        grpc_meta: Mapping[str, str] = {}

        def to_client_connect_config(self) -> dict[str, Any]:
            return {"tls": bool(certificate.read_bytes())}

    profile: Any = Profile("prod", HERE.host_port, "default", Credentials())  # type: ignore[arg-type]

    async def story() -> str:
        clients = TemporalClients(lambda: Profiles((profile,)), {})
        with pytest.raises(StateUnavailable, match=r"Temporal profile 'prod': .*ca\.pem cannot be read"):
            await clients.ask(CALL, Deadline(60))
        certificate.write_bytes(b"pem")
        return await clients.ask(CALL, Deadline(60))

    assert asyncio.run(story()) == "answered, retry False"


KEY = "a-long-key-0123456789abcdef"


def profile_of(address: str, **more: Any) -> Profile:
    credentials = ClientConfigProfile.from_dict({"api_key": KEY, "tls": {"disabled": True}, **more})
    return Profile("payments", address, "default", credentials)


@pytest.mark.parametrize("code", [2, 3, 5, 7, 8, 9, 13, 14, 16])
@pytest.mark.parametrize("connects", [True, False])
def test_refusal_that_repeats_the_key_is_told_without(
    code: int, *, connects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_sent", {})
    header = 'tm "told" \\q'  # shorter than what is looked for everywhere
    sent = f"Authorization: Bearer {KEY}, X-Team: {header}"
    said = f"bad token: {sent} ({b64encode(sent.encode()).decode()})"
    with refusing(said, code, connects=connects) as address:
        profile = profile_of(address, grpc_meta={"x-team": header, "temporal-namespace": "default"})
        clients = TemporalClients(lambda: Profiles((profile,)), {})
        worker = replace(WORKER, connection=Connection("here", address))
        call = replace(CALL, spec=worker, name="DescribeNamespace", is_retried=False)
        with pytest.raises((StateUnavailable, OutOfTime)) as refused:
            asyncio.run(clients.ask(call, Deadline(20)))
    told = str(refused.value)
    assert "Bearer ..., X-Team: ..." in told
    assert "namespace 'default'" in told
    shown = (KEY, header, "told", b64encode(KEY.encode()).decode()[4:20])
    assert not any(part in told for part in shown)
    assert without_credentials(KEY) == "..."


def test_key_is_hidden_everywhere_and_what_names_the_place_is_not() -> None:
    told = profile_of(
        "default.a1b2c:7233", grpc_meta={"temporal-namespace": "default", "authorization": "Bearer b"}
    )
    assert told.secrets == (KEY, "b")
