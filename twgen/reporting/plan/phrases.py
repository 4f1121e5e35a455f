"""What the reports of a plan, and of a status, say alike; their texts have been made printable."""

import shlex
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from twgen.model.analysis import Judgement
from twgen.model.draining import Ending, ScheduledEnding
from twgen.model.plan import Phase, RoutingPlan, VersionAction, VersionPlan, WorkerPlan
from twgen.planning.draining.endings import in_words
from twgen.planning.draining.schedule import MOST_REPEATS, is_due
from twgen.planning.sentences import counted, described_change, listed, spoken

Item = TypeVar("Item")

SIGNS: Mapping[Phase, str] = {
    Phase.SETTLED: "✓",
    Phase.WAITING: "…",
    Phase.MOVING: "→",
    Phase.BLOCKED: "✗",
}
COLUMNS = ("version", "status", "action", "replicas", "because")
MOST_ROWS = 100
"""Rows of one worker that a person reads: as many as Temporal itself keeps versions of it, by default."""
_NAMED = 3
"""Versions of a folded row that are named."""


def phase_phrase(routing: RoutingPlan) -> str:
    """Its phase, and for who needs to look it up the reason that blocks it."""
    return f"{routing.phase} ({routing.reason})" if routing.phase is Phase.BLOCKED else routing.phase


def next_with_reason(worker: WorkerPlan) -> str:
    """The next change of traffic, who must first give the worker up for it, and why."""
    routing = worker.routing
    before = f"take the worker over from {worker.manager} and " if worker.manager else "claim the worker and "
    return f"{before if routing.claim_manager else ''}{next_change(routing)}, because {routing.because}"


def judgement_phrase(judged: Judgement) -> str:
    """What a metric says: `failures passes: 1 of 41 failed (2.44 %), bound 5 %`."""
    return f"{judged.metric} {judged.verdict.lower()}: {judged.because}"


def endings_of_versions(worker: WorkerPlan) -> list[list[ScheduledEnding]]:
    """What its policy does to the workflows of each version that drains, in order."""
    return [list(own) for _, own in groupby(worker.endings, attrgetter("build_id"))]


def endings_phrase(endings: Sequence[ScheduledEnding], now: datetime) -> str:
    """The same of one version: what was done, what is due and by which command, what comes."""
    due = next((one for one in endings if not one.is_begun and is_due(one, now)), None)
    by = f" (`{_drain_command(due)}`, or `twgen tick` where its operator lets it)" if due else ""
    told = ", then ".join(_ending_phrase(ending, now) for ending in endings)
    return f"{endings[0].build_id}: {told}{by}"


def _ending_phrase(ending: ScheduledEnding, now: datetime) -> str:
    types = ending.what.workflow_types
    does = in_words(ending.what, f"those of type {listed(types)}" if types else "all")
    if ending.is_begun:
        number = "" if ending.workflows is None else f", {counted(ending.workflows, 'workflow')}"
        return f"{does} (begun {spoken(now - ending.at)} ago{number}{_again(ending)})"
    if ending.held_by:
        does = f"{does}, held up ({ending.held_by})"
    if ending.at <= now:
        return f"{does} (due for {spoken(now - ending.at)})"
    return f"{does} (in {spoken(ending.at - now)})"


def _again(ending: ScheduledEnding) -> str:
    """How often it was begun again, as the end of a sentence."""
    if not ending.repeats:
        return ""
    told = f"; {counted(ending.repeats, 'time')} more for workflows that started later"
    return told if ending.repeats < MOST_REPEATS else f"{told}, and not again: end what starts them"


def _drain_command(ending: ScheduledEnding) -> str:
    what = ending.what
    types = [f"--type {shlex.quote(name)}" for name in what.workflow_types]
    match what.ending:
        case Ending.SIGNAL:
            does = [f"--signal {shlex.quote(what.signal_name)}"]
            if what.signal_input is not None:
                does.append(f"--signal-input {shlex.quote(what.signal_input.decode())}")
        case Ending.MOVE:
            does = ["--move"] if what.needs_replay else ["--move", "--without-replay"]
        case Ending.CANCEL | Ending.TERMINATE:
            does = [f"--{what.ending.lower()}"]
    return " ".join(["twgen drain PATH", f"--version {shlex.quote(ending.build_id)}", *does, *types])


def next_change(routing: RoutingPlan) -> str:
    """The next change of traffic, as an order."""
    return described_change(routing.action, routing.build_id, routing.percentage)


def replicas_cell(version: VersionPlan) -> str:
    """The replicas of a version: as they are, or from what to what."""
    live = version.live.replicas if version.live else None
    if version.action is VersionAction.DROP:
        return f"{live} → gone"
    if not version.is_rendered:
        return "" if live is None else str(live)
    if version.replicas is None:
        return "left out" if live is None else f"{live} (left out)"
    return str(version.replicas) if live in {None, version.replicas} else f"{live} → {version.replicas}"


def version_rows(worker: WorkerPlan) -> Iterator[tuple[list[VersionPlan], tuple[str, ...]]]:
    """The versions of each row and its other cells; those that are alike share one when they are too many."""
    target = worker.spec.build_id

    def likeness(version: VersionPlan) -> object:
        is_target = version.build_id == target
        return None if is_target else (version.status, version.action, replicas_cell(version), version.reason)

    for group in folded(worker.versions.versions, likeness):
        first, *others = group
        because = first.because
        if any(version.because != because for version in others):
            because = f"{because} ({first.build_id})"
        yield group, (first.status.value, first.action.value, replicas_cell(first), because)


def several(names: list[str]) -> str:
    """A few names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more:,} more"


def folded_warnings(worker: WorkerPlan) -> Iterator[str]:
    """The warnings, with those in one that say the same of many versions: their rows have the names."""
    for texts in _alike_warnings(worker):
        if len(texts) <= _NAMED:
            yield from texts
        else:
            yield f"{counted(len(texts), 'version')}, such as {texts[0]}"


def warnings_once(worker: WorkerPlan) -> Iterator[str]:
    """The same where a line may be long: what is said of several versions is said of the first one."""
    for texts in _alike_warnings(worker):
        first, *others = dict.fromkeys(texts)
        if len(texts) > _NAMED:
            yield f"{counted(len(texts), 'version')}, such as {first}"
        else:
            more = f". The same is true of {listed([_name_in(text) for text in others])}" if others else ""
            yield f"{first}{more}"


def _alike_warnings(worker: WorkerPlan) -> Iterator[list[str]]:
    """The warnings, those together that say the same of one version each."""
    because = {version.build_id: version.because for version in worker.versions.versions}
    alike: dict[tuple[str, str], list[str]] = {}
    for text in worker.versions.warnings:
        name = _name_in(text)
        said = text.removeprefix(name)
        if reason := because.get(name, ""):
            said = said.replace(reason, "", 1)
        alike.setdefault((said, "") if name in because else (text, text), []).append(text)
    yield from alike.values()


def _name_in(text: str) -> str:
    """The version that a warning begins with, if it is about one."""
    return text.partition(" ")[0].removesuffix(":")


def folded(items: Sequence[Item], likeness: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Each item alone while a person can read them all; beyond that, those that are alike together.

    What is like nothing, None, stays alone.
    """
    if len(items) <= MOST_ROWS:
        return [[item] for item in items]
    groups: dict[Hashable, list[Item]] = {}
    for index, item in enumerate(items):
        key = likeness(item)
        groups.setdefault((index,) if key is None else key, []).append(item)
    return list(groups.values())
