"""The objects that run a worker's rollout in the cluster: its intent, its account and its Job."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import timedelta
from hashlib import sha256
from math import ceil
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.operator import GroupKind, PrometheusServer, RolloutPod
from twgen.model.plan import WorkerVersions
from twgen.model.policy import Driver, EnvironmentNames, OwnerReferences
from twgen.model.spec import Connection, WorkerSpec
from twgen.model.values import dataclass
from twgen.planning.refresh import plan_hash
from twgen.records.intent import Intent, intent_of, write_intent
from twgen.specs.attached import KINDS
from twgen.versioning.injection import DEPLOYMENT, TRUSTED, Identity, Injection, injection
from twgen.versioning.names import (
    API_KEY_FILE,
    HOOK,
    HOOK_DELETE_POLICY,
    INTENT_HASH,
    PLAN_HASH,
    PROMETHEUS_KEYS,
    PROMETHEUS_SECRETS,
    SYNC_WAVE,
    generated_name,
    resource_of_kind,
    rollout_labels,
    rollout_name,
    rollout_status_name,
)

Manifest = dict[str, Any]

USER = 999
"""As whom the image of twgen runs."""
_DEADLINE = timedelta(days=7)
"""How long a Job may take beside the pauses of its steps: people pause a rollout over a weekend."""
_LONGEST_DEADLINE = 2**31 - 1
"""Seconds, 68 years; what Kubernetes cannot count in nanoseconds of 64 bits would be over at once."""
_RETRIES = 6
_ENDS_FOR_GOOD = [1, 2, 4]
"""Exit codes that another attempt cannot change: gate failed or aborted, invalid intent, out of time."""
_RESOURCES = {"requests": {"cpu": "10m", "memory": "96Mi"}, "limits": {"memory": "192Mi"}}
_CA_FOLDER = "/etc/temporal/ca"
CA_VOLUME = "temporal-ca"
_KEY_FOLDER = "/etc/temporal/key"
_KEY_VOLUME = "temporal-key"
_LARGEST_INTENT = 1024 * 1024
"""The most bytes that a ConfigMap can hold."""
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class RolloutJobs:
    """How the rollouts of a render are carried out."""

    driver: Driver
    """Hook or Job."""
    image: str
    """Empty: nobody named one, and no Job is rendered."""
    more_kinds: tuple[GroupKind, ...] = ()
    """What the operator lets be attached beside the kinds that twgen knows."""
    pod: RolloutPod = field(default_factory=RolloutPod)
    prometheus: tuple[PrometheusServer, ...] = ()
    """Those that whoever renders may use."""
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What a worker's intent repeats beside the warnings of its own plan, by worker deployment."""


def rollout_manifests(worker: WorkerVersions, identity: str, jobs: RolloutJobs) -> Iterator[Manifest]:
    """The objects that run the rollout of a worker; only its intent if a person or CI runs it.

    `tick` checks every worker that has an intent, even if it is not a Job that moves the traffic.
    """
    spec = worker.spec
    by_hand = spec.policy.driver is Driver.NONE
    if not (identity if by_hand else jobs.image):
        return
    warnings = (*jobs.warnings.get(spec.worker_deployment, ()), *worker.warnings)
    kinds = attached_kinds(worker, jobs.more_kinds)
    intent = intent_of(spec, identity, warnings, kinds, jobs.prometheus)
    intent = replace(intent, applies_autoscalers=jobs.driver is Driver.HOOK and not by_hand)
    manifest = write_intent(intent)
    manifest["metadata"]["annotations"][PLAN_HASH] = plan_hash(worker)
    size = sum(len(text.encode()) for text in manifest["data"].values())
    if size > _LARGEST_INTENT:
        raise InvalidInput(
            f"{spec.document.source}: the intent of {spec.worker_deployment}'s rollout has {size} bytes, but"
            f" a ConfigMap holds at most {_LARGEST_INTENT}: make the pod template or the attached templates"
            " smaller"
        )
    yield manifest
    if by_hand:
        return
    account = spec.policy.service_account_name
    if not account:
        account = rollout_name(spec.name)
        yield from _account(worker, account, jobs.more_kinds)
    yield _job(spec, intent, account, jobs)


def _account(worker: WorkerVersions, name: str, more_kinds: Sequence[GroupKind]) -> Iterator[Manifest]:
    spec = worker.spec
    metadata = {"name": name, "namespace": spec.namespace, "labels": rollout_labels(spec.name)}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    rules = list(rollout_rules(worker, more_kinds))
    yield {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": spec.namespace}
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "subjects": [subject],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
    }


def rollout_rules(worker: WorkerVersions, more_kinds: Sequence[GroupKind]) -> Iterator[Manifest]:
    """What a rollout does in its namespace, and nothing else.

    To apply an object that is not there yet takes the verb create, which RBAC compares by name in that case.
    """
    spec = worker.spec
    read = {"ConfigMap": [rollout_name(spec.name), rollout_status_name(spec.name)], "Secret": []}
    if spec.rollout.gate and (source := spec.rollout.gate.input_from):
        read[source.kind].append(source.name)
    yield _rule("", "configmaps", "get", names=read["ConfigMap"])
    if read["Secret"]:
        yield _rule("", "secrets", "get", names=read["Secret"])
    yield _rule("", "configmaps", "create", "patch", names=[rollout_status_name(spec.name)])
    yield _rule("", "events", "create")
    yield _rule("", "pods", "list")
    yield _rule("batch", "jobs", "delete", "list")
    yield _rule("apps", "deployments", "list")
    # their replicas, and which of their attached objects are gone
    patched = [
        version.deployment
        for version in worker.versions
        if version.replaced or (version.is_rendered and spec.replicas_are_external)
    ]
    if patched:
        yield _rule("apps", "deployments", "patch", names=patched)
    if spec.policy.owner_references is OwnerReferences.RENDER:
        # Argo CD never prunes an object that has an owner
        for kind in attached_kinds(worker, more_kinds):
            yield _rule(kind.group, resource_of_kind(kind.kind), "create", "delete", "list", "patch")


def attached_kinds(worker: WorkerVersions, more_kinds: Sequence[GroupKind]) -> Sequence[GroupKind]:
    """What is attached to a worker's versions, or was; where no cluster was read, all that may have been."""
    now = {GroupKind.of(resource.template) for resource in worker.spec.attached}
    were = worker.were_attached
    known = [kind for kind in (*KINDS, *more_kinds) if were is None or kind in now or kind.kind in were]
    return sorted({*known, *now}, key=str)


def _rule(group: str, resource: str, *verbs: str, names: Sequence[str] = ()) -> Manifest:
    rule: Manifest = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return rule | ({"resourceNames": list(names)} if names else {})


def _job(spec: WorkerSpec, intent: Intent, account: str, jobs: RolloutJobs) -> Manifest:
    is_hook = jobs.driver is Driver.HOOK
    labels = rollout_labels(spec.name)
    longest = spec.policy.hold_for if is_hook else _DEADLINE + spec.rollout.pauses
    body: Manifest = {
        "activeDeadlineSeconds": min(int(longest.total_seconds()) + 60, _LONGEST_DEADLINE),
        "backoffLimit": _RETRIES,
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": _ENDS_FOR_GOOD}},
            ]
        },
        "template": {
            # by this a later rollout tells its own Pods from earlier ones
            "metadata": {
                "labels": {**jobs.pod.labels, **labels},
                "annotations": {**jobs.pod.annotations, INTENT_HASH: intent.hash},
            },
            "spec": _pod(spec, intent, account, jobs),
        },
    }
    name = [spec.name, "rollout"]
    annotations = {INTENT_HASH: intent.hash}
    if is_hook:
        annotations |= {HOOK: "Sync,PostSync", HOOK_DELETE_POLICY: "BeforeHookCreation", SYNC_WAVE: "1"}
    else:
        # another intent, or another Job for it, is another object: the template of a Job cannot be changed
        told = json.dumps([intent.hash, body], sort_keys=True)
        name.append(sha256(told.encode()).hexdigest()[:8])
    metadata = {"name": generated_name(*name), "namespace": spec.namespace, "labels": labels}
    metadata["annotations"] = annotations
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}


def _pod(spec: WorkerSpec, intent: Intent, account: str, jobs: RolloutJobs) -> Manifest:
    connection, own = _control_plane(spec), jobs.pod
    who = Identity(spec.temporal_namespace, spec.worker_deployment, "")
    connects = injection(connection, who, EnvironmentNames.CURRENT)
    of_worker = {DEPLOYMENT, "TEMPORAL_WORKER_BUILD_ID", "TEMPORAL_API_KEY"}
    place = f"{spec.namespace}/{rollout_name(spec.name)}"
    arguments = ["rollout", "--intent", place, "--intent-hash", intent.hash]
    if jobs.driver is Driver.HOOK:
        arguments += ["--within", f"{max(1, ceil(spec.policy.hold_for.total_seconds()))}s"]
    container: Manifest = {
        "name": "rollout",
        "image": jobs.image,
        "command": ["twgen"],
        "args": arguments,
        "env": [variable for variable in connects.variables if variable["name"] not in of_worker],
        "resources": dict(own.resources) or _RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *connects.mounts],  # noqa: S108
    }
    volumes = [{"name": "tmp", "emptyDir": {}}, *connects.volumes]
    if key := connection.api_key_secret:
        # a Job lives longer than a key may: a file follows its Secret, a variable does not
        container["env"].append({"name": API_KEY_FILE, "value": f"{_KEY_FOLDER}/{key.key}"})
        container["volumeMounts"].append({"name": _KEY_VOLUME, "mountPath": _KEY_FOLDER})
        items = [{"key": key.key, "path": key.key}]
        volumes.append({"name": _KEY_VOLUME, "secret": {"secretName": key.name, "items": items}})
    trusted = trusted_bundle(own, connection)
    container["env"] += trusted.variables
    container["volumeMounts"] += trusted.mounts
    volumes += trusted.volumes
    for mount, volume in _prometheus_secrets(intent):
        container["volumeMounts"].append(mount)
        volumes.append(volume)
    placed = {
        "imagePullSecrets": list(own.image_pull_secrets),
        "nodeSelector": dict(own.node_selector),
        "tolerations": list(own.tolerations),
    }
    return {
        **{name: value for name, value in placed.items() if value},
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": account,
        "volumes": volumes,
    }


def trusted_bundle(pod: RolloutPod, connection: Connection, volume: str = CA_VOLUME) -> Injection:
    """What lets a container of twgen trust the operator's own certificates, by a volume of that name.

    What the connection says is of its server alone, and what its workers trust.
    """
    if not pod.ca_bundle or not connection.needs_credentials or connection.ca_secret:
        return Injection(())
    return Injection(
        ({"name": TRUSTED, "value": f"{_CA_FOLDER}/{pod.ca_bundle.key}"},),
        ({"name": volume, "mountPath": _CA_FOLDER},),
        ({"name": volume, "configMap": {"name": pod.ca_bundle.config_map}},),
    )


def _prometheus_secrets(intent: Intent) -> Iterator[tuple[Manifest, Manifest]]:
    """The mount and the volume of each Secret; without one the Pod runs all the same, and its ramp waits."""
    for index, server in enumerate(intent.prometheus):
        if server.secret_name:
            name = f"prometheus-{index}"
            items = [{"key": key, "path": key} for key in PROMETHEUS_KEYS]
            secret = {"secretName": server.secret_name, "items": items, "optional": True}
            mount = {"name": name, "mountPath": f"{PROMETHEUS_SECRETS}/{server.name}", "readOnly": True}
            yield mount, {"name": name, "secret": secret}


def _control_plane(spec: WorkerSpec) -> Connection:
    """The worker's connection, with the credentials of its rollouts where the policy names others."""
    connection, secret = spec.connection, spec.policy.control_plane_secret
    if not secret or not connection.secret_name:
        return connection
    if connection.api_key_secret:
        return replace(connection, api_key_secret=replace(connection.api_key_secret, name=secret))
    return replace(connection, mutual_tls_secret=secret)
