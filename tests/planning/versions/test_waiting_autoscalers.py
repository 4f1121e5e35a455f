"""An autoscaler is rendered once Argo CD no longer sets the replicas: it would undo every decision."""

from dataclasses import replace
from typing import Any

import pytest

from tests.held_replicas import ARGOCD, HPA, ROLLOUT, HeldReplicas
from tests.planning.situations import RAMPS, live, planned, routing, situation, temporal, version
from tests.strategies import AUTOSCALER, BUDGET, BUSY_AUTOSCALER, with_policy
from twgen.model.operator import GroupKind
from twgen.model.plan import VersionPlan, WorkerVersions
from twgen.model.rollout import Driver
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.model.status import AttachedState
from twgen.model.temporal import VersionStatus
from twgen.planning.cluster_changes import AttachedInCluster, left_over, replica_changes
from twgen.planning.refresh import plan_hash
from twgen.planning.worker_status import attached_views
from twgen.versioning.names import attached_resource_name

SCALED = replace(RAMPS, attached=(AUTOSCALER, BUDGET), replicas=None)
SIZED = replace(SCALED, replicas=5)
NAME = attached_resource_name("payments", "cpu", "v3")


def versions(
    held: HeldReplicas, spec: WorkerSpec = SCALED, *, protected: bool = True, **annotations: str
) -> WorkerVersions:
    manifest = live("v3", held.number, protected=protected, managedFields=held.managed_fields())
    manifest["metadata"]["annotations"] |= {f"twgen.io/{name}": text for name, text in annotations.items()}
    says = temporal(version(status=VersionStatus.CURRENT), traffic=routing("v3"))
    return planned(situation(says, [manifest]), spec).versions


def the_version(found: WorkerVersions) -> VersionPlan:
    [only] = found.versions
    return only


def names(plan: VersionPlan) -> list[str]:
    return [item.kind for item in plan.attached]


@pytest.mark.parametrize("spec", [SCALED, SIZED], ids=["without replicas", "with replicas"])
def test_autoscaler_waits_for_the_job_to_hold_the_replicas_and_for_nothing_more(spec: WorkerSpec) -> None:
    held = HeldReplicas(2)
    before = versions(held, spec)
    plan = the_version(before)
    assert (plan.replicas, names(plan), [item.name for item in plan.waiting]) == (2, [BUDGET.kind], [NAME])
    assert "HorizontalPodAutoscaler cpu waits until Argo CD no longer sets the replicas" in plan.because
    [change] = replica_changes(before)
    held.set_by(ROLLOUT, change.replicas)
    after = versions(held, spec)
    plan = the_version(after)
    assert (plan.replicas, names(plan), plan.waiting) == (None, [AUTOSCALER.kind, BUDGET.kind], ())
    assert "wait" not in plan.because
    [view] = attached_views(the_version(before), None)[-1:]
    assert (view.name, view.state) == (NAME, AttachedState.PENDING)
    assert not list(replica_changes(after))
    assert plan_hash(before) != plan_hash(after), "tick has it rendered again"


@pytest.mark.parametrize("holders", [{HPA}, {ROLLOUT}, set(), {"kubectl"}], ids=str)
def test_autoscaler_whose_decisions_nobody_undoes_waits_for_nothing(holders: set[str]) -> None:
    assert not the_version(versions(HeldReplicas(4, holders))).waiting


def test_one_pod_is_what_a_deployment_gets_without_replicas_so_its_autoscaler_need_not_wait() -> None:
    plan = the_version(versions(HeldReplicas(1)))
    assert (plan.replicas, names(plan)) == (None, [AUTOSCALER.kind, BUDGET.kind])


def test_version_that_comes_back_from_zero_gets_its_pods_from_its_autoscaler_at_once() -> None:
    attached = f"HorizontalPodAutoscaler/{NAME}"
    plan = the_version(versions(HeldReplicas(0), protected=False, attached=attached))
    assert (plan.replicas, plan.protected, names(plan)) == (None, True, [AUTOSCALER.kind, BUDGET.kind])
    # Argo CD applies what a render leaves out only together with a difference that it sees
    assert the_version(versions(HeldReplicas(0), attached=attached)).replicas == 1


def test_autoscaler_that_is_there_stays() -> None:
    plan = the_version(versions(HeldReplicas(4), attached=f"HorizontalPodAutoscaler/{NAME}"))
    assert AUTOSCALER.kind in names(plan)
    plan = the_version(versions(HeldReplicas(4), added=f"HorizontalPodAutoscaler/{NAME}"))
    assert AUTOSCALER.kind in names(plan)


def test_waiting_autoscaler_that_is_there_all_the_same_is_not_left_over() -> None:
    spec = replace(RAMPS, attached=(BUSY_AUTOSCALER,), replicas=None)
    name = attached_resource_name("payments", BUSY_AUTOSCALER.name, "v3")
    kind, owners = GroupKind("autoscaling", "HorizontalPodAutoscaler"), frozenset({"uid-v3"})
    item = AttachedInCluster(kind, f"/{name}", "v2", name, "uid", owners)
    assert the_version(found := versions(HeldReplicas(4), spec)).waiting
    assert not list(left_over(found, [item]))


def of_any_kind() -> AttachedResource:
    template = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": {"scaleTargetRef": {}}}
    return AttachedResource("cpu", template, autoscales=True, scales_from_zero=True)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"driver": Driver.JOB}, ""),
        ({"driver": Driver.HOOK}, ""),
        ({"driver": Driver.TICK}, ""),
        ({"driver": Driver.AUTO}, "the rollout's Job does this; without a Job, run `echo"),
        ({"driver": Driver.NONE}, "of Deployment payments-v3: run `echo"),
    ],
)
def test_whoever_has_no_job_reads_the_command_that_ends_the_wait(policy: dict[str, Any], told: str) -> None:
    found = versions(HeldReplicas(2), replace(with_policy(SCALED, **policy), attached=(of_any_kind(),)))
    warnings = [warning for warning in found.warnings if "a field manager other than Argo CD" in warning]
    assert len(warnings) == bool(told)
    manifest = (
        '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "payments-v3",'
        ' "namespace": "shop"}, "spec": {"replicas": 2}}'
    )
    command = f"`echo '{manifest}' | kubectl apply --server-side --field-manager=twgen -f -`"
    assert all(told in warning and command in warning for warning in warnings)
    assert not versions(HeldReplicas(2, {ARGOCD, ROLLOUT}), SCALED).warnings
