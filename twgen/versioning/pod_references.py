"""The ConfigMaps and Secrets that pods refer to, and the hashes that kustomize adds to their names."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_HASHED = re.compile(r"(.+)-[2456789bcdfghkmt]{10}")
"""A name with a hash that kustomize added (sigs.k8s.io/kustomize/api/hasher)."""
_KINDS = {"configMap": "ConfigMap", "secret": "Secret"}


def name_without_hash(name: str) -> str:
    """The name without the hash that kustomize added; empty if the name has no hash."""
    match = _HASHED.fullmatch(name)
    return match[1] if match else ""


def referenced_objects(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The kind and name of each ConfigMap and Secret that a pod refers to."""
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
