"""What of an installation would bite, by what was read of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import SPEC, live, routing, situation, temporal, version
from tests.strategies import NOW
from twgen.model.diagnosis import ArgoInstallation, Finding, Installation, Plugin, Severity
from twgen.model.operator import Caller, Operator
from twgen.model.plan import Plan
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import World
from twgen.planning.diagnosis.argocd import version_of
from twgen.planning.diagnosis.findings import findings
from twgen.planning.plan import make_plan

S = VersionStatus
WELL = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
ME = Caller("me", forced=True)


def plugin_of(image: str) -> Plugin:
    return Plugin(image, "system:serviceaccount:argocd:argocd-repo-server", has_token=True)


def world_of(says: WorkerDeployment = WELL) -> World:
    return situation(says, [live("v3")])


def found(installation: Installation = Installation(), says: WorkerDeployment = WELL) -> list[Finding]:  # noqa: B008 - frozen
    world = world_of(says)
    return list(findings(installation, make_plan([SPEC], world, NOW, ME), world, Operator()))


def test_installation_without_anything_wrong_has_no_finding() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("ahead", "says"),
    [
        (timedelta(seconds=20), []),
        (timedelta(minutes=5), ["the API server's clock is 5m ahead of this one"]),
        (-timedelta(minutes=5), ["the API server's clock is 5m behind this one"]),
    ],
)
def test_clocks_that_are_apart_are_told(ahead: timedelta, says: list[str]) -> None:
    assert [one.says for one in found(Installation(clock_ahead=ahead))] == says


@pytest.mark.parametrize(("number", "severity"), [(89, None), (90, Severity.ADVICE), (100, Severity.PROBLEM)])
def test_namespace_that_is_nearly_full_of_worker_deployments_is_told(
    number: int, severity: Severity | None
) -> None:
    told = found(Installation(worker_deployments={("temporal:7233", "default"): number}))
    assert [one.severity for one in told] == ([severity] if severity else [])


def test_server_that_is_too_old_is_told_with_the_one_that_is_not() -> None:
    [one] = found(says=replace(WELL, server_version="1.28.0"))
    assert (one.severity, one.says) == (Severity.PROBLEM, "it is 1.28.0")
    assert one.remedy == "upgrade it to 1.29.1 or newer"


def test_so_many_workers_that_a_look_is_slow_are_told() -> None:
    world = world_of()
    [worker] = make_plan([SPEC], world, NOW, ME).workers
    many = Plan(NOW, tuple(worker for _ in range(2000)), ())
    told = findings(Installation(), many, world, Operator())
    assert "2000 workers are read within its rate limit in 44s at best" in {one.says for one in told}


def test_problems_come_before_advice() -> None:
    installation = Installation(
        clock_ahead=timedelta(hours=1), worker_deployments={("temporal:7233", "default"): 95}
    )
    assert [one.severity for one in found(installation)] == [Severity.PROBLEM, Severity.ADVICE]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("v3.2.6", (3, 2, 6)), ("1.29.1-rc1", (1, 29, 1)), ("latest", ()), ("2.14", (2, 14))],
)
def test_version_is_read_as_its_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version_of(text) == numbers


SHOP, DIGEST = "registry.example.com:5000/tools/twgen", f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("jobs", "plugin", "is_told"),
    [
        (f"{SHOP}:0.1.0", f"{SHOP}:0.1.0", False),
        (f"{SHOP}:0.1.0", f"{SHOP}:0.1.0@{DIGEST}", False),
        (f"{SHOP}@{DIGEST}", f"{SHOP}:0.1.0", False),
        (f"{SHOP}:0.1.0", f"{SHOP}:0.2.0", True),
        (f"{SHOP}@{DIGEST}", f"{SHOP}@sha256:{'b' * 64}", True),
        (f"{SHOP}:0.1.0", "other.example.com/twgen:0.1.0", True),
    ],
)
def test_images_of_plugin_and_jobs_are_compared_by_what_both_have(
    jobs: str,
    plugin: str,
    is_told: bool,  # noqa: FBT001
) -> None:
    world = world_of()
    installation = Installation(argocd=ArgoInstallation("v3.2.6", plugin_of(plugin), {}))
    told = findings(installation, make_plan([SPEC], world, NOW, ME), world, Operator(rollout_image=jobs))
    assert bool(told) is is_told


@pytest.mark.parametrize(
    ("excluded", "is_told"),
    [(".git", True), ("**/.git/**;docs", True), ("**/.github/**;**/.gitignore", False), ("", False)],
)
def test_commits_are_hidden_by_the_folder_of_git_alone(excluded: str, is_told: bool) -> None:  # noqa: FBT001
    settings = {"reposerver.plugin.tar.exclusions": excluded}
    assert bool(found(Installation(argocd=ArgoInstallation("v3.2.6", None, settings)))) is is_told
