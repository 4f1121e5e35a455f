"""A version whose build ID fits no label is none of twgen's: it is told, and nothing is made of it."""

from dataclasses import replace

import pytest

from tests.planning.situations import (
    NOW,
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
from tests.planning.times import DAY, HOUR, ago
from tests.strategies import BUDGET, BY_OTHERS, made_by_others, with_policy
from twgen.model.plan import RoutingAction, VersionAction
from twgen.model.policy import HistorySource, MissingTemplate
from twgen.model.reasons import RoutingReason, VersionReason
from twgen.model.temporal import Drainage, TaskQueue, TaskQueueType, Version, WorkerDeployment
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import worker_world
from twgen.planning.reads import further_reads, versions_to_describe, versions_to_look_for
from twgen.specs.neighbours import collisions, generated_objects
from twgen.versioning.build_ids import may_be_ours

OTHERS = "1.4.0+build7"
BUDGETED = replace(SPEC, attached=(BUDGET,))
QUEUE = TaskQueue("by-hand", TaskQueueType.WORKFLOW, pollers=True, unversioned_pollers=False)


def says(*others: Version, current: str | None = "v3") -> WorkerDeployment:
    status = S.CURRENT if current == "v3" else S.INACTIVE
    return temporal(version("v3", status), *others, traffic=routing(current))


@pytest.mark.parametrize("build_id", BY_OTHERS)
@pytest.mark.parametrize("deployments", [[live("v3")], None], ids=["cluster read", "cluster not read"])
@pytest.mark.parametrize("known", [S.CURRENT, S.RAMPING, S.DRAINING, S.UNSPECIFIED, S.CREATED])
def test_nothing_is_made_of_it_while_it_may_have_work(
    build_id: str, deployments: list[dict[str, object]] | None, known: S
) -> None:
    current = build_id if known is S.CURRENT else "v3"
    found = situation(says(version(build_id, known), current=current), deployments)
    plan = decided(found, build_id, BUDGETED)
    assert (plan.reason, plan.action) == (VersionReason.OF_OTHERS, VersionAction.NONE)
    assert (plan.deployment, plan.attached, plan.leaving, plan.protected) == ("", (), (), False)
    assert plan.because.endswith(", and its build ID is not a valid label, so twgen did not create it")


@pytest.mark.parametrize("deployments", [[live("v3")], None], ids=["cluster read", "cluster not read"])
@pytest.mark.parametrize(
    "known",
    [version(OTHERS), drained(2 * DAY, OTHERS), drained(HOUR / 2, OTHERS)],
    ids=lambda item: item.status,
)
def test_it_is_not_listed_once_it_has_no_work(
    known: Version, deployments: list[dict[str, object]] | None
) -> None:
    assert listed(situation(says(known), deployments), OTHERS) is None


def test_what_a_ledger_has_under_its_name_is_not_rendered() -> None:
    found = situation(says(version(OTHERS, S.DRAINING)), [live("v3")], {OTHERS: live("v1")})
    plan = decided(found, OTHERS)
    assert (plan.action, plan.recorded) == (VersionAction.NONE, None)


def test_one_warning_tells_of_all_of_them_by_name_as_far_as_a_person_reads() -> None:
    two = [version(item, S.DRAINING) for item in BY_OTHERS[:2]]
    [both] = planned(serving(says(*two), "v3")).versions.warnings
    assert both == (
        "twgen renders nothing for '1.4.0+build7' and '2026-11-21T05:24:15Z': such a build ID is not a valid"
        " label value, so twgen did not create them. Keep their workers running until they have drained"
    )
    [one] = planned(serving(says(two[0]), "v3")).versions.warnings
    assert one.endswith("so twgen did not create it. Keep its workers running until it has drained")
    many = [version(f"1.4.{number}+build", S.DRAINING) for number in range(60)]
    [told] = planned(serving(says(*many), "v3")).versions.warnings
    assert "'1.4.17+build' and 50 more: such a build ID" in told


def test_policy_that_wants_every_template_does_not_want_one_of_others() -> None:
    policy = replace(SPEC.policy, missing_template=MissingTemplate.FAIL)
    found = serving(says(version(OTHERS, S.DRAINING)), "v3")
    assert planned(found, replace(SPEC, policy=policy)).versions.warnings


def test_deployment_that_only_its_variables_tell_of_stays_as_it_is() -> None:
    found = situation(says(version(OTHERS, S.DRAINING)), [live("v3"), made_by_others(OTHERS, 2)])
    plan = decided(found, OTHERS, BUDGETED)
    assert plan.live
    assert (plan.action, plan.deployment, plan.attached) == (VersionAction.NONE, plan.live.name, ())


def test_nothing_is_read_for_it_but_what_decides_on_traffic() -> None:
    policy = replace(SPEC.policy, history=(HistorySource.LEDGER, HistorySource.CLUSTER, HistorySource.GIT))
    spec = replace(SPEC, policy=policy)
    lately = Drainage(S.DRAINING, ago(HOUR), NOW)
    draining = version(OTHERS, S.DRAINING, drainage=lately)
    others = draining, drained(DAY, BY_OTHERS[1]), version(BY_OTHERS[2])
    # as a variable, by hand, it may be anything, such as a name that Temporal refuses
    deployments = [live("v3"), made_by_others("__v1", 2)]
    found = worker_world(spec, situation(says(*others), deployments))
    assert versions_to_describe(spec, found, NOW, for_routing=False) == ()
    assert further_reads(spec, found, NOW, for_routing=False).open_workflows == frozenset()
    assert versions_to_look_for(spec, found, NOW) == frozenset()


def test_it_takes_a_place_of_max_versions_while_it_may_have_work() -> None:
    capped = with_policy(SPEC, max_versions=1)
    found = situation(temporal(version(OTHERS, S.CURRENT), traffic=routing(OTHERS)), [])
    assert planned(found, capped).versions.not_created
    idle = situation(temporal(drained(HOUR / 2, OTHERS)), [])
    assert not planned(idle, capped).versions.not_created


def test_its_traffic_is_not_told_to_be_served_by_nobody() -> None:
    """Where its workers are nothing tells; that the cluster has none of twgen's yet is no doubt about it."""
    worker = planned(situation(temporal(version(OTHERS, S.CURRENT), traffic=routing(OTHERS)), []))
    assert worker.unserved == ""
    assert not any("is it the right cluster?" in text for text in worker.versions.warnings)


def test_traffic_moves_from_it_to_the_target_as_from_any_version() -> None:
    known = version(OTHERS, S.CURRENT)
    assert planned(serving(says(known, current=OTHERS), "v3")).routing.action is (RoutingAction.SET_CURRENT)
    lacking = replace(known, task_queues=(QUEUE,))
    waits = planned(serving(says(lacking, current=OTHERS), "v3")).routing
    assert waits.reason is RoutingReason.MISSING_TASK_QUEUE


def test_a_version_may_have_the_name_that_its_deployment_would_have() -> None:
    spec = replace(BUDGETED, build_id="1.4.0-build7")
    found = situation(temporal(version(OTHERS, S.DRAINING)), [])
    worker = planned(found, spec).versions
    assert list(collisions(generated_objects([worker]), [], "shop")) == []


def test_live_version_that_may_be_it_is_kept() -> None:
    """Its code may have a build ID of its own, and poll by that one."""
    deployed = live("1.4.0-build7", age=DAY)
    plan = decided(situation(says(version(OTHERS, S.DRAINING)), [live("v3"), deployed]), "1.4.0-build7")
    assert (plan.action, plan.reason) == (VersionAction.KEEP, VersionReason.MAY_BE_ANOTHER)


@pytest.mark.parametrize(
    ("build_id", "expected"),
    [
        ("v1", True),
        ("1.4.0_a-B", True),
        ("v" * 63, True),
        ("v" * 64, False),
        ("1.4.0+build7", False),
        ("-v1", False),
        ("v1.", False),
        ("a b", False),
        ("vé", False),
        ("v1\n", False),
    ],
)
def test_build_id_of_twgen_is_the_value_of_a_label(build_id: str, *, expected: bool) -> None:
    assert may_be_ours(build_id) is expected
