"""A Snapshot document: the world as it was. What was not read is absent, what does not exist is null."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from twgen.cluster.deployments import DEPLOYMENT, live_deployment
from twgen.model.analysis import Backlog, FailureCount, Failures, Measurement, Point, StuckWorkflows
from twgen.model.histories import ReplayRun, ReplayState
from twgen.model.paths import Path, parse_path, value_at
from twgen.model.problem import Finding, quoted
from twgen.model.record_shapes import Field, excerpt, record
from twgen.model.shapes import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    TIME,
    Findings,
    Shape,
    choice,
    constant,
    described,
    listing,
    mapping,
    number,
    refuse,
    text,
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
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, WorkerWorld, World
from twgen.versioning.names import BUILD_ID_LABEL, DEPLOYMENT_API, TWGEN_API

KIND = "Snapshot"

_NAME = text(least=1)
_CURRENT = record(CurrentVersion, Field("buildID", _NAME), Field("since", TIME))
_RAMPING = record(
    RampingVersion,
    Field("buildID", TEXT),
    Field("percentage", number(0, 100)),
    Field("since", TIME),
    Field("percentageChangedAt", TIME),
)
_ROUTING_FIELDS = record(
    Routing,
    Field("updateState", choice(*UpdateState)),
    Field("changedAt", TIME),
    Field("current", _CURRENT),
    Field("ramping", _RAMPING),
)


def _read_routing(value: Any, path: Path, findings: Findings) -> Routing | None:
    before = len(findings)
    routing: Routing | None = _ROUTING_FIELDS.read(value, path, findings)
    if routing and len(findings) == before and routing.current and routing.ramping:
        current, ramping = routing.current.build_id, routing.ramping.build_id
        if current == ramping:
            refuse(findings, (path, "ramping"), f"{quoted(current)} is current, so it cannot ramp")
    return routing


_ROUTING = Shape(_read_routing, _ROUTING_FIELDS.write, _ROUTING_FIELDS.schema)
_DRAINAGE = record(
    Drainage,
    Field("status", choice(VersionStatus.DRAINING, VersionStatus.DRAINED, VersionStatus.UNSPECIFIED)),
    Field("changedAt", TIME),
    Field("checkedAt", TIME),
)
_TASK_QUEUE = record(
    TaskQueue,
    Field("name", _NAME),
    Field("type", choice(*TaskQueueType)),
    Field("pollers", FLAG),
    Field("unversionedPollers", FLAG),
    Field("silentSeconds", COUNT),
    Field("hasTasks", FLAG),
)
_GATE_RUN = record(
    GateRun,
    Field("taskQueue", _NAME),
    Field("workflowID", _NAME),
    Field("status", choice(*GateStatus)),
    Field("startedAt", TIME),
    Field("failure", TEXT, absent=""),
)
_COUNT = record(FailureCount, Field("started", COUNT), Field("failed", COUNT))
_STUCK = record(
    StuckWorkflows,
    Field("number", COUNT),
    Field("first", listing(TEXT), absent=()),
    Field("isAll", FLAG, absent=True),
)
_BACKLOG = record(
    Backlog,
    Field("taskQueue", TEXT),
    Field("seconds", COUNT),
    Field("added", NUMBER),
    Field("dispatched", NUMBER),
)
_MEASUREMENT = record(
    Measurement,
    Field("metric", _NAME),
    Field("since", TIME),
    Field("failures", record(Failures, Field("target", _COUNT), Field("current", _COUNT))),
    Field("stuck", _STUCK),
    Field("backlog", _BACKLOG),
    Field("points", listing(record(Point, Field("at", TIME), Field("value", NUMBER)))),
    Field("problem", TEXT, absent=""),
)
_VERSION = record(
    Version,
    Field("buildID", _NAME),
    Field("status", choice(*(status for status in VersionStatus if status != VersionStatus.NOT_REGISTERED))),
    Field("createdAt", TIME),
    Field("firstActivatedAt", TIME),
    Field("lastCurrentAt", TIME),
    Field("lastDeactivatedAt", TIME),
    Field("drainage", _DRAINAGE),
    Field("openWorkflows", COUNT),
    Field("oldestOpenAt", TIME),
    Field("openAutoUpgradeWorkflows", COUNT, attribute="auto_upgrade_workflows"),
    Field("metadata", mapping()),
    Field("taskQueues", listing(_TASK_QUEUE, lambda queue: (queue.type.value, queue.name), "task queue")),
    Field("gateRuns", listing(_GATE_RUN)),
    Field("measurements", listing(_MEASUREMENT, lambda measured: measured.metric, "metric")),
)
_WORKER_DEPLOYMENT = record(
    WorkerDeployment,
    Field("conflictToken", text(r"^[A-Za-z0-9+/]*={0,2}$(?!\n)", "base64")),
    Field("serverVersion", TEXT),
    Field("managerIdentity", TEXT),
    Field("lastModifierIdentity", TEXT),
    Field("routing", _ROUTING),
    Field("versions", listing(_VERSION, lambda version: version.build_id, "version"), required=True),
)


def _read_deployment(value: Any, path: Path, findings: Findings) -> LiveDeployment | None:
    before = len(findings)
    _KIND.read(value, path, findings)
    DEPLOYMENT.read(value, path, findings)
    return None if len(findings) > before else live_deployment(value)


# an API server leaves both out of the items of a list
_KIND = excerpt(Field("apiVersion", constant(DEPLOYMENT_API)), Field("kind", constant("Deployment")))
_DEPLOYMENT = Shape(_read_deployment, lambda live: live.manifest, {"$ref": "deployment.json", **_KIND.schema})


def _place(live: LiveDeployment | None) -> tuple[str, str] | None:
    # workers that no spec names are told apart by their variables, which two namespaces can share
    return (live.recorded.manifest["metadata"].get("namespace") or "", live.name) if live else None


def _worker_world(deployments: tuple[LiveDeployment | None, ...] | None = None, **read: Any) -> WorkerWorld:
    # a Deployment that is no version's is not the worker's
    versions = None if deployments is None else tuple(live for live in deployments if live)
    return WorkerWorld(**read, deployments=versions, temporal_was_read="temporal" in read)


_REPLAY = record(
    ReplayRun,
    Field("state", choice(*ReplayState), required=True),
    Field("job", TEXT, absent=""),
    Field("because", TEXT, absent=""),
    Field("createdAt", TIME),
)
_OTHER_WORKER = record(
    OtherWorker,
    Field("name", TEXT, absent=""),
    Field("buildID", TEXT, absent=""),
    Field("taskQueue", TEXT, absent=""),
)
_WORKER_FIELDS = record(
    _worker_world,
    Field("name", _NAME, required=True),
    Field("temporalNamespace", TEXT, required=True),
    Field("temporal", _WORKER_DEPLOYMENT, null_when=lambda worker: worker.temporal_was_read),
    Field("workerDeployments", COUNT),
    Field("otherWorkers", listing(_OTHER_WORKER), absent=()),
    Field("deployments", listing(_DEPLOYMENT, _place, "Deployment")),
    Field("podProblems", TEXTS, absent={}),
    Field("replay", _REPLAY),
)


def _read_worker(value: Any, path: Path, findings: Findings) -> WorkerWorld | None:
    before = len(findings)
    worker: WorkerWorld | None = _WORKER_FIELDS.read(value, path, findings)
    # of a worker that no spec names, only variables tell the name, and they may stand in any namespace
    if worker and len(findings) == before and worker.temporal_was_read:
        namespace = worker.name.partition("/")[0]
        for index, manifest in enumerate(value.get("deployments") or ()):
            found = manifest["metadata"].get("namespace") or namespace
            if found != namespace:
                place: Path = ((((path, "deployments"), index), "metadata"), "namespace")
                refuse(
                    findings, place, f"is {quoted(found)}, but the worker's namespace is {quoted(namespace)}"
                )
    return worker


_WORKER = Shape(_read_worker, _WORKER_FIELDS.write, _WORKER_FIELDS.schema)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    taken_at: datetime
    workers: tuple[WorkerWorld, ...]
    api_version: str = TWGEN_API
    kind: str = KIND


SNAPSHOT = record(
    _Snapshot,
    Field("apiVersion", constant(TWGEN_API), required=True),
    Field("kind", constant(KIND), required=True),
    Field("takenAt", TIME),
    Field("workers", listing(_WORKER, lambda worker: worker.key, "worker")),
)


def write_snapshot(world: World) -> dict[str, Any]:
    """The document that `parse_snapshot` reads as this world, less the ledger."""
    workers = tuple(worker for _, worker in sorted(world.workers.items()))
    document: dict[str, Any] = SNAPSHOT.write(_Snapshot(world.taken_at, workers))
    return document


def parse_snapshot(document: Any) -> tuple[World | None, list[Finding]]:
    """The world of a Snapshot document, and all that is wrong with it; None when anything is."""
    kind, api_version = value_at(document, "kind"), value_at(document, "apiVersion")
    if kind != KIND:
        return None, [Finding("", "is not a Snapshot: make one with `twgen snapshot`")]
    if api_version != TWGEN_API:
        said = f"has apiVersion {described(api_version)}, but this twgen reads {TWGEN_API}: upgrade twgen"
        return None, [Finding("", said)]
    findings: list[Finding] = []
    read = SNAPSHOT.read(document, None, findings)
    findings = findings or list(_late_times(read))
    if findings:
        return None, [_with_names(document, finding) for finding in findings]
    return World(read.taken_at, {worker.key: worker for worker in read.workers}), []


def _late_times(snapshot: _Snapshot) -> Iterator[Finding]:
    """Times that Temporal told and that had not come yet; clocks may be apart, but not by a day."""
    latest = later(snapshot.taken_at, timedelta(days=1))
    for index, worker in enumerate(snapshot.workers):
        for path, moment in _times(worker.temporal) if worker.temporal else ():
            if moment and moment > latest:
                yield Finding(f"workers[{index}].temporal.{path}", "is more than a day after takenAt")


def _times(temporal: WorkerDeployment) -> Iterator[tuple[str, datetime | None]]:
    routing = temporal.routing
    yield "routing.changedAt", routing.changed_at
    if routing.current:
        yield "routing.current.since", routing.current.since
    if routing.ramping:
        yield "routing.ramping.since", routing.ramping.since
        yield "routing.ramping.percentageChangedAt", routing.ramping.percentage_changed_at
    for index, version in enumerate(temporal.versions):
        path = f"versions[{index}]"
        yield f"{path}.createdAt", version.created_at
        yield f"{path}.firstActivatedAt", version.first_activated_at
        yield f"{path}.lastCurrentAt", version.last_current_at
        yield f"{path}.lastDeactivatedAt", version.last_deactivated_at
        yield f"{path}.oldestOpenAt", version.oldest_open_at
        if version.drainage:
            yield f"{path}.drainage.changedAt", version.drainage.changed_at


def _with_names(document: Any, finding: Finding) -> Finding:
    """The finding with the worker and the version that its path leads into, where the document names them."""
    path = parse_path(finding.path)
    names = [_at(document, *path[:2], "name")]
    if path[2:3] == ("deployments",):
        names.append(_at(document, *path[:4], "metadata", "labels", BUILD_ID_LABEL))
    elif path[2:4] == ("temporal", "versions"):
        names.append(_at(document, *path[:5], "buildID"))
    told = ", build ID ".join(name for name in names if isinstance(name, str))
    return Finding(finding.path, f"{finding.message} ({told})") if told else finding


def _at(value: Any, *path: str | int) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
