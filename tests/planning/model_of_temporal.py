"""A model of a worker's world: what Temporal and the cluster do with the changes that a plan asks for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.strategies import NOW, live_manifest
from twgen.model.plan import RoutingAction, WorkerPlan
from twgen.model.spec import WorkerSpec
from twgen.model.world import (
    CurrentVersion,
    Drainage,
    RampingVersion,
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
    routing: Routing = field(default_factory=Routing)
    versions: dict[str, Version] = field(default_factory=dict)
    deployments: dict[str, dict[str, Any]] = field(default_factory=dict)

    def world(self) -> World:
        """What a reader would see now."""
        temporal = WorkerDeployment(
            routing=self.routing,
            versions=tuple(self.versions.values()),
            manager_identity="me" if self.versions else "",
            server_version="1.32.0",
        )
        live = tuple(live_deployments(list(self.deployments.values())))
        known = WorkerWorld("shop/payments", "default", temporal if self.versions else None, live)
        return World(self.now, {(known.name, known.temporal_namespace): known})

    def plan(self) -> WorkerPlan:
        """What twgen would do now."""
        (worker,) = make_plan([self.spec], self.world(), self.now, ME).workers
        return worker

    def apply(self) -> WorkerPlan:
        """Do it: sync the manifests, then make the change of traffic."""
        plan = self.plan()
        synced = {}
        for manifest in render_manifests([plan.versions], [], ME.of):
            build_id = manifest["metadata"]["labels"]["temporal.io/build-id"]
            synced[build_id] = self._synced(build_id, manifest)
        for build_id, live in self.deployments.items():
            if "Prune=false" in live["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]:
                synced.setdefault(build_id, live)
        self.deployments = synced
        self._route(plan)
        return plan

    def pass_time(self, length: timedelta) -> None:
        """Let workers register and idle versions drain."""
        self.now += length
        for build_id, live in self.deployments.items():
            if live["spec"]["replicas"] and build_id not in self.versions:
                self.versions[build_id] = Version(
                    build_id, VersionStatus.INACTIVE, created_at=self.now, task_queues=QUEUES
                )
        for version in list(self.versions.values()):
            left = version.last_deactivated_at
            idle = version.status is VersionStatus.DRAINING and version.build_id not in self.held
            if idle and left and self.now - left > DRAINS_AFTER:
                drained = Drainage(VersionStatus.DRAINED, left + DRAINS_AFTER)
                self._set(version.build_id, status=VersionStatus.DRAINED, drainage=drained, open_workflows=0)

    def serving(self) -> Iterator[str]:
        """The versions that have pods."""
        return (build_id for build_id, live in self.deployments.items() if live["spec"]["replicas"])

    def deploy(self, build_id: str) -> None:
        """Change the image in Git."""
        self.spec = replace(self.spec, build_id=build_id)

    def _synced(self, build_id: str, manifest: dict[str, Any]) -> dict[str, Any]:
        replicas = manifest["spec"].get("replicas", 1)
        created = self.deployments.get(build_id, {}).get("metadata", {}).get("creationTimestamp")
        live = live_manifest(self.spec, build_id, replicas, creationTimestamp=created or self.now.isoformat())
        live["metadata"]["annotations"] = manifest["metadata"]["annotations"]
        return live

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
