"""What a version has and no template makes any more is named until it is gone, and its successor waits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import RAMPS, live, planned, routing, situation, temporal, version
from tests.strategies import AUTOSCALER, BUDGET, BUSY_AUTOSCALER, with_policy
from twgen.model.operator import GroupKind
from twgen.model.plan import VersionPlan, WorkerVersions
from twgen.model.policy import OwnerReferences
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.planning.cluster_changes import AttachedInCluster, AttachedRecord, swaps
from twgen.planning.refresh import plan_hash
from twgen.rendering.deployments import attached_manifests, version_deployment
from twgen.rendering.manifests import attached_kinds, rollout_rules
from twgen.versioning.names import attached_resource_name

SCALED = replace(RAMPS, attached=(AUTOSCALER,), replicas=None)
RENAMED = replace(SCALED, attached=(replace(AUTOSCALER, name="other"), BUDGET))
OLD, NEW = (
    f"HorizontalPodAutoscaler/{attached_resource_name('payments', name, 'v3')}" for name in ("cpu", "other")
)
BUDGETED = f"PodDisruptionBudget/{attached_resource_name('payments', BUDGET.name, 'v3')}"


def versions(spec: WorkerSpec, **annotations: str) -> WorkerVersions:
    manifest = live("v3")
    manifest["metadata"]["annotations"] |= {f"twgen.io/{name}": text for name, text in annotations.items()}
    says = temporal(version(status=VersionStatus.CURRENT), traffic=routing("v3"))
    return planned(situation(says, [manifest]), spec).versions


def the_version(found: WorkerVersions) -> VersionPlan:
    [only] = found.versions
    return only


def annotations(spec: WorkerSpec, found: WorkerVersions) -> Mapping[str, Any]:
    told: Mapping[str, Any] = version_deployment(spec, the_version(found), "me")["metadata"]["annotations"]
    return told


def names(spec: WorkerSpec, found: WorkerVersions) -> list[str]:
    return [
        f"{item['kind']}/{item['metadata']['name']}" for item in attached_manifests(spec, the_version(found))
    ]


def test_pod_never_has_the_budgets_of_a_template_with_its_old_and_its_new_name() -> None:
    spec = replace(RAMPS, attached=(replace(BUDGET, name="other"),))
    new = f"PodDisruptionBudget/{attached_resource_name('payments', 'other', 'v3')}"
    renamed = versions(spec, attached=BUDGETED)
    assert names(spec, renamed) == [], "Kubernetes evicts no pod with two budgets"
    [swap] = swaps(renamed, [])
    assert swap.after == AttachedRecord(frozenset({new}), frozenset({BUDGETED}))
    assert names(spec, versions(spec, attached=BUDGETED, gone=BUDGETED)) == [new]


def test_successor_is_rendered_once_its_predecessor_is_gone_and_what_does_something_else_at_once() -> None:
    waiting, gone = versions(RENAMED, attached=OLD), versions(RENAMED, attached=f"{BUDGETED},{OLD}", gone=OLD)
    assert names(RENAMED, waiting) == [BUDGETED]
    assert annotations(RENAMED, waiting)["twgen.io/attached"] == f"{BUDGETED},{OLD}", (
        "nothing else remembers it"
    )
    assert names(RENAMED, gone) == [NEW, BUDGETED]
    assert annotations(RENAMED, gone)["twgen.io/attached"] == f"{NEW},{BUDGETED}"
    assert plan_hash(waiting) != plan_hash(gone), "tick has it rendered again"


def test_replicas_of_the_spec_wait_for_the_autoscaler_to_go() -> None:
    spec = replace(RAMPS, replicas=3)
    waiting = the_version(versions(spec, attached=OLD))
    assert waiting.replicas_are_external
    assert not the_version(versions(spec, attached=OLD, gone=OLD)).replicas_are_external


def test_object_that_is_there_again_counts_as_gone_no_longer() -> None:
    again = versions(SCALED, attached=OLD, gone=OLD)
    assert annotations(SCALED, again)["twgen.io/gone"] == ""
    assert "twgen.io/gone" not in annotations(SCALED, versions(SCALED, attached=OLD, gone=""))
    assert "twgen.io/gone" not in annotations(RENAMED, versions(RENAMED, attached=OLD, gone=OLD))


def test_object_that_the_rollout_attached_is_known_to_a_revert_before_the_next_render() -> None:
    swapped = versions(SCALED, attached=OLD, added=NEW, gone=OLD)
    plan = the_version(swapped)
    assert [str(item) for item in plan.replaced] == [NEW]
    assert [str(item) for item in plan.following] == [OLD]
    assert names(SCALED, swapped) == [], "two autoscalers block each other"
    assert annotations(SCALED, swapped)["twgen.io/attached"] == NEW
    [swap] = swaps(swapped, [])
    assert swap.before == AttachedRecord(frozenset({NEW, OLD}), frozenset())
    assert swap.after == AttachedRecord(frozenset({OLD}), frozenset({NEW}))
    assert names(SCALED, versions(SCALED, attached=NEW, added=OLD, gone=NEW)) == [OLD]


def test_render_after_the_swap_has_what_the_rollout_attached() -> None:
    swapped = versions(RENAMED, attached=OLD, added=NEW, gone=OLD)
    assert names(RENAMED, swapped) == [NEW, BUDGETED]
    assert annotations(RENAMED, swapped)["twgen.io/attached"] == f"{NEW},{BUDGETED}"
    assert "twgen.io/added" not in annotations(RENAMED, swapped), "it is the record of the rollout alone"


def test_what_the_rollout_may_have_deleted_is_named_until_that_is_known() -> None:
    # the rollout was killed after it recorded the new object, and then the commit was reverted
    killed = versions(SCALED, attached=OLD, added=NEW)
    plan = the_version(killed)
    assert ([str(item) for item in plan.replaced], names(SCALED, killed)) == ([NEW], [])
    assert annotations(SCALED, killed)["twgen.io/attached"] == f"{NEW},{OLD}"
    nothing = replace(SCALED, attached=())
    both = versions(nothing, attached=f"{NEW},{OLD}", added=NEW)
    assert [str(item) for item in the_version(both).replaced] == [NEW, OLD]


def test_kind_of_an_object_that_only_the_rollout_recorded_stays_in_its_role() -> None:
    scaled = f"ScaledObject/{OLD.partition('/')[2]}"
    swapped = versions(SCALED, attached=OLD, added=scaled, gone=OLD)
    assert GroupKind("keda.sh", "ScaledObject") in attached_kinds(swapped, ())
    [rule] = [rule for rule in rollout_rules(swapped, ()) if rule["apiGroups"] == ["keda.sh"]]
    assert {"list", "delete"} <= set(rule["verbs"])


def test_swap_deletes_and_makes_only_what_the_cluster_shows_to_be_necessary() -> None:
    waiting, kind = versions(RENAMED, attached=OLD), GroupKind.of(AUTOSCALER.template)
    before, after, other = (
        AttachedInCluster(kind, "", "v2", name.partition("/")[2], name, frozenset[str]())
        for name in (OLD, NEW, "HorizontalPodAutoscaler/of-a-person")
    )
    [first], [again] = swaps(waiting, [before, other]), swaps(waiting, [after, other])
    assert (first.old, [resource.name for resource in first.following]) == ((before,), ["other"])
    assert (again.old, again.following) == ((), ())


def test_object_that_counts_as_gone_comes_back_by_the_rollout_while_that_has_another_one_to_delete() -> None:
    budget_is_back = versions(RENAMED, attached=OLD, gone=BUDGETED)
    assert names(RENAMED, budget_is_back) == []
    assert "twgen.io/gone" not in annotations(RENAMED, budget_is_back), "Argo CD would undo the record"
    [swap] = swaps(budget_is_back, [])
    assert swap.before == AttachedRecord(frozenset({NEW, BUDGETED}), frozenset())
    assert names(RENAMED, versions(RENAMED, attached=OLD, gone=f"{OLD},{BUDGETED}")) == [NEW, BUDGETED]


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"driver": Driver.JOB}, ""),
        ({"driver": Driver.HOOK}, ""),
        ({"driver": Driver.AUTO}, "the rollout's Job does this; without a Job, run `kubectl delete"),
        ({"driver": Driver.NONE}, "until then: run `kubectl delete horizontalpodautoscaler -n shop"),
        ({"owner_references": OwnerReferences.NONE, "driver": Driver.JOB}, "until then: run `kubectl delete"),
    ],
)
def test_whoever_has_to_delete_it_reads_the_commands(policy: dict[str, Any], told: str) -> None:
    found = versions(with_policy(RENAMED, **policy), attached=OLD)
    assert "is replaced by HorizontalPodAutoscaler other" in the_version(found).because
    warnings = [warning for warning in found.warnings if "no longer has a template" in warning]
    assert len(warnings) == bool(told)
    assert all(told in warning and f"twgen.io/gone={OLD}`" in warning for warning in warnings)


@pytest.mark.parametrize(("driver", "is_told"), [(Driver.HOOK, True), (Driver.JOB, False)])
def test_plan_says_that_an_autoscaler_which_leaves_waits_for_the_next_hook(
    driver: Driver, *, is_told: bool
) -> None:
    spec = with_policy(replace(RAMPS, attached=(BUSY_AUTOSCALER,), replicas=None), driver=driver)
    old = live("v1")
    name = attached_resource_name("payments", BUSY_AUTOSCALER.name, "v1")
    old["metadata"]["annotations"]["twgen.io/attached"] = f"HorizontalPodAutoscaler/{name}"
    says = temporal(
        version("v1", VersionStatus.DRAINING), version(status=VersionStatus.CURRENT), traffic=routing("v3")
    )
    draining, _ = planned(situation(says, [old, live("v3")]), spec).versions.versions
    assert draining.leaving
    assert ("the next sync that runs the hook removes" in draining.because) is is_told
