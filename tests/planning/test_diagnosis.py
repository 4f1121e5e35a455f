"""What of an installation would bite, by what was read of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import SPEC, live, mark, routing, serving, situation, temporal, version
from tests.planning.times import MINUTE, ago
from tests.strategies import NOW, STEPS, with_policy
from twgen.model.diagnosis import (
    Account,
    ArgoApplication,
    ArgoInstallation,
    DoctorFinding,
    Installation,
    Need,
    Plugin,
    Right,
    Seen,
    Severity,
    TickInstallation,
)
from twgen.model.draining import BatchAction, DrainingAction, DrainingEntry
from twgen.model.operator import Caller, Operator, RolloutPod, TickSettings
from twgen.model.policy import PolicyStep
from twgen.model.rollout import Driver
from twgen.model.spec import Gate, Rollout, Strategy, WorkerSpec
from twgen.model.temporal import GateRun, GateStatus, OtherWorker, Version, VersionStatus, WorkerDeployment
from twgen.model.world import World
from twgen.planning.diagnosis.argocd import is_managed, of_hooks, seconds_of
from twgen.planning.diagnosis.findings import findings
from twgen.planning.diagnosis.rights import needs_of_tick
from twgen.planning.plan import make_plan
from twgen.planning.version_status import release_of
from twgen.versioning.names import MarkKey

S = VersionStatus
WELL = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
ME = Caller("me", forced=True)
ENTRY = DrainingEntry(timedelta(days=1), DrainingAction(BatchAction.CANCEL))


def plugin_of(image: str) -> Plugin:
    return Plugin(image, "system:serviceaccount:argocd:argocd-repo-server", has_token=True)


def world_of(says: WorkerDeployment | None = WELL) -> World:
    return serving(says, "v3")


NOTHING = Installation()


def found_in(
    world: World, spec: WorkerSpec = SPEC, installation: Installation = NOTHING, caller: Caller = ME
) -> tuple[DoctorFinding, ...]:
    return findings(installation, make_plan([spec], world, NOW, caller), world, Operator())


def found(
    installation: Installation = NOTHING,
    says: WorkerDeployment | None = WELL,
    *,
    workers: int = 1,
    image: str = "",
) -> list[DoctorFinding]:
    """What is found with so many workers that are all in this state."""
    world = world_of(says)
    plan = make_plan([SPEC], world, NOW, ME)
    many = replace(plan, workers=plan.workers * workers)
    return list(findings(installation, many, world, Operator(rollout=RolloutPod(image=image))))


@pytest.mark.parametrize(("remembers", "number"), [(True, 1), (False, 0)])
def test_manifest_that_is_nowhere_is_told_only_where_git_was_read(number: int, *, remembers: bool) -> None:
    says = temporal(version("v3", S.CURRENT), version("v2", S.DRAINING), traffic=routing("v3"))
    told = [one.says for one in found(Installation(remembers=remembers), says)]
    assert len([says for says in told if says.startswith("v2 has no manifest to render")]) == number


def test_installation_without_anything_wrong_has_no_finding() -> None:
    assert found() == []
    assert found(says=None) == [], "a new worker"


GATED = replace(SPEC, rollout=Rollout(Strategy.PROGRESSIVE, STEPS, Gate("Smoke")))


def told_of(target: Version | None, *others: OtherWorker, spec: WorkerSpec = GATED) -> list[str]:
    ramping = ("v3", 5.0) if target and target.status is S.RAMPING else None
    known = [version("v1", S.CURRENT), *([target] if target else [])]
    says = temporal(*known, traffic=routing("v1", ramping))
    told = found_in(serving(says, other_workers=others), spec)
    assert {one.severity for one in told} <= {Severity.PROBLEM}
    return [one.says for one in told]


def gate(status: GateStatus, failure: str = "") -> Version:
    run = GateRun("main", "test-shop/payments:v3-main", status, ago(MINUTE), failure)
    return version(gate_runs=(run,))


def test_worker_that_may_poll_by_another_name_is_told_and_one_that_has_yet_to_poll_is_not() -> None:
    [says] = told_of(None, OtherWorker("payments", "v7"))
    assert "Temporal has Worker Deployment payments: does the worker take its deployment name" in says
    assert told_of(None) == []


def test_gate_that_failed_or_whose_tasks_fail_is_told_and_one_that_runs_is_not() -> None:
    [failed] = told_of(gate(GateStatus.FAILED, "no such shop"))
    assert "ended as Failed: test-shop/payments:v3-main (no such shop)" in failed
    [failing] = told_of(gate(GateStatus.RUNNING, "Smoke is not registered"))
    assert "all of its workflow tasks fail (Smoke is not registered)" in failing
    assert told_of(gate(GateStatus.RUNNING)) == told_of(gate(GateStatus.COMPLETED)) == []


@pytest.mark.parametrize(
    ("pod_problem", "is_told"),
    [
        ("crashes (Error, exit code 3)", True),
        ("crashes (Error, exit code 3) and waits (CrashLoopBackOff)", True),
        ("waits (ImagePullBackOff: manifest unknown)", True),
        ("waits (ContainerCreating)", False),
        ("has no node (Unschedulable: 0/3 nodes are available)", False),
    ],
)
def test_target_whose_newest_pod_cannot_run_is_told_before_its_deadline(
    pod_problem: str, *, is_told: bool
) -> None:
    starting = live("v3")
    starting["status"] = {"replicas": 3, "unavailableReplicas": 3}
    says, problems = temporal(version("v1", S.CURRENT), traffic=routing("v1")), {"v3": pod_problem}
    told = found_in(situation(says, [starting, live("v1")], pod_problems=problems))
    assert [f"newest Pod {pod_problem}" in one.says for one in told] == [True] * is_told
    assert not found_in(serving(WELL, "v3", pod_problems=problems)), "it serves"


@pytest.mark.parametrize("key", [MarkKey.ABORTED, MarkKey.PAUSED])
def test_ramp_that_a_rollout_stopped_is_told_and_what_a_person_decided_is_not(key: MarkKey) -> None:
    by_itself = mark(because="the gate Smoke before 25% ended as Failed")
    [says] = told_of(version(metadata={key: by_itself}))
    assert "(the gate Smoke before 25% ended as Failed)" in says
    assert told_of(version(metadata={key: mark()})) == []


def test_gate_of_a_step_that_failed_is_told_before_its_ramp_is_taken_back() -> None:
    policy = replace(SPEC.policy, steps=(PolicyStep(33.3, gate="Load"),))
    run = GateRun("main", "test@33.3-shop/payments:v3-main", GateStatus.FAILED, ago(MINUTE))
    spec = replace(GATED, rollout=replace(GATED.rollout, gate=None), policy=policy)
    [says] = told_of(version(status=S.RAMPING, gate_runs=(run,)), spec=spec)
    assert says.startswith("the gate Load before 33.3% on task queue main ended as Failed")


@pytest.mark.parametrize(
    ("ahead", "says"),
    [
        (timedelta(seconds=20), []),
        (timedelta(minutes=5), ["the API server's clock is 5m ahead of this machine's clock"]),
        (-timedelta(minutes=5), ["the API server's clock is 5m behind this machine's clock"]),
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
    assert (one.severity, one.says) == (Severity.PROBLEM, "its version is 1.28.0")
    assert one.remedy == "upgrade it to 1.29.1 or newer"


def test_so_many_workers_that_a_look_is_slow_are_told() -> None:
    told = {one.says for one in found(workers=2000)}
    assert "reading 2000 workers takes at least 44s, because of its rate limit" in told


def test_problems_come_before_advice() -> None:
    installation = Installation(
        clock_ahead=timedelta(hours=1), worker_deployments={("temporal:7233", "default"): 95}
    )
    assert [one.severity for one in found(installation)] == [Severity.PROBLEM, Severity.ADVICE]


def test_version_and_length_are_read_as_numbers() -> None:
    versions = {"v3.6.1": (3, 6, 1), "1.29.1-rc1": (1, 29, 1), "latest": (), "2.14": (2, 14)}
    assert {text: release_of(text) for text in versions} == versions
    lengths = {"90": 90, "90s": 90, "1m30s": 90, "500ms": 0.5, "": None, "soon": None, "1m?": None}
    assert {text: seconds_of(text) for text in lengths} == lengths


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
    jobs: str, plugin: str, *, is_told: bool
) -> None:
    installation = Installation(argocd=ArgoInstallation("v3.6.1", plugin_of(plugin), {}))
    assert bool(found(installation, image=jobs)) is is_told


@pytest.mark.parametrize(
    ("excluded", "is_told"),
    [(".git", True), ("**/.git/**;docs", True), ("**/.github/**;**/.gitignore", False), ("", False)],
)
def test_commits_are_hidden_by_the_folder_of_git_alone(excluded: str, *, is_told: bool) -> None:
    settings = {"reposerver.plugin.tar.exclusions": excluded}
    assert bool(found(Installation(argocd=ArgoInstallation("v3.6.1", None, settings)))) is is_told


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
    ("minutes", "problem", "remedy"),
    [
        (0.9, "waits (ContainerCreating)", ""),
        (0.9, "waits (PodInitializing)", ""),
        (5, "waits (ContainerCreating)", "once this is fixed, Kubernetes continues"),
        (0.9, "waits (ErrImagePull: not found)", "correct rollout.image"),
        (
            0.9,
            "has no node (Unschedulable: 0/3 nodes are available)",
            "once this is fixed, Kubernetes continues",
        ),
    ],
)
def test_pod_of_a_rollout_has_a_minute_to_start(minutes: float, problem: str, remedy: str) -> None:
    stuck, is_told = (
        {"shop/pay": Seen("Pod shop/pay-rollout-x", problem, NOW - minutes * MINUTE)},
        bool(remedy),
    )
    told = found(Installation(stuck=stuck))
    assert [one.remedy.startswith(remedy) for one in told] == [True] * is_told
    argocd = ArgoInstallation("v3.6.1", None, pods=(stuck["shop/pay"],))
    assert bool(found(Installation(argocd=argocd))) is is_told


@pytest.mark.parametrize(("minutes", "is_told"), [(5, False), (15, True)])
def test_intent_that_no_job_has_worked_on_is_told_after_some_minutes(minutes: int, *, is_told: bool) -> None:
    jobless = {"shop/pay": NOW - timedelta(minutes=minutes)}
    told = found(Installation(jobless=jobless, applications={"shop/pay": "argocd/pay"}))
    assert [one.says for one in told] == ["its intent is 15m old, but no Job has run for it"] * is_told
    assert [one.remedy for one in told] == ["apply the intent again: `argocd app sync argocd/pay`"] * is_told


@pytest.mark.parametrize("tick_takes_over", [True, False])
def test_hook_that_argocd_skipped_is_told_with_the_command_that_runs_it(*, tick_takes_over: bool) -> None:
    skipped = {"shop/pay": tick_takes_over}
    tick = TICK._replace(may=TickSettings(rollouts=True))
    [told] = found(Installation(skipped=skipped, applications={"shop/pay": "argocd/pay"}, tick=tick))
    assert told.says == "Argo CD applied this commit without its hooks"
    assert told.because == f"its traffic is not moving{' until tick takes over' * tick_takes_over}"
    assert told.remedy == "run its hook: `argocd app sync argocd/pay`"


@pytest.mark.parametrize(
    ("argocd", "is_told"),
    [("v3.6.1", True), ("v3.5.2", True), ("", True), ("v3.5.1", False), ("v3.5.0", False), ("v3.4.8", False)],
)
def test_hooks_that_argocd_may_skip_are_told_where_nobody_takes_them_over(
    argocd: str, *, is_told: bool
) -> None:
    hooked = with_policy(SPEC, driver=Driver.HOOK)
    installed = ArgoInstallation(argocd, None)
    for spec, may, expected in (
        (hooked, None, is_told),
        (hooked, TickSettings(rollouts=False), is_told),
        (hooked, TickSettings(rollouts=True), False),
        (SPEC, None, False),
    ):
        tick = TickInstallation("Deployment twgen/twgen-tick", "twgen:1", "", may=may) if may else None
        plan = make_plan([spec], situation(temporal()), NOW, ME)
        told = [*of_hooks(installed, plan, tick)]
        assert len(told) == expected
        assert all(one.severity is Severity.ADVICE and argocd in one.says for one in told)


@pytest.mark.parametrize(("minutes", "is_told"), [(5, False), (15, True)])
def test_application_that_argocd_does_not_look_at_any_more_is_told(minutes: int, *, is_told: bool) -> None:
    since = NOW - timedelta(minutes=minutes)
    stuck = ArgoApplication("argocd/pay", "twgen", True, True, True, False, asked_since=since)  # noqa: FBT003
    told = found(Installation(argocd=ArgoInstallation("v3.6.1", plugin_of("twgen:1"), {}, (stuck,))))
    says = "Argo CD was asked 15m ago to refresh it, but has not done so"
    assert [one.says for one in told if one.about == "Application argocd/pay"] == [says] * is_told


def test_rollout_that_fails_or_whose_job_ran_for_a_deleted_intent_is_told() -> None:
    [told] = found(Installation(failing={"shop/pay": "Temporal answers PermissionDenied"}))
    assert told.says == "its rollout fails: Temporal answers PermissionDenied"
    [told] = found(Installation(outdated_jobs={"shop/pay": "pay-rollout-1"}))
    assert (told.about, told.severity) == ("shop/pay", Severity.PROBLEM)
    assert told.remedy.startswith("run `kubectl delete job pay-rollout-1 -n shop`")


def test_look_of_tick_that_takes_longer_than_its_pause_is_told() -> None:
    account = "system:serviceaccount:twgen:twgen-tick"
    at_45_a_second = timedelta(seconds=1000 / 45)
    for every, is_told in ((at_45_a_second - timedelta(seconds=1), True), (at_45_a_second, False)):
        tick = TickInstallation("Deployment twgen/twgen-tick", "twgen:1", account, every=every)
        told = [one.because for one in found(Installation(tick=tick), workers=1000)]
        assert told == ["tick should check these workers every 21s, so it notices changes late"] * is_told


TICK = TickInstallation(
    "Deployment twgen/twgen-tick", "", "a:b:twgen:twgen-tick", namespace="", may=TickSettings(drains=True)
)
IS_LOOKED_AT = Installation(tick=TICK, intents=frozenset({SPEC.worker_deployment}))
OURS = replace(WELL, manager_identity="twgen/me")


def lacking_to_drain(
    installation: Installation, says: WorkerDeployment = OURS, field: str = "draining"
) -> list[str]:
    """What doctor says against the draining of a policy, or against another field."""
    policy = replace(SPEC.policy, draining=(ENTRY,), keep_records=20)
    told = found_in(world_of(says), replace(SPEC, policy=policy), installation, Caller("twgen/me"))
    head = f"its policy's `{field}` has no effect: "
    assert all(one.severity is Severity.ADVICE for one in told if head in one.says)
    return [one.says.removeprefix(head) for one in told if one.says.startswith(head)]


@pytest.mark.parametrize(
    ("tick", "lacks"),
    [
        (None, "there is no `twgen tick` in the cluster"),
        (TICK._replace(may=TickSettings()), "Deployment twgen/twgen-tick is not allowed to end workflows"),
        (TICK._replace(namespace="other"), "Deployment twgen/twgen-tick only watches namespace other"),
        (TICK._replace(may=None), ""),
        (TICK, ""),
    ],
)
def test_draining_that_tick_does_not_carry_out_is_told(tick: TickInstallation | None, lacks: str) -> None:
    assert lacking_to_drain(replace(IS_LOOKED_AT, tick=tick)) == [lacks] * bool(lacks)


@pytest.mark.parametrize(
    ("may", "lacks"),
    [
        (TickSettings(drains=True), ["Deployment twgen/twgen-tick is not allowed to delete old versions"]),
        (TickSettings(forgets=True), []),
        (None, []),
    ],
)
def test_records_that_tick_may_not_delete_are_told(may: TickSettings | None, lacks: list[str]) -> None:
    installation = replace(IS_LOOKED_AT, tick=TICK._replace(may=may))
    assert lacking_to_drain(installation, field="keepRecords") == lacks


@pytest.mark.parametrize(
    ("tick", "lacks"),
    [
        (None, "there is no `twgen tick` in the cluster"),
        (TICK, "Deployment twgen/twgen-tick is not allowed to carry out rollouts"),
        (TICK._replace(may=TickSettings(rollouts=True)), ""),
    ],
)
def test_rollout_that_tick_does_not_carry_out_is_a_problem(tick: TickInstallation | None, lacks: str) -> None:
    world, installation = world_of(replace(WELL, manager_identity="")), replace(IS_LOOKED_AT, tick=tick)
    told = found_in(world, with_policy(SPEC, driver=Driver.TICK), installation)
    head = "its policy's `driver` has no effect: "
    says = [(one.severity, one.says) for one in told if one.says.startswith(head)]
    assert says == ([(Severity.PROBLEM, f"{head}{lacks}")] if lacks else [])


@pytest.mark.parametrize(
    ("driver", "may", "severity"),
    [
        (Driver.JOB, True, None),
        (Driver.TICK, False, Severity.PROBLEM),
        (Driver.HOOK, True, Severity.ADVICE),
        (Driver.HOOK, False, None),
    ],
)
def test_tick_needs_to_patch_deployments_only_where_it_may_carry_out_rollouts(
    driver: Driver, severity: Severity | None, *, may: bool
) -> None:
    tick = TICK._replace(namespace=None, may=TickSettings(rollouts=may))
    patch = Right("patch", "apps", "deployments")
    needed = [need.severity for need in needs_of_tick(tick, {"shop": {driver}}) if need.right == patch]
    assert needed == ([severity] if severity else [])


def test_tick_gets_its_rights_in_the_namespace_that_it_runs_in() -> None:
    tick = TICK._replace(account="system:serviceaccount:tools:twgen-tick")
    assert all("/namespace: tools/" in need.account.remedy for need in needs_of_tick(tick, {"shop": set()}))


def test_draining_of_a_worker_without_intent_or_manager_is_told() -> None:
    without_intent = "it has no intent in the cluster, so tick does not know it"
    assert lacking_to_drain(replace(IS_LOOKED_AT, intents=frozenset())) == [without_intent]
    unmanaged = replace(WELL, manager_identity="")
    assert lacking_to_drain(IS_LOOKED_AT, unmanaged) == ["no manager identity is set in Temporal"]


def test_what_was_not_looked_at_says_nothing_against_draining() -> None:
    assert lacking_to_drain(Installation()) == []
    not_checked = {"tick": "it may not be asked"}
    assert lacking_to_drain(replace(IS_LOOKED_AT, tick=None, not_checked=not_checked)) == []
    assert [one.says for one in found(replace(IS_LOOKED_AT, tick=None))] == [], "no policy drains"


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
    settings: dict[str, str] | None, namespace: str, *, is_ours: bool
) -> None:
    assert is_managed(namespace, ArgoInstallation("v3.6.1", None, settings)) is is_ours


@pytest.mark.parametrize(
    ("remedy", "lacks"),
    [
        ("apply its role", ["list pods, list and delete jobs.batch"]),
        ("", ["list pods", "list and delete jobs.batch"]),
    ],
)
def test_rights_that_one_remedy_grants_are_told_together(remedy: str, lacks: list[str]) -> None:
    account = Account("jo", remedy=remedy)
    rights = (Right("list", "", "pods"), Right("list", "batch", "jobs"), Right("delete", "batch", "jobs"))
    needs = tuple(Need(account, "shop", right, "nobody", Severity.ADVICE) for right in rights)
    says = [one.says for one in found(Installation(refusals=needs))]
    assert says == [f"this account is not allowed to {lack} in shop" for lack in lacks]


def test_account_that_is_no_service_account_is_given_a_right_by_its_name() -> None:
    need = Need(Account("jo o@example.com"), "", Right("list", "", "pods"), "nobody", Severity.ADVICE)
    [one] = found(Installation(refusals=(need,)))
    assert one.says == "this account is not allowed to list pods in all namespaces"
    assert one.remedy == (
        "`kubectl create clusterrole twgen-list-pods --verb=list --resource=pods && kubectl create"
        " clusterrolebinding twgen-list-pods --clusterrole=twgen-list-pods --user='jo o@example.com'`"
    )
