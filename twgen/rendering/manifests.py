"""All manifests of a render, in the order in which they are printed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.document import Document
from twgen.model.plan import WorkerVersions
from twgen.model.policy import Policy
from twgen.rendering.attached import attached_manifest
from twgen.rendering.deployments import version_deployment

Manifest = dict[str, Any]

_APPLY_ORDER = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment")
"""A kind that is not named comes after those that are."""


def render_manifests(
    workers: Iterable[WorkerVersions], passthrough: Sequence[Document], identity_of: Callable[[Policy], str]
) -> list[Manifest]:
    """The passthrough documents in their order, then all that twgen makes, sorted.

    Raises InvalidInput when two of them are the same object, or when there is nothing.
    """
    made = sorted((item for worker in workers for item in _manifests(worker, identity_of)), key=_place)
    manifests = [document.value for document in passthrough] + made
    if not manifests:
        raise InvalidInput("the documents render to nothing: an empty output would delete everything")
    _refuse_collisions(manifests)
    return manifests


def _manifests(worker: WorkerVersions, identity_of: Callable[[Policy], str]) -> Iterator[Manifest]:
    spec = worker.spec
    for version in worker.versions:
        if version.is_rendered:
            yield version_deployment(spec, version, identity_of(spec.policy))
        if version.attached:
            yield from (attached_manifest(spec, version, resource) for resource in spec.attached)


def _place(manifest: Manifest) -> tuple[str, int, str, str]:
    kind, metadata = manifest["kind"], manifest["metadata"]
    order = _APPLY_ORDER.index(kind) if kind in _APPLY_ORDER else len(_APPLY_ORDER)
    return metadata["namespace"], order, kind, metadata["name"]


def _refuse_collisions(manifests: Iterable[Manifest]) -> None:
    seen = set()
    for manifest in manifests:
        metadata = manifest.get("metadata") or {}
        group = str(manifest["apiVersion"]).rpartition("/")[0]
        key = (group, manifest["kind"], metadata.get("namespace"), metadata.get("name"))
        if key in seen and metadata.get("name"):
            raise InvalidInput(
                f"two documents render to {manifest['kind']} {metadata.get('namespace')}/{metadata['name']}:"
                " rename a worker or an attached resource"
            )
        seen.add(key)
