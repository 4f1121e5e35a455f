"""A model of one worker's cluster: the Deployments after a sync, and when pods poll."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from twgen.cluster.deployments import recorded_deployment
from twgen.cluster.marks import (
    described_annotations,
    own_annotations,
    own_labels,
    recorded_annotations,
)
from twgen.cluster.patches import patched_template
from twgen.model.plan import VersionAction, VersionPlan, WorkerVersions
from twgen.model.spec import WorkerSpec
from twgen.model.times import later
from twgen.model.world import LiveDeployment, LivePatch, RecordedDeployment
from twgen.versioning.build_ids import connection_hash, may_be_ours
from twgen.versioning.pod_templates import described_template, reconnected

Deployments = Mapping[str, LiveDeployment]
"""Live Deployments by build ID."""


@dataclass
class ClusterModel:
    """The Deployments of one worker, whose pods poll `startup` after they are created."""

    startup: timedelta
    deployments: dict[str, LiveDeployment] = field(default_factory=dict)
    ready_at: dict[str, datetime] = field(default_factory=dict)

    def sync(self, after: Deployments, now: datetime) -> None:
        """Set the Deployments; new pods begin to start."""
        self.deployments = dict(after)
        starting = {build_id for build_id, live in after.items() if live.replicas and not live.serving}
        self.ready_at = {item: self.ready_at.get(item, later(now, self.startup)) for item in starting}

    def next_event(self) -> datetime | None:
        """When pods begin to poll next; None: never."""
        return min(self.ready_at.values(), default=None)

    def advance(self, now: datetime) -> None:
        """Let time pass: pods serve once their startup time is over."""
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
    """The Deployments once the planned ones are applied and others pruned, unless they are protected."""
    rendered = {
        version.build_id: _applied(planned.spec, version, before.get(version.build_id), identity, now)
        for version in planned.versions
        if version.is_rendered
    }
    # a sync prunes only Deployments that were rendered
    not_pruned = {item: live for item, live in before.items() if live.protected or not may_be_ours(item)}
    return not_pruned | rendered


def as_described(spec: WorkerSpec, build_id: str, replicas: int) -> RecordedDeployment:
    """The record of a version's Deployment as the spec describes it, with this number of replicas."""
    template = described_template(spec if build_id == spec.build_id else replace(spec, build_id=build_id))
    return RecordedDeployment(
        manifest={"metadata": {}, "spec": {"replicas": replicas, "template": template}},
        template_hash=spec.template.hash,
        connection_hash=connection_hash(spec.connection),
        address=spec.connection.host_port,
        temporal_namespace=spec.temporal_namespace,
        worker_deployment=spec.worker_deployment,
        replicas=replicas,
    )


def _applied(
    spec: WorkerSpec, version: VersionPlan, live: LiveDeployment | None, identity: str, now: datetime
) -> LiveDeployment:
    # a manifest without replicas keeps the number; the rollout scales an autoscaled version from zero to one
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
        # the Job of the rollout removes any other attached objects at once
        attached=tuple(map(str, version.attached)),
        available_replicas=size if serves else 0,
        patch=LivePatch(version.patch, patched) if patched else None,
    )


def _recorded(spec: WorkerSpec, version: VersionPlan, replicas: int, identity: str) -> RecordedDeployment:
    before = version.recorded
    if not before:
        described = as_described(spec, version.build_id, replicas)
        annotations, manifest = described_annotations(spec), dict(described.manifest)
    else:
        described, manifest = None, dict(before.manifest)
        if version.replaced_injection is not None:
            manifest = reconnected(spec, version.build_id, manifest, version.replaced_injection)
        annotations = recorded_annotations(manifest)
    manifest["metadata"] = {
        **manifest["metadata"],
        "labels": own_labels(spec, version.build_id),
        "annotations": annotations | own_annotations(spec, version, identity),
    }
    pace = spec.pace if version.build_id == spec.build_id else {}
    manifest["spec"] = {**manifest["spec"], **pace, "replicas": replicas}
    return replace(described, manifest=manifest) if described else recorded_deployment(manifest)
