"""What a rollout changes in its cluster beside the traffic."""

from dataclasses import replace
from typing import Any

import pytest

from tests import strategies
from tests.planning.situations import RAMPS, drained, live, planned, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR
from tests.strategies import AUTOSCALER, BUDGET, BUSY_AUTOSCALER, NOW, SIZED_BY_HPA, a_spec, live_manifest
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import WorkerVersions
from twgen.model.rollout import RolloutInCluster
from twgen.model.temporal import VersionStatus
from twgen.model.world import World
from twgen.planning.cluster_changes import AttachedInCluster, Owning, left_over, replica_changes, unowned
from twgen.planning.plan import plan_versions
from twgen.versioning.names import MarkKey, attached_resource_name

SCALED = replace(RAMPS, attached=(AUTOSCALER,), replicas=None)
HPA = {"managedFields": SIZED_BY_HPA}


def world(*deployments: dict[str, Any], manager: str = "me", current: str = "v1", **marks: Any) -> World:
    says = temporal(
        drained(2 * HOUR, "v0", open_workflows=0),
        version("v1", VersionStatus.CURRENT),
        version(metadata=marks),
        traffic=routing(current),
        manager_identity=manager,
    )
    return situation(says, list(deployments))


@pytest.mark.parametrize(
    ("deployments", "expected"),
    [
        pytest.param([live("v1", 5, **HPA), live("v3", 3, **HPA)], [], id="an autoscaler holds them"),
        pytest.param(
            [live("v1", 5), live("v3", 3, **HPA)], [("payments-v1", 5)], id="a render still says them"
        ),
        pytest.param([live("v3", 0, **HPA)], [("payments-v3", 1)], id="no autoscaler leaves zero"),
        pytest.param([live("v3", 0)], [("payments-v3", 1)], id="at zero by a render"),
        pytest.param([live("v0", 2)], [], id="at sunset, with pods"),
        pytest.param([live("v0", 0, protected=False)], [], id="at sunset, without"),
    ],
)
def test_replicas_are_set_where_no_autoscaler_can_or_does_yet(
    deployments: list[dict[str, Any]], expected: list[tuple[str, int]]
) -> None:
    versions = planned(world(*deployments), SCALED).versions
    assert [(change.deployment, change.replicas) for change in replica_changes(versions)] == expected


def test_replicas_that_the_spec_says_are_left_alone() -> None:
    assert not list(replica_changes(planned(world(live("v1", 5), live("v3", 0)), RAMPS).versions))


@pytest.mark.parametrize(
    ("template", "build_id", "owner", "goes"),
    [
        pytest.param("cpu", "v3", "uid-v3", False, id="for a version of this status"),
        pytest.param("cpu", "v1", "uid-v1", True, id="not for a version of this status"),
        pytest.param("cpu", "v1", "", False, id="without an owner it is Argo CD's"),
        pytest.param("cpu", "v2", "uid-v2", False, id="its owner goes, and takes it along"),
        pytest.param("by-hand", "v1", "uid-v1", False, id="no template makes it: a person may have"),
    ],
)
def test_attached_object_goes_when_it_is_not_for_its_version_and_its_owner_stays(
    template: str, build_id: str, owner: str, *, goes: bool
) -> None:
    name = attached_resource_name("payments", template, build_id)
    item = scaler(name, *filter(None, [owner]))
    draining = temporal(version("v1", VersionStatus.DRAINING), version("v3"), traffic=routing("v3"))
    spec = replace(SCALED, attached=(BUSY_AUTOSCALER, BUDGET))
    found = planned(situation(draining, [live("v1", **HPA), live("v3", **HPA)]), spec).versions
    assert list(left_over(found, [item])) == ([item] if goes else [])


def test_attached_object_of_a_version_that_goes_is_left_to_its_owner() -> None:
    name = attached_resource_name("payments", "cpu", "v0")
    item = scaler(name, "uid-v0")
    spec = replace(SCALED, attached=(BUSY_AUTOSCALER, BUDGET))
    for age, left in ((8 * DAY, []), (2 * HOUR, [item])):
        says = temporal(
            drained(age, "v0", open_workflows=0), version(status=VersionStatus.CURRENT), traffic=routing("v3")
        )
        old = live("v0", 0, protected=bool(left))
        found = planned(situation(says, [old, live("v3", **HPA)]), spec).versions
        assert list(left_over(found, [item])) == left


@pytest.mark.parametrize(
    ("template", "build_id", "owners", "is_given"),
    [
        pytest.param("cpu", "v3", set(), True, id="rendered before its Deployment had a UID"),
        pytest.param("cpu", "v1", {"uid of another"}, True, id="of an older version, beside another owner"),
        pytest.param("cpu", "v3", {"uid-v3"}, False, id="it has it"),
        pytest.param("cpu", "v2", set(), False, id="its Deployment is gone"),
        pytest.param("gone", "v3", set(), False, id="its template is gone, so it is Argo CD's to prune"),
    ],
)
def test_attached_object_gets_its_versioned_deployment_as_owner(
    template: str, build_id: str, owners: set[str], *, is_given: bool
) -> None:
    name = attached_resource_name("payments", template, build_id)
    item = scaler(name, *owners)
    found = planned(world(live("v1"), live("v3")), SCALED).versions
    given = [Owning(item, f"payments-{build_id}", f"uid-{build_id}")] if is_given else []
    assert list(unowned(found, [item])) == given


def test_object_that_leaves_its_version_gets_no_owner_so_that_argo_cd_can_prune_it() -> None:
    name = attached_resource_name(SPEC.name, "cpu", "v1")
    old = live_manifest(SPEC, "v1", 2)
    old["metadata"]["annotations"] = {"twgen.io/attached": f"HorizontalPodAutoscaler/{name}"}
    draining = temporal(version("v1", VersionStatus.DRAINING), version("v3"), traffic=routing("v3"))
    spec = replace(SPEC, attached=(BUSY_AUTOSCALER,))
    found = planned(strategies.world(draining, [old, live_manifest(SPEC, "v3", 2)]), spec).versions
    item = scaler(name)
    assert any(item.name in {one.name for one in version.leaving} for version in found.versions)
    stays = replace(item, name=attached_resource_name(SPEC.name, "cpu", "v3"))
    assert any(stays.name in {one.name for one in version.attached} for version in found.versions)
    assert not list(unowned(found, [item, stays])), "the render gives it an owner, and takes it away"
    assert [owning.item for owning in unowned(found, [item, stays], has_hook=True)] == [stays]


@pytest.mark.parametrize("current", ["v1", "v3"])
@pytest.mark.parametrize(
    ("manager", "rollout", "may"),
    [
        ("me", RolloutInCluster(), True),
        ("", RolloutInCluster(), True),
        ("somebody else", RolloutInCluster(), False),
        ("me", RolloutInCluster(is_superseded=True), False),
        ("me", RolloutInCluster(is_paused=True), False),
        ("me", RolloutInCluster(older_pods=("another",)), False),
    ],
)
def test_cluster_is_changed_by_the_newest_rollout_that_nobody_holds_up_settled_or_not(
    current: str, manager: str, rollout: RolloutInCluster, *, may: bool
) -> None:
    found = world(live("v1"), live("v3"), manager=manager, current=current)
    found = found.with_rollout(SPEC.key, rollout)
    assert planned(found, SCALED).is_held is not may


@pytest.mark.parametrize(("current", "is_held"), [("v1", True), ("v3", False)])
def test_cluster_is_left_alone_while_a_person_paused_the_version_until_it_has_all_traffic(
    current: str, *, is_held: bool
) -> None:
    found = world(live("v1"), live("v3"), current=current, **{MarkKey.PAUSED: {"by": "a person"}})
    assert planned(found, SCALED).is_held is is_held


SPEC = replace(a_spec(), attached=(AUTOSCALER,))


def versions(replicas: int, **metadata: object) -> WorkerVersions:
    live = live_manifest(SPEC, "v3", replicas, resourceVersion="17", **metadata)
    [worker] = plan_versions(
        [SPEC], strategies.world(None, [live]), NOW, Caller("twgen/me", forced=True)
    ).workers
    return worker


def scaler(name: str, *owners: str) -> AttachedInCluster:
    kind = GroupKind("autoscaling", "HorizontalPodAutoscaler")
    return AttachedInCluster(kind, f"/{name}", "v2", name, "uid", frozenset(owners))


def test_object_that_is_not_for_its_version_is_left_over_once_no_render_takes_it_away() -> None:
    name = attached_resource_name(SPEC.name, "cpu", "v1")
    old = live_manifest(SPEC, "v1", 2)
    draining = temporal(version("v1", VersionStatus.DRAINING), version("v3"), traffic=routing("v3"))
    spec = replace(SPEC, attached=(BUSY_AUTOSCALER,))
    item = scaler(name, "uid-v1")
    for told, left in (({"twgen.io/attached": f"HorizontalPodAutoscaler/{name}"}, []), ({}, [item])):
        old["metadata"]["annotations"] = told
        found = planned(strategies.world(draining, [old, live_manifest(SPEC, "v3", 2)]), spec)
        assert list(left_over(found.versions, [item])) == left


def test_object_of_somebody_elses_deployment_is_never_left_over() -> None:
    assert not list(left_over(versions(2), [scaler("another", "uid-of-somebody")]))


def test_replicas_are_changed_only_as_they_were_read() -> None:
    [change] = replica_changes(versions(5))
    assert (change.replicas, change.resource_version) == (5, "17")
    assert not list(replica_changes(versions(5, managedFields=SIZED_BY_HPA))), "nobody applied them"
