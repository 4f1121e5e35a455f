"""Every version of a worker as it stands at one moment, and the spans of time during which it stays so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

from twgen.model.marks import MarkKey
from twgen.model.temporal import GateStatus, Version, VersionStatus, WorkerDeployment
from twgen.model.timeline import Lane, Span, Stage
from twgen.model.values import dataclass
from twgen.planning.routing.gates import worst
from twgen.planning.routing.target import Target
from twgen.planning.version_status import ever_active, shares, status_of
from twgen.simulating.worker import SimulatedWorker

UNVERSIONED = ""


@dataclass(frozen=True, slots=True)
class VersionState:
    """One version at one moment; of unversioned workers only the share is known."""

    percentage: float = 0
    status: VersionStatus = VersionStatus.NOT_REGISTERED
    is_there: bool = False
    """It has a Deployment, or new workflows go to it."""
    serves: bool = False
    replicas: int = 0
    autoscaled: bool = False
    was_active: bool = False
    is_held: bool = False
    """A workflow that is pinned to it runs, or may be started."""
    gate: GateStatus | None = None
    """The worst of its gate's runs; None: none was started."""
    begun: tuple[str, ...] = ()
    """What its policy has done to its workflows while it drains, in words."""
    aborted: str | None = None
    """Why it is marked as aborted, to go on a sentence; None: it is not."""


@dataclass(frozen=True, slots=True)
class Frame:
    """All versions at one moment."""

    at: timedelta
    versions: Mapping[str, VersionState]


_TRAFFIC = {VersionStatus.CURRENT: Stage.CURRENT, VersionStatus.RAMPING: Stage.RAMPING}
_LEFT = {VersionStatus.DRAINING: Stage.DRAINING, VersionStatus.DRAINED: Stage.DRAINED}


def frame_of(worker: SimulatedWorker) -> Frame:
    """The worker as it stands now."""
    share = shares(worker.temporal.routing)
    versions, described = worker.temporal.versions, WorkerDeployment(routing=worker.temporal.routing)
    target = Target(worker.spec, worker.planned_on or worker.world(), worker.now, "", "")
    live = worker.cluster.deployments
    build_ids = sorted({*versions, *live, *share} - {UNVERSIONED})
    states = {
        build_id: _version(
            worker,
            build_id,
            status=status_of(build_id, versions.get(build_id), described),
            percentage=share.get(build_id),
        )
        for build_id in build_ids
    }
    if target.is_aborted and target.build_id in states:
        states[target.build_id] = replace(states[target.build_id], aborted=target.why_marked(MarkKey.ABORTED))
    if _unversioned_workers_poll(worker):
        percentage = share.get(UNVERSIONED, 0)
        current = worker.temporal.routing.current
        status = VersionStatus.RAMPING if current else VersionStatus.CURRENT
        states[UNVERSIONED] = VersionState(percentage, status, is_there=percentage > 0)
    offset = timedelta(seconds=round((worker.now - worker.begin).total_seconds()))
    return Frame(offset, states)


def lanes(frames: Sequence[Frame]) -> tuple[Lane, ...]:
    """Every version that was there, and how it stood for how long."""
    build_ids = dict.fromkeys(build_id for each in frames for build_id in each.versions)
    found = (Lane(build_id, tuple(_spans(frames, build_id))) for build_id in build_ids)
    return tuple(lane for lane in found if lane.spans)


def stage_of(version: VersionState) -> Stage:
    """Where the version stands."""
    if version.status in _TRAFFIC:
        return _TRAFFIC[version.status]
    if version.gate is GateStatus.RUNNING:
        return Stage.GATE
    if not version.serves:
        return Stage.STARTING if version.replicas else Stage.AT_ZERO
    return _LEFT.get(version.status, Stage.IDLE) if version.was_active else Stage.IDLE


def _version(
    worker: SimulatedWorker, build_id: str, *, status: VersionStatus, percentage: float | None
) -> VersionState:
    version = worker.temporal.versions.get(build_id)
    live = worker.cluster.deployments.get(build_id)
    return VersionState(
        percentage=percentage or 0,
        status=status,
        is_there=live is not None or percentage is not None,
        serves=live is not None and live.serving,
        replicas=live.replicas if live else 0,
        autoscaled=live is not None and live.replicas_are_external and live.replicas > 0,
        was_active=version is not None and ever_active(version),
        is_held=worker.temporal.is_held(build_id),
        begun=worker.begun.get(build_id, ()),
        gate=_gate(version),
    )


def _gate(version: Version | None) -> GateStatus | None:
    run = worst((version.gate_runs if version else None) or ())
    return run.status if run else None


def _unversioned_workers_poll(worker: SimulatedWorker) -> bool:
    ramp = worker.temporal.routing.ramping
    queues = (queue for version in worker.temporal.versions.values() for queue in version.task_queues or ())
    return any(queue.unversioned_pollers for queue in queues) or (ramp is not None and not ramp.build_id)


def _spans(frames: Sequence[Frame], build_id: str) -> Iterator[Span]:
    seen = [each.versions.get(build_id, VersionState()) for each in frames]
    ends = [*(each.at for each in frames[1:]), None]
    pieces = zip(frames, seen, ends, strict=True)
    for _, group in groupby(pieces, key=lambda piece: _shown(piece[1])):
        same = list(group)
        begin, state, end = same[0][0].at, same[0][1], same[-1][2]
        if state.is_there and begin != end:
            yield Span(
                begin=begin,
                end=end,
                stage=stage_of(state),
                status=state.status,
                percentage=state.percentage,
                replicas=None if state.autoscaled else state.replicas,
            )


def _shown(state: VersionState) -> tuple[object, ...]:
    return (
        state.is_there,
        stage_of(state),
        state.status,
        state.percentage,
        state.replicas,
        state.autoscaled,
    )
