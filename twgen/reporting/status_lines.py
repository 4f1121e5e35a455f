"""A status as plain lines, each of which names its worker: for logs and `grep`."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from twgen.reporting.printable import printable
from twgen.reporting.status import Status, VersionView, WorkerView
from twgen.reporting.status_words import (
    because_words,
    gate_words,
    next_words,
    outlook_words,
    owner_words,
    percentage_words,
    pods_words,
    state_words,
)


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A line, and what of it does not change by time alone: two lines that are equal in it say the same."""

    text: str
    meaning: tuple[object, ...]
    version: str = ""
    """The worker and build ID that it is about; empty: about no single version."""


def status_lines(status: Status) -> list[StatusLine]:
    """A line for each worker, each of its versions and each warning."""
    lines = [line for worker in status.workers for line in _worker(worker, status.now)]
    return lines + [_line("warning", text) for text in status.warnings]


def _worker(worker: WorkerView, now: datetime) -> Iterator[StatusLine]:
    name, routing = worker.plan.versions.spec.worker_deployment, worker.plan.routing
    gate, owner = gate_words(worker), owner_words(worker)
    parts = (
        f"{routing.phase}: {because_words(worker)}",
        _part("next: ", next_words(worker, now)),
        _part("gate ", gate),
        _part("owner: ", owner),
    )
    change = (routing.phase, routing.action, routing.build_id, routing.percentage, routing.due_at)
    # with a due time, the reason counts down to it
    reason = "" if routing.due_at else because_words(worker)
    yield StatusLine(f"{name}: {'; '.join(filter(None, parts))}", (name, *change, reason, gate, owner))
    for version in worker.versions:
        yield _version(name, version, now)
    if worker.unversioned_percentage is not None:
        yield _line(name, f"unversioned workers: {percentage_words(worker.unversioned_percentage)}")
    for warning in worker.plan.versions.warnings:
        yield _line(name, f"warning: {warning}")


def _version(name: str, version: VersionView, now: datetime) -> StatusLine:
    plan = version.plan
    share = percentage_words(version.percentage)
    pods = pods_words(version)
    target = "target" if version.is_target else ""
    said = (share, state_words(version, now), pods, target, outlook_words(version, now))
    about = printable(f"{name} {plan.build_id}")
    meaning = (about, plan.status, share, pods, target, version.open_workflows, plan.action, plan.replicas)
    return StatusLine(f"{about}: {', '.join(filter(None, said))}", meaning, about)


def _line(about: str, text: str) -> StatusLine:
    # what follows a colon can count time
    return StatusLine(printable(f"{about}: {text}"), (about, *text.split(": ")[:2]))


def _part(name: str, text: str) -> str:
    return f"{name}{text}" if text else ""


def news(before: list[StatusLine], after: list[StatusLine]) -> list[str]:
    """What the later lines say that the earlier ones do not; empty when only time has passed."""
    told = {line.meaning for line in before}
    there = {line.version for line in after}
    gone = [line.version for line in before if line.version and line.version not in there]
    return [line.text for line in after if line.meaning not in told] + [
        f"{version}: gone" for version in gone
    ]
