"""ConfigMaps and Secrets with a hash of their content in their name, which older versions still use."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, WorkerVersions

_HASHED = re.compile(r"(.+)-[2456789bcdfghkmt]{10}")
"""The names of objects that kustomize generates: sigs.k8s.io/kustomize/api/hasher."""
_KINDS = {"configMap": "ConfigMap", "secret": "Secret"}
_GONE = {VersionAction.DROP, VersionAction.NONE}


class ObjectName(NamedTuple):
    """The name of a ConfigMap or a Secret in its cluster."""

    kind: str
    namespace: str
    name: str


def with_lost_references(
    workers: Iterable[WorkerVersions], rendered: Collection[ObjectName]
) -> tuple[WorkerVersions, ...]:
    """The workers' versions, with a warning for each whose object has another hash in the render.

    `rendered` has the objects that Argo CD prunes when they are no longer rendered.
    """
    new_names = {
        item._replace(name=plain_name): item.name
        for item in rendered
        if (plain_name := _name_without_hash(item.name))
    }
    if not new_names:
        return tuple(workers)
    return tuple(
        replace(worker, warnings=(*worker.warnings, *_lost_references(worker, rendered, new_names)))
        for worker in workers
    )


def _lost_references(
    worker: WorkerVersions, rendered: Collection[ObjectName], new_names: Mapping[ObjectName, str]
) -> Iterator[str]:
    for version in worker.versions:
        manifest = version.recorded.manifest if version.recorded and version.action not in _GONE else {}
        for kind, name in dict.fromkeys(_references(value_at(manifest, "spec", "template", "spec") or {})):
            referenced = ObjectName(kind, worker.spec.namespace, name)
            replacement = new_names.get(referenced._replace(name=_name_without_hash(name)), "")
            if replacement and referenced not in rendered:
                # only a warning: twgen cannot render the old object, because it does not know the content
                yield (
                    f"{version.build_id} uses {kind} {name}, but the render has {replacement} instead. Once"
                    f" {name} is pruned, pods of this version can no longer start. Restore it if it is"
                    " already gone. To keep such objects, generate them with the annotation"
                    " argocd.argoproj.io/sync-options: Prune=false"
                )


def _name_without_hash(name: str) -> str:
    match = _HASHED.fullmatch(name)
    return match[1] if match else ""


def _references(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of all ConfigMaps and Secrets that a pod names."""
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        variables = (item.get("valueFrom") or {} for item in container.get("env") or ())
        for source in (*(container.get("envFrom") or ()), *variables):
            for field, kind in _KINDS.items():
                reference = source.get(f"{field}Ref") or source.get(f"{field}KeyRef") or {}
                yield kind, reference.get("name") or ""
    for volume in pod.get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            for field, kind in _KINDS.items():
                named = source.get(field) or {}
                yield kind, named.get("name") or named.get("secretName") or ""
