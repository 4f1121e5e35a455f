"""Whether what has to be replayed before a version takes traffic was replayed."""

from datetime import datetime, timedelta
from hashlib import sha256

from twgen.model.histories import ReplayBefore, ReplayRun, ReplayState
from twgen.model.spec import WorkerSpec
from twgen.planning.routing.target import Target

_APPLIED_WITHIN = timedelta(minutes=5)
"""How long after a version the Job of its replay may come: both are in one render."""
_NOT_READ = ReplayRun(ReplayState.MISSING, because="the cluster was not read, and only its Jobs tell")


def replay_of(spec: WorkerSpec) -> str:
    """What is replayed for a version, and how: another one is another Job. 16 hex digits."""
    replay = spec.policy.replay
    told: list[object] = [spec.worker_deployment, spec.build_id, spec.template.hash]
    if replay:
        told += [replay.command, *replay.sample, replay.upgrading_only]
    return sha256(repr(told).encode()).hexdigest()[:16]


def missing_replay(target: Target) -> ReplayRun | None:
    """The replay without which the target takes no first share; None: none is needed, or it has passed."""
    is_first = not target.is_current and not target.ramp and not target.is_rollback
    replay = target.spec.policy.replay
    if not replay or replay.before is ReplayBefore.MOVE or not is_first or target.skips_gate:
        return None
    run = target.world.replay or _NOT_READ
    return None if run.state is ReplayState.PASSED else run


def replay_may_come_until(target: Target) -> datetime | None:
    """Until when the Job of its replay may still be applied; None: it had its time, as far as is known."""
    seen = (target.version, target.deployment)
    since = max((one.created_at for one in seen if one and one.created_at), default=None)
    return since + _APPLIED_WITHIN if since and target.now < since + _APPLIED_WITHIN else None


def may_move_to(target: Target, build_id: str) -> bool:
    """Workflows of older versions were replayed on that version, as far as is known."""
    replay, run = target.spec.policy.replay, target.world.replay
    is_asked = replay is not None and replay.before is not ReplayBefore.RAMP
    has_passed = run is not None and run.state is ReplayState.PASSED
    return is_asked and has_passed and build_id == target.build_id


def open_replay_told(target: Target) -> str:
    """Where the replay stands that is missing; there must be one."""
    run, namespace = missing_replay(target) or _NOT_READ, target.spec.namespace
    match run.state:
        case ReplayState.FAILED:
            why = f" ({run.because})" if run.because else ""
            look = f"`kubectl logs job/{run.job} -n {namespace} --all-containers`"
            return (
                f"its replay failed: Job {run.job}{why}; {look} says which histories."
                " `twgen retry` or a new build ID goes on"
            )
        case ReplayState.RUNNING:
            return f"its replay runs: Job {run.job}"
    no_job = "its Job is not there: apply what `twgen render` prints where the operator names rollout.image"
    return f"its replay has not begun: {run.because or no_job}"
