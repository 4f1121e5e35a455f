"""Find documents next to the specs that interfere with versions.

Such documents scale or select versions' pods, have a version's labels, or define a version's object again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from twgen.model.operator import CLUSTER_SCOPED, GroupKind, api_group
from twgen.model.paths import join_path, value_at
from twgen.model.plan import WorkerVersions
from twgen.model.problem import DUPLICATE, Document, DocumentPath, Problem, Rule, path_in_file
from twgen.model.reasons import VersionReason
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.specs.attached import BUDGET, BUDGET_RULE, HPA, KINDS
from twgen.specs.kinds import WORKER_KINDS
from twgen.specs.pod_warnings import selects
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    DEPLOYMENT_NAME_LABEL,
    attached_resource_name,
    rollout_name,
    rollout_status_name,
    versioned_deployment_name,
)
from twgen.versioning.pod_references import name_without_hash, referenced_objects
from twgen.versioning.pod_templates import pod_labels

_RBAC = "rbac.authorization.k8s.io"
_DEPLOYMENT = GroupKind("apps", "Deployment")
_APPS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_WITH_PODS = {
    **{GroupKind("apps", kind): ("spec", "template") for kind in _APPS},
    GroupKind("batch", "Job"): ("spec", "template"),
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    GroupKind("", "Pod"): (),
}
"""The path of the pod template in each kind."""
_CONFIGURATIONS = (GroupKind("", "ConfigMap"), GroupKind("", "Secret"))
_WITHOUT_PODS = (BUDGET, HPA)
"""Kinds of objects without pods that versions can have in addition to their Deployments."""
_MOST_COMPARED = 100
"""A selector is compared with at most this many of the workers that have its rarest label."""
_SCALES_ONE = Rule(
    "scales-one-version", "An autoscaler targets one Deployment, but each version has its own Deployment."
)
_GENERATED = Rule(
    "generated-name", "kustomize has changed an object's name, but the pods still use the old name."
)
_VERSION_LABEL = Rule(
    "version-label", "An object has a worker's label, so it is treated as part of a version of this worker."
)
_Pods = dict[tuple[str, tuple[str, str] | None], list[tuple[WorkerSpec, Mapping[str, str]]]]


def warnings_of_neighbours(
    documents: Sequence[Document], workers: Sequence[WorkerSpec], namespace: str
) -> Iterator[Problem]:
    """A warning for each document that scales or selects versions' pods, or looks like a version.

    Documents without a namespace are in `namespace`, or in any worker's namespace if it is empty.
    """
    placed = [
        (
            document,
            GroupKind.of(document.value),
            str(value_at(document.value, "metadata", "namespace") or namespace),
        )
        for document in documents
        if workers
    ]
    yield from _misplaced_scalers(placed, workers)
    yield from _names_without_hash(placed, workers)
    pods = _pods(workers if any(kind == BUDGET for _, kind, _ in placed) else ())
    named = {(place, worker.name): worker for worker in reversed(workers) for place in ("", worker.namespace)}
    for document, kind, own in placed:
        if kind == BUDGET:
            yield from _budget(document, own, pods)
        if kind in _WITH_PODS or kind in _WITHOUT_PODS:
            yield from _marked(document, kind, own, named)


def _misplaced_scalers(
    placed: Sequence[tuple[Document, GroupKind, str]], workers: Sequence[WorkerSpec]
) -> Iterator[Problem]:
    """A warning for each document that scales a version's Deployment, or a Deployment named like a worker."""
    scalers = [
        (document, own, KINDS[kind].target)
        for document, kind, own in placed
        if kind in KINDS and KINDS[kind].target
    ]
    places: dict[tuple[str, str], WorkerSpec] = {}
    # iterate in reverse, because a dict keeps the last value, but the first worker with a name must win
    for worker in reversed(workers if scalers else ()):
        names = [worker.name]
        if worker.build_id:
            names.append(versioned_deployment_name(worker.name, worker.build_id))
        places |= {(place, name): worker for place in ("", worker.namespace) for name in names}
    deployments = {
        (own, str(value_at(document.value, "metadata", "name")))
        for document, kind, own in placed
        if kind == _DEPLOYMENT
    }
    for document, own, field in scalers:
        target = value_at(document.value, "spec", field)
        name, kind = str(value_at(target, "name")), value_at(target, "kind") or "Deployment"
        owner = places.get((own, name))
        is_other = kind == "Deployment" and (own, name) in deployments
        if owner and not is_other and kind in ("Deployment", *WORKER_KINDS):
            versions = "not a version" if kind != "Deployment" or name == owner.name else "only one version"
            message = (
                f"scales {kind} {name}, which is {versions} of worker {owner.worker_deployment}:"
                " make it a WorkerResourceTemplate"
            )
            yield Problem.at(document, f"spec.{field}.name", _SCALES_ONE(message))


def _names_without_hash(
    placed: Sequence[tuple[Document, GroupKind, str]], workers: Sequence[WorkerSpec]
) -> Iterator[Problem]:
    """A warning for each worker whose pods use an object's name without the hash that kustomize added."""
    names = {
        (kind.kind, own, str(value_at(document.value, "metadata", "name")))
        for document, kind, own in placed
        if kind in _CONFIGURATIONS
    }
    generated = {(kind, own, plain): name for kind, own, name in names if (plain := name_without_hash(name))}
    for worker in workers if generated else ():
        pod = value_at(worker.template.content, "spec") or {}
        for kind, name in dict.fromkeys(referenced_objects(pod)):
            places = [(kind, own, name) for own in ("", worker.namespace)]
            hashed = next((generated[place] for place in places if place in generated), "")
            if hashed and not any(place in names for place in places):
                why = f"the pods refer to {kind} {name}, but kustomize has renamed it to {hashed}"
                remedy = "add `configurations: [names.yaml]` to the kustomization"
                yield Problem.at(worker.document, "spec.template.spec", _GENERATED(f"{why}: {remedy}"))


def _pods(workers: Sequence[WorkerSpec]) -> _Pods:
    """The workers and their pods' labels, by namespace (empty means any) and by label (None means any)."""
    pods: _Pods = {}
    for worker in workers:
        labels = pod_labels(worker.template.content, worker.name, worker.build_id)
        for place in ("", worker.namespace):
            for label in (None, *labels.items()):
                pods.setdefault((place, label), []).append((worker, labels))
    return pods


def _budget(document: Document, namespace: str, pods: _Pods) -> Iterator[Problem]:
    selector = value_at(document.value, "spec", "selector")
    if not isinstance(selector, dict):
        return
    wanted = selector.get("matchLabels") or {}
    texts = isinstance(wanted, dict) and all(isinstance(value, str) for value in wanted.values())
    candidates = [pods.get((namespace, label), []) for label in (wanted.items() if texts else ())]
    fewest = min(candidates, key=len, default=pods.get((namespace, None), []) if texts else [])
    for worker, labels in fewest[:_MOST_COMPARED]:
        if not selects(selector, labels):
            continue
        attached = next((item for item in worker.attached if item.kind == BUDGET.kind), None)
        whose = f"the pods of all versions of worker {worker.worker_deployment}"
        message = f"counts {whose} together, so an old version may lose its last pod"
        if BUILD_ID_LABEL in wanted:
            whose = f"the pods of one version of worker {worker.worker_deployment}"
            message = f"selects only {whose}, so the next version has no budget"
        message += ": make it a WorkerResourceTemplate"
        if attached:
            why = "a pod with two budgets cannot be evicted"
            message = f"selects {whose}, like attached template {attached.name}, but {why}: remove it"
        yield Problem.at(document, "spec.selector", BUDGET_RULE(message))
        return


def _marked(
    document: Document, kind: GroupKind, namespace: str, named: Mapping[tuple[str, str], WorkerSpec]
) -> Iterator[Problem]:
    """A warning about the first label, on the object or on its pods, that marks it as part of a version."""
    for steps in dict.fromkeys(((), _WITH_PODS.get(kind, ()))):
        labels = value_at(document.value, *steps, "metadata", "labels")
        marks = labels if isinstance(labels, dict) else {}
        worker = named.get((namespace, str(marks.get(DEPLOYMENT_NAME_LABEL))))
        if worker:
            whose = "the budgets and metrics of the worker's versions count these pods"
            if not steps and kind.kind == "Deployment":
                whose = "twgen treats this Deployment as one of the worker's versions"
            elif kind in _WITHOUT_PODS:
                whose = "this object is removed together with the objects of the worker's versions"
            message = f"is the label of worker {worker.worker_deployment}, so {whose}"
            and_other = f" with {BUILD_ID_LABEL}" if BUILD_ID_LABEL in marks else ""
            path = join_path("", *steps, "metadata", "labels", DEPLOYMENT_NAME_LABEL)
            yield Problem.at(document, path, _VERSION_LABEL(f"{message}: remove it{and_other}"))
            return


class GeneratedObject(NamedTuple):
    """An object of a version or a rollout, and the document that determines the object's name."""

    group: str
    kind: str
    namespace: str
    name: str
    maker: str
    remedy: str
    document: Document


def generated_objects(
    workers: Iterable[WorkerVersions], drivers: Collection[Driver] = ()
) -> Iterator[GeneratedObject]:
    """The objects that exist or may exist for planned versions, and for rollouts with these drivers.

    This includes objects that are not rendered. A rollout's status would overwrite another ConfigMap with the
    same name. A Deployment that is no longer needed, or whose manifest is lost, still occupies its name: the
    API server would reject the changed selector of another version's Deployment with this name. Versions that
    twgen did not create have no objects here.
    """
    for worker in workers:
        if worker.spec.policy.driver in drivers:
            yield from _rollout(worker.spec)
        live = {version.live.name for version in worker.versions if version.live}
        for version in worker.versions:
            may_be_there = version.live or version.deployment not in live
            is_without = not version.deployment or version.reason is VersionReason.VERSION_CAP_REACHED
            if version.is_rendered or (may_be_there and not is_without):
                yield _deployment(worker.spec, version.deployment, version.build_id)
            names = {item.name for item in (*version.attached, *version.leaving)}
            yield from (item for item in _attached(worker.spec, version.build_id) if item.name in names)


def target_objects(spec: WorkerSpec, drivers: Collection[Driver] = ()) -> Iterator[GeneratedObject]:
    """The objects of the version that a spec describes.

    Also its rollout's objects if it has one of these drivers.
    """
    if spec.policy.driver in drivers:
        yield from _rollout(spec)
    yield _deployment(spec, versioned_deployment_name(spec.name, spec.build_id), spec.build_id)
    yield from _attached(spec, spec.build_id)


def _rollout(spec: WorkerSpec) -> Iterator[GeneratedObject]:
    intent, maker = rollout_name(spec.name), f"the rollout of worker {spec.worker_deployment}"
    objects = [("", "ConfigMap", intent), ("", "ConfigMap", rollout_status_name(spec.name))]
    if spec.policy.driver.has_job and not spec.policy.service_account_name:
        objects += [("", "ServiceAccount", intent), (_RBAC, "Role", intent), (_RBAC, "RoleBinding", intent)]
    for group, kind, name in objects:
        remedy = f"rename worker {spec.worker_deployment}"
        yield GeneratedObject(group, kind, spec.namespace, name, maker, remedy, spec.document)


def _deployment(spec: WorkerSpec, name: str, build_id: str) -> GeneratedObject:
    worker = f"worker {spec.worker_deployment}"
    origin = f"version {build_id} of {worker}", f"rename the {worker}", spec.document
    return GeneratedObject("apps", "Deployment", spec.namespace, name, *origin)


def _attached(spec: WorkerSpec, build_id: str) -> Iterator[GeneratedObject]:
    """The version's copies of all attached resources."""
    for resource in spec.attached:
        name = attached_resource_name(spec.name, resource.name, build_id)
        template = f"attached template {resource.name}"
        origin = f"{template} of worker {spec.worker_deployment}", f"rename the {template}", resource.document
        yield GeneratedObject(api_group(resource.template), resource.kind, spec.namespace, name, *origin)


def collisions(
    made: Iterable[GeneratedObject], passthrough: Iterable[Document], namespace: str
) -> Iterator[Problem]:
    """A problem for each object that is defined twice, even if the two definitions differ in the API version.

    Passthrough documents without a namespace are in `namespace`, or in any worker's namespace if it is empty.
    """
    seen: dict[tuple[str, str, str, str], GeneratedObject] = {}
    for item in made:
        if (earlier := seen.setdefault(item[:4], item)) is not item:
            yield from _defined_twice(earlier, item)
    of_workers = sorted({place[2] for place in seen})
    for document in passthrough:
        name = value_at(document.value, "metadata", "name")
        if not isinstance(name, str):
            continue  # the API server generates a name for this object, or rejects it
        group, kind = api_group(document.value), document.value["kind"]
        own = value_at(document.value, "metadata", "namespace") or namespace
        possible: Sequence[str] = [str(own)] if own else ["", *of_workers]
        if GroupKind(group, kind) in CLUSTER_SCOPED:
            possible = [""]
        remedy = "remove or rename this object"
        objects = [GeneratedObject(group, kind, place, name, "", remedy, document) for place in possible]
        first = next((seen[item[:4]] for item in objects if item[:4] in seen), None)
        if first:
            yield from _defined_twice(first, objects[0]._replace(namespace=first.namespace))
        else:
            seen[objects[0][:4]] = objects[0]


def _defined_twice(first: GeneratedObject, second: GeneratedObject) -> Iterator[Problem]:
    is_of_one = first.document is second.document
    if first.maker == second.maker and first.maker and not is_of_one:
        return  # documents with the same name are already reported
    remedy = "choose another build ID" if is_of_one else second.remedy
    makers = f", from {first.maker} and from {second.maker or 'this document'}" if first.maker else ""
    name = f"{second.namespace}/{second.name}" if second.namespace else second.name
    message = f"{second.kind} {name} is defined twice{makers}: {remedy}"
    if is_of_one:
        yield Problem.at(second.document, "metadata.name", DUPLICATE(message))
        return
    other = DocumentPath(first.document, path_in_file(first.document, "metadata.name"))
    yield Problem.at(second.document, "metadata.name", DUPLICATE(f"{message}; the other is at"), other)
