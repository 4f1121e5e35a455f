"""Phrases shared by the reports of a simulation. Their inputs must be printable."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from twgen.model.problem import counted
from twgen.model.spec import Rollout, Strategy
from twgen.model.timeline import Happening, Notice, Noticing, Outcome, Timeline, WorkerTimeline
from twgen.planning.sentences import spoken, version_name

OUTCOMES: Mapping[Outcome, tuple[str, str]] = {
    Outcome.SETTLED: ("✓", "green"),
    Outcome.WAITING: ("…", "yellow"),
    Outcome.BLOCKED: ("✗", "red"),
    Outcome.UNFINISHED: ("…", "yellow"),
}
"""The sign and the style of each outcome."""


def offset(at: timedelta) -> str:
    """An offset from the start of the simulation, to the second, such as `T+0` or `T+26h30m`."""
    return f"T+{exactly(at)}" if at else "T+0"


def exactly(length: timedelta) -> str:
    """A duration to the second, such as `26h30m5s`."""
    return spoken(length, 4)


def route(worker: WorkerTimeline) -> str:
    """The current version and the target, such as `v1 → v2`."""
    if worker.current_build_id == worker.target_build_id:
        return worker.target_build_id
    return f"{version_name(worker.current_build_id)} → {worker.target_build_id}"


def rollout_phrase(rollout: Rollout) -> str:
    """The strategy with its steps and gate."""
    steps = ", ".join(f"{step.percentage:g}% for {exactly(step.pause)}" for step in rollout.steps)
    takes_steps = rollout.strategy is Strategy.PROGRESSIVE and steps
    gate = f", with gate {rollout.gate.workflow_type}" if rollout.gate else ""
    return f"{rollout.strategy}{f': {steps}' if takes_steps else ''}{gate}"


def sunset_phrase(worker: WorkerTimeline) -> str:
    """When the Deployment of a drained version is scaled down and deleted."""
    scaledown, delete = exactly(worker.sunset.scaledown_delay), exactly(worker.sunset.delete_delay)
    return f"scaled to zero {scaledown} after a version is drained, deleted {delete} later"


def beginning(worker: WorkerTimeline, timeline: Timeline) -> str:
    """The state at the start: either from a snapshot, or an assumed state right after a commit."""
    if timeline.is_usual or not timeline.begins:
        current, target = worker.current_build_id, worker.target_build_id
        return f"with an assumed state: {current} is current, and {target} has just been committed"
    return f"with the present state, from the snapshot, at {timeline.begins:%Y-%m-%d %H:%M:%S} UTC"


def assumptions(worker: WorkerTimeline, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Each assumption that affects this worker, with the option that changes it."""
    assumed = timeline.assumptions
    yield f"pinned workflows run {exactly(assumed.workflow_duration)}", "--workflow-duration"
    yield f"new pods poll after {exactly(assumed.startup)}", "--startup"
    if worker.rollout.gate:
        ends = "passes" if assumed.gate_passes else "fails"
        yield f"the gate {ends} after {exactly(assumed.gate_duration)}", "--gate"
    yield f"Temporal checks drainage every {exactly(assumed.drainage_interval)}", "--drainage-interval"
    yield f"twgen renders every {exactly(assumed.render_interval)}", "--render-interval"
    if worker.noticing and assumed.traffic:
        yield f"{assumed.traffic.starts_per_hour:g} workflows start per hour", "--starts-per-hour"
        yield (
            f"{100 * assumed.traffic.failing:.3g}% of workflows on a bad version fail immediately",
            "--failing",
        )


def summary(worker: WorkerTimeline) -> Iterator[str]:
    """Sentences about the outcome."""
    yield _traffic(worker)
    yield from map(_noticing, worker.noticing)
    for lane in worker.lanes:
        reached = [
            f"{words} at {offset(at)}"
            for happening, words in _MILESTONES.items()
            if (at := worker.first(happening, lane.build_id)) is not None
        ]
        if reached and lane.build_id:
            yield f"{lane.build_id} is {', '.join(reached)}."
    if worker.outcome is not Outcome.SETTLED:
        since = worker.ends if worker.outcome is Outcome.UNFINISHED else worker.unchanged_since
        yield f"{_ENDS[worker.outcome]} {offset(since)}: {worker.because}."
    if worker.most_replicas is None:
        yield "The number of replicas is not known: an autoscaler sets it."
    else:
        replicas = counted(worker.most_replicas, "replica")
        yield f"At most {replicas} run{'s' if worker.most_replicas == 1 else ''} at once."


def _noticing(noticing: Noticing) -> str:
    if noticing.is_allowed:
        return f"The bound of metric {noticing.metric} allows this failure rate."
    half, most = noticing.half, noticing.most
    if not half:
        return (
            f"Metric {noticing.metric} would not detect this failure rate in time:"
            f" in {100 * noticing.unnoticed:.3g}% of all ramps the version becomes current."
        )
    detected = f"within {spoken(half.after)} in half of all ramps ({_met(half)} had started on the version)"
    if most:
        detected += f", within {spoken(most.after)} in 9 of 10 ({_met(most)} had)"
    ends = f"; in {100 * noticing.unnoticed:.3g}% the version becomes current" if noticing.unnoticed else ""
    return f"Metric {noticing.metric} would detect this failure rate {detected}{ends}."


def _met(notice: Notice) -> str:
    return f"at {notice.percentage:g}%, when {100 * notice.met:.2g}% of all new workflows"


_ENDS = {
    Outcome.WAITING: "It waits from",
    Outcome.BLOCKED: "It is blocked from",
    Outcome.UNFINISHED: "The simulation was stopped at",
}
_MILESTONES = {
    Happening.TAKEN_BACK: "taken back",
    Happening.DRAINED: "drained",
    Happening.SCALED_DOWN: "at zero replicas",
    Happening.DROPPED: "deleted",
}


def _traffic(worker: WorkerTimeline) -> str:
    target = worker.target_build_id
    if worker.current_build_id == target:
        return f"{target} is current from the beginning."
    current = worker.first(Happening.BECAME_CURRENT, target)
    if current is not None:
        return f"All new workflows go to {target} from {offset(current)}."
    share = max(
        (span.percentage for lane in worker.lanes if lane.build_id == target for span in lane.spans),
        default=0,
    )
    return (
        f"{target} gets at most {share:g}% of new workflows."
        if share
        else f"No new workflow goes to {target}."
    )
