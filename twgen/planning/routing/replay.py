"""Whether the replay that a version needs before it takes traffic has passed."""

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from twgen.model.histories import ReplayBefore, ReplayRun, ReplayState
from twgen.model.spec import WorkerSpec
from twgen.planning.routing.target import Target

_APPLIED_WITHIN = timedelta(minutes=5)
"""The Job of a replay may appear this long after its version: both are in one render."""
_NOT_READ = ReplayRun(ReplayState.MISSING, because="the cluster was not read, so its Jobs are unknown")


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
    other_versions = (version for version in target.temporal.versions if version.build_id != target.build_id)
    newest = max(
        (version for version in other_versions if version.created_at),
        key=lambda version: (version.created_at, version.build_id),
        default=None,
    )
    is_older = newest and newest.created_at and run.created_at and run.created_at < newest.created_at
    if run.state is not ReplayState.PASSED or not newest or not is_older:
        return run
    older = f"Job {run.job} is older than {newest.build_id}"
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
