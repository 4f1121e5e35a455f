"""The checks that the target must pass before traffic moves to it: gates and a replay.

A gate is a workflow that must complete on the target. A replay reads workflow histories, which are selected
here too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import chain, count, zip_longest
from typing import TypeVar

from twgen.model.plan import GateStart
from twgen.model.policy import ReplayBefore
from twgen.model.spec import Strategy, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus
from twgen.model.values import dataclass
from twgen.model.world import RecordedRun, ReplayRun, ReplayState
from twgen.planning.routing.target import Target
from twgen.planning.sentences import listed, plain_percentage, rounded_percentage
from twgen.versioning.names import MarkKey

GATE_TIMEOUT = timedelta(hours=1)
"""The time after which Temporal times out a gate."""
_MOST_ATTEMPTS = 20
"""The maximum number of workflow IDs to try. An ID may be in use by a run of another workflow type, because
the gate's type was corrected or because another client started the run."""
_APPLIED_WITHIN = timedelta(minutes=5)
"""How long a replay's Job can take to appear after its version, although one render contains both."""
_NOT_READ = ReplayRun(ReplayState.MISSING, because="the cluster was not read, so its Jobs are unknown")


@dataclass(frozen=True, slots=True)
class RequiredGate:
    """A workflow that must complete on every workflow task queue of the target before traffic moves."""

    workflow_type: str
    percentage: float | None = None
    """The percentage of the policy step after this gate. None for the spec's gate, which comes before all
    steps."""

    def workflow_id(self, target: Target, task_queue: str, attempt: int) -> str:
        """The workflow ID on one task queue.

        For the spec's gate, the controller uses the same workflow ID.
        """
        # the name of a namespace never contains an @
        at_step = f"@{plain_percentage(self.percentage)}" if self.percentage is not None else ""
        first = f"test{at_step}-{target.spec.worker_deployment}:{target.build_id}-{task_queue}"
        return first if attempt == 1 else f"{first}-{attempt}"

    @property
    def name(self) -> str:
        """A name that is unique among the gates of its worker."""
        at_step = "" if self.percentage is None else f"@{plain_percentage(self.percentage)}"
        return f"{self.workflow_type}{at_step}"

    def __str__(self) -> str:
        """The gate's name as used in a sentence."""
        if self.percentage is None:
            return "gate"
        return f"gate {self.workflow_type} before {plain_percentage(self.percentage)}%"


@dataclass(frozen=True, slots=True)
class GateOnQueue:
    """A gate on one workflow task queue of the target."""

    gate: RequiredGate
    task_queue: str
    attempt: int
    workflow_id: str
    run: GateRun | None
    """The run that counts, or None if the gate has not started."""
    passed_over: tuple[GateRun, ...] = ()
    """The runs of other workflow types that occupy the workflow IDs of earlier attempts."""

    @property
    def failure(self) -> str:
        """A sentence if the gate ended without completing, or cannot start. Otherwise empty."""
        if len(self.passed_over) == _MOST_ATTEMPTS:
            return (
                f"the {self.gate} cannot start on task queue {self.task_queue}: {_MOST_ATTEMPTS} workflows of"
                f" other types use its workflow IDs, up to {self.workflow_id}"
            )
        if not self.run or not self.run.status.has_failed:
            return ""
        why = f" ({self.run.failure})" if self.run.failure else ""
        ended = f"ended as {self.run.status}: {self.workflow_id}{why}"
        return f"the {self.gate} on task queue {self.task_queue} {ended}"

    @property
    def hindrance(self) -> str:
        """A sentence if the gate runs but cannot complete: all its workflow tasks fail. Otherwise empty."""
        if not self.run or self.run.status is not GateStatus.RUNNING or not self.run.failure:
            return ""
        return (
            f"the {self.gate} runs on task queue {self.task_queue}, but all of its workflow tasks"
            f" fail ({self.run.failure}): {self.workflow_id}"
        )


def next_attempt(target: Target) -> int:
    """The number of the next attempt, which no run of the target's gates has used."""
    used = (on_queue.attempt for on_queue in on_queues(target, asked_gates(target)))
    return max(used, default=_first_attempt(target)) + 1


def _first_attempt(target: Target) -> int:
    """The number of the first attempt that counts: 1, unless the target's metadata has another number."""
    mark = target.marks.get(MarkKey.GATE_ATTEMPT)
    attempt = mark.details.get("attempt") if mark else 1
    return attempt if isinstance(attempt, int) and attempt > 0 else 1


def asked_gates(target: Target, percentage: float | None = None) -> tuple[RequiredGate, ...]:
    """The gates that the target must pass to get a share, which by default is the share that is due now."""
    if target.is_current or target.is_rollback:
        return ()
    return gates_up_to(target, (target.due_percentage or 0) if percentage is None else percentage)


def on_queues(target: Target, gates: Iterable[RequiredGate]) -> Iterator[GateOnQueue]:
    """The state of the gates on each known workflow task queue."""
    began = target.stay_began
    runs: dict[tuple[str, str], list[GateRun]] = {}
    for run in (target.version.gate_runs if target.version else None) or ():
        # a gate counts only for one period of its version, but a running gate always occupies its workflow ID
        is_running = run.status is GateStatus.RUNNING
        if is_running or run.started_at is None or began is None or run.started_at >= began:
            runs.setdefault((run.task_queue, run.workflow_id), []).append(run)
    for gate in gates:
        for queue in target.workflow_task_queues:
            passed_over: tuple[GateRun, ...] = ()
            for attempt in count(_first_attempt(target)):
                name = gate.workflow_id(target, queue, attempt)
                found = worst(runs.get((queue, name), ()))
                # the workflow type of a run may be unknown
                if found is None or found.workflow_type in {"", gate.workflow_type}:
                    yield GateOnQueue(gate, queue, attempt, name, found, passed_over)
                    break
                passed_over += (found,)
                if len(passed_over) == _MOST_ATTEMPTS:
                    yield GateOnQueue(gate, queue, attempt, name, None, passed_over)
                    break


def worst(runs: Iterable[GateRun]) -> GateRun | None:
    """Prefer a failed run, then a running run: if there are several runs, it is unknown which run counts."""
    is_better = {GateStatus.RUNNING: 1, GateStatus.COMPLETED: 2}
    return min(runs, key=lambda run: is_better.get(run.status, 0), default=None)


def gates_to_start(target: Target) -> tuple[GateStart, ...]:
    """The gate workflows to start now: one for each task queue on which a gate has no run yet.

    The gates also run with strategy Manual, so that a person knows the result before promoting.
    """
    has_pods = not target.not_created and (target.obstacle is None or target.obstacle.has_pods)
    if not (target.is_registered and has_pods) or target.is_aborted or target.is_held:
        return ()
    began = target.stay_began
    # a gate runs once per period, but two responses may differ by milliseconds about the period's beginning
    stay = f"{began:%Y-%m-%dT%H:%M:%SZ}" if began else ""
    return tuple(
        GateStart(
            task_queue=on_queue.task_queue,
            workflow_id=on_queue.workflow_id,
            workflow_type=on_queue.gate.workflow_type,
            request_id=f"{on_queue.workflow_id}@{stay}",
            has_input=on_queue.gate.percentage is None,
        )
        for on_queue in on_queues(target, asked_gates(target))
        if not on_queue.run and not on_queue.failure
    )


def failed_gate(target: Target) -> GateOnQueue | None:
    """The last gate that ended without completing. The spec's gate comes before the gates of steps."""
    failed = (on_queue for on_queue in on_queues(target, asked_gates(target)) if on_queue.failure)
    return next(reversed([*failed]), None)


def hopeless_gates(target: Target) -> list[GateOnQueue]:
    """The gates that run but cannot complete."""
    return [on_queue for on_queue in on_queues(target, asked_gates(target)) if on_queue.hindrance]


def open_gate_sentence(target: Target, gate: RequiredGate) -> str:
    """A sentence about a gate that has not completed, with its task queues and its running workflows."""
    names = target.workflow_task_queues
    queues = f"task queue {names[0]}" if len(names) == 1 else f"every task queue ({listed(names)})"
    gates = list(on_queues(target, [gate]))
    runs = [on_queue.run for on_queue in gates]
    running = [run.workflow_id for run in runs if run and run.status is GateStatus.RUNNING]
    sentence = f"the {gate} has not completed on {queues}"
    if running:
        sentence = f"{sentence}; {listed(running)} {'is' if len(running) == 1 else 'are'} running"
    others = (
        f"; {run.workflow_id} does not count: its workflow type is {run.workflow_type}, not"
        f" {on_queue.gate.workflow_type}"
        for on_queue in gates
        for run in on_queue.passed_over
    )
    return sentence + "".join(others)


def first_not_passed(target: Target, gates: Iterable[RequiredGate]) -> RequiredGate | None:
    """The first gate that has not completed on every workflow task queue.

    If no task queue is known, no gate has completed.
    """
    for gate in gates:
        runs = [on_queue.run for on_queue in on_queues(target, [gate])]
        if not runs or not all(run and run.status is GateStatus.COMPLETED for run in runs):
            return gate
    return None


def gates_before(spec: WorkerSpec, percentage: float) -> tuple[RequiredGate, ...]:
    """All gates of the spec and of the policy that come before this share."""
    gate, share = spec.rollout.gate, rounded_percentage(percentage)
    has_steps = spec.rollout.strategy is not Strategy.ALL_AT_ONCE
    steps = map(spec.policy.step, (step.percentage for step in spec.rollout.steps if has_steps))
    gated = (step for step in steps if step and step.gate and rounded_percentage(step.percentage) <= share)
    gates_of_steps = (RequiredGate(step.gate, step.percentage) for step in gated)
    return (*((RequiredGate(gate.workflow_type),) if gate else ()), *gates_of_steps)


def gates_up_to(target: Target, percentage: float) -> tuple[RequiredGate, ...]:
    """The gates before a share that the target has not passed yet, even gates that a rollback would skip."""
    # the metadata about its present share names the gates that it has passed
    mark = target.marks.get(MarkKey.MOVED_BY)
    share, behind = (mark.details.get(name) if mark else None for name in ("percentage", "gates"))
    is_present = isinstance(share, int | float) and rounded_percentage(share) == target.live_percentage
    passed = behind if is_present and isinstance(behind, list) else []
    return tuple(gate for gate in gates_before(target.spec, percentage) if gate.name not in passed)


def replay_of(spec: WorkerSpec) -> str:
    """A hash of a replay's code and settings, in 16 hex digits. A new hash leads to a new Job."""
    replay = spec.policy.replay
    parts: list[object] = [spec.worker_deployment, spec.build_id, spec.template.hash]
    if replay:
        parts += [replay.command, *replay.sample, replay.upgrading_only]
    return sha256(repr(parts).encode()).hexdigest()[:16]


def missing_replay(target: Target) -> ReplayRun | None:
    """The replay that the target must pass before its first share, or None if no replay is missing."""
    # a ramping version already has its own histories, and workflows pinned to older versions do not move
    is_first = not target.is_current and not target.ramp and not target.is_rollback
    replay = target.spec.policy.replay
    if not replay or replay.before is ReplayBefore.MOVE or not is_first:
        return None
    run = _run(target)
    return None if run.state is ReplayState.PASSED else run


def may_replay_again(target: Target) -> bool:
    """Whether the target's replay has failed, or does not cover a version that was created later."""
    run = target.world.replay
    if not target.spec.policy.replay or not run:
        return False
    is_outdated = run.state is ReplayState.PASSED and run != _run(target)
    return run.state is ReplayState.FAILED or is_outdated


def _run(target: Target) -> ReplayRun:
    """The target's replay, which counts as missing if another version was created after the replay."""
    run = target.world.replay or _NOT_READ
    others = (version for version in target.temporal.versions if version.build_id != target.build_id)
    created = ((version.created_at, version.build_id) for version in others if version.created_at)
    newest_at, newest = max(created, default=(None, ""))
    is_older = newest_at and run.created_at and run.created_at < newest_at
    if run.state is not ReplayState.PASSED or not is_older:
        return run
    older = f"Job {run.job} is older than {newest}"
    because = f"{older}, so it proves nothing about it: run `twgen retry`"
    return replace(run, state=ReplayState.MISSING, because=because)


def replay_may_come_until(target: Target) -> datetime | None:
    """The time until which the Job of the target's replay may still appear.

    None if the time is unknown or has passed.
    """
    created = (source.created_at for source in (target.version, target.deployment) if source)
    since = max(filter(None, created), default=None)
    return since + _APPLIED_WITHIN if since and target.now < since + _APPLIED_WITHIN else None


def why_not_moved(target: Target, build_id: str) -> str:
    """Why it is not proven that this version can continue workflows of older versions.

    Empty if it is proven.
    """
    replay = target.spec.policy.replay
    if not replay or replay.before is ReplayBefore.RAMP:
        return "its policy has no replay with `when: BeforeMove`"
    if build_id != target.build_id:
        return f"open workflows were replayed on the target {target.build_id}, not on {build_id}"
    run = _run(target)
    return "" if run.state is ReplayState.PASSED else replay_sentence(target, run)


def replay_sentence(target: Target, run: ReplayRun) -> str:
    """A sentence about a replay that has not passed."""
    match run.state:
        case ReplayState.FAILED:
            why = f" ({run.because})" if run.because else ""
            logs_command = f"`kubectl logs job/{run.job} -n {target.spec.namespace} --all-containers`"
            return (
                f"its replay failed: Job {run.job}{why}; {logs_command} shows which histories failed."
                " To continue, run `twgen retry` or commit a new build"
            )
        case ReplayState.RUNNING:
            return f"its replay is running: Job {run.job}"
    no_job = "it has no Job: set rollout.image in the OperatorConfig, and apply the output of `twgen render`"
    return f"its replay has not begun: {run.because or no_job}"


Item = TypeVar("Item")


def chosen(recorded: Iterable[RecordedRun], of_each_type: int) -> list[RecordedRun]:
    """Select this many histories of each workflow type.

    The result alternates between the types, so that even a few histories cover every type. Within a type,
    open workflows come first, since they must be replayed. The open workflows alternate between the versions
    that they are pinned to, and each version has at least one open workflow. Recently ended workflows follow.
    """
    of_types: defaultdict[str, list[RecordedRun]] = defaultdict(list)
    for history in recorded:
        of_types[history.workflow_type].append(history)
    return list(_in_turn([_of_type(histories, of_each_type) for histories in of_types.values()]))


def left_out_altogether(written: Collection[RecordedRun], larger: Collection[RecordedRun]) -> list[str]:
    """The workflow types, and the versions with open workflows, whose histories are all too large."""
    types = {history.workflow_type for history in written}
    versions = {(history.workflow_type, history.build_id) for history in written if history.is_open}
    missing = {
        f"open {history.workflow_type}" + (f" of {history.build_id}" if history.build_id else "")
        for history in larger
        if history.is_open and (history.workflow_type, history.build_id) not in versions
    }
    return sorted(missing | ({history.workflow_type for history in larger} - types))


def _of_type(recorded: Iterable[RecordedRun], number: int) -> list[RecordedRun]:
    versions: defaultdict[str, list[RecordedRun]] = defaultdict(list)
    ended = []
    for history in recorded:
        if history.is_open:
            versions[history.build_id].append(history)
        else:
            ended.append(history)
    return [*_in_turn(versions.values()), *ended][: max(number, len(versions))]


def _in_turn(groups: Collection[Sequence[Item]]) -> Iterator[Item]:
    """The first item of each group, then the second item of each group, and so on."""
    return (item for item in chain.from_iterable(zip_longest(*groups)) if item is not None)
