"""The rules for containers, and for what they share with the rest of their pod."""

import re
from collections.abc import Mapping
from typing import Any

from twgen.model.problem import did_you_mean, quoted
from twgen.specs.validation import syntax
from twgen.specs.validation.hosts import (
    containers,
    host_namespaces,
    host_processes,
    operating_system,
    sysctls,
)
from twgen.specs.validation.resources import (
    HUGE_PAGES,
    NATIVE_RESOURCES,
    overhead,
    resources,
    resources_of_pod,
)
from twgen.specs.validation.rules import Rule, Steps, Wrong, exactly_one, required
from twgen.versioning.quantities import canonical_quantity, quantity_text

_DEFAULT_GRACE_PERIOD = 30
_SUBSCRIPTED = r"(?P<field>.+?)\['(?P<key>.*)'\]"
_POD_FIELDS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
})  # fmt: skip
_FILE_FIELDS = frozenset({
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
})  # fmt: skip
_BYTES = frozenset({"1", *(f"1{suffix}" for suffix in ("k", "M", "G", "T", "P", "E"))}) | frozenset(
    f"1{suffix}i" for suffix in ("K", "M", "G", "T", "P", "E")
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def _security(struct: Mapping[str, Any]) -> Wrong:
    added = (struct.get("capabilities") or {}).get("add") or ()
    if struct.get("allowPrivilegeEscalation") is False and (
        struct.get("privileged") or "CAP_SYS_ADMIN" in added
    ):
        yield ("allowPrivilegeEscalation",), "must not be false for a privileged container"


def _variable(struct: Mapping[str, Any]) -> Wrong:
    source = struct.get("valueFrom")
    if source is not None and struct.get("value"):
        yield ("valueFrom",), "conflicts with value: set only one of them"
    if source and (reference := source.get("fieldRef")):
        yield from _field_reference(reference, _POD_FIELDS, ("valueFrom", "fieldRef"))
    if source and (reference := source.get("resourceFieldRef")):
        yield from _resource_reference(reference, ("valueFrom", "resourceFieldRef"))


def _downward_file(struct: Mapping[str, Any]) -> Wrong:
    if reference := struct.get("fieldRef"):
        yield from _field_reference(reference, _FILE_FIELDS, ("fieldRef",))
    if reference := struct.get("resourceFieldRef"):
        if not reference.get("containerName"):
            yield ("resourceFieldRef", "containerName"), "is required"
        yield from _resource_reference(reference, ("resourceFieldRef",))


def _field_reference(reference: Mapping[str, Any], fields: frozenset[str], steps: Steps) -> Wrong:
    if reference.get("apiVersion") not in {None, "", "v1"}:
        yield (*steps, "apiVersion"), "must be v1"
    path = reference["fieldPath"]
    if subscripted := re.fullmatch(_SUBSCRIPTED, path):
        wrong = syntax.qualified_name(subscripted["key"].lower())
        if subscripted["field"] not in {"metadata.annotations", "metadata.labels"}:
            wrong = "only metadata.annotations and metadata.labels have keys"
        if wrong:
            yield (*steps, "fieldPath"), wrong
    elif path not in fields:
        yield (*steps, "fieldPath"), f"{quoted(path)} is not one of {', '.join(sorted(fields))}"


def _resource_reference(reference: Mapping[str, Any], steps: Steps) -> Wrong:
    of, _, name = reference["resource"].partition(".")
    if of not in {"limits", "requests"} or not (name in NATIVE_RESOURCES or name.startswith(HUGE_PAGES)):
        yield (*steps, "resource"), f"{quoted(reference['resource'])} is not a resource such as limits.cpu"
    divisor = canonical_quantity(quantity_text(reference.get("divisor", "0")))
    if divisor != "0" and divisor not in ({"1", "1m"} if name == "cpu" else _BYTES):
        yield (*steps, "divisor"), f"{divisor} is not a valid divisor of {name or 'it'}"


def _mounts(struct: Mapping[str, Any]) -> Wrong:
    devices = struct.get("volumeDevices") or ()
    device_names, device_paths = {item["name"] for item in devices}, {item["devicePath"] for item in devices}
    for index, mount in enumerate(struct.get("volumeMounts") or ()):
        if mount["name"] in device_names:
            yield ("volumeMounts", index, "name"), f"{quoted(mount['name'])} is in volumeDevices too"
        if mount["mountPath"] in device_paths:
            yield ("volumeMounts", index, "mountPath"), "is a path in volumeDevices too"
        if mount.get("mountPropagation") == "Bidirectional" and not (struct.get("securityContext") or {}).get(
            "privileged"
        ):
            yield ("volumeMounts", index, "mountPropagation"), "Bidirectional needs a privileged container"


def _mount(struct: Mapping[str, Any]) -> Wrong:
    if struct.get("subPath") and struct.get("subPathExpr"):
        yield ("subPathExpr",), "conflicts with subPath: set only one of them"
    if struct.get("recursiveReadOnly", "Disabled") != "Disabled":
        if not struct.get("readOnly"):
            yield ("recursiveReadOnly",), "needs readOnly: true"
        if struct.get("mountPropagation", "None") != "None":
            yield ("recursiveReadOnly",), "needs mountPropagation: None"


def _named_ports(struct: Mapping[str, Any]) -> Wrong:
    seen: set[str] = set()
    for index, port in enumerate(struct.get("ports") or ()):
        name = port.get("name")
        if name and name in seen:
            yield ("ports", index, "name"), f"{quoted(name)} appears twice"
        seen.add(name or "")


def _resize_policy(struct: Mapping[str, Any]) -> Wrong:
    seen: set[str] = set()
    for index, policy in enumerate(struct.get("resizePolicy") or ()):
        if policy["resourceName"] not in {"cpu", "memory"}:
            yield ("resizePolicy", index, "resourceName"), "must be cpu or memory"
        elif policy["resourceName"] in seen:
            yield ("resizePolicy", index, "resourceName"), f"{policy['resourceName']} appears twice"
        seen.add(policy["resourceName"])


def _probes(struct: Mapping[str, Any]) -> Wrong:
    for name in ("livenessProbe", "startupProbe"):
        if (struct.get(name) or {}).get("successThreshold") not in {None, 0, 1}:
            yield (name, "successThreshold"), "must be 1"
    if "terminationGracePeriodSeconds" in (struct.get("readinessProbe") or {}):
        place = ("readinessProbe", "terminationGracePeriodSeconds")
        yield place, "must be left out: a failed readiness probe does not end a pod"
    if struct.get("restartPolicyRules") and "restartPolicy" not in struct:
        yield ("restartPolicy",), "is required with restartPolicyRules"


def _volume_names(pod: Mapping[str, Any]) -> Wrong:
    volumes = {volume["name"]: volume for volume in pod.get("volumes") or ()}
    for steps, container in containers(pod):
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            if mount["name"] not in volumes:
                yield (*steps, "volumeMounts", index, "name"), _no_volume(mount["name"], volumes)
        for index, device in enumerate(container.get("volumeDevices") or ()):
            place = (*steps, "volumeDevices", index, "name")
            if device["name"] not in volumes:
                yield place, _no_volume(device["name"], volumes)
            elif not volumes[device["name"]].keys() & {"persistentVolumeClaim", "ephemeral"}:
                yield place, "must be a volume of type persistentVolumeClaim or ephemeral"
        for index, variable in enumerate(container.get("env") or ()):
            if reference := (variable.get("valueFrom") or {}).get("fileKeyRef"):
                place = (*steps, "env", index, "valueFrom", "fileKeyRef", "volumeName")
                if "emptyDir" not in volumes.get(reference["volumeName"], {}):
                    yield place, "must be a volume of type emptyDir"


def _no_volume(name: str, volumes: Mapping[str, Any]) -> str:
    return f"there is no volume {quoted(name)}{did_you_mean(name, volumes)}"


def _container_names(pod: Mapping[str, Any]) -> Wrong:
    names = {container["name"] for container in pod.get("containers") or ()}
    for index, container in enumerate(pod.get("initContainers") or ()):
        if container["name"] in names:
            place = ("initContainers", index, "name")
            yield place, f"{quoted(container['name'])} is the name of another container"


def _init_containers(pod: Mapping[str, Any]) -> Wrong:
    for index, container in enumerate(pod.get("initContainers") or ()):
        if container.get("restartPolicy") == "Always":
            continue
        for name in ("lifecycle", *_PROBES):
            if name in container:
                yield ("initContainers", index, name), "needs restartPolicy: Always"


def _host_ports(pod: Mapping[str, Any]) -> Wrong:
    seen: set[tuple[str, str, int]] = set()
    for index, container in enumerate(pod.get("containers") or ()):
        for place, port in enumerate(container.get("ports") or ()):
            at = ("containers", index, "ports", place, "hostPort")
            host = port.get("hostPort")
            if not host:
                continue
            if pod.get("hostNetwork") and host != port["containerPort"]:
                yield at, "must be the containerPort: the pod is on the host's network"
            key = (port.get("protocol") or "TCP", port.get("hostIP", ""), host)
            if key in seen:
                yield at, f"{host} appears twice"
            seen.add(key)


def _lifecycles(pod: Mapping[str, Any]) -> Wrong:
    grace = pod.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_PERIOD)
    for steps, container in containers(pod):
        lifecycle = container.get("lifecycle") or {}
        for hook in ("postStart", "preStop"):
            seconds = ((lifecycle.get(hook) or {}).get("sleep") or {}).get("seconds")
            if seconds is not None and not 0 <= seconds <= grace:
                place = (*steps, "lifecycle", hook, "sleep", "seconds")
                yield place, f"{seconds} is not from 0 to terminationGracePeriodSeconds ({grace})"


def _claims(pod: Mapping[str, Any]) -> Wrong:
    claims = {claim["name"] for claim in pod.get("resourceClaims") or ()}
    for steps, container in containers(pod):
        for index, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
            if claim["name"] not in claims:
                place = (*steps, "resources", "claims", index, "name")
                yield place, f"there is no resource claim {quoted(claim['name'])}"


pod_rules: tuple[Rule, ...] = (
    _volume_names,
    _container_names,
    _init_containers,
    _host_ports,
    _lifecycles,
    _claims,
    host_namespaces,
    host_processes,
    operating_system,
    overhead,
    resources_of_pod,
    sysctls,
)

CONTAINER_RULES: dict[str, tuple[Rule, ...]] = {
    "Container": (required("image"), _mounts, _named_ports, _resize_policy, _probes),
    "DownwardAPIVolumeFile": (exactly_one("fieldRef", "resourceFieldRef"), _downward_file),
    "EnvVar": (_variable,),
    "ResourceRequirements": (resources,),
    "SecurityContext": (_security,),
    "VolumeMount": (_mount,),
}
