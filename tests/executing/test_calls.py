"""The calls of a rollout, in their order: a new one is a reviewed change (`make cases` writes them anew)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.executing import answers
from tests.executing.api_server import DEPLOYMENTS, INTENT, STATUS
from tests.executing.calls import ME, RAMP, STEPS, TOLD, Recorded, golden_files, rollback
from tests.planning.times import HOUR
from tests.strategies import a_spec, live_manifest
from twgen.errors import InvalidInput, StateUnavailable
from twgen.executing.temporal import TemporalWriter
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason
from twgen.model.temporal import UpdateState, WorkerDeployment
from twgen.records.intent import write_intent
from twgen.records.rollout_status import parse_rollout_status
from twgen.simulating.servers import TemporalModel
from twgen.versioning.names import IDENTITY, INTENT_HASH
from twgen.yaml.writer import write_documents

GOLDEN = golden_files()
DESCRIBE = "DescribeWorkerDeployment"


def when(call: str, recorded: Recorded) -> list[int]:
    """The seconds at which a call was made."""
    found = (re.match(r" *(\d+) s  (\S+)", line) for line in recorded.calls)
    return [int(match[1]) for match in found if match and match[2] == call]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_calls_of_a_rollout_are_those_of_its_golden_file(path: object) -> None:
    assert GOLDEN[path] == path.read_text()


def test_every_golden_file_has_a_story() -> None:
    assert (
        {path.parent.name for path in GOLDEN}
        == set(TOLD)
        == {path.name for path in next(iter(GOLDEN)).parents[1].iterdir()}
    )


def test_pause_of_a_step_is_one_describe_in_30_seconds_and_writes_nothing_to_the_cluster() -> None:
    steps = [{"rampPercentage": 5, "pauseDuration": "30m"}]
    recorded = Recorded({"strategy": "Progressive", "steps": steps})
    assert recorded.run().exit_code == 0
    begins, ends = 10, 30 * 60 - 10
    described = [second for second in when(DESCRIBE, recorded) if begins < second < ends]
    assert len(described) > 50
    assert all(later - earlier >= 30 for earlier, later in pairwise(described))
    written = {second for verb in ("PATCH", "POST", "DELETE") for second in when(verb, recorded)}
    assert not [second for second in written if begins < second < ends]


@pytest.mark.parametrize("hours_ahead", [-4.5, 0, 4.5])
def test_clock_that_is_wrong_makes_no_rollback_of_what_is_too_late_for_one(hours_ahead: float) -> None:
    recorded = rollback(left=5 * HOUR, ahead=hours_ahead * HOUR)
    assert recorded.run().exit_code == 0
    assert when("SetWorkerDeploymentRampingVersion", recorded), "it goes back step by step"


@pytest.mark.parametrize("has_dates", [True, False])
@pytest.mark.parametrize("hours", [-1, 0, 1, 1000])
def test_clock_that_is_wrong_makes_a_pause_longer_and_never_shorter(hours: int, *, has_dates: bool) -> None:
    recorded = Recorded({"strategy": "Progressive", "steps": STEPS}, ahead=hours * HOUR, has_dates=has_dates)
    ended = recorded.run()
    assert ended.exit_code == 0
    routed = [when(f"SetWorkerDeployment{what}Version", recorded) for what in ("Ramping", "Current")]
    (first, second), (last,) = routed
    behind = HOUR.seconds if hours < 0 else 0
    assert 120 + behind <= second - first <= 125 + behind
    assert 60 + behind <= last - second <= 65 + behind
    told = "by the slowest clock; clocks differ by" in ended.output
    assert told == (hours != 0), ended.output


def test_rollout_that_is_settled_makes_no_call_after_its_one_look() -> None:
    recorded = TOLD["settled"]()
    recorded.run()
    assert when(DESCRIBE, recorded) == [0]
    assert recorded.loop.at < 1


def _fails(_: Recorded) -> None:
    raise KeyError("a token that nobody is to read")


ENDS: Mapping[str, tuple[Sequence[tuple[int, Callable[[Recorded], None]]], Sequence[str], int, str]] = {
    "bug": (
        [(70, _fails)],
        (),
        1,
        "it ended because of a bug (KeyError); before, it was Waiting: it stays at 5% ",
    ),
    "limit": ((), ("--within", "70s"), 4, "shop/payments is not settled within 1m10s: "),
}


@pytest.mark.parametrize("end", ENDS)
def test_rollout_that_ends_too_early_says_that_nobody_works_on_it(end: str) -> None:
    later, options, code, why = ENDS[end]
    recorded = Recorded(RAMP, later=list(later))
    ended = recorded.run(*options)
    assert getattr(ended.exception, "exit_code", ended.exit_code) == code
    status = parse_rollout_status(recorded.api.objects[STATUS])
    assert (status.phase, status.reason) == (Phase.BLOCKED, RoutingReason.ROLLOUT_ENDED)
    assert status.message.startswith(f"its traffic is not moving: {why}")
    assert "token" not in str(recorded.api.objects)
    worker = status.details
    assert worker
    assert (worker.phase, worker.reason, worker.because) == ("Blocked", "RolloutEnded", status.message)
    events = [item["reason"] for path, item in recorded.api.objects.items() if "/events/" in path]
    assert events[-1] == "RolloutEnded"


def test_rollout_whose_time_is_over_in_the_middle_of_a_look_says_how_long_nobody_answered() -> None:
    recorded = Recorded(RAMP, silent_from=50)
    assert str(recorded.run("--within", "80s").exception).endswith("; the servers have not answered for 18s")
    told = parse_rollout_status(recorded.api.objects[STATUS]).message
    assert told.endswith("; the servers have not answered for 18s")
    assert told.count("it stays at 5%") == 1


@pytest.fixture
def _told_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server says that every task queue has heard of a change, for longer than a rollout waits."""
    described = TemporalModel.described

    def told(model: TemporalModel) -> WorkerDeployment:
        found = described(model)
        assert found
        return replace(found, routing=replace(found.routing, update_state=UpdateState.IN_PROGRESS))

    monkeypatch.setattr(TemporalModel, "described", told)


def _refuses(_: Recorded) -> None:
    raise StateUnavailable("Temporal refuses it")


@pytest.mark.usefixtures("_told_late")
@pytest.mark.parametrize("is_at_a_terminal", [True, False])
def test_rollout_that_is_settled_but_for_the_word_of_its_server_has_not_failed_when_its_time_is_over(
    tmp_path: Path, *, is_at_a_terminal: bool
) -> None:
    recorded = Recorded({"strategy": "AllAtOnce"})
    (tmp_path / "specs.yaml").write_text(write_documents(recorded.intent.documents))
    within = ("--within", "90s")
    if is_at_a_terminal:
        ended = recorded.roll_out(str(tmp_path), "--identity", ME, *within)
    else:
        ended = recorded.run(*within)
        assert parse_rollout_status(recorded.api.objects[STATUS]).phase is Phase.SETTLED
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert 88 < recorded.loop.at < 92, "it has waited for that word"


@pytest.mark.usefixtures("_told_late")
def test_rollout_that_is_settled_and_fails_since_says_so_when_its_time_is_over() -> None:
    recorded = Recorded({"strategy": "AllAtOnce"}, later=[(second, _refuses) for second in range(30, 90)])
    told = str(recorded.run("--within", "90s").exception)
    assert told.startswith("shop/payments is not settled within 1m30s: Settled: it is current"), told
    assert told.endswith("; Temporal refuses it")


def test_rollout_that_ends_after_a_newer_intent_leaves_the_status_to_the_newer_one() -> None:
    def newer(recorded: Recorded) -> None:
        recorded.api.annotate(INTENT, **{INTENT_HASH: "another"})
        _fails(recorded)

    recorded = Recorded(RAMP, later=[(70, newer)])
    recorded.run()
    assert parse_rollout_status(recorded.api.objects[STATUS]).reason == "RampPaused"


def test_rollout_that_settles_says_for_which_intent() -> None:
    recorded = TOLD["first-version"]()
    recorded.run()
    data = recorded.api.objects[STATUS]["data"]
    assert data["settled"] == data["intent"] == recorded.intent.hash


@pytest.mark.parametrize("entry", ["identity", "target", "specs.yaml", "worker"])
def test_intent_that_cannot_be_used_says_so_where_one_looks_for_its_rollout(entry: str) -> None:
    recorded = Recorded({"strategy": "AllAtOnce"})
    recorded.api.objects[INTENT]["data"][entry] = "payments: [" if entry == "specs.yaml" else ""
    ended = recorded.run()
    assert isinstance(ended.exception, InvalidInput)
    events = [item for path, item in recorded.api.objects.items() if "/events/" in path]
    assert [(event["type"], event["reason"]) for event in events] == [("Warning", "InvalidIntent")]
    data = recorded.api.objects[STATUS]["data"]
    assert (data["phase"], data["reason"], data["settled"]) == ("Blocked", "InvalidIntent", "")
    assert data["message"] in events[0]["message"]
    assert data["message"] == str(ended.exception)
    assert parse_rollout_status(recorded.api.objects[STATUS]).worker == "shop/payments"


def _beside_another_worker() -> Recorded:
    recorded = TOLD["settled"]()
    manifest = live_manifest(a_spec("orders"), "v3", 2, annotations={IDENTITY: ME})
    recorded.api.put(f"{DEPLOYMENTS}/orders-v3", manifest)
    return recorded


def test_rollout_warns_of_no_worker_that_another_intent_names() -> None:
    recorded = _beside_another_worker()
    assert "no spec names" not in recorded.run().output
    report = parse_rollout_status(recorded.api.objects[STATUS]).report
    assert report
    assert report.warnings == ()


def test_rollout_repeats_each_warning_of_its_render_as_an_event_once() -> None:
    warnings = ("specs/a.yaml: spec.replicaz: no such field", "its image has the tag latest")
    recorded = Recorded(RAMP)
    recorded.api.put(INTENT, write_intent(replace(recorded.intent, warnings=warnings)))
    assert recorded.run().exit_code == 0
    events = [item for path, item in recorded.api.objects.items() if "/events/" in path]
    told = [(item["type"], item["message"]) for item in events if item["reason"] == "RenderWarning"]
    assert told == [("Warning", warning) for warning in warnings]


def test_two_workers_of_one_namespace_are_rolled_out_side_by_side_from_a_terminal(tmp_path: Path) -> None:
    recorded = _beside_another_worker()
    payments, *others = recorded.intent.documents
    orders = {**payments, "metadata": {**payments["metadata"], "name": "orders"}}
    (tmp_path / "specs.yaml").write_text(write_documents([payments, *others, orders]))
    ended = recorded.roll_out(str(tmp_path), "--identity", ME, "--within", "1m")
    assert "shop/payments: Settled" in ended.output
    # of the two, only the other one has pollers in this Temporal
    assert str(ended.exception).startswith("not settled within 1m: shop/orders is Waiting, because")


def test_last_word_of_a_rollout_at_a_terminal_names_what_keeps_failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StateUnavailable("Temporal refuses it")

    for change in ("set_manager", "route"):
        monkeypatch.setattr(TemporalWriter, change, refuse)
    recorded = Recorded(RAMP)
    (tmp_path / "specs.yaml").write_text(write_documents(recorded.intent.documents))
    ended = recorded.roll_out(str(tmp_path), "--identity", ME, "--within", "1m")
    assert str(ended.exception).startswith("not settled within 1m: shop/payments is Moving, because")
    assert str(ended.exception).endswith(f"; {ME} could not become the manager: Temporal refuses it")


IN_CONFIG_MAP = {"inputFrom": {"configMapKeyRef": {"name": "question", "key": "k"}}}
IN_SECRET = {"inputFrom": {"secretKeyRef": {"name": "question", "key": "k"}}}


@pytest.mark.parametrize(
    ("gate", "held", "data", "metadata"),
    [
        ({"input": {"a": 1}}, {}, b'{"a": 1}', ("json/plain", "")),
        ({"input": {"a": 1}, "encoding": "json/plain"}, {}, b'{"a": 1}', ("json/plain", "")),
        ({"input": {"a": 1}, "encoding": "json/protobuf"}, {}, b'{"a": 1}', ("json/protobuf", "")),
        (
            {**IN_CONFIG_MAP, "encoding": "json/protobuf", "messageType": "shop.v1.Order"},
            {"data": {"k": '{"a":1}'}},
            b'{"a":1}',
            ("json/protobuf", "shop.v1.Order"),
        ),
        (
            {**IN_CONFIG_MAP, "encoding": "binary/plain"},
            {"data": {"other": "text"}, "binaryData": {"k": "/wA="}},
            b"\xff\x00",
            ("binary/plain", ""),
        ),
        (
            {**IN_CONFIG_MAP, "encoding": "binary/plain"},
            {"data": {"k": "text"}, "binaryData": {"other": "/wA="}},
            b"text",
            ("binary/plain", ""),
        ),
        (
            {**IN_SECRET, "encoding": "binary/protobuf", "messageType": "Order"},
            {"data": {"k": "CAE="}},
            b"\x08\x01",
            ("binary/protobuf", "Order"),
        ),
    ],
)
def test_input_of_a_gate_goes_with_what_the_spec_says_of_it(
    gate: Mapping[str, Any],
    held: Mapping[str, Any],
    data: bytes,
    metadata: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, answer = list[Any](), answers.start_workflow_execution
    recorded = Recorded({"strategy": "AllAtOnce", "gate": {"workflowType": "Check", **gate}})
    for kind in ("configmaps", "secrets"):
        recorded.api.put(f"/api/v1/namespaces/shop/{kind}/question", {"metadata": {}, **held})
    monkeypatch.setattr(
        answers, "start_workflow_execution", lambda *seen: started.append(seen[1]) or answer(*seen)
    )
    assert recorded.run().exit_code == 0
    [payload] = started[0].input.payloads
    told = {name: text.decode() for name, text in payload.metadata.items()}
    encoding, message_type = metadata
    assert told == {"encoding": encoding, **({"messageType": message_type} if message_type else {})}
    assert payload.data == data


def test_status_of_a_worker_that_cannot_be_claimed_says_so_and_moves_once_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded, claim, seen = Recorded(RAMP), TemporalWriter.set_manager, []

    async def refuse(*args: Any) -> None:
        if recorded.loop.at > 60:
            return await claim(*args)
        seen.append(recorded.api.objects[STATUS]["data"]["reason"])
        raise StateUnavailable("Temporal does not permit it")

    monkeypatch.setattr(TemporalWriter, "set_manager", refuse)
    assert recorded.run().exit_code == 0
    assert [*dict.fromkeys(seen)] == ["FirstStep", "ClaimFailed"], "it does not come and go"
    assert len(seen) > 9
    events = [item["reason"] for path, item in recorded.api.objects.items() if "/events/" in path]
    assert events.count("ClaimFailed") == 1
    assert "LookFailed" not in events
    assert parse_rollout_status(recorded.api.objects[STATUS]).reason == "Settled"


def test_end_of_a_rollout_is_written_as_soon_as_the_cluster_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = TOLD["settled"]()
    answer = recorded.api.ask

    async def refuse(method: str, path: str, *_: object, **more: object) -> tuple[int, Mapping[str, object]]:
        is_refused = (method, path) == ("PATCH", STATUS) and recorded.loop.at < 30
        return (403, {}) if is_refused else await answer(method, path, None, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(recorded.api, "ask", refuse)
    assert recorded.run().exit_code == 0
    assert parse_rollout_status(recorded.api.objects[STATUS]).phase is Phase.SETTLED
