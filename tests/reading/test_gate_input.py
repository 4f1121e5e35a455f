"""The input of a gate, before it is known whether there is a cluster to read it from."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC
from twgen.clients.deadline import Deadline
from twgen.errors import StateUnavailable
from twgen.model.spec import Gate, GateInput, Rollout, Strategy
from twgen.reading.kubernetes import read_gate_input


def read_without_cluster(gate: Gate | None) -> bytes | None:
    spec = replace(SPEC, rollout=Rollout(Strategy.ALL_AT_ONCE, gate=gate))
    return asyncio.run(read_gate_input(spec, None, Deadline(1)))


@pytest.mark.parametrize(
    ("written", "sent"),
    [({"deep": [1, None]}, b'{"deep": [1, null]}'), ("", b'""'), (0, b"0"), (False, b"false")],
)
def test_input_in_the_spec_is_sent_as_json(written: Any, sent: bytes) -> None:
    assert read_without_cluster(Gate("verify", input=written)) == sent


def test_gate_may_have_no_input() -> None:
    assert read_without_cluster(None) is None
    assert read_without_cluster(Gate("verify")) is None


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_input_in_a_cluster_that_is_not_read_stops_before_the_gate(kind: Any) -> None:
    said = (
        f"^shop/payments: the input of its gate is in {kind} gate-input, but twgen does not read a cluster$"
    )
    with pytest.raises(StateUnavailable, match=said):
        read_without_cluster(Gate("verify", input_from=GateInput(kind, "gate-input", "input")))
