"""What a rollout changes in its cluster beside the traffic."""

from dataclasses import replace

from tests.strategies import AUTOSCALER, NOW, SIZED_BY_HPA, a_spec, live_manifest, world
from twgen.model.operator import Caller, GroupKind
from twgen.model.plan import WorkerVersions
from twgen.planning.cluster_changes import AttachedInCluster, left_over, replica_changes
from twgen.planning.plan import plan_versions
from twgen.versioning.names import attached_resource_name

SPEC = replace(a_spec(), attached=(AUTOSCALER,))


def versions(replicas: int, **metadata: object) -> WorkerVersions:
    live = live_manifest(SPEC, "v3", replicas, resourceVersion="17", **metadata)
    [worker] = plan_versions([SPEC], world(None, [live]), NOW, Caller("twgen/me", forced=True)).workers
    return worker


def scaler(kind: GroupKind, name: str, owner: str = "uid-v3") -> AttachedInCluster:
    return AttachedInCluster(kind, f"/{name}", name, "uid", frozenset({owner}))


def test_object_of_another_kind_than_its_template_now_makes_is_left_over() -> None:
    name = attached_resource_name(SPEC.name, "cpu", "v3")
    wanted = scaler(GroupKind("autoscaling", "HorizontalPodAutoscaler"), name)
    before = scaler(GroupKind("keda.sh", "ScaledObject"), name)
    assert list(left_over(versions(2), [wanted, before])) == [before]


def test_object_of_somebody_elses_deployment_is_never_left_over() -> None:
    hpa = GroupKind("autoscaling", "HorizontalPodAutoscaler")
    assert not list(left_over(versions(2), [scaler(hpa, "another", owner="uid-of-somebody")]))


def test_replicas_are_changed_only_as_they_were_read() -> None:
    [change] = replica_changes(versions(5))
    assert (change.replicas, change.resource_version) == (5, "17")
    assert not list(replica_changes(versions(5, managedFields=SIZED_BY_HPA))), "nobody applied them"
