"""What plan and snapshot say of every world that real workers and a real server can be brought into."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from testing.servers import NEWEST, OLDEST, TemporalServer
from tests.servers.stories import BY_HAND, Teller, Worlds, tell_all

pytestmark = pytest.mark.server

TaskQueues = list[dict[str, object]]


@pytest.fixture(scope="session")
def worlds_of_all(
    oldest_temporal: TemporalServer, newest_temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Worlds]:
    tellers = [
        Teller(server, tmp_path_factory.mktemp("worlds")) for server in (oldest_temporal, newest_temporal)
    ]
    with ThreadPoolExecutor(len(tellers)) as pool:
        return dict(zip((OLDEST, NEWEST), pool.map(tell_all, tellers), strict=True))


@pytest.fixture
def worlds(temporal: TemporalServer, worlds_of_all: Mapping[str, Worlds]) -> Worlds:
    return worlds_of_all[temporal.version]


def routing(worlds: Worlds, world: str) -> tuple[str, str | None, float | None, str]:
    plan = worlds[world].plan
    planned = plan["routing"]
    return planned["action"], planned["buildID"], planned["percentage"], plan["phase"]


def queues(name: str, *, unversioned: bool = False) -> TaskQueues:
    polled = {"pollers": True, "unversionedPollers": unversioned}
    return [{"name": name, "type": kind, **polled} for kind in ("Activity", "Workflow")]


def test_current_target_is_settled(worlds: Worlds) -> None:
    seen = worlds["current"]
    assert seen.temporal["routing"]["current"]["buildID"] == "v1"
    assert seen.version("v1")["status"] == "Current"
    assert routing(worlds, "current") == ("None", None, None, "Settled")


def test_new_version_beside_a_current_one_takes_the_first_step(worlds: Worlds) -> None:
    seen = worlds["inactive"]
    assert [seen.version(name)["taskQueues"] for name in ("v1", "v2")] == [queues("rollout")] * 2
    assert routing(worlds, "inactive") == ("SetRamp", "v2", 25, "Moving")
    assert seen.plan["routing"]["claimManager"]


def test_ramping_version_waits_for_its_pause(worlds: Worlds) -> None:
    seen = worlds["ramping"]
    ramping = seen.temporal["routing"]["ramping"]
    assert (ramping["buildID"], ramping["percentage"]) == ("v2", 25)
    assert seen.version("v2")["status"] == "Ramping"
    assert routing(worlds, "ramping") == ("None", None, None, "Waiting")
    assert seen.plan["routing"]["dueAt"] > ramping["percentageChangedAt"]


def test_pinned_workflow_holds_the_version_that_traffic_left(worlds: Worlds) -> None:
    seen = worlds["draining"]
    assert seen.version("v1")["drainage"]["status"] == "Draining"
    assert seen.planned_version("v1")["status"] == "Draining"
    assert "it is draining: 1 open workflow needs it, the oldest " in seen.planned_version("v1")["because"]
    assert routing(worlds, "draining") == ("None", None, None, "Settled")


def test_version_is_drained_once_its_workflow_has_ended(worlds: Worlds) -> None:
    seen = worlds["drained"]
    assert seen.version("v1")["drainage"]["status"] == "Drained"
    assert seen.planned_version("v1")["status"] == "Drained"


def test_first_version_takes_all_when_nobody_polls_without_a_version(worlds: Worlds) -> None:
    assert worlds["nobody to share with"].version("v1")["taskQueues"] == queues("unversioned")
    assert routing(worlds, "nobody to share with") == ("SetCurrent", "v1", None, "Moving")


def test_first_version_takes_a_share_from_unversioned_workers(worlds: Worlds) -> None:
    assert worlds["unversioned pollers"].version("v1")["taskQueues"] == queues(
        "unversioned", unversioned=True
    )
    assert routing(worlds, "unversioned pollers") == ("SetRamp", "v1", 25, "Moving")


def test_ramp_to_unversioned_workers_is_ended(worlds: Worlds) -> None:
    ramping = worlds["ramp to unversioned"].temporal["routing"]["ramping"]
    assert (ramping["buildID"], ramping["percentage"]) == ("", 5)
    assert routing(worlds, "ramp to unversioned") == ("ClearRamp", "", 0, "Moving")


def test_gate_is_to_be_started_on_the_workflow_task_queue(worlds: Worlds) -> None:
    seen = worlds["gate not started"]
    assert seen.version("v1")["gateRuns"] == []
    assert [gate["workflowID"] for gate in seen.plan["gates"]] == ["test-live/gated:v1-gated"]
    assert routing(worlds, "gate not started") == ("None", None, None, "Waiting")


def test_running_gate_is_waited_for_and_not_started_again(worlds: Worlds) -> None:
    seen = worlds["gate running"]
    assert [run["status"] for run in seen.version("v1")["gateRuns"]] == ["Running"]
    assert seen.plan["gates"] == []
    assert routing(worlds, "gate running") == ("None", None, None, "Waiting")


def test_gate_run_makes_the_newest_server_call_its_version_draining(worlds: Worlds) -> None:
    newest = worlds["gate running"].temporal["serverVersion"] == NEWEST
    assert worlds["gate running"].version("v1")["status"] == ("Draining" if newest else "Inactive")


def test_passed_gate_lets_traffic_in(worlds: Worlds) -> None:
    assert [run["status"] for run in worlds["gate passed"].version("v1")["gateRuns"]] == ["Completed"]
    assert routing(worlds, "gate passed") == ("SetCurrent", "v1", None, "Moving")


def test_failed_gate_blocks(worlds: Worlds) -> None:
    assert routing(worlds, "gate failed") == ("None", None, None, "Blocked")
    assert "test-live/broken:v1-broken" in worlds["gate failed"].plan["routing"]["because"]


def test_foreign_owner_blocks(worlds: Worlds) -> None:
    seen = worlds["foreign owner"]
    assert (seen.temporal["managerIdentity"], seen.plan["manager"]) == ("somebody/else",) * 2
    assert routing(worlds, "foreign owner") == ("None", None, None, "Blocked")
    assert seen.plan["routing"]["because"].startswith("its manager is somebody/else. To take it over")


def test_worker_that_stopped_a_moment_ago_still_counts_as_a_poller(worlds: Worlds) -> None:
    # the server forgets a poller five minutes after its last poll
    assert worlds["stopped"].version("v1")["taskQueues"] == queues("owned")


def test_marks_are_read_and_an_abort_is_heeded(worlds: Worlds) -> None:
    assert worlds["aborted"].version("v1")["metadata"] == {"note": "by hand", "twgen.io/aborted": True}
    assert routing(worlds, "aborted") == ("None", None, None, "Blocked")
    assert "aborted" in worlds["aborted"].plan["routing"]["because"]


def test_worker_of_one_namespace_is_unknown_in_another(worlds: Worlds) -> None:
    assert routing(worlds, "in its namespace") == ("None", None, None, "Settled")
    assert worlds["in its namespace"].plan["temporalNamespace"] == "worlds"
    assert worlds["in default"].world["temporal"] is None
    assert routing(worlds, "in default") == ("None", None, None, "Waiting")


def test_created_version_waits_for_its_first_worker(worlds_of_all: Mapping[str, Worlds]) -> None:
    seen = worlds_of_all[NEWEST]["created"]
    assert seen.version("v1")["status"] == "Created"
    assert seen.version("v1")["taskQueues"] == []
    assert seen.planned_version("v1")["status"] == "Created"
    assert seen.plan["phase"] == "Waiting"


def test_versions_that_somebody_versioned_by_hand_are_told_and_get_nothing(worlds: Worlds) -> None:
    seen = worlds["versioned by hand"]
    assert [seen.planned_version(name)["status"] for name in BY_HAND] == ["Draining", "Current"]
    for name in BY_HAND:
        planned = seen.planned_version(name)
        assert (planned["reason"], planned["action"], planned["deployment"]) == ("OfOthers", "None", "")
    assert len(seen.plan["warnings"]) == 1
    assert all(name in seen.plan["warnings"][0] for name in BY_HAND)
