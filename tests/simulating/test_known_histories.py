"""Histories in which twgen once did what it must not; those that a search finds are shrunk and come here."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from tests.simulating.history import MISSPELT
from tests.simulating.test_histories import Histories
from tests.simulating.workers import HOUR, MINUTE, SECOND
from twgen.model.plan import Phase
from twgen.model.reasons import RoutingReason as Reason
from twgen.model.temporal import GateStatus

STEPS = ("Progressive", "5, 50")
ALL_AT_ONCE = ("AllAtOnce", "none")


@pytest.fixture(params=["1.29.1", "1.32.0"])
def history(request: pytest.FixtureRequest) -> Iterator[Histories]:
    """One in which v0 has been current for a day; afterwards it settles."""
    found = Histories()
    found.begin(polled="own", earlier=1, length=26 * HOUR, release=request.param)
    yield found
    found.teardown()


@contextmanager
def failing_gates(history: Histories) -> Iterator[None]:
    history.write_code("well", "own", gate_passes=False)
    yield
    history.write_code("well", "own", gate_passes=True)


def replace_paused_version(history: Histories) -> None:
    """A person pauses v1, then gives it all of the traffic; v2 takes its place."""
    history.commit_a_new_build(*STEPS, 2, is_gated=False)
    history.stop("pause")
    history.promote("promote --full")
    history.time_passes(10 * SECOND, 1)
    assert history.current == "v1"
    history.commit_a_new_build(*ALL_AT_ONCE, 3, is_gated=False)
    assert history.current == "v2"


def test_revert_to_a_version_that_was_paused_in_an_earlier_stay_is_made_at_once(history: Histories) -> None:
    replace_paused_version(history)
    history.revert(1)
    assert history.current == "v1"


def test_pause_of_a_target_lets_no_replaced_version_keep_its_share(history: Histories) -> None:
    history.commit_a_new_build(*STEPS, 2, is_gated=False)
    history.stop("pause")
    history.commit_a_new_build(*STEPS, 3, is_gated=False)
    history.stop("pause")
    history.revert(1)
    assert not history.past("v2").share


def test_paused_target_that_would_go_back_at_once_lets_no_replaced_version_keep_its_share(
    history: Histories,
) -> None:
    history.commit_a_new_build(*ALL_AT_ONCE, 3, is_gated=False)
    history.freeze(is_frozen=True)
    history.commit("v0")
    history.stop("pause")
    history.freeze(is_frozen=False)
    history.commit_a_new_build(*STEPS, 3, is_gated=False)
    assert history.past("v2").share
    history.revert(0)
    assert not history.past("v2").share
    assert history.worker.plan().routing.reason is Reason.PAUSED


def test_gate_that_was_skipped_in_an_earlier_stay_is_asked_again(history: Histories) -> None:
    with failing_gates(history):
        history.commit_a_new_build(*STEPS, 3, is_gated=True)
        history.promote("promote --full --skip-gate")
        assert history.current == "v1"
        history.commit_a_new_build(*ALL_AT_ONCE, 3, is_gated=False)
        history.time_passes(26 * HOUR, 1)
        history.commit("v1")
        history.edit(*STEPS, 4, is_gated=True)
        assert not history.past("v1").share


def test_share_of_an_earlier_stay_is_no_word_on_the_gate(history: Histories) -> None:
    history.commit_a_new_build(*STEPS, 4, is_gated=True)
    history.promote("promote --full")
    assert history.current == "v1"
    history.commit_a_new_build(*ALL_AT_ONCE, 3, is_gated=False)
    history.forget()
    history.time_passes(26 * HOUR, 1)
    with failing_gates(history):
        history.worker.temporal.set_ramp("v1", 5)
        history.commit("v1")
        history.edit(*STEPS, 0, is_gated=True)
        history.time_passes(2 * MINUTE, 2)
        assert history.past("v1").share == 5


def test_step_that_is_edited_below_the_live_share_waits_for_its_gate(history: Histories) -> None:
    with failing_gates(history):
        history.change_policy("gate before 50")
        history.commit_a_new_build(*STEPS, 2, is_gated=False)
        assert history.past("v1").share == 5
        history.edit("Progressive", "50, 75", 1, is_gated=False)
        history.time_passes(31 * MINUTE, 2)
        assert not history.past("v1").share, "its gate failed"


def test_steps_that_are_edited_above_the_live_share_wait_for_the_first_of_their_pauses(
    history: Histories,
) -> None:
    history.commit_a_new_build(*STEPS, 2, is_gated=False)
    assert history.past("v1").share == 5
    history.edit("Progressive", "50, 75", 3, is_gated=False)
    assert history.past("v1").share == 5
    history.time_passes(31 * MINUTE, 1)
    assert history.past("v1").share == 50


@pytest.mark.parametrize("ahead", [-HOUR, 0 * HOUR, HOUR], ids=["behind", "right", "ahead"])
def test_gate_of_the_stay_before_does_not_count_for_a_share_that_another_tool_gives_within_seconds(
    history: Histories, ahead: timedelta
) -> None:
    history.set_clocks(ahead)
    history.commit_a_new_build(*STEPS, 3, is_gated=True)
    assert history.past("v1").share == 5
    with failing_gates(history):
        history.forget()
        history.stop("abort")
        history.move_by_hand(
            manager="me", number=list(history.worker.temporal.versions).index("v1"), percentage=5.0
        )
        history.time_passes(2 * MINUTE, 3)
        assert history.past("v1").share == 5
        assert history.worker.plan().routing.reason is Reason.GATE_FAILED


def test_gate_whose_name_is_corrected_runs_beside_the_misspelt_one(history: Histories) -> None:
    history.commit_a_new_build(*STEPS, 0, is_gated=True)
    history.name_another_gate(MISSPELT)
    history.time_passes(10 * SECOND, 3)
    stuck = history.worker.plan().routing
    assert (stuck.reason, stuck.phase) == (Reason.GATE_RUNNING, Phase.BLOCKED)
    history.name_another_gate("Smoke")
    history.time_passes(32 * SECOND, 3)
    assert history.past("v1").share == 5
    runs = history.worker.temporal.versions["v1"].gate_runs or ()
    assert [(run.workflow_type, run.status) for run in runs] == [
        (MISSPELT, GateStatus.RUNNING),
        ("Smoke", GateStatus.COMPLETED),
    ]


def test_retry_ends_a_gate_that_no_worker_can_complete(history: Histories) -> None:
    history.commit_a_new_build(*STEPS, 0, is_gated=True)
    history.name_another_gate(MISSPELT)
    history.time_passes(10 * SECOND, 3)
    history.change_ones_mind("retry")
    history.time_passes(10 * SECOND, 1)
    runs = history.worker.temporal.versions["v1"].gate_runs or ()
    assert [run.status for run in runs] == [GateStatus.TERMINATED, GateStatus.RUNNING]
    history.name_another_gate("Smoke")


def test_gate_of_a_version_that_was_never_active_starts_once(history: Histories) -> None:
    with failing_gates(history):
        history.commit_a_new_build(*STEPS, 2, is_gated=True)
        history.time_passes(HOUR, 3)
        version = history.worker.temporal.versions["v1"]
        assert [run.workflow_id for run in version.gate_runs or ()] == ["test-shop/payments:v1-main"]
        assert history.worker.plan().routing.reason is Reason.GATE_FAILED


def test_first_version_shares_with_unversioned_workers_though_one_queue_has_none() -> None:
    history = Histories()
    history.begin(polled="shared, one new", earlier=0, length=MINUTE, release="1.32.0")
    history.edit(*STEPS, 2, is_gated=False)
    assert not history.current
    assert history.past("v0").share == 5


def test_what_a_plan_promises_of_the_workflows_of_a_retired_worker_is_done() -> None:
    history = Histories()
    history.begin(polled="shared", earlier=2, length=MINUTE, release="1.32.0")
    history.start_workflow(0, 26 * HOUR)
    history.change_policy("draining")
    history.change_ones_mind("retire")
    assert not history.current
    history.time_passes(61 * MINUTE, 2)
    assert history.worker.plan().routing.reason is Reason.RETIRED
    assert history.worker.begun["v0"] == ("cancel its workflows",)


def test_revert_ends_a_retirement_that_another_version_has_ended_before() -> None:
    history = Histories()
    history.begin(polled="shared", earlier=1, length=MINUTE, release="1.32.0")
    history.change_ones_mind("retire")
    history.time_passes(HOUR, 1)
    history.commit_a_new_build(*ALL_AT_ONCE, 2, is_gated=False)
    assert history.current == "v1"
    history.time_passes(HOUR, 1)
    history.change_ones_mind("retire")
    history.time_passes(HOUR, 1)
    assert history.worker.plan().routing.reason is Reason.RETIRED
    history.commit("v0")
    history.settle()
    assert history.past("v0").share
