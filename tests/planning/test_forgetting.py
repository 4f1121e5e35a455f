"""Which records of drained versions may go."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planning.situations import SPEC, drained, live, routing, situation, target_in, temporal, version
from tests.planning.times import DAY, HOUR, ago
from tests.strategies import NOW, may_have_work, with_policy
from twgen.errors import NegativeAnswer
from twgen.model.rollout import RolloutInCluster
from twgen.model.temporal import Drainage, Version, VersionStatus
from twgen.model.world import WorkerWorld
from twgen.planning.forgetting import full_warnings, old_records, records_to_forget, without_workflows
from twgen.planning.plan import worker_world

OLD = [
    drained((30 + number) * HOUR, f"old{number}", created_at=ago((10 + number) * DAY)) for number in range(8)
]

CURRENT = version("v2", VersionStatus.CURRENT)


def world(*versions: Version, deployments: list[dict[str, object]] | None = None) -> WorkerWorld:
    found = temporal(CURRENT, version("v3"), *versions, traffic=routing("v2"))
    return worker_world(SPEC, situation(found, deployments or []))


def names(known: WorkerWorld, keep: int = 5) -> list[str]:
    return [record.build_id for record in old_records(SPEC, known, NOW, keep)]


def test_newest_drained_versions_are_kept_and_the_longest_drained_goes_first() -> None:
    assert names(world(*OLD)) == ["old7", "old6", "old5"]
    assert names(world(*OLD), keep=0) == [f"old{number}" for number in reversed(range(8))]
    assert names(world(*OLD[:5])) == []


@pytest.mark.parametrize(
    ("drained_for", "window", "is_old"),
    [
        pytest.param(24 * HOUR, 1, False, id="within its delays"),
        pytest.param(26 * HOUR, 1, True, id="after its delays"),
        pytest.param(None, 1, False, id="since nobody knows when"),
        pytest.param(30 * HOUR, 29, True, id="after the window of a rollback"),
        pytest.param(30 * HOUR, 31, False, id="a rollback returns to it at once"),
    ],
)
def test_version_is_kept_that_drained(drained_for: timedelta | None, window: int, *, is_old: bool) -> None:
    spec = with_policy(SPEC, rollback_window=window * HOUR)
    assert len(old_records(spec, world(drained(drained_for, "old")), NOW, 0)) == is_old


@pytest.mark.parametrize("replicas", [0, 1])
def test_version_with_a_deployment_is_kept(replicas: int) -> None:
    assert names(world(*OLD, deployments=[live("old7", replicas)]), keep=0)[0] == "old6"


def test_target_and_versions_with_traffic_or_work_are_kept() -> None:
    target = drained(8 * DAY, SPEC.build_id)
    found = temporal(CURRENT, target, version("busy", VersionStatus.DRAINING), traffic=routing("v2"))
    assert names(worker_world(SPEC, situation(found, [])), keep=0) == []


def test_version_of_unknown_age_counts_as_new() -> None:
    ageless = replace(OLD[7], created_at=None)
    assert "old7" not in names(world(*OLD[:7], ageless), keep=1)


def test_nothing_is_old_where_no_cluster_was_read() -> None:
    with pytest.raises(NegativeAnswer, match="no cluster was read"):
        old_records(SPEC, replace(world(*OLD), deployments=None), NOW, 0)


def test_version_on_which_workflows_were_counted_is_kept_and_is_one_of_the_newest() -> None:
    busy = [replace(old, open_workflows=number % 2) for number, old in enumerate(OLD)]
    assert names(world(*busy), keep=2) == ["old6", "old4", "old2"]
    many = [replace(OLD[0], build_id=f"old-{number}", open_workflows=3) for number in range(80)]
    assert full_warnings(SPEC, world(*many), NOW) == ()


long_ago = st.none() | st.integers(0, 60).map(lambda hours: ago(hours * HOUR))
over = st.sampled_from((*[VersionStatus.DRAINED] * 3, VersionStatus.DRAINING, VersionStatus.INACTIVE))
drainages = st.sampled_from((*[VersionStatus.DRAINED] * 3, VersionStatus.DRAINING, VersionStatus.UNSPECIFIED))
any_versions = st.builds(
    Version,
    st.sampled_from([SPEC.build_id, *(f"old{number}" for number in range(9))]),
    over,
    created_at=st.none() | st.integers(40, 90).map(lambda hours: ago(hours * HOUR)),
    first_activated_at=st.none() | st.just(ago(3 * DAY)),
    last_deactivated_at=st.none() | long_ago,
    drainage=st.none() | st.builds(Drainage, drainages, changed_at=long_ago),
    open_workflows=st.sampled_from((None, 0, 0, 0, 2)),
)


@given(
    st.lists(any_versions, max_size=9, unique_by=lambda one: one.build_id),
    st.sampled_from((None, "old1", "old2")),
    st.lists(st.sampled_from(("old3", "old4", "old5")), max_size=2, unique=True),
    st.integers(0, 3),
    st.sampled_from((0, 30, 48)),
)
def test_no_record_goes_of_a_version_that_anything_may_need(
    versions: list[Version], current: str | None, deployed: list[str], keep: int, window: int
) -> None:
    known = situation(temporal(*versions, traffic=routing(current)), [live(name, 0) for name in deployed])
    spec = with_policy(SPEC, rollback_window=window * HOUR)
    records = old_records(spec, worker_world(SPEC, known), NOW, keep)
    going = {one.build_id: one for one in versions if one.build_id in {old.build_id for old in records}}
    assert len(going) == len(records)
    assert not going.keys() & {SPEC.build_id, *deployed}
    assert not any(may_have_work(build_id, known) for build_id in going)
    for old in going.values():
        assert old.drainage
        assert old.drainage.changed_at
        assert old.drainage.changed_at < ago(max(25, window) * HOUR)
    if going:
        youngest = max(old.created_at or NOW for old in going.values())
        stays = [one for one in versions if one.build_id not in going and one.status is VersionStatus.DRAINED]
        assert len([one for one in stays if (one.created_at or NOW) >= youngest]) >= keep


def test_record_goes_only_if_no_open_workflow_was_counted_on_it() -> None:
    records = old_records(SPEC, world(*OLD), NOW, 5)
    assert without_workflows(records, {"old7": 0, "old6": 1}) == records[:1]
    assert records[0].drained_for == timedelta(hours=37)


@pytest.mark.parametrize(
    ("number", "keep", "warned"),
    [(72, None, False), (74, None, True), (98, None, True), (74, 70, True), (74, 74, False)],
)
def test_plan_warns_with_the_command_at_three_quarters_of_the_cap_of_more_than_a_policy_keeps(
    number: int, keep: int | None, *, warned: bool
) -> None:
    many = [drained(30 * HOUR, f"old{index}", created_at=ago(20 * DAY)) for index in range(number)]
    warnings = full_warnings(with_policy(SPEC, keep_records=keep), world(*many), NOW)
    assert bool(warnings) == warned
    if warned:
        old = number - (keep or 5)
        assert f"Temporal knows {number + 2} of at most 100 versions, and {old} of them" in warnings[0]
        assert "`twgen forget worker/payments -n shop`" in warnings[0]


def test_plan_does_not_warn_of_records_that_nobody_can_delete() -> None:
    busy = [version(f"busy{index}", VersionStatus.DRAINING) for index in range(90)]
    assert full_warnings(SPEC, world(*busy), NOW) == ()


def test_only_the_manager_forgets_versions_and_only_those_that_the_policy_no_longer_keeps() -> None:
    says = temporal(CURRENT, version("v3"), *OLD, traffic=routing("v2"))
    keeps_six = with_policy(SPEC, keep_records=6)
    target = target_in(situation(says, []), keeps_six)
    paused = replace(target.world, rollout=RolloutInCluster(is_paused=True))
    assert [record.build_id for record in records_to_forget(target)] == ["old7", "old6"]
    for other in (
        target_in(situation(says, [])),
        target_in(situation(says, None), keeps_six),
        target_in(situation(replace(says, manager_identity="somebody"), []), keeps_six),
        replace(target, world=paused),
    ):
        assert records_to_forget(other) == ()
