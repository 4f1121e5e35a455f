"""Find documents and versions that would be the same object in an API server."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from twgen.model.operator import CLUSTER_SCOPED, GroupKind, api_group
from twgen.model.paths import value_at
from twgen.model.plan import WorkerVersions
from twgen.model.problem import Document, Place, Problem, path_in_file
from twgen.model.reasons.versions import VersionReason
from twgen.model.rollout import Driver
from twgen.model.spec import WorkerSpec
from twgen.versioning.names import (
    attached_resource_name,
    rollout_name,
    rollout_status_name,
    versioned_deployment_name,
)

_RBAC = "rbac.authorization.k8s.io"


class GeneratedObject(NamedTuple):
    """An object that a version gets: its name, and the document that the name comes from."""

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
    """All objects of the versions in a plan that exist or may exist, and of the rollouts by these drivers.

    Objects that are not rendered count too. The status of a rollout would overwrite another ConfigMap. A
    Deployment whose manifest is lost, or that is no longer needed, blocks its name: an API server refuses
    another version's selector, so that version would never be deployed. A version that twgen did not make
    has no objects.
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
    """The objects of the version that a spec describes, and of its rollout by one of these drivers."""
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
    """A version's copies of all attached resources."""
    for resource in spec.attached:
        name = attached_resource_name(spec.name, resource.name, build_id)
        template = f"attached template {resource.name}"
        origin = f"{template} of worker {spec.worker_deployment}", f"rename the {template}", resource.document
        yield GeneratedObject(api_group(resource.template), resource.kind, spec.namespace, name, *origin)


def collisions(
    made: Iterable[GeneratedObject], passthrough: Iterable[Document], namespace: str
) -> Iterator[Problem]:
    """A problem for each object that exists twice, also in different versions of its API group.

    `namespace` is for passthrough documents without one; empty: unknown, so it may be any worker's.
    """
    seen: dict[tuple[str, str, str, str], GeneratedObject] = {}
    for item in made:
        if (earlier := seen.setdefault(item[:4], item)) is not item:
            yield from _told(earlier, item)
    of_workers = sorted({place[2] for place in seen})
    for document in passthrough:
        name = value_at(document.value, "metadata", "name")
        if not isinstance(name, str):
            continue  # the server names it, or refuses it
        group, kind = api_group(document.value), document.value["kind"]
        own = value_at(document.value, "metadata", "namespace") or namespace
        possible: Sequence[str] = [str(own)] if own else ["", *of_workers]
        if GroupKind(group, kind) in CLUSTER_SCOPED:
            possible = [""]
        remedy = "remove or rename this one"
        objects = [GeneratedObject(group, kind, place, name, "", remedy, document) for place in possible]
        first = next((seen[item[:4]] for item in objects if item[:4] in seen), None)
        if first:
            yield from _told(first, objects[0]._replace(namespace=first.namespace))
        else:
            seen[objects[0][:4]] = objects[0]


def _told(first: GeneratedObject, second: GeneratedObject) -> Iterator[Problem]:
    is_of_one = first.document is second.document
    if first.maker == second.maker and first.maker and not is_of_one:
        return  # two documents of one name are refused as that
    remedy = "choose another build ID" if is_of_one else second.remedy
    makers = f", from {first.maker} and from {second.maker or 'this document'}" if first.maker else ""
    name = f"{second.namespace}/{second.name}" if second.namespace else second.name
    message = f"{second.kind} {name} is defined twice{makers}: {remedy}"
    if is_of_one:
        yield Problem.at(second.document, "metadata.name", message)
        return
    other = Place(first.document, path_in_file(first.document, "metadata.name"))
    yield Problem.at(second.document, "metadata.name", f"{message}; the other is at", other)
