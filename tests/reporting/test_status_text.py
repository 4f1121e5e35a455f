"""The tree of `twgen status`, as it stands on a terminal."""

from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest
from rich.text import Text

from tests.planning.situations import (
    MAIN,
    MINUTE,
    NOW,
    RAMPS,
    SPEC,
    drained,
    live,
    routing,
    situation,
    temporal,
    version,
)
from tests.reporting.statuses import of_situation, of_story, tree
from tests.strategies import AUTOSCALER, BUDGET
from twgen.model.operator import Caller, GroupKind
from twgen.model.rollout import Driver
from twgen.model.spec import Gate
from twgen.model.status import Status
from twgen.model.temporal import GateRun, GateStatus, TaskQueue, TaskQueueType
from twgen.model.temporal import VersionStatus as S
from twgen.planning.cluster_changes import AttachedInCluster, Condition
from twgen.planning.plan import make_plan
from twgen.planning.worker_status import AttachedRead, make_status, rollout_status
from twgen.records.rollout_status import STATUS
from twgen.reporting.page.pages import fleet_page
from twgen.reporting.status.lines import status_lines
from twgen.versioning.names import ATTACHED, attached_resource_name

ITS_OBJECTS = [
    (resource.template["kind"], attached_resource_name("payments", resource.name, "v3"))
    for resource in (BUDGET, AUTOSCALER)
]
TREES = {
    "mid-ramp-waits": """
        … shop/payments  Waiting  Temporal namespace default
          target   v2.0.1-c656: it stays at 25% for 18m more
          next     send 75% of new workflows to v2.0.1-c656 in 18m (12:18:00 UTC)
          manager  twgen/payments/prod-eu (ours)
        ├── v2.0.1-c656  25%  Ramping for 12m  3/3 pods  ◀ target
        └── v1.4.2-6964  75%  Current for 24h  3/3 pods
        """,
    "mid-ramp": """
        → shop/payments  Moving  Temporal namespace default
          target   v2.0.1-c656: its pause of 30m at 25% is over
          next     send 75% of new workflows to v2.0.1-c656 now
          manager  twgen/payments/prod-eu (ours)
        ├── v2.0.1-c656  25%  Ramping for 31m  3/3 pods  ◀ target
        └── v1.4.2-6964  75%  Current for 24h  3/3 pods
        """,
    "drained-goes-to-zero": """
        ✓ shop/payments  Settled  Temporal namespace default
          target   v2.0.1-c656: it is current and nothing ramps
          manager  twgen/payments/prod-eu (ours)
        ├── v2.0.1-c656  100%  Current for 24h  3/3 pods  ◀ target
        └── v1.4.2-6964        Drained 2h ago   3/3 pods
              will be scaled from 3 to 0: it has been drained for 2h, longer than
              scaledownDelay (1h)
        """,
    "gate-failed": """
        ✗ shop/payments  Blocked (GateFailed)  Temporal namespace default
          target   v2.0.1-c656: the gate on task queue payments ended as Failed:
                   test-shop/payments:v2.0.1-c656-payments; to continue, run `twgen
                   retry` or commit a new build
          gate     SmokeTest: failed on payments
          manager  twgen/payments/prod-eu (ours)
        ├── v2.0.1-c656        Inactive for 72h  3/3 pods  ◀ target
        └── v1.4.2-6964  100%  Current for 24h   3/3 pods
        """,
    "new-version": """
        … shop/payments  Waiting  Temporal namespace default
          target   v2.0.1-c656: it has no Deployment yet: apply the output of `twgen
                   render`
          manager  twgen/payments/prod-eu (ours)
        ├── v2.0.1-c656        Not registered   no Deployment  ◀ target
        │     will be created with 3 pods
        └── v1.4.2-6964  100%  Current for 24h  3/3 pods
        """,
    "foreign-owner": """
        ✗ shop/payments  Blocked (ForeignManager)  Temporal namespace default
          target   v2.0.1-c656: its manager is temporal-worker-controller/prod. To take
                   it over, run `twgen ownership claim --from
                   temporal-worker-controller/prod`, or add this manager to
                   spec.adoptFrom of a RolloutPolicy
          manager  temporal-worker-controller/prod (another manager)
        ├── v2.0.1-c656        Inactive for 72h  3/3 pods  ◀ target
        └── v1.4.2-6964  100%  Current for 24h   3/3 pods
        """,
    "open-workflows-on-a-drained-version": """
        ✓ shop/payments  Settled  Temporal namespace default
          target   v2.0.1-c656: it is current and nothing ramps
          manager  twgen/payments/prod-eu (ours)
        ├── v2.0.1-c656  100%  Current for 24h                   3/3 pods  ◀ target
        └── v1.4.2-6964        Drained 2h ago, 4 open workflows  3/3 pods
        """,
}


@pytest.mark.parametrize("story", TREES)
def test_tree_of_a_story(story: str) -> None:
    assert "\n" + tree(of_story(story)) == dedent(TREES[story])


def test_tree_in_ascii_stands_at_the_same_places() -> None:
    told = of_story("mid-ramp-waits")
    plain = tree(told, ascii_only=True)
    assert plain.isascii()
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in tree(told).splitlines()]
    assert plain.splitlines()[4:] == [
        "+-- v2.0.1-c656  25%  Ramping for 12m  3/3 pods  < target",
        "`-- v1.4.2-6964  75%  Current for 24h  3/3 pods",
    ]


def test_colour_adds_nothing_but_colour() -> None:
    told = of_story("superseded-version")
    coloured = tree(told, colour=True)
    assert "\x1b[" in coloured
    assert [line.plain.rstrip() for line in Text.from_ansi(coloured).split()] == tree(told).splitlines()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"terminating": True}, "its Deployment is being deleted"),
        ({"paused": True}, "its Deployment is paused: kubectl rollout resume deployment/payments-v3 -n shop"),
        ({"stalled": "quota exceeded"}, "its Deployment cannot progress: quota exceeded"),
    ],
)
def test_what_keeps_pods_from_running_is_told(changes: dict[str, Any], said: str) -> None:
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
    status = of_situation(situation(says, [live("v3")]))
    (worker,) = status.workers
    (target,) = worker.versions
    assert target.pods
    broken = replace(target, pods=replace(target.pods, **changes))
    told = replace(status, workers=(replace(worker, versions=(broken,)),))
    assert f"└── v3  100%  Current for 24h  3/3 pods  ◀ target\n      {said}\n" in tree(told, width=120)
    assert any(said in line.text for line in status_lines(told))
    (document,) = STATUS.write(told)["workers"]
    ((field, value),) = changes.items()
    assert document["versions"][0]["pods"][field] == value


def test_why_the_newest_pod_does_not_run_is_told() -> None:
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
    world = situation(says, [live("v3")])
    problem = {"v3": "CrashLoopBackOff: back-off 5m0s restarting failed container"}
    workers = {key: replace(worker, pod_problems=problem) for key, worker in world.workers.items()}
    status = of_situation(replace(world, workers=workers))
    assert f"its newest Pod {problem['v3']}\n" in tree(status, width=120)
    (worker,) = STATUS.write(status)["workers"]
    assert worker["versions"][0]["pods"]["problem"] == problem["v3"]


def test_several_workers_are_counted_first() -> None:
    one = of_story("mid-ramp-waits")
    told = replace(one, workers=(*one.workers, *of_story("gate-failed").workers))
    assert tree(told).splitlines()[:2] == ["2 workers: 1 Blocked, 1 Waiting", ""]


def test_cluster_that_was_not_read_is_told_once() -> None:
    says = temporal(version("v3", S.RAMPING), traffic=routing("v2", ("v3", 5)))
    told = tree(of_situation(situation(says, None)))
    assert "  pods     the cluster was not read\n" in told
    assert "will be created" not in told


def test_unversioned_workers_have_their_share() -> None:
    says = temporal(version("v3", S.RAMPING), traffic=routing(None, ("v3", 33.2999992)))
    told = tree(of_situation(situation(says, [live("v3")]), RAMPS))
    assert "v3                   33.3%" in told
    assert "└── unversioned workers  66.7%\n" in told


def test_sunset_is_told_before_it_comes() -> None:
    says = temporal(version("v3", S.CURRENT), drained(20 * MINUTE), traffic=routing("v3"))
    told = tree(of_situation(situation(says, [live("v3"), live("v1")])))
    assert "Drained 20m ago  3/3 pods\n      will be scaled to 0 in 40m\n" in told


def test_pods_that_are_not_available_are_counted() -> None:
    starting = live("v3")
    starting["status"]["availableReplicas"] = 1
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"))
    assert "1/3 pods" in tree(of_situation(situation(says, [starting])))


@pytest.mark.parametrize(
    ("facts", "caller", "owner"),
    [
        ({}, Caller("me", forced=True), "me (ours)"),
        ({}, Caller("you", forced=True), "me (another manager)"),
        ({}, Caller("twgen/joe@laptop", is_person=True), "me"),
        ({"manager_identity": ""}, Caller("me", forced=True), "no manager"),
        (
            {"last_modifier_identity": "joe@laptop"},
            Caller("me", forced=True),
            "me (ours); last changed by joe@laptop",
        ),
        ({"last_modifier_identity": "me"}, Caller("me", forced=True), "me (ours)"),
    ],
)
def test_owner_is_told_by_what_is_known(facts: dict[str, Any], caller: Caller, owner: str) -> None:
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"), **facts)
    told = tree(of_situation(situation(says, [live("v3")]), caller=caller))
    assert f"  manager  {owner}\n" in told


def test_owner_that_is_to_be_taken_over_is_told_as_such() -> None:
    spec = replace(SPEC, policy=replace(SPEC.policy, adopt_from=("controller",)))
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"), manager_identity="controller")
    told = tree(of_situation(situation(says, [live("v3")]), spec))
    assert "  manager  controller (to be taken over)\n" in told


def test_names_from_a_server_cannot_move_the_cursor() -> None:
    says = temporal(version("v3", S.CURRENT), traffic=routing("v3"), manager_identity="a\x1b[2J\nb")
    told = tree(of_situation(situation(says, [live("v3")])), colour=True)
    assert r"a\x1b[2J\nb (another manager)" in told


def test_gate_is_told_by_task_queue() -> None:
    mail = TaskQueue("mail", TaskQueueType.WORKFLOW, pollers=True)
    run = GateRun("main", "test-shop/payments:v3-main", GateStatus.RUNNING)
    spec = replace(SPEC, rollout=replace(SPEC.rollout, gate=Gate("Smoke")))
    says = temporal(
        version("v3", task_queues=(MAIN, mail), gate_runs=(run,)), version("v2"), traffic=routing("v2")
    )
    told = tree(of_situation(situation(says, [live("v3"), live("v2")]), spec), width=100)
    assert "  gate     Smoke: to be started on mail (test-shop/payments:v3-mail), running on main\n" in told
    says = replace(says, manager_identity="somebody else")
    told = tree(of_situation(situation(says, [live("v3"), live("v2")]), spec))
    assert "  gate     Smoke: not started on mail, running on main\n" in told


def test_by_hand_is_told_where_no_driver_moves_traffic() -> None:
    spec = replace(SPEC, policy=replace(SPEC.policy, driver=Driver.NONE))
    says = temporal(version("v3"), version("v2"), traffic=routing("v2"))
    told = tree(of_situation(situation(says, [live("v3"), live("v2")]), spec))
    assert "  next     make v3 current by hand\n" in told


def test_attached_objects_are_told_with_what_speaks_against_them() -> None:
    spec = replace(SPEC, attached=(AUTOSCALER, BUDGET), replicas=None)
    world = situation(
        temporal(version(status=S.CURRENT), traffic=routing("v3")),
        [live("v3", 2, annotations={ATTACHED: ",".join(f"{kind}/{name}" for kind, name in ITS_OBJECTS)})],
    )
    budget, autoscaler = (
        AttachedInCluster(GroupKind("", kind), "", "", name, "uid", frozenset()) for kind, name in ITS_OBJECTS
    )
    says = Condition("ScalingActive", "False", "FailedGetExternalMetric", "no series")
    me = Caller("me", forced=True)
    plan = make_plan([spec], world, NOW, me)

    def told(*found: AttachedInCluster) -> Status:
        return make_status(plan, world, me, {"shop": AttachedRead(found)})

    shown = tree(told(budget, replace(autoscaler, conditions=(says,))), width=100)
    assert shown.endswith(
        f"{'':6}HorizontalPodAutoscaler {autoscaler.name}: ScalingActive is False\n"
        f"{'':6}(FailedGetExternalMetric: no series)\n"
        f"{'':6}has PodDisruptionBudget {budget.name}\n"
    ), shown
    lines = [line.text for line in status_lines(told(autoscaler))]
    assert f"PodDisruptionBudget {budget.name} is missing" in "\n".join(lines)
    [worker] = STATUS.write(told(autoscaler))["workers"]
    states = {item["kind"]: item["state"] for item in worker["versions"][0]["attached"]}
    assert states == {"HorizontalPodAutoscaler": "Ready", "PodDisruptionBudget": "Missing"}
    page = fleet_page([rollout_status(told(autoscaler), NOW, "")], NOW)
    assert f"PodDisruptionBudget {budget.name}: Missing" in page
