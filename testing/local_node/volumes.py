"""Writes the volumes of a Pod to folders on the node, and lists the mounts of its containers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testing.kubernetes.api import Object
from testing.local_node.environment import expanded
from testing.local_node.materials import NOT_CONFIGURED, CannotStart, Materials

# as with a kubelet; the parent folder is private
_ANYBODY_READS, _ANYBODY_WRITES = 0o644, 0o777
_READ_ONLY = ("configMap", "secret", "projected", "downwardAPI")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder on the node, and its path in a container."""

    source: Path
    target: str
    read_only: bool


def write_volumes(folder: Path, materials: Materials) -> Mapping[str, Path]:
    """Write the files of each volume; returns the folders. Raises CannotStart."""
    volumes = {}
    for volume in materials.pod["spec"].get("volumes", []):
        place = folder / volume["name"]
        if "hostPath" in volume:
            place = Path(volume["hostPath"]["path"])
        else:
            place.mkdir(parents=True, exist_ok=True)
            if "emptyDir" in volume:
                place.chmod(_ANYBODY_WRITES)
            for path, content in _files(volume, materials).items():
                _write(place / path, content)
        volumes[volume["name"]] = place
    return volumes


def mounts(
    container: Object, volumes: Mapping[str, Path], pod: Object, variables: Mapping[str, str]
) -> list[Mount]:
    """The mounts of a container, outer folders first."""
    kinds = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    found = []
    for mount in container.get("volumeMounts", []):
        name = mount["name"]
        below = mount.get("subPath") or expanded(mount.get("subPathExpr", ""), variables)
        source = volumes[name] / below
        if "emptyDir" in kinds[name]:
            source.mkdir(parents=True, exist_ok=True)
        read_only = mount.get("readOnly", False) or any(kind in kinds[name] for kind in _READ_ONLY)
        found.append(Mount(source, mount["mountPath"], read_only))
    return sorted(found, key=lambda mount: mount.target)


def _files(volume: Object, materials: Materials) -> dict[str, bytes]:
    if "configMap" in volume:
        return _chosen(volume["configMap"], materials.config_map(volume["configMap"]))
    if "secret" in volume:
        return _chosen(volume["secret"], materials.secret(volume["secret"], "secretName"))
    if "downwardAPI" in volume:
        return _fields(volume["downwardAPI"]["items"], materials)
    if "projected" in volume:
        files: dict[str, bytes] = {}
        for source in volume["projected"].get("sources", []):
            files.update(_projected(source, materials))
        return files
    if "emptyDir" in volume:
        return {}
    message = f"a local node does not support volumes of type {', '.join(volume.keys() - {'name'})}"
    raise CannotStart(NOT_CONFIGURED, message)


def _projected(source: Object, materials: Materials) -> dict[str, bytes]:
    if "serviceAccountToken" in source:
        projection = source["serviceAccountToken"]
        return {projection["path"]: materials.token(projection)}
    if "configMap" in source:
        return _chosen(source["configMap"], materials.config_map(source["configMap"]))
    if "secret" in source:
        return _chosen(source["secret"], materials.secret(source["secret"]))
    return _fields(source["downwardAPI"]["items"], materials)


def _chosen(reference: Object, entries: Mapping[str, bytes]) -> dict[str, bytes]:
    if "items" not in reference:
        return dict(entries)
    chosen: Sequence[Object] = [item for item in reference["items"] if item["key"] in entries]
    return {item["path"]: entries[item["key"]] for item in chosen}


def _fields(items: Iterable[Object], materials: Materials) -> dict[str, bytes]:
    return {item["path"]: materials.field(item["fieldRef"]["fieldPath"]).encode() for item in items}


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(_ANYBODY_READS)
