"""Makes a worker's Jobs: the rollout Job, and the Job that replays histories with the target's image."""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from datetime import timedelta
from hashlib import sha256
from math import ceil
from typing import Any

from twgen.model.operator import GroupKind, PrometheusServer, RolloutPod
from twgen.model.plan import WorkerVersions
from twgen.model.policy import EnvironmentNames, Replay
from twgen.model.rollout import Driver
from twgen.model.spec import Connection, WorkerSpec
from twgen.model.values import dataclass
from twgen.planning.routing.gates import replay_of
from twgen.records.intent import Intent
from twgen.versioning.injection import DEPLOYMENT, TASK_QUEUE, TRUSTED, Identity, Injection, injection
from twgen.versioning.names import (
    API_KEY_FILE,
    HOOK,
    HOOK_DELETE_POLICY,
    INTENT_HASH,
    PROMETHEUS_KEYS,
    PROMETHEUS_SECRETS,
    REPLAY_OF,
    SYNC_WAVE,
    generated_name,
    replay_labels,
    rollout_labels,
    rollout_name,
)
from twgen.versioning.pod_templates import described_template

Manifest = dict[str, Any]

_USER = 999
_RESOURCES = {"requests": {"cpu": "10m", "memory": "96Mi"}, "limits": {"memory": "192Mi"}}
_UNPRIVILEGED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_SECCOMP = {"type": "RuntimeDefault"}
_TMP = "/tmp"  # noqa: S108 - a separate volume
_CA_FOLDER = "/etc/temporal/ca"
_CA_VOLUME = "temporal-ca"
_KEY_FOLDER = "/etc/temporal/key"

_FOLDER = "/histories"
_MEMORY = {"requests": "128Mi", "limits": "1Gi"}
"""The memory of the container that fetches histories, which needs more than twgen's other containers."""
_COPIED_POD_FIELDS = (
    "affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases",
    "hostUsers", "imagePullSecrets", "nodeSelector", "os", "priorityClassName", "runtimeClassName",
    "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "tolerations", "volumes",
)  # fmt: skip
_COPIED_CONTAINER_FIELDS = (
    "env", "envFrom", "image", "imagePullPolicy", "name", "resources", "securityContext", "volumeMounts",
    "workingDir",
)  # fmt: skip
"""The fields that a replay copies from the worker's container. It does not need ports, probes or hooks."""


@dataclass(frozen=True, slots=True)
class RolloutJobs:
    """How a render's rollouts are carried out."""

    driver: Driver
    """Hook or Job."""
    image: str
    """The Jobs' image, or empty to render no Jobs."""
    more_kinds: tuple[GroupKind, ...] = ()
    """The kinds of attached objects that the operator allows in addition to twgen's own list."""
    pod: RolloutPod = field(default_factory=RolloutPod)
    prometheus: tuple[PrometheusServer, ...] = ()
    """The Prometheus servers that this render can use."""
    is_tick_allowed: bool = False
    """Whether workers with driver Tick get an intent, which `twgen tick` carries out."""
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By worker, the warnings that the intent contains in addition to the plan's warnings."""


def rollout_job(spec: WorkerSpec, intent: Intent, account: str, jobs: RolloutJobs) -> Manifest:
    """The Job that carries out an intent with this service account."""
    is_hook = jobs.driver is Driver.HOOK
    labels = rollout_labels(spec.name)
    # a week in addition to the steps' pauses leaves time for manual pauses, for example over a weekend
    longest = spec.policy.hold_for if is_hook else timedelta(days=7) + spec.rollout.pauses
    body: Manifest = {
        # limited, because Kubernetes counts nanoseconds in 64 bits, and an overflow would end the Job
        # immediately
        "activeDeadlineSeconds": min(int(longest.total_seconds()) + 60, 2**31 - 1),
        "backoffLimit": 6,
        # a retry would not help after these exit codes: the gate failed or the target is aborted, the intent
        # is invalid, or the time limit is exceeded
        "podFailurePolicy": _failing_at([1, 2, 4]),
        "template": {
            # a rollout recognizes its own Pods by this annotation
            "metadata": {
                "labels": {**jobs.pod.labels, **labels},
                "annotations": {**jobs.pod.annotations, INTENT_HASH: intent.hash},
            },
            "spec": _rollout_pod(spec, intent, account, jobs),
        },
    }
    parts, annotations = ["rollout"], {INTENT_HASH: intent.hash}
    if is_hook:
        annotations |= {HOOK: "Sync,PostSync", HOOK_DELETE_POLICY: "BeforeHookCreation", SYNC_WAVE: "1"}
    else:
        parts.append(_digest(intent.hash, body))
    return _job(spec, parts, labels, annotations, body)


def replay_manifests(worker: WorkerVersions, jobs: RolloutJobs) -> Iterator[Manifest]:
    """The Job that replays histories for the target, if the policy has a replay and `jobs` has an image."""
    spec, replay = worker.spec, worker.spec.policy.replay
    has_target = any(version.build_id == spec.build_id and version.is_rendered for version in worker.versions)
    if not replay or not jobs.image or not has_target:
        return
    labels, replay_hash = replay_labels(spec.name), replay_of(spec)
    metadata: Manifest = {"labels": {**jobs.pod.labels, **labels}}
    if jobs.pod.annotations:
        metadata["annotations"] = dict(jobs.pod.annotations)
    body: Manifest = {
        "activeDeadlineSeconds": int(replay.within.total_seconds()),
        # a retry helps if the histories are not the cause of the failure, for example after a node failure or
        # if a server is unreachable
        "backoffLimit": 2,
        "podFailurePolicy": _failing_at([1]),
        "template": {"metadata": metadata, "spec": _replay_pod(spec, replay, jobs)},
    }
    yield _job(spec, ["replay", _digest(replay_hash, body)], labels, {REPLAY_OF: replay_hash}, body)


def _job(
    spec: WorkerSpec, parts: Sequence[str], labels: Mapping[str, str], annotations: Manifest, body: Manifest
) -> Manifest:
    metadata = {
        "name": generated_name(spec.name, *parts),
        "namespace": spec.namespace,
        "labels": labels,
        "annotations": annotations,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}


def _digest(purpose: str, body: Manifest) -> str:
    """The suffix of a Job's name. It changes with the Job, because a Job's template is immutable."""
    return sha256(json.dumps([purpose, body], sort_keys=True).encode()).hexdigest()[:8]


def _failing_at(exit_codes: Sequence[int]) -> Manifest:
    return {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": exit_codes}},
        ]
    }


def _rollout_pod(spec: WorkerSpec, intent: Intent, account: str, jobs: RolloutJobs) -> Manifest:
    connection, pod_settings = _control_plane(spec), jobs.pod
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, "")
    connects = injection(connection, identity, EnvironmentNames.CURRENT)
    worker_variables = {DEPLOYMENT, "TEMPORAL_WORKER_BUILD_ID", "TEMPORAL_API_KEY"}
    variables = [variable for variable in connects.variables if variable["name"] not in worker_variables]
    needs = [
        _mounted("tmp", _TMP, {"emptyDir": {}}),
        Injection(tuple(variables), connects.mounts, connects.volumes),
        _api_key(connection),
        _trusted_bundle(pod_settings, connection, _CA_VOLUME),
        *_prometheus_secrets(intent),
    ]
    arguments = ["--intent", f"{spec.namespace}/{rollout_name(spec.name)}", "--intent-hash", intent.hash]
    if jobs.driver is Driver.HOOK:
        arguments += ["--within", f"{max(1, ceil(spec.policy.hold_for.total_seconds()))}s"]
    container: Manifest = {
        "name": "rollout",
        "image": jobs.image,
        "command": ["twgen"],
        "args": ["rollout", *arguments],
        "env": [variable for need in needs for variable in need.variables],
        "resources": dict(pod_settings.resources) or _RESOURCES,
        "securityContext": _UNPRIVILEGED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for need in needs for mount in need.mounts],
    }
    placed = {
        "imagePullSecrets": list(pod_settings.image_pull_secrets),
        "nodeSelector": dict(pod_settings.node_selector),
        "tolerations": list(pod_settings.tolerations),
    }
    return {
        **{name: value for name, value in placed.items() if value},
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": _SECCOMP,
        },
        "serviceAccountName": account,
        "volumes": [volume for need in needs for volume in need.volumes],
    }


def _control_plane(spec: WorkerSpec) -> Connection:
    """The worker's connection, with the policy's own credentials for rollouts if there are any."""
    connection, secret = spec.connection, spec.policy.control_plane_secret
    if not secret or not connection.secret_name:
        return connection
    if connection.api_key_secret:
        return replace(connection, api_key_secret=replace(connection.api_key_secret, name=secret))
    return replace(connection, mutual_tls_secret=secret)


def _api_key(connection: Connection) -> Injection:
    """The API key, mounted as a file.

    A Job can run longer than the key is valid. If a Secret changes, Kubernetes updates mounted files, but not
    variables.
    """
    if not (key := connection.api_key_secret):
        return Injection(())
    secret = {"secretName": key.name, "items": [{"key": key.key, "path": key.key}]}
    variable = {"name": API_KEY_FILE, "value": f"{_KEY_FOLDER}/{key.key}"}
    return _mounted("temporal-key", _KEY_FOLDER, {"secret": secret}, variable)


def _trusted_bundle(pod: RolloutPod, connection: Connection, volume: str) -> Injection:
    """The operator's trusted certificates, unless the connection has its own."""
    if not pod.ca_bundle or not connection.needs_credentials or connection.ca_secret:
        return Injection(())
    variable = {"name": TRUSTED, "value": f"{_CA_FOLDER}/{pod.ca_bundle.key}"}
    return _mounted(volume, _CA_FOLDER, {"configMap": {"name": pod.ca_bundle.config_map}}, variable)


def _mounted(volume: str, path: str, source: Manifest, *variables: Manifest, **mount: bool) -> Injection:
    """The volume, its mount at this path, and the variables."""
    name = {"name": volume}
    return Injection(variables, ({**name, "mountPath": path, **mount},), ({**name, **source},))


def _prometheus_secrets(intent: Intent) -> Iterator[Injection]:
    """The Secret of each Prometheus server. If a Secret is missing, the Pod runs, but the ramp waits."""
    for index, server in enumerate(intent.prometheus):
        if server.secret_name:
            items = [{"key": key, "path": key} for key in PROMETHEUS_KEYS]
            secret = {"secretName": server.secret_name, "items": items, "optional": True}
            path = f"{PROMETHEUS_SECRETS}/{server.name}"
            yield _mounted(f"prometheus-{index}", path, {"secret": secret}, readOnly=True)


def _replay_pod(spec: WorkerSpec, replay: Replay, jobs: RolloutJobs) -> Manifest:
    template = described_template(spec)["spec"]
    worker, worker_volumes = template["containers"][0], template.get("volumes", ())
    pod = {name: template[name] for name in _COPIED_POD_FIELDS if name in template}
    container = {name: worker[name] for name in _COPIED_CONTAINER_FIELDS if name in worker}
    if "claims" in (resources := container.get("resources") or {}):
        # container claims refer to the pod's device claims, which the replay Pod does not copy
        container["resources"] = {name: value for name, value in resources.items() if name != "claims"}
    if "env" in container:
        container["env"] = [_without_container_name(variable) for variable in container["env"]]
    taken = {volume["name"] for volume in worker_volumes}
    tmp, histories, trusted = (_unlike(name, taken) for name in ("twgen-tmp", "twgen-histories", _CA_VOLUME))
    storage = {"sizeLimit": str(2 * replay.sample.most_bytes)}
    if replay.in_memory:
        storage["medium"] = "Memory"
    # the Job reads neither the intent nor the specs. Therefore, a newer commit cannot redirect an older Job,
    # and the documents can be from another twgen release
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    needs = [
        injection(spec.connection, identity, EnvironmentNames.CURRENT),
        _trusted_bundle(jobs.pod, spec.connection, trusted),
        _mounted(tmp, _TMP, {"emptyDir": {}}),
        _mounted(histories, _FOLDER, {"emptyDir": storage}),
    ]
    volumes = [volume for need in needs for volume in need.volumes]
    mounts = [
        mount
        for mount in container.get("volumeMounts", ())
        if not f"{mount['mountPath']}/".startswith(f"{_FOLDER}/")
    ]
    if node_affinity := (pod.pop("affinity", None) or {}).get("nodeAffinity"):
        # Pod affinity is meant for serving Pods: with it, a replay might never be scheduled
        pod["affinity"] = {"nodeAffinity": node_affinity}
    if secrets := [*pod.get("imagePullSecrets", ()), *jobs.pod.image_pull_secrets]:
        pod["imagePullSecrets"] = list({secret["name"]: secret for secret in secrets}.values())
    replaying = {
        **container,
        "command": [*replay.command],
        "volumeMounts": [*mounts, {"name": histories, "mountPath": _FOLDER, "readOnly": True}],
    }
    return {
        **pod,
        "initContainers": [_fetching(spec, replay, jobs, needs)],
        "containers": [replaying],
        "restartPolicy": "Never",
        "volumes": [*worker_volumes, *(volume for volume in volumes if volume not in worker_volumes)],
    }


def _without_container_name(variable: Manifest) -> Manifest:
    """Remove the container name from a variable about resources, which then means the container itself."""
    source = (variable.get("valueFrom") or {}).get("resourceFieldRef")
    if not source or "containerName" not in source:
        return variable
    resource_reference = {name: value for name, value in source.items() if name != "containerName"}
    return {**variable, "valueFrom": {"resourceFieldRef": resource_reference}}


def _unlike(name: str, taken_names: AbstractSet[str]) -> str:
    while name in taken_names:
        name += "x"
    return name


def _fetching(spec: WorkerSpec, replay: Replay, jobs: RolloutJobs, needs: Sequence[Injection]) -> Manifest:
    """The container that fetches the histories, with the worker's own credentials."""
    worker, resources = described_template(spec)["spec"]["containers"][0], jobs.pod.resources
    task_queues = [item.get("value") for item in worker.get("env", ()) if item["name"] == TASK_QUEUE]
    arguments = [
        *("histories", "--deployment-name", spec.worker_deployment, "--folder", _FOLDER, "--shared"),
        *("--sample", str(replay.sample.of_each_type)),
        *("--max-bytes", str(replay.sample.most_bytes), "--timeout", "1m"),
        *(["--upgrading"] if replay.upgrading_only else []),
        # the first version takes over workflows that were started without a version
        *(["--task-queue", task_queues[0]] if any(task_queues) else []),
    ]
    return {
        "image": jobs.image,
        "command": ["twgen"],
        "args": arguments,
        "env": [item for need in needs for item in need.variables],
        "resources": {
            **resources,
            "requests": {"cpu": "10m", **resources.get("requests", {}), "memory": _MEMORY["requests"]},
            "limits": {**resources.get("limits", {}), "memory": _MEMORY["limits"]},
        },
        "securityContext": {
            **_UNPRIVILEGED,
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "seccompProfile": _SECCOMP,
        },
        "volumeMounts": [mount for need in needs for mount in need.mounts],
        "name": _unlike("histories", {worker["name"]}),
    }
