"""Hypothesis strategies: any spec of one worker, and any world that it may meet."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.edits import EDITS
from twgen.cluster.deployments import live_deployments, recorded_deployment
from twgen.cluster.patches import patch_text, patched_template
from twgen.model.analysis import (
    Analysis,
    Backlog,
    BacklogAge,
    ClosedStatus,
    FailureCount,
    Failures,
    Measurement,
    Metric,
    NoData,
    OnFailure,
    Point,
    PrometheusQuery,
    ReportedProblems,
    StuckWorkflows,
    WorkflowFailures,
)
from twgen.model.draining import BatchAction, DrainingAction, DrainingEntry
from twgen.model.policy import (
    ConnectionChanges,
    NoPollers,
    Replay,
    ReplayBefore,
    Sample,
    VersionPatch,
    WhenNoPollers,
)
from twgen.model.problem import Document
from twgen.model.spec import (
    AttachedResource,
    AttachedWhile,
    Gate,
    Rollout,
    RolloutStep,
    Strategy,
    Sunset,
    WorkerSpec,
)
from twgen.model.temporal import (
    CurrentVersion,
    Drainage,
    GateRun,
    GateStatus,
    OtherWorker,
    RampingVersion,
    Routing,
    TaskQueue,
    TaskQueueType,
    UpdateState,
    Version,
    VersionStatus,
    WorkerDeployment,
)
from twgen.model.world import ReplayRun, ReplayState, WorkerWorld, World
from twgen.rendering.deployments import target_deployment
from twgen.specs.parse import parse_specs
from twgen.specs.spec_document import NamespaceRule
from twgen.versioning.names import attached_resource_name

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TARGET, OTHERS = "v3", ("v0", "v1", "v2")
STEPS = (
    RolloutStep(5, timedelta(minutes=10)),
    RolloutStep(33.3, timedelta(minutes=30)),
    RolloutStep(75, timedelta(hours=1)),
)


@cache
def a_spec(name: str = "payments", image: str = "payments:v3", build_id: str = TARGET) -> WorkerSpec:
    """A worker as it is parsed, under a build ID that is easy to read."""
    worker = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "workerOptions": {
                "connectionRef": {"name": "temporal"},
                "temporalNamespace": "default",
                "unsafeCustomBuildID": build_id,
            },
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"spec": {"containers": [{"name": "worker", "image": image}]}},
        },
    }
    connection = {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "Connection",
        "metadata": {"name": "temporal", "namespace": "shop"},
        "spec": {"hostPort": "temporal.example.com:7233"},
    }
    specs = parse_specs([Document("", 0, worker), Document("", 1, connection)], NamespaceRule())
    assert specs.problems == ()
    return replace(specs.workers[0], replicas=3)


def with_policy(spec: WorkerSpec, **policy: Any) -> WorkerSpec:
    """The same worker under another policy."""
    return replace(spec, policy=replace(spec.policy, **policy))


def live_manifest(spec: WorkerSpec, build_id: str, replicas: int, **metadata: Any) -> dict[str, Any]:
    """A Deployment of a version as an API server returns it."""
    manifest = target_deployment(replace(spec, build_id=build_id))
    manifest["metadata"] |= {"uid": f"uid-{build_id}", "generation": 1} | metadata
    manifest["spec"]["replicas"] = replicas
    available = {"type": "Available", "status": "True" if replicas else "False"}
    manifest["status"] = {
        "observedGeneration": 1,
        "availableReplicas": replicas,
        "conditions": [available],
    }
    return manifest


SIZED_BY_HPA = [{"manager": "hpa", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]
"""Field managers of a Deployment whose replicas an autoscaler sets."""
AUTOSCALER = AttachedResource(
    "cpu",
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {"scaleTargetRef": {}, "minReplicas": 2, "maxReplicas": 9},
    },
    autoscales=True,
)
BUDGET = AttachedResource(
    "budget",
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"labels": {"team": "{{ .TemporalNamespace }}"}},
        "spec": {"selector": {"matchLabels": {}}, "maxUnavailable": 1},
    },
    autoscales=False,
)
BUSY_AUTOSCALER = replace(AUTOSCALER, when=frozenset(map(AttachedWhile, ("Target", "Current", "Ramping"))))
DRAINING_AUTOSCALER = replace(
    AUTOSCALER, name="draining", when=frozenset(map(AttachedWhile, ("Draining", "Drained")))
)
CURRENT_BUDGET = replace(BUDGET, when=frozenset({AttachedWhile.CURRENT}))
"""Attached resources that not every version gets."""

IMAGE_PATCH = {"name": "worker", "image": "payments:v1-cve"}
ENV_PATCH = {"name": "worker", "env": [{"name": "LEVEL", "value": "debug"}]}
WHOLE_PATCH = {
    "name": "worker",
    "image": "payments:v1-cve",
    "resources": {"requests": {"cpu": "1"}},
    "env": [
        {"name": "LEVEL", "value": "info"},
        {"name": "KEY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
}
STRAY_PATCH = {"name": "sidecar", "image": "sidecar:v2"}
"""Containers of patches; no version has the last one."""


def patched(manifest: dict[str, Any], *containers: dict[str, Any]) -> dict[str, Any]:
    """A version's Deployment as it is once a patch was applied to it."""
    template, replaced = patched_template(manifest["spec"]["template"], containers)
    annotations = manifest["metadata"]["annotations"] | {"twgen.io/patched": patch_text(containers, replaced)}
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "annotations": annotations},
        "spec": {**manifest["spec"], "template": template},
    }


times = st.none() | st.integers(0, 200_000).map(lambda seconds: NOW - timedelta(seconds=seconds))
build_ids = st.sampled_from((TARGET, *OTHERS))
BY_OTHERS = ("1.4.0+build7", "2026-11-21T05:24:15Z", "release 7", "v" * 64)
"""Build IDs that Temporal takes and no label does."""
any_build_ids = (
    build_ids
    | st.sampled_from(BY_OTHERS)
    | st.text(
        st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=80
    ).filter(lambda text: not text.startswith("__"))
)
"""Those of twgen's versions, and of such as somebody versioned by hand."""
counts = st.none() | st.integers(0, 3)
patched_containers = st.sampled_from(
    ((), (IMAGE_PATCH,), (ENV_PATCH,), (WHOLE_PATCH, STRAY_PATCH), (STRAY_PATCH,))
)
patches = st.lists(
    st.builds(
        VersionPatch,
        build_ids,
        containers=patched_containers,
        replicas=st.none() | st.integers(1, 4),
        scaledown_delay=st.none() | st.just(timedelta(hours=5)),
        delete_delay=st.none() | st.just(timedelta()),
    ),
    max_size=3,
    unique_by=lambda patch: patch.build_id,
).map(tuple)
drainages = st.builds(
    Drainage,
    st.sampled_from((VersionStatus.DRAINING, VersionStatus.DRAINED, VersionStatus.UNSPECIFIED)),
    changed_at=times,
)
task_queues = st.builds(
    TaskQueue,
    st.sampled_from(("main", "aux")),
    st.sampled_from((TaskQueueType.WORKFLOW, TaskQueueType.ACTIVITY)),
    pollers=st.none() | st.booleans(),
    unversioned_pollers=st.none() | st.booleans(),
    silent_seconds=st.none() | st.integers(0, 600),
    has_tasks=st.none() | st.booleans(),
) | st.just(TaskQueue("temporal-sys/worker-commands/shop/pod-1", TaskQueueType.NEXUS, pollers=True))
failure_counts = st.sampled_from(
    (FailureCount(0, 0), FailureCount(40, 0), FailureCount(40, 20), FailureCount(3, 3))
)
MEASURES = {
    "failures": WorkflowFailures(0.02, (ClosedStatus.FAILED,), (), 0.01, 10),
    "compared": WorkflowFailures(None, (ClosedStatus.FAILED,), (), 0.01, 10),
    "stuck": ReportedProblems(0),
    "backlog": BacklogAge(timedelta(minutes=2)),
    "errors": PrometheusQuery("errors", "", None, 0.5, timedelta(minutes=1), 1, NoData.WAIT),
}
"""What a policy measures, by the name of its metric."""
measurements = st.builds(
    Measurement,
    st.sampled_from(sorted(MEASURES)),
    times.filter(bool),
    failures=st.none() | st.builds(Failures, failure_counts, st.none() | failure_counts),
    stuck=st.none() | st.builds(StuckWorkflows, st.integers(0, 2), st.just(("order-1",)), st.booleans()),
    backlog=st.none()
    | st.builds(Backlog, st.just("main"), st.integers(0, 600), st.floats(0, 9), st.floats(0, 9)),
    points=st.none()
    | st.lists(
        st.builds(Point, times.filter(bool), st.none() | st.sampled_from((0.0, 0.7, -1e300))), max_size=4
    ).map(tuple),
    problem=st.sampled_from(("", "PERMISSION_DENIED")),
)
gate_runs = st.builds(
    GateRun,
    st.sampled_from(("main", "aux")),
    st.sampled_from((f"test-shop/payments:{TARGET}-main", f"test-shop/payments:{TARGET}-aux")),
    st.sampled_from(GateStatus),
    times,
    st.sampled_from(("", "no such shop")),
    st.sampled_from(("", "Smoke", "Smokee")),
)


ENDINGS = (
    DrainingEntry(timedelta(hours=1), DrainingAction(BatchAction.SIGNAL, ("Poller",), signal_name="stop")),
    DrainingEntry(timedelta(days=1), DrainingAction(BatchAction.CANCEL)),
    DrainingEntry(timedelta(days=2), DrainingAction(BatchAction.CANCEL)),
)


def analysis_of(on_failure: OnFailure) -> Analysis:
    """Of all that can be measured."""
    metrics = tuple(Metric(name, measure) for name, measure in MEASURES.items())
    return Analysis(metrics, on_failure, timedelta(minutes=1))


specs = st.builds(
    lambda rollout, replicas, sunset, changes, custom, attached, draining, patches, measured: replace(
        a_spec(),
        rollout=rollout,
        replicas=replicas,
        sunset=sunset,
        has_custom_build_id=custom,
        attached=attached,
        policy=replace(
            a_spec().policy,
            connection_changes=changes,
            draining_replicas=draining,
            patches=patches,
            unserved=measured[0],
            analysis=measured[1],
            draining=measured[2],
            replay=measured[3],
        ),
    ),
    st.builds(
        Rollout,
        st.sampled_from(Strategy),
        st.just(STEPS),
        st.none() | st.just(Gate("Smoke")),
    ),
    counts,
    st.builds(Sunset, st.just(timedelta(hours=1)), st.just(timedelta(hours=24))),
    st.sampled_from(ConnectionChanges),
    st.booleans(),
    st.sampled_from(
        (
            (),
            (BUDGET,),
            (AUTOSCALER, BUDGET),
            (CURRENT_BUDGET, BUSY_AUTOSCALER),
            (BUSY_AUTOSCALER, DRAINING_AUTOSCALER),
            (CURRENT_BUDGET, DRAINING_AUTOSCALER),
        )
    ),
    st.none() | st.integers(1, 4),
    st.just(()) | patches,
    st.tuples(
        st.builds(
            NoPollers,
            st.sampled_from((timedelta(minutes=2), timedelta(minutes=5))),
            st.sampled_from(WhenNoPollers),
        ),
        st.none() | st.sampled_from(OnFailure).map(analysis_of),
        st.sampled_from(((), ENDINGS[:1], ENDINGS)),
        st.none()
        | st.builds(Replay, st.just(("replay",)), st.just(Sample(5, 1000)), st.sampled_from(ReplayBefore)),
    ),
)
versions = st.builds(
    Version,
    any_build_ids,
    st.sampled_from([status for status in VersionStatus if status is not VersionStatus.NOT_REGISTERED]),
    created_at=times,
    first_activated_at=times,
    last_current_at=times,
    last_deactivated_at=times,
    drainage=st.none() | drainages,
    open_workflows=counts,
    auto_upgrade_workflows=counts,
    metadata=st.none()
    | st.sampled_from(
        ({}, {"twgen.io/aborted": {"by": "a person"}}, {"twgen.io/drained-by": {"Cancel-1": "by hand"}})
    ),
    task_queues=st.none()
    | st.lists(task_queues, max_size=3, unique_by=lambda queue: (queue.name, queue.type)).map(tuple),
    gate_runs=st.none() | st.lists(gate_runs, max_size=2).map(tuple),
    measurements=st.none()
    | st.lists(measurements, max_size=3, unique_by=lambda measured: measured.metric).map(tuple),
)
routings = st.builds(
    Routing,
    current=st.none() | st.builds(CurrentVersion, any_build_ids, times),
    ramping=st.none()
    | st.builds(
        RampingVersion,
        any_build_ids | st.just(""),
        st.sampled_from((0.0, 5.0, 33.299999, 40.0, 75.0, 100.0)),
        times,
        times,
    ),
    update_state=st.none() | st.sampled_from(UpdateState),
    changed_at=times,
).filter(
    lambda found: not (found.current and found.ramping) or found.current.build_id != found.ramping.build_id
)
temporals = st.builds(
    WorkerDeployment,
    routing=routings,
    versions=st.lists(versions, max_size=4, unique_by=lambda version: version.build_id).map(tuple),
    manager_identity=st.sampled_from(("", "me", "somebody else")),
    server_version=st.sampled_from(("", "1.29.1", "1.32.0")),
)


BY_HAND = "-by-hand"
"""How the name of a version's second Deployment ends."""


def _twin(manifest: dict[str, Any], replicas: int) -> dict[str, Any]:
    """A second Deployment of the same version, made by hand."""
    metadata = manifest["metadata"] | {
        "name": f"{manifest['metadata']['name']}-by-hand",
        "uid": "uid-of-a-twin",
    }
    return manifest | {"metadata": metadata, "spec": manifest["spec"] | {"replicas": replicas}}


def made_by_others(build_id: str, replicas: int) -> dict[str, Any]:
    """The Deployment of a version that somebody versioned by hand: only its variables tell which it is."""
    manifest = live_manifest(a_spec(), build_id, replicas, annotations={})
    manifest["metadata"] |= {"name": f"payments{BY_HAND}", "labels": {"app": "payments"}}
    manifest["spec"]["selector"] = {"matchLabels": {"app": "payments"}}
    manifest["spec"]["template"]["metadata"] = {"labels": {"app": "payments"}}
    return manifest


@st.composite
def deployments(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Live Deployments of some versions, in any state of protection, age and ownership."""
    manifests = []
    if draw(st.integers(0, 9)) == 0:
        manifests.append(made_by_others(draw(st.sampled_from(BY_OTHERS)), draw(st.integers(0, 4))))
    for build_id in draw(st.lists(build_ids, max_size=4, unique=True)):
        manifest = live_manifest(a_spec(), build_id, draw(st.integers(0, 4)))
        metadata = manifest["metadata"]
        if draw(st.booleans()):
            metadata["annotations"]["argocd.argoproj.io/sync-options"] = "ServerSideApply=true"
        if draw(st.booleans()):
            age = timedelta(seconds=draw(st.integers(0, 3000)))
            metadata["creationTimestamp"] = (NOW - age).isoformat()
        if draw(st.booleans()):
            metadata["managedFields"] = SIZED_BY_HPA
        template = manifest["spec"]["template"]["metadata"]["annotations"]
        template["temporal.io/pod-template-spec-hash"] = draw(
            st.sampled_from(("", "another", template["temporal.io/pod-template-spec-hash"]))
        )
        template["temporal.io/connection-spec-hash"] = draw(
            st.sampled_from(("", "another", template["temporal.io/connection-spec-hash"]))
        )
        copies = [
            f"{item.kind}/{attached_resource_name('payments', item.name, build_id)}"
            for item in (AUTOSCALER, DRAINING_AUTOSCALER, BUDGET)
        ]
        if there := draw(st.lists(st.sampled_from(copies), max_size=2, unique=True)):
            metadata["annotations"]["twgen.io/attached"] = ",".join(there)
        if containers := draw(patched_containers):
            manifest = patched(manifest, *containers)
        draw(st.sampled_from(EDITS))(manifest)
        manifests.append(manifest)
        if draw(st.integers(0, 9)) == 0:
            manifests.append(_twin(manifest, draw(st.integers(0, 4))))
    return manifests


other_workers = st.builds(
    OtherWorker, st.sampled_from(("", "payments")), st.sampled_from(("", "v7")), st.just("main")
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any world of the worker."""
    manifests = draw(st.none() | deployments())
    locked = draw(st.lists(any_build_ids, max_size=3, unique=True))
    ledger = {
        ("shop/payments", item): recorded_deployment(live_manifest(a_spec(), item, 2)) for item in locked
    }
    found = world(draw(st.none() | temporals), manifests).remembering(ledger)
    counted = draw(st.none() | st.sampled_from((0, 99, 100, 1000)))
    replay = draw(st.none() | st.builds(ReplayRun, st.sampled_from(ReplayState), st.just("replay-1")))
    others = tuple(draw(st.lists(other_workers, max_size=2)))
    workers = {
        key: replace(one, worker_deployments=counted, replay=replay, other_workers=others)
        for key, one in found.workers.items()
    }
    return replace(found, workers=workers)


def world(temporal: WorkerDeployment | None, manifests: list[dict[str, Any]] | None) -> World:
    """A world of the worker, at NOW."""
    live = None if manifests is None else tuple(live_deployments(manifests))
    worker = WorkerWorld("shop/payments", "default", temporal, live)
    return World(NOW, {worker.key: worker})


def may_have_work(build_id: str, found: World) -> bool:
    """What the first promise says of a version, in words of its own and not the planner's."""
    (worker,) = found.workers.values()
    temporal = worker.temporal
    live = next((item for item in worker.deployments or () if item.build_id == build_id), None)
    if temporal is None or build_id in routed_versions(temporal):
        return True
    version = next((item for item in temporal.versions if item.build_id == build_id), None)
    if version is None:
        created = live.created_at if live else None
        return not created or found.taken_at - created <= timedelta(minutes=10)
    return bool(version.open_workflows) or not _is_idle(version)


def routed_versions(temporal: WorkerDeployment | None) -> set[str]:
    """The versions that new workflows go to."""
    current, ramping = (temporal.routing.current, temporal.routing.ramping) if temporal else (None, None)
    found = {current.build_id if current else "", ramping.build_id if ramping else ""}
    return found - {""}


def _is_idle(version: Version) -> bool:
    draining = version.drainage and version.drainage.status
    if version.status is VersionStatus.DRAINED:
        return draining in {None, VersionStatus.DRAINED}
    active = version.first_activated_at or version.last_current_at or version.last_deactivated_at
    never_active = version.status is VersionStatus.INACTIVE and not active
    return never_active and draining is not VersionStatus.DRAINING
