"""What of an installation would bite, by what was read of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import SPEC, live, routing, situation, temporal, version
from tests.strategies import NOW
from twgen.model.diagnosis import (
    Account,
    ArgoInstallation,
    Finding,
    Installation,
    Need,
    Plugin,
    Right,
    Seen,
    Severity,
    TickInstallation,
)
from twgen.model.operator import Caller, Operator
from twgen.model.plan import Plan
from twgen.model.temporal import VersionStatus, WorkerDeployment
from twgen.model.world import World
from twgen.planning.diagnosis.argocd import is_looked_after, seconds_of, version_of
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


@pytest.mark.parametrize(("remembers", "number"), [(True, 1), (False, 0)])
def test_manifest_that_is_nowhere_is_told_only_where_git_was_read(remembers: bool, number: int) -> None:  # noqa: FBT001
    says = temporal(version("v3", S.CURRENT), version("v2", S.DRAINING), traffic=routing("v3"))
    told = [one.says for one in found(Installation(remembers=remembers), says)]
    assert len([says for says in told if says.startswith("v2 has no manifest to render")]) == number


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


@pytest.mark.parametrize(
    ("number", "status", "severity"),
    [
        (89, S.DRAINING, None),
        (90, S.DRAINING, Severity.ADVICE),
        (100, S.DRAINING, Severity.PROBLEM),
        (100, S.DRAINED, None),  # a server deletes the oldest of these by itself
    ],
)
def test_worker_that_is_nearly_full_of_versions_that_stay_is_told(
    number: int, status: VersionStatus, severity: Severity | None
) -> None:
    others = [version(f"old-{index}", status) for index in range(number - 1)]
    says = temporal(version("v3", S.CURRENT), *others, traffic=routing("v3"))
    told = [one for one in found(says=says) if "open workflows or pods" in one.says]
    assert [one.severity for one in told] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("age", "problem", "is_told"),
    [
        (timedelta(seconds=20), "waits (ContainerCreating)", False),
        (timedelta(seconds=20), "waits (PodInitializing)", False),
        (timedelta(minutes=5), "waits (ContainerCreating)", True),
        (timedelta(seconds=20), "waits (ErrImagePull: not found)", True),
    ],
)
def test_pod_of_a_rollout_has_a_minute_to_start(age: timedelta, problem: str, is_told: bool) -> None:  # noqa: FBT001
    stuck = {"shop/pay": Seen("Pod shop/pay-rollout-x", problem, NOW - age)}
    assert bool(found(Installation(stuck=stuck))) is is_told
    argocd = ArgoInstallation("v3.2.6", None, pods=(stuck["shop/pay"],))
    assert bool(found(Installation(argocd=argocd))) is is_told


@pytest.mark.parametrize(("minutes", "is_told"), [(5, False), (15, True)])
def test_intent_that_no_job_has_worked_on_is_told_after_some_minutes(minutes: int, is_told: bool) -> None:  # noqa: FBT001
    jobless = {"shop/pay": NOW - timedelta(minutes=minutes)}
    told = found(Installation(jobless=jobless, applications={"shop/pay": "argocd/pay"}))
    assert [one.says for one in told] == ["its intent is 15m old, and no Job has worked on it"] * is_told
    assert [one.remedy for one in told] == ["apply it once more: `argocd app sync argocd/pay`"] * is_told


def test_rollout_that_fails_is_told_in_its_own_words() -> None:
    [one] = found(Installation(failing={"shop/pay": "Temporal answers PermissionDenied"}))
    assert one.says == "its rollout fails: Temporal answers PermissionDenied"


def test_look_of_tick_that_takes_longer_than_its_pause_is_told() -> None:
    world = world_of()
    [worker] = make_plan([SPEC], world, NOW, ME).workers
    many = Plan(NOW, tuple(worker for _ in range(1000)), ())
    account = "system:serviceaccount:twgen:twgen-tick"
    for every, is_told in ((timedelta(seconds=10), True), (timedelta(minutes=1), False)):
        tick = TickInstallation("Deployment twgen/twgen-tick", "twgen:1", account, every=every)
        told = findings(Installation(tick=tick), many, world, Operator())
        assert (
            "tick looks every 10s: what changes is seen later" in {one.because for one in told}
        ) is is_told


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1m30s", 90), ("500ms", 0.5), ("", None), ("soon", None), ("1m?", None)],
)
def test_length_of_a_setting_is_read_as_seconds(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("settings", "namespace", "is_ours"),
    [
        (None, "elsewhere", True),  # nobody knows
        ({}, "argocd", True),
        ({}, "elsewhere", False),
        ({"application.namespaces": "team-*,shop"}, "team-a", True),
        ({"application.namespaces": "team-*,shop"}, "shops", False),
        ({"application.namespaces": "/^team-(a|b)$/"}, "team-b", True),
        ({"application.namespaces": "/(/"}, "team-b", False),
    ],
)
def test_applications_are_those_of_the_namespaces_that_argocd_looks_after(
    settings: dict[str, str] | None,
    namespace: str,
    is_ours: bool,  # noqa: FBT001
) -> None:
    assert is_looked_after(namespace, ArgoInstallation("v3.2.6", None, settings)) is is_ours


def test_account_that_is_no_service_account_is_given_a_right_by_its_name() -> None:
    need = Need(Account("jo o@example.com"), "", Right("list", "", "pods"), "nobody", Severity.ADVICE)
    [one] = found(Installation(refusals=(need,)))
    assert one.says == "this account may not list pods in all namespaces"
    assert one.remedy == (
        "`kubectl create clusterrole twgen-list-pods --verb=list --resource=pods && kubectl create"
        " clusterrolebinding twgen-list-pods --clusterrole=twgen-list-pods --user='jo o@example.com'`"
    )
