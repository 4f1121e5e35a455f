"""Models of a Worker Deployment on a Temporal server, and of the cluster that runs its pods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from twgen.cluster.deployments import recorded_deployment
from twgen.cluster.marks import described_annotations, own_annotations, own_labels, recorded_annotations
from twgen.cluster.patches import patched_template
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import (
    CurrentVersion,
    Drainage,
    GateRun,
    GateStatus,
    RampingVersion,
    Routing,
    TaskQueue,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
)
from twgen.model.times import later
from twgen.model.world import LiveDeployment, LivePatch, RecordedDeployment
from twgen.planning.version_status import LOOKS_IDLE, WITH_LAST_CURRENT, release_of, shares
from twgen.versioning.build_ids import may_be_ours
from twgen.versioning.pod_templates import described_template, reconnected

NEWEST = "1.32.2"
"""The newest server version that is modelled."""
_A_MOMENT = timedelta(seconds=1)
"""The duration of a batch operation, and the time until a routing change reaches every task queue."""


@dataclass(frozen=True, slots=True)
class Server:
    """The differences between Temporal server versions. `test_simulation_against_temporal.py` checks this."""

    version: str
    reports_when_current: bool
    """Whether a version has `lastCurrentAt`."""
    reports_update_state: bool
    """Whether the routing shows if its last change has reached every task queue."""
    pinned_start_drains: bool
    """Whether an inactive or drained version becomes Draining if a workflow starts pinned to it."""


def server_of(version: str) -> Server:
    """How a server of this version behaves. An unknown version is treated as the newest."""
    release = release_of(version) or (99, 0)
    return Server(
        version=version or NEWEST,
        reports_when_current=release >= WITH_LAST_CURRENT,
        reports_update_state=release >= (1, 31),
        pinned_start_drains=release >= (1, 32),
    )


@dataclass
class TemporalModel:
    """A model of a Worker Deployment in Temporal, with a clock.

    New workflows are pinned to their version, and run for `workflow_duration`. If the duration is zero, no
    workflow is pinned.
    """

    server: Server
    now: datetime
    workflow_duration: timedelta
    drainage_interval: timedelta
    manager: str = ""
    routing: Routing = field(default_factory=Routing)
    versions: dict[str, Version] = field(default_factory=dict)
    held_until: dict[str, datetime] = field(default_factory=dict)
    """When the last pinned workflow of a version ends."""
    gate_ends: dict[tuple[str, str], tuple[datetime, GateStatus]] = field(default_factory=dict)
    """When each running gate ends, and its final status, by build ID and workflow ID."""

    def described(self) -> WorkerDeployment | None:
        """The worker as the server describes it, or None if the server does not know the worker."""
        if not self.versions and self.routing == Routing():
            return None
        routing = self.routing
        if self.server.reports_update_state and not routing.update_state:
            routing = replace(routing, update_state=UpdateState.COMPLETED)
        return WorkerDeployment(
            routing=routing,
            versions=tuple(self._counted(version) for version in self.versions.values()),
            server_version=self.server.version,
            manager_identity=self.manager,
        )

    def is_held(self, build_id: str) -> bool:
        """Whether a workflow that is pinned to the version is running or may start at any moment."""
        until = self.held_until.get(build_id)
        return shares(self.routing).get(build_id, 0) > 0 or (until is not None and until > self.now)

    def polled(self, build_id: str, task_queues: Iterable[TaskQueue]) -> None:
        """Simulate polls of a version's worker on these task queues. The first poll registers the version."""
        version = self.versions.get(build_id) or Version(build_id, VersionStatus.CREATED, self.now)
        is_new = version.status is VersionStatus.CREATED
        queues = version.task_queues or tuple(task_queues)
        all_poll = all(queue.pollers and not queue.silent_seconds for queue in queues)
        if is_new or not version.task_queues or not all_poll:
            self.versions[build_id] = replace(
                version,
                status=VersionStatus.INACTIVE if is_new else version.status,
                task_queues=tuple(replace(queue, pollers=True, silent_seconds=None) for queue in queues),
            )

    def set_current(self, build_id: str) -> None:
        """Send all new workflows outside of a ramp to this version. Empty means unversioned workers."""
        before = self.routing.current.build_id if self.routing.current else ""
        ramp = self.routing.ramping
        if before == build_id:
            return
        # a ramp to another version or to unversioned workers continues
        if ramp and ramp.build_id == build_id and build_id:
            ramp = None
        self._leave(before)
        current = CurrentVersion(build_id, self.now) if build_id else None
        self._route(Routing(current=current, ramping=ramp))
        self._activate(build_id, VersionStatus.CURRENT)

    def set_ramp(self, build_id: str, percentage: float) -> None:
        """Send this share of new workflows to the version, or to unversioned workers if it is empty.

        An empty `build_id` at 0% ends the ramp.
        """
        before = self.routing.ramping
        moves = before is None or before.build_id != build_id
        if before and (moves or not (build_id or percentage)):
            self._leave(before.build_id)
        since = self.now if moves or before is None else before.since
        ramp = RampingVersion(build_id, percentage, since, self.now)
        self._route(replace(self.routing, ramping=ramp if build_id or percentage else None))
        if moves:
            self._activate(build_id, VersionStatus.RAMPING)

    def mark(self, build_id: str, marks: Mapping[str, Any]) -> None:
        """Write entries into a version's metadata."""
        self._change(build_id, metadata={**(self.versions[build_id].metadata or {}), **marks})

    def start_pinned(self, build_id: str, until: datetime) -> None:
        """Start a workflow that is pinned to the version and runs until this time."""
        version = self.versions[build_id]
        self.held_until[build_id] = max(until, self.held_until.get(build_id, until))
        if self.server.pinned_start_drains and version.status in LOOKS_IDLE:
            self._drain(build_id)

    def release(self, build_id: str) -> None:
        """End or move all workflows that are pinned to a version."""
        if self.is_held(build_id):
            self.held_until[build_id] = later(self.now, _A_MOMENT)

    def start_gate(self, build_id: str, run: GateRun, until: datetime, ends_as: GateStatus) -> None:
        """Start a gate workflow that runs on the version until this time."""
        runs = self.versions[build_id].gate_runs or ()
        self._change(build_id, gate_runs=(*runs, run))
        self.gate_ends[build_id, run.workflow_id] = (until, ends_as)
        self.start_pinned(build_id, until)

    def next_event(self) -> datetime | None:
        """The time of the next event that happens without any action, or None if there is none."""
        gates = (until for until, _ in self.gate_ends.values())
        holds = (until for until in self.held_until.values() if until > self.now)
        checks = (self._drains_at(version) for version in self.versions.values())
        events = (*gates, *holds, *checks, self._reaches_task_queues_at())
        return min((moment for moment in events if moment), default=None)

    def advance(self, now: datetime) -> None:
        """Set the clock.

        Due gates end, routing changes reach every task queue, and draining versions without workflows drain.
        """
        self.now = now
        reached = self._reaches_task_queues_at()
        if reached and reached <= now:
            self.routing = replace(self.routing, update_state=UpdateState.COMPLETED)
        for (build_id, workflow_id), (until, ends_as) in list(self.gate_ends.items()):
            if until <= now:
                del self.gate_ends[build_id, workflow_id]
                runs = self.versions[build_id].gate_runs or ()
                ended = (
                    replace(run, status=ends_as)
                    if (run.workflow_id, run.status) == (workflow_id, GateStatus.RUNNING)
                    else run
                    for run in runs
                )
                self._change(build_id, gate_runs=tuple(ended))
        for version in list(self.versions.values()):
            drains_at = self._drains_at(version)
            if drains_at and drains_at <= now:
                drainage = Drainage(VersionStatus.DRAINED, drains_at, drains_at)
                self._change(version.build_id, status=VersionStatus.DRAINED, drainage=drainage)

    def _reaches_task_queues_at(self) -> datetime | None:
        if self.routing.update_state is not UpdateState.IN_PROGRESS:
            return None
        return later(self.routing.changed_at or self.now, _A_MOMENT)

    def _drains_at(self, version: Version) -> datetime | None:
        """When a drainage check first finds no workflow of the version.

        The grace period is one interval too.
        """
        if version.status is not VersionStatus.DRAINING or not version.drainage:
            return None
        interval = self.drainage_interval
        first = later(version.drainage.checked_at or self.now, interval)
        held_until = self.held_until.get(version.build_id, first)
        # the server checks once per interval: return the first check after the last workflow has ended
        return first if held_until <= first else later(first, -(-(held_until - first) // interval) * interval)

    def _leave(self, build_id: str) -> None:
        if build_id not in self.versions:
            return
        if shares(self.routing).get(build_id, 0) > 0:
            end = later(self.now, self.workflow_duration)
            self.held_until[build_id] = max(end, self.held_until.get(build_id, end))
        self._change(build_id, last_deactivated_at=self.now)
        self._drain(build_id)

    def _drain(self, build_id: str) -> None:
        draining = Drainage(VersionStatus.DRAINING, self.now, self.now)
        self._change(build_id, status=VersionStatus.DRAINING, drainage=draining)

    def _route(self, routing: Routing) -> None:
        state = UpdateState.IN_PROGRESS if self.server.reports_update_state else None
        self.routing = replace(routing, update_state=state, changed_at=self.now)

    def _activate(self, build_id: str, status: VersionStatus) -> None:
        if build_id not in self.versions:
            return
        version, now = self.versions[build_id], self.now
        is_current = status is VersionStatus.CURRENT
        self._change(
            build_id,
            status=status,
            first_activated_at=version.first_activated_at or now,
            last_current_at=(
                now if is_current and self.server.reports_when_current else version.last_current_at
            ),
            last_deactivated_at=None,
            drainage=Drainage(VersionStatus.UNSPECIFIED, now, now) if is_current else None,
        )

    def _change(self, build_id: str, **changes: Any) -> None:
        self.versions[build_id] = replace(self.versions[build_id], **changes)

    def _counted(self, version: Version) -> Version:
        """The version with its number of open workflows.

        A real read also counts only workflows of idle versions.
        """
        number = None
        if version.status in LOOKS_IDLE:
            number = max(version.open_workflows or 0, 1) if self.is_held(version.build_id) else 0
        return version if version.open_workflows == number else replace(version, open_workflows=number)


Deployments = Mapping[str, LiveDeployment]


@dataclass
class ClusterModel:
    """The Deployments of one worker. Pods begin to poll when `startup` has passed since their creation."""

    startup: timedelta
    deployments: dict[str, LiveDeployment] = field(default_factory=dict)
    ready_at: dict[str, datetime] = field(default_factory=dict)

    def sync(self, after: Deployments, now: datetime) -> None:
        """Replace the Deployments, and start their new pods."""
        self.deployments = dict(after)
        starting = {build_id for build_id, live in after.items() if live.replicas and not live.serving}
        self.ready_at = {item: self.ready_at.get(item, later(now, self.startup)) for item in starting}

    def next_event(self) -> datetime | None:
        """The next time when pods begin to poll, or None if no pods are starting."""
        return min(self.ready_at.values(), default=None)

    def advance(self, now: datetime) -> None:
        """Set the clock. Pods begin to serve when their startup time is over."""
        for build_id in [item for item, moment in self.ready_at.items() if moment <= now]:
            del self.ready_at[build_id]
            live = self.deployments[build_id]
            self.deployments[build_id] = replace(live, serving=True, available_replicas=live.replicas)

    def serving(self) -> list[str]:
        """The versions whose pods poll."""
        return [build_id for build_id, live in self.deployments.items() if live.serving]


def synced(
    planned: WorkerVersions, before: Deployments, identity: str, now: datetime
) -> dict[str, LiveDeployment]:
    """The Deployments after a sync, which applies the plan and prunes all other unprotected Deployments."""
    rendered = {
        version.build_id: _applied(planned.spec, version, before.get(version.build_id), identity, now)
        for version in planned.versions
        if version.is_rendered
    }
    # a sync prunes only Deployments that twgen rendered
    not_pruned = {item: live for item, live in before.items() if live.protected or not may_be_ours(item)}
    return not_pruned | rendered


def as_described(spec: WorkerSpec, build_id: str, replicas: int) -> RecordedDeployment:
    """The record of a version's Deployment with this many replicas, made from the current spec."""
    template = described_template(spec if build_id == spec.build_id else replace(spec, build_id=build_id))
    return recorded_deployment({"metadata": {}, "spec": {"replicas": replicas, "template": template}})


def _applied(
    spec: WorkerSpec, version: VersionPlan, live: LiveDeployment | None, identity: str, now: datetime
) -> LiveDeployment:
    # applying a manifest without replicas keeps their number, and the rollout scales an autoscaled version
    # from 0 to 1
    size = max(live.replicas if live else 1, 1) if version.replicas is None else version.replicas
    external = version.replicas is None or (live is not None and live.replicas_are_external)
    recorded = _recorded(spec, version, size, identity)
    template = recorded.manifest["spec"]["template"]
    patched = patched_template(template, version.patch).template if version.patch else None
    serves = live is not None and live.serving and size > 0
    return LiveDeployment(
        build_id=version.build_id,
        recorded=recorded,
        name=version.deployment,
        uid=live.uid if live else f"uid of {version.deployment}",
        replicas=size,
        replicas_are_external=external,
        serving=serves,
        protected=version.protected,
        identity=identity or (live.identity if live else ""),
        created_at=live.created_at if live else now,
        template_is_as_applied=not (live and version.action is VersionAction.KEEP)
        or live.template_is_as_applied,
        tracked_by=live.tracked_by if live else "",
        # the rollout's Job removes all other attached objects immediately
        attached=tuple(map(str, version.attached)),
        available_replicas=size if serves else 0,
        patch=LivePatch(version.patch, patched) if patched else None,
    )


def _recorded(spec: WorkerSpec, version: VersionPlan, replicas: int, identity: str) -> RecordedDeployment:
    manifest = (version.recorded or as_described(spec, version.build_id, replicas)).manifest
    if version.replaced_injection is not None:
        manifest = reconnected(spec, version.build_id, manifest, version.replaced_injection)
    annotations = recorded_annotations(manifest) if version.recorded else described_annotations(spec)
    metadata = {
        **manifest["metadata"],
        "labels": own_labels(spec, version.build_id),
        "annotations": annotations | own_annotations(spec, version, identity),
    }
    pace = spec.pace if version.build_id == spec.build_id else {}
    body = {**manifest["spec"], **pace, "replicas": replicas}
    return recorded_deployment({**manifest, "metadata": metadata, "spec": body})
