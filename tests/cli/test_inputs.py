"""What rollouts of several workers recall from Git, all at once."""

from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, situation, temporal, version
from twgen.cli import inputs
from twgen.cli.inputs import Memory
from twgen.cluster.deployments import recorded_deployment
from twgen.model.world import World
from twgen.records import ledger

WORLD = situation(temporal(version(SPEC.build_id)), [])


def test_rollout_recalls_the_ledger_while_that_of_another_worker_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    specs: Any = SimpleNamespace(ledgers=("twgen.lock",), workers=(SPEC,))
    settings: Any = SimpleNamespace(sources=None, now=None)
    memory, recalled = Memory(settings), list[World]()
    other = Thread(target=lambda: recalled.append(memory.recall(specs, WORLD)))
    other_reads, may_end = Event(), Event()

    def read_ledgers(*_: object) -> None:
        if other.ident:
            other_reads.set()
            assert may_end.wait(30)

    class Entries(dict[Any, Any]):
        def items(self) -> Iterator[Any]:  # type: ignore[override]
            yield from super().items()
            if not other.ident:
                other.start()
                assert other_reads.wait(30)

    entry = recorded_deployment(live(SPEC.build_id))
    monkeypatch.setattr(inputs, "read_ledgers", read_ledgers)
    monkeypatch.setattr(
        ledger, "recorded_versions", lambda _: Entries({(SPEC.worker_deployment, SPEC.build_id): entry})
    )
    recalled.append(memory.recall(specs, WORLD))
    may_end.set()
    other.join(30)
    assert [world.workers[SPEC.key].ledger.keys() for world in recalled] == [{SPEC.build_id}] * 2
