"""What happened between two looks, as events: a row for each thing that can happen to a version."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from twgen.model.timeline import Event, Happening
from twgen.model.world import GateStatus, VersionStatus
from twgen.simulating.looks import UNVERSIONED, Look, VersionLook

_CURRENT, _RAMPING = VersionStatus.CURRENT, VersionStatus.RAMPING
_ABSENT = VersionLook()
_ALL = 100
_STATUS_WORDS = {VersionStatus.NOT_REGISTERED: "not known to Temporal yet"}


@dataclass(frozen=True, slots=True)
class _Row:
    """When a version was so and is so now, this has happened."""

    when: Callable[[VersionLook, VersionLook], bool]
    happening: Happening
    says: str
    shares: bool = False
    """It changes the share of new workflows."""


def _leaves_traffic(was: VersionLook, now: VersionLook) -> bool:
    return was.status in {_CURRENT, _RAMPING} and now.status not in {_CURRENT, _RAMPING}


def _drains(was: VersionLook, now: VersionLook) -> bool:
    begins = now.status is VersionStatus.DRAINING and was.status is not VersionStatus.DRAINING
    return begins and now.was_active


def _turns(gate: Callable[[GateStatus | None], bool]) -> Callable[[VersionLook, VersionLook], bool]:
    return lambda was, now: gate(now.gate) and not gate(was.gate)


def _has_failed(gate: GateStatus | None) -> bool:
    return gate not in {None, GateStatus.RUNNING, GateStatus.COMPLETED}


# in the order in which things of one moment are told
_TABLE: tuple[_Row, ...] = (
    _Row(
        lambda was, now: now.is_there and not was.is_there and bool(now.replicas),
        Happening.CREATED,
        "its Deployment is created{size}",
    ),
    _Row(
        lambda was, now: was.is_there and 0 < now.replicas != was.replicas and not now.autoscaled,
        Happening.RESIZED,
        "its Deployment goes from {before} to {replicas} replicas",
    ),
    _Row(lambda was, now: now.serves and not was.serves, Happening.READY, "its pods are ready and poll"),
    _Row(_turns(lambda gate: gate is GateStatus.RUNNING), Happening.GATE_STARTED, "its gate starts"),
    _Row(_turns(lambda gate: gate is GateStatus.COMPLETED), Happening.GATE_PASSED, "its gate passes"),
    _Row(_turns(_has_failed), Happening.GATE_FAILED, "its gate fails"),
    _Row(
        lambda was, now: now.status is _RAMPING and now.percentage != was.percentage,
        Happening.RAMPED,
        "gets {share} % of new workflows",
        shares=True,
    ),
    _Row(
        lambda was, now: now.status is _CURRENT and was.status is not _CURRENT,
        Happening.BECAME_CURRENT,
        "is current and gets {rest} new workflows",
        shares=True,
    ),
    _Row(
        lambda was, now: was.status is _RAMPING and now.status is not _RAMPING and not now.percentage,
        Happening.RAMP_ENDED,
        "its ramp ends",
        shares=True,
    ),
    _Row(_drains, Happening.BEGAN_DRAINING, "is draining{held}", shares=True),
    _Row(
        lambda was, now: was.is_held and not now.is_held and now.was_active,
        Happening.WORKFLOWS_ENDED,
        "its last pinned workflow ends",
    ),
    _Row(
        lambda was, now: (
            now.status is VersionStatus.DRAINED and was.status is not VersionStatus.DRAINED and now.was_active
        ),
        Happening.DRAINED,
        "is drained: Temporal counts no workflow on it",
    ),
    _Row(
        lambda was, now: bool(was.replicas) and not now.replicas and now.is_there,
        Happening.SCALED_DOWN,
        "its Deployment goes to zero replicas",
    ),
    _Row(
        lambda was, now: was.is_there and not now.is_there and not was.percentage,
        Happening.DROPPED,
        "its Deployment is deleted",
    ),
)


def narrated(looks: Sequence[Look]) -> tuple[Event, ...]:
    """What was there at the first look, then what happened at each later one.

    Looks of one moment tell of its steps one by one: a sync, then what the rollout does.
    """
    found = list(_found(looks[0]))
    for before, after in pairwise(looks):
        found += _happened(before, after)
    return tuple(found)


def _found(begin: Look) -> Iterator[Event]:
    for build_id, version in begin.versions.items():
        if version.is_there:
            share = version.percentage if build_id == UNVERSIONED or version.percentage else None
            yield Event(begin.at, Happening.FOUND, build_id, _standing(version), share)


def _standing(version: VersionLook) -> str:
    """How it stands when nobody has seen it before."""
    share = f"{version.percentage:g} % of new workflows" if 0 < version.percentage < _ALL else ""
    extent = " and ".join(words for words in (share, _size(version)) if words)
    status = _STATUS_WORDS.get(version.status, version.status.value.lower())
    return f"is {status}{' with ' if extent else ''}{extent}"


def _happened(before: Look, after: Look) -> Iterator[Event]:
    names = dict.fromkeys((*before.versions, *after.versions))
    for row in _TABLE:
        for build_id in names:
            was, now = before.versions.get(build_id, _ABSENT), after.versions.get(build_id, _ABSENT)
            if row.when(was, now):
                share = now.percentage if row.shares else None
                yield Event(after.at, row.happening, build_id, _says(row.says, was, now), share)


def _says(words: str, was: VersionLook, now: VersionLook) -> str:
    return words.format(
        share=f"{now.percentage:g}",
        rest="all" if now.percentage == _ALL else f"{now.percentage:g} % of",
        before=was.replicas,
        replicas=now.replicas,
        size=f" with {_size(now)}" if _size(now) else ", without a number of replicas",
        held=": workflows pinned to it still run" if now.is_held else "",
    )


def _size(version: VersionLook) -> str:
    many = version.replicas
    return f"{many} replica{'' if many == 1 else 's'}" if many and not version.autoscaled else ""
