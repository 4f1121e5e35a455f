"""The states of a worker's versions at one moment, and the events and periods of a sequence of moments."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from twgen.model.problem import counted
from twgen.model.temporal import GateStatus, VersionStatus, WorkerDeployment
from twgen.model.timeline import Event, Happening, Lane, Span, Stage
from twgen.planning.routing.gates import worst
from twgen.planning.routing.target import Target
from twgen.planning.version_status import ALL_TRAFFIC, ever_active, shares, status_of
from twgen.simulating.worker import SimulatedWorker
from twgen.versioning.names import MarkKey

_UNVERSIONED = ""
_CURRENT, _RAMPING = VersionStatus.CURRENT, VersionStatus.RAMPING
_DRAINING, _DRAINED = VersionStatus.DRAINING, VersionStatus.DRAINED
_STAGES = {_CURRENT: Stage.CURRENT, _RAMPING: Stage.RAMPING}
_STAGES_AFTER = {_DRAINING: Stage.DRAINING, _DRAINED: Stage.DRAINED}


class VersionState(NamedTuple):
    """One version's state at one moment. For unversioned workers, only the share is known."""

    percentage: float = 0
    status: VersionStatus = VersionStatus.NOT_REGISTERED
    is_there: bool = False
    """Whether the version has a Deployment or gets new workflows."""
    serves: bool = False
    replicas: int = 0
    autoscaled: bool = False
    was_active: bool = False
    is_held: bool = False
    """Whether a workflow that is pinned to the version is running or may start."""
    gate: GateStatus | None = None
    """The worst status of the version's gate runs, or None if no gate was started."""
    begun: tuple[str, ...] = ()
    """The policy's actions that have begun on the version's workflows, in words."""
    aborted: str | None = None
    """Why the version is marked as aborted, as the end of a sentence; None if it is not aborted."""


class Frame(NamedTuple):
    """The states of all versions at one moment."""

    at: timedelta
    versions: Mapping[str, VersionState]


_ABSENT = VersionState()


def frame_of(worker: SimulatedWorker) -> Frame:
    """The state of a worker at its current time."""
    temporal, live = worker.temporal, worker.cluster.deployments
    share = shares(temporal.routing)
    described = WorkerDeployment(routing=temporal.routing)
    states: dict[str, VersionState] = {}
    for build_id in sorted({*temporal.versions, *live, *share} - {_UNVERSIONED}):
        version, deployment = temporal.versions.get(build_id), live.get(build_id)
        gate = worst((version.gate_runs if version else None) or ())
        replicas = deployment.replicas if deployment else 0
        states[build_id] = VersionState(
            percentage=share.get(build_id, 0),
            status=status_of(build_id, version, described),
            is_there=deployment is not None or build_id in share,
            serves=deployment is not None and deployment.serving,
            replicas=replicas,
            autoscaled=deployment is not None and deployment.replicas_are_external and replicas > 0,
            was_active=version is not None and ever_active(version),
            is_held=temporal.is_held(build_id),
            gate=gate.status if gate else None,
            begun=worker.begun.get(build_id, ()),
            aborted=_why_aborted(worker) if build_id == worker.spec.build_id else None,
        )
    queues = (queue for version in temporal.versions.values() for queue in version.task_queues or ())
    ramp = temporal.routing.ramping
    if any(queue.unversioned_pollers for queue in queues) or (ramp and not ramp.build_id):
        percentage = share.get(_UNVERSIONED, 0)
        status = _RAMPING if temporal.routing.current else _CURRENT
        states[_UNVERSIONED] = VersionState(percentage, status, is_there=percentage > 0)
    return Frame(timedelta(seconds=round((worker.now - worker.begin).total_seconds())), states)


def _why_aborted(worker: SimulatedWorker) -> str | None:
    version = worker.temporal.versions.get(worker.spec.build_id)
    if not version or MarkKey.ABORTED.value not in (version.metadata or {}):
        return None
    target = Target(worker.spec, worker.planned_on or worker.world(), worker.now, "")
    return target.why_marked(MarkKey.ABORTED) if target.is_aborted else None


def lanes(frames: Sequence[Frame]) -> tuple[Lane, ...]:
    """Every version that existed, with each of its states and the state's duration."""
    build_ids = dict.fromkeys(build_id for frame in frames for build_id in frame.versions)
    drawn = (Lane(build_id, tuple(_spans(frames, build_id))) for build_id in build_ids)
    return tuple(lane for lane in drawn if lane.spans)


def _spans(frames: Sequence[Frame], build_id: str) -> Iterator[Span]:
    span_ends = [*(frame.at for frame in frames[1:]), None]
    shown = [
        (state.is_there, _stage(state), state.status, state.percentage, state.replicas, state.autoscaled)
        for state in (frame.versions.get(build_id, _ABSENT) for frame in frames)
    ]
    pieces = zip(shown, frames, span_ends, strict=True)
    for appearance, group in groupby(pieces, key=itemgetter(0)):
        is_there, stage, status, percentage, replicas, autoscaled = appearance
        same = list(group)
        begin, end = same[0][1].at, same[-1][2]
        if is_there and begin != end:
            yield Span(begin, end, stage, status, percentage, None if autoscaled else replicas)


def _stage(version: VersionState) -> Stage:
    if version.status in _STAGES:
        return _STAGES[version.status]
    if version.gate is GateStatus.RUNNING:
        return Stage.GATE
    if not version.serves:
        return Stage.STARTING if version.replicas else Stage.AT_ZERO
    return _STAGES_AFTER.get(version.status, Stage.IDLE) if version.was_active else Stage.IDLE


def events_of(frames: Sequence[Frame], begins: datetime | None = None) -> tuple[Event, ...]:
    """An event for each version in the first frame, then events for the changes between frames.

    If a moment has several frames, the sync's frame comes before the rollout's. `begins` is the time of the
    first frame.
    """
    events = [
        Event(
            frames[0].at,
            Happening.FOUND,
            build_id,
            _as_found(version),
            version.percentage if build_id == _UNVERSIONED or version.percentage else None,
        )
        for build_id, version in frames[0].versions.items()
        if version.is_there
    ]
    for before, after in pairwise(frames):
        pairs = {
            build_id: (before.versions.get(build_id, _ABSENT), after.versions.get(build_id, _ABSENT))
            for build_id in (*before.versions, *after.versions)
        }
        changed = {build_id: pair for build_id, pair in pairs.items() if pair[0] != pair[1]}
        for happening, has_happened, sentence in _RULES if changed else ():
            for build_id, (was, now) in changed.items():
                if has_happened(was, now):
                    text = sentence if isinstance(sentence, str) else sentence(was, now)
                    share = now.percentage if happening in _CHANGES_OF_TRAFFIC else None
                    events.append(Event(after.at, happening, build_id, text, share))
    return tuple(replace(event, time=begins + event.at) for event in events) if begins else tuple(events)


def _as_found(version: VersionState) -> str:
    is_registered = version.status is not VersionStatus.NOT_REGISTERED
    status = version.status.value.lower() if is_registered else "not known to Temporal yet"
    if not 0 < version.percentage < ALL_TRAFFIC:
        return f"is {status}{_with_replicas(version)}"
    share = f"{version.percentage:g}% of new workflows"
    return f"is {status} with {share}{_with_replicas(version).replace(' with ', ' and ')}"


def _with_replicas(version: VersionState) -> str:
    is_known = version.replicas and not version.autoscaled
    return f" with {counted(version.replicas, 'replica')}" if is_known else ""


_Fits = Callable[[VersionState, VersionState], bool]
"""Whether a version's change from the first state to the second counts as this event."""


def _becomes(status: VersionStatus) -> _Fits:
    return lambda was, now: now.status is status and was.status is not status


def _gate_becomes(statuses: set[GateStatus | None]) -> _Fits:
    return lambda was, now: now.gate in statuses and was.gate not in statuses


def _ramp_ends(was: VersionState, now: VersionState) -> bool:
    return was.status is _RAMPING and now.status is not _RAMPING and not now.percentage


_CHANGES_OF_TRAFFIC = {
    Happening.RAMPED,
    Happening.BECAME_CURRENT,
    Happening.TAKEN_BACK,
    Happening.RAMP_ENDED,
    Happening.BEGAN_DRAINING,
}
# fmt: off
_RULES: Sequence[tuple[Happening, _Fits, str | Callable[[VersionState, VersionState], str]]] = (
    (Happening.CREATED,
     lambda was, now: now.is_there and not was.is_there and bool(now.replicas),
     lambda _, now: f"its Deployment is created{_with_replicas(now) or ', without a replica count'}"),
    (Happening.RESIZED,
     lambda was, now: was.is_there and 0 < now.replicas != was.replicas and not now.autoscaled,
     lambda was, now: f"its Deployment changes from {was.replicas} to {counted(now.replicas, 'replica')}"),
    (Happening.READY,
     lambda was, now: now.serves and not was.serves,
     "its pods are ready and poll"),
    (Happening.GATE_STARTED,
     _gate_becomes({GateStatus.RUNNING}),
     "its gate starts"),
    (Happening.GATE_PASSED,
     _gate_becomes({GateStatus.COMPLETED}),
     "its gate passes"),
    (Happening.GATE_FAILED,
     _gate_becomes({status for status in GateStatus if status.has_failed}),
     "its gate fails"),
    (Happening.RAMPED,
     lambda was, now: now.status is _RAMPING and now.percentage != was.percentage,
     lambda _, now: f"gets {now.percentage:g}% of new workflows"),
    (Happening.BECAME_CURRENT,
     _becomes(_CURRENT),
     lambda _, now: "is current and gets all new workflows" if now.percentage == ALL_TRAFFIC
     else f"is current and gets {now.percentage:g}% of new workflows"),
    (Happening.TAKEN_BACK,
     lambda was, now: _ramp_ends(was, now) and now.aborted is not None,
     lambda _, now: f"its ramp is taken back{now.aborted}"),
    (Happening.RAMP_ENDED,
     lambda was, now: _ramp_ends(was, now) and now.aborted is None,
     "its ramp ends"),
    (Happening.BEGAN_DRAINING,
     lambda was, now: _becomes(_DRAINING)(was, now) and now.was_active,
     lambda _, now: f"is draining{': workflows pinned to it still run' if now.is_held else ''}"),
    (Happening.ENDING_BEGUN,
     lambda was, now: len(now.begun) > len(was.begun),
     lambda _, now: f"its policy starts to {now.begun[-1]}"),
    (Happening.WORKFLOWS_ENDED,
     lambda was, now: was.is_held and not now.is_held and now.was_active,
     "its last pinned workflow ends"),
    (Happening.DRAINED,
     lambda was, now: _becomes(_DRAINED)(was, now) and now.was_active,
     "is drained: Temporal finds no open workflow on it"),
    (Happening.SCALED_DOWN,
     lambda was, now: bool(was.replicas) and not now.replicas and now.is_there,
     "its Deployment is scaled to zero replicas"),
    (Happening.DROPPED,
     lambda was, now: was.is_there and not now.is_there and not was.percentage,
     "its Deployment is deleted"),
)
# fmt: on
"""Each kind of event, with its condition and its sentence. Events at the same moment are in this order."""
