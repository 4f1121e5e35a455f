"""What happened between two frames, as events: a rule for each thing that can happen to a version."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from twgen.model.temporal import GateStatus, VersionStatus
from twgen.model.timeline import Event, Happening
from twgen.model.values import dataclass
from twgen.planning.sentences import counted
from twgen.simulating.frames import UNVERSIONED, Frame, VersionState

_CURRENT, _RAMPING = VersionStatus.CURRENT, VersionStatus.RAMPING
_DRAINING, _DRAINED = VersionStatus.DRAINING, VersionStatus.DRAINED
_ABSENT = VersionState()
_ALL = 100

Transition = Callable[[VersionState, VersionState], bool]


@dataclass(frozen=True, slots=True)
class EventRule:
    """When a version was so and is so now, this has happened."""

    happening: Happening
    when: Transition
    says: Callable[[VersionState, VersionState], str]
    shares: bool = False
    """It changes the share of new workflows."""


def _gate_becomes(statuses: set[GateStatus | None]) -> Transition:
    return lambda was, now: now.gate in statuses and was.gate not in statuses


def _becomes(status: VersionStatus) -> Transition:
    return lambda was, now: now.status is status and was.status is not status


def _ramp_ends(was: VersionState, now: VersionState) -> bool:
    return was.status is _RAMPING and now.status is not _RAMPING and not now.percentage


# in the order in which events of one moment are shown
RULES: tuple[EventRule, ...] = (
    EventRule(
        Happening.CREATED,
        lambda was, now: now.is_there and not was.is_there and bool(now.replicas),
        lambda _, now: f"its Deployment is created{_with_replicas(now) or ', without a replica count'}",
    ),
    EventRule(
        Happening.RESIZED,
        lambda was, now: was.is_there and 0 < now.replicas != was.replicas and not now.autoscaled,
        lambda was, now: f"its Deployment changes from {was.replicas} to {counted(now.replicas, 'replica')}",
    ),
    EventRule(
        Happening.READY,
        lambda was, now: now.serves and not was.serves,
        lambda _, __: "its pods are ready and poll",
    ),
    EventRule(Happening.GATE_STARTED, _gate_becomes({GateStatus.RUNNING}), lambda _, __: "its gate starts"),
    EventRule(Happening.GATE_PASSED, _gate_becomes({GateStatus.COMPLETED}), lambda _, __: "its gate passes"),
    EventRule(
        Happening.GATE_FAILED,
        _gate_becomes({status for status in GateStatus if status.has_failed}),
        lambda _, __: "its gate fails",
    ),
    EventRule(
        Happening.RAMPED,
        lambda was, now: now.status is _RAMPING and now.percentage != was.percentage,
        lambda _, now: f"gets {now.percentage:g}% of new workflows",
        shares=True,
    ),
    EventRule(
        Happening.BECAME_CURRENT,
        _becomes(_CURRENT),
        lambda _, now: f"is current and gets {_extent(now)} new workflows",
        shares=True,
    ),
    EventRule(
        Happening.TAKEN_BACK,
        lambda was, now: _ramp_ends(was, now) and now.aborted is not None,
        lambda _, now: f"its ramp is taken back{now.aborted}",
        shares=True,
    ),
    EventRule(
        Happening.RAMP_ENDED,
        lambda was, now: _ramp_ends(was, now) and now.aborted is None,
        lambda _, __: "its ramp ends",
        shares=True,
    ),
    EventRule(
        Happening.BEGAN_DRAINING,
        lambda was, now: _becomes(_DRAINING)(was, now) and now.was_active,
        lambda _, now: f"is draining{': workflows pinned to it still run' if now.is_held else ''}",
        shares=True,
    ),
    EventRule(
        Happening.ENDING_BEGUN,
        lambda was, now: len(now.begun) > len(was.begun),
        lambda _, now: f"its policy starts to {now.begun[-1]}",
    ),
    EventRule(
        Happening.WORKFLOWS_ENDED,
        lambda was, now: was.is_held and not now.is_held and now.was_active,
        lambda _, __: "its last pinned workflow ends",
    ),
    EventRule(
        Happening.DRAINED,
        lambda was, now: _becomes(_DRAINED)(was, now) and now.was_active,
        lambda _, __: "is drained: Temporal counts no workflow on it",
    ),
    EventRule(
        Happening.SCALED_DOWN,
        lambda was, now: bool(was.replicas) and not now.replicas and now.is_there,
        lambda _, __: "its Deployment is scaled to zero replicas",
    ),
    EventRule(
        Happening.DROPPED,
        lambda was, now: was.is_there and not now.is_there and not was.percentage,
        lambda _, __: "its Deployment is deleted",
    ),
)


def events_of(frames: Sequence[Frame]) -> tuple[Event, ...]:
    """What was there in the first frame, then what happened until each later one.

    Frames of one moment tell of its steps one by one: a sync, then what the rollout does.
    """
    events = list(_found(frames[0]))
    for before, after in pairwise(frames):
        events += _between(before, after)
    return tuple(events)


def _found(begin: Frame) -> Iterator[Event]:
    for build_id, version in begin.versions.items():
        if version.is_there:
            share = version.percentage if build_id == UNVERSIONED or version.percentage else None
            yield Event(begin.at, Happening.FOUND, build_id, _as_found(version), share)


def _as_found(version: VersionState) -> str:
    is_registered = version.status is not VersionStatus.NOT_REGISTERED
    status = version.status.value.lower() if is_registered else "not known to Temporal yet"
    if not 0 < version.percentage < _ALL:
        return f"is {status}{_with_replicas(version)}"
    share = f"{version.percentage:g}% of new workflows"
    return f"is {status} with {share}{_with_replicas(version).replace(' with ', ' and ')}"


def _between(before: Frame, after: Frame) -> Iterator[Event]:
    pairs = {
        build_id: (before.versions.get(build_id, _ABSENT), after.versions.get(build_id, _ABSENT))
        for build_id in (*before.versions, *after.versions)
    }
    changed = {build_id: pair for build_id, pair in pairs.items() if pair[0] != pair[1]}
    for rule in RULES if changed else ():
        for build_id, (was, now) in changed.items():
            if rule.when(was, now):
                share = now.percentage if rule.shares else None
                yield Event(after.at, rule.happening, build_id, rule.says(was, now), share)


def _with_replicas(version: VersionState) -> str:
    is_known = version.replicas and not version.autoscaled
    return f" with {counted(version.replicas, 'replica')}" if is_known else ""


def _extent(version: VersionState) -> str:
    return "all" if version.percentage == _ALL else f"{version.percentage:g}% of"
