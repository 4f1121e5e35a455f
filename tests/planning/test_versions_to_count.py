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


def due(known: Version | None, deployments: list[dict[str, Any]] | None) -> list[str]:
    says = temporal(*(item for item in (version("v3"), known) if item))
    return list(versions_to_count(SPEC, worker_world(SPEC, situation(says, deployments)), NOW))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(drained(2 * HOUR), ["v1"], id="drained"),
        pytest.param(drained(HOUR), [], id="just drained"),
        pytest.param(version("v1", S.DRAINING, first_activated_at=ago(DAY)), [], id="draining"),
        pytest.param(version("v1"), [], id="inactive"),
    ],
)
def test_version_of_an_unread_cluster(known: Version, expected: list[str]) -> None:
    assert due(known, None) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(drained(2 * HOUR), ["v1"], id="drained"),
        pytest.param(drained(HOUR), [], id="just drained"),
        pytest.param(version("v1"), ["v1"], id="inactive"),
        pytest.param(None, [], id="not registered, so it has no workflow to count"),
    ],
)
def test_version_with_pods(known: Version | None, expected: list[str]) -> None:
    assert due(known, [live("v1", 2), live("v3")]) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(drained(26 * HOUR), ["v1"], id="drained past both delays"),
        pytest.param(version("v1", created_at=ago(26 * HOUR)), ["v1"], id="inactive for long"),
    ],
)
def test_deployment_at_zero_that_would_be_dropped(known: Version, expected: list[str]) -> None:
    assert due(known, [live("v1", 0, protected=False), live("v3")]) == expected


def test_deployment_that_lives_on_another_server_is_not_counted_on_this_one() -> None:
    elsewhere = replace(SPEC, connection=replace(SPEC.connection, host_port="elsewhere:7233"))
    world = situation(temporal(version("v3"), drained(2 * HOUR)), [live("v1", 2)])
    assert versions_to_count(elsewhere, worker_world(elsewhere, world), NOW + MINUTE) == ()
