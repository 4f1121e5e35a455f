"""Which versions have their open workflows counted before their pods, or their Deployment, may go."""

from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import NOW, SPEC, drained, live, situation, temporal, version
from tests.planning.times import DAY, HOUR, MINUTE, ago
from twgen.model.temporal import Version
from twgen.model.temporal import VersionStatus as S
from twgen.planning.plan import worker_world
from twgen.planning.reads import versions_to_count

PODS, AT_ZERO = [live("v1", 2), live("v3")], [live("v1", 0, protected=False), live("v3")]
DRAINING = version("v1", S.DRAINING, first_activated_at=ago(DAY))


@pytest.mark.parametrize(
    ("known", "deployments", "is_counted"),
    [
        pytest.param(drained(2 * HOUR), None, True, id="drained, of an unread cluster"),
        pytest.param(drained(HOUR), None, False, id="just drained, of an unread cluster"),
        pytest.param(DRAINING, None, False, id="draining, of an unread cluster"),
        pytest.param(version("v1"), None, False, id="inactive, of an unread cluster"),
        pytest.param(drained(2 * HOUR), PODS, True, id="drained, with pods"),
        pytest.param(drained(HOUR), PODS, False, id="just drained, with pods"),
        pytest.param(version("v1"), PODS, True, id="inactive, with pods"),
        pytest.param(None, PODS, False, id="not registered, so it has no workflow to count"),
        pytest.param(drained(26 * HOUR), AT_ZERO, True, id="at zero, drained past both delays"),
        pytest.param(
            version("v1", created_at=ago(26 * HOUR)), AT_ZERO, True, id="at zero, inactive for long"
        ),
    ],
)
def test_workflows_are_counted_on(
    known: Version | None, deployments: list[dict[str, Any]] | None, *, is_counted: bool
) -> None:
    says = temporal(*(item for item in (version("v3"), known) if item))
    world = worker_world(SPEC, situation(says, deployments))
    assert versions_to_count(SPEC, world, NOW) == ("v1",) * is_counted


def test_deployment_that_lives_on_another_server_is_not_counted_on_this_one() -> None:
    elsewhere = replace(SPEC, connection=replace(SPEC.connection, host_port="elsewhere:7233"))
    world = situation(temporal(version("v3"), drained(2 * HOUR)), [live("v1", 2)])
    assert versions_to_count(elsewhere, worker_world(elsewhere, world), NOW + MINUTE) == ()
