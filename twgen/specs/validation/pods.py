"""The rules for pod templates: those of one field, those between the fields of one struct."""

from collections.abc import Mapping
from typing import Any

from twgen.model.problem import quoted
from twgen.specs.validation import syntax
from twgen.specs.validation.containers import CONTAINER_RULES, pod_rules
from twgen.specs.validation.rules import (
    Rule,
    Wrong,
    annotations,
    at_most_one,
    exactly_one,
    forbidden,
    labels,
    required,
    requirement,
)
from twgen.specs.validation.syntax import FILE_MODE, PORT, USER_ID, Check, Range, not_negative

_MOST_NAME_SERVERS = 3
_MOST_SEARCH_DOMAINS = 32


def _when_filled(check: Check) -> Check:
    return lambda value: check(value) if value else ""


def _at_most(most: int, what: str) -> Check:
    return lambda items: f"holds {len(items)} {what}, at most {most} are taken" if len(items) > most else ""


FIELDS: dict[str, Check] = {
    "ClusterTrustBundleProjection.path": syntax.file_in_volume,
    "ConfigMapEnvSource.name": syntax.SUBDOMAIN,
    "ConfigMapKeySelector.key": syntax.CONFIG_KEY,
    "ConfigMapKeySelector.name": syntax.SUBDOMAIN,
    "ConfigMapVolumeSource.defaultMode": FILE_MODE,
    "Container.name": syntax.DNS_LABEL,
    "ContainerPort.containerPort": PORT,
    "ContainerPort.hostPort": _when_filled(PORT),
    "ContainerPort.name": _when_filled(syntax.PORT_NAME),
    "CSIVolumeSource.driver": syntax.CSI_DRIVER,
    "DownwardAPIVolumeFile.mode": FILE_MODE,
    "DownwardAPIVolumeFile.path": syntax.file_in_volume,
    "DownwardAPIVolumeSource.defaultMode": FILE_MODE,
    "EmptyDirVolumeSource.sizeLimit": not_negative,
    "EnvFromSource.prefix": _when_filled(syntax.VARIABLE_NAME),
    "EnvVar.name": syntax.VARIABLE_NAME,
    "FileKeySelector.key": syntax.VARIABLE_NAME,
    "FileKeySelector.path": syntax.path_without_backsteps,
    "FileKeySelector.volumeName": syntax.DNS_LABEL,
    "GRPCAction.port": PORT,
    "HostAlias.hostnames[]": syntax.SUBDOMAIN,
    "HostAlias.ip": syntax.address,
    "HostPathVolumeSource.path": syntax.path_without_backsteps,
    "HTTPGetAction.port": syntax.port,
    "HTTPHeader.name": syntax.HEADER_NAME,
    "KeyToPath.mode": FILE_MODE,
    "KeyToPath.path": syntax.file_in_volume,
    "LabelSelectorRequirement.key": syntax.qualified_name,
    "NodeSelectorRequirement.key": syntax.qualified_name,
    "PodAffinityTerm.matchLabelKeys[]": syntax.qualified_name,
    "PodAffinityTerm.mismatchLabelKeys[]": syntax.qualified_name,
    "PodAffinityTerm.namespaces[]": syntax.DNS_LABEL,
    "PodAffinityTerm.topologyKey": syntax.qualified_name,
    "PodDNSConfig.nameservers": _at_most(_MOST_NAME_SERVERS, "name servers"),
    "PodDNSConfig.searches": _at_most(_MOST_SEARCH_DOMAINS, "search domains"),
    "PodReadinessGate.conditionType": syntax.qualified_name,
    "PodResourceClaim.name": syntax.DNS_LABEL,
    "PodResourceClaim.resourceClaimName": syntax.SUBDOMAIN,
    "PodResourceClaim.resourceClaimTemplateName": syntax.SUBDOMAIN,
    "PodSchedulingGate.name": syntax.qualified_name,
    "PodSecurityContext.fsGroup": USER_ID,
    "PodSecurityContext.runAsGroup": USER_ID,
    "PodSecurityContext.runAsUser": USER_ID,
    "PodSecurityContext.supplementalGroups[]": USER_ID,
    "PodSpec.hostname": _when_filled(syntax.DNS_LABEL),
    "PodSpec.hostnameOverride": syntax.Form(syntax.SUBDOMAIN.pattern, 64, syntax.SUBDOMAIN.words),
    "PodSpec.nodeName": _when_filled(syntax.SUBDOMAIN),
    "PodSpec.priorityClassName": _when_filled(syntax.SUBDOMAIN),
    "PodSpec.restartPolicy": lambda value: (
        "" if value in {"Always", ""} else "of a Deployment must be Always"
    ),
    "PodSpec.runtimeClassName": syntax.SUBDOMAIN,
    "PodSpec.serviceAccount": _when_filled(syntax.SUBDOMAIN),
    "PodSpec.serviceAccountName": _when_filled(syntax.SUBDOMAIN),
    "PodSpec.subdomain": _when_filled(syntax.DNS_LABEL),
    "PreferredSchedulingTerm.weight": Range(1, 100),
    "Probe.failureThreshold": Range(0),
    "Probe.initialDelaySeconds": Range(0),
    "Probe.periodSeconds": Range(0),
    "Probe.successThreshold": Range(0),
    "Probe.terminationGracePeriodSeconds": Range(1),
    "Probe.timeoutSeconds": Range(0),
    "ProjectedVolumeSource.defaultMode": FILE_MODE,
    "SecretEnvSource.name": syntax.SUBDOMAIN,
    "SecretKeySelector.key": syntax.CONFIG_KEY,
    "SecretKeySelector.name": syntax.SUBDOMAIN,
    "SecretVolumeSource.defaultMode": FILE_MODE,
    "SecurityContext.runAsGroup": USER_ID,
    "SecurityContext.runAsUser": USER_ID,
    "ServiceAccountTokenProjection.expirationSeconds": Range(600, 2**32),
    "ServiceAccountTokenProjection.path": syntax.file_in_volume,
    "Sysctl.name": syntax.SYSCTL_NAME,
    "TCPSocketAction.port": syntax.port,
    "TopologySpreadConstraint.matchLabelKeys[]": syntax.qualified_name,
    "TopologySpreadConstraint.maxSkew": Range(1),
    "TopologySpreadConstraint.minDomains": Range(1),
    "VolumeMount.subPath": _when_filled(syntax.inner_path),
    "VolumeMount.subPathExpr": _when_filled(syntax.inner_path),
    "Volume.name": syntax.DNS_LABEL,
    "WeightedPodAffinityTerm.weight": Range(1, 100),
}
"""By struct and field of kubernetes_types, `[]`: of each item of a list."""


def _local_profile(struct: Mapping[str, Any]) -> Wrong:
    """Seccomp and AppArmor: a file of the node is named exactly when the type is Localhost."""
    if struct["type"] == "Localhost" and not struct.get("localhostProfile"):
        yield ("localhostProfile",), "is required: the type is Localhost"
    if struct["type"] != "Localhost" and "localhostProfile" in struct:
        yield ("localhostProfile",), "must be left out: the type is not Localhost"


def _toleration(struct: Mapping[str, Any]) -> Wrong:
    operator, value = struct.get("operator") or "Equal", struct.get("value", "")
    if struct.get("key") and (wrong := syntax.qualified_name(struct["key"])):
        yield ("key",), wrong
    if not struct.get("key") and operator != "Exists":
        yield ("operator",), "must be Exists: there is no key"
    if "tolerationSeconds" in struct and struct.get("effect") != "NoExecute":
        yield ("effect",), "must be NoExecute beside tolerationSeconds"
    if operator == "Exists" and value:
        yield ("value",), "must be left out: the operator is Exists"
    if operator == "Equal" and (wrong := syntax.LABEL_VALUE(value)):
        yield ("value",), wrong
    if operator in {"Lt", "Gt"}:
        yield ("operator",), f"{operator} is taken by no API server that has its default features"


def _spread(struct: Mapping[str, Any]) -> Wrong:
    if "minDomains" in struct and struct["whenUnsatisfiable"] != "DoNotSchedule":
        yield ("minDomains",), "needs whenUnsatisfiable: DoNotSchedule"
    yield from _label_keys(struct)


def _label_keys(struct: Mapping[str, Any]) -> Wrong:
    selector, keys = struct.get("labelSelector"), struct.get("matchLabelKeys") or ()
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if struct.get(field) and selector is None:
            yield (field,), "needs a labelSelector"
    mismatched = set(struct.get("mismatchLabelKeys") or ())
    for index, key in enumerate(keys):
        if key in mismatched:
            yield ("matchLabelKeys", index), f"{quoted(key)} is in mismatchLabelKeys too"


def _dns(struct: Mapping[str, Any]) -> Wrong:
    for field, check in (("nameservers", syntax.address), ("searches", syntax.SEARCH_DOMAIN)):
        for index, item in enumerate(struct.get(field) or ()):
            if wrong := check(item):
                yield (field, index), wrong
    for index, option in enumerate(struct.get("options") or ()):
        if not option.get("name"):
            yield ("options", index, "name"), "is required"


def _required_node_labels(struct: Mapping[str, Any]) -> Wrong:
    """Of nodes that are preferred, the values may be no values of labels: one may find nodes all the same."""
    for index, term in enumerate(struct["nodeSelectorTerms"] or ()):
        for place, expression in enumerate(term.get("matchExpressions") or ()):
            for at, value in enumerate(expression.get("values") or ()):
                if wrong := syntax.LABEL_VALUE(value):
                    yield ("nodeSelectorTerms", index, "matchExpressions", place, "values", at), wrong


def _node_fields(struct: Mapping[str, Any]) -> Wrong:
    for index, item in enumerate(struct.get("matchFields") or ()):
        if item["key"] != "metadata.name":
            yield ("matchFields", index, "key"), "must be metadata.name"
        elif item["operator"] not in {"In", "NotIn"} or len(item.get("values") or ()) != 1:
            yield ("matchFields", index), "takes the operators In and NotIn, with one value"


def _sysctls(struct: Mapping[str, Any]) -> Wrong:
    seen: set[str] = set()
    for index, item in enumerate(struct.get("sysctls") or ()):
        if item["name"] in seen:
            yield ("sysctls", index, "name"), f"{quoted(item['name'])} is there twice"
        seen.add(item["name"])


def _projection(struct: Mapping[str, Any]) -> Wrong:
    """The files of all sources lie in one folder."""
    seen: set[str] = set()
    for index, source in enumerate(struct.get("sources") or ()):
        for kind in ("secret", "configMap", "downwardAPI"):
            for place, item in enumerate((source.get(kind) or {}).get("items") or ()):
                path = item["path"]
                if path and path in seen:
                    yield ("sources", index, kind, "items", place, "path"), f"{quoted(path)} is there twice"
                seen.add(path)


def _trust_bundle(struct: Mapping[str, Any]) -> Wrong:
    if "name" in struct and "labelSelector" in struct:
        yield ("labelSelector",), "cannot stand beside name: keep one"


_METADATA: tuple[Rule, ...] = (labels("labels"), annotations)
_VOLUMES = ("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi",
            "downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk",
            "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim",
            "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret",
            "storageos", "vsphereVolume")  # fmt: skip
_SOURCES_OF_VARIABLES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")

STRUCTS: dict[str, tuple[Rule, ...]] = CONTAINER_RULES | {
    "AppArmorProfile": (_local_profile,),
    "ClusterTrustBundleProjection": (exactly_one("name", "signerName"), _trust_bundle),
    "ConfigMapEnvSource": (required("name"),),
    "ConfigMapKeySelector": (required("name"),),
    "ConfigMapProjection": (required("name"),),
    "ConfigMapVolumeSource": (required("name"),),
    "EnvFromSource": (exactly_one("configMapRef", "secretRef"),),
    "EnvVarSource": (exactly_one(*_SOURCES_OF_VARIABLES),),
    "ExecAction": (required("command"),),
    "LabelSelector": (labels("matchLabels"),),
    "LabelSelectorRequirement": (requirement(syntax.LABEL_VALUE),),
    "LifecycleHandler": (exactly_one("exec", "httpGet", "tcpSocket", "sleep"),),
    "NodeSelector": (required("nodeSelectorTerms"), _required_node_labels),
    "NodeSelectorRequirement": (requirement(None),),
    "NodeSelectorTerm": (_node_fields,),
    "ObjectMeta": _METADATA,
    "PodAffinityTerm": (_label_keys,),
    "PodDNSConfig": (_dns,),
    "PodResourceClaim": (exactly_one("resourceClaimName", "resourceClaimTemplateName"),),
    "PodSpec": (
        required("containers"),
        labels("nodeSelector"),
        forbidden(
            activeDeadlineSeconds="must be left out: a Deployment's pods run until they are replaced",
            ephemeralContainers="must be left out: a template cannot have any",
        ),
        *pod_rules,
    ),
    "PodSecurityContext": (_sysctls,),
    "Probe": (exactly_one("exec", "httpGet", "tcpSocket", "grpc"),),
    "ProjectedVolumeSource": (_projection,),
    "SeccompProfile": (_local_profile,),
    "SecretEnvSource": (required("name"),),
    "SecretKeySelector": (required("name"),),
    "SecretProjection": (required("name"),),
    "SecretVolumeSource": (required("secretName"),),
    "Toleration": (_toleration,),
    "TopologySpreadConstraint": (_spread,),
    "Volume": (at_most_one(*_VOLUMES),),
    "VolumeProjection": (
        at_most_one(
            "clusterTrustBundle",
            "configMap",
            "downwardAPI",
            "podCertificate",
            "secret",
            "serviceAccountToken",
        ),
    ),
}
"""By struct of kubernetes_types."""
