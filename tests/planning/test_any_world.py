"""From any world, plan and apply again and again: it settles or says what blocks it, and strands nothing."""

import copy
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.planning.model_of_temporal import ModelOfTemporal
from tests.strategies import NOW, may_have_work, routed_versions, specs, worlds
from twgen.model.plan import Phase, WorkerPlan
from twgen.model.spec import Strategy, WorkerSpec
from twgen.model.world import RampingVersion, Routing, Version, VersionStatus, World

ENDS = {Phase.SETTLED, Phase.BLOCKED}
LOOKS = 20
"""Enough for every step of a rollout, a gate, and a first registration."""


def begun(spec: WorkerSpec, found: World) -> ModelOfTemporal:
    """The model of a world whose cluster was read; a routed version that nothing else tells of exists."""
    (worker,) = found.workers.values()
    temporal = worker.temporal
    listed = {version.build_id: version for version in (temporal.versions if temporal else ())}
    unlisted = routed_versions(temporal) - set(listed)
    return ModelOfTemporal(
        spec=spec,
        now=NOW,
        manager=temporal.manager_identity if temporal else "me",
        routing=temporal.routing if temporal else Routing(),
        versions=listed | {item: Version(item, VersionStatus.UNSPECIFIED, NOW) for item in unlisted},
        deployments={
            live.build_id: copy.deepcopy(dict(live.recorded.manifest)) for live in worker.deployments or ()
        },
        ledger=found.ledger,
    )


def waits_for_a_person(plan: WorkerPlan, ramp: RampingVersion | None) -> bool:
    """The plan names what only a person can change: strategy Manual, no replicas, a ramp without a date."""
    undated = ramp is not None and not (ramp.percentage_changed_at or ramp.since)
    by_hand = plan.versions.spec.rollout.strategy is Strategy.MANUAL
    return plan.routing.phase is Phase.WAITING and (by_hand or plan.versions.spec.replicas == 0 or undated)


@given(specs, worlds(), st.integers(20, 300))
def test_it_settles_or_says_what_blocks_it_and_strands_no_workflow(
    spec: WorkerSpec, found: World, minutes: int
) -> None:
    model = begun(spec, found)
    for _ in range(LOOKS):
        before = model.world()
        needed = {build_id for build_id in model.serving() if may_have_work(build_id, before)}
        plan = model.apply()
        if spec.replicas != 0:
            assert needed <= set(model.serving())
        model.pass_time(timedelta(minutes=minutes))
    assert plan.routing.because
    assert plan.routing.phase in ENDS or waits_for_a_person(plan, model.routing.ramping)


@given(specs, worlds())
def test_settled_worker_stays_settled(spec: WorkerSpec, found: World) -> None:
    model = begun(
        replace(spec, replicas=2, rollout=replace(spec.rollout, strategy=Strategy.ALL_AT_ONCE)), found
    )
    settled = False
    for _ in range(LOOKS):
        phase = model.apply().routing.phase
        assert not (settled and phase is not Phase.SETTLED)
        settled = phase is Phase.SETTLED
        model.pass_time(timedelta(hours=13))
