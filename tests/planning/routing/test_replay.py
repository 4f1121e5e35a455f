"""A target waits for its replay before its first share of the traffic, and for nothing else."""

from dataclasses import replace

import pytest

from tests.planning.situations import RAMPS, routing, serving, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.strategies import NOW, with_policy
from twgen.errors import NegativeAnswer
from twgen.model.draining import BatchAction, DrainingAction
from twgen.model.operator import Caller
from twgen.model.plan import Phase, RoutingPlan
from twgen.model.policy import Replay, ReplayBefore, Sample
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import ReplayRun, ReplayState, WorkerWorld
from twgen.planning.draining.actions import batch_of
from twgen.planning.interventions import promote, retry
from twgen.planning.plan import plan_worker, worker_world
from twgen.planning.reads import further_reads
from twgen.planning.routing.gates import replay_of
from twgen.planning.routing.target import Target

S = VersionStatus
READY = temporal(version("v1", S.CURRENT), version("v3"), traffic=routing("v1"))
FAILED = ReplayRun(ReplayState.FAILED, "payments-replay-1", "BackoffLimitExceeded")
LOOK = (
    "payments-replay-1 (BackoffLimitExceeded);"
    " `kubectl logs job/payments-replay-1 -n shop --all-containers` shows which histories failed. To"
    " continue, run `twgen retry` or commit a new build"
)
NO_JOB = "it has no Job: set rollout.image in the OperatorConfig, and apply the output of `twgen render`"
UNREAD = "the cluster was not read, so its Jobs are unknown"
PASSED, RUNNING = (ReplayRun(state, FAILED.job) for state in (ReplayState.PASSED, ReplayState.RUNNING))
MISSING = ReplayRun(ReplayState.MISSING)
SUSPENDED = ReplayRun(ReplayState.MISSING, FAILED.job, f"Job {FAILED.job} is suspended")
MOVED = temporal(version("v1", S.DRAINING), version("v3", S.CURRENT), traffic=routing("v3"))


def spec_of(before: ReplayBefore = ReplayBefore.RAMP) -> WorkerSpec:
    replay = Replay(("replay", "/histories"), Sample(50, 1000), before)
    return with_policy(RAMPS, replay=replay)


def world_of(run: ReplayRun | None, says: WorkerDeployment = READY) -> WorkerWorld:
    return replace(worker_world(RAMPS, serving(says)), replay=run)


def target(run: ReplayRun | None, says: WorkerDeployment = READY, spec: WorkerSpec | None = None) -> Target:
    return Target(spec or spec_of(), world_of(run, says), NOW, "me")


def routed(
    run: ReplayRun | None, says: WorkerDeployment = READY, before: ReplayBefore = ReplayBefore.RAMP
) -> RoutingPlan:
    return plan_worker(spec_of(before), world_of(run, says), NOW, Caller("me", forced=True)).routing


@pytest.mark.parametrize(
    ("run", "reason", "phase", "because"),
    [
        (PASSED, Reason.FIRST_STEP, Phase.MOVING, "it is ready for its first share of the traffic"),
        (RUNNING, Reason.REPLAY_RUNNING, Phase.WAITING, f"its replay is running: Job {PASSED.job}"),
        (MISSING, Reason.REPLAY_MISSING, Phase.BLOCKED, f"its replay has not begun: {NO_JOB}"),
        (SUSPENDED, Reason.REPLAY_MISSING, Phase.BLOCKED, f"its replay has not begun: {SUSPENDED.because}"),
        (None, Reason.REPLAY_MISSING, Phase.BLOCKED, f"its replay has not begun: {UNREAD}"),
        (FAILED, Reason.REPLAY_FAILED, Phase.BLOCKED, f"its replay failed: Job {LOOK}"),
    ],
)
def test_first_share_waits_for_the_replay(
    run: ReplayRun | None, reason: Reason, phase: Phase, because: str
) -> None:
    plan = routed(run)
    assert (plan.reason, plan.phase, plan.because) == (reason, phase, because)


def test_job_may_come_some_minutes_after_its_version() -> None:
    young = temporal(version("v1", S.CURRENT), version("v3", created_at=ago(MINUTE)), traffic=routing("v1"))
    plan = routed(MISSING, young)
    due = NOW + 4 * MINUTE
    assert (plan.reason, plan.phase, plan.due_at) == (Reason.REPLAY_MISSING, Phase.WAITING, due)


def test_ramp_and_rollback_and_what_only_moves_wait_for_none() -> None:
    ramps = temporal(version("v1", S.CURRENT), version("v3", S.RAMPING), traffic=routing("v1", ("v3", 5)))
    assert routed(FAILED, ramps).reason is Reason.NEXT_STEP
    assert routed(FAILED, before=ReplayBefore.MOVE).reason is Reason.FIRST_STEP
    was_current = {"last_current_at": ago(2 * DAY), "last_deactivated_at": ago(HOUR / 2)}
    left = version("v3", S.DRAINING, created_at=ago(9 * DAY), **was_current)
    back = temporal(version("v4", S.CURRENT), left, traffic=routing("v4", age=HOUR / 2))
    assert routed(FAILED, back).reason is Reason.ROLLBACK


def test_person_goes_on_without_it_by_name_alone() -> None:
    with pytest.raises(NegativeAnswer, match="its replay has not passed; to continue without it, use --skip"):
        promote(target(FAILED), full=False, skip_gate=False)
    done = promote(target(FAILED), full=False, skip_gate=True)
    assert done.will == "send 5% of the new workflows to v3, without its replay"
    assert done.change
    assert not done.marks, "a share is all that it needs"
    says = temporal(version("v1", S.CURRENT), version(), traffic=routing("v1", ("v3", 5)))
    assert routed(FAILED, says).reason is Reason.NEXT_STEP


def test_retry_replays_once_more_what_failed_and_nothing_else() -> None:
    done = retry(target(FAILED))
    assert (done.will, done.marks, done.replays) == ("replay histories on it again", {}, True)
    with pytest.raises(NegativeAnswer, match="neither its gate nor its replay failed"):
        retry(target(PASSED))


def test_replay_that_is_older_than_another_version_tells_nothing_of_it_and_may_be_begun_again() -> None:
    replay = replace(PASSED, created_at=ago(2 * DAY))
    older, newer = (version("v1", S.CURRENT, created_at=ago(age)) for age in (3 * DAY, DAY))
    for other, reason in ((older, Reason.FIRST_STEP), (newer, Reason.REPLAY_MISSING)):
        says = temporal(other, version("v3", created_at=ago(4 * DAY)), traffic=routing("v1"))
        assert routed(replay, says).reason is reason
    assert "Job payments-replay-1 is older than v1" in routed(replay, says).because
    assert retry(target(replay, says)).replays
    moved = temporal(replace(newer, status=S.DRAINING), version("v3", S.CURRENT), traffic=routing("v3"))
    with pytest.raises(NegativeAnswer, match="is older than v1"):
        batch_of(target(replay, moved, spec_of(ReplayBefore.MOVE)), "v1", DrainingAction(BatchAction.MOVE))


def test_replay_before_a_move_is_begun_again_when_it_failed_though_its_target_is_current() -> None:
    for before in (ReplayBefore.MOVE, ReplayBefore.BOTH):
        done = retry(target(FAILED, MOVED, spec_of(before)))
        assert (done.will, done.replays) == ("replay histories on it again", True)


def test_other_code_or_other_histories_are_another_replay() -> None:
    spec = spec_of()
    others = (
        replace(spec, build_id="v4"),
        replace(spec, template=replace(spec.template, hash="another")),
        with_policy(spec, replay=Replay(("other",), Sample(50, 1000))),
        replace(spec, policy=spec_of(ReplayBefore.BOTH).policy),
    )
    assert len({replay_of(each) for each in (spec, *others)}) == 1 + len(others)
    slower = Replay(("replay", "/histories"), Sample(50, 1000), within=DAY, in_memory=True)
    assert replay_of(with_policy(spec, replay=slower)) == replay_of(spec)
    moves = (spec_of(ReplayBefore.BOTH), spec_of(ReplayBefore.MOVE))
    assert len({replay_of(each) for each in moves}) == 1


def test_it_is_read_where_it_decides() -> None:
    def is_read(before: ReplayBefore, says: WorkerDeployment, *, for_routing: bool = True) -> bool:
        return further_reads(spec_of(before), world_of(None, says), NOW, for_routing=for_routing).replay

    assert is_read(ReplayBefore.RAMP, READY)
    assert not is_read(ReplayBefore.RAMP, READY, for_routing=False)
    assert not is_read(ReplayBefore.RAMP, MOVED)
    assert is_read(ReplayBefore.MOVE, MOVED)


def test_workflows_move_to_a_version_that_has_replayed_them() -> None:
    move = DrainingAction(BatchAction.MOVE)
    assert batch_of(target(PASSED, MOVED, spec_of(ReplayBefore.MOVE)), "v1", move).what.to_build_id == "v3"
    for run, spec, why in (
        (FAILED, spec_of(ReplayBefore.BOTH), "its replay failed: Job payments-replay-1"),
        (None, spec_of(ReplayBefore.BOTH), "the cluster was not read"),
        (PASSED, spec_of(), "its policy has no replay with `when: BeforeMove`"),
    ):
        with pytest.raises(NegativeAnswer, match=f"these workflows were not replayed on v3.*{why}"):
            batch_of(target(run, MOVED, spec), "v1", move)
