"""The model of Temporal by itself; what real servers do is told in tests/servers."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulating.workers import HOUR, MINUTE, QUICK, a_worker, wait
from tests.strategies import NOW
from twgen.model.temporal import GateRun, GateStatus, TaskQueue, TaskQueueType, UpdateState, VersionStatus
from twgen.model.times import FOREVER, later
from twgen.planning.version_status import shares
from twgen.simulating.servers import NEWEST, TemporalModel, server_of

QUEUE = TaskQueue("main", TaskQueueType.WORKFLOW)


def a_model(server: str = NEWEST, workflow_duration: timedelta = HOUR) -> TemporalModel:
    """A Worker Deployment with three versions, of which v1 is current."""
    model = TemporalModel(server_of(server), NOW, workflow_duration, 3 * MINUTE)
    for build_id in ("v1", "v2", "v3"):
        model.polled(build_id, [QUEUE])
    model.set_current("v1")
    return model


def status(model: TemporalModel, build_id: str) -> VersionStatus:
    return model.versions[build_id].status


def test_server_has_never_heard_of_a_worker_that_has_not_polled() -> None:
    assert TemporalModel(server_of(NEWEST), NOW, HOUR, MINUTE).described() is None


def test_version_is_held_by_the_last_workflow_that_it_got() -> None:
    model = a_model()
    model.set_current("v2")
    model.advance(NOW + HOUR - MINUTE)
    assert model.is_held("v1")
    model.advance(NOW + HOUR)
    assert not model.is_held("v1")


def test_version_that_never_got_a_workflow_is_drained_at_the_first_check() -> None:
    model = a_model()
    model.set_ramp("v2", 0)
    model.set_ramp("", 0)
    model.advance(NOW + 3 * MINUTE)
    assert status(model, "v2") is VersionStatus.DRAINED


def test_ramp_to_another_version_drains_the_one_before() -> None:
    model = a_model()
    model.set_ramp("v2", 10)
    model.set_ramp("v3", 10)
    assert (status(model, "v2"), status(model, "v3")) == (VersionStatus.DRAINING, VersionStatus.RAMPING)


def test_version_that_gets_traffic_again_is_no_longer_draining() -> None:
    model = a_model()
    model.set_current("v2")
    model.set_current("v1")
    model.advance(NOW + 100 * HOUR)
    assert (status(model, "v1"), status(model, "v2")) == (VersionStatus.CURRENT, VersionStatus.DRAINED)


def test_version_that_gets_traffic_again_was_not_deactivated() -> None:
    model = a_model()
    model.set_current("v2")
    assert model.versions["v1"].last_deactivated_at == NOW
    model.set_ramp("v1", 5)
    assert model.versions["v1"].last_deactivated_at is None


def test_same_change_again_changes_nothing() -> None:
    model = a_model()
    before = model.described()
    model.set_current("v1")
    assert model.described() == before


def test_change_of_routing_is_in_progress_for_a_moment() -> None:
    model = a_model()
    assert model.routing.update_state is UpdateState.IN_PROGRESS
    model.advance(model.next_event() or NOW)
    assert model.routing.update_state is UpdateState.COMPLETED


def test_open_workflows_of_a_drained_version_are_counted() -> None:
    model = a_model("1.29.1", timedelta())
    model.set_current("v2")
    model.advance(NOW + HOUR)
    model.start_pinned("v1", NOW + 2 * HOUR)
    described = model.described()
    assert described
    assert {item.build_id: item.open_workflows for item in described.versions} == {
        "v1": 1,
        "v2": None,
        "v3": 0,
    }


@pytest.mark.parametrize("ends_as", [GateStatus.COMPLETED, GateStatus.FAILED])
def test_gate_runs_for_its_time_and_ends_as_it_should(ends_as: GateStatus) -> None:
    model = a_model()
    run = GateRun("main", "gate", GateStatus.RUNNING, NOW)
    model.start_gate("v2", run, NOW + MINUTE, ends_as)
    seen = []
    for moment in (NOW + MINUTE - timedelta(seconds=1), NOW + MINUTE):
        model.advance(moment)
        seen += [item.status for item in model.versions["v2"].gate_runs or ()]
    assert seen == [GateStatus.RUNNING, ends_as]


@pytest.mark.parametrize(
    ("version", "known"),
    [("1.29.1", False), ("1.30.0", True), ("1.32.0", True), ("2.0.0", True), ("", True), ("main", True)],
)
def test_server_that_does_not_say_its_version_is_taken_for_the_newest(version: str, *, known: bool) -> None:
    assert server_of(version).reports_when_current is known
    assert server_of(version).version == (version or NEWEST)


def test_shares_add_up_to_all() -> None:
    model = a_model()
    model.set_ramp("v2", 33.3)
    assert shares(model.routing) == {"v1": pytest.approx(66.7), "v2": 33.3}
    model.set_ramp("", 5)
    assert shares(model.routing) == {"v1": 95, "": 5}


lengths = st.timedeltas(timedelta(seconds=1), timedelta(days=400))


@given(lengths, lengths)
def test_version_is_drained_at_the_first_check_after_its_last_workflow(
    interval: timedelta, held: timedelta
) -> None:
    model = a_model(workflow_duration=held)
    model.drainage_interval = interval
    model.set_current("v2")
    while status(model, "v1") is VersionStatus.DRAINING:
        model.advance(model.next_event() or FOREVER)
    drainage = model.versions["v1"].drainage
    assert drainage
    assert drainage.changed_at
    drained = drainage.changed_at - NOW
    assert drained >= held
    assert drained % interval == timedelta()
    assert drained - interval < held or drained == interval


@given(lengths, lengths)
def test_render_is_due_after_the_next_whole_number_of_intervals(
    interval: timedelta, passed: timedelta
) -> None:
    worker = a_worker(assumed=replace(QUICK, render_interval=interval))
    wait(worker, passed)
    plan = worker.plan()
    tick = worker.or_next_render(plan, worker.next_event(plan))
    assert timedelta() < tick - worker.now <= interval
    assert (tick - NOW) % interval == timedelta()


def test_workflow_that_never_ends_holds_its_version_for_ever() -> None:
    model = a_model()
    model.held_until["v1"] = FOREVER
    model.set_current("v2")
    model.advance(NOW + timedelta(days=100_000))
    assert status(model, "v1") is VersionStatus.DRAINING
    assert model.next_event()
    assert later(NOW, timedelta.max) == FOREVER
