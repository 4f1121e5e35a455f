"""What a person is told besides the plan."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.planning.situations import SPEC, drained, live, planned, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from tests.planning.versions.running import plan
from tests.strategies import NOW
from twgen.cluster.deployments import live_deployments
from twgen.errors import StateUnavailable
from twgen.model.operator import Caller
from twgen.model.plan import VersionAction
from twgen.model.temporal import Drainage, Routing
from twgen.model.temporal import VersionStatus as S
from twgen.model.world import WorkerWorld, World
from twgen.planning.plan import make_plan, plan_versions
from twgen.planning.versions.warnings import ObjectName, with_lost_references

OLD, NEW = "settings-hf678c7m2b", "settings-47668c6k28"
CONTAINER: dict[str, Any] = {"envFrom": [{"configMapRef": {"name": OLD}}]}


def orphans(identity: str | None, caller: Caller) -> tuple[str, ...]:
    """What is said of a Deployment of a worker that no spec names."""
    manifest = live("v1")
    if identity:
        manifest["metadata"]["annotations"]["twgen.io/identity"] = identity
    (gone,) = situation(None).workers.values()
    left = replace(gone, name="shop/refunds", deployments=tuple(live_deployments([manifest])))
    found = situation(None)
    workers = {**found.workers, ("shop/refunds", "default"): left}
    return plan_versions([SPEC], World(NOW, workers), NOW, caller).warnings


def test_deployment_of_no_spec_that_is_ours_is_warned_of() -> None:
    (warning,) = orphans("me", Caller("me"))
    assert warning == (
        "no spec names shop/refunds, but its Deployment carries the identity me: twgen no longer renders it"
        " and the objects attached to it; payments-v1 stays because of prune protection"
    )


def test_what_a_renamed_worker_left_behind_is_told_of_to_a_person() -> None:
    (warning,) = orphans("twgen/prod/shop", Caller("twgen/anna@laptop", is_person=True))
    assert warning.startswith("no spec names shop/refunds")


def of_objects_without_a_template(*objects: str) -> str:
    running = live("v3")
    running["metadata"]["annotations"]["twgen.io/attached"] = ",".join(objects)
    (warning,) = planned(situation(temporal(version("v3")), [running])).versions.warnings
    return warning


def test_attached_objects_that_are_no_longer_rendered_are_told_of_together() -> None:
    budgets = "PodDisruptionBudget/budget-v3-0a1b2c3d", "PodDisruptionBudget/other-v3-0a1b2c3e"
    assert of_objects_without_a_template(budgets[0]) == (
        "v3: PodDisruptionBudget budget-v3-0a1b2c3d no longer has a template and must be deleted: the"
        " rollout's Job does this; without a Job, run `kubectl delete poddisruptionbudget -n shop"
        " budget-v3-0a1b2c3d && kubectl annotate deployment -n shop payments-v3 --overwrite"
        " twgen.io/gone=PodDisruptionBudget/budget-v3-0a1b2c3d` and apply a new render"
    )
    both = "PodDisruptionBudget budget-v3-0a1b2c3d and PodDisruptionBudget other-v3-0a1b2c3e"
    told = f"v3: {both} no longer have a template and must be deleted: the rollout's Job"
    assert of_objects_without_a_template(*budgets).startswith(told)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"status": S.CURRENT, "open_workflows": 2}, "2 workflows are open and pinned to it"),
        ({"status": S.DRAINED, "open_workflows": 1}, "1 workflow is open and pinned to it"),
        ({"status": S.CURRENT}, "workflows may be open on it"),
        ({"status": S.CURRENT, "open_workflows": 0}, ""),
        ({"status": S.INACTIVE}, ""),
    ],
)
def test_update_by_custom_build_id_under_open_workflows_warns_of_nondeterminism(
    facts: dict[str, Any], said: str
) -> None:
    spec = replace(SPEC, has_custom_build_id=True, template=replace(SPEC.template, hash="another"))
    current = "v3" if facts["status"] is S.CURRENT else None
    says = temporal(version("v3", **facts), traffic=routing(current))
    warnings = planned(situation(says, [live("v3")]), spec).versions.warnings
    assert bool(warnings) is bool(said)
    assert all(text.startswith(f"v3 gets another pod template while {said}") for text in warnings)


def test_deployment_that_the_last_worker_left_behind_is_told_of_to_a_person() -> None:
    manifest = live("v1")
    manifest["metadata"]["annotations"]["twgen.io/identity"] = "twgen/prod/shop"
    left = WorkerWorld(
        "shop/refunds", "default", temporal_was_read=False, deployments=tuple(live_deployments([manifest]))
    )
    person = Caller("twgen/anna@laptop", is_person=True)
    (warning,) = plan_versions([], World(NOW, {("shop/refunds", "default"): left}), NOW, person).warnings
    assert warning.startswith(
        "no spec names shop/refunds, but its Deployment carries the identity twgen/prod/shop"
    )


@pytest.mark.parametrize(("identity", "caller"), [(None, "me"), ("somebody else", "me"), (None, "")])
def test_deployment_of_no_spec_that_is_not_ours_is_none_of_our_business(
    identity: str | None, caller: str
) -> None:
    assert orphans(identity, Caller(caller)) == ()


@pytest.mark.parametrize(
    ("status", "traffic"), [(S.CURRENT, routing("v1")), (S.RAMPING, routing("v3", ("v1", 5)))]
)
def test_version_with_traffic_that_its_spec_holds_at_zero_is_warned_of(status: S, traffic: Routing) -> None:
    says = temporal(version("v3"), version("v1", status), traffic=traffic)
    worker = planned(situation(says, [live("v1"), live("v3")]), replace(SPEC, replicas=0))
    assert f"v1 is {status.lower()}, but its spec says zero replicas" in worker.versions.warnings


def test_world_that_knows_the_worker_in_another_temporal_namespace_knows_it_not() -> None:
    with pytest.raises(StateUnavailable, match="shop/payments in Temporal namespace another: take a new"):
        planned(situation(temporal()), replace(SPEC, temporal_namespace="another"))


@pytest.mark.parametrize(
    ("facts", "said"), [({}, True), ({"open_workflows": 0}, False), ({"status": S.DRAINING}, False)]
)
def test_version_that_goes_by_an_old_snapshot_was_counted_by_nobody(
    facts: dict[str, Any], *, said: bool
) -> None:
    """When it was taken, the delay was not over, so nothing asked how many workflows are pinned to it."""
    status = facts.pop("status", S.DRAINED)
    old = version("v1", status, drainage=Drainage(status, ago(30 * MINUTE)), **facts)
    found = situation(
        temporal(version("v3", S.CURRENT), old, traffic=routing("v3")), [live("v3"), live("v1")]
    )
    recorded = replace(found, is_recorded=True)

    def warned(world: World, at: datetime) -> tuple[str, ...]:
        caller = Caller("me", forced=True)
        (worker,) = make_plan([SPEC], world, at, caller).workers
        (rendered,) = plan_versions([SPEC], world, at, caller).workers
        assert worker.versions.warnings == rendered.warnings
        return rendered.warnings

    assert warned(recorded, NOW) == warned(found, NOW + HOUR) == ()
    uncounted = (
        "v1 scales to zero, but its pinned workflows were not counted: when the snapshot was taken, this"
        " was not needed yet. Take a new snapshot"
    )
    assert warned(recorded, NOW + HOUR) == ((uncounted,) if said else ())


def warned(change: Any, *rendered: ObjectName, field: str = "containers") -> list[str]:
    """The warnings about v1, whose pods have the change."""
    old = live("v1")
    pod = old["spec"]["template"]["spec"]
    if field == "containers":
        pod["containers"][0] |= {**change, "env": [*pod["containers"][0]["env"], *change.get("env", ())]}
    else:
        pod[field] = change
    del old["spec"]["template"]["metadata"]["annotations"]["temporal.io/pod-template-spec-hash"]
    [worker] = with_lost_references([plan([old, live("v3")]).versions], rendered)
    return [text for text in worker.warnings if " uses " in text]


def config_map(name: str, namespace: str = SPEC.namespace) -> ObjectName:
    return ObjectName("ConfigMap", namespace, name)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("containers", CONTAINER),
        ("containers", {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": OLD, "key": "a"}}}]}),
        ("initContainers", [{"name": "i", "image": "i:1", **CONTAINER}]),
        ("volumes", [{"name": "v", "configMap": {"name": OLD}}]),
        ("volumes", [{"name": "v", "projected": {"sources": [{"configMap": {"name": OLD}}]}}]),
    ],
)
def test_version_that_takes_what_is_rendered_under_another_hash_is_warned_of(field: str, change: Any) -> None:
    [warning] = warned(change, config_map(NEW), field=field)
    assert warning.startswith(f"v1 uses ConfigMap {OLD}, but the render has {NEW} instead. ")


def test_version_that_goes_misses_nothing_that_has_another_hash() -> None:
    old = live("v1", 0, protected=False)
    old["spec"]["template"]["spec"]["containers"][0] |= CONTAINER
    says = temporal(drained(3 * DAY), version("v3", S.CURRENT), traffic=routing("v3"))
    before = planned(situation(says, [old, live("v3")])).versions
    assert [item.action for item in before.versions if item.build_id == "v1"] == [VersionAction.DROP]
    [after] = with_lost_references([before], [config_map(NEW)])
    assert after.warnings == before.warnings


def test_secret_of_a_volume_is_told_by_its_own_field() -> None:
    volume = [{"name": "v", "secret": {"secretName": OLD}}]
    [warning] = warned(volume, ObjectName("Secret", SPEC.namespace, NEW), field="volumes")
    assert warning.startswith(f"v1 uses Secret {OLD}")


@pytest.mark.parametrize(
    "rendered",
    [
        [],  # somebody else has it
        [config_map(OLD), config_map(NEW)],
        [config_map(NEW, "elsewhere")],
        [config_map("other-47668c6k28")],
        [config_map("settings")],
        [ObjectName("Secret", SPEC.namespace, NEW)],
    ],
)
def test_version_whose_objects_are_not_replaced_by_the_render_is_not_warned_of(
    rendered: list[ObjectName],
) -> None:
    assert warned(CONTAINER, *rendered) == []
