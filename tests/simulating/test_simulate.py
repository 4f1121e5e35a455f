"""Whole rollouts, told in advance."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.routing.test_analysis import measuring
from tests.planning.situations import ago, live, routing, situation, temporal, version
from tests.simulating.stories import (
    ALL_AT_ONCE,
    GATED,
    PROGRESSIVE,
    a_worker_spec,
    happenings,
    tell,
    told,
    when,
)
from tests.simulating.workers import ASSUMED, DAY, HOUR, ME, MINUTE, a_worker
from tests.strategies import NOW, a_spec, analysis_of, with_policy
from twgen.model.analysis import FailureCount, Failures, Measurement, OnFailure
from twgen.model.draining import BatchAction, DrainingAction, DrainingEntry
from twgen.model.operator import Caller
from twgen.model.policy import ConnectionChanges, HistorySource
from twgen.model.rollout import Driver
from twgen.model.spec import Rollout, RolloutStep, Strategy, Sunset
from twgen.model.temporal import Drainage, TaskQueue, TaskQueueType, VersionStatus
from twgen.model.timeline import Happening, Outcome, Stage, Traffic, WorkerTimeline
from twgen.model.world import World
from twgen.simulating.simulate import run, simulate

H = Happening
STARTUP = ASSUMED.startup


def test_renders_that_undo_each_other_end_a_simulation() -> None:
    # the cluster is no source, so v1 goes to zero as the ledger has it: with the connection of before
    policy = {"connection_changes": ConnectionChanges.ALL_VERSIONS, "history": (HistorySource.LEDGER,)}
    moved = replace(a_spec().connection, host_port="other.example.com:7233")
    spec = replace(with_policy(a_spec(), **policy), connection=moved, sunset=Sunset(timedelta(), timedelta()))
    says = temporal(version("v3", VersionStatus.CURRENT), version("v1"), traffic=routing("v3"))
    found = situation(says, [live("v3"), live("v1", 0)], {"v1": live("v1", 0)})
    frames = list(run(a_worker(spec, found)))
    assert len(frames) < 20
    (end,) = simulate([spec], found, NOW, ME, ASSUMED).workers
    assert end.outcome is Outcome.UNFINISHED


def test_progressive_rollout_takes_exactly_the_sum_of_its_pauses() -> None:
    worker = told(PROGRESSIVE)
    begins, ends = when(worker, H.RAMPED, "v3"), when(worker, H.BECAME_CURRENT, "v3")
    assert begins == STARTUP
    assert ends - begins == sum((step.pause for step in PROGRESSIVE.steps), timedelta())
    shares = [(event.at, event.percentage) for event in worker.events if event.happening is H.RAMPED]
    assert shares == [(STARTUP, 5), (STARTUP + 10 * MINUTE, 25), (STARTUP + 40 * MINUTE, 75)]


@pytest.mark.parametrize("duration", [10 * MINUTE, 2 * HOUR])
def test_analysis_that_holds_a_short_step_is_judged_when_it_first_can_be(duration: timedelta) -> None:
    short = Rollout(Strategy.PROGRESSIVE, (RolloutStep(5, timedelta(seconds=40)),))
    analysis = analysis_of(OnFailure.ABORT)
    spec = with_policy(replace(a_worker_spec(), rollout=short), analysis=analysis)
    (worker,) = simulate([spec], None, None, ME, replace(ASSUMED, workflow_duration=duration)).workers
    ramped, current = when(worker, H.RAMPED, "v3"), when(worker, H.BECAME_CURRENT, "v3")
    assert analysis.initial_delay > short.steps[0].pause
    assert current - ramped == analysis.initial_delay


def test_old_version_goes_through_its_whole_life() -> None:
    assert happenings(told(), "previous") == [
        H.FOUND,
        H.BEGAN_DRAINING,
        H.WORKFLOWS_ENDED,
        H.DRAINED,
        H.SCALED_DOWN,
        H.DROPPED,
    ]


@pytest.mark.parametrize("minutes", [0, 2, 3, 4, 61, 60 * 24 * 365 * 8])
def test_old_version_is_drained_at_the_first_check_after_its_last_workflow(minutes: int) -> None:
    worker = told(workflow_duration=minutes * MINUTE)
    left, drained = when(worker, H.BEGAN_DRAINING, "previous"), when(worker, H.DRAINED, "previous")
    checks, rest = divmod(drained - left, ASSUMED.drainage_interval)
    assert rest == timedelta()
    assert checks >= 1
    assert minutes * MINUTE <= drained - left < max(minutes * MINUTE + ASSUMED.drainage_interval, 4 * MINUTE)


def test_drained_version_goes_to_zero_and_away_at_the_renders_after_its_delays() -> None:
    worker = told()
    drained = when(worker, H.DRAINED, "previous")
    for happening, delay in ((H.SCALED_DOWN, HOUR), (H.DROPPED, HOUR + DAY)):
        at = when(worker, happening, "previous")
        assert at % ASSUMED.render_interval == timedelta()
        assert delay < at - drained <= delay + ASSUMED.render_interval


def test_old_version_keeps_its_pods_until_it_is_drained() -> None:
    worker = told(workflow_duration=30 * DAY)
    (previous,) = (lane for lane in worker.lanes if lane.build_id == "previous")
    with_pods = [span for span in previous.spans if span.replicas]
    assert with_pods[-1].stage is Stage.DRAINED
    assert all(span.replicas == 3 for span in with_pods)


def test_both_versions_run_at_once_during_the_rollout() -> None:
    assert told().most_replicas == 6


def test_replicas_that_others_decide_are_not_counted() -> None:
    (worker,) = tell([a_worker_spec(replicas=None)]).workers
    assert worker.most_replicas is None
    assert worker.outcome is Outcome.SETTLED


def test_all_at_once_moves_as_soon_as_the_target_polls() -> None:
    worker = told(ALL_AT_ONCE)
    assert when(worker, H.BECAME_CURRENT, "v3") == STARTUP
    assert H.RAMPED not in happenings(worker, "v3")


def test_gate_holds_traffic_back_until_it_passes() -> None:
    worker = told(GATED, gate_duration=5 * MINUTE)
    assert when(worker, H.GATE_PASSED, "v3") == STARTUP + 5 * MINUTE
    assert when(worker, H.BECAME_CURRENT, "v3") == STARTUP + 5 * MINUTE


def test_gate_that_fails_blocks_and_says_so() -> None:
    worker = told(GATED, gate_passes=False)
    assert happenings(worker, "v3") == [H.CREATED, H.READY, H.GATE_STARTED, H.GATE_FAILED]
    assert (worker.outcome, worker.ends) == (Outcome.BLOCKED, STARTUP + MINUTE)
    assert "ended as Failed" in worker.because
    assert happenings(worker, "previous") == [H.FOUND]


def test_gate_runs_for_an_hour_at_most() -> None:
    worker = told(GATED, gate_duration=2 * HOUR)
    assert when(worker, H.GATE_FAILED, "v3") == STARTUP + HOUR
    assert "ended as TimedOut" in worker.because


def test_gate_of_a_version_that_registers_in_the_future_starts_once() -> None:
    registered = NOW + HOUR
    versions = version("v3", created_at=registered), version("v2", VersionStatus.CURRENT)
    found = situation(temporal(*versions, traffic=routing("v2")), [live("v3"), live("v2")])
    assert happenings(told(GATED, found), "v3").count(H.GATE_STARTED) == 1


def test_manual_rollout_waits_for_a_person() -> None:
    worker = told(Rollout(Strategy.MANUAL))
    assert worker.outcome is Outcome.WAITING
    assert "the strategy is Manual" in worker.because
    assert happenings(worker, "v3") == [H.CREATED, H.READY]


def test_worker_without_replicas_is_blocked() -> None:
    (worker,) = tell([a_worker_spec(replicas=0)]).workers
    assert worker.outcome is Outcome.BLOCKED
    assert (
        worker.because
        == "Temporal does not know it yet, because its spec says zero replicas: no worker can take traffic"
    )
    assert worker.notes == ("previous is current, but its spec says zero replicas",)


def test_driver_none_is_told_of_as_if_somebody_ran_the_rollout() -> None:
    spec = a_worker_spec()
    (worker,) = tell([replace(spec, policy=replace(spec.policy, driver=Driver.NONE))]).workers
    assert worker.outcome is Outcome.SETTLED
    assert [note for note in worker.notes if "driver is None" in note]


def test_target_that_is_called_previous_is_told_from_the_earlier_version() -> None:
    (worker,) = tell([a_worker_spec(build_id="previous")]).workers
    assert (worker.current_build_id, worker.target_build_id) == ("earlier", "previous")


def test_two_workers_have_a_timeline_each() -> None:
    fast, slow = tell([a_worker_spec(ALL_AT_ONCE, "fast"), a_worker_spec(PROGRESSIVE, "slow")]).workers
    assert (fast.worker, slow.worker) == ("shop/fast", "shop/slow")
    assert when(fast, H.BECAME_CURRENT, "v3") < when(slow, H.BECAME_CURRENT, "v3")


def current_since_an_hour(current: str, *others: tuple[str, VersionStatus]) -> World:
    """A world whose current version replaced the others lately, all of them live."""
    found = [
        version(current, VersionStatus.CURRENT, first_activated_at=ago(HOUR), last_current_at=ago(HOUR)),
        *(
            version(
                build_id,
                status,
                created_at=ago(2 * HOUR),
                first_activated_at=ago(2 * HOUR),
                last_current_at=ago(2 * HOUR),
                last_deactivated_at=ago(HOUR),
                drainage=Drainage(status, ago(HOUR), NOW),
            )
            for build_id, status in others
        ),
    ]
    deployments = [live(item.build_id) for item in found]
    return situation(temporal(*found, traffic=routing(current, age=HOUR)), deployments)


def test_rollback_is_at_once_and_drains_the_bad_version() -> None:
    worker = told(PROGRESSIVE, current_since_an_hour("v4", ("v3", VersionStatus.DRAINING)))
    assert happenings(worker, "v3") == [H.FOUND, H.BECAME_CURRENT]
    assert when(worker, H.BECAME_CURRENT, "v3") == timedelta()
    assert happenings(worker, "v4")[-1] is H.DROPPED
    assert worker.outcome is Outcome.SETTLED


def test_snapshot_that_is_settled_tells_only_what_is_there() -> None:
    worker = told(PROGRESSIVE, current_since_an_hour("v3"))
    assert [event.happening for event in worker.events] == [H.FOUND]
    assert (worker.outcome, worker.ends) == (Outcome.SETTLED, timedelta())
    assert [span.end for lane in worker.lanes for span in lane.spans] == [None]


def test_of_two_deployments_of_a_version_its_own_is_simulated() -> None:
    twin = live("v3", 0, name="payments-v3-by-hand")
    found = temporal(version("v3", VersionStatus.CURRENT), traffic=routing("v3"))
    worker = told(PROGRESSIVE, situation(found, [live("v3"), twin]))
    assert [lane.spans[0].replicas for lane in worker.lanes] == [3]
    assert [event.happening for event in worker.events] == [H.FOUND]


def test_first_deploy_needs_no_earlier_version() -> None:
    worker = told(PROGRESSIVE, situation(None, []))
    assert [event.happening for event in worker.events] == [H.CREATED, H.READY, H.BECAME_CURRENT]
    assert worker.current_build_id is None


def test_unversioned_workers_share_with_a_first_version() -> None:
    shared = TaskQueue("main", TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=True)
    world = situation(temporal(version("v3", task_queues=(shared,))), [live("v3")])
    worker = told(PROGRESSIVE, world)
    (unversioned,) = (lane for lane in worker.lanes if not lane.build_id)
    assert [span.percentage for span in unversioned.spans] == [95, 25 + 50, 25]
    assert worker.outcome is Outcome.SETTLED


def test_cluster_that_was_not_read_is_taken_to_run_what_is_in_use() -> None:
    found = current_since_an_hour("v4", ("v2", VersionStatus.DRAINING))
    (known,) = found.workers.values()
    unread = replace(found, workers={known.key: replace(known, deployments=None)})
    worker = told(PROGRESSIVE, unread)
    at_first = {lane.build_id: lane.spans[0].replicas for lane in worker.lanes}
    assert at_first == {"v2": 3, "v3": 3, "v4": 3}
    assert [note for note in worker.notes if "no data about the cluster" in note]


def test_version_that_stays_is_told_of_with_the_reason() -> None:
    stuck = version("v2", VersionStatus.UNSPECIFIED)
    found = temporal(version("v3", VersionStatus.CURRENT), stuck, traffic=routing("v3"))
    worker = told(PROGRESSIVE, situation(found, [live("v3"), live("v2")]))
    assert worker.notes == ("v2 stays: it is unspecified: workflows may still need it",)


def test_draining_version_of_a_snapshot_keeps_its_workflows_from_when_it_was_left() -> None:
    found = current_since_an_hour("v3", ("v2", VersionStatus.DRAINING))
    worker = told(PROGRESSIVE, found, workflow_duration=3 * HOUR)
    assert when(worker, H.WORKFLOWS_ENDED, "v2") == 2 * HOUR
    assert when(worker, H.DRAINED, "v2") == 2 * HOUR


def test_policy_signals_what_drains_and_ends_it_a_month_later() -> None:
    entries = (
        DrainingEntry(DAY, DrainingAction(BatchAction.SIGNAL, ("Poller",), signal_name="stop")),
        DrainingEntry(30 * DAY, DrainingAction(BatchAction.TERMINATE)),
    )
    spec = a_worker_spec()
    spec = replace(spec, policy=replace(spec.policy, draining=entries))
    [worker] = tell([spec], workflow_duration=180 * DAY).workers
    began = when(worker, H.BEGAN_DRAINING, "previous")
    told = [(one.at - began, one.says) for one in worker.events if one.happening is H.ENDING_BEGUN]
    assert told == [
        (DAY, "its policy starts to send signal stop to its workflows"),
        (30 * DAY, "its policy starts to terminate its workflows"),
    ]
    assert when(worker, H.WORKFLOWS_ENDED, "previous") == began + 30 * DAY + timedelta(seconds=1)
    assert when(worker, H.DRAINED, "previous") - began < 30 * DAY + 2 * ASSUMED.drainage_interval
    [left] = tell([a_worker_spec()], workflow_duration=180 * DAY).workers
    assert when(left, H.WORKFLOWS_ENDED, "previous") == began + 180 * DAY


def test_workflows_on_a_drained_version_hold_it_until_they_end() -> None:
    drained = Drainage(VersionStatus.DRAINED, ago(9 * DAY), ago(9 * DAY))
    old = version(
        "v2", VersionStatus.DRAINED, first_activated_at=ago(9 * DAY), drainage=drained, open_workflows=2
    )
    found = temporal(version("v3", VersionStatus.CURRENT), old, traffic=routing("v3"))
    worker = told(PROGRESSIVE, situation(found, [live("v3"), live("v2")]), workflow_duration=2 * HOUR)
    assert happenings(worker, "v2") == [H.FOUND, H.WORKFLOWS_ENDED, H.SCALED_DOWN, H.DROPPED]
    assert when(worker, H.SCALED_DOWN, "v2") == 2 * HOUR
    assert when(worker, H.DROPPED, "v2") == 2 * HOUR + ASSUMED.render_interval


def test_superseded_version_that_never_had_traffic_goes_at_once_and_in_two_renders() -> None:
    superseded = version("v2", created_at=ago(9 * DAY))
    found = temporal(version("v3", VersionStatus.CURRENT), superseded, traffic=routing("v3"))
    worker = told(PROGRESSIVE, situation(found, [live("v3"), live("v2")]))
    assert when(worker, H.SCALED_DOWN, "v2") == timedelta()
    assert when(worker, H.DROPPED, "v2") == ASSUMED.render_interval


def managed_by(identity: str) -> World:
    found = current_since_an_hour("v2")
    (known,) = found.workers.values()
    assert known.temporal
    managed = replace(known, temporal=replace(known.temporal, manager_identity=identity))
    return replace(found, workers={known.key: managed})


def test_foreign_owner_blocks_at_once() -> None:
    worker = told(PROGRESSIVE, managed_by("somebody else"))
    assert worker.outcome is Outcome.BLOCKED
    assert "its manager is somebody else" in worker.because


@pytest.mark.parametrize(
    ("identity", "outcome"),
    [("twgen/prod-eu/shop", Outcome.SETTLED), ("temporal-worker-controller/x", Outcome.BLOCKED)],
)
def test_person_is_told_what_the_owning_rollout_does(identity: str, outcome: Outcome) -> None:
    person = Caller("twgen/ada@laptop", is_person=True)
    (worker,) = simulate([a_worker_spec()], managed_by(identity), NOW, person, ASSUMED).workers
    assert worker.outcome is outcome


def test_version_that_is_measured_is_taken_to_be_well() -> None:
    spec = a_worker_spec()
    analysed = replace(spec, policy=replace(spec.policy, analysis=analysis_of(OnFailure.ABORT)))
    measured, plain = tell([analysed]).workers[0], tell([spec]).workers[0]
    assert measured.events == plain.events


def test_step_that_is_too_short_for_its_analysis_is_noted_until_traffic_is_given() -> None:
    spec = a_worker_spec()
    analysed = replace(spec, policy=replace(spec.policy, analysis=analysis_of(OnFailure.ABORT)))
    (asked,) = tell([analysed]).workers
    assert [note for note in asked.notes if "is too short for metric" in note]
    assert asked.noticing == ()
    (given,) = tell([analysed], traffic=Traffic(100, 0.2)).workers
    assert [note[:40] for note in given.notes] == ["its last step ends once 10 workflows hav"]
    assert given.noticing
    for rollout in (ALL_AT_ONCE, Rollout(Strategy.MANUAL, PROGRESSIVE.steps)):
        (never,) = tell([replace(analysed, rollout=rollout)], traffic=Traffic(100, 0.2)).workers
        assert (never.noticing, never.notes) == ((), ())


def test_target_that_fails_in_the_snapshot_is_taken_back() -> None:
    worker = told_of_failures(failed=9)
    events = [(event.at, event.says) for event in worker.events if event.happening is H.TAKEN_BACK]
    why = "failures: 9 of 41 failed (22%), bound 2%, chance of a false alarm below 0.01%"
    assert events == [(timedelta(), f"its ramp is taken back ({why})")]
    assert worker.outcome is Outcome.BLOCKED
    assert told_of_failures(failed=1).outcome is Outcome.SETTLED


def told_of_failures(failed: int) -> WorkerTimeline:
    """From a ramp of which so many of 41 workflows failed."""
    measured = Measurement("failures", NOW - HOUR, failures=Failures(FailureCount(41, failed)))
    ramps = version("v3", VersionStatus.RAMPING, metadata={}, measurements=(measured,))
    traffic = routing("v1", ("v3", 25), age=HOUR)
    found = situation(
        temporal(version("v1", VersionStatus.CURRENT), ramps, traffic=traffic), [live("v3"), live("v1")]
    )
    (worker,) = tell([measuring()], found, NOW).workers
    return worker
