"""One story told to the model of Temporal and to real servers: both say the same after every step."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.reading import NOW, read
from tests.servers.specs import worker_spec
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import TaskQueue, TaskQueueType, Version, VersionStatus, WorkerDeployment
from twgen.model.times import FOREVER
from twgen.simulating.servers import TemporalModel, server_of

pytestmark = pytest.mark.server

NAME = "simulated"
QUEUES = tuple(
    TaskQueue(NAME, kind, pollers=True) for kind in (TaskQueueType.ACTIVITY, TaskQueueType.WORKFLOW)
)
LONG_ENOUGH = timedelta(minutes=1)

STORY: Mapping[str, tuple[str, ...]] = {
    "a first version polls": ("register", "v1"),
    "it becomes current": ("set_current", "v1"),
    "a second version polls": ("register", "v2"),
    "a workflow is pinned to the current version": ("start_pinned", "v1"),
    "the second version ramps": ("set_ramp", "v2", "25"),
    "and ramps on": ("set_ramp", "v2", "75"),
    "it becomes current, and the first one drains": ("set_current", "v2"),
    "the pinned workflow ends, and the first version is drained": ("end_pinned", "v1"),
    "a third version polls": ("register", "v3"),
    "and ramps": ("set_ramp", "v3", "10"),
    "its ramp is ended, and it is drained": ("set_ramp", "", "0"),
    "unversioned workers ramp": ("set_ramp", "", "5"),
    "the first version becomes current again, and that ramp stays": ("set_current", "v1"),
    "that ramp is ended": ("set_ramp", "", "0"),
    "a drained version ramps": ("set_ramp", "v2", "10"),
    "its ramp is ended too": ("set_ramp", "", "0"),
    "a workflow is pinned to a drained version": ("start_pinned", "v3"),
    "and ends": ("end_pinned", "v3"),
    "a fourth version polls": ("register", "v4"),
    "a workflow is pinned to it before it had traffic": ("start_pinned", "v4"),
    "and ends there": ("end_pinned", "v4"),
    "unversioned workers become current": ("set_current", ""),
}


@dataclass
class Both:
    """A Worker Deployment on a real server, and the model of it."""

    real: DeployedWorker
    model: TemporalModel
    processes: ExitStack = field(default_factory=ExitStack)

    def register(self, build_id: str) -> None:
        self.processes.enter_context(self.real.version(build_id))
        self.model.polled(build_id, QUEUES)

    def set_current(self, build_id: str) -> None:
        insist(lambda: self.real.set_current(build_id))
        self.model.set_current(build_id)

    def set_ramp(self, build_id: str, percentage: str) -> None:
        insist(lambda: self.real.set_ramp(build_id, float(percentage)))
        self.model.set_ramp(build_id, float(percentage))

    def start_pinned(self, build_id: str) -> None:
        self.real.start("WaitingWorkflow", f"{NAME} on {build_id}", pinned_to=build_id)
        self.model.start_pinned(build_id, FOREVER)

    def end_pinned(self, build_id: str) -> None:
        self.real.finish(f"{NAME} on {build_id}")
        self.model.held_until.pop(build_id, None)


@dataclass(frozen=True, slots=True)
class Told:
    """What the server and the model said after a step."""

    server: Any
    model: Any


def insist(write: Callable[[], object]) -> None:
    # a server knows a version a moment before it knows its task queue
    eventually(lambda: succeeds(write))


def told(server: TemporalServer) -> Iterator[tuple[str, Told]]:
    """Every step of the story, and what both said of it once they agreed, or had the time to."""
    model = TemporalModel(server_of(server.version), NOW, timedelta(), timedelta(seconds=1))
    both = Both(DeployedWorker(server, f"default/{NAME}", NAME), model)
    spec = worker_spec(NAME, "none of them", server.connection)
    with both.processes:
        for step, (action, *arguments) in STORY.items():
            getattr(both, action)(*arguments)
            model.advance(model.now + LONG_ENOUGH)
            expected = facts(model.described())

            yield step, Told(last_read(spec, expected), expected)


def last_read(spec: WorkerSpec, expected: Any) -> Any:
    """What the server says, once it is what is expected, or when the time for it is over."""
    found = None

    def agree() -> bool:
        nonlocal found
        found = facts(read(spec))
        return bool(found == expected)

    with suppress(AssertionError):
        eventually(agree)
    return found


def facts(said: WorkerDeployment | None) -> Any:
    """What both can say alike: of a time, whether it is there."""
    if said is None:
        return None
    current, ramping = said.routing.current, said.routing.ramping
    return {
        "current": current and (current.build_id, current.since is not None),
        "ramping": ramping and (ramping.build_id, ramping.percentage),
        "ramps since its percentage changed": ramping and ramping.since == ramping.percentage_changed_at,
        "update": said.routing.update_state,
        "changed": said.routing.changed_at is not None,
        "versions": {version.build_id: facts_of_version(version) for version in said.versions},
    }


def facts_of_version(version: Version) -> Any:
    drainage = version.drainage
    # what gets new workflows carries Unspecified or nothing, whichever the server's last update left
    told = drainage is not None and drainage.status is not VersionStatus.UNSPECIFIED
    return {
        "status": version.status,
        "drainage": (drainage.status, drainage.changed_at is not None) if drainage and told else None,
        "created": version.created_at is not None,
        "first activated": version.first_activated_at is not None,
        "last current": version.last_current_at is not None,
        "last deactivated": version.last_deactivated_at is not None,
    }


@pytest.fixture(scope="session")
def stories(
    oldest_temporal: TemporalServer, newest_temporal: TemporalServer
) -> Mapping[str, Mapping[str, Told]]:
    servers = {server.version: server for server in (oldest_temporal, newest_temporal)}
    with ThreadPoolExecutor(len(servers)) as pool:
        return dict(zip(servers, pool.map(lambda server: dict(told(server)), servers.values()), strict=True))


@pytest.mark.parametrize("step", STORY)
def test_model_says_what_the_server_says(
    step: str, temporal: TemporalServer, stories: Mapping[str, Mapping[str, Told]]
) -> None:
    both = stories[temporal.version][step]
    assert both.model == both.server


def test_servers_differ_where_the_table_says_so(stories: Mapping[str, Mapping[str, Told]]) -> None:
    step = "a workflow is pinned to it before it had traffic"
    seen = {version: story[step].server["versions"]["v4"]["status"] for version, story in stories.items()}
    assert seen == {
        version: VersionStatus.DRAINING if server_of(version).pinned_start_drains else VersionStatus.INACTIVE
        for version in stories
    }
    assert len(set(seen.values())) == 2
