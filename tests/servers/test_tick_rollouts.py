"""Rollouts that `twgen tick` carries out, in place of Jobs."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import ListWorkerDeploymentsRequest

from testing.asking import succeeds
from testing.kubernetes.cluster import Cluster
from testing.kubernetes.ready_pods import make_ready
from testing.pollers import polled
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    PATIENT,
    Document,
    connection_document,
    in_namespace,
    run,
    share_of,
    worker_document,
)
from tests.servers.rollouts import SOON, Story, describe_ramp, settled
from tests.servers.side_by_side import side_by_side
from tests.servers.ticks import tick_account, ticking
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server

BY_JOB = {"rollout": {"image": "registry.example.com/twgen:testing"}}
BY_TICK = {
    "rollout": {"driver": "Tick", "image": "registry.example.com/twgen:testing"},
    "tick": {"rollouts": True},
}
"""What an operator says, with the same image for replays."""


@contextmanager
def tick_of(story: Story) -> Iterator[None]:
    """Two ticks that share the workers of the story's namespace, with the rights that the docs name."""
    folder = story.folder.parent
    with (
        tick_account(story.cluster, story.namespace, folder, "tick", ["statuses", "rollouts"]) as kubeconfig,
        ExitStack() as running,
    ):
        logs = []
        for shard in ("0", "1"):
            (own := folder / f"shard-{shard}").mkdir()
            options = ("--shards", "2", "--shard", shard)
            running.enter_context(ticking(kubeconfig, story.namespace, own, BY_TICK, *options))
            logs.append(own / "tick.log")
        try:
            yield
            assert sorted(log.read_text() != "" for log in logs) == [False, True], (
                "one of them has the worker"
            )
        except BaseException as error:
            error.add_note("\n".join(log.read_text() for log in logs))
            raise


@side_by_side
def test_rollout_moves_from_a_job_to_tick_and_back_in_the_middle_of_its_ramp(story: Story) -> None:
    story.operator.update(BY_JOB)
    settled(story)
    describe_ramp(story, "v2")
    story.apply()
    eventually(lambda: story.share("v2") == 25, SOON)
    with tick_of(story):
        story.operator.update(BY_TICK)
        story.apply()
        story.stands("Settled", "v2")
        assert story.share("v2") == 100
        assert story.jobs() == [], "tick has deleted the Job of the earlier rollout"

        describe_ramp(story, "v3")
        story.apply()
        eventually(lambda: story.share("v3") == 25, SOON)
        story.operator.update(BY_JOB | {"tick": {"rollouts": False}})
        story.apply()
        story.stands("Settled", "v3")
        assert story.share("v3") == 100
        assert len(story.jobs()) == 1


EACH = 25
"""Of the two servers."""
STEPS = (25, 50)
SHARES = (*STEPS, 100)


def many_documents(namespace: str, servers: Sequence[TemporalServer]) -> list[Document]:
    """Many workers of each server, whose target is v2."""
    documents = []
    for server in servers:
        name = f"temporal-{server.version}"
        documents.append(connection_document(server.address) | {"metadata": {"name": name}})
        for number in range(EACH):
            worker = worker_document(name_of(server, number), "v2", steps=STEPS, pause="30s")
            worker["spec"]["workerOptions"]["connectionRef"]["name"] = name
            documents.append(worker)
    return in_namespace(namespace, *documents)


def name_of(server: TemporalServer, number: int) -> str:
    return f"many-{number}-of-{server.version.replace('.', '-')}"


def becomes_current(worker: DeployedWorker) -> None:
    """All workflows of a worker go to v1, as soon as the server knows it."""
    eventually(lambda: succeeds(lambda: worker.set_current("v1")), SOON)


class Watch:
    """The changes of the traffic of many workers of a server: each share of v2 that was seen, with its time.

    Between two looks of a busy machine a change may go by unseen.
    """

    def __init__(self, server: TemporalServer, namespace: str) -> None:
        names = [f"{namespace}/{name_of(server, number)}" for number in range(EACH)]
        self.server, self.workers = server, [DeployedWorker(server, name, name) for name in names]
        self.seen: defaultdict[str, set[tuple[float, float]]] = defaultdict(set)

    def changes_of(self, worker: DeployedWorker) -> Sequence[tuple[float, float]]:
        """In the order of the shares, of a worker whose target is current."""
        current = worker.described().routing_config.current_version_changed_time
        return [*sorted(self.seen[worker.name]), (100, current.ToMilliseconds() / 1000)]

    def look(self) -> list[float]:
        """The shares of v2 now, of the workers that the server lists; one call, unlike descriptions."""
        request = ListWorkerDeploymentsRequest(namespace="default", page_size=1000)
        listed = self.server.ask("list_worker_deployments", request).worker_deployments
        routings = {one.name: one.routing_config for one in listed}
        shares = []
        for name in [worker.name for worker in self.workers if worker.name in routings]:
            shares.append(share_of("v2", routings[name]))
            if 0 < shares[-1] < 100:
                changed = routings[name].ramping_version_percentage_changed_time.ToMilliseconds() / 1000
                self.seen[name].add((shares[-1], changed))
        return shares


def test_each_of_fifty_ramps_takes_each_step_once_though_tick_is_killed_and_two_go_on(
    cluster: Cluster,
    namespace: str,
    oldest_temporal: TemporalServer,
    newest_temporal: TemporalServer,
    tmp_path: Path,
) -> None:
    servers = (oldest_temporal, newest_temporal)
    watches = [Watch(server, namespace) for server in servers]
    workers = [worker for watch in watches for worker in watch.workers]
    (specs := tmp_path / "specs").mkdir()
    (config := tmp_path / "operator.json").write_text(
        json.dumps({"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig", **BY_TICK})
    )

    def applied() -> None:
        (specs / "specs.yaml").write_text(write_documents(many_documents(namespace, servers)))
        given = ("--operator-config", str(config), "--kubeconfig", str(cluster.kubeconfig), *PATIENT)
        ended = run(specs, "render", options=[*given, "--identity", "twgen/testing/tick", "-q"])
        assert ended.code == 0, ended.stderr
        cluster.apply(read_documents(ended.stdout))
        eventually(lambda: make_ready(cluster, namespace) == 0 and all_are_available(), SOON)

    def all_are_available() -> bool:
        live = cluster.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
        return all(item["status"].get("availableReplicas") == 1 for item in live)

    def shares() -> list[float]:
        found = [share for watch in watches for share in watch.look()]
        assert len(found) == len(workers), "a server does not list one"
        return found

    with ExitStack() as running:
        for watch in watches:
            versions = [(worker, build_id) for worker in watch.workers for build_id in ("v1", "v2")]
            running.enter_context(polled(watch.server.address, versions))
        account = tick_account(cluster, namespace, tmp_path, "tick", ["statuses", "rollouts"])
        kubeconfig = running.enter_context(account)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(becomes_current, workers))
        applied()
        with ticking(kubeconfig, namespace, tmp_path, BY_TICK) as process:
            log = tmp_path / "tick.log"
            begun = "25% of new workflows go to v2"
            eventually(lambda: log.read_text().count(begun) >= len(workers) // 5, SOON)
            process.kill()
            process.wait()
        assert 0 in eventually(shares), "it was killed in the middle"
        with (
            ticking(kubeconfig, namespace, tmp_path, BY_TICK),
            ticking(kubeconfig, namespace, tmp_path, BY_TICK),
        ):
            eventually(lambda: {*shares()} == {100}, SOON)
    for watch in watches:
        seen = {share for changes in watch.seen.values() for share, _ in changes}
        assert seen == {*STEPS}, "only the steps of the spec were seen"
        for worker in watch.workers:
            changes = watch.changes_of(worker)
            assert len({share for share, _ in changes}) == len(changes), "each step was taken once"
            for (share, changed), (later, changed_later) in pairwise(changes):
                steps = SHARES.index(later) - SHARES.index(share)
                assert changed_later - changed >= steps * 30, "and each lasted as long as it says"
