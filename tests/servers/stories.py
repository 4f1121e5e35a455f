"""Worlds that real workers and a real server are brought into, and what the program says of each."""

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import NEWEST, TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    Document,
    planned,
    planned_once_known,
    recorded,
    worker_document,
    write_specs,
)

BY_HAND = ("1.4.0+build7", "2026-11-21T05:24:15Z")
"""Build IDs as people make them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What `twgen plan` and `twgen snapshot` said of one worker in one world."""

    plan: Document
    world: Document

    @property
    def temporal(self) -> Document:
        found: Document = self.world["temporal"]
        return found

    def version(self, build_id: str) -> Document:
        assert self.temporal, "Temporal does not know the worker"
        return _of_build(self.temporal["versions"], build_id)

    def planned_version(self, build_id: str) -> Document:
        return _of_build(self.plan["versions"], build_id)


def _of_build(versions: Iterable[Document], build_id: str) -> Document:
    found = [version for version in versions if version["buildID"] == build_id]
    assert found, f"{build_id} is not there"
    return found[0]


Worlds = Mapping[str, Seen]


@dataclass(frozen=True, slots=True)
class Teller:
    """Where a story happens: a server, and a folder for the specs of its workers."""

    server: TemporalServer
    folder: Path

    def worker(self, name: str, namespace: str = "default") -> DeployedWorker:
        return DeployedWorker(self.server, f"live/{name}", name, namespace)

    def see(self, name: str, build_id: str, *, is_known: bool = True, **spec: Any) -> Seen:
        """The world and the plan for this target, once no change of routing is on its way.

        Both of a worker that Temporal knows, which the oldest server forgets for a moment after a change.
        """
        folder = write_specs(self.folder / name, self.server.address, worker_document(name, build_id, **spec))

        # 1.32.0 calls a change in progress for minutes, now and then; two of them are what a plan waits
        late = time.monotonic() + 150

        def at_rest() -> Document | None:
            [world] = recorded(folder)
            assert world["temporal"] or not is_known, world
            routing = (world["temporal"] or {}).get("routing", {})
            under_way = routing.get("updateState") == "InProgress" and time.monotonic() < late
            return None if under_way else world

        world = eventually(at_rest)
        return Seen(planned_once_known(folder) if is_known else planned(folder)[0], world)

    def when(self, name: str, build_id: str, status: str, **spec: Any) -> Seen:
        """The world once that version has this status, and pollers on both its task queues."""

        def reached() -> Seen:
            seen = self.see(name, build_id, **spec)
            assert seen.version(build_id)["status"] == status
            queues = seen.version(build_id).get("taskQueues")
            assert queues is None or [queue["pollers"] for queue in queues] == [True, True]
            return seen

        return eventually(reached)

    def settled(self, name: str, build_id: str, **spec: Any) -> Seen:
        """The world once nothing is left to do: a read just after a change may lack a fact."""

        def reached() -> Seen:
            seen = self.see(name, build_id, **spec)
            assert seen.plan["phase"] == "Settled", seen.plan
            return seen

        return eventually(reached)


def rollout(teller: Teller) -> Iterator[tuple[str, Seen]]:
    worker = teller.worker("rollout")
    with worker.version("v1"):
        eventually(lambda: succeeds(lambda: worker.set_current("v1")))
        yield "current", teller.settled("rollout", "v1")
        worker.start("WaitingWorkflow", "rollout-holds", pinned_to="v1")
        with worker.version("v2"):
            yield "inactive", teller.when("rollout", "v2", "Inactive")
            worker.set_ramp("v2", 25)
            yield "ramping", teller.see("rollout", "v2")
            worker.set_current("v2")

            def replaced(status: str) -> Seen:
                seen = teller.see("rollout", "v2")
                assert seen.version("v1")["status"] == seen.planned_version("v1")["status"] == status
                return seen

            yield "draining", eventually(lambda: replaced("Draining"))
            worker.finish("rollout-holds")
            yield "drained", eventually(lambda: replaced("Drained"))


def unversioned(teller: Teller) -> Iterator[tuple[str, Seen]]:
    worker = teller.worker("unversioned")
    with worker.version("v1"):
        yield "nobody to share with", teller.when("unversioned", "v1", "Inactive")
        with worker.unversioned():

            def shared() -> Seen:
                seen = teller.see("unversioned", "v1")
                queues = seen.version("v1")["taskQueues"]
                assert all(queue["unversionedPollers"] for queue in queues)
                return seen

            yield "unversioned pollers", eventually(shared)
            worker.set_current("v1")
            worker.set_ramp("", 5)
            yield "ramp to unversioned", teller.see("unversioned", "v1")


def gates(teller: Teller) -> Iterator[tuple[str, Seen]]:
    worker = teller.worker("gated")
    with worker.version("v1"):
        waiting = {"gate": "WaitingWorkflow"}

        def not_started() -> Seen:
            """The plan is made from a read of its own, which may lack a fact a moment after the first."""
            seen = teller.when("gated", "v1", "Inactive", **waiting)
            assert seen.plan["gates"], seen.plan
            return seen

        yield "gate not started", eventually(not_started)
        run = "test-live/gated:v1-gated"
        worker.start("WaitingWorkflow", run, pinned_to="v1")
        draining = "Draining" if teller.server.version == NEWEST else "Inactive"
        yield "gate running", teller.when("gated", "v1", draining, **waiting)
        worker.finish(run)

        def passed() -> Seen:
            seen = teller.see("gated", "v1", **waiting)
            assert seen.version("v1")["gateRuns"][0]["status"] == "Completed"
            return seen

        yield "gate passed", eventually(passed)


def failing_gate(teller: Teller) -> Iterator[tuple[str, Seen]]:
    worker = teller.worker("broken")
    with worker.version("v1", gate_fails=True):
        teller.when("broken", "v1", "Inactive", gate="GateWorkflow")
        worker.start("GateWorkflow", "test-live/broken:v1-broken", pinned_to="v1")

        def failed() -> Seen:
            seen = teller.see("broken", "v1", gate="GateWorkflow")
            assert seen.version("v1")["gateRuns"][0]["status"] == "Failed"
            return seen

        yield "gate failed", eventually(failed)


def owners(teller: Teller) -> Iterator[tuple[str, Seen]]:
    worker = teller.worker("owned")
    with worker.version("v1") as process:
        teller.when("owned", "v1", "Inactive")
        worker.set_manager("somebody/else")
        yield "foreign owner", teller.see("owned", "v1")
        worker.set_manager("")
        process.stop()
        yield "stopped", teller.see("owned", "v1")
        worker.mark("v1", "note", b"by hand")
        worker.mark("v1", "twgen.io/aborted", b"true")
        yield "aborted", teller.see("owned", "v1")


def namespaces(teller: Teller) -> Iterator[tuple[str, Seen]]:
    teller.server.create_namespace("worlds")
    worker = teller.worker("twice", "worlds")
    with worker.version("v1"):
        eventually(lambda: succeeds(lambda: worker.set_current("v1")))
        yield "in its namespace", teller.settled("twice", "v1", temporal_namespace="worlds")
        yield "in default", teller.see("twice", "v1", is_known=False)


def created(teller: Teller) -> Iterator[tuple[str, Seen]]:
    if teller.server.version != NEWEST:
        return
    worker = teller.worker("created")
    worker.create()
    worker.create_version("v1")
    yield "created", teller.see("created", "v1")


def by_hand(teller: Teller) -> Iterator[tuple[str, Seen]]:
    worker = teller.worker("by-hand")
    old, new = BY_HAND
    with worker.version(old), worker.version(new):
        eventually(lambda: succeeds(lambda: worker.set_current(old)))
        worker.start("WaitingWorkflow", "by-hand-holds", pinned_to=old)
        eventually(lambda: succeeds(lambda: worker.set_current(new)))

        def known() -> Seen:
            # two looks: 1.29.1 does not know a worker for a moment after a change
            seen = teller.see("by-hand", "v1")
            assert [seen.version(build_id)["status"] for build_id in BY_HAND] == ["Draining", "Current"]
            assert [seen.planned_version(build_id)["status"] for build_id in BY_HAND] == [
                "Draining",
                "Current",
            ]
            return seen

        yield "versioned by hand", eventually(known)


STORIES = (rollout, unversioned, gates, failing_gate, owners, namespaces, created, by_hand)


def tell_all(teller: Teller) -> Worlds:
    """Every world of every story, the stories told side by side."""
    with ThreadPoolExecutor(len(STORIES)) as pool:
        told = pool.map(lambda story: dict(story(teller)), STORIES)
        return {name: seen for worlds in told for name, seen in worlds.items()}
