"""A status as plain lines, each of which names its worker: for logs and `grep`."""

from collections.abc import Iterator
from datetime import datetime

from twgen.model.status import Status, VersionView, WorkerView
from twgen.model.values import dataclass
from twgen.reporting.plan.phrases import (
    endings_of_versions,
    endings_phrase,
    folded_warnings,
    judgement_phrase,
)
from twgen.reporting.printable import printable_copy
from twgen.reporting.status.phrases import (
    gate_phrase,
    next_phrase,
    outlook_phrase,
    owner_phrase,
    percentage_text,
    pods_phrase,
    state_phrase,
    target_phrase,
    trouble_phrases,
)


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A line, and its meaning without the passage of time: lines with equal meanings say the same."""

    text: str
    meaning: tuple[object, ...]
    version: str = ""
    """The worker and build ID that it is about; empty: about no single version."""


def status_lines(status: Status) -> list[StatusLine]:
    """A line for each worker, each of its versions and each warning."""
    status = printable_copy(status)
    lines = [line for worker in status.workers for line in _worker(worker, status.now)]
    return lines + [_line("warning", text) for text in status.warnings]


def news(before: list[StatusLine], after: list[StatusLine]) -> list[str]:
    """The new lines, and the versions that are gone; empty if only time has passed."""
    known = {line.meaning for line in before}
    there = {line.version for line in after}
    gone = [line.version for line in before if line.version and line.version not in there]
    return [line.text for line in after if line.meaning not in known] + [
        f"{version}: gone" for version in gone
    ]


def _worker(worker: WorkerView, now: datetime) -> Iterator[StatusLine]:
    spec, routing = worker.plan.spec, worker.plan.routing
    name, gate, owner = spec.worker_deployment, gate_phrase(worker), owner_phrase(worker)
    if worker.plan.unserved:
        yield _line(name, f"ALARM: {worker.plan.unserved}")
    comes = next_phrase(worker, now)
    parts = (
        f"{routing.phase}, target {target_phrase(worker)}",
        f"next: {comes}" if comes else "",
        f"gate {gate}" if gate else "",
        f"owner: {owner}",
    )
    change = (routing.phase, routing.action, routing.build_id, routing.percentage, routing.due_at)
    # with a due time, the reason counts down to it
    reason = "" if routing.due_at else target_phrase(worker)
    yield StatusLine(f"{name}: {'; '.join(filter(None, parts))}", (name, *change, reason, gate, owner))
    for judged in worker.plan.judgements:
        # the numbers change with each workflow
        meaning = (name, "analysis", judged.metric, judged.verdict)
        yield StatusLine(f"{name}: analysis: {judgement_phrase(judged)}", meaning)
    for endings in endings_of_versions(worker.plan):
        stand = ((one.build_id, one.is_begun, one.repeats, one.is_next and one.at <= now) for one in endings)
        yield StatusLine(f"{name}: drains: {endings_phrase(endings, now)}", (name, "drains", *stand))
    for version in worker.versions:
        yield _version(name, spec.namespace, version, now)
    if worker.unversioned_percentage is not None:
        yield _line(name, f"unversioned workers: {percentage_text(worker.unversioned_percentage)}")
    for warning in folded_warnings(worker.plan):
        yield _line(name, f"warning: {warning}")


def _version(worker: str, namespace: str, version: VersionView, now: datetime) -> StatusLine:
    plan = version.plan
    share = percentage_text(version.percentage)
    pods = pods_phrase(version)
    target = "target" if version.is_target else ""
    troubles = tuple(trouble_phrases(version, namespace))
    said = (share, state_phrase(version, now), pods, target, *troubles, outlook_phrase(version, now))
    about = f"{worker} {plan.build_id}"
    meaning = (plan.status, share, pods, target, troubles, version.open_workflows, plan.action, plan.replicas)
    return StatusLine(f"{about}: {', '.join(filter(None, said))}", (about, *meaning), about)


def _line(about: str, text: str) -> StatusLine:
    # what follows a colon can count time
    return StatusLine(f"{about}: {text}", (about, *text.split(": ")[:2]))
