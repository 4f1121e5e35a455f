"""Simulating whole rollouts: the clock jumps from one event to the next until no event is left."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from twgen.model.analysis import Analysis, WorkflowFailures
from twgen.model.histories import ReplayState
from twgen.model.operator import Caller
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.rollout import Driver
from twgen.model.spec import RolloutStep, Strategy, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.timeline import Assumptions, Outcome, Timeline, WorkerTimeline
from twgen.model.times import FOREVER
from twgen.model.world import World
from twgen.planning.analysis.noticing import noticed, too_short
from twgen.planning.plan import worker_world
from twgen.simulating.frames import Frame, events_of, frame_of, lanes
from twgen.simulating.initial_state import NO_TIME, initial_state, usual_world
from twgen.simulating.worker import SimulatedWorker

_MOST_MOMENTS = 5000
"""More than any rollout has: 20 steps, and 5 moments in the life of each of 100 versions."""
_MOST_STATES = 8
"""States of a worker that are kept: a state that repeats would repeat for ever."""
_ROUTED = {VersionStatus.CURRENT, VersionStatus.RAMPING}
_OUTCOMES = {
    Phase.SETTLED: Outcome.SETTLED,
    Phase.WAITING: Outcome.WAITING,
    Phase.BLOCKED: Outcome.BLOCKED,
    Phase.MOVING: Outcome.UNFINISHED,
}


def simulate(
    specs: Sequence[WorkerSpec],
    world: World | None,
    begins: datetime | None,
    caller: Caller,
    assumed: Assumptions,
) -> Timeline:
    """The rollout of every worker, beginning in a world; without one, in the usual world of a deploy.

    Raises StateUnavailable if the world lacks a worker, OwnedBySomebodyElse if another owner has a
    Deployment.
    """
    start = world or usual_world(specs, begins or NO_TIME, caller)
    return Timeline(
        begins=begins,
        is_usual=world is None,
        assumptions=assumed,
        workers=tuple(_timeline(spec, start, begins, caller, assumed) for spec in specs),
    )


def run(worker: SimulatedWorker) -> Iterator[tuple[Frame, WorkerPlan]]:
    """The worker at each moment at which anything may change, with the plan for it, up to the last moment.

    A moment has up to four frames: after events without twgen, after a sync, after the rollout, and after the
    policy's actions on workflows.
    """
    previous_states: deque[object] = deque(maxlen=_MOST_STATES)
    for _ in range(_MOST_MOMENTS):
        plan = worker.plan()
        yield frame_of(worker), plan
        if worker.is_render_due() and worker.sync(plan):
            plan = worker.plan()
            yield frame_of(worker), plan
        rolled_out = worker.roll_out(plan)
        if rolled_out is not plan:
            yield frame_of(worker), rolled_out
        if worker.end_workflows(rolled_out):
            rolled_out = worker.plan()
            yield frame_of(worker), rolled_out
        event = worker.next_event(rolled_out)
        moment = worker.or_next_render(rolled_out, event)
        if moment >= FOREVER:
            return
        if event >= FOREVER:
            # renders that undo each other would repeat for ever
            if (state := worker.state()) in previous_states:
                return
            previous_states.append(state)
        worker.advance(moment)


def _timeline(
    spec: WorkerSpec, world: World, begins: datetime | None, caller: Caller, assumed: Assumptions
) -> WorkerTimeline:
    worker = initial_state(spec, world, begins or NO_TIME, caller, assumed)
    moments = list(run(worker))
    frames, first, last = [frame for frame, _ in moments], moments[0][1], moments[-1][1]
    events = events_of(frames, begins)
    temporal = worker_world(spec, world).temporal
    current = temporal.routing.current if temporal else None
    unfinished, measured = worker.next_change(last) < FOREVER, measured_steps(spec)
    return WorkerTimeline(
        worker=spec.worker_deployment,
        temporal_namespace=spec.temporal_namespace,
        current_build_id=current.build_id if current else None,
        target_build_id=spec.build_id,
        rollout=spec.rollout,
        sunset=spec.sunset,
        server_version=worker.temporal.server.version,
        outcome=Outcome.UNFINISHED if unfinished else _OUTCOMES[last.routing.phase],
        because=last.routing.because,
        ends=events[-1].at if events else timedelta(),
        unchanged_since=_unchanged_since(moments),
        events=events,
        lanes=lanes(frames),
        noticing=noticed(*measured, assumed.traffic, _judged(spec)) if assumed.traffic and measured else (),
        notes=tuple(_notes(world, worker, first, last)),
    )


def _unchanged_since(moments: Sequence[tuple[Frame, WorkerPlan]]) -> timedelta:
    phases = [(plan.routing.phase, plan.routing.reason) for _, plan in moments]
    other_phases = (index for index in reversed(range(len(phases))) if phases[index] != phases[-1])
    return moments[next(other_phases, -1) + 1][0].at


def measured_steps(spec: WorkerSpec) -> tuple[tuple[RolloutStep, ...], Analysis] | None:
    """A spec's steps, and the analysis at them; None: no step measures failing workflows."""
    analysis, rollout = spec.policy.analysis, spec.rollout
    if not analysis or not rollout.steps or rollout.strategy is not Strategy.PROGRESSIVE:
        return None
    counts = any(isinstance(metric.measure, WorkflowFailures) for metric in analysis.metrics)
    return (rollout.steps, analysis) if counts else None


def _judged(spec: WorkerSpec) -> Mapping[float, frozenset[str]]:
    """The names of the metrics that are judged at each step, by the step's percentage."""
    return {
        step.percentage: frozenset(metric.name for metric in analysis.metrics)
        for step in spec.rollout.steps
        if (analysis := spec.policy.analysis_at(step.percentage))
    }


def _notes(world: World, worker: SimulatedWorker, first: WorkerPlan, last: WorkerPlan) -> Iterator[str]:
    if worker_world(worker.spec, world).deployments is None:
        yield (
            "the snapshot has no data about the cluster: versions in use, or with pollers, are assumed to"
            " have pods"
        )
    if worker.spec.policy.driver is Driver.NONE:
        yield "the driver is None: `twgen rollout` is assumed to run all the time"
    measured = measured_steps(worker.spec)
    if measured and not worker.assumed.traffic:
        yield from too_short(*measured, _judged(worker.spec))
    if measured and (least := measured[1].least_started):
        yield (
            f"its last step ends once {least} workflows have started on it, but the simulation does not"
            " count them"
        )
    if worker.spec.policy.replay and worker.replay.state is ReplayState.PASSED:
        yield "its replay is assumed to pass immediately"
    if worker.spec.policy.draining:
        yield (
            "`twgen tick` is assumed to carry out `draining`; signalled and cancelled workflows are assumed"
            " to keep running"
        )
    yield from first.versions.warnings
    for version in last.versions.versions:
        if version.build_id != worker.spec.build_id and version.live and version.status not in _ROUTED:
            yield f"{version.build_id} stays: {version.because}"
