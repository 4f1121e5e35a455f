"""The Job that replays histories on the target's own image, before it takes traffic."""

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from hashlib import sha256
from typing import Any

from twgen.model.histories import Replay
from twgen.model.plan import WorkerVersions
from twgen.model.policy import EnvironmentNames
from twgen.model.spec import WorkerSpec
from twgen.planning.routing.replay import replay_of
from twgen.rendering.rollout import CA_VOLUME, USER, RolloutJobs, trusted_bundle
from twgen.versioning.injection import TASK_QUEUE, Identity, injection
from twgen.versioning.names import REPLAY_OF, generated_name, replay_labels
from twgen.versioning.pod_templates import described_template

Manifest = dict[str, Any]

_RETRIES = 2
"""Of what is no word on the histories: a node that goes, a server that is away."""
_NOT_REPLAYED = 1
"""The exit code that another attempt cannot change."""
_FOLDER = "/histories"
_VOLUMES = "twgen-histories", "twgen-tmp"
_MEMORY = {"requests": "128Mi", "limits": "1Gi"}
"""Of the container that fetches: as much as histories take, whatever other Pods of twgen do with."""
_OF_THE_POD = (
    "affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases",
    "hostUsers", "imagePullSecrets", "nodeSelector", "os", "priorityClassName", "runtimeClassName",
    "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "tolerations", "volumes",
)  # fmt: skip
_OF_THE_CONTAINER = (
    "env", "envFrom", "image", "imagePullPolicy", "name", "resources", "securityContext", "volumeMounts",
    "workingDir",
)  # fmt: skip
"""What a replay has of the worker; what serves, probes or waits for others is none of it."""


def replay_manifests(worker: WorkerVersions, jobs: RolloutJobs) -> Iterator[Manifest]:
    """The Job of the target; none where nothing is to be replayed, or nobody named an image."""
    spec, replay = worker.spec, worker.spec.policy.replay
    is_there = any(version.build_id == spec.build_id and version.is_rendered for version in worker.versions)
    if not replay or not jobs.image or not is_there:
        return
    labels = replay_labels(spec.name)
    metadata: Manifest = {"labels": {**jobs.pod.labels, **labels}}
    if jobs.pod.annotations:
        metadata["annotations"] = dict(jobs.pod.annotations)
    body: Manifest = {
        "activeDeadlineSeconds": int(replay.within.total_seconds()),
        "backoffLimit": _RETRIES,
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [_NOT_REPLAYED]}},
            ]
        },
        "template": {"metadata": metadata, "spec": _pod(spec, replay, jobs)},
    }
    of = replay_of(spec)
    # another Job for the same is another object: the template of a Job cannot be changed
    digest = sha256(json.dumps([of, body], sort_keys=True).encode()).hexdigest()[:8]
    own = {
        "name": generated_name(spec.name, "replay", digest),
        "namespace": spec.namespace,
        "labels": labels,
        "annotations": {REPLAY_OF: of},
    }
    yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": own, "spec": body}


def _pod(spec: WorkerSpec, replay: Replay, jobs: RolloutJobs) -> Manifest:
    template = described_template(spec)["spec"]
    worker = template["containers"][0]
    pod = {name: template[name] for name in _OF_THE_POD if name in template}
    own = {name: worker[name] for name in _OF_THE_CONTAINER if name in worker}
    if "claims" in (resources := own.get("resources") or {}):
        # of devices, which the pod no longer claims
        own["resources"] = {name: value for name, value in resources.items() if name != "claims"}
    of_worker = {volume["name"] for volume in template.get("volumes", ())}
    histories, tmp, trusted = (_unlike(name, of_worker) for name in (*_VOLUMES, CA_VOLUME))
    fetching, volumes = _fetching(spec, replay, jobs, trusted)
    fetching["name"] = _unlike("histories", {own["name"]})
    fetching["volumeMounts"] += [
        {"name": tmp, "mountPath": "/tmp"},  # noqa: S108 - of its own
        {"name": histories, "mountPath": _FOLDER},
    ]
    mounts = [
        mount
        for mount in own.get("volumeMounts", ())
        if not f"{mount['mountPath']}/".startswith(f"{_FOLDER}/")
    ]
    if "env" in own:
        own["env"] = [_of_its_own(variable) for variable in own["env"]]
    if node_affinity := (pod.pop("affinity", None) or {}).get("nodeAffinity"):
        # where its Pods stand to each other is for those that serve: it would wait for a node without one
        pod["affinity"] = {"nodeAffinity": node_affinity}
    storage = {"sizeLimit": str(2 * replay.sample.most_bytes)}
    if replay.in_memory:
        storage["medium"] = "Memory"
    secrets = [*pod.get("imagePullSecrets", ()), *jobs.pod.image_pull_secrets]
    if secrets:
        pod["imagePullSecrets"] = list({secret["name"]: secret for secret in secrets}.values())
    return {
        **pod,
        "initContainers": [fetching],
        "containers": [
            {
                **own,
                "command": [*replay.command],
                "volumeMounts": [*mounts, {"name": histories, "mountPath": _FOLDER, "readOnly": True}],
            }
        ],
        "restartPolicy": "Never",
        "volumes": [
            *template.get("volumes", ()),
            *(volume for volume in volumes if volume not in template.get("volumes", ())),
            {"name": tmp, "emptyDir": {}},
            {"name": histories, "emptyDir": storage},
        ],
    }


def _of_its_own(variable: Manifest) -> Manifest:
    """A variable that tells a share of resources tells it of this container: the others are not there."""
    source = (variable.get("valueFrom") or {}).get("resourceFieldRef")
    if not source or "containerName" not in source:
        return variable
    own = {name: value for name, value in source.items() if name != "containerName"}
    return {**variable, "valueFrom": {"resourceFieldRef": own}}


def _unlike(name: str, others: AbstractSet[str]) -> str:
    """The name, with as many x as tell it from the others."""
    while name in others:
        name += "x"
    return name


def _fetching(
    spec: WorkerSpec, replay: Replay, jobs: RolloutJobs, ca_volume: str
) -> tuple[Manifest, list[Manifest]]:
    """The container that fetches the histories as the worker itself would, and the volumes for that."""
    # neither intent nor specs are read: a newer commit must not redirect an older Job, nor another release of
    # twgen have to read its documents
    who = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    connects = injection(spec.connection, who, EnvironmentNames.CURRENT)
    trusted, asked = trusted_bundle(jobs.pod, spec.connection, ca_volume), jobs.pod.resources
    variables = described_template(spec)["spec"]["containers"][0].get("env", ())
    task_queues = [variable.get("value") for variable in variables if variable["name"] == TASK_QUEUE]
    arguments = [
        *("histories", "--deployment-name", spec.worker_deployment, "--folder", _FOLDER, "--shared"),
        *("--sample", str(replay.sample.of_each_type)),
        *("--max-bytes", str(replay.sample.most_bytes), "--timeout", "1m"),
        *(["--upgrading"] if replay.upgrading_only else []),
        # a worker that had no versions before has workflows that its first one goes on with
        *(["--task-queue", task_queues[0]] if any(task_queues) else []),
    ]
    container: Manifest = {
        "image": jobs.image,
        "command": ["twgen"],
        "args": arguments,
        "env": [*connects.variables, *trusted.variables],
        "resources": {
            **asked,
            "requests": {"cpu": "10m", **asked.get("requests", {}), "memory": _MEMORY["requests"]},
            "limits": {**asked.get("limits", {}), "memory": _MEMORY["limits"]},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [*connects.mounts, *trusted.mounts],
    }
    return container, [*connects.volumes, *trusted.volumes]
