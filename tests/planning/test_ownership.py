"""A cluster that is not the one it should be, and a worker that is somebody else's."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, live, planned, routing, serving, situation, temporal, version
from tests.strategies import with_policy
from twgen.errors import NegativeAnswer, OwnedBySomebodyElse
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.world import WorkerWorld
from twgen.planning.ownership import claimed, released
from twgen.planning.plan import VersionsPlan, make_plan, plan_versions, worker_world

OURS = Caller("twgen/prod/shop", application="shop")


def plan(caller: Caller, spec: WorkerSpec = SPEC, **annotations: str) -> VersionsPlan:
    deployment: dict[str, Any] = live("v3")
    deployment["metadata"]["annotations"] |= annotations
    return plan_versions([spec], situation(temporal(version("v3")), [deployment]), NOW, caller)


def identity(name: str) -> dict[str, str]:
    return {"twgen.io/identity": name}


def tracked(application: str) -> dict[str, str]:
    return {"argocd.argoproj.io/tracking-id": f"{application}:apps/Deployment:shop/payments-v3"}


PERSON = Caller("twgen/ann@laptop", is_person=True)
NAMED = with_policy(SPEC, identity="prod/shop")


@pytest.mark.parametrize(
    ("caller", "spec", "annotations", "because"),
    [
        (OURS, SPEC, identity("twgen/staging/shop"), "belongs to manager twgen/staging/shop.*right cluster"),
        (OURS, SPEC, tracked("other"), "is tracked by Argo CD application other"),
        (PERSON, NAMED, identity("twgen/staging/shop"), "belongs to manager twgen/staging/shop"),
    ],
    ids=["another identity", "another application", "another than the policy names to a person"],
)
def test_deployment_of_somebody_else_stops_everything(
    caller: Caller, spec: WorkerSpec, annotations: dict[str, str], because: str
) -> None:
    with pytest.raises(OwnedBySomebodyElse, match=f"payments-v3 {because}"):
        plan(caller, spec, **annotations)


@pytest.mark.parametrize(
    ("caller", "spec", "annotations"),
    [
        (OURS, SPEC, identity("twgen/prod/shop")),
        (OURS, SPEC, tracked("shop")),
        (OURS, SPEC, {}),
        (replace(OURS, application=""), SPEC, tracked("shop")),
        (OURS, with_policy(SPEC, adopt_from=("twgen/staging/shop",)), identity("twgen/staging/shop")),
        (PERSON, SPEC, identity("twgen/prod/shop")),
        (PERSON, NAMED, identity("twgen/prod/shop")),
    ],
    ids=["ours", "ours to track", "unmarked", "unknown application", "adopted", "any owner", "the policy's"],
)
def test_deployment_is_planned_if_it_may_be_ours_or_a_person_looks(
    caller: Caller, spec: WorkerSpec, annotations: dict[str, str]
) -> None:
    assert plan(caller, spec, **annotations).workers


def test_cluster_without_any_deployment_of_a_worker_with_traffic_is_doubted() -> None:
    says = temporal(version("v3"), version("v1"), traffic=routing("v1"))
    assert "sends workflows to v1" in " ".join(planned(situation(says, [])).versions.warnings)
    for certain in (situation(says, None), serving(says, "v3"), situation(temporal(), [])):
        assert "sends workflows" not in " ".join(planned(certain).versions.warnings)


def owned(build_id: str, *owners: str, **metadata: Any) -> dict[str, Any]:
    """A Deployment with these owners, each as `Kind/name`."""
    references = [dict(zip(("kind", "name"), owner.split("/"), strict=True)) for owner in owners]
    return live(build_id, ownerReferences=references, **metadata)


TWO_VERSIONS = temporal(version("v3"), version("v1"), traffic=routing("v1"))
BY_CONTROLLER = [owned(build_id, "WorkerDeployment/payments") for build_id in ("v3", "v1")]
CONTROLLED = situation(TWO_VERSIONS, BY_CONTROLLER)


def test_deployments_of_the_controllers_custom_resource_stop_a_render_in_argo_cd() -> None:
    told = r"WorkerDeployment/payments owns 2 Deployments .payments-v1 and payments-v3.: .* with all pods"
    with pytest.raises(OwnedBySomebodyElse, match=told):
        plan_versions([SPEC], CONTROLLED, NOW, OURS)


def test_person_is_warned_of_what_is_deleted_with_an_owner_in_plan_and_render() -> None:
    [rendered] = plan_versions([SPEC], CONTROLLED, NOW, PERSON).workers
    [made] = make_plan([SPEC], CONTROLLED, NOW, PERSON).workers
    for worker in (rendered, made.versions):
        [told] = [text for text in worker.warnings if "ownerReferences" in text]
        assert told.startswith("WorkerDeployment/payments owns 2 Deployments (payments-v1 and payments-v3): ")


def test_every_owner_is_told_and_a_deployment_that_is_going_already_is_not() -> None:
    going = owned("v1", "TemporalWorkerDeployment/payments", deletionTimestamp=NOW.isoformat())
    kept = owned("v3", "TemporalWorkerDeployment/payments", "Shop/main")
    warnings = planned(situation(TWO_VERSIONS, [going, kept])).versions.warnings
    told = [text.partition(":")[0] for text in warnings if "ownerReferences" in text]
    owners = "Shop/main", "TemporalWorkerDeployment/payments"
    assert told == [f"{owner} owns 1 Deployment (payments-v3)" for owner in owners]


def test_deployments_without_an_owner_are_rendered_in_argo_cd_without_a_word_about_it() -> None:
    found = situation(TWO_VERSIONS, [live("v3"), live("v1", ownerReferences=None)])
    [worker] = plan_versions([SPEC], found, NOW, OURS).workers
    assert "ownerReferences" not in " ".join(worker.warnings)


def owned_by(manager: str) -> WorkerWorld:
    return worker_world(SPEC, situation(temporal(version("v3"), manager_identity=manager), None))


def test_manager_is_claimed_from_the_owner_that_was_named_and_released_by_itself_alone() -> None:
    assert claimed(owned_by(""), "me", "") == claimed(owned_by("you"), "me", "you") == "me"
    assert released(owned_by("me"), "me") == ""
    with pytest.raises(NegativeAnswer, match="its manager is already me"):
        claimed(owned_by("me"), "me", "")
    for owner, named in (("you", ""), ("", "you"), ("you", "they")):
        with pytest.raises(OwnedBySomebodyElse):
            claimed(owned_by(owner), "me", named)
    with pytest.raises(OwnedBySomebodyElse, match="you act as me"):
        released(owned_by("you"), "me")


def test_worker_that_temporal_does_not_know_is_nobodys_to_claim_or_release() -> None:
    unknown = worker_world(SPEC, situation(None))
    for change in (claimed, released):
        with pytest.raises(NegativeAnswer, match="none of its workers has polled"):
            change(unknown, *(("me", "") if change is claimed else ("me",)))
