"""Which manifest a version is rendered from: the ledger's, unless other pods run."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import SPEC, live, planned, routing, situation, temporal, version
from twgen.model.plan import VersionAction, VersionPlan
from twgen.model.spec import ConnectionChanges, HistorySource, PodTemplate, WorkerSpec
from twgen.model.world import VersionStatus
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
    plan = old(replace(SPEC, policy=replace(SPEC.policy, history=order)))
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
