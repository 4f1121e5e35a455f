"""What time alone will bring to a version."""

from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, drained, live, routing, situation, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from twgen.model.plan import VersionAction
from twgen.model.temporal import Version
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import worker_world
from twgen.planning.versions.plan import LaterAction, later_actions


def later_action(known: Version, deployments: list[dict[str, Any]] | None) -> LaterAction | None:
    found = situation(temporal(version("v3", S.CURRENT), known, traffic=routing("v3")), deployments)
    return later_actions(SPEC, worker_world(SPEC, found), NOW).get("v1")


def test_drained_version_will_be_scaled_down_after_its_delay() -> None:
    expected = LaterAction(VersionAction.SCALE_DOWN, ago(-40 * MINUTE))
    assert later_action(drained(20 * MINUTE), [live("v1"), live("v3")]) == expected


def test_deployment_at_zero_will_go_after_both_delays() -> None:
    expected = LaterAction(VersionAction.DROP, ago(-22 * HOUR))
    assert later_action(drained(3 * HOUR), [live("v1", 0, protected=False), live("v3")]) == expected


def test_version_that_temporal_does_not_know_will_be_scaled_down_after_ten_minutes() -> None:
    found = situation(temporal(version("v3", S.CURRENT), traffic=routing("v3")), [live("v1", age=MINUTE)])
    expected = LaterAction(VersionAction.SCALE_DOWN, ago(-9 * MINUTE))
    assert later_actions(SPEC, worker_world(SPEC, found), NOW)["v1"] == expected


def test_deployment_of_a_version_that_was_never_active_will_go_after_both_delays() -> None:
    expected = LaterAction(VersionAction.DROP, ago(-24 * HOUR))
    assert later_action(version("v1"), [live("v1", 0, protected=False), live("v3")]) == expected


@pytest.mark.parametrize(
    ("known", "deployments"),
    [
        pytest.param(drained(20 * MINUTE, open_workflows=2), [live("v1")], id="open workflows hold it"),
        pytest.param(drained(3 * HOUR), [live("v1")], id="its pods have not gone yet"),
        pytest.param(drained(3 * HOUR), [live("v1", 0)], id="its protection has not gone yet"),
        pytest.param(version("v1", S.DRAINING, first_activated_at=ago(DAY)), [live("v1")], id="draining"),
    ],
)
def test_nothing_is_foretold_that_time_alone_does_not_bring(
    known: Version, deployments: list[dict[str, Any]]
) -> None:
    assert later_action(known, [*deployments, live("v3")]) is None


def test_target_is_never_foretold_to_go() -> None:
    traffic = routing("v2")
    old = drained(MINUTE, "v3")
    found = situation(temporal(old, version("v2", S.CURRENT), traffic=traffic), [live("v3"), live("v2")])
    assert "v3" not in later_actions(SPEC, worker_world(SPEC, found), NOW)
