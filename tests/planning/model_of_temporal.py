"""A model of a worker's world: what Temporal and the cluster do with the changes that a plan asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.strategies import NOW, SIZED_BY_HPA, live_manifest
from twgen.model.plan import RoutingAction, WorkerPlan
from twgen.model.spec import WorkerSpec
from twgen.model.world import (
    CurrentVersion,
    Drainage,
    GateRun,
    GateStatus,
    RampingVersion,
    RecordedDeployment,
    Routing,
    TaskQueue,
    TaskQueueType,
    Version,
    VersionStatus,
    WorkerDeployment,
    WorkerWorld,
    World,
)
from twgen.planning.plan import Manager, make_plan
from twgen.records.deployments import live_deployments
from twgen.rendering.manifests import render_manifests

ME = Manager("me", forced=True)
DRAINS_AFTER = timedelta(minutes=3)
QUEUES = (TaskQueue("main", TaskQueueType.WORKFLOW, pollers=True),)


@dataclass
class ModelOfTemporal:
    """One worker's world that moves with its clock; `held` are versions whose workflows never end."""

    spec: WorkerSpec
    held: frozenset[str] = frozenset()
    now: datetime = NOW
    manager: str = "me"
    routing: Routing = field(default_factory=Routing)
    versions: dict[str, Version] = field(default_factory=dict)
    deployments: dict[str, dict[str, Any]] = field(default_factory=dict)
    ledger: Mapping[tuple[str, str], RecordedDeployment] = field(default_factory=dict)

    def world(self) -> World:
        """What a reader would see now."""
        temporal = WorkerDeployment(
            routing=self.routing,
            versions=tuple(self.versions.values()),
            manager_identity=self.manager if self.versions else "",
            server_version="1.32.0",
        )
        live = tuple(live_deployments(list(self.deployments.values())))
        known = WorkerWorld("shop/payments", "default", temporal if self.versions else None, live)
        return World(self.now, {(known.name, known.temporal_namespace): known}, self.ledger)

    def plan(self) -> WorkerPlan:
        """What twgen would do now."""
        (worker,) = make_plan([self.spec], self.world(), self.now, ME).workers
        return worker

    def apply(self) -> WorkerPlan:
        """Do it: sync the manifests, then make the change of traffic."""
        plan = self.plan()
        synced = {}
        for manifest in render_manifests([replace(plan.versions, spec=self._alone())], [], ME.of):
            build_id = manifest["metadata"]["labels"]["temporal.io/build-id"]
            synced[build_id] = self._synced(manifest, self.deployments.get(build_id))
        for build_id, live in self.deployments.items():
            if "Prune=false" in live["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]:
                synced.setdefault(build_id, live)
        self.deployments = synced
        self._route(plan)
        self._start(plan)
        return plan

    def pass_time(self, length: timedelta) -> None:
        """Let workers poll, gates complete, changes reach every task queue, and idle versions drain."""
        self.now += length
        self.routing = replace(self.routing, update_state=None)
        for build_id in self.serving():
            known = self.versions.get(build_id) or Version(build_id, VersionStatus.CREATED, self.now)
            polls = known.status is VersionStatus.CREATED
            self.versions[build_id] = replace(
                known, status=VersionStatus.INACTIVE if polls else known.status, task_queues=QUEUES
            )
        for version in list(self.versions.values()):
            self.versions[version.build_id] = replace(version, gate_runs=_completed(version))
            left = version.last_deactivated_at
            idle = version.status is VersionStatus.DRAINING and version.build_id not in self.held
            if idle and left and self.now - left > DRAINS_AFTER:
                drained = Drainage(VersionStatus.DRAINED, left + DRAINS_AFTER)
                self._set(version.build_id, status=VersionStatus.DRAINED, drainage=drained, open_workflows=0)

    def serving(self) -> list[str]:
        """The versions that have pods."""
        return [build_id for build_id, live in self.deployments.items() if live["spec"]["replicas"]]

    def deploy(self, build_id: str) -> None:
        """Change the image in Git."""
        self.spec = replace(self.spec, build_id=build_id)

    def _alone(self) -> WorkerSpec:
        return replace(self.spec, attached=())

    def _synced(self, manifest: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
        build_id = manifest["metadata"]["labels"]["temporal.io/build-id"]
        old = before or live_manifest(self.spec, build_id, 1, creationTimestamp=self.now.isoformat())
        # the rollout brings an autoscaled version from zero to one
        replicas = manifest["spec"].get("replicas", max(old["spec"]["replicas"], 1))
        live = live_manifest(self.spec, build_id, replicas)
        live["metadata"] = old["metadata"] | manifest["metadata"]
        live["spec"] = manifest["spec"] | {"replicas": replicas}
        if "replicas" not in manifest["spec"]:
            live["metadata"]["managedFields"] = SIZED_BY_HPA
        return live

    def _start(self, plan: WorkerPlan) -> None:
        for gate in plan.gates:
            version = self.versions[self.spec.build_id]
            run = GateRun(gate.task_queue, gate.workflow_id, GateStatus.RUNNING, self.now)
            self.versions[self.spec.build_id] = replace(version, gate_runs=(*(version.gate_runs or ()), run))

    def _route(self, plan: WorkerPlan) -> None:
        change, routing = plan.routing, self.routing
        match change.action:
            case RoutingAction.SET_CURRENT:
                self._leave(routing.current.build_id if routing.current else "")
                self._set(change.build_id, status=VersionStatus.CURRENT, last_current_at=self.now)
                self.routing = Routing(CurrentVersion(change.build_id or "", self.now))
            case RoutingAction.SET_RAMP:
                if routing.ramping and routing.ramping.build_id != change.build_id:
                    self._leave(routing.ramping.build_id)
                self._set(change.build_id, status=VersionStatus.RAMPING)
                ramp = RampingVersion(change.build_id or "", change.percentage or 0, self.now, self.now)
                self.routing = replace(routing, ramping=ramp)
            case RoutingAction.CLEAR_RAMP:
                self._leave(routing.ramping.build_id if routing.ramping else "")
                self.routing = replace(routing, ramping=None)

    def _leave(self, build_id: str) -> None:
        if build_id in self.versions:
            draining = Drainage(VersionStatus.DRAINING, self.now)
            self._set(
                build_id, status=VersionStatus.DRAINING, last_deactivated_at=self.now, drainage=draining
            )

    def _set(self, build_id: str | None, **changes: Any) -> None:
        version = self.versions[build_id or ""]
        first = version.first_activated_at or self.now
        self.versions[version.build_id] = replace(version, first_activated_at=first, **changes)


def _completed(version: Version) -> tuple[GateRun, ...] | None:
    if version.gate_runs is None:
        return None
    return tuple(
        replace(run, status=GateStatus.COMPLETED) if run.status is GateStatus.RUNNING else run
        for run in version.gate_runs
    )
