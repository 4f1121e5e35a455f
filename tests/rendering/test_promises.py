"""The promises of the design about manifests, over any spec and any world."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings

from tests.strategies import NOW, SIZED_BY_HPA, specs, world, worlds
from twgen.errors import InvalidInput
from twgen.model.operator import Caller
from twgen.model.plan import VersionAction
from twgen.model.policy import ConnectionChanges
from twgen.model.reasons import VersionReason
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.plan import plan_versions
from twgen.rendering.manifests import FORMATS, render_manifests
from twgen.yaml.reader import read_documents

ME = Caller("me", forced=True)
Manifest = dict[str, Any]


def rendered(spec: WorkerSpec, found: World) -> list[Manifest]:
    """The manifests; a world in which there are none is of no interest."""
    try:
        return render_manifests(plan_versions([spec], found, NOW, ME).workers, [], ME.of)
    except InvalidInput:
        reject()


@given(specs, worlds())
def test_same_inputs_give_the_same_bytes_and_stay_as_they_are(spec: WorkerSpec, found: World) -> None:
    before = copy.deepcopy((spec, found))
    first = FORMATS["yaml"](rendered(spec, found))
    assert FORMATS["yaml"](rendered(spec, found)) == first
    assert (spec, found) == before


@pytest.mark.parametrize("output", sorted(FORMATS))
@given(specs, worlds())
def test_text_reads_back_as_the_manifests(output: str, spec: WorkerSpec, found: World) -> None:
    manifests = rendered(spec, found)
    read = read_documents(FORMATS[output](manifests))
    assert (read if output == "yaml" else read[0]["items"]) == manifests


@given(specs, worlds())
def test_every_rendered_version_has_its_deployment_and_its_attached_objects(
    spec: WorkerSpec, found: World
) -> None:
    (worker,) = plan_versions([spec], found, NOW, ME).workers
    versions = sorted(version.build_id for version in worker.versions if version.is_rendered)
    named = sorted(item.name for version in worker.versions for item in (*version.attached, *version.leaving))
    manifests = rendered(spec, found)
    deployments = [manifest for manifest in manifests if manifest["kind"] == "Deployment"]
    of_versions = sorted(item["metadata"]["labels"]["temporal.io/build-id"] for item in deployments)
    others = sorted(item["metadata"]["name"] for item in manifests if item["kind"] != "Deployment")
    assert (of_versions, others) == (versions, named)
    if not any(resource.when for resource in spec.attached):
        later = sum(len(version.following) for version in worker.versions)
        with_all = [version for version in worker.versions if version.attached or version.following]
        assert len(named) + later == len(with_all) * len(spec.attached)


@given(specs, worlds())
def test_no_deployment_has_two_autoscalers(spec: WorkerSpec, found: World) -> None:
    assume(found.workers[spec.key].deployments is not None)
    scaled = [
        item for item in rendered(spec, found) if item["kind"] in {"HorizontalPodAutoscaler", "ScaledObject"}
    ]
    made = [
        (item["spec"]["scaleTargetRef"]["name"], f"{item['kind']}/{item['metadata']['name']}")
        for item in scaled
    ]
    (worker,) = plan_versions([spec], found, NOW, ME).workers
    for version in worker.versions:
        attached = version.live.attached if version.live else ()
        had = {item for item in attached if "Autoscaler" in item or "ScaledObject" in item}
        has = had | {name for deployment, name in made if deployment == version.deployment}
        assert len(has) <= max(len(had), 1)
        stays = version.action not in {VersionAction.DROP, VersionAction.SCALE_DOWN, VersionAction.NONE}
        if has and stays and version.reason is not VersionReason.OF_OTHERS:
            assert version.replicas_are_external, "an autoscaler and the spec would fight"


@given(specs, worlds())
def test_version_that_is_kept_keeps_its_live_pod_template(spec: WorkerSpec, found: World) -> None:
    (worker,) = plan_versions([spec], found, NOW, ME).workers
    manifests = {manifest["metadata"]["name"]: manifest for manifest in rendered(spec, found)}
    for version in worker.versions:
        if version.action is VersionAction.KEEP and version.live and version.is_rendered:
            live = version.live.manifest["spec"]["template"]
            assert manifests[version.deployment]["spec"]["template"] == live


@given(specs, worlds())
def test_attached_object_is_protected_as_long_as_its_deployment(spec: WorkerSpec, found: World) -> None:
    (worker,) = plan_versions([spec], found, NOW, ME).workers
    leaves = {version.build_id for version in worker.versions if version.action is VersionAction.SCALE_DOWN}
    leaving = {item.name for version in worker.versions for item in version.leaving}
    for manifest in rendered(spec, found):
        options = manifest["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
        build_id = manifest["metadata"]["labels"]["temporal.io/build-id"]
        assert options.startswith("ServerSideApply=true")
        is_leaving = manifest["metadata"]["name"] in leaving
        assert ("Prune=false" in options) is (build_id not in leaves and not is_leaving)
        # Argo CD prunes nothing that has an owner
        assert not (is_leaving and "ownerReferences" in manifest["metadata"])


# most worlds have a Deployment that is edited or terminating
@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(specs, worlds())
def test_rendering_what_was_applied_changes_nothing_more(spec: WorkerSpec, found: World) -> None:
    deployments = next(iter(found.workers.values())).deployments
    # one that is moved to where it belongs, or created again, is only then looked at
    moves = spec.policy.connection_changes is ConnectionChanges.ALL_VERSIONS
    assume(
        deployments is not None
        and not any(
            item.edited_variables
            or item.terminating
            or (moves and item.recorded.temporal_namespace not in {"", spec.temporal_namespace})
            for item in deployments
        )
    )
    once = rendered(spec, found)
    (worker,) = plan_versions([spec], found, NOW, ME).workers
    if any(version.leaving for version in worker.versions):
        # what leaves goes with the next sync, and what waits for that comes
        found = synced(once, found)
        once = rendered(spec, found)
        (worker,) = plan_versions([spec], found, NOW, ME).workers
        assert not any(version.leaving for version in worker.versions)
    applied = synced(once, found)
    twice = {name(manifest): manifest for manifest in rendered(spec, applied)}
    live = {item.name for item in next(iter(found.workers.values())).deployments or ()}
    for manifest in once:
        # what a sync took to zero may go away next; all else that was there stays as it is
        if name(manifest) in twice or is_protected(manifest):
            is_new = manifest["kind"] == "Deployment" and manifest["metadata"]["name"] not in live
            assert known_at_once(twice[name(manifest)], is_new) == known_at_once(manifest, is_new)
    again = synced(list(twice.values()), applied)
    for manifest in rendered(spec, again):
        assert twice[name(manifest)] == manifest


def name(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def is_protected(manifest: Manifest) -> bool:
    annotations = manifest["metadata"].get("annotations") or {}
    return "Prune=false" in annotations.get("argocd.argoproj.io/sync-options", "")


def known_at_once(manifest: Manifest, is_new: bool) -> Manifest:  # noqa: FBT001
    """Less its owner, and less the replicas that a version from history had in its own spec."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    spec = {key: value for key, value in manifest["spec"].items() if not (is_new and key == "replicas")}
    return {**manifest, "metadata": metadata, "spec": spec}


def synced(manifests: list[Manifest], found: World) -> World:
    """The world after a sync that prunes."""
    (worker,) = found.workers.values()
    before = {item.name: item for item in worker.deployments or ()}
    live = [
        as_live(manifest, before.get(manifest["metadata"]["name"]))
        for manifest in manifests
        if manifest["kind"] == "Deployment"
    ]
    ledger = {(worker.name, build_id): item for build_id, item in worker.ledger.items()}
    return world(worker.temporal, live).remembering(ledger)


def as_live(manifest: Manifest, before: Any) -> Manifest:
    live = copy.deepcopy(manifest)
    live["metadata"]["uid"] = before.uid if before else "uid-new"
    if before and before.created_at:
        live["metadata"]["creationTimestamp"] = before.created_at.isoformat()
    if "replicas" not in live["spec"]:
        live["spec"]["replicas"] = before.replicas if before else 1
        live["metadata"]["managedFields"] = SIZED_BY_HPA
    return live
