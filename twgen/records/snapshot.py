"""Reads and writes Snapshot documents: the state of the world at one moment.

An absent field means that the object was not read. The value null means that the object does not exist.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import reduce
from operator import attrgetter, getitem
from typing import Annotated, Any

from twgen.cluster.deployments import DEPLOYMENT, live_deployment
from twgen.model.paths import Path, parse_path, value_at
from twgen.model.problem import Finding, quoted
from twgen.model.record_shapes import Each, Field, document_of, excerpt, record_of
from twgen.model.shapes import MOST_OF_A_RECORD, Findings, Shape, constant, described, listing
from twgen.model.temporal import WorkerDeployment
from twgen.model.times import later
from twgen.model.values import dataclass
from twgen.model.world import LiveDeployment, WorkerWorld, World
from twgen.versioning.names import BUILD_ID_LABEL, DEPLOYMENT_API, TWGEN_API

KIND = "Snapshot"


def _read_deployment(value: Any, path: Path, findings: Findings) -> LiveDeployment | None:
    before = findings.count
    _KIND.read(value, path, findings)
    DEPLOYMENT.read(value, path, findings)
    return None if findings.count > before else live_deployment(value)


# API servers omit both fields in list items
_LISTED = "Absent if the Deployment was an item of an API server's list."
_KIND = excerpt(
    Field("apiVersion", constant(DEPLOYMENT_API), _LISTED), Field("kind", constant("Deployment"), _LISTED)
)
_DEPLOYMENT = Shape(_read_deployment, lambda live: live.manifest, {"$ref": "deployment.json", **_KIND.schema})


def _place(live: LiveDeployment | None) -> tuple[str, str] | None:
    # a worker without a spec is identified by its Deployments' variables, which may be the same in two
    # namespaces
    return (live.recorded.manifest["metadata"].get("namespace") or "", live.name) if live else None


def _worker_world(deployments: tuple[LiveDeployment | None, ...] | None = None, **read: Any) -> WorkerWorld:
    # Deployments that belong to no version are omitted
    versions = None if deployments is None else tuple(live for live in deployments if live)
    return WorkerWorld(**read, deployments=versions, temporal_was_read="temporal" in read)


_WORKER_FIELDS = record_of(
    WorkerWorld,
    *("name", "temporal_namespace", "temporal", "worker_deployments"),
    *("other_workers", "deployments", "pod_problems", "replay", "autoscalers"),
    make=_worker_world,
    fields={"deployments": listing(_DEPLOYMENT, _place, "Deployment")},
)


def _read_worker(value: Any, path: Path, findings: Findings) -> WorkerWorld | None:
    before = findings.count
    worker: WorkerWorld | None = _WORKER_FIELDS.read(value, path, findings)
    # without a spec, the worker's name comes from Deployments' variables, whose namespace may differ
    if worker and findings.count == before and worker.temporal_was_read:
        namespace = worker.name.partition("/")[0]
        for index, manifest in enumerate(value.get("deployments") or ()):
            own_namespace = manifest["metadata"].get("namespace") or namespace
            if own_namespace != namespace:
                place: Path = ((((path, "deployments"), index), "metadata"), "namespace")
                findings.problem(
                    place, f"is {quoted(own_namespace)}, but the worker's namespace is {quoted(namespace)}"
                )
    return worker


_WORKER = _WORKER_FIELDS._replace(read=_read_worker)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of Temporal and Kubernetes at one moment."""

    taken_at: datetime
    """When the state was read. Renders and plans use this as the current time, unless --now is given."""
    workers: Annotated[tuple[WorkerWorld, ...], Each(attrgetter("key"), "worker")]
    """The workers and their state."""


SNAPSHOT = document_of(TWGEN_API, KIND, Snapshot, shapes={WorkerWorld: _WORKER})


def write_snapshot(world: World) -> dict[str, Any]:
    """Convert the world, without the ledger, to a document for `parse_snapshot`."""
    workers = tuple(worker for _, worker in sorted(world.workers.items()))
    document: dict[str, Any] = SNAPSHOT.write(Snapshot(world.taken_at, workers))
    return document


def parse_snapshot(document: Any) -> tuple[World | None, list[Finding]]:
    """The world in a Snapshot document, and the document's problems. With problems, the world is None."""
    if value_at(document, "kind") != KIND:
        return None, [Finding("", "is not a Snapshot: make one with `twgen snapshot`")]
    if (api_version := value_at(document, "apiVersion")) != TWGEN_API:
        message = f"has apiVersion {described(api_version)}, but this twgen reads {TWGEN_API}: upgrade twgen"
        return None, [Finding("", message)]
    findings = Findings(MOST_OF_A_RECORD)
    read = SNAPSHOT.read(document, None, findings)
    if problems := findings.shown() or list(_late_times(read)):
        return None, [_with_names(document, problem) for problem in problems]
    return World(read.taken_at, {worker.key: worker for worker in read.workers}), []


def _late_times(snapshot: Snapshot) -> Iterator[Finding]:
    """A problem for each time in Temporal that is later than the snapshot by more than a day."""
    latest = later(snapshot.taken_at, timedelta(days=1))
    for index, worker in enumerate(snapshot.workers):
        for path, moment in _times(worker.temporal) if worker.temporal else ():
            if moment and moment > latest:
                yield Finding(f"workers[{index}].temporal.{path}", "is more than a day after takenAt")


def _times(temporal: WorkerDeployment) -> Iterator[tuple[str, datetime | None]]:
    routing, ramping = temporal.routing, temporal.routing.ramping
    yield "routing.changedAt", routing.changed_at
    yield "routing.current.since", routing.current.since if routing.current else None
    yield "routing.ramping.since", ramping.since if ramping else None
    yield "routing.ramping.percentageChangedAt", ramping.percentage_changed_at if ramping else None
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
    """Add the worker's name and the build ID to a finding's message, if the document contains them."""
    path = parse_path(finding.path)
    paths = [(*path[:2], "name")]
    if path[2:3] == ("deployments",):
        paths.append((*path[:4], "metadata", "labels", BUILD_ID_LABEL))
    elif path[2:4] == ("temporal", "versions"):
        paths.append((*path[:5], "buildID"))
    names = []
    for steps in paths:
        with suppress(KeyError, IndexError, TypeError):
            names.append(reduce(getitem, steps, document))
    place = ", build ID ".join(name for name in names if isinstance(name, str))
    return Finding(finding.path, f"{finding.message} ({place})") if place else finding
