"""Rollouts in a cluster where intents change, Pods are killed and copied, and people interrupt."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.executing.api_server import INTENT, JOBS, STATUS, ApiServer
from tests.executing.in_cluster import INTERRUPTIONS, SPECS, Cluster
from tests.executing.trouble import TROUBLES
from tests.planning.times import MINUTE, SECOND
from twgen.model.plan import Phase
from twgen.model.rollout import Driver, Verb
from twgen.model.temporal import GateStatus
from twgen.records.rollout_status import parse_rollout_status
from twgen.versioning.names import INTENT_HASH

deeds = st.lists(st.tuples(st.integers(1, 240), st.sampled_from(INTERRUPTIONS)), max_size=10)
troubles = st.lists(st.sampled_from((*TROUBLES, "killed")), max_size=30)
beside = st.lists(st.sampled_from((*TROUBLES, "killed")), max_size=30)
drivers = st.sampled_from((Driver.JOB, Driver.HOOK))
failures = st.lists(st.sampled_from((GateStatus.FAILED, GateStatus.TIMED_OUT)), max_size=2)


@settings(max_examples=settings.default.max_examples // 2)
@example("back", [(20, "annotate")], (["slow", "killed", "refused"], []), Driver.JOB, [])
@example(
    "gated", [(20, "annotate"), (5, "apply back")], ([*[""] * 5, "killed", "killed"], []), Driver.JOB, []
)
@example(
    "gated",
    [(20, "abort"), (167, "apply newer"), (20, "apply other steps"), (5, "ramp"), (1, "annotate")],
    ([], []),
    Driver.JOB,
    [],
)
@example("newer", [], (["", "", "", "", "", "", "lost request"], []), Driver.JOB, [])
@example(
    "back",
    [(5, "apply other steps"), (116, "apply newer"), (5, "apply other steps")],
    (
        [
            *("lost request", "slow", "", "lost answer", "refused", "killed", "lost request", "lost request"),
            *("", "", "", "", "lost request", "refused", "lost request", "", "lost answer", "refused"),
            "killed",
        ],
        [],
    ),
    Driver.JOB,
    [],
)
@example("gated", [], ([], []), Driver.JOB, [GateStatus.FAILED, GateStatus.TIMED_OUT])
@example("gated", [(30, "annotate"), (1, "apply newer")], ([], []), Driver.HOOK, [])
@example("gated", [(30, "request Pause"), (60, "request Promote")], ([], []), Driver.JOB, [])
@example("gated", [(100, "made again")], ([], []), Driver.JOB, [])
@example("newer", [(100, "gone for a while")], ([], []), Driver.JOB, [])
@given(st.sampled_from(list(SPECS)), deeds, st.tuples(troubles, beside), drivers, failures)
def test_whatever_is_applied_killed_or_done_by_hand_no_write_is_unjustified_and_the_newest_intent_settles(
    first: str,
    interruptions: list[tuple[int, str]],
    trouble: tuple[list[str], list[str]],
    driver: Driver,
    gates_end_as: list[GateStatus],
) -> None:
    in_looks, beside_them = map(list, trouble)
    cluster = Cluster(troubles=in_looks, beside=beside_them, driver=driver, gates_end_as=list(gates_end_as))
    cluster.run(cluster.life(first, interruptions))
    newest = SPECS[cluster.name]
    routing = cluster.model.routing
    assert (routing.current and routing.current.build_id, routing.ramping) == (newest.build_id, None)
    assert cluster.plans[-1].routing.phase is Phase.SETTLED
    assert cluster.promotions <= len(cluster.taken(Verb.PROMOTE)), "each is carried out once"
    assert all(number == 1 for number in cluster.ends().values()), "each is answered once"
    told = parse_rollout_status(cluster.api.objects[STATUS])
    stands = cluster.api.objects[INTENT]["metadata"]
    assert (told.phase, told.intent) == (Phase.SETTLED, stands["annotations"][INTENT_HASH])
    assert told.intent_uid == stands["uid"], "its status goes with an intent that was deleted"


@pytest.mark.parametrize("trouble", ["paused", "newer"])
@pytest.mark.parametrize("call", range(5))
@pytest.mark.parametrize("driver", [Driver.JOB, Driver.HOOK])
def test_no_step_is_taken_once_its_intent_was_frozen_or_replaced_however_slow_the_cluster_is(
    driver: Driver, call: int, trouble: str
) -> None:
    cluster = Cluster(driver=driver)

    async def story() -> None:
        await cluster.sync("gated")
        while "SetRamp v3 5" not in cluster.done:
            await cluster.sleep(SECOND)
        await cluster.sleep(2 * MINUTE - SECOND)
        # the step is due, and its status is written first
        cluster.beside += [*[""] * call, trouble]
        await cluster.sleep(MINUTE)
        cluster.end_job(cluster.job_name)

    cluster.run(story())
    assert not cluster.beside
    assert "SetRamp v3 25" not in cluster.done


@pytest.mark.parametrize("is_deleted", [True, False])
def test_status_that_somebody_deleted_or_changed_is_written_again_within_seconds(*, is_deleted: bool) -> None:
    cluster = Cluster()

    async def story() -> None:
        await cluster.sync("gated")
        while "SetRamp v3 25" not in cluster.done:
            await cluster.sleep(SECOND)
        await cluster.sleep(10 * SECOND)
        told = cluster.api.objects[STATUS]["data"]
        cluster.damage(is_deleted=is_deleted)
        await cluster.sleep(5 * SECOND)
        assert cluster.api.objects[STATUS]["data"] == told
        cluster.end_job(cluster.job_name)

    cluster.run(story())


class _WithoutStatus(ApiServer):
    """Refuses so many writes of the status."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self._refusals = refusals

    async def ask(self, method: str, path: str, *others: Any, **more: Any) -> tuple[int, Mapping[str, Any]]:
        if (method, path) == ("PATCH", STATUS) and self._refusals:
            self._refusals -= 1
            return 403, {"message": "it may not"}
        return await super().ask(method, path, *others, **more)


@pytest.mark.parametrize(("refusals", "ends_as"), [(12, "Complete"), (50, "Failed")])
def test_rollout_whose_end_nobody_can_read_has_not_succeeded(refusals: int, ends_as: str) -> None:
    """Kubernetes tries its Job again: whoever waits for the end by the status would wait for ever."""
    cluster = Cluster()
    known, cluster.api = cluster.api, _WithoutStatus(refusals)
    cluster.api.objects = known.objects

    async def story() -> None:
        await cluster.sync("back")
        await cluster.sleep(10 * MINUTE)

    cluster.run(story())
    [job] = cluster.api.listed(JOBS)
    assert job["status"]["conditions"] == [{"type": ends_as, "status": "True"}]


def test_job_goes_on_with_an_intent_that_was_deleted_and_made_again_while_it_waited() -> None:
    """It writes the status of the one that is there, which would else go with the one that is not."""
    cluster = Cluster()

    async def story() -> None:
        await cluster.sync("newer")
        await cluster.sleep(100 * SECOND)
        await cluster.make_again(SECOND)
        await cluster.sleep(MINUTE)

    cluster.run(story())
    told = parse_rollout_status(cluster.api.objects[STATUS])
    assert (told.intent_uid, told.phase) == (cluster.api.objects[INTENT]["metadata"]["uid"], Phase.SETTLED)
    assert len(cluster.running) == 1
