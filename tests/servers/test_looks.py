"""Repeated checks of a worker on a real server: each move is seen, although only a list is read."""

import asyncio
from collections.abc import Callable

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.reading import NOW, clients
from tests.servers.specs import worker_spec
from twgen.clients.deadline import AnswerDeadline
from twgen.model.temporal import WorkerDeployment
from twgen.reading.temporal.checks import Check, Checks
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_each

pytestmark = pytest.mark.server


class Lasting(Checks):
    """Checks that never describe all workers, which would hide changes that a list does not show."""

    def next_check(self) -> Check:
        return Check(self._described)


def test_list_tells_of_every_move(temporal: TemporalServer) -> None:
    worker = DeployedWorker(temporal, "default/looked-at", "looked-at")
    spec, checks = worker_spec("looked-at", "v2", temporal.connection), Lasting()

    def looked() -> WorkerDeployment | None:
        async def check() -> WorkerDeployment | None:
            reads = TemporalReader(clients(), AnswerDeadline(20), checks.next_check())
            world, unread = await read_each([spec], Reading(reads, None, NOW, for_routing=False, read_at=NOW))
            assert not unread
            return world.workers[spec.key].temporal

        return asyncio.run(check())

    def shares() -> dict[str, float]:
        routing = worker.described().routing_config
        ramps = {routing.ramping_deployment_version.build_id: routing.ramping_version_percentage}
        return {routing.current_deployment_version.build_id: 100.0} | ramps

    def seen() -> bool:
        found = looked()
        assert found
        current, ramping = found.routing.current, found.routing.ramping
        ramps = {ramping.build_id: ramping.percentage} if ramping else {"": 0.0}
        return {current.build_id if current else "": 100.0} | ramps == shares()

    moves: list[Callable[[], None]] = [
        lambda: worker.set_current("v1"),
        lambda: worker.set_ramp("v2", 25),
        lambda: worker.set_ramp("v2", 50),
        lambda: worker.set_current("v2"),
    ]
    with worker.version("v1"), worker.version("v2"):
        eventually(looked)
        for move in moves:
            eventually(lambda move=move: succeeds(move))
            eventually(seen)
