"""The model of the cluster does with a plan what applying the rendered manifests does."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from tests.simulating.workers import ASSUMED, ME, SECOND, a_worker, act, wait
from tests.strategies import BY_OTHERS, NOW, SIZED_BY_HPA, specs, worlds
from twgen.cluster.deployments import live_deployments
from twgen.model.plan import VersionAction
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment, World
from twgen.planning.plan import make_plan
from twgen.rendering.manifests import render_manifests
from twgen.simulating.servers import synced


def applied(manifest: dict[str, Any], live: LiveDeployment | None) -> dict[str, Any]:
    """What an API server has after an apply; what leaves the replicas out keeps them."""
    before = live.recorded.manifest if live else {"metadata": {}, "spec": {"replicas": 1}}
    size = manifest["spec"].get("replicas", max(before["spec"]["replicas"], 1))
    metadata = {"uid": "new", "creationTimestamp": NOW.isoformat()} | before["metadata"]
    if "replicas" not in manifest["spec"]:
        metadata["managedFields"] = SIZED_BY_HPA
    serves = live is not None and live.serving and size
    return {
        **manifest,
        "metadata": metadata | manifest["metadata"],
        "spec": manifest["spec"] | {"replicas": size},
        "status": {
            "observedGeneration": 1,
            "availableReplicas": size if serves else 0,
            "conditions": [{"type": "Available", "status": "True"}] if serves else [],
        },
    }


def comparable(live: LiveDeployment) -> LiveDeployment:
    """Without what planning never looks at, and what only a real server tells: its field managers."""
    recorded = replace(live.recorded, manifest={})
    since = live.created_at or NOW
    told = {
        "template_is_as_applied": False,
        "edited_variables": frozenset(),
        "terminating": False,
        "gone": (),
    }
    return replace(live, uid="", created_at=since, recorded=recorded, **told)


@given(specs, worlds())
def test_sync_leaves_what_applying_the_manifests_leaves(spec: WorkerSpec, found: World) -> None:
    (worker,) = found.workers.values()
    before = {live.build_id: live for live in worker.deployments or ()}
    (plan,) = make_plan([spec], found, NOW, ME).workers
    alone = replace(plan.versions, spec=replace(spec, attached=()))
    is_rendered = any(version.is_rendered for version in plan.versions.versions)
    rendered = {
        manifest["metadata"]["labels"]["temporal.io/build-id"]: manifest
        for manifest in (render_manifests([alone], [], ME.of) if is_rendered else [])
    }
    expected = {
        live.build_id: live
        for live in live_deployments(applied(item, before.get(name)) for name, item in rendered.items())
    }
    # what nobody ever rendered, nothing prunes
    kept = {name: live for name, live in before.items() if live.protected or name in BY_OTHERS}
    kept = {name: live for name, live in kept.items() if name not in rendered}
    # what no template makes any more, the Job of the rollout takes at once
    went = {f"{item.kind}/{item.name}" for version in plan.versions.versions for item in version.replaced}
    expected = {
        name: replace(live, attached=tuple(item for item in live.attached if item not in went))
        for name, live in expected.items()
    }
    after = synced(plan.versions, before, "me", NOW)
    assert {name: comparable(live) for name, live in after.items()} == {
        name: comparable(live) for name, live in (kept | expected).items()
    }


def test_pods_serve_after_their_time_to_start() -> None:
    worker = a_worker(assumed=ASSUMED)
    act(worker)
    wait(worker, 29 * SECOND)
    assert worker.cluster.serving() == []
    wait(worker, SECOND)
    assert worker.cluster.serving() == ["v3"]


def test_version_that_gets_more_replicas_serves_meanwhile() -> None:
    worker = a_worker()
    act(worker)
    wait(worker, timedelta())
    worker.spec = replace(worker.spec, replicas=9)
    act(worker)
    assert worker.cluster.deployments["v3"].replicas == 9
    assert worker.cluster.serving() == ["v3"]


def test_protected_deployment_is_not_pruned() -> None:
    worker = a_worker()
    plan = act(worker)
    nothing = replace(plan.versions, versions=())
    (live,) = worker.cluster.deployments.values()
    assert synced(nothing, {"v3": live}, "me", NOW) == {"v3": live}
    assert synced(nothing, {"v3": replace(live, protected=False)}, "me", NOW) == {}


@pytest.mark.parametrize("edited", [True, False])
def test_pod_template_that_is_kept_is_as_little_as_applied_as_before(*, edited: bool) -> None:
    worker = a_worker()
    plan = act(worker)
    (live,) = worker.cluster.deployments.values()
    assert live.template_is_as_applied
    before = {"v3": replace(live, template_is_as_applied=not edited)}
    kept = [replace(version, action=VersionAction.KEEP) for version in plan.versions.versions]
    after = synced(replace(plan.versions, versions=tuple(kept)), before, "me", NOW)
    assert after["v3"].template_is_as_applied is not edited
