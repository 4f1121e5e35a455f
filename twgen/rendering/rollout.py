"""The rollout of a worker in the cluster: its intent, and the account of its Job."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from twgen.errors import InvalidInput
from twgen.model.operator import GroupKind
from twgen.model.plan import WorkerVersions
from twgen.model.policy import Driver, OwnerReferences
from twgen.planning.refresh import plan_hash
from twgen.records.intent import intent_of, write_intent
from twgen.rendering.jobs import Manifest, RolloutJobs, rollout_job
from twgen.specs.attached import KINDS
from twgen.versioning.names import (
    PLAN_HASH,
    resource_of_kind,
    rollout_labels,
    rollout_name,
    rollout_status_name,
)

_LARGEST_INTENT = 1024 * 1024
"""Bytes in a ConfigMap."""
_RBAC = "rbac.authorization.k8s.io"


def rollout_manifests(worker: WorkerVersions, identity: str, jobs: RolloutJobs) -> Iterator[Manifest]:
    """The objects that carry out the rollout of a worker; only its intent if a person or CI does that.

    `tick` needs the intent of every worker.
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
    yield rollout_job(spec, intent, account, jobs)


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
    """Exactly the rights that a rollout needs in its namespace.

    Applying a new object needs the verb create, for which RBAC compares the name in this case.
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
    """The kinds that are or were attached to a worker's versions; all possible ones if no cluster is read."""
    now = {GroupKind.of(resource.template) for resource in worker.spec.attached}
    were = worker.were_attached
    known = [kind for kind in (*KINDS, *more_kinds) if were is None or kind in now or kind.kind in were]
    return sorted({*known, *now}, key=str)


def _rule(group: str, resource: str, *verbs: str, names: Sequence[str] = ()) -> Manifest:
    rule: Manifest = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return rule | ({"resourceNames": list(names)} if names else {})
