"""Makes all manifests of a render, in the order in which they are printed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any
from urllib.parse import quote

from twgen.errors import InvalidInput
from twgen.model.operator import GroupKind, Links
from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, WorkerVersions
from twgen.model.policy import OwnerReferences, Policy
from twgen.model.problem import Document
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.planning.refresh import plan_hash
from twgen.planning.version_status import HAD_TRAFFIC, IN_ROUTING
from twgen.planning.versions.warnings import ObjectName
from twgen.records.intent import intent_of, write_intent
from twgen.rendering.deployments import attached_manifests, limit_copies, version_deployment
from twgen.rendering.jobs import Manifest, RolloutJobs, replay_manifests, rollout_job
from twgen.specs.attached import KINDS
from twgen.versioning.names import (
    DASHBOARD_LINK,
    HOOK,
    LINK,
    NOT_PRUNED,
    PLAN_HASH,
    SYNC_OPTIONS,
    SYNC_WAVE,
    resource_of_kind,
    rollout_labels,
    rollout_name,
    rollout_status_name,
)
from twgen.yaml.writer import encode_documents, write_documents

_APPLY_ORDER = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment")
"""The order in which kinds are printed. All other kinds follow."""
_HEALTHY_AT_ONCE = {"Deployment", "PodDisruptionBudget"}
"""Kinds that soon become healthy in Argo CD, so that a sync does not wait for them forever."""
_RBAC = "rbac.authorization.k8s.io"


def render_manifests(
    workers: Sequence[WorkerVersions],
    passthrough: Sequence[Document],
    identity_of: Callable[[Policy], str],
    jobs: RolloutJobs | None = None,
    links: Links | None = None,
) -> list[Manifest]:
    """The passthrough documents in their original order, then all of twgen's own objects, sorted.

    `links` adds annotations that Argo CD shows as links to Temporal's UI and to twgen's dashboard. Without
    `jobs`, the result contains no objects for rollouts. Raises InvalidInput if there is nothing to render.
    """
    limit_copies(workers)
    manifests = (_manifests(worker, identity_of, jobs, links or Links()) for worker in workers)
    objects = sorted(chain.from_iterable(manifests), key=_place)
    if not objects and not passthrough:
        reasons = "; ".join(filter(None, (worker.not_created for worker in workers)))
        why = f" ({reasons})" if reasons else ""
        raise InvalidInput(f"the documents render to nothing{why}: an empty output would delete everything")
    # checked here, because all names are known: if two Jobs have the same name, Argo CD applies only the last
    jobs_made = {manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "Job"}
    for document in passthrough:
        name = value_at(document.value, "metadata", "name")
        if document.value["kind"] == "Job" and isinstance(name, str) and name in jobs_made:
            raise InvalidInput(f"{document.source}: Job {name} has the name of a rollout's Job: rename it")
    return [*(document.value for document in passthrough), *objects]


def config_objects(passthrough: Iterable[Document], namespace: str) -> Iterator[ObjectName]:
    """The ConfigMaps and Secrets that Argo CD prunes after their removal, with `namespace` as the default."""
    for document in passthrough:
        name, own_namespace = (value_at(document.value, "metadata", field) for field in ("name", "namespace"))
        options = value_at(document.value, "metadata", "annotations", SYNC_OPTIONS)
        is_config = document.value["kind"] in {"ConfigMap", "Secret"} and document.value["apiVersion"] == "v1"
        if is_config and isinstance(name, str) and NOT_PRUNED not in str(options):
            yield ObjectName(document.value["kind"], str(own_namespace or namespace), name)


def _manifests(
    worker: WorkerVersions,
    identity_of: Callable[[Policy], str],
    jobs: RolloutJobs | None,
    links: Links,
) -> Iterator[Manifest]:
    spec, identity = worker.spec, identity_of(worker.spec.policy)
    has_hook = jobs and jobs.driver is Driver.HOOK and spec.policy.driver.has_job
    for manifest in rollout_manifests(worker, identity, jobs) if jobs else ():
        if manifest["kind"] == "ConfigMap":
            manifest["metadata"]["annotations"] |= _links(links, spec)
        yield manifest
    for manifest in replay_manifests(worker, jobs) if jobs else ():
        if has_hook:
            # the same sync wave as the hook, which waits for the replay only if necessary
            manifest["metadata"]["annotations"][SYNC_WAVE] = "1"
        yield manifest
    at_once = _applied_with_target(worker)
    for version in worker.versions:
        manifests = [version_deployment(spec, version, identity)] if version.is_rendered else []
        for manifest in manifests:
            manifest["metadata"]["annotations"] |= _links(links, spec, version.build_id)
        manifests += attached_manifests(spec, version, has_hook=bool(has_hook))
        for manifest in manifests:
            is_first = version.build_id in at_once and manifest["kind"] in _HEALTHY_AT_ONCE
            if has_hook and not is_first and HOOK not in manifest["metadata"]["annotations"]:
                # a later wave than the hook, which then starts even if these objects are not healthy
                manifest["metadata"]["annotations"][SYNC_WAVE] = "2"
            yield manifest


def _links(links: Links, spec: WorkerSpec, build_id: str = "") -> dict[str, str]:
    """The annotations that Argo CD shows as links to pages about a worker or a version."""
    annotations = {}
    if links.temporal:
        query = f'TemporalWorkerDeployment="{spec.worker_deployment}"'
        if build_id:
            query = f'TemporalWorkerDeploymentVersion="{spec.worker_deployment}:{build_id}"'
        path = f"namespaces/{quote(spec.temporal_namespace, safe='')}/workflows?query={quote(query, safe='')}"
        annotations[LINK] = f"Workflows in Temporal|{links.temporal.rstrip('/')}/{path}"
    if links.dashboard and not build_id:
        annotations[DASHBOARD_LINK] = f"Rollout|{links.dashboard.rstrip('/')}/#{spec.worker_deployment}"
    return annotations


def _applied_with_target(worker: WorkerVersions) -> set[str]:
    """The versions that a sync with a hook applies before the hook.

    These are the target, and versions with traffic but without pods, which must not wait for a broken target.
    If the target was active before, as in a rollback, the target is the only one.
    """
    target, versions = worker.spec.build_id, worker.versions
    if any(version.build_id == target and version.status in HAD_TRAFFIC for version in versions):
        return {target}
    created = (version for version in versions if version.action is VersionAction.CREATE)
    return {target, *(version.build_id for version in created if version.status in IN_ROUTING)}


def _place(manifest: Manifest) -> tuple[str, int, str, str]:
    kind, metadata = manifest["kind"], manifest["metadata"]
    order = _APPLY_ORDER.index(kind) if kind in _APPLY_ORDER else len(_APPLY_ORDER)
    return metadata["namespace"], order, kind, metadata["name"]


def _as_list(manifests: Sequence[Manifest]) -> bytes:
    # a single document, because a truncated JSON list is never valid
    encode = json.JSONEncoder(ensure_ascii=False).encode
    items = [encode(manifest).encode() for manifest in manifests]
    return b'{"apiVersion": "v1", "kind": "List", "items": [' + b", ".join(items) + b"]}\n"


def one_document(document: Any, output: str) -> str:
    """A document as text in the format `yaml` or `json`."""
    if output == "json":
        return json.dumps(document, ensure_ascii=False) + "\n"
    return write_documents([document])


FORMATS: Mapping[str, Callable[[Sequence[Manifest]], bytes]] = {"yaml": encode_documents, "json": _as_list}
"""The formats of a render: YAML documents, each after `---`, or one JSON List."""


def rollout_manifests(worker: WorkerVersions, identity: str, jobs: RolloutJobs) -> Iterator[Manifest]:
    """The objects that carry out a worker's rollout.

    Without a Job, this is only the intent, which tick needs even if a person or CI carries out the rollout.
    """
    spec, driver = worker.spec, worker.spec.policy.driver
    is_possible = jobs.image if driver.has_job else driver is Driver.NONE or jobs.is_tick_allowed
    if not (is_possible and (identity or driver.has_job)):
        return
    has_hook = jobs.driver is Driver.HOOK and driver.has_job
    warnings = (*jobs.warnings.get(spec.worker_deployment, ()), *worker.warnings)
    kinds = attached_kinds(worker, jobs.more_kinds)
    intent = replace(
        intent_of(spec, identity, warnings, kinds, jobs.prometheus),
        has_hook=has_hook,
        tick_takes_over=has_hook and jobs.is_tick_allowed,
        requests=jobs.pod.requests,
        is_for_tick=driver is Driver.TICK,
    )
    manifest = write_intent(intent)
    manifest["metadata"]["annotations"][PLAN_HASH] = plan_hash(worker)
    size = sum(len(text.encode()) for text in manifest["data"].values())
    if size > (largest := 1024 * 1024):
        large = f"{spec.document.source}: the intent of {spec.worker_deployment}'s rollout has {size} bytes"
        remedy = "make the pod template or the attached templates smaller"
        raise InvalidInput(f"{large}, but a ConfigMap can contain at most {largest}: {remedy}")
    yield manifest
    if not driver.has_job:
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
    """The minimum permissions that a rollout needs in its namespace.

    To apply an object that does not exist yet, a rollout needs the verb create. RBAC can limit this verb to a
    name.
    """
    spec = worker.spec
    names_to_read = {"ConfigMap": [rollout_name(spec.name), rollout_status_name(spec.name)], "Secret": []}
    if spec.rollout.gate and (source := spec.rollout.gate.input_from):
        names_to_read[source.kind].append(source.name)
    yield _rule("", "configmaps", "get", names=names_to_read["ConfigMap"])
    if names_to_read["Secret"]:
        yield _rule("", "secrets", "get", names=names_to_read["Secret"])
    yield _rule("", "configmaps", "create", "patch", names=[rollout_status_name(spec.name)])
    yield _rule("", "events", "create")
    yield _rule("", "pods", "list")
    yield _rule("batch", "jobs", "delete", "list")
    yield _rule("apps", "deployments", "list")
    # the rollout sets a Deployment's replicas and its annotations about attached objects
    patched = [
        version.deployment
        for version in worker.versions
        if version.replaced or (version.is_rendered and spec.replicas_are_external)
    ]
    if patched:
        yield _rule("apps", "deployments", "patch", names=patched)
    if spec.policy.owner_references is OwnerReferences.RENDER:
        # the rollout deletes attached objects itself, because Argo CD does not prune objects with an owner
        for kind in attached_kinds(worker, more_kinds):
            yield _rule(kind.group, resource_of_kind(kind.kind), "create", "delete", "list", "patch")


def attached_kinds(worker: WorkerVersions, more_kinds: Sequence[GroupKind]) -> Sequence[GroupKind]:
    """The kinds that are or were attached to a worker's versions, or all kinds if no cluster was read."""
    now = {GroupKind.of(resource.template) for resource in worker.spec.attached}
    were = worker.were_attached
    possible = [kind for kind in (*KINDS, *more_kinds) if were is None or kind in now or kind.kind in were]
    return sorted({*possible, *now}, key=str)


def _rule(group: str, resource: str, *verbs: str, names: Sequence[str] = ()) -> Manifest:
    rule: Manifest = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return rule | ({"resourceNames": list(names)} if names else {})
