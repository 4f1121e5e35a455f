"""The rules for volumes: what each kind of source needs, and the claims that are made for one pod."""

import re
from collections.abc import Mapping
from typing import Any

from twgen.model.problem import quoted
from twgen.specs.validation import syntax
from twgen.specs.validation.rules import (
    Rule,
    Wrong,
    at_most_one,
    exactly_one,
    named_secret,
    required,
)
from twgen.specs.validation.syntax import FILE_MODE, Check, Range, not_negative, when_filled
from twgen.versioning.quantities import quantity_nanos

_LOGICAL_UNIT = Range(0, 255)
_PARTITION = Range(0, 255)
_LONGEST_TENANT = 64
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+"),
    "eui": re.compile(r"eui\.[0-9A-Fa-f]{16}"),
    "naa": re.compile(r"naa\.[0-9A-Fa-f]{32}"),
}
_RESERVED = ("kubernetes.io", "k8s.io")
_MANAGED_DISK, _OTHER_DISK = "/subscriptions/", "https://"
_OF_PERSISTENT_CLAIM = "PersistentVolumeClaim"


def _absolute_path(value: str) -> str:
    return "" if value.startswith("/") else f"{quoted(value)} is not an absolute path"


def _iscsi_name(value: str) -> str:
    form = _ISCSI_NAMES.get(value[:3])
    is_name = form and form.fullmatch(value)
    return "" if is_name else f"{quoted(value)} is not a name such as iqn.2001-04.com.example:disk"


def _without_slash(value: str) -> str:
    return f"{quoted(value)} must not contain a slash" if "/" in value else ""


def _registry(value: str) -> str:
    addresses = value.split(",")
    are_pairs = all(address.count(":") == 1 or "]:" in address for address in addresses)
    return "" if are_pairs else f"{quoted(value)} is not host:port, or several with commas between them"


def _tenant(value: str) -> str:
    return f"is longer than {_LONGEST_TENANT} characters" if len(value) > _LONGEST_TENANT else ""


VOLUME_FIELDS: dict[str, Check] = {
    "AWSElasticBlockStoreVolumeSource.partition": _PARTITION,
    "ClusterTrustBundleProjection.path": syntax.file_in_volume,
    "ConfigMapVolumeSource.defaultMode": FILE_MODE,
    "CSIVolumeSource.driver": syntax.CSI_DRIVER,
    "DownwardAPIVolumeFile.mode": FILE_MODE,
    "DownwardAPIVolumeFile.path": syntax.file_in_volume,
    "DownwardAPIVolumeSource.defaultMode": FILE_MODE,
    "EmptyDirVolumeSource.sizeLimit": not_negative,
    "FCVolumeSource.lun": _LOGICAL_UNIT,
    "FlockerVolumeSource.datasetName": _without_slash,
    "GCEPersistentDiskVolumeSource.partition": _PARTITION,
    "GitRepoVolumeSource.directory": when_filled(syntax.inner_path),
    "HostPathVolumeSource.path": syntax.path_without_backsteps,
    "ISCSIVolumeSource.initiatorName": _iscsi_name,
    "ISCSIVolumeSource.iqn": _iscsi_name,
    "ISCSIVolumeSource.lun": _LOGICAL_UNIT,
    "KeyToPath.mode": FILE_MODE,
    "KeyToPath.path": syntax.file_in_volume,
    "NFSVolumeSource.path": _absolute_path,
    "PersistentVolumeClaimSpec.storageClassName": when_filled(syntax.SUBDOMAIN),
    "PersistentVolumeClaimSpec.volumeAttributesClassName": when_filled(syntax.SUBDOMAIN),
    "ProjectedVolumeSource.defaultMode": FILE_MODE,
    "QuobyteVolumeSource.registry": _registry,
    "QuobyteVolumeSource.tenant": _tenant,
    "SecretVolumeSource.defaultMode": FILE_MODE,
    "ServiceAccountTokenProjection.expirationSeconds": Range(600, 2**32),
    "ServiceAccountTokenProjection.path": syntax.file_in_volume,
    "StorageOSVolumeSource.volumeName": when_filled(syntax.DNS_LABEL),
    "StorageOSVolumeSource.volumeNamespace": when_filled(syntax.DNS_LABEL),
    "Volume.name": syntax.DNS_LABEL,
}
"""By struct and field of kubernetes_types."""


def _azure_disk(struct: Mapping[str, Any]) -> Wrong:
    beginning = _MANAGED_DISK if struct.get("kind") == "Managed" else _OTHER_DISK
    if not struct["diskURI"].startswith(beginning):
        yield ("diskURI",), f"must begin with {beginning} for a disk of kind {struct.get('kind') or 'Shared'}"


def _unit_of_fibre_channel(struct: Mapping[str, Any]) -> Wrong:
    if "targetWWNs" in struct and "lun" not in struct:
        yield ("lun",), "is required with targetWWNs"


def _flex_options(struct: Mapping[str, Any]) -> Wrong:
    for name in struct.get("options") or ():
        domain = name.partition("/")[0]
        if any(domain == reserved or domain.endswith(f".{reserved}") for reserved in _RESERVED):
            yield ("options", name), f"{' and '.join(_RESERVED)} are reserved for Kubernetes"


def _iscsi_secret(struct: Mapping[str, Any]) -> Wrong:
    for name in ("chapAuthDiscovery", "chapAuthSession"):
        if struct.get(name) and "secretRef" not in struct:
            yield ("secretRef",), f"is required with {name}"


def _projection(struct: Mapping[str, Any]) -> Wrong:
    """The files of all sources lie in one folder."""
    seen: set[str] = set()
    for index, source in enumerate(struct.get("sources") or ()):
        for kind in ("secret", "configMap", "downwardAPI"):
            for place, item in enumerate((source.get(kind) or {}).get("items") or ()):
                path = item["path"]
                if path and path in seen:
                    yield ("sources", index, kind, "items", place, "path"), f"{quoted(path)} appears twice"
                seen.add(path)


def _trust_bundle(struct: Mapping[str, Any]) -> Wrong:
    if "name" in struct and "labelSelector" in struct:
        yield ("labelSelector",), "conflicts with name: set only one of them"


def _claim_of_one_pod(struct: Mapping[str, Any]) -> Wrong:
    metadata = struct.get("metadata") or {}
    for name in ("name", "namespace", "finalizers"):
        if metadata.get(name):
            yield ("metadata", name), "must be left out: the claim is made for each pod"


def _claim(struct: Mapping[str, Any]) -> Wrong:
    modes = struct.get("accessModes") or []
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield ("accessModes",), "ReadWriteOncePod must be the only mode"
    storage = ((struct.get("resources") or {}).get("requests") or {}).get("storage")
    place = ("resources", "requests", "storage")
    if storage is None:
        yield place, "is required"
    elif quantity_nanos(storage) <= 0:
        yield place, f"must be above 0, not {storage}"
    sources = {name: struct[name] for name in ("dataSource", "dataSourceRef") if struct.get(name)}
    for name, source in sources.items():
        if not source.get("apiGroup") and source["kind"] != _OF_PERSISTENT_CLAIM:
            yield (name, "apiGroup"), f"is required: only a {_OF_PERSISTENT_CLAIM} needs none"
    told = [(item.get("apiGroup") or "", item["kind"], item["name"]) for item in sources.values()]
    if len(set(told)) > 1:
        yield ("dataSource",), "must be the same as dataSourceRef: keep one"


_SOURCES = ("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi",
            "downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk",
            "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim",
            "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret",
            "storageos", "vsphereVolume")  # fmt: skip
_PROJECTED = (
    "clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken",
)  # fmt: skip

VOLUME_RULES: dict[str, tuple[Rule, ...]] = {
    "AzureDiskVolumeSource": (_azure_disk,),
    "CephFSVolumeSource": (required("monitors"),),
    "CinderVolumeSource": (named_secret("secretRef"),),
    "ClusterTrustBundleProjection": (exactly_one("name", "signerName"), _trust_bundle),
    "ConfigMapProjection": (required("name"),),
    "ConfigMapVolumeSource": (required("name"),),
    "CSIVolumeSource": (named_secret("nodePublishSecretRef"),),
    "EphemeralVolumeSource": (required("volumeClaimTemplate"),),
    "FCVolumeSource": (exactly_one("targetWWNs", "wwids"), _unit_of_fibre_channel),
    "FlexVolumeSource": (_flex_options,),
    "FlockerVolumeSource": (exactly_one("datasetName", "datasetUUID"),),
    "ISCSIVolumeSource": (_iscsi_secret,),
    "PersistentVolumeClaimSpec": (required("accessModes"), _claim),
    "PersistentVolumeClaimTemplate": (_claim_of_one_pod,),
    "ProjectedVolumeSource": (_projection,),
    "RBDVolumeSource": (required("monitors"),),
    "ScaleIOVolumeSource": (required("volumeName"),),
    "SecretProjection": (required("name"),),
    "SecretVolumeSource": (required("secretName"),),
    "StorageOSVolumeSource": (required("volumeName"), named_secret("secretRef")),
    "Volume": (at_most_one(*_SOURCES),),
    "VolumeProjection": (at_most_one(*_PROJECTED),),
}
"""By struct of kubernetes_types."""
