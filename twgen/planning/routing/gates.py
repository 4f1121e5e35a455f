"""What must pass before traffic moves to the target: workflows that complete on it (gates), and a replay.

And which histories a replay reads.
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
"""The time after which Temporal ends a gate."""
_MOST_ATTEMPTS = 20
"""With runs of other workflow types, which anybody may start; a person corrects a type a few times."""
_APPLIED_WITHIN = timedelta(minutes=5)
"""The Job of a replay may appear this long after its version: both are in one render."""
_NOT_READ = ReplayRun(ReplayState.MISSING, because="the cluster was not read, so its Jobs are unknown")


@dataclass(frozen=True, slots=True)
class RequiredGate:
    """A workflow that must complete on every workflow task queue of the target before traffic moves."""

    workflow_type: str
    percentage: float | None = None
    """The share of the policy's step that follows it; None: the gate of the spec, before all steps."""

    def workflow_id(self, target: Target, task_queue: str, attempt: int) -> str:
        """The ID of its run on one task queue: the controller's own for the gate of a spec."""
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
        """The name of the gate in a sentence."""
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
    """The run that counts; None: the gate has not started."""
    passed_over: tuple[GateRun, ...] = ()
    """The runs of another workflow type, which have the IDs of earlier attempts."""

    @property
    def failure(self) -> str:
        """How it ended without completing, as a sentence; empty: it did not."""
        if len(self.passed_over) == _MOST_ATTEMPTS:
            return (
                f"the {self.gate} cannot start on task queue {self.task_queue}: {_MOST_ATTEMPTS} workflows of"
                f" other types have the IDs of its attempts, the last of them {self.workflow_id}"
            )
        if not self.run or not self.run.status.has_failed:
            return ""
        why = f" ({self.run.failure})" if self.run.failure else ""
        ended = f"ended as {self.run.status}: {self.workflow_id}{why}"
        return f"the {self.gate} on task queue {self.task_queue} {ended}"

    @property
    def hindrance(self) -> str:
        """Why it runs but cannot complete, since all of its workflow tasks fail; empty: it may complete."""
        if not self.run or self.run.status is not GateStatus.RUNNING or not self.run.failure:
            return ""
        return (
            f"the {self.gate} runs on task queue {self.task_queue}, but all of its workflow tasks"
            f" fail ({self.run.failure}): {self.workflow_id}"
        )


def next_attempt(target: Target) -> int:
    """The number of an attempt that no run of its gates has used."""
    used = (on_queue.attempt for on_queue in on_queues(target, asked_gates(target)))
    return max(used, default=_first_attempt(target)) + 1


def _first_attempt(target: Target) -> int:
    """The number of the first attempt that counts: 1, or the one that a mark names."""
    mark = target.marks.get(MarkKey.GATE_ATTEMPT)
    attempt = mark.details.get("attempt") if mark else 1
    return attempt if isinstance(attempt, int) and attempt > 0 else 1


def asked_gates(target: Target, percentage: float | None = None) -> tuple[RequiredGate, ...]:
    """The gates that the target needs for this share; None: the share that is due now."""
    if target.is_current or target.is_rollback:
        return ()
    return gates_up_to(target, (target.due_percentage or 0) if percentage is None else percentage)


def on_queues(target: Target, gates: Iterable[RequiredGate]) -> Iterator[GateOnQueue]:
    """The state of the gates on each workflow task queue that is known."""
    began = target.stay_began
    runs: dict[tuple[str, str], list[GateRun]] = {}
    for run in (target.version.gate_runs if target.version else None) or ():
        # a gate belongs to one stay of its version, but a running gate still occupies its workflow ID
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
    """A run that failed, else one that still runs, else any: it is unknown which of several counts."""
    is_better = {GateStatus.RUNNING: 1, GateStatus.COMPLETED: 2}
    return min(runs, key=lambda run: is_better.get(run.status, 0), default=None)


def gates_to_start(target: Target) -> tuple[GateStart, ...]:
    """The workflows of gates to start now, by task queue: those that have no run yet.

    For strategy Manual too, so that a person decides on the result.
    """
    has_pods = not target.not_created and (target.obstacle is None or target.obstacle.has_pods)
    if not (target.is_registered and has_pods) or target.is_aborted or target.is_held:
        return ()
    began = target.stay_began
    # a gate runs once in each stay; a server moves the time by milliseconds from one answer to the next
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
    """The last gate that ended without completing; a gate of the spec comes before those of steps."""
    failed = (on_queue for on_queue in on_queues(target, asked_gates(target)) if on_queue.failure)
    return next(reversed([*failed]), None)


def hopeless_gates(target: Target) -> list[GateOnQueue]:
    """The gates that run, and cannot complete."""
    return [on_queue for on_queue in on_queues(target, asked_gates(target)) if on_queue.hindrance]


def open_gate_sentence(target: Target, gate: RequiredGate) -> str:
    """The task queues and the running workflows of a gate that has not completed yet."""
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
    """The first gate that has not completed on every workflow task queue, or while none is known."""
    for gate in gates:
        runs = [on_queue.run for on_queue in on_queues(target, [gate])]
        if not runs or not all(run and run.status is GateStatus.COMPLETED for run in runs):
            return gate
    return None


def gates_before(spec: WorkerSpec, percentage: float) -> tuple[RequiredGate, ...]:
    """All gates before a share, by spec and policy."""
    gate, share = spec.rollout.gate, rounded_percentage(percentage)
    has_steps = spec.rollout.strategy is not Strategy.ALL_AT_ONCE
    steps = map(spec.policy.step, (step.percentage for step in spec.rollout.steps if has_steps))
    gated = (step for step in steps if step and step.gate and rounded_percentage(step.percentage) <= share)
    gates_of_steps = (RequiredGate(step.gate, step.percentage) for step in gated)
    return (*((RequiredGate(gate.workflow_type),) if gate else ()), *gates_of_steps)


def gates_up_to(target: Target, percentage: float) -> tuple[RequiredGate, ...]:
    """The gates before a share that are still ahead of the target, even if a rollback needs none."""
    # the mark about its present share names the gates that twgen asked for before that
    mark = target.marks.get(MarkKey.MOVED_BY)
    share, behind = (mark.details.get(name) if mark else None for name in ("percentage", "gates"))
    is_present = isinstance(share, int | float) and rounded_percentage(share) == target.live_percentage
    passed = behind if is_present and isinstance(behind, list) else []
    return tuple(gate for gate in gates_before(target.spec, percentage) if gate.name not in passed)


def replay_of(spec: WorkerSpec) -> str:
    """A hash of the code and the settings of a replay, 16 hex digits: a change means another Job."""
    replay = spec.policy.replay
    parts: list[object] = [spec.worker_deployment, spec.build_id, spec.template.hash]
    if replay:
        parts += [replay.command, *replay.sample, replay.upgrading_only]
    return sha256(repr(parts).encode()).hexdigest()[:16]


def missing_replay(target: Target) -> ReplayRun | None:
    """The replay that the target needs before its first share; None: none is needed, or it has passed."""
    # a version that ramps has histories of its own, and open workflows of older versions are pinned there
    is_first = not target.is_current and not target.ramp and not target.is_rollback
    replay = target.spec.policy.replay
    if not replay or replay.before is ReplayBefore.MOVE or not is_first:
        return None
    run = _run(target)
    return None if run.state is ReplayState.PASSED else run


def may_replay_again(target: Target) -> bool:
    """Its replay has failed, or a newer version exists that it proves nothing about."""
    run = target.world.replay
    if not target.spec.policy.replay or not run:
        return False
    is_outdated = run.state is ReplayState.PASSED and run != _run(target)
    return run.state is ReplayState.FAILED or is_outdated


def _run(target: Target) -> ReplayRun:
    """The replay of the target; if another version is younger than it, it counts as missing."""
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
    """The end of the time in which the Job of its replay may appear; None: it has passed, or is unknown."""
    created = (source.created_at for source in (target.version, target.deployment) if source)
    since = max(filter(None, created), default=None)
    return since + _APPLIED_WITHIN if since and target.now < since + _APPLIED_WITHIN else None


def why_not_moved(target: Target, build_id: str) -> str:
    """Why no replay proves that workflows of older versions can continue on this one; empty: one does."""
    replay = target.spec.policy.replay
    if not replay or replay.before is ReplayBefore.RAMP:
        return "its policy has no replay with `when: BeforeMove`"
    if build_id != target.build_id:
        return f"open workflows were replayed on the target {target.build_id}, not on {build_id}"
    run = _run(target)
    return "" if run.state is ReplayState.PASSED else replay_sentence(target, run)


def replay_sentence(target: Target, run: ReplayRun) -> str:
    """The state of a replay that has not passed."""
    match run.state:
        case ReplayState.FAILED:
            why = f" ({run.because})" if run.because else ""
            logs_command = f"`kubectl logs job/{run.job} -n {target.spec.namespace} --all-containers`"
            return (
                f"its replay failed: Job {run.job}{why}; {logs_command} shows which histories failed;"
                " to continue, run `twgen retry` or commit a new build"
            )
        case ReplayState.RUNNING:
            return f"its replay is running: Job {run.job}"
    no_job = "it has no Job: set rollout.image in the OperatorConfig, and apply the output of `twgen render`"
    return f"its replay has not begun: {run.because or no_job}"


Item = TypeVar("Item")


def chosen(recorded: Iterable[RecordedRun], of_each_type: int) -> list[RecordedRun]:
    """This many of each type, the types in turn: if only some can be stored, every type is among them.

    Within a type, open workflows come first, since they must be replayed: the versions to which they are
    pinned in turn, and at least one of each version. Then come recently ended ones. Equals keep their order.
    """
    of_types: defaultdict[str, list[RecordedRun]] = defaultdict(list)
    for history in recorded:
        of_types[history.workflow_type].append(history)
    return list(_in_turn([_of_type(histories, of_each_type) for histories in of_types.values()]))


def left_out_altogether(written: Collection[RecordedRun], larger: Collection[RecordedRun]) -> list[str]:
    """The workflow types, and versions with open workflows, whose chosen histories are all too large."""
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
    """The first item of each group, then the second of each."""
    return (item for item in chain.from_iterable(zip_longest(*groups)) if item is not None)
