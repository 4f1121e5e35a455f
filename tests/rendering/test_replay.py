"""The Job of a replay is one that an API server takes, whatever the worker's own pods are."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.situations import live, planned, routing, situation, temporal, version
from tests.specs.parsing import CONNECTION, parsed, policy, worker
from twgen.model.operator import CaBundle, RolloutPod
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.rendering.jobs import RolloutJobs, replay_manifests

REPLAY = {"command": ["python", "-m", "shop.replay", "/histories"]}
JOBS = RolloutJobs(Driver.JOB, "registry.example.com/twgen:1")
CLAIMED = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}


def spec_of(pod: Mapping[str, Any] | None = None, **container: Any) -> WorkerSpec:
    own = {"name": "worker", "image": "registry.example.com/shop/payments:v3", **container}
    template = {"spec": {"containers": [own, {"name": "proxy", "image": "proxy:1"}], **(pod or {})}}
    found = parsed(worker(template=template), CONNECTION, policy(replay=REPLAY))
    [spec] = found.workers
    assert not found.problems
    return spec


def job_of(spec: WorkerSpec, jobs: RolloutJobs = JOBS) -> dict[str, Any] | None:
    says = temporal(version("v1", VersionStatus.CURRENT), traffic=routing("v1"))
    return next(replay_manifests(planned(situation(says, [live("v1")]), spec).versions, jobs), None)


def pod_of(spec: WorkerSpec) -> dict[str, Any]:
    job = job_of(spec)
    assert job
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    return pod


def test_pod_has_what_the_worker_needs_to_replay_and_nothing_that_serves() -> None:
    probe = {"httpGet": {"port": 9090}}
    spec = spec_of(
        {
            "serviceAccountName": "payments",
            "hostNetwork": True,
            "initContainers": [{"name": "migrate", "image": "m:1"}],
        },
        ports=[{"containerPort": 9090}],
        readinessProbe=probe,
        args=["serve"],
        env=[{"name": "LOG_LEVEL", "value": "info"}],
    )
    pod = pod_of(spec)
    assert (pod["serviceAccountName"], "hostNetwork" in pod) == ("payments", False)
    assert [one["name"] for one in (*pod["initContainers"], *pod["containers"])] == ["histories", "worker"]
    [container] = pod["containers"]
    assert container["command"] == REPLAY["command"]
    assert not container.keys() & {"args", "ports", "readinessProbe"}
    assert {"name": "LOG_LEVEL", "value": "info"} in container["env"]


def test_names_and_folders_of_the_worker_are_left_alone() -> None:
    volumes = [{"name": name, "emptyDir": {}} for name in ("twgen-histories", "twgen-tmp")]
    mounts = [
        {"name": "twgen-tmp", "mountPath": "/cache"},
        {"name": "twgen-histories", "mountPath": "/histories/"},
    ]
    pod = pod_of(spec_of({"volumes": volumes}, volumeMounts=mounts, resources=CLAIMED))
    names = [volume["name"] for volume in pod["volumes"]]
    assert len(names) == len(set(names))
    assert {"twgen-histories", "twgen-historiesx"} < set(names)
    [container] = pod["containers"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/cache", "/histories"]
    assert container["volumeMounts"][-1]["name"] == "twgen-historiesx"
    assert container["resources"] == {"requests": {"cpu": "1"}}


def test_what_refers_to_what_is_left_out_refers_to_it_no_more() -> None:
    limits = {"resource": "limits.cpu", "containerName": "proxy"}
    term = {"labelSelector": {"matchLabels": {"app": "payments"}}, "topologyKey": "kubernetes.io/hostname"}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = spec_of(
        {
            "affinity": {"podAntiAffinity": apart, "nodeAffinity": node},
            "volumes": [{"name": "temporal-ca", "secret": {"secretName": "own"}}],
        },
        env=[{"name": "CPU", "valueFrom": {"resourceFieldRef": limits}}],
        volumeMounts=[{"name": "temporal-ca", "mountPath": "/histories/own"}],
    )
    spec = replace(spec, connection=replace(spec.connection, tls_server_name="temporal.example.com"))
    job = job_of(spec, replace(JOBS, pod=replace_pod(JOBS.pod)))
    assert job
    pod = job["spec"]["template"]["spec"]
    assert pod["affinity"] == {"nodeAffinity": node}
    [container] = pod["containers"]
    shares = [one["valueFrom"] for one in container["env"] if one["name"] == "CPU"]
    assert shares == [{"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/histories"]
    [fetching] = pod["initContainers"]
    mounted = {mount["mountPath"]: mount["name"] for mount in fetching["volumeMounts"]}
    [bundle] = [one for one in pod["volumes"] if one["name"] == mounted["/etc/temporal/ca"]]
    assert bundle["configMap"] == {"name": "ca"}


def replace_pod(pod: RolloutPod) -> RolloutPod:
    return pod._replace(ca_bundle=CaBundle("ca"))


def test_task_queue_of_the_spec_finds_what_no_version_has_had_yet() -> None:
    [fetching] = pod_of(spec_of(env=[{"name": "TEMPORAL_TASK_QUEUE", "value": "payments"}]))["initContainers"]
    assert fetching["args"][-2:] == ["--task-queue", "payments"]
    assert "--task-queue" not in pod_of(spec_of())["initContainers"][0]["args"]


def test_histories_are_in_memory_where_the_policy_says_so() -> None:
    spec = spec_of()
    assert {"name": "twgen-histories", "emptyDir": {"sizeLimit": "134217728"}} in pod_of(spec)["volumes"]
    replay = replace(spec.policy.replay, in_memory=True)  # type: ignore[type-var]
    memory = {"sizeLimit": "134217728", "medium": "Memory"}
    pod = pod_of(replace(spec, policy=replace(spec.policy, replay=replay)))
    assert {"name": "twgen-histories", "emptyDir": memory} in pod["volumes"]


def test_other_image_other_command_and_other_version_are_other_jobs_and_the_same_is_the_same() -> None:
    spec = spec_of()
    of_twgen = replace(JOBS, image="registry.example.com/twgen:2")
    other = replace(spec.policy, replay=replace(spec.policy.replay, command=("other",)))  # type: ignore[type-var]
    jobs = [
        job_of(spec),
        job_of(spec, of_twgen),
        job_of(replace(spec, policy=other)),
        job_of(spec_of(env=[{"name": "A", "value": "b"}])),
    ]
    assert len({job["metadata"]["name"] for job in jobs if job}) == len(jobs)
    assert job_of(spec) == jobs[0]


@pytest.mark.parametrize("image", ["", "registry.example.com/twgen:1"])
def test_there_is_none_without_an_image_or_a_policy(image: str) -> None:
    spec = spec_of()
    without = replace(spec, policy=replace(spec.policy, replay=None))
    assert job_of(without, replace(JOBS, image=image)) is None
    assert (job_of(spec, replace(JOBS, image=image)) is None) is not bool(image)
