"""A Worker Deployment that has as many versions as its server takes."""

from contextlib import ExitStack

import pytest
from temporalio.service import RPCError

from testing.asking import succeeds
from testing.processes import eventually
from testing.servers import NEWEST, temporal_server
from testing.workers import DeployedWorker
from tests.servers.stories import Seen, Teller, Worlds

pytestmark = pytest.mark.server

CAP = 4
*VERSIONS, ONE_TOO_MANY = (f"v{number}" for number in range(1, CAP + 2))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The world before and after one version too many, whose worker the server refuses."""
    settings, folder = {"matching.maxVersionsInDeployment": CAP}, tmp_path_factory.mktemp("full")
    with temporal_server(folder, NEWEST, settings=settings) as server, ExitStack() as stack:
        teller, worker = Teller(server, folder), DeployedWorker(server, "live/full", "full")
        for version in VERSIONS:
            stack.enter_context(worker.version(version))
        eventually(lambda: succeeds(lambda: worker.set_current(VERSIONS[0])))

        def all_known() -> Seen:
            seen = teller.see("full", VERSIONS[-1])
            assert {version["buildID"] for version in seen.temporal["versions"]} == set(VERSIONS)
            assert all(queue["pollers"] for queue in seen.version(VERSIONS[-1])["taskQueues"])
            return seen

        at_the_cap = eventually(all_known)
        with pytest.raises(RPCError, match=r"maximum number of versions|something went wrong"):
            worker.poll(ONE_TOO_MANY)
        return {"at the cap": at_the_cap, "one too many": teller.see("full", ONE_TOO_MANY)}


def test_every_version_up_to_the_cap_is_read(full: Worlds) -> None:
    plan = full["at the cap"].plan
    assert (plan["targetBuildID"], plan["routing"]["action"]) == (VERSIONS[-1], "SetRamp")


def test_version_that_the_server_refuses_is_waited_for(full: Worlds) -> None:
    seen = full["one too many"]
    assert seen.planned_version(ONE_TOO_MANY)["status"] == "NotRegistered"
    assert seen.plan["phase"] == "Waiting"
