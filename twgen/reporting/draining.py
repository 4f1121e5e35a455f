"""A report on the workflows that keep old versions running, as text, JSON or Markdown."""

from collections.abc import Iterable, Iterator

from rich.text import Text

from twgen.model.draining import DrainReport, VersionInUse
from twgen.model.problem import counted
from twgen.model.record_shapes import document_of
from twgen.model.temporal import VersionStatus
from twgen.planning.sentences import in_days
from twgen.reporting.layout import wrapped, written
from twgen.reporting.plan.markdown import code, sentence
from twgen.reporting.printable import printable, printable_copy
from twgen.versioning.names import TWGEN_API

DRAIN_REPORT = document_of(TWGEN_API, "DrainReport", DrainReport, is_printed=True)
_MOST_GROUPS = 10
_COLUMNS = ("version", "status", "workflows", "oldest", "pods", "drained within")


def draining_text(report: DrainReport, *, colour: bool = False, width: int | None = None) -> str:
    """A paragraph for each version, wrapped at `width` characters, or not wrapped if `width` is None."""
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
        # a line without indent is the first line of a paragraph and names the version
        style = "" if indent else "bold"
        if width is None:
            yield Text(line, style)
        else:
            yield from wrapped(Text(text, style), width, indent, f"{indent}  ")


def draining_markdown(report: DrainReport) -> str:
    """A Markdown table for each worker with old versions in use."""
    sections = []
    for worker in printable_copy(report).workers:
        if not worker.versions:
            continue
        rows = [f"| {' | '.join(_COLUMNS)} |", "| --- | --- | ---: | ---: | --- | --- |"]
        for version in worker.versions:
            cells = (
                *(sentence(version.status), _number(version), _oldest(version) or "-"),
                *(_kept(version) or "-", _drained(version, report) or "-"),
            )
            rows.append(f"| {code(version.build_id)} | {' | '.join(cells)} |")
        sections.append("\n".join([f"### {sentence(worker.worker)}", "", *rows]))
    unread = [f"> **Not read:** {sentence(why)}" for why in printable_copy(report).unread]
    return "\n\n".join([*(sections or [f"{_none_held(report).capitalize()}."]), *unread]) + "\n"


def _none_held(report: DrainReport) -> str:
    return f"no old version{' that could be read' if report.unread else ''} has workflows or pods"


def _paragraph(worker: str, version: VersionInUse, report: DrainReport) -> Iterator[str]:
    kept = f"; it still has {kept}" if (kept := _kept(version)) else ""
    if version.number is None:
        yield f"{worker} {version.build_id}: {version.status}, its workflows were not counted{kept}"
        return
    if not version.number:
        why = "no workflow is pinned to it"
        if version.status is VersionStatus.DRAINING:
            why = f"{why}, but Temporal has not detected this yet"
        yield f"{worker} {version.build_id}: {version.status}, {why}{kept}"
        return
    is_one = version.number == 1
    pinned = f"{counted(version.number, 'workflow')} {'is' if is_one else 'are'} pinned to it"
    oldest = f", the oldest is {_oldest(version)} old" if version.oldest is not None else ""
    yield f"{worker} {version.build_id}: {version.status}, {pinned}{oldest}{kept}"
    if 0 < version.grouped < version.number:
        yield f"  the newest {version.grouped} of them:"
    for group in version.groups[:_MOST_GROUPS]:
        yield f"  {group.number:>7}  {group.workflow_type} on {group.task_queue}"
    if more := version.groups[_MOST_GROUPS:]:
        yield f"  {sum(group.number for group in more):>7}  of {counted(len(more), 'other kind')}"
    if version.ages:
        ages = (
            f"{number} below {in_days(below)}" if below else f"{number} older"
            for below, number in version.ages
        )
        yield f"  age: {', '.join(ages)}"
    if trouble := _trouble(version):
        yield f"  {trouble}"
    if version.ends_within:
        yield f"  drained within {_drained(version, report)}"
    else:
        yield f"  the time until it is drained is {_drained(version, report)}"


def _trouble(version: VersionInUse) -> str:
    """Why some of the checked workflows do not end."""
    parts = [
        (version.failing, "with workflow tasks that keep failing"),
        (version.paused, "paused"),
        (version.waiting_for_child, "waiting for a child workflow"),
    ]
    trouble = ", ".join(f"{number} {trouble_kind}" for number, trouble_kind in parts if number)
    is_sample = trouble and version.looked_at < (version.number or 0)
    return f"{trouble} (among the oldest {version.looked_at})" if is_sample else trouble


def _number(version: VersionInUse) -> str:
    return "-" if version.number is None else str(version.number)


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
