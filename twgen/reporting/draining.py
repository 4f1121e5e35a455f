"""The workflows that keep old versions running, as text, JSON or Markdown."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from twgen.model.draining import AGES, DrainReport, VersionInUse
from twgen.model.problem import counted
from twgen.model.temporal import VersionStatus
from twgen.model.times import format_time
from twgen.planning.sentences import in_days
from twgen.reporting.layout import wrapped, written
from twgen.reporting.plan.markdown import code, sentence
from twgen.reporting.printable import printable, printable_copy
from twgen.versioning.names import TWGEN_API

_MOST_GROUPS = 10
"""The most groups of workflows that a person is shown for one version."""
_COLUMNS = ("version", "status", "workflows", "oldest", "pods", "drained within")


def draining_text(report: DrainReport, *, colour: bool = False, width: int | None = None) -> str:
    """A paragraph for each version, in lines of at most `width` characters; None: of any length."""
    lines = [
        printable(line)
        for worker in report.workers
        for version in worker.versions
        for line in _paragraph(worker.worker, version, report)
    ]
    lines = lines or [_none_held(report)]
    lines += [f"not read: {printable(why)}" for why in report.unread]
    return written(_laid_out(lines, width), colour=colour)


def _laid_out(lines: Iterable[str], width: int | None) -> Iterator[Text]:
    for line in lines:
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        # the first line of a paragraph names its version
        style = "" if indent else "bold"
        if width is None:
            yield Text(line, style)
        else:
            yield from wrapped(Text(text, style), width, indent, f"{indent}  ")


def draining_markdown(report: DrainReport) -> str:
    """A table for each worker that has old versions in use."""
    sections = []
    for worker in printable_copy(report).workers:
        if not worker.versions:
            continue
        rows = [f"| {' | '.join(_COLUMNS)} |", "| --- | --- | ---: | ---: | --- | --- |"]
        for version in worker.versions:
            cells = (
                *(sentence(version.status), str(version.number), _oldest(version) or "-"),
                *(_kept(version) or "-", _drained(version, report) or "-"),
            )
            rows.append(f"| {code(version.build_id)} | {' | '.join(cells)} |")
        sections.append("\n".join([f"### {sentence(worker.worker)}", "", *rows]))
    unread = [f"> **Not read:** {sentence(why)}" for why in printable_copy(report).unread]
    return "\n\n".join([*(sections or [f"{_none_held(report).capitalize()}."]), *unread]) + "\n"


def _none_held(report: DrainReport) -> str:
    return f"no old version{' that could be read' if report.unread else ''} has workflows or pods"


def draining_document(report: DrainReport) -> dict[str, Any]:
    """The report in full; its schema is drainreport.json."""
    return {
        "apiVersion": TWGEN_API,
        "kind": "DrainReport",
        "now": format_time(report.now),
        "windowSeconds": int(report.window.total_seconds()),
        "workers": [
            {
                "worker": worker.worker,
                "temporalNamespace": worker.temporal_namespace,
                "versions": [_version(version) for version in worker.versions],
            }
            for worker in report.workers
        ],
        "unread": list(report.unread),
    }


def _version(version: VersionInUse) -> dict[str, Any]:
    ends = version.ends_within
    return {
        "buildID": version.build_id,
        "status": version.status.value,
        "workflows": version.number,
        "groups": [
            {"workflowType": group.workflow_type, "taskQueue": group.task_queue, "workflows": group.number}
            for group in version.groups
        ],
        "grouped": version.grouped,
        "oldestSeconds": int(version.oldest.total_seconds()) if version.oldest is not None else None,
        "ages": [
            {"belowSeconds": int(below.total_seconds()) if below else None, "workflows": number}
            for below, number in zip((*AGES, None), version.ages, strict=True)
        ],
        "failing": version.failing,
        "paused": version.paused,
        "waitingForChild": version.waiting_for_child,
        "lookedAt": version.looked_at,
        "replicas": version.replicas,
        "cpu": version.cpu,
        "memoryBytes": version.memory,
        "drainedWithinSeconds": [int(end.total_seconds()) for end in ends] if ends else None,
        "unknownBecause": version.unknown_because,
    }


def _paragraph(worker: str, version: VersionInUse, report: DrainReport) -> Iterator[str]:
    kept = f"; it still has {kept}" if (kept := _kept(version)) else ""
    if not version.number:
        why = "no workflow is pinned to it"
        if version.status is VersionStatus.DRAINING:
            why = f"{why}, but Temporal has not noticed yet"
        yield f"{worker} {version.build_id}: {version.status}, {why}{kept}"
        return
    is_one = version.number == 1
    pinned = f"{counted(version.number, 'workflow')} {'is' if is_one else 'are'} pinned to it"
    oldest = f", the oldest is {_oldest(version)} old" if version.oldest is not None else ""
    yield f"{worker} {version.build_id}: {version.status}, {pinned}{oldest}{kept}"
    if version.grouped < version.number:
        yield f"  the newest {version.grouped} of them:"
    for group in version.groups[:_MOST_GROUPS]:
        yield f"  {group.number:>7}  {group.workflow_type} on {group.task_queue}"
    if more := version.groups[_MOST_GROUPS:]:
        yield f"  {sum(group.number for group in more):>7}  of {counted(len(more), 'other kind')}"
    below = [f"{number} below {in_days(age)}" for age, number in zip(AGES, version.ages, strict=False)]
    yield f"  age: {', '.join(below)}, {version.ages[-1]} older"
    if trouble := _trouble(version):
        yield f"  {trouble}"
    if version.ends_within:
        yield f"  drained within {_drained(version, report)}"
    else:
        yield f"  the time until it is drained is {_drained(version, report)}"


def _trouble(version: VersionInUse) -> str:
    """Why some workflows do not end, among the workflows that were checked."""
    parts = [
        (version.failing, "with workflow tasks that keep failing"),
        (version.paused, "paused"),
        (version.waiting_for_child, "waiting for a child workflow"),
    ]
    trouble = ", ".join(f"{number} {trouble_kind}" for number, trouble_kind in parts if number)
    is_sample = trouble and version.looked_at < version.number
    return f"{trouble} (among the oldest {version.looked_at})" if is_sample else trouble


def _oldest(version: VersionInUse) -> str:
    return in_days(version.oldest) if version.oldest is not None else ""


def _kept(version: VersionInUse) -> str:
    if not version.replicas:
        return ""
    asked = []
    if version.cpu:
        asked.append(f"{version.cpu:g} CPU")
    if version.memory:
        asked.append(f"{version.memory / 2**30:.3g} GiB")
    requested = f" ({', '.join(asked)})" if asked else ""
    return f"{counted(version.replicas, 'pod')}{requested}"


def _drained(version: VersionInUse, report: DrainReport) -> str:
    if not version.number:
        return ""
    if not version.ends_within:
        return f"not known: {version.unknown_because}"
    soonest, latest = map(in_days, version.ends_within)
    span = soonest if soonest == latest else f"{soonest} to {latest}"
    return (
        f"{span}, if its workflows last as long as the ones that ended in the last {in_days(report.window)}"
    )
