"""Every row of the version table for versions whose Deployment is gone, or whose cluster was not read."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import (
    SPEC,
    decided,
    drained,
    listed,
    live,
    planned,
    routing,
    serving,
    situation,
    temporal,
    version,
)
from tests.planning.times import DAY, HOUR, SECOND, ago
from tests.strategies import AUTOSCALER, with_policy
from twgen.errors import StateUnavailable
from twgen.model.plan import VersionAction
from twgen.model.policy import HistorySource, MissingTemplate
from twgen.model.reasons import VersionReason
from twgen.model.temporal import Routing, Version, VersionStatus
from twgen.model.world import World

CREATE, SCALE_DOWN = VersionAction.CREATE, VersionAction.SCALE_DOWN
S = VersionStatus


def found(known: Version, *, cluster_read: bool, current: str | None = None, recorded: int = 2) -> World:
    says = temporal(version("v3"), known, traffic=routing(current))
    return situation(says, [live("v3")] if cluster_read else None, {"v1": live("v1", recorded)})


@pytest.mark.parametrize("cluster_read", [True, False])
@pytest.mark.parametrize(
    "known",
    [
        pytest.param(version("v1", S.DRAINING), id="draining"),
        pytest.param(version("v1", S.CREATED), id="created"),
        pytest.param(version("v1", S.UNSPECIFIED), id="unspecified"),
        pytest.param(version("v1", last_current_at=ago(DAY)), id="inactive that was active"),
        pytest.param(version("v1", open_workflows=1), id="inactive with open workflows"),
        pytest.param(drained(2 * HOUR, open_workflows=1), id="drained with open workflows"),
        pytest.param(drained(9 * DAY, open_workflows=1), id="drained for long with open workflows"),
    ],
)
def test_version_that_may_have_work_comes_back_as_it_was_recorded(
    known: Version, *, cluster_read: bool
) -> None:
    plan = decided(found(known, cluster_read=cluster_read), "v1")
    assert (plan.action, plan.replicas, plan.protected) == (CREATE, 2, True)


@pytest.mark.parametrize(
    ("known", "current", "reason", "because"),
    [
        (drained(HOUR / 2), None, "Drained", "it is drained, but scaledownDelay (1h) is not over yet"),
        (drained(None), None, "Drained", "it is drained, but Temporal does not report when it drained"),
        (version("v1"), "v1", "InUse", "it is current: new workflows go to it"),
    ],
)
def test_drained_or_current_version_is_not_said_to_have_old_work_where_the_cluster_was_not_read(
    known: Version, current: str | None, reason: str, because: str
) -> None:
    plan = decided(found(known, cluster_read=False, current=current), "v1")
    assert (plan.action, plan.reason) == (CREATE, reason), "whether it has a Deployment is not known"
    assert plan.because == f"{because}; the cluster was not read"


def test_version_that_comes_back_as_recorded_for_another_place_is_warned_of() -> None:
    elsewhere = live("v1", 2)
    [container] = elsewhere["spec"]["template"]["spec"]["containers"]
    [variable] = (item for item in container["env"] if item["name"] == "TEMPORAL_NAMESPACE")
    variable["value"] = "other"
    says = temporal(version("v3"), version("v1", S.DRAINING), traffic=routing())
    for record, is_warned in ((elsewhere, True), (live("v1", 2), False)):
        plan = planned(situation(says, [live("v3")], {"v1": record}))
        told = [warning for warning in plan.versions.warnings if warning.startswith("v1 is recreated")]
        assert bool(told) is is_warned
        assert all("temporal.example.com:7233 other" in warning for warning in told)


@pytest.mark.parametrize("cluster_read", [True, False])
def test_current_version_comes_back_even_when_temporal_lists_it_nowhere_else(*, cluster_read: bool) -> None:
    says = temporal(version("v3"), traffic=routing("v1"))
    world = situation(says, [live("v3")] if cluster_read else None, {"v1": live("v1", 2)})
    plan = decided(world, "v1")
    assert (plan.action, plan.status) == (CREATE, S.CURRENT)


@pytest.mark.parametrize("traffic", [routing("v1"), routing("v2", ("v1", 25))])
@pytest.mark.parametrize(("replicas", "expected"), [(10, 10), (0, 1), (None, None)])
def test_version_that_takes_traffic_comes_back_as_large_as_the_spec_says(
    traffic: Routing, replicas: int | None, expected: int | None
) -> None:
    says = temporal(version("v3"), version("v1", S.CURRENT), traffic=traffic)
    plan = decided(situation(says, None, {"v1": live("v1", 2)}), "v1", replace(SPEC, replicas=replicas))
    assert (plan.action, plan.replicas) == (CREATE, expected)


def test_version_recorded_at_zero_comes_back_with_one() -> None:
    plan = decided(found(version("v1", S.DRAINING), cluster_read=True, recorded=0), "v1")
    assert plan.replicas == 1


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(version("v1"), id="inactive"),
        pytest.param(version("v1", created_at=ago(26 * HOUR)), id="inactive for long"),
        pytest.param(drained(HOUR), id="drained"),
        pytest.param(drained(25 * HOUR + SECOND), id="drained past both delays"),
    ],
)
def test_version_without_work_and_without_deployment_is_not_listed(known: Version) -> None:
    assert listed(found(known, cluster_read=True), "v1") is None


NEVER_ACTIVE = version("v1", created_at=ago(26 * HOUR))


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (drained(25 * HOUR + SECOND), VersionReason.DRAINED_PAST_BOTH_DELAYS),
        (drained(8 * DAY), VersionReason.DRAINED_PAST_BOTH_DELAYS),
        (NEVER_ACTIVE, VersionReason.NEVER_ACTIVE_FOR_LONG),
        (version("v1", created_at=None), VersionReason.NEVER_ACTIVE),
        (version("v1"), VersionReason.NEVER_ACTIVE),
    ],
)
def test_version_of_an_unread_cluster_stays_at_zero_and_unprotected_while_temporal_lists_it(
    known: Version, reason: VersionReason
) -> None:
    """No sync may have fallen between the delays: its Deployment may still have pods and protection."""
    plan = decided(found(known, cluster_read=False), "v1")
    assert (plan.action, plan.replicas, plan.protected, plan.reason) == (SCALE_DOWN, 0, False, reason)
    # nothing tells that it ever was here
    assert listed(situation(temporal(version("v3"), known), None, {}), "v1") is None


def test_of_very_many_drained_versions_the_newest_hundred_are_rendered() -> None:
    many = [
        drained(9 * DAY, f"v1-{number}", created_at=ago(10 * DAY + number * SECOND)) for number in range(300)
    ]
    ledger = {one.build_id: live(one.build_id, 2) for one in many}
    says = temporal(version("v3", created_at=ago(DAY)), *many, traffic=routing())
    plans = planned(situation(says, None, ledger)).versions.versions
    assert {one.build_id for one in plans} == {"v3", *(f"v1-{number}" for number in range(99))}


def test_versions_that_nothing_needs_do_not_keep_a_new_target_waiting() -> None:
    many = [drained(9 * DAY, f"v1-{number}") for number in range(80)]
    ledger = {one.build_id: live(one.build_id, 2) for one in (*many, NEVER_ACTIVE)}
    says = temporal(*many, NEVER_ACTIVE, traffic=routing())
    plan = decided(situation(says, None, ledger), "v3")
    assert plan.action is CREATE


@pytest.mark.parametrize(
    ("length", "action", "replicas"),
    [
        pytest.param(HOUR, CREATE, 2, id="exactly at its delay"),
        pytest.param(HOUR + SECOND, SCALE_DOWN, 0, id="past its delay"),
        pytest.param(25 * HOUR, SCALE_DOWN, 0, id="exactly at both delays"),
    ],
)
def test_drained_version_of_an_unread_cluster_is_held_at_zero_between_its_delays(
    length: timedelta, action: VersionAction, replicas: int
) -> None:
    plan = decided(found(drained(length), cluster_read=False), "v1")
    assert (plan.action, plan.replicas) == (action, replicas)


@pytest.mark.parametrize("cluster_read", [True, False])
def test_target_is_made_from_the_spec(*, cluster_read: bool) -> None:
    world = situation(temporal(), [] if cluster_read else None, {"v3": live("v3", 1)})
    plan = decided(world, "v3")
    assert (plan.action, plan.replicas, plan.protected, plan.recorded) == (CREATE, 3, True, None)


def test_new_target_under_an_autoscaler_starts_without_replicas_of_ours() -> None:
    plan = decided(situation(None), "v3", replace(SPEC, replicas=None))
    assert (plan.action, plan.replicas) == (CREATE, None)


@pytest.mark.parametrize(
    ("cluster_read", "advice"), [(True, "in twgen.lock again"), (False, "prune protection keeps it")]
)
def test_lost_manifest_is_warned_of(advice: str, *, cluster_read: bool) -> None:
    says = temporal(version("v3"), version("v1", S.DRAINING))
    worker = planned(situation(says, [live("v3")] if cluster_read else None))
    lost = worker.versions.versions[0]
    assert (lost.build_id, lost.action, lost.replicas) == ("v1", VersionAction.NONE, None)
    [told] = (text for text in worker.versions.warnings if text.startswith("v1 has no manifest to render: "))
    assert told.endswith(advice)


@pytest.mark.parametrize("cluster_read", [True, False])
def test_nothing_is_attached_to_a_version_that_has_no_deployment_and_gets_none(*, cluster_read: bool) -> None:
    spec = replace(SPEC, attached=(AUTOSCALER,), replicas=None)
    says = temporal(version("v3"), version("v1", S.DRAINING), traffic=routing("v1"))
    versions = planned(situation(says, [live("v3")] if cluster_read else None), spec).versions.versions
    [lost] = (one for one in versions if one.build_id == "v1")
    assert lost.action is VersionAction.NONE
    # its Deployment may be there where nobody has looked
    assert bool(lost.attached) is not cluster_read
    assert all(one.attached for one in versions if one.build_id == "v3")


@pytest.mark.parametrize("status", [S.DRAINING, S.CURRENT])
def test_deployment_that_nothing_protects_is_rendered_as_it_runs_where_no_source_has_its_manifest(
    status: S,
) -> None:
    spec = with_policy(SPEC, history=(HistorySource.LEDGER,))
    says = temporal(version("v3"), version("v1", status))
    for protected, action, fate in (
        (True, VersionAction.NONE, "stays as it is"),
        (False, VersionAction.KEEP, "because it is not protected from pruning"),
    ):
        found = situation(says, [live("v3"), live("v1", protected=protected)])
        versions = planned(found, spec).versions
        [warning] = [text for text in versions.warnings if text.startswith("v1 has no")]
        assert (versions.versions[0].action, warning.endswith(fate)) == (action, True)


def test_deployment_that_nothing_protects_goes_to_zero_first_where_no_source_has_its_manifest() -> None:
    spec = with_policy(SPEC, history=(HistorySource.LEDGER,))
    found = situation(temporal(version("v3"), drained(DAY)), [live("v3"), live("v1", protected=False)])
    versions = planned(found, spec).versions
    assert (versions.versions[0].action, versions.warnings) == (VersionAction.SCALE_DOWN, ())


def test_lost_manifest_fails_the_run_when_the_policy_says_so() -> None:
    spec = with_policy(SPEC, missing_template=MissingTemplate.FAIL)
    world = serving(temporal(version("v3"), version("v1", S.DRAINING)), "v3")
    with pytest.raises(StateUnavailable, match="shop/payments: v1: it is draining"):
        planned(world, spec)
