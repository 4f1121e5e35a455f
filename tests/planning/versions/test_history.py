"""Which manifest a version is rendered from: the ledger's, unless other pods run."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given

from tests.planning.situations import SPEC, drained, live, planned, routing, situation, temporal, version
from tests.planning.times import DAY, ago
from tests.strategies import NOW, specs, with_policy, worlds
from twgen.cluster.deployments import recorded_deployment
from twgen.errors import StateUnavailable
from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.policy import ConnectionChanges, HistorySource, MissingTemplate
from twgen.model.spec import PodTemplate, WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.model.world import GitHistory, World
from twgen.planning.reads import left_overs_to_look_for, versions_to_look_for
from twgen.planning.versions.facts import version_facts
from twgen.planning.versions.table import decide
from twgen.rendering.deployments import target_deployment

CHANGED = replace(SPEC, template=PodTemplate(SPEC.template.content, "another hash"))
CUSTOM = replace(CHANGED, has_custom_build_id=True)
SAYS = temporal(version("v1", VersionStatus.DRAINING), version("v3"), traffic=routing("v3"))


def target(spec: WorkerSpec, locked: dict[str, Any] | None) -> VersionPlan:
    (plan,) = planned(
        situation(temporal(version("v3")), [live("v3")], {"v3": locked} if locked else {}), spec
    ).versions.versions
    return plan


def old(spec: WorkerSpec = SPEC, **recorded: Any) -> VersionPlan:
    ledger = live("v1", replicas=9, **recorded)
    return planned(situation(SAYS, [live("v1"), live("v3")], {"v1": ledger}), spec).versions.versions[0]


def test_ledger_comes_before_the_cluster() -> None:
    plan = old()
    assert plan.recorded
    assert plan.recorded.manifest["spec"]["replicas"] == 9


@pytest.mark.parametrize("status", [VersionStatus.DRAINING, VersionStatus.INACTIVE])
def test_ledger_that_tells_of_other_pods_than_those_that_run_is_not_asked(status: VersionStatus) -> None:
    other = live("v1", 9)
    other["spec"]["template"]["metadata"]["annotations"]["temporal.io/pod-template-spec-hash"] = "another"
    says = temporal(version("v1", status), version("v3"))
    found = situation(says, [live("v1"), live("v3")], {"v1": other})
    plan = planned(found).versions.versions[0]
    assert plan.live
    assert plan.recorded is plan.live.recorded


def test_cluster_comes_first_when_the_policy_says_so() -> None:
    order = (HistorySource.CLUSTER, HistorySource.LEDGER)
    plan = old(with_policy(SPEC, history=order))
    assert plan.live
    assert plan.recorded is plan.live.recorded


@pytest.mark.parametrize("locked", [None, target_deployment(CUSTOM), live("v3")])
def test_template_changed_under_a_custom_build_id_is_an_update(locked: dict[str, Any] | None) -> None:
    assert target(CUSTOM, locked).action is VersionAction.UPDATE


@pytest.mark.parametrize("locked", [None, target_deployment(CHANGED), live("v3")])
def test_template_changed_under_a_build_id_of_ours_leaves_the_pods_alone(
    locked: dict[str, Any] | None,
) -> None:
    plan = target(CHANGED, locked)
    assert plan.action is VersionAction.KEEP
    assert plan.recorded
    assert plan.recorded.template_hash == SPEC.template.hash


def test_template_changed_under_a_build_id_of_ours_is_warned_of_loudly() -> None:
    locked = target_deployment(CHANGED)
    worker = planned(situation(temporal(version("v3")), [live("v3")], {"v3": locked}), CHANGED)
    (warning,) = worker.versions.warnings
    assert warning.startswith(
        "v3 is already the build ID of another pod template: this one will NOT be deployed"
    )


def test_ledger_that_was_locked_with_a_new_address_does_not_move_pods() -> None:
    connection = replace(SPEC.connection, host_port="elsewhere.example.com:7233")
    policy = replace(SPEC.policy, connection_changes=ConnectionChanges.NEW_VERSIONS_ONLY)
    moved = replace(SPEC, connection=connection, policy=policy)
    plan = target(moved, target_deployment(moved))
    assert plan.recorded
    assert plan.recorded.address == "temporal.example.com:7233"


def test_template_that_was_not_recorded_is_not_another() -> None:
    unmarked = live("v3")
    del unmarked["spec"]["template"]["metadata"]["annotations"]["temporal.io/pod-template-spec-hash"]
    (plan,) = planned(situation(temporal(version("v3")), [unmarked]), CUSTOM).versions.versions
    assert plan.action is VersionAction.KEEP


LEDGER, CLUSTER, GIT = HistorySource.LEDGER, HistorySource.CLUSTER, HistorySource.GIT
ORDERS = [order for length in (1, 2, 3) for order in permutations((LEDGER, CLUSTER, GIT), length)]


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
@pytest.mark.parametrize("is_locked", [False, True])
@pytest.mark.parametrize("is_live", [False, True])
def test_git_is_asked_only_where_no_source_before_it_tells(
    order: tuple[HistorySource, ...], *, is_locked: bool, is_live: bool
) -> None:
    spec = with_policy(SPEC, history=order)
    before = order[: order.index(GIT)] if GIT in order else order
    is_told = (is_locked and LEDGER in before) or (is_live and CLUSTER in before)
    world = situation(
        SAYS, [live("v3"), *([live("v1")] if is_live else [])], {"v1": live("v1")} if is_locked else {}
    )
    [worker] = world.workers.values()
    asked = versions_to_look_for(spec, worker, NOW)
    assert asked == ({"v1"} if GIT in order and not is_told else set())


@pytest.mark.parametrize("order", [(GIT,), (LEDGER, GIT), (GIT, LEDGER)])
def test_version_that_only_the_history_of_git_knows_is_created_from_it(
    order: tuple[HistorySource, ...],
) -> None:
    found = GitHistory({"v1": recorded_deployment(live("v1", replicas=9))})
    world = situation(SAYS, [live("v3")], history=found)
    plan = planned(world, with_policy(SPEC, history=order)).versions.versions[0]
    assert (plan.action, plan.replicas) == (VersionAction.CREATE, 9)


def test_version_that_git_does_not_tell_of_says_why() -> None:
    world = situation(SAYS, [live("v3")], history=GitHistory(ends="the clone is shallow"))
    versions = planned(world).versions
    assert versions.versions[0].because.endswith("no manifest for it was found anywhere")
    [told] = versions.warnings
    assert told.startswith("v1 has no manifest to render (the clone is shallow): ")
    with pytest.raises(StateUnavailable, match=r"was found anywhere \(the clone is shallow\)"):
        planned(world, with_policy(SPEC, missing_template=MissingTemplate.FAIL))


def test_drained_versions_that_need_nothing_are_not_looked_for() -> None:
    says = temporal(drained(DAY), version("v3"), traffic=routing("v3"))
    [worker] = situation(says, [live("v3")]).workers.values()
    assert not versions_to_look_for(SPEC, worker, NOW)


def test_newest_versions_that_nothing_needs_are_looked_for_where_the_cluster_was_not_read() -> None:
    many = [drained(9 * DAY, f"v1-{number}", created_at=ago(10 * DAY + number * DAY)) for number in range(30)]
    says = temporal(*many, version("v2"), version("v3"), traffic=routing("v3"))
    newest = {"v2", *(f"v1-{number}" for number in range(9))}
    [unread] = situation(says, None, {}).workers.values()
    [read] = situation(says, [live("v3")]).workers.values()
    [locked] = situation(says, None, {"v1-0": live("v1-0")}).workers.values()
    assert left_overs_to_look_for(SPEC, unread, NOW) == newest
    assert not versions_to_look_for(SPEC, unread, NOW)
    assert not left_overs_to_look_for(SPEC, read, NOW)
    assert left_overs_to_look_for(SPEC, locked, NOW) == newest - {"v1-0"} | {"v1-9"}
    without_git = with_policy(SPEC, history=(LEDGER, CLUSTER))
    assert not left_overs_to_look_for(without_git, unread, NOW)


@given(specs, worlds())
def test_every_version_that_keeps_a_manifest_nobody_tells_is_looked_for(
    spec: WorkerSpec, world: World
) -> None:
    for worker in world.workers.values():
        wanted = {
            version.build_id
            for version in version_facts(spec, worker, NOW)
            if not (version.is_target or version.is_of_others)
            and decide(version).action is not VersionAction.DROP
        }
        for order in ORDERS:
            asked = with_policy(spec, history=order)
            before = order[: order.index(GIT)] if GIT in order else order
            told = set(worker.ledger if LEDGER in before else ())
            told |= {live.build_id for live in worker.deployments or () if CLUSTER in before}
            expected = wanted - told if GIT in order else set()
            assert versions_to_look_for(asked, worker, NOW) == expected


def test_drained_version_with_open_workflows_is_looked_for() -> None:
    busy = replace(drained(DAY), open_workflows=1)
    [worker] = situation(temporal(busy, version("v3"), traffic=routing("v3")), [live("v3")]).workers.values()
    assert versions_to_look_for(SPEC, worker, NOW) == {busy.build_id}
