"""`twgen tick` carries out what a RolloutPolicy says of versions that drain."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testing.asking import succeeds
from testing.kubernetes.cluster import Cluster
from testing.processes import eventually
from testing.servers import TemporalServer
from testing.workers import DeployedWorker
from tests.servers.live import (
    PATIENT,
    Document,
    connection_document,
    in_namespace,
    killed,
    policy_document,
    run,
    worker_document,
)
from tests.servers.workflows import events_of, start
from twgen.model.times import parse_time
from twgen.versioning.names import MarkKey
from twgen.yaml.reader import read_documents
from twgen.yaml.writer import write_documents

pytestmark = pytest.mark.server
MANAGER = "twgen/testing"
SIGNALLED, CANCEL_ASKED, TERMINATED = (
    f"WORKFLOW_EXECUTION_{end}" for end in ("SIGNALED", "CANCEL_REQUESTED", "TERMINATED")
)
ENTRIES: Sequence[Document] = (
    {"after": "1s", "action": "Signal", "signalName": "poke", "workflowTypes": ["WaitingWorkflow"]},
    {"after": "5s", "action": "Cancel", "allowTermination": True, "workflowTypes": ["ParentWorkflow"]},
    {"after": "8s", "action": "Cancel", "allowTermination": True, "workflowTypes": ["NobodyStartsIt"]},
    {"after": "11s", "action": "Terminate", "allowTermination": True},
)
IN_WORDS = {"send": "Signal", "cancel": "Cancel", "terminate": "Terminate"}
_LONGEST_LIFE = 6.0
"""Seconds of a tick that is killed; its first look takes two."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """A worker whose intent a cluster has, and the ticks that look at it."""

    cluster: Cluster
    namespace: str
    worker: DeployedWorker
    folder: Path
    moments: Random = field(default_factory=lambda: Random("ticks"))  # noqa: S311 - any moment will do

    def apply(self, build_id: str, entries: Sequence[Document]) -> None:
        specs, operator = self.folder / "specs", self.folder / "operator.json"
        specs.mkdir(exist_ok=True)
        documents = in_namespace(
            self.namespace,
            connection_document(self.worker.server.address),
            worker_document("greeter", build_id, steps=()),
            policy_document("greeter", draining=list(entries)),
        )
        (specs / "specs.yaml").write_text(write_documents(documents))
        self.operator(drains=True)
        given = ("--operator-config", str(operator), "--identity", MANAGER, "--no-cluster", "-q", *PATIENT)
        rendered = run(specs, "render", options=given)
        assert rendered.code == 0, rendered
        self.cluster.apply([one for one in read_documents(rendered.stdout) if one["kind"] == "ConfigMap"])

    def operator(self, *, drains: bool) -> None:
        head = {"apiVersion": "twgen.io/v1alpha1", "kind": "OperatorConfig"}
        config = {**head, "rollout": {"image": "twgen"}, "tick": {"drains": drains}}
        (self.folder / "operator.json").write_text(json.dumps(config))

    @property
    def options(self) -> Sequence[str]:
        kubeconfig = ("--kubeconfig", str(self.cluster.kubeconfig), *PATIENT)
        return ("-n", self.namespace, "--operator-config", str(self.folder / "operator.json"), *kubeconfig)

    def tick(self) -> str:
        ended = run(self.folder, "tick", options=self.options, takes_paths=False)
        assert (ended.code, ended.stderr) == (0, ""), ended
        return ended.stdout

    def killed_tick(self) -> None:
        """Looks every second, and is killed at some moment."""
        killed(self.moments.uniform(0.5, _LONGEST_LIFE), self.folder, "tick", "--every", "1s", *self.options)

    def marks(self, build_id: str) -> Mapping[str, Any]:
        """What was begun, by the metadata of a version."""
        found = self.worker.described_version(build_id).metadata.entries
        marks: Mapping[str, Any] = (
            json.loads(found[MarkKey.DRAINED_BY].data) if MarkKey.DRAINED_BY in found else {}
        )
        return marks

    def begun(self, build_id: str) -> list[Mapping[str, Any]]:
        """The entries that were begun with a version, in the order of their times.

        Whoever is killed between an entry and its mark has only written down what it is about to begin.
        """
        begun = [mark for mark in self.marks(build_id).values() if "at" in mark]
        return sorted(begun, key=lambda mark: parse_time(mark["at"]))

    def simulated(self, build_id: str) -> list[tuple[str, datetime]]:
        """The same as `twgen simulate` tells it, of the world as it is."""
        specs, world = self.folder / "specs", self.folder / "world.yaml"
        taken = run(specs, "snapshot", options=("--no-cluster", "-q", *PATIENT))
        world.write_text(taken.stdout)
        options = ("--snapshot", str(world), "--workflow-duration", "8760h", "--identity", MANAGER, "-q")
        told = run(specs, "simulate", "-o", "json", options=options)
        assert (taken.code, told.code) == (0, 0), (taken, told)
        [worker] = json.loads(told.stdout)["workers"]
        return [
            (IN_WORDS[event["says"].split()[4]], parse_time(event["time"]))
            for event in worker["events"]
            if event["event"] == "EndingBegun" and event["buildID"] == build_id
        ]


def test_policy_is_carried_out_once_for_each_version_and_touches_nobody_else(
    cluster: Cluster, namespace: str, newest_temporal: TemporalServer, tmp_path: Path
) -> None:
    worker = DeployedWorker(newest_temporal, f"{namespace}/greeter", f"drains-{namespace}")
    ticked = Ticked(cluster, namespace, worker, tmp_path)
    waiting = [f"{namespace}-waits-{number}" for number in range(6)]
    parents = [f"{namespace}-parent-{number}" for number in range(2)]
    others = [f"{namespace}-other-{number}" for number in range(3)]
    children = [f"{parent}-child" for parent in parents]
    with worker.version("v1"), worker.version("v2"):
        for build_id, workflows in (
            ("v1", {"WaitingWorkflow": waiting, "ParentWorkflow": parents}),
            ("v2", {"WaitingWorkflow": others}),
        ):
            eventually(lambda build_id=build_id: succeeds(lambda: worker.set_current(build_id)))
            start(worker, workflows)

        def touched() -> dict[str, set[int]]:
            return {
                kind: {events_of(worker, one, kind) for one in (*waiting, *parents, *others)}
                for kind in (SIGNALLED, CANCEL_ASKED, TERMINATED)
            }

        untouched = {kind: {0} for kind in (SIGNALLED, CANCEL_ASKED, TERMINATED)}
        ticked.apply("v2", ENTRIES)
        assert ticked.tick() == "", "nobody manages it yet"
        eventually(lambda: succeeds(lambda: worker.set_manager(MANAGER)))
        ticked.operator(drains=False)
        assert ticked.tick() == "", "its operator does not let it"
        ticked.operator(drains=True)
        paused = ("annotate", "configmap", "greeter-rollout", "-n", namespace)
        cluster.kubectl(*paused, "twgen.io/paused=true")
        assert ticked.tick() == "", "it is paused"
        assert touched() == untouched
        options = ("--no-cluster", "-q", "--identity", MANAGER, *PATIENT)
        shown = run(tmp_path / "specs", "plan", options=options)
        told = "run `twgen end PATH --version v1 --signal poke --type WaitingWorkflow` (`twgen tick`"
        assert told in " ".join(shown.stdout.split()), shown
        cluster.kubectl(*paused, "twgen.io/paused-")
        simulated = ticked.simulated("v1")
        # a person does what is next, by the command that was shown: tick takes it for done
        command = ("--version", "v1", "--signal", "poke", "--type", "WaitingWorkflow", "--yes")

        done_by_hand = run(tmp_path / "specs", "end", *command, options=options)
        assert done_by_hand.code == 0, done_by_hand
        eventually(lambda: [mark["action"] for mark in ticked.begun("v1")] == ["Signal"])

        def ended() -> bool:
            ticked.killed_tick()
            return {events_of(worker, one, TERMINATED) for one in waiting} == {1}

        eventually(ended)
        of_v1 = (*waiting, *parents, *children)
        ticked.tick()
        assert {events_of(worker, one, SIGNALLED) for one in (*waiting, *children)} == {1}
        assert {events_of(worker, one, CANCEL_ASKED) for one in parents} == {1}
        for kind in (SIGNALLED, CANCEL_ASKED, TERMINATED):
            assert {events_of(worker, one, kind) for one in others} == {0}, kind
        assert {events_of(worker, one, "WORKFLOW_EXECUTION_COMPLETED") for one in of_v1} == {0}
        marked = [(mark["action"], parse_time(mark["at"])) for mark in ticked.begun("v1")]
        # what a tick that was killed did late comes later than it was simulated, in the same order
        assert [action for action, _ in simulated][: len(marked)] == [action for action, _ in marked]
        for (_, before), (_, after), (_, early), (_, late) in zip(
            simulated, simulated[1:], marked, marked[1:], strict=False
        ):
            assert late - early >= after - before - timedelta(seconds=1)
        carried_out = sorted((mark["action"], mark["workflows"]) for mark in ticked.begun("v1"))
        # who is killed between the last one and its mark leaves nothing that drains
        assert carried_out[:3] == [("Cancel", 0), ("Cancel", 2), ("Signal", 8)]
        assert [action for action, _ in carried_out[3:]] in ([], ["Terminate"])
        assert ticked.marks("v2") == {}
