"""Phrases that describe a worker's status in trees and on pages, and plain lines for logs and `grep`.

The functions that return phrases expect printable inputs. A status describes either workers that twgen has
just read, or a fleet. A fleet's status consists of the statuses that rollouts wrote into the cluster.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from twgen.model.plan import Phase, VersionAction
from twgen.model.problem import counted
from twgen.model.reasons import RoutingReason
from twgen.model.rollout import Verb
from twgen.model.status import (
    AttachedState,
    Ownership,
    ReportedRequest,
    RolloutStatus,
    Status,
    Unstarted,
    VersionReport,
    WorkerReport,
)
from twgen.model.temporal import GateStatus, VersionStatus
from twgen.model.values import dataclass
from twgen.planning.diagnosis.findings import findings_of_orphans
from twgen.planning.requests import has_ended
from twgen.planning.sentences import (
    clock_time,
    described_change,
    how_to_resume,
    in_days,
    plain_percentage,
    spoken,
    version_name,
)
from twgen.planning.worker_status import urgency
from twgen.reporting.phrases import (
    actions_of_versions,
    actions_phrase,
    differences_phrase,
    folded_warnings,
    judgement_phrase,
    records_phrase,
)
from twgen.reporting.printable import printable, printable_copy

_STATES: Mapping[VersionStatus, str] = {
    VersionStatus.DRAINED: "Drained {age} ago",
    VersionStatus.CREATED: "Created {age} ago",
    VersionStatus.NOT_REGISTERED: "Not registered, deployed {age} ago",
}
_OWNERS: Mapping[Ownership, str] = {
    Ownership.OURS: "ours",
    Ownership.ADOPTED: "to be taken over",
    Ownership.OTHER: "another manager",
}
_CLAIMS: Mapping[Ownership, str] = {
    Ownership.NOBODY: "claim the worker and ",
    Ownership.ADOPTED: "take the worker over from {} and ",
}
"""The claim that must come before the next traffic change, because only the manager can change traffic."""
_GATES: Mapping[str, str] = {
    Unstarted.NOT_STARTED: "not started",
    GateStatus.COMPLETED: "passed",
    GateStatus.TIMED_OUT: "timed out",
}


def fleet_status(statuses: Sequence[RolloutStatus], now: datetime, warnings: Sequence[str] = ()) -> Status:
    """The status of all rollouts, as each rollout wrote it."""
    workers = []
    for status in statuses:
        because = status.message or "its status gives no reason"
        worker = status.details or WorkerReport(
            status.worker, "", status.target, status.phase, status.reason, because
        )
        workers.append(replace(worker, request=_request(status), rollout=replace(status, report=None)))
    return Status(now, tuple(workers), tuple(warnings))


def lines_without_details(statuses: Sequence[RolloutStatus]) -> list[str]:
    """A line for each rollout whose status has no details, such as a rollout that has not started."""
    return [f"{status.worker}: {status.phase}: {status.message}" for status in statuses if not status.details]


def request_phrase(status: RolloutStatus, now: datetime) -> str:
    """The recent requests to a rollout and their answers; empty if there are none."""
    phrases = []
    for pending in status.pending:
        if request := pending.waiting:
            is_taken = pending.answer_to_it is not None
            state = "it is being carried out" if is_taken else when_answered(status, request.verb)
            phrases.append(f"{request} {spoken(now - request.at)} ago: {state}")
        elif not pending.request:
            phrases.append(pending.wrong)
    recent = (answer for answer in status.answers if abs(now - answer.request.at) < timedelta(hours=1))
    return "; ".join(phrases or (f"{answer.request}: {answer.state}: {answer.message}" for answer in recent))


def when_answered(status: RolloutStatus, verb: Verb) -> str:
    """When a new request will be answered.

    With driver Hook or None, tick will refuse the request. This text cannot say so, because the status does
    not contain the driver.
    """
    if status.reason == RoutingReason.ROLLOUT_NOT_BEGUN:
        return "its rollout answers once it has begun"
    if has_ended(status):
        command = command_of(verb, status.worker)
        return f"its rollout has ended: `twgen tick` answers the request, or run `{command}`"
    return "its rollout usually answers within seconds"


def command_of(verb: Verb, worker: str) -> str:
    """The command that sends this request to a rollout."""
    namespace, _, name = worker.partition("/")
    return f"twgen {verb.lower()} worker/{shlex.quote(name)} -n {shlex.quote(namespace)}"


def _request(status: RolloutStatus) -> ReportedRequest | None:
    pending = next((each for each in status.pending if each.waiting), None)
    answer = pending.answer_to_it if pending else next(iter(status.answers), None)
    request = pending.request if pending else answer.request if answer else None
    if not request:
        return None
    state, message = (answer.state, answer.message) if answer else (Unstarted.PENDING, "")
    return ReportedRequest(request.id, request.verb, request.target, request.by, request.at, state, message)


def orphan_lines(orphans: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each worker that has Deployments but no intent."""
    return [
        printable(f"{finding.about}: {finding.says}: {finding.because}; {finding.remedy}")
        for finding in findings_of_orphans(orphans)
    ]


def percentage_text(percentage: float | None) -> str:
    """A version's share of new workflows; empty if the version is not in the routing."""
    return "" if percentage is None else f"{plain_percentage(percentage)}%"


def phase_phrase(worker: WorkerReport, now: datetime) -> str:
    """The phase and its duration. For Blocked, also the reason word, so that readers can look it up."""
    reason = f" ({worker.reason})" if worker.phase is Phase.BLOCKED else ""
    length = f" for {spoken(now - worker.rollout.since)}" if worker.rollout else ""
    return f"{worker.phase}{reason}{length}"


def urgency_of(worker: WorkerReport) -> tuple[bool, int]:
    """The sort key of workers in reports for people. The most urgent worker comes first."""
    return urgency(worker.phase, is_alarm=bool(worker.alarm))


def head_phrases(worker: WorkerReport, now: datetime) -> list[tuple[str, str]]:
    """The labels and texts that a report shows about a worker above its versions."""
    was_read = all(version.cluster_was_read for version in worker.versions)
    phrases = (
        ("target", target_phrase(worker)),
        ("change", differences_phrase(worker)),
        ("next", next_phrase(worker, now)),
        ("gate", gate_phrase(worker)),
        *(("metric", judgement_phrase(judged)) for judged in worker.analysis),
        *(("drains", actions_phrase(actions, now)) for actions in actions_of_versions(worker.draining)),
        ("forgets", records_phrase(worker)),
        ("manager", owner_phrase(worker)),
        ("request", asked_phrase(worker, now)),
        ("pods", "" if was_read else "the cluster was not read"),
    )
    return [(label, text) for label, text in phrases if text]


def target_phrase(worker: WorkerReport) -> str:
    """The target, and the reason for the worker's phase."""
    # if the rollout's message counts down, it also contains the end time, so it does not become outdated
    because = worker.rollout.message if worker.rollout else worker.because
    return f"{worker.target}: {because}"


def next_phrase(worker: WorkerReport, now: datetime) -> str:
    """The next traffic change and its time, with any claim that must come first.

    Empty if no change is known.
    """
    change, due, described = worker.next, worker.waits_until, ""
    if change:
        described = _CLAIMS.get(worker.owner.relation, "").format(worker.owner.identity)
        described += described_change(change.action, change.build_id, change.percentage)
    if change and not change.at:
        return f"{described} {'now' if worker.phase is Phase.MOVING else 'by hand'}"
    if not due:
        return ""
    wait, clock = spoken(due - now), clock_time(due, now)
    return f"{described} in {wait} ({clock})" if change else f"waits {wait} more (until {clock})"


def asked_phrase(worker: WorkerReport, now: datetime) -> str:
    """The recent requests to the worker's rollout and their answers; empty if there are none."""
    return printable(request_phrase(worker.rollout, now)) if worker.rollout else ""


def owner_phrase(worker: WorkerReport) -> str:
    """The worker's manager in Temporal, and the last client that changed the worker, if they differ.

    Empty if Temporal was not read.
    """
    if not worker.count:
        return ""
    owner = worker.owner.identity
    relation = _OWNERS.get(worker.owner.relation)
    other = f"; last changed by {worker.last_modifier}" if worker.last_modifier not in {"", owner} else ""
    return (f"{owner} ({relation})" if relation else owner or "no manager") + other


def gate_phrase(worker: WorkerReport) -> str:
    """The state of each gate on every task queue; empty if no gate is needed."""
    runs: dict[str, list[str]] = {}
    for run in worker.gates:
        state = "to be started" if run.is_due else _GATES.get(run.status) or str(run.status).lower()
        name = f" ({run.workflow_id})" if run.is_due else ""
        runs.setdefault(run.workflow_type, []).append(f"{state} on {run.task_queue}{name}")
    return "; ".join(f"{workflow_type}: {', '.join(states)}" for workflow_type, states in runs.items())


def state_phrase(version: VersionReport, now: datetime) -> str:
    """A version's status and its duration, its open workflows, and the client that last changed its share."""
    if version.since is None:
        is_known = version.status is not VersionStatus.NOT_REGISTERED
        state = version.status.value if is_known else "Not registered"
    else:
        words = _STATES.get(version.status, f"{version.status.value} for {{age}}")
        state = words.format(age=spoken(now - version.since))
    if workflows := workflows_phrase(version, now):
        state = f"{state}, {workflows}"
    if moved := version.moved_by:
        state = f"{state}, moved by {moved.application or moved.identity}"
    return f"{state} (intent {moved.intent[:8]})" if moved and moved.intent else state


def workflows_phrase(version: VersionReport, now: datetime) -> str:
    """The number of a version's open workflows, and the oldest one's age.

    Empty if the number is 0 or unknown.
    """
    if not version.open_workflows:
        return ""
    number, oldest = counted(version.open_workflows, "open workflow"), version.oldest_open_at
    return f"{number}, the oldest {in_days(now - oldest)} old" if oldest else number


def pods_phrase(version: VersionReport) -> str:
    """How many of a version's desired pods are available."""
    if version.pods:
        return f"{version.pods.available}/{version.pods.wanted} pods"
    return "no Deployment" if version.cluster_was_read else "pods not read"


def trouble_phrases(version: VersionReport, namespace: str) -> Iterator[str]:
    """The problems of a version's pods and attached objects, as the cluster reports them."""
    if pods := version.pods:
        if pods.terminating:
            yield "its Deployment is being deleted"
        if pods.paused:
            yield f"its Deployment is paused: {how_to_resume(version.deployment, namespace)}"
        if pods.stalled:
            yield f"its Deployment cannot progress: {pods.stalled}"
        if pods.problem:
            yield f"its newest Pod {pods.problem}"
    for item in version.attached:
        if item.state is AttachedState.MISSING:
            yield f"{item.kind} {item.name} is missing: {item.says}"
        elif item.says:
            yield f"{item.kind} {item.name}: {item.says}"


def outlook_phrase(version: VersionReport, now: datetime) -> str:
    """The next change of a version's Deployment; empty if there is none."""
    outlook, later = _outlook(version), version.next
    if outlook and version.action in _EXPLAINED:
        return f"{outlook}: {version.because}"
    outlooks = ["is patched"] if version.is_patched else []
    if outlook:
        outlooks.append(outlook)
    elif later and later.action in _LATER:
        outlooks.append(f"{_LATER[later.action]} in {spoken(later.at - now)}")
    return ", ".join(outlooks)


def _outlook(version: VersionReport) -> str:
    live = version.pods.wanted if version.pods else None
    replicas = 0 if version.action is VersionAction.SCALE_DOWN else version.replicas
    match version.action:
        case VersionAction.CREATE:
            size = "" if replicas is None else f" with {counted(replicas, 'pod')}"
            # if the cluster was not read, the Deployment may already exist
            return f"will be created{size}" if version.cluster_was_read else ""
        case VersionAction.KEEP | VersionAction.SCALE_DOWN if live is None:
            return "" if replicas is None else f"will be scaled to {replicas}"
        case VersionAction.KEEP | VersionAction.SCALE_DOWN:
            return "" if replicas in {None, live} else f"will be scaled from {live} to {replicas}"
        case VersionAction.UPDATE:
            return "its pods will be replaced"
        case VersionAction.DROP:
            return "its Deployment will be removed"
        case VersionAction.NONE:
            return "is not rendered"


_EXPLAINED = {VersionAction.KEEP, VersionAction.UPDATE, VersionAction.SCALE_DOWN, VersionAction.DROP}
"""The actions whose reason is shown. A new Deployment needs no reason, and a missing one has a warning."""
_LATER: Mapping[VersionAction, str] = {
    VersionAction.SCALE_DOWN: "will be scaled to 0",
    VersionAction.DROP: "its Deployment will be removed",
}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A line and its meaning. Lines with the same meaning differ only in times and counters."""

    text: str
    meaning: tuple[object, ...]
    version: str = ""
    """The worker and the build ID that the line is about; empty if it is not about a single version."""
    is_of_all: bool = False
    """Whether the line is not about a single worker."""


def status_lines(status: Status) -> list[StatusLine]:
    """A line for each worker, each of its versions and each warning."""
    status = printable_copy(status)
    lines = [line for worker in status.workers for line in _worker(worker, status.now)]
    return lines + [replace(_line("warning", text), is_of_all=True) for text in status.warnings]


def state_lines(status: Status) -> list[StatusLine]:
    """For each worker, a line with its alarm (if it has one) and then a line with its state."""
    status = printable_copy(status)
    return [line for worker in status.workers for line in _state(worker, status.now)]


def news(before: list[StatusLine], after: list[StatusLine]) -> list[str]:
    """The new lines, and a line for each version that is gone.

    Empty if only times and counters have changed.
    """
    known = {line.meaning for line in before}
    there = {line.version for line in after}
    gone = [line.version for line in before if line.version and line.version not in there]
    return [line.text for line in after if line.meaning not in known] + [
        f"{version}: gone" for version in gone
    ]


def _state(worker: WorkerReport, now: datetime) -> Iterator[StatusLine]:
    name, gate, owner = worker.worker, gate_phrase(worker), owner_phrase(worker)
    if worker.alarm:
        # the text after the first colon may contain durations, which grow
        begins = worker.alarm.partition(": ")[0]
        yield StatusLine(f"{name}: ALARM: {worker.alarm}", (name, "ALARM", begins))
    next_change, asked = next_phrase(worker, now), asked_phrase(worker, now)
    state = f"{worker.phase}, target {target_phrase(worker)}"
    if rollout := worker.rollout:
        length = spoken(now - rollout.since)
        state = f"{rollout.phase} for {length}, target {worker.target}; {rollout.reason}: {rollout.message}"
    parts = (
        state,
        asked,
        f"next: {next_change}" if next_change else "",
        f"gate {gate}" if gate else "",
        f"manager: {owner}" if owner else "",
    )
    # if the worker waits until a known time, the reason's text counts down to it
    reason = "" if worker.waits_until else target_phrase(worker)
    meaning = (name, worker.phase, worker.next, worker.waits_until, worker.request, reason, gate, owner)
    yield StatusLine(f"{name}: {'; '.join(filter(None, parts))}", meaning)


def _worker(worker: WorkerReport, now: datetime) -> Iterator[StatusLine]:
    yield from _state(worker, now)
    name = worker.worker
    for judged in worker.analysis:
        # the meaning leaves out the numbers, which change with each workflow
        judgement = (name, "metric", judged.metric, judged.verdict)
        yield StatusLine(f"{name}: metric: {judgement_phrase(judged)}", judgement)
    for actions in actions_of_versions(worker.draining):
        progress = (
            (action.build_id, action.is_begun, action.repeats, action.is_next and action.at <= now)
            for action in actions
        )
        yield StatusLine(f"{name}: drains: {actions_phrase(actions, now)}", (name, "drains", *progress))
    if records := records_phrase(worker):
        yield _line(name, f"forgets: {records}")
    for version in worker.versions:
        yield _version(name, version, now)
    if worker.unversioned_percentage is not None:
        yield _line(name, f"{version_name(None)}: {percentage_text(worker.unversioned_percentage)}")
    for warning in folded_warnings(worker):
        yield _line(name, f"warning: {warning}")


def _version(worker: str, version: VersionReport, now: datetime) -> StatusLine:
    share, pods = percentage_text(version.percentage), pods_phrase(version)
    target = "target" if version.is_target else ""
    troubles = trouble_phrases(version, worker.partition("/")[0])
    words = (share, state_phrase(version, now), pods, target, *troubles, outlook_phrase(version, now))
    about = f"{worker} {version.build_id}"
    meaning = (
        version.status,
        share,
        version.moved_by,
        version.open_workflows,
        pods,
        version.pods,
        # the meaning leaves out the objects' messages, which may contain counters
        *((item.kind, item.name, item.state) for item in version.attached),
        target,
        version.action,
        version.replicas,
        version.is_patched,
        version.next.action if version.next else None,
    )
    return StatusLine(f"{about}: {', '.join(filter(None, words))}", (about, *meaning), about)


def _line(about: str, text: str) -> StatusLine:
    return StatusLine(f"{about}: {text}", (about, text))
