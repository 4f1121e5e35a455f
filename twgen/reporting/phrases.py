"""Phrases about workers and their versions for several reports. The inputs must already be printable."""

import shlex
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from twgen.model.analysis import Judgement
from twgen.model.draining import BatchAction, ScheduledAction
from twgen.model.plan import Phase, VersionAction
from twgen.model.problem import counted
from twgen.model.status import VersionReport, WorkerReport
from twgen.model.temporal import VersionStatus
from twgen.planning.draining.actions import MOST_REPEATS, in_words, is_due
from twgen.planning.sentences import listed, spoken

Item = TypeVar("Item")

SIGNS: Mapping[Phase, str] = {
    Phase.SETTLED: "✓",
    Phase.WAITING: "…",
    Phase.MOVING: "→",
    Phase.BLOCKED: "✗",
}
COLUMNS = ("version", "status", "action", "replicas", "because")
MOST_ROWS = 100
"""The maximum number of rows for a worker, which is also Temporal's default limit on versions."""
_FIELDS = 6
"""The maximum number of differing fields that a phrase names."""
_NAMED = 3
"""The maximum number of versions that a row of similar versions names."""


def judgement_phrase(judged: Judgement) -> str:
    """The verdict on a metric, such as `failures passes: 1 of 41 failed (2.44%), bound 5%`."""
    return f"{judged.metric} {judged.verdict.lower()}: {judged.because}"


def actions_of_versions(actions: Sequence[ScheduledAction]) -> list[list[ScheduledAction]]:
    """The actions on workflows, grouped by draining version."""
    return [list(own) for _, own in groupby(actions, attrgetter("build_id"))]


def actions_phrase(scheduled_actions: Sequence[ScheduledAction], now: datetime) -> str:
    """The past, due and future actions on one version, with the command for the due action."""
    due = next((action for action in scheduled_actions if not action.is_begun and is_due(action, now)), None)
    steps = ", then ".join(_action_phrase(scheduled, now) for scheduled in scheduled_actions)
    if not due:
        return f"{scheduled_actions[0].build_id}: {steps}"
    command = f"`{_end_command(due)}`"
    how = f"to carry out the due action, run {command} (`twgen tick` does this if the operator allows it)"
    return f"{scheduled_actions[0].build_id}: {steps}; {how}"


def _action_phrase(scheduled: ScheduledAction, now: datetime) -> str:
    types = scheduled.what.workflow_types
    does = in_words(scheduled.what, f"workflows of type {listed(types)}" if types else "all workflows")
    if scheduled.is_begun:
        more = "" if scheduled.workflows is None else f", {counted(scheduled.workflows, 'workflow')}"
        if repeats := scheduled.repeats:
            more += f"; repeated {counted(repeats, 'time')} for workflows that started later"
        if repeats >= MOST_REPEATS:
            more += ", the maximum: find and stop the program that starts them"
        return f"{does} (started {spoken(now - scheduled.at)} ago{more})"
    obstacle = f"not possible yet: {scheduled.held_by}; " if scheduled.held_by else ""
    when = f"overdue by {spoken(now - scheduled.at)}"
    if scheduled.at > now:
        when = f"in {spoken(scheduled.at - now)}"
    return f"{does} ({obstacle}{when})"


def _end_command(scheduled: ScheduledAction) -> str:
    action = scheduled.what
    types = [f"--type {shlex.quote(name)}" for name in action.workflow_types]
    match action.action:
        case BatchAction.SIGNAL:
            does = [f"--signal {shlex.quote(action.signal_name)}"]
            if action.signal_input is not None:
                does.append(f"--signal-input {shlex.quote(action.signal_input.decode())}")
        case BatchAction.MOVE:
            does = ["--move"] if action.needs_replay else ["--move", "--without-replay"]
        case BatchAction.CANCEL | BatchAction.TERMINATE:
            does = [f"--{action.action.lower()}"]
    return " ".join(["twgen end PATH", f"--version {shlex.quote(scheduled.build_id)}", *does, *types])


def replicas_cell(version: VersionReport) -> str:
    """A version's replicas: a number (`3`), a change (`3 → 0`), `by autoscaler` or `by hand`."""
    live = version.pods.wanted if version.pods else None
    if version.action is VersionAction.DROP:
        return f"{live} → gone"
    if version.action is VersionAction.NONE:
        return "" if live is None else str(live)
    if version.replicas is None:
        by = "by autoscaler" if version.is_autoscaled else "by hand"
        return by if live is None else f"{live} ({by})"
    return str(version.replicas) if live in {None, version.replicas} else f"{live} → {version.replicas}"


def records_phrase(worker: WorkerReport) -> str:
    """The version records that the policy deletes in Temporal, or empty if there are none."""
    if not worker.old_records:
        return ""
    return f"{several(list(worker.old_records))} in Temporal, once no open workflow is pinned to them"


def differences_phrase(worker: WorkerReport) -> str:
    """The fields in which a new target differs from the current version, or empty if none are known."""
    if not worker.differs:
        return ""
    [current] = (item.build_id for item in worker.versions if item.status is VersionStatus.CURRENT)
    return f"differs from {current} in {listed(worker.differs, _FIELDS)}"


def version_rows(worker: WorkerReport) -> Iterator[tuple[list[VersionReport], tuple[str, ...]]]:
    """The versions and the other cells of each row. With too many versions, similar versions share a row."""

    def likeness(version: VersionReport) -> object:
        if version.is_target:
            return None
        return (version.status, version.action, replicas_cell(version), version.reason)

    for group in folded(worker.versions, likeness):
        first, *others = group
        because = first.because
        if any(version.because != because for version in others):
            because = f"{because} ({first.build_id})"
        yield group, (first.status.value, first.action.value, replicas_cell(first), because)


def several(names: list[str]) -> str:
    """The first names, and the number of remaining names."""
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more:,} more"


def folded_warnings(worker: WorkerReport) -> Iterator[str]:
    """The warnings. If many versions have the same warning, it appears once and names only one version."""
    for texts in _alike_warnings(worker):
        if len(texts) <= _NAMED:
            yield from texts
        else:
            yield f"{counted(len(texts), 'version')}, such as {texts[0]}"


def warnings_once(worker: WorkerReport) -> Iterator[str]:
    """The warnings for long lines. If a few versions share a warning, it appears once and names them all."""
    for texts in _alike_warnings(worker):
        first, *others = dict.fromkeys(texts)
        if len(texts) > _NAMED:
            yield f"{counted(len(texts), 'version')}, such as {first}"
        else:
            more = f". The same is true for {listed([_name_in(text) for text in others])}" if others else ""
            yield f"{first}{more}"


def _alike_warnings(worker: WorkerReport) -> Iterator[list[str]]:
    """The warnings in groups. The warnings within a group only differ in the version."""
    because = {version.build_id: version.because for version in worker.versions}
    alike: dict[tuple[str, str], list[str]] = {}
    for text in worker.warnings:
        name = _name_in(text)
        rest = text.removeprefix(name)
        if reason := because.get(name, ""):
            rest = rest.replace(reason, "", 1)
        alike.setdefault((rest, "") if name in because else (text, text), []).append(text)
    yield from alike.values()


def _name_in(text: str) -> str:
    """A warning's first word, which is a build ID if the warning is about one version."""
    return text.partition(" ")[0].removesuffix(":")


def folded(items: Sequence[Item], likeness: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Group items with the same likeness if there are too many items. Otherwise, each item is its own group.

    An item with the likeness None is always its own group.
    """
    if len(items) <= MOST_ROWS:
        return [[item] for item in items]
    groups: dict[Hashable, list[Item]] = {}
    for index, item in enumerate(items):
        key = likeness(item)
        groups.setdefault((index,) if key is None else key, []).append(item)
    return list(groups.values())
