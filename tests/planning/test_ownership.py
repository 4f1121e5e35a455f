"""A cluster that is not the one it should be, and a worker that is somebody else's."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, live, planned, routing, situation, temporal, version
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


def test_deployment_of_another_identity_stops_everything() -> None:
    with pytest.raises(
        OwnedBySomebodyElse, match=r"payments-v3 belongs to manager twgen/staging/shop.*right cluster"
    ):
        plan(OURS, **identity("twgen/staging/shop"))


def test_deployment_that_another_application_tracks_stops_everything() -> None:
    with pytest.raises(OwnedBySomebodyElse, match="tracked by Argo CD application other"):
        plan(OURS, **tracked("other"))


@pytest.mark.parametrize("annotations", [identity("twgen/prod/shop"), tracked("shop"), {}])
def test_own_deployment_is_planned(annotations: dict[str, str]) -> None:
    assert plan(OURS, **annotations).workers


def test_render_that_does_not_know_its_application_takes_what_any_application_tracks() -> None:
    assert plan(replace(OURS, application=""), **tracked("shop")).workers


def test_deployment_of_an_identity_in_adopt_from_is_taken_over() -> None:
    adopting = with_policy(SPEC, adopt_from=("twgen/staging/shop",))
    assert plan(OURS, adopting, **identity("twgen/staging/shop")).workers


def test_person_at_a_terminal_sees_the_plan_of_any_owner() -> None:
    assert plan(Caller("twgen/ann@laptop", is_person=True), **identity("twgen/prod/shop")).workers


def test_person_at_a_terminal_is_held_to_the_identity_of_the_policy() -> None:
    named = with_policy(SPEC, identity="prod/shop")
    person = Caller("twgen/ann@laptop", is_person=True)
    assert plan(person, named, **identity("twgen/prod/shop")).workers
    with pytest.raises(OwnedBySomebodyElse):
        plan(person, named, **identity("twgen/staging/shop"))


def test_cluster_without_any_deployment_of_a_worker_with_traffic_is_doubted() -> None:
    says = temporal(version("v3"), version("v1"), traffic=routing("v1"))
    assert "sends workflows to v1" in " ".join(planned(situation(says, [])).versions.warnings)
    for certain in (situation(says, None), situation(says, [live("v3")]), situation(temporal(), [])):
        assert "sends workflows" not in " ".join(planned(certain).versions.warnings)


def owned(build_id: str, *owners: str, **metadata: Any) -> dict[str, Any]:
    """A Deployment with these owners, each as `Kind/name`."""
    references = [dict(zip(("kind", "name"), owner.split("/"), strict=True)) for owner in owners]
    return live(build_id, ownerReferences=references, **metadata)


TWO_VERSIONS = temporal(version("v3"), version("v1"), traffic=routing("v1"))
CONTROLLED = situation(
    TWO_VERSIONS, [owned("v3", "WorkerDeployment/payments"), owned("v1", "WorkerDeployment/payments")]
)


def test_deployments_of_the_controllers_custom_resource_stop_a_render_in_argo_cd() -> None:
    told = r"WorkerDeployment/payments owns 2 Deployments .payments-v1 and payments-v3.: .* with all pods"
    with pytest.raises(OwnedBySomebodyElse, match=told):
        plan_versions([SPEC], CONTROLLED, NOW, OURS)


def test_person_is_warned_of_what_is_deleted_with_an_owner_in_plan_and_render() -> None:
    person = Caller("twgen/ann@laptop", is_person=True)
    [rendered] = plan_versions([SPEC], CONTROLLED, NOW, person).workers
    [made] = make_plan([SPEC], CONTROLLED, NOW, person).workers
    for worker in (rendered, made.versions):
        [told] = [text for text in worker.warnings if "ownerReferences" in text]
        assert told.startswith("WorkerDeployment/payments owns 2 Deployments (payments-v1 and payments-v3): ")


def test_every_owner_is_told_and_a_deployment_that_is_going_already_is_not() -> None:
    going = owned("v1", "TemporalWorkerDeployment/payments", deletionTimestamp=NOW.isoformat())
    kept = owned("v3", "TemporalWorkerDeployment/payments", "Shop/main")
    warnings = planned(situation(TWO_VERSIONS, [going, kept])).versions.warnings
    told = [text.partition(":")[0] for text in warnings if "ownerReferences" in text]
    assert told == [
        f"{owner} owns 1 Deployment (payments-v3)"
        for owner in ("Shop/main", "TemporalWorkerDeployment/payments")
    ]


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
