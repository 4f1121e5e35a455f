"""ConfigMaps and Secrets whose name holds a hash of what is in them, and that older versions still take."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, WorkerVersions

_HASHED = re.compile(r"(.+)-[2456789bcdfghkmt]{10}")
"""As kustomize calls what it generates: sigs.k8s.io/kustomize/api/hasher."""
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
    """The workers' versions, with a warning for each whose object the render only has under another hash.

    `rendered` are those objects that are pruned once they are rendered no more.
    """
    instead = {item._replace(name=base): item.name for item in rendered if (base := _base(item.name))}
    if not instead:
        return tuple(workers)
    return tuple(
        replace(worker, warnings=(*worker.warnings, *_lost(worker, rendered, instead))) for worker in workers
    )


def _lost(
    worker: WorkerVersions, rendered: Collection[ObjectName], instead: Mapping[ObjectName, str]
) -> Iterator[str]:
    for version in worker.versions:
        manifest = version.recorded.manifest if version.recorded and version.action not in _GONE else {}
        for kind, name in dict.fromkeys(_taken(value_at(manifest, "spec", "template", "spec") or {})):
            wanted = ObjectName(kind, worker.spec.namespace, name)
            other = instead.get(wanted._replace(name=_base(name)), "")
            if other and wanted not in rendered:
                # only a warning: twgen cannot render the old one, because it does not know the content
                yield (
                    f"{version.build_id} uses {kind} {name}, but the render has {other} instead. Once {name}"
                    " is pruned, pods of this version can no longer start. Restore it if it is already gone."
                    " To keep such objects, generate them with the annotation"
                    " argocd.argoproj.io/sync-options: Prune=false"
                )


def _base(name: str) -> str:
    found = _HASHED.fullmatch(name)
    return found[1] if found else ""


def _taken(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
