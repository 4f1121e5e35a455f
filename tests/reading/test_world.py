"""Many workers at once: one that cannot be read costs the others nothing."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentResponse

from testing.faults import hanging
from tests.executing import answers
from tests.planning.situations import MAIN, SPEC
from tests.planning.times import HOUR, MINUTE
from tests.strategies import NOW
from twgen.clients.deadline import AnswerDeadline, Deadline
from twgen.clients.kubernetes import KubernetesClient
from twgen.clients.profiles import Profiles
from twgen.clients.temporal import Call, TemporalClients
from twgen.errors import OutOfTime, StateUnavailable, TwgenError
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason
from twgen.model.spec import Gate, Rollout, Strategy
from twgen.model.temporal import GateRun, GateStatus
from twgen.model.world import World
from twgen.planning.interventions import retry
from twgen.planning.reads import unread_lines
from twgen.planning.routing.gates import gates_to_start
from twgen.planning.routing.table import wanted_change
from twgen.planning.routing.target import Target
from twgen.reading.kubernetes import ClusterReader
from twgen.reading.temporal.checks import Check
from twgen.reading.temporal.reader import TemporalReader
from twgen.reading.world import Reading, read_each, read_world
from twgen.reporting.bugs import Bug
from twgen.simulating.servers import TemporalModel, server_of

SPECS = [replace(SPEC, name=f"w{number}") for number in range(10, 30)]


class Temporal(TemporalClients):
    """Knows no worker, refuses to tell of one, and counts for nobody."""

    def __init__(self) -> None:
        super().__init__(lambda: Profiles(allow_unlisted=True), {})
        self.counted = 0

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - it fails by itself
        if call.method == "count_workflow_executions":
            self.counted += 1
            await asyncio.sleep(0.01)
            raise OutOfTime("nothing can be counted")
        if call.spec.worker_deployment.startswith(SPECS[2].worker_deployment):
            raise StateUnavailable("w2 is refused")
        return call.value(None)


class Cluster(KubernetesClient):
    """Has nothing, and takes its time to say so."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure

    async def deployments(self, *_: Any) -> list[Mapping[str, Any]]:
        await asyncio.sleep(0.05)
        if self.failure:
            raise StateUnavailable(self.failure)
        return []


def read(cluster: Cluster) -> tuple[World, list[str]]:
    async def story() -> tuple[World, list[str]]:
        temporal, lists = TemporalReader(Temporal(), Deadline(30)), ClusterReader(cluster, Deadline(30))
        world, unread = await read_each(SPECS, Reading(temporal, lists, NOW, for_routing=False, read_at=NOW))
        return world, unread_lines(unread)

    return asyncio.run(asyncio.wait_for(story(), 30))


def test_worker_that_is_refused_does_not_end_the_list_that_all_wait_for() -> None:
    world, failures = read(Cluster())
    names = {spec.worker_deployment for spec in SPECS}
    assert {name for name, _ in world.workers} == names - {SPECS[2].worker_deployment}
    assert failures == ["w2 is refused"]


class Gated(Temporal):
    """Has v1, which is current, and the target v3 with these runs of gates."""

    def __init__(self, *runs: GateRun) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.model = TemporalModel(server_of("1.32.0"), NOW, HOUR, MINUTE)
        for build_id in ("v1", "v3"):
            self.model.polled(build_id, [MAIN])
        self.model.set_current("v1")
        self.model.versions["v3"] = replace(self.model.versions["v3"], gate_runs=runs)

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - it answers at once
        if call.method == "describe_workflow_execution":
            self.asked.append(call.request.execution.workflow_id)
        return call.value(getattr(answers, call.method)(self.model, call.request, b"1"))


def test_gate_is_looked_for_under_later_attempts_while_runs_are_of_another_workflow_type() -> None:
    first = "test-shop/payments:v3-main"
    spec = replace(SPEC, rollout=Rollout(Strategy.ALL_AT_ONCE, gate=Gate("Smoke")))

    def read(*types: str) -> tuple[list[str], list[str]]:
        names = (first, f"{first}-2", f"{first}-3")
        runs = (
            GateRun("main", name, GateStatus.COMPLETED, NOW, workflow_type=kind)
            for name, kind in zip(names, types, strict=False)
        )
        temporal = Gated(*runs)
        reading = Reading(TemporalReader(temporal, Deadline(30)), None, NOW, for_routing=True, read_at=NOW)
        [worker] = asyncio.run(read_world([spec], reading)).workers.values()
        assert worker.temporal
        target = next(version for version in worker.temporal.versions if version.build_id == "v3")
        return temporal.asked, [run.workflow_type for run in target.gate_runs or ()]

    assert read() == ([first], [])
    assert read("Smoke") == ([first], ["Smoke"])
    assert read("Smokee") == ([first, f"{first}-2"], ["Smokee"])
    types = ["Smokee", "Proof", "Smoke"]
    assert read(*types) == ([first, f"{first}-2", f"{first}-3"], types)


class WithoutEnd(Gated):
    """Says of every attempt that a workflow of another type has its ID."""

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:
        if call.method == "describe_workflow_execution":
            name = call.request.execution.workflow_id
            run = GateRun("main", name, GateStatus.COMPLETED, NOW, workflow_type="Another")
            self.model.versions["v3"] = replace(self.model.versions["v3"], gate_runs=(run,))
        return await super().ask(call, deadline)


def test_gate_with_endless_runs_of_another_workflow_type_is_read_to_an_end_and_has_failed() -> None:
    temporal = WithoutEnd()
    spec = replace(SPEC, rollout=Rollout(Strategy.ALL_AT_ONCE, gate=Gate("Smoke")))
    reading = Reading(TemporalReader(temporal, Deadline(30)), None, NOW, for_routing=True, read_at=NOW)
    [world] = asyncio.run(read_world([spec], reading)).workers.values()
    assert len(temporal.asked) == 20
    target = Target(spec, world, NOW + HOUR, identity="")
    change = wanted_change(target)
    assert (change.reason, change.phase) == (RoutingReason.GATE_FAILED, Phase.BLOCKED)
    assert gates_to_start(target) == ()
    assert "20 workflows of other types use its workflow IDs" in change.because
    assert retry(target).marks, "the next attempt has the number after theirs"


class Forgetful(Temporal):
    """Has lost each worker, and knows it when it is asked again."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:
        self.asked[call.spec.worker_deployment] += 1
        if self.asked[call.spec.worker_deployment] == 1:
            return await super().ask(call, deadline)
        return call.value(DescribeWorkerDeploymentResponse())


def test_few_workers_that_may_only_be_forgotten_are_asked_for_once_more() -> None:
    clients, specs = Forgetful(), [spec for spec in SPECS if spec is not SPECS[2]]

    async def story(cluster: ClusterReader | None) -> World:
        temporal = TemporalReader(clients, Deadline(30))
        return await read_world(specs, Reading(temporal, cluster, NOW, for_routing=False, read_at=NOW))

    world = asyncio.run(story(None))
    known = [worker for worker in world.workers.values() if worker.temporal]
    assert len(known) == len([worker for worker, asked in clients.asked.items() if asked > 1]) == 10
    clients.asked.clear()
    world = asyncio.run(story(ClusterReader(Cluster(), Deadline(30))))
    assert not [worker for worker in world.workers.values() if worker.temporal], "nothing is deployed"
    assert set(clients.asked.values()) == {1}


def test_failure_that_all_workers_share_is_told_once() -> None:
    world, failures = read(Cluster("no list"))
    assert not world.workers
    assert sorted(failures) == ["no list", "w2 is refused"]


def test_count_that_fails_fails_for_all_that_were_counted_together() -> None:
    """Each of them would wait for as long, one after the other."""
    clients = Temporal()

    async def story() -> list[Any]:
        shared = TemporalReader(clients, Deadline(30))
        counts = (shared.open_workflows(spec, ["v1"]) for spec in SPECS)
        return await asyncio.gather(*counts, return_exceptions=True)

    for end in asyncio.run(asyncio.wait_for(story(), 30)):
        assert isinstance(end, TwgenError), end
    assert clients.counted == 2, "the first by itself, and all that came meanwhile"


class OneHangs(Temporal):
    """The same, but calls to one address go there."""

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:
        if call.spec.connection.host_port == SPEC.connection.host_port:
            return await super().ask(call, deadline)
        return await TemporalClients.ask(self, call, deadline)


def test_workers_of_a_server_that_never_answers_have_one_line_and_hold_up_no_other() -> None:
    timeout = 0.5
    with hanging() as address:
        silent = [
            replace(
                spec, namespace=f"team-{index % 20}", connection=replace(spec.connection, host_port=address)
            )
            for spec in SPECS
            for index in range(20)
        ]

        async def story() -> tuple[World, list[str], float]:
            shared = TemporalReader(OneHangs(), AnswerDeadline(timeout), Check())
            reading = Reading(shared, None, NOW, for_routing=False, read_at=NOW)
            others = asyncio.create_task(read_each(SPECS, reading))
            began = monotonic()
            _, first = await read_each(silent[:200], reading)
            _, later = await read_each(silent[200:], reading)
            seconds = monotonic() - began
            world, unread = await others
            return world, unread_lines([*first, *later, *unread]), seconds

        world, lines, seconds = asyncio.run(asyncio.wait_for(story(), 30))
    assert seconds < 8, "one namespace after the other takes twenty"
    assert len(world.workers) == len(SPECS) - 1
    of_silent, of_refused = lines
    assert of_silent.startswith(f"400 workers of {address} were not read: Temporal at {address}, namespace")
    assert f"did not answer within {timeout:g} s" in of_silent
    assert of_refused == "w2 is refused"


class SomeHang(Temporal):
    """Never answers about three of the workers: 1.29.1 does that for a while after some changes."""

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - it fails by itself
        if call.spec.worker_deployment.startswith(tuple(spec.worker_deployment for spec in SPECS[:3])):
            await asyncio.sleep(0.05)
            raise OutOfTime(f"no answer about {call.spec.worker_deployment}")
        return call.value(None)


def test_workers_that_hang_keep_no_other_of_their_server_from_its_next_read_in_a_look() -> None:
    async def story() -> list[tuple[World, list[Any]]]:
        clients, check = SomeHang(), Check()
        return [
            await read_each(
                specs,
                Reading(
                    TemporalReader(clients, Deadline(30), check), None, NOW, for_routing=False, read_at=NOW
                ),
            )
            for specs in (SPECS, SPECS[3:])
        ]

    (first, unread), (second, still_unread) = asyncio.run(asyncio.wait_for(story(), 30))
    assert len(unread) == 3
    assert len(first.workers) == len(second.workers) == len(SPECS) - 3
    assert still_unread == []


class Broken(Temporal):
    """What it answers about one of the workers cannot be understood."""

    async def ask(self, call: Call[Any], deadline: Deadline) -> Any:  # noqa: ARG002 - it fails by itself
        if call.spec.worker_deployment.startswith(SPECS[0].worker_deployment):
            raise KeyError("secret-token")
        return call.value(None)


def test_bug_in_the_read_of_one_worker_is_said_with_its_place_and_the_others_are_read() -> None:
    async def story() -> tuple[World, list[Any]]:
        shared = TemporalReader(Broken(), Deadline(30))
        return await read_each(SPECS, Reading(shared, None, NOW, for_routing=False, read_at=NOW))

    world, [unread] = asyncio.run(story())
    assert len(world.workers) == len(SPECS) - 1
    [line] = unread_lines([unread])
    assert isinstance(line, Bug)
    assert line.startswith(f"{SPECS[0].worker_deployment}: a bug (KeyError at twgen/")
    assert "secret-token" not in line
