"""The replicas of a version through all phases of its sunset, and between fixed and autoscaled."""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.held_replicas import ARGOCD, HPA, ROLLOUT, HeldReplicas
from tests.planning.situations import NOW, SPEC, live, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR
from tests.strategies import AUTOSCALER
from twgen.model.operator import Caller
from twgen.model.plan import VersionPlan
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import Drainage, WorkerDeployment
from twgen.model.temporal import VersionStatus as S
from twgen.planning.cluster_changes import replica_changes
from twgen.planning.plan import plan_versions

FIXED = replace(SPEC, replicas=4)
SCALED = replace(SPEC, replicas=None, attached=(AUTOSCALER,))


class Cluster(HeldReplicas):
    """The Deployment of v1."""

    protected = True

    def manifest(self) -> dict[str, Any]:
        return live("v1", self.number, protected=self.protected, managedFields=self.managed_fields())

    def apply(self, version: VersionPlan) -> None:
        assert not (version.attached and version.replicas), "Argo CD would undo what the autoscaler decides"
        self.protected = version.protected
        self.sync(version.replicas)


def at(status: S, drained_for: timedelta = timedelta()) -> WorkerDeployment:
    drainage = None
    if status in {S.DRAINING, S.DRAINED}:
        drainage = Drainage(status, changed_at=NOW - drained_for, checked_at=NOW)
    old = version("v1", status, drainage=drainage, open_workflows=0)
    current = "v1" if status is S.CURRENT else "v3"
    target = version("v3", S.INACTIVE if status is S.CURRENT else S.CURRENT)
    return temporal(old, target, traffic=routing(current))


def sync(cluster: Cluster, spec: WorkerSpec, state: WorkerDeployment) -> VersionPlan | None:
    """A render, its apply, and the rollout after it; None: it is rendered no more."""
    found = situation(state, [cluster.manifest(), live("v3", 3)])
    [worker] = plan_versions([spec], found, NOW, Caller("me", forced=True)).workers
    old = next((item for item in worker.versions if item.build_id == "v1" and item.is_rendered), None)
    if old:
        cluster.apply(old)
    found = situation(state, [cluster.manifest(), live("v3", 3)])
    [worker] = plan_versions([spec], found, NOW, Caller("me", forced=True)).workers
    for change in replica_changes(worker):
        if change.deployment == cluster.manifest()["metadata"]["name"]:
            cluster.set_by(ROLLOUT, change.replicas)
    return old


BUSY = [at(S.CURRENT), at(S.DRAINING), at(S.UNSPECIFIED), at(S.DRAINED, HOUR / 2)]
phases = st.sampled_from(BUSY)
events = st.lists(
    st.tuples(st.sampled_from((FIXED, SCALED)), phases, st.none() | st.integers(2, 9)), max_size=8
)


@given(st.sampled_from((4, 7)), st.sampled_from(({ARGOCD}, {HPA}, {ARGOCD, HPA}, {ROLLOUT})), events)
def test_version_that_may_have_work_keeps_its_pods_whoever_sizes_it(
    replicas: int, holders: set[str], story: list[tuple[WorkerSpec, WorkerDeployment, int | None]]
) -> None:
    cluster = Cluster(replicas, set(holders))
    for spec, state, scaled_to in story:
        if spec is SCALED and scaled_to:
            cluster.set_by(HPA, scaled_to)
        before = cluster.number
        assert sync(cluster, spec, state)
        # a version that has traffic has what its spec says, where that says it
        wanted = FIXED.replicas if spec is FIXED and state is BUSY[0] else before
        assert cluster.number == wanted
        assert cluster.protected


@given(phases, st.sampled_from(({ARGOCD}, {HPA}, {ROLLOUT})))
def test_autoscaler_has_the_word_after_two_syncs_of_a_version_that_was_fixed(
    state: WorkerDeployment, holders: set[str]
) -> None:
    cluster = Cluster(7, set(holders))
    sync(cluster, SCALED, state)
    rendered = sync(cluster, SCALED, state)
    assert rendered
    assert rendered.replicas is None
    assert ARGOCD not in cluster.holders
    assert cluster.number == 7


@given(st.sampled_from((FIXED, SCALED)), st.sampled_from(({ARGOCD}, {HPA}, {ARGOCD, HPA}, {ROLLOUT})), phases)
def test_sunset_ends_at_zero_whoever_sized_it_and_a_revival_brings_pods(
    spec: WorkerSpec, holders: set[str], revived: WorkerDeployment
) -> None:
    gone = at(S.DRAINED, SPEC.sunset.scaledown_delay + SPEC.sunset.delete_delay + DAY)
    cluster = Cluster(7, set(holders))
    sync(cluster, spec, at(S.DRAINED, SPEC.sunset.scaledown_delay + HOUR))
    assert (cluster.number, cluster.protected) == (0, False)
    again = deepcopy(cluster)
    sync(again, spec, gone)
    assert sync(again, spec, gone) is None
    sync(cluster, spec, revived)
    assert cluster.protected
    if revived is not BUSY[3]:
        assert cluster.number >= 1
