"""The hash by which it is told that the world would make other manifests of what Git says."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import AUTOSCALER, NOW, a_spec, live_manifest, specs, world, worlds
from twgen.model.operator import Caller
from twgen.model.spec import WorkerSpec
from twgen.model.world import World
from twgen.planning.plan import plan_versions
from twgen.planning.refresh import plan_hash
from twgen.rendering.deployments import attached_manifests, version_deployment

ME = Caller("me", forced=True)


def rendered(spec: WorkerSpec, found: World, now: datetime = NOW) -> tuple[str, list[dict[str, Any]]]:
    """The hash, and the manifests that depend on the world."""
    (worker,) = plan_versions([spec], found, now, ME).workers
    made = []
    for version in worker.versions:
        made += [version_deployment(spec, version, "me")] if version.is_rendered else []
        made += attached_manifests(spec, version)
    return plan_hash(worker), made


@given(specs, worlds(), st.integers(0, 100))
def test_time_changes_the_hash_exactly_when_it_changes_a_manifest(
    spec: WorkerSpec, found: World, hours: int
) -> None:
    now, manifests = rendered(spec, found)
    later, manifests_later = rendered(spec, found, NOW + timedelta(hours=hours))
    assert (now == later) == (manifests == manifests_later)


def test_first_apply_changes_the_hash_only_where_an_attached_object_gets_its_owner() -> None:
    plain = replace(a_spec(), replicas=3)
    scaled = replace(plain, attached=(AUTOSCALER,), replicas=None)
    for spec, is_changed in ((plain, False), (scaled, True)):
        before, _ = rendered(spec, world(None, []))
        created = live_manifest(spec, spec.build_id, 3)
        after, _ = rendered(spec, world(None, [created]))
        assert (before != after) == is_changed


def test_deployment_that_was_made_anew_changes_the_hash_of_what_holds_its_uid() -> None:
    spec = replace(a_spec(), attached=(AUTOSCALER,))
    found = [live_manifest(spec, spec.build_id, 3) for _ in range(2)]
    found[1]["metadata"]["uid"] = "another"
    first, second = (rendered(spec, world(None, [manifest]))[0] for manifest in found)
    assert first != second
