"""Rules for pod templates and attached objects: about single fields, and between the fields of a struct.

Fields that workers rarely use, such as fields for Windows, are not checked here. The API server reports their
errors during the sync.
"""

import re
from collections.abc import Iterator
from typing import Any

from twgen.model.paths import value_at
from twgen.model.problem import CONFLICT, DUPLICATE, MISSING_FIELD, REQUIRED, did_you_mean, quoted
from twgen.specs.validation import checks
from twgen.specs.validation.checks import (
    Check,
    Range,
    Steps,
    Struct,
    StructRule,
    Wrong,
    qualified_name,
    when_filled,
)
from twgen.versioning.quantities import quantity_nanos
from twgen.versioning.stored_form import struct_fields

_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_KUBERNETES = "kubernetes.io/"


def _resource_name(name: str) -> str:
    """Check the name of a container's resource."""
    if name in _NATIVE_RESOURCES:
        return ""
    if wrong := qualified_name(name):
        return wrong
    if "/" not in name:
        if name.startswith(_HUGE_PAGES):
            return ""
        return f"{quoted(name)} is not a resource of containers: use {', '.join(_NATIVE_RESOURCES)}"
    if _KUBERNETES not in name and (name.startswith("requests.") or qualified_name(f"requests.{name}")):
        return f"{quoted(name)} is not a valid name of an extended resource"
    return ""


_FIELDS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (checks.DNS_LABEL, ("Container.name", "PodAffinityTerm.namespaces[]", "Volume.name")),
    (checks.SUBDOMAIN, (
        "ConfigMapEnvSource.name", "ConfigMapKeySelector.name", "PodSpec.runtimeClassName",
        "SecretEnvSource.name", "SecretKeySelector.name",
    )),
    (when_filled(checks.SUBDOMAIN), (
        "PersistentVolumeClaimSpec.storageClassName", "PodSpec.nodeName", "PodSpec.priorityClassName",
        "PodSpec.serviceAccount", "PodSpec.serviceAccountName",
    )),
    (qualified_name, (
        "LabelSelectorRequirement.key", "NodeSelectorRequirement.key", "PodAffinityTerm.matchLabelKeys[]",
        "PodAffinityTerm.mismatchLabelKeys[]", "PodAffinityTerm.topologyKey",
        "TopologySpreadConstraint.matchLabelKeys[]",
    )),
    (checks.LABEL_VALUE, ("LabelSelectorRequirement.values[]",)),
    (checks.finalizer, ("ObjectMeta.finalizers[]",)),
    (checks.CONFIG_KEY, ("ConfigMapKeySelector.key", "SecretKeySelector.key")),
    (checks.VARIABLE_NAME, ("EnvVar.name",)),
    (when_filled(checks.VARIABLE_NAME), ("EnvFromSource.prefix",)),
    (checks.PORT, ("ContainerPort.containerPort", "GRPCAction.port")),
    (when_filled(checks.PORT), ("ContainerPort.hostPort",)),
    (when_filled(checks.PORT_NAME), ("ContainerPort.name",)),
    (checks.port, ("HTTPGetAction.port", "TCPSocketAction.port")),
    (checks.HEADER_NAME, ("HTTPHeader.name",)),
    (checks.not_negative, ("EmptyDirVolumeSource.sizeLimit",)),
    (checks.file_in_volume, (
        "DownwardAPIVolumeFile.path", "KeyToPath.path", "ServiceAccountTokenProjection.path",
    )),
    (checks.path_without_backsteps, ("HostPathVolumeSource.path",)),
    (when_filled(checks.inner_path), ("VolumeMount.subPath", "VolumeMount.subPathExpr")),
    (Range(0, 0o777), (
        "ConfigMapVolumeSource.defaultMode", "DownwardAPIVolumeFile.mode",
        "DownwardAPIVolumeSource.defaultMode", "KeyToPath.mode", "ProjectedVolumeSource.defaultMode",
        "SecretVolumeSource.defaultMode",
    )),
    (Range(0, 2**31 - 1), (
        "PodSecurityContext.fsGroup", "PodSecurityContext.runAsGroup", "PodSecurityContext.runAsUser",
        "PodSecurityContext.supplementalGroups[]", "SecurityContext.runAsGroup", "SecurityContext.runAsUser",
    )),
    (Range(0), (
        "Probe.failureThreshold", "Probe.initialDelaySeconds", "Probe.periodSeconds",
        "Probe.successThreshold", "Probe.timeoutSeconds",
    )),
    (Range(1), (
        "Probe.terminationGracePeriodSeconds", "TopologySpreadConstraint.maxSkew",
        "TopologySpreadConstraint.minDomains",
    )),
    (Range(1, 100), ("PreferredSchedulingTerm.weight", "WeightedPodAffinityTerm.weight")),
    (Range(600, 2**32), ("ServiceAccountTokenProjection.expirationSeconds",)),
    (
        lambda value: "" if value in {"Always", ""} else "must be Always in a Deployment",
        ("PodSpec.restartPolicy",),
    ),
    (
        when_filled(lambda _: "must be left out: a Deployment's pods run until they are replaced"),
        ("PodSpec.activeDeadlineSeconds",),
    ),
    (checks.DNS_LABEL, ("ContainerResourceMetricSource.container",)),
    (_resource_name, ("ContainerResourceMetricSource.name",)),
    (checks.api_version, ("CrossVersionObjectReference.apiVersion",)),
    (checks.PATH_SEGMENT, (
        "CrossVersionObjectReference.kind", "CrossVersionObjectReference.name", "MetricIdentifier.name",
    )),
    (Range(1), (
        "HPAScalingPolicy.value", "HorizontalPodAutoscalerSpec.maxReplicas",
        "HorizontalPodAutoscalerSpec.minReplicas", "MetricTarget.averageUtilization",
        "V1HorizontalPodAutoscalerSpec.maxReplicas", "V1HorizontalPodAutoscalerSpec.minReplicas",
        "V1HorizontalPodAutoscalerSpec.targetCPUUtilizationPercentage",
    )),
    (Range(1, 1800), ("HPAScalingPolicy.periodSeconds",)),
    (Range(0, 3600), ("HPAScalingRules.stabilizationWindowSeconds",)),
    (checks.not_empty, ("HPAScalingRules.policies",)),
    (checks.not_negative, ("HPAScalingRules.tolerance",)),
    (checks.positive, ("MetricTarget.averageValue", "MetricTarget.value")),
    (checks.share, ("PodDisruptionBudgetSpec.maxUnavailable", "PodDisruptionBudgetSpec.minAvailable")),
)  # fmt: skip
FIELDS = {name: check for check, names in _FIELDS for name in names}
"""The check for each field, by struct and field in kubernetes_types. `[]` means each item of a list."""

_KEDA_MOST_REPLICAS = 100
"""KEDA's default for maxReplicaCount."""
_SUBSCRIPTED = r"(?P<field>.+?)\['(?P<key>.*)'\]"
_POD_FIELDS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
})  # fmt: skip
_FILE_FIELDS = frozenset({
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
})  # fmt: skip


def _each(struct: Struct, field: str) -> Iterator[tuple[int, Any]]:
    return enumerate(struct.get(field) or ())


def _containers(pod: Struct) -> Iterator[tuple[Steps, Struct]]:
    for field in ("containers", "initContainers"):
        for index, container in _each(pod, field):
            yield (field, index), container


def _security(struct: Struct) -> Wrong:
    added = value_at(struct, "capabilities", "add") or ()
    if struct.get("allowPrivilegeEscalation") is False and (
        struct.get("privileged") or "CAP_SYS_ADMIN" in added
    ):
        yield ("allowPrivilegeEscalation",), "must not be false for a privileged container"


def _local_profile(struct: Struct) -> Wrong:
    """A seccomp or AppArmor profile must name a file on the node exactly if its type is Localhost."""
    if struct["type"] == "Localhost" and not struct.get("localhostProfile"):
        yield ("localhostProfile",), MISSING_FIELD("is required: the type is Localhost")
    if struct["type"] != "Localhost" and "localhostProfile" in struct:
        yield ("localhostProfile",), "must be left out: the type is not Localhost"


def _env_var(struct: Struct) -> Wrong:
    source = struct.get("valueFrom")
    if source is not None and struct.get("value"):
        yield ("valueFrom",), CONFLICT("conflicts with value: set only one of them")
    if reference := value_at(source, "fieldRef"):
        yield from _field_reference(reference, _POD_FIELDS, ("valueFrom", "fieldRef"))
    if reference := value_at(source, "resourceFieldRef"):
        yield from _resource_reference(reference, ("valueFrom", "resourceFieldRef"))


def _downward_file(struct: Struct) -> Wrong:
    if reference := struct.get("fieldRef"):
        yield from _field_reference(reference, _FILE_FIELDS, ("fieldRef",))
    if reference := struct.get("resourceFieldRef"):
        if not reference.get("containerName"):
            yield ("resourceFieldRef", "containerName"), REQUIRED
        yield from _resource_reference(reference, ("resourceFieldRef",))


def _field_reference(reference: Struct, fields: frozenset[str], steps: Steps) -> Wrong:
    if reference.get("apiVersion") not in {None, "", "v1"}:
        yield (*steps, "apiVersion"), "must be v1"
    path = reference["fieldPath"]
    if subscripted := re.fullmatch(_SUBSCRIPTED, path):
        wrong = qualified_name(subscripted["key"].lower())
        if subscripted["field"] not in {"metadata.annotations", "metadata.labels"}:
            wrong = "keys are only allowed for metadata.annotations and metadata.labels"
        if wrong:
            yield (*steps, "fieldPath"), wrong
    elif path not in fields:
        yield (*steps, "fieldPath"), f"{quoted(path)} is not one of {', '.join(sorted(fields))}"


def _resource_reference(reference: Struct, steps: Steps) -> Wrong:
    of, _, name = reference["resource"].partition(".")
    if of not in {"limits", "requests"} or not (name in _NATIVE_RESOURCES or name.startswith(_HUGE_PAGES)):
        yield (*steps, "resource"), f"{quoted(reference['resource'])} is not a resource such as limits.cpu"


def _volume_mount(struct: Struct) -> Wrong:
    if struct.get("subPath") and struct.get("subPathExpr"):
        yield ("subPathExpr",), CONFLICT("conflicts with subPath: set only one of them")


def _named_ports(struct: Struct) -> Wrong:
    seen: set[str] = set()
    for index, port in _each(struct, "ports"):
        name = port.get("name")
        if name and name in seen:
            yield ("ports", index, "name"), DUPLICATE(f"{quoted(name)} appears twice")
        seen.add(name or "")


def _probes(struct: Struct) -> Wrong:
    for name in ("livenessProbe", "startupProbe"):
        if value_at(struct, name, "successThreshold") not in {None, 0, 1}:
            yield (name, "successThreshold"), "must be 1"
    if "terminationGracePeriodSeconds" in (struct.get("readinessProbe") or {}):
        path = ("readinessProbe", "terminationGracePeriodSeconds")
        yield path, "must be left out: a failed readiness probe does not end a pod"


def _resources(struct: Struct) -> Wrong:
    """Check a container's requests and limits."""
    limits, requests = struct.get("limits") or {}, struct.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            wrong = _resource_name(name) or checks.not_negative(amount)
            is_extended = "/" in name and _KUBERNETES not in name
            if not wrong and is_extended and quantity_nanos(amount) % 10**9:
                wrong = f"{amount} must be a whole number"
            if wrong:
                yield (field, name), wrong
    for name, amount in requests.items():
        native = "/" not in name and not name.startswith(_HUGE_PAGES)
        if name not in limits:
            if not native:
                yield ("limits", name), MISSING_FIELD("is required: it must equal the request")
        elif native and quantity_nanos(amount) > quantity_nanos(limits[name]) >= 0:
            yield ("requests", name), f"{amount} is above its limit ({limits[name]})"
        elif not native and quantity_nanos(amount) != quantity_nanos(limits[name]):
            yield ("requests", name), f"{amount} must equal its limit ({limits[name]})"


def _volume_names(pod: Struct) -> Wrong:
    names = [volume["name"] for _, volume in _each(pod, "volumes")]
    for steps, container in _containers(pod):
        for index, mount in _each(container, "volumeMounts"):
            if mount["name"] not in names:
                wrong = f"there is no volume {quoted(mount['name'])}{did_you_mean(mount['name'], names)}"
                yield (*steps, "volumeMounts", index, "name"), wrong


def _init_containers(pod: Struct) -> Wrong:
    names = {container["name"] for _, container in _each(pod, "containers")}
    for index, container in _each(pod, "initContainers"):
        if container["name"] in names:
            path = ("initContainers", index, "name")
            yield path, f"{quoted(container['name'])} is the name of another container"
        for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if name in container and container.get("restartPolicy") != "Always":
                yield ("initContainers", index, name), "needs restartPolicy: Always"


def _host_ports(pod: Struct) -> Wrong:
    seen: set[tuple[str, str, int]] = set()
    for index, container in _each(pod, "containers"):
        for port_index, port in _each(container, "ports"):
            path = ("containers", index, "ports", port_index, "hostPort")
            host = port.get("hostPort")
            if not host:
                continue
            if pod.get("hostNetwork") and host != port["containerPort"]:
                yield path, "must equal the containerPort: the pod uses the host network"
            key = (port.get("protocol") or "TCP", port.get("hostIP", ""), host)
            if key in seen:
                yield path, DUPLICATE(f"{host} appears twice")
            seen.add(key)


def _lifecycles(pod: Struct) -> Wrong:
    grace = pod.get("terminationGracePeriodSeconds", 30)
    for steps, container in _containers(pod):
        for hook in ("postStart", "preStop"):
            seconds = value_at(container, "lifecycle", hook, "sleep", "seconds")
            if seconds is not None and not 0 <= seconds <= grace:
                path = (*steps, "lifecycle", hook, "sleep", "seconds")
                yield path, f"{seconds} is not from 0 to terminationGracePeriodSeconds ({grace})"


def _volume_claim(struct: Struct) -> Wrong:
    storage = value_at(struct, "resources", "requests", "storage")
    wrong = REQUIRED if storage is None else checks.positive(storage)
    if wrong:
        yield ("resources", "requests", "storage"), wrong


def _toleration(struct: Struct) -> Wrong:
    operator, value = struct.get("operator") or "Equal", struct.get("value", "")
    if struct.get("key") and (wrong := qualified_name(struct["key"])):
        yield ("key",), wrong
    if not struct.get("key") and operator != "Exists":
        yield ("operator",), "must be Exists if there is no key"
    if "tolerationSeconds" in struct and struct.get("effect") != "NoExecute":
        yield ("effect",), "must be NoExecute if tolerationSeconds is set"
    if operator == "Exists" and value:
        yield ("value",), "must be left out: the operator is Exists"
    if operator == "Equal" and (wrong := checks.LABEL_VALUE(value)):
        yield ("value",), wrong
    if operator in {"Lt", "Gt"}:
        yield ("operator",), f"{operator} is rejected by an API server with default features"


def _least_domains(struct: Struct) -> Wrong:
    if "minDomains" in struct and struct["whenUnsatisfiable"] != "DoNotSchedule":
        yield ("minDomains",), "needs whenUnsatisfiable: DoNotSchedule"


def _label_keys(struct: Struct) -> Wrong:
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if struct.get(field) and struct.get("labelSelector") is None:
            yield (field,), "needs a labelSelector"


def _required_node_labels(struct: Struct) -> Wrong:
    """Check the labels of required nodes. An API server allows invalid values for preferred nodes."""
    for term_index, term in _each(struct, "nodeSelectorTerms"):
        for index, expression in _each(term, "matchExpressions"):
            steps = ("nodeSelectorTerms", term_index, "matchExpressions", index, "values")
            for value_index, value in _each(expression, "values"):
                if wrong := checks.LABEL_VALUE(value):
                    yield (*steps, value_index), wrong


def _metric(struct: Struct) -> Wrong:
    """An HPA metric has only `type` and the field that `type` names."""
    types = next(field.enum for field in struct_fields("MetricSpec") if field.name == "type")
    if struct["type"] not in types:
        return
    wanted = struct["type"][0].lower() + struct["type"][1:]
    if wanted not in struct:
        yield (wanted,), MISSING_FIELD(f"is required: the type is {struct['type']}")
    for name in struct:
        if name not in {"type", wanted}:
            yield (name,), f"must be left out: the type is {struct['type']}"


def _value_or_average(struct: Struct) -> Wrong:
    if struct["target"].keys().isdisjoint({"value", "averageValue"}):
        yield ("target",), "needs value or averageValue"


_UTILIZATION: tuple[StructRule, ...] = (
    checks.inside("target", checks.exactly_one("averageUtilization", "averageValue")),
)
_REPLICAS: tuple[StructRule, ...] = (checks.in_order("minReplicas", "maxReplicas"),)
_NAMED = ("ConfigMapEnvSource", "ConfigMapKeySelector", "ConfigMapProjection", "ConfigMapVolumeSource",
          "SecretEnvSource", "SecretKeySelector", "SecretProjection")  # fmt: skip
STRUCTS: dict[str, tuple[StructRule, ...]] = {
    **dict.fromkeys(_NAMED, (checks.required("name"),)),
    "AppArmorProfile": (_local_profile,),
    "Container": (checks.required("image"), _named_ports, _probes),
    "ContainerResourceMetricSource": _UTILIZATION,
    "DownwardAPIVolumeFile": (checks.exactly_one("fieldRef", "resourceFieldRef"), _downward_file),
    "EnvFromSource": (checks.exactly_one("configMapRef", "secretRef"),),
    "EnvVar": (_env_var,),
    "EnvVarSource": (
        checks.exactly_one("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    ),
    "EphemeralVolumeSource": (checks.required("volumeClaimTemplate"),),
    "ExecAction": (checks.required("command"),),
    "ExternalMetricSource": (checks.inside("target", checks.exactly_one("value", "averageValue")),),
    "HorizontalPodAutoscalerSpec": _REPLICAS,
    "LabelSelector": (checks.labels("matchLabels"),),
    "LabelSelectorRequirement": (checks.requirement,),
    "LifecycleHandler": (checks.exactly_one("exec", "httpGet", "tcpSocket", "sleep"),),
    "MetricSpec": (_metric,),
    "NodeSelector": (checks.required("nodeSelectorTerms"), _required_node_labels),
    "NodeSelectorRequirement": (checks.requirement,),
    "ObjectMeta": (checks.labels("labels"), checks.annotations),
    "ObjectMetricSource": (_value_or_average,),
    "PersistentVolumeClaimSpec": (checks.required("accessModes"), _volume_claim),
    "PodAffinityTerm": (_label_keys,),
    "PodDisruptionBudgetSpec": (checks.at_most_one("minAvailable", "maxUnavailable"),),
    "PodSpec": (
        checks.required("containers"),
        checks.labels("nodeSelector"),
        _volume_names,
        _init_containers,
        _host_ports,
        _lifecycles,
    ),
    "PodsMetricSource": (checks.inside("target", checks.required("averageValue")),),
    "Probe": (checks.exactly_one("exec", "httpGet", "tcpSocket", "grpc"),),
    "ResourceMetricSource": _UTILIZATION,
    "ResourceRequirements": (_resources,),
    "ScaledObjectSpec": (checks.in_order("minReplicaCount", "maxReplicaCount", _KEDA_MOST_REPLICAS),),
    "SeccompProfile": (_local_profile,),
    "SecretVolumeSource": (checks.required("secretName"),),
    "SecurityContext": (_security,),
    "Toleration": (_toleration,),
    "TopologySpreadConstraint": (_least_domains, _label_keys),
    "V1HorizontalPodAutoscalerSpec": _REPLICAS,
    "Volume": (checks.one_besides("name"),),
    "VolumeMount": (_volume_mount,),
    "VolumeProjection": (checks.one_besides(),),
}
"""The rules of each struct, by its name in kubernetes_types."""
