"""A status in phrases, which its tree has too, and as plain lines that name their worker: for logs, `grep`.

The texts that a phrase is made of have been made printable.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from twgen.model.plan import Phase, RoutingAction, VersionAction
from twgen.model.problem import counted
from twgen.model.status import AttachedState, Ownership, Status, VersionView, WorkerView
from twgen.model.temporal import GateStatus, VersionStatus
from twgen.model.values import dataclass
from twgen.planning.sentences import clock_time, how_to_resume, in_days, spoken, version_name
from twgen.reporting.plan.phrases import (
    actions_of_versions,
    actions_phrase,
    folded_warnings,
    judgement_phrase,
    next_change,
)
from twgen.reporting.printable import printable_copy

_STATES: Mapping[VersionStatus, str] = {
    VersionStatus.DRAINED: "Drained {age} ago",
    VersionStatus.CREATED: "Created {age} ago",
    VersionStatus.NOT_REGISTERED: "Not registered, deployed {age} ago",
}
_AGELESS: Mapping[VersionStatus, str] = {VersionStatus.NOT_REGISTERED: "Not registered"}
_OWNERS: Mapping[Ownership, str] = {
    Ownership.OURS: "ours",
    Ownership.ADOPTED: "to be taken over",
    Ownership.OTHER: "another manager",
}
_GATES: Mapping[GateStatus | None, str] = {
    None: "not started",
    GateStatus.COMPLETED: "passed",
    GateStatus.TIMED_OUT: "timed out",
}


def percentage_text(percentage: float | None) -> str:
    """A share of new workflows; empty: not in routing."""
    return "" if percentage is None else f"{percentage}%"


def target_phrase(worker: WorkerView) -> str:
    """The target, and the reason for the worker's phase."""
    return f"{worker.plan.spec.build_id}: {worker.plan.routing.because}"


def next_phrase(worker: WorkerView, now: datetime) -> str:
    """The next change of traffic and when; empty: none is known."""
    routing, later = worker.plan.routing, worker.later
    if routing.action is not RoutingAction.NONE:
        return f"{next_change(routing)} {'now' if routing.phase is Phase.MOVING else 'by hand'}"
    if not routing.due_at:
        return ""
    wait, clock = spoken(routing.due_at - now), clock_time(routing.due_at, now)
    if later:
        return f"{next_change(later)} in {wait} ({clock})"
    return f"waits {wait} more (until {clock})"


def owner_phrase(worker: WorkerView) -> str:
    """The manager of the worker in Temporal, and the client that last changed it if that is another one."""
    owner = worker.plan.manager
    relation = _OWNERS.get(worker.ownership)
    other = f"; last changed by {worker.last_modifier}" if worker.last_modifier not in {"", owner} else ""
    return (f"{owner} ({relation})" if relation else owner or "no manager") + other


def gate_phrase(worker: WorkerView) -> str:
    """The state of each gate on every task queue; empty: no gate is needed."""
    runs: dict[str, list[str]] = {}
    for run in worker.gates:
        state = f"{_GATES.get(run.status) or str(run.status).lower()} on {run.task_queue}"
        runs.setdefault(run.workflow_type, []).append(state)
    return "; ".join(f"{workflow_type}: {', '.join(states)}" for workflow_type, states in runs.items())


def status_phrase(
    status: VersionStatus, since: datetime | None, open_workflows: int | None, now: datetime
) -> str:
    """The status of a version, for how long, and its number of open workflows."""
    if since is None:
        state = _AGELESS.get(status, status.value)
    else:
        state = _STATES.get(status, f"{status.value} for {{age}}").format(age=spoken(now - since))
    return f"{state}, {counted(open_workflows, 'open workflow')}" if open_workflows else state


def state_phrase(version: VersionView, now: datetime) -> str:
    """The status of a version, for how long, its open workflows, and who gave it its share of the traffic."""
    workflows = version.open_workflows
    state = status_phrase(version.plan.status, version.since, workflows, now)
    if workflows and version.oldest_open_at:
        state = f"{state}, the oldest {in_days(now - version.oldest_open_at)} old"
    moved = version.moved
    cause = f", moved by {moved.application or moved.identity}" if moved else ""
    return state + (f"{cause} (intent {moved.intent[:8]})" if moved and moved.intent else cause)


def pods_phrase(version: VersionView) -> str:
    """The pods of a version: available and wanted."""
    live = version.plan.live
    if live:
        return f"{live.available_replicas}/{live.replicas} pods"
    return "no Deployment" if version.cluster_was_read else "pods not read"


def trouble_phrases(version: VersionView, namespace: str) -> Iterator[str]:
    """Why a version lacks pods, in the words of the cluster."""
    live = version.plan.live
    if live and live.terminating:
        yield "its Deployment is being deleted"
    if live and live.paused:
        yield f"its Deployment is paused: {how_to_resume(live.name, namespace)}"
    if live and live.stalled:
        yield f"its Deployment cannot progress: {live.stalled}"
    if version.pod_problem:
        yield f"its newest Pod {version.pod_problem}"
    for item in version.attached:
        if item.state is AttachedState.MISSING:
            yield f"{item.kind} {item.name} is missing: {item.says}"
        elif item.says:
            yield f"{item.kind} {item.name}: {item.says}"


def outlook_phrase(version: VersionView, now: datetime) -> str:
    """What happens to a version's Deployment; empty: it stays as it is."""
    plan, later = version.plan, version.later
    outlook = _ACTIONS[plan.action](version)
    if outlook and plan.action in _EXPLAINED:
        return f"{outlook}: {plan.because}"
    outlooks = ["is patched"] if plan.live and plan.live.patch else []
    if outlook:
        outlooks.append(outlook)
    elif later and later.action in _LATER:
        outlooks.append(f"{_LATER[later.action]} in {spoken(later.at - now)}")
    return ", ".join(outlooks)


def _create(version: VersionView) -> str:
    size = "" if version.plan.replicas is None else f" with {counted(version.plan.replicas, 'pod')}"
    # if the cluster was not read, it may exist already
    return f"will be created{size}" if version.cluster_was_read else ""


def _scale(version: VersionView) -> str:
    live, replicas = version.plan.live, version.plan.replicas
    if not live:
        return f"will be scaled to {replicas}"
    return "" if replicas in {None, live.replicas} else f"will be scaled from {live.replicas} to {replicas}"


_ACTIONS: Mapping[VersionAction, Callable[[VersionView], str]] = {
    VersionAction.CREATE: _create,
    VersionAction.KEEP: _scale,
    VersionAction.UPDATE: lambda _: "its pods will be replaced",
    VersionAction.SCALE_DOWN: _scale,
    VersionAction.DROP: lambda _: "its Deployment will be removed",
    VersionAction.NONE: lambda _: "is not rendered",
}
_EXPLAINED = {VersionAction.KEEP, VersionAction.UPDATE, VersionAction.SCALE_DOWN, VersionAction.DROP}
"""A new Deployment needs no reason, and a missing one has a warning."""
_LATER: Mapping[VersionAction, str] = {
    VersionAction.SCALE_DOWN: "will be scaled to 0",
    VersionAction.DROP: "its Deployment will be removed",
}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A line, and its meaning without the passage of time: lines with equal meanings say the same."""

    text: str
    meaning: tuple[object, ...]
    version: str = ""
    """The worker and build ID that it is about; empty: about no single version."""
    is_of_all: bool = False
    """It is about no single worker."""


def status_lines(status: Status) -> list[StatusLine]:
    """A line for each worker, each of its versions and each warning."""
    status = printable_copy(status)
    lines = [line for worker in status.workers for line in _worker(worker, status.now)]
    return lines + [replace(_line("warning", text), is_of_all=True) for text in status.warnings]


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
    for scheduled_actions in actions_of_versions(worker.plan):
        stand = (
            (
                scheduled.build_id,
                scheduled.is_begun,
                scheduled.repeats,
                scheduled.is_next and scheduled.at <= now,
            )
            for scheduled in scheduled_actions
        )
        yield StatusLine(
            f"{name}: drains: {actions_phrase(scheduled_actions, now)}", (name, "drains", *stand)
        )
    for version in worker.versions:
        yield _version(name, spec.namespace, version, now)
    if worker.unversioned_percentage is not None:
        yield _line(name, f"{version_name(None)}: {percentage_text(worker.unversioned_percentage)}")
    for warning in folded_warnings(worker.plan):
        yield _line(name, f"warning: {warning}")


def _version(worker: str, namespace: str, version: VersionView, now: datetime) -> StatusLine:
    plan = version.plan
    share = percentage_text(version.percentage)
    pods = pods_phrase(version)
    target = "target" if version.is_target else ""
    troubles = tuple(trouble_phrases(version, namespace))
    words = (share, state_phrase(version, now), pods, target, *troubles, outlook_phrase(version, now))
    about = f"{worker} {plan.build_id}"
    meaning = (plan.status, share, pods, target, troubles, version.open_workflows, plan.action, plan.replicas)
    return StatusLine(f"{about}: {', '.join(filter(None, words))}", (about, *meaning), about)


def _line(about: str, text: str) -> StatusLine:
    # what follows a colon can count time
    return StatusLine(f"{about}: {text}", (about, *text.split(": ")[:2]))
