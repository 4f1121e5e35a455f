"""All manifests of a render, in the order in which they are printed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.errors import InvalidInput
from twgen.model.plan import WorkerVersions
from twgen.model.problem import Document
from twgen.model.spec import Policy
from twgen.rendering.attached import attached_manifest
from twgen.rendering.deployments import version_deployment
from twgen.yaml.writer import encode_documents, write_documents

Manifest = dict[str, Any]

_APPLY_ORDER = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment")
"""A kind that is not named comes after those that are."""
_CLUSTER_WIDE = {
    "": {"Namespace", "Node", "PersistentVolume"},
    "admissionregistration.k8s.io": {
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    },
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "apiregistration.k8s.io": {"APIService"},
    "certificates.k8s.io": {"CertificateSigningRequest"},
    "networking.k8s.io": {"IngressClass"},
    "node.k8s.io": {"RuntimeClass"},
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
    "scheduling.k8s.io": {"PriorityClass"},
    "storage.k8s.io": {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"},
}
"""Kubernetes' own kinds that have no namespace, by API group (`kubectl api-resources --namespaced=false`)."""


class _Origin(NamedTuple):
    """Where a manifest comes from, and what to do when another one is the same object."""

    described: str
    remedy: str


def render_manifests(
    workers: Iterable[WorkerVersions],
    passthrough: Sequence[Document],
    identity_of: Callable[[Policy], str],
    namespace: str = "",
) -> list[Manifest]:
    """The passthrough documents in their order, then all that twgen makes, sorted.

    `namespace` is that of passthrough documents that name none; empty: not known, so it may be a worker's.
    Raises InvalidInput when two manifests are the same object, or when there is none.
    """
    made = [item for worker in workers for item in _manifests(worker, identity_of)]
    made.sort(key=lambda item: _place(item[0]))
    if not made and not passthrough:
        raise InvalidInput("the documents render to nothing: an empty output would delete everything")
    _refuse_collisions(made, passthrough, namespace)
    return [*(document.value for document in passthrough), *(manifest for manifest, _ in made)]


def _manifests(
    worker: WorkerVersions, identity_of: Callable[[Policy], str]
) -> Iterator[tuple[Manifest, _Origin]]:
    spec = worker.spec
    name = f"worker {spec.worker_deployment} ({spec.source})"
    of_worker = _Origin(name, f"rename the worker {spec.worker_deployment}")
    for version in worker.versions:
        if version.is_rendered:
            yield version_deployment(spec, version, identity_of(spec.policy)), of_worker
        for resource in spec.attached if version.attached else ():
            described = f"attached template {resource.name} ({resource.source}) of {name}"
            origin = _Origin(described, f"rename the attached template {resource.name}")
            yield attached_manifest(spec, version, resource), origin


def _place(manifest: Manifest) -> tuple[str, int, str, str]:
    kind, metadata = manifest["kind"], manifest["metadata"]
    order = _APPLY_ORDER.index(kind) if kind in _APPLY_ORDER else len(_APPLY_ORDER)
    return metadata["namespace"], order, kind, metadata["name"]


def _refuse_collisions(
    made: Iterable[tuple[Manifest, _Origin]], passthrough: Iterable[Document], namespace: str
) -> None:
    """Raise InvalidInput when two manifests are the same object, of whatever version of its API group."""
    seen: dict[tuple[str, str, str, str], _Origin] = {}
    for manifest, origin in made:
        _note(seen, manifest, [manifest["metadata"]["namespace"]], origin)
    of_workers = sorted({place[2] for place in seen})
    for document in passthrough:
        metadata = document.value.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            continue  # the server names it, or refuses it
        own = metadata.get("namespace") or namespace
        if document.value["kind"] in _CLUSTER_WIDE.get(_group(document.value), ()):
            possible = [""]
        else:
            possible = [str(own)] if own else ["", *of_workers]
        remedy = f"remove or rename the one in {document.source}"
        _note(seen, document.value, possible, _Origin(document.source, remedy))


def _note(
    seen: dict[tuple[str, str, str, str], _Origin],
    manifest: Manifest,
    namespaces: Sequence[str],
    origin: _Origin,
) -> None:
    """Note where an object of one of some namespaces comes from."""
    group, kind, name = _group(manifest), manifest["kind"], manifest["metadata"]["name"]
    for namespace in namespaces:
        if other := seen.get((group, kind, namespace, name)):
            raise InvalidInput(
                f"{kind} {namespace and namespace + '/'}{name} is there twice, from {other.described}"
                f" and from {origin.described}: {origin.remedy}"
            )
    seen[group, kind, namespaces[0], name] = origin


def _group(manifest: Manifest) -> str:
    return str(manifest["apiVersion"]).rpartition("/")[0]


def _as_list(manifests: Sequence[Manifest]) -> bytes:
    # one document: a list cut short can never be a valid shorter one
    items = [json.dumps(manifest, ensure_ascii=False).encode() for manifest in manifests]
    return b'{"apiVersion": "v1", "kind": "List", "items": [' + b", ".join(items) + b"]}\n"


def one_document(document: Any, output: str) -> str:
    """One document as `yaml` or `json`."""
    if output == "json":
        return json.dumps(document, ensure_ascii=False) + "\n"
    return write_documents([document])


FORMATS: Mapping[str, Callable[[Sequence[Manifest]], bytes]] = {"yaml": encode_documents, "json": _as_list}
"""How a render is printed: `---`-led YAML documents, or one JSON List."""
