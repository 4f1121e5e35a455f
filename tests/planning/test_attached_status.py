"""How the objects that are attached to a version stand, by their own conditions."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, live, planned, routing, situation, temporal, version
from tests.schemas.printed import reported
from twgen.clients.argocd import refused_objects
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import Phase, VersionPlan, WorkerPlan
from twgen.model.spec import AttachedResource
from twgen.model.status import AttachedState, RolloutStatus
from twgen.model.temporal import VersionStatus as S
from twgen.planning.attached_status import AttachedRead, attached_to_read, attached_views, with_refusals
from twgen.planning.cluster_changes import AttachedInCluster, Condition
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import make_status
from twgen.versioning.names import ATTACHED

BUDGET = GroupKind("policy", "PodDisruptionBudget")
SPEC_OF_ONE = replace(
    SPEC,
    attached=(
        AttachedResource(
            "budget", {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}, autoscales=False
        ),
    ),
)
IS_CURRENT = temporal(version("v3", S.CURRENT), traffic=routing("v3"))


def looked(*deployments: Any) -> tuple[WorkerPlan, VersionPlan]:
    worker = planned(situation(IS_CURRENT, list(deployments)), SPEC_OF_ONE)
    [target] = [item for item in worker.versions.versions if item.build_id == "v3"]
    return worker, target


def rendered_with(*objects: str) -> dict[str, Any]:
    manifest = live("v3")
    manifest["metadata"]["annotations"][ATTACHED] = ",".join(objects)
    return manifest


def condition(kind: str, type_: str, status: str, reason: str = "", message: str = "") -> str:
    """What is said of an object of this kind that has one condition."""
    item = AttachedInCluster(
        *(GroupKind("", kind), "/path", "v1", "name", "uid", frozenset[str]()),
        conditions=(Condition(type_, status, reason, message),),
    )
    _, target = looked(live("v3"))
    [attached] = target.attached
    one = replace(target, attached=(replace(attached, kind=kind, name="name"),))
    [view] = attached_views(one, AttachedRead((item,)))
    assert view.is_ready == (not view.says)
    return view.says


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (("HorizontalPodAutoscaler", "ScalingActive", "True", "ValidMetricFound"), ""),
        (("HorizontalPodAutoscaler", "ScalingActive", "False", "ScalingDisabled"), ""),
        (("HorizontalPodAutoscaler", "ScalingLimited", "True", "TooManyReplicas"), ""),
        (
            ("HorizontalPodAutoscaler", "ScalingActive", "False", "FailedGetExternalMetric", "no metric"),
            "ScalingActive is False (FailedGetExternalMetric: no metric)",
        ),
        (
            ("HorizontalPodAutoscaler", "AbleToScale", "False", "FailedGetScale"),
            "AbleToScale is False (FailedGetScale)",
        ),
        (("ScaledObject", "Ready", "Unknown"), ""),
        (("ScaledObject", "Active", "False", "ScalerNotActive"), ""),
        (("ScaledObject", "Ready", "False", "", "bad trigger"), "Ready is False (bad trigger)"),
        (("ScaledObject", "Fallback", "True"), "Fallback is True"),
        (("PodDisruptionBudget", "DisruptionAllowed", "False", "InsufficientPods"), ""),
        (
            ("PodDisruptionBudget", "DisruptionAllowed", "False", "SyncFailed", "no controller"),
            "DisruptionAllowed is False (SyncFailed: no controller)",
        ),
        (("VerticalPodAutoscaler", "RecommendationProvided", "False"), ""),
        (("Greeting", "Stalled", "True"), "Stalled is True"),
    ],
)
def test_condition_that_speaks_against_its_object_is_told(told: tuple[str, ...], says: str) -> None:
    assert condition(*told) == says


def test_object_is_missing_only_where_it_was_applied_and_could_be_read() -> None:
    _, target = looked(live("v3"))
    [item] = target.attached

    def state(manifest: dict[str, Any], read: AttachedRead | None) -> AttachedState:
        [view] = attached_views(looked(manifest)[1], read)
        return view.state

    there = AttachedInCluster(BUDGET, "/path", "policy/v1", item.name, "uid", frozenset())
    applied = rendered_with(f"{item.kind}/{item.name}")
    assert state(applied, AttachedRead((there,))) is AttachedState.READY
    assert state(applied, AttachedRead((replace(there, is_going=True),))) is AttachedState.FAILING
    assert state(applied, AttachedRead(())) is AttachedState.MISSING
    assert state(live("v3"), AttachedRead(())) is AttachedState.PENDING
    assert state(applied, AttachedRead((), {item.kind: "forbidden"})) is AttachedState.UNREAD
    assert state(applied, None) is AttachedState.UNREAD


def test_kinds_are_read_only_where_something_is_attached_to_a_live_version() -> None:
    worker, _ = looked(live("v3"))
    assert attached_to_read([worker.versions]) == {"shop": {BUDGET}}
    nothing_live, _ = looked()
    plain = planned(situation(IS_CURRENT, [live("v3")]), SPEC)
    assert attached_to_read([nothing_live.versions, plain.versions]) == {}


def test_kind_that_may_not_be_listed_is_told_of_once() -> None:
    world, me = situation(IS_CURRENT, [live("v3")]), Caller("me", forced=True)
    read = {"shop": AttachedRead((), {"PodDisruptionBudget": "it is forbidden"})}
    status = make_status(make_plan([SPEC_OF_ONE], world, NOW, me), world, me, read)
    assert status.warnings == (
        "the state of PodDisruptionBudget objects in namespace shop is unknown: it is forbidden",
    )


def test_object_that_a_sync_could_not_apply_is_refused_while_it_is_not_there() -> None:
    def told(state: str, worker: str = "shop/pay") -> str:
        item = {"kind": "PodDisruptionBudget", "name": "budget", "state": state, "message": ""}
        report = reported([{"attached": [item]}], worker=worker)
        status = RolloutStatus(worker, Phase.SETTLED, "Settled", "", "v1", "v1", 100, NOW, report)
        after = with_refusals(status, refused_objects(application)).details
        assert after
        [found] = after.versions[0].attached
        return f"{found.state} {found.says}".strip()

    failed = {"namespace": "shop", "kind": "PodDisruptionBudget", "name": "budget", "status": "SyncFailed"}
    results = [{**failed, "message": "a webhook\n says no"}, {**failed, "name": "other"}, "by hand"]
    application = {"status": {"operationState": {"syncResult": {"resources": results}}}}
    assert told("Missing") == told("Pending") == "Refused a webhook says no"
    assert told("Ready") == "Ready", "an older one is there"
    assert told("NotRead") == "NotRead"
    assert told("Missing", worker="mail/pay") == "Missing"
    assert refused_objects({"status": {}}) == {}
