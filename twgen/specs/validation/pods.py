"""The rules for pod templates: those of one field, those between the fields of one struct."""

from collections.abc import Mapping
from typing import Any

from twgen.model.problem import quoted
from twgen.specs.validation import syntax
from twgen.specs.validation.containers import CONTAINER_RULES, pod_rules
from twgen.specs.validation.hosts import HOST_FIELDS
from twgen.specs.validation.pod_annotations import annotations_of_pods
from twgen.specs.validation.rules import (
    Rule,
    Wrong,
    annotations,
    exactly_one,
    forbidden,
    labels,
    required,
    requirement,
)
from twgen.specs.validation.syntax import PORT, USER_ID, Check, Range, when_filled
from twgen.specs.validation.volumes import VOLUME_FIELDS, VOLUME_RULES

_MOST_NAME_SERVERS = 3
_MOST_SEARCH_DOMAINS = 32


def _at_most(most: int, what: str) -> Check:
    return lambda items: f"has {len(items)} {what}: at most {most} are allowed" if len(items) > most else ""


FIELDS: dict[str, Check] = {
    **HOST_FIELDS,
    **VOLUME_FIELDS,
    "ConfigMapEnvSource.name": syntax.SUBDOMAIN,
    "ConfigMapKeySelector.key": syntax.CONFIG_KEY,
    "ConfigMapKeySelector.name": syntax.SUBDOMAIN,
    "Container.name": syntax.DNS_LABEL,
    "ContainerPort.containerPort": PORT,
    "ContainerPort.hostPort": when_filled(PORT),
    "ContainerPort.name": when_filled(syntax.PORT_NAME),
    "EnvFromSource.prefix": when_filled(syntax.VARIABLE_NAME),
    "EnvVar.name": syntax.VARIABLE_NAME,
    "FileKeySelector.key": syntax.VARIABLE_NAME,
    "FileKeySelector.path": syntax.path_without_backsteps,
    "FileKeySelector.volumeName": syntax.DNS_LABEL,
    "GRPCAction.port": PORT,
    "HostAlias.hostnames[]": syntax.SUBDOMAIN,
    "HostAlias.ip": syntax.address,
    "HTTPGetAction.port": syntax.port,
    "HTTPHeader.name": syntax.HEADER_NAME,
    "LabelSelectorRequirement.key": syntax.qualified_name,
    "NodeSelectorRequirement.key": syntax.qualified_name,
    "ObjectMeta.finalizers[]": syntax.finalizer,
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
    "PodSecurityContext.seLinuxChangePolicy": lambda value: (
        "" if value == "Recursive" else f"{value} is refused by an API server with default features"
    ),
    "PodSecurityContext.supplementalGroups[]": USER_ID,
    "PodSpec.hostname": when_filled(syntax.DNS_LABEL),
    "PodSpec.hostnameOverride": syntax.Form(syntax.SUBDOMAIN.pattern, 64, syntax.SUBDOMAIN.words),
    "PodSpec.nodeName": when_filled(syntax.SUBDOMAIN),
    "PodSpec.priorityClassName": when_filled(syntax.SUBDOMAIN),
    "PodSpec.restartPolicy": lambda value: (
        "" if value in {"Always", ""} else "must be Always in a Deployment"
    ),
    "PodSpec.runtimeClassName": syntax.SUBDOMAIN,
    "PodSpec.serviceAccount": when_filled(syntax.SUBDOMAIN),
    "PodSpec.serviceAccountName": when_filled(syntax.SUBDOMAIN),
    "PodSpec.subdomain": when_filled(syntax.DNS_LABEL),
    "PreferredSchedulingTerm.weight": Range(1, 100),
    "Probe.failureThreshold": Range(0),
    "Probe.initialDelaySeconds": Range(0),
    "Probe.periodSeconds": Range(0),
    "Probe.successThreshold": Range(0),
    "Probe.terminationGracePeriodSeconds": Range(1),
    "Probe.timeoutSeconds": Range(0),
    "SecretEnvSource.name": syntax.SUBDOMAIN,
    "SecretKeySelector.key": syntax.CONFIG_KEY,
    "SecretKeySelector.name": syntax.SUBDOMAIN,
    "SecurityContext.runAsGroup": USER_ID,
    "SecurityContext.runAsUser": USER_ID,
    "Sysctl.name": syntax.SYSCTL_NAME,
    "TCPSocketAction.port": syntax.port,
    "TopologySpreadConstraint.matchLabelKeys[]": syntax.qualified_name,
    "TopologySpreadConstraint.maxSkew": Range(1),
    "TopologySpreadConstraint.minDomains": Range(1),
    "VolumeMount.subPath": when_filled(syntax.inner_path),
    "VolumeMount.subPathExpr": when_filled(syntax.inner_path),
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
        yield ("effect",), "must be NoExecute with tolerationSeconds"
    if operator == "Exists" and value:
        yield ("value",), "must be left out: the operator is Exists"
    if operator == "Equal" and (wrong := syntax.LABEL_VALUE(value)):
        yield ("value",), wrong
    if operator in {"Lt", "Gt"}:
        yield ("operator",), f"{operator} is refused by an API server with default features"


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
            yield ("matchFields", index), "needs operator In or NotIn, with one value"


def _sysctls(struct: Mapping[str, Any]) -> Wrong:
    seen: set[str] = set()
    for index, item in enumerate(struct.get("sysctls") or ()):
        if item["name"] in seen:
            yield ("sysctls", index, "name"), f"{quoted(item['name'])} appears twice"
        seen.add(item["name"])


_METADATA: tuple[Rule, ...] = (labels("labels"), annotations)
_SOURCES_OF_VARIABLES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")

STRUCTS: dict[str, tuple[Rule, ...]] = {
    **CONTAINER_RULES,
    **VOLUME_RULES,
    "AppArmorProfile": (_local_profile,),
    "ConfigMapEnvSource": (required("name"),),
    "ConfigMapKeySelector": (required("name"),),
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
    "PodTemplateSpec": (annotations_of_pods,),
    "Probe": (exactly_one("exec", "httpGet", "tcpSocket", "grpc"),),
    "SeccompProfile": (_local_profile,),
    "SecretEnvSource": (required("name"),),
    "SecretKeySelector": (required("name"),),
    "Toleration": (_toleration,),
    "TopologySpreadConstraint": (_spread,),
}
"""By struct of kubernetes_types."""
