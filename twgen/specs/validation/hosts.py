"""The rules for what a pod shares with its node, and for what its operating system knows."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from twgen.model.problem import quoted
from twgen.specs.validation import syntax
from twgen.specs.validation.rules import Steps, Wrong
from twgen.specs.validation.syntax import Check

_NOT_ON_WINDOWS = "must be left out: the pod's operating system is windows"
_PODS_NOT_ON_WINDOWS = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace", "resources")
_SECURITY_NOT_ON_WINDOWS = (
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy",
    "privileged", "procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsUser", "seLinuxChangePolicy",
    "seLinuxOptions", "seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls",
)  # fmt: skip
_OF_NETWORK = ("net.",)
_OF_PROCESSES = ("fs.mqueue.", "kernel.msg", "kernel.sem", "kernel.shm")
_LONGEST_SPEC = 64 * 1024
_LONGEST_USER = 104
_LONGEST_DOMAIN = 256
_DOMAIN = re.compile(
    r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}|[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)+'
)
_USER = re.compile(r'(?![. ]*$)[^"/\\:;|=,+*?<>@\[\]]+')


def _credential_spec(value: str) -> str:
    too_long = f"is longer than {_LONGEST_SPEC // 1024} KiB" if len(value.encode()) > _LONGEST_SPEC else ""
    return too_long or syntax.not_empty(value)


def _windows_user(value: str) -> str:
    """A user, who may have a domain and a backslash before the name."""
    domain, backslash, user = value.rpartition("\\")
    is_domain = not backslash or (len(domain) < _LONGEST_DOMAIN and _DOMAIN.fullmatch(domain))
    if is_domain and len(user) < _LONGEST_USER and value.isprintable() and _USER.fullmatch(user):
        return ""
    return f"{quoted(value)} is not a Windows user, such as ContainerUser or DOMAIN\\user"


HOST_FIELDS: dict[str, Check] = {
    "WindowsSecurityContextOptions.gmsaCredentialSpec": _credential_spec,
    "WindowsSecurityContextOptions.gmsaCredentialSpecName": syntax.SUBDOMAIN,
    "WindowsSecurityContextOptions.runAsUserName": _windows_user,
}
"""By struct and field of kubernetes_types."""


def host_namespaces(pod: Mapping[str, Any]) -> Wrong:
    """What a pod shares with its node, or has of its own."""
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        yield ("shareProcessNamespace",), "conflicts with hostPID: set only one of them"
    for name in ("hostPID", "hostIPC", "hostNetwork"):
        if pod.get("hostUsers") is False and pod.get(name):
            yield (name,), "conflicts with hostUsers: false"
    for name in ("hostNetwork", "setHostnameAsFQDN"):
        if pod.get("hostnameOverride") and pod.get(name):
            yield ("hostnameOverride",), f"conflicts with {name}: set only one of them"
    if pod.get("dnsPolicy") == "None" and not (pod.get("dnsConfig") or {}).get("nameservers"):
        yield ("dnsConfig",), "must name a name server: dnsPolicy is None"
    for steps, container in containers(pod):
        unmasked = (container.get("securityContext") or {}).get("procMount") == "Unmasked"
        if unmasked and pod.get("hostUsers") is not False:
            yield (*steps, "securityContext", "procMount"), "Unmasked needs hostUsers: false in the pod"
        if container.get("volumeDevices") and pod.get("hostUsers") is False:
            yield (*steps, "volumeDevices"), "conflicts with hostUsers: false"


def sysctls(pod: Mapping[str, Any]) -> Wrong:
    """Settings of the kernel, of which those of the node are not a pod's to set."""
    of_host = (("hostNetwork", _OF_NETWORK), ("hostIPC", _OF_PROCESSES))
    for index, item in enumerate((pod.get("securityContext") or {}).get("sysctls") or ()):
        name = item["name"].replace("/", ".")
        for field, prefixes in of_host:
            if pod.get(field) and name.startswith(prefixes):
                yield ("securityContext", "sysctls", index, "name"), f"cannot be set together with {field}"


def operating_system(pod: Mapping[str, Any]) -> Wrong:
    """Of Linux and Windows, each has fields that the other does not know."""
    system = (pod.get("os") or {}).get("name")
    if system == "linux":
        for steps, security in _security_contexts(pod):
            if security.get("windowsOptions") is not None:
                yield (*steps, "windowsOptions"), "must be left out: the pod's operating system is linux"
    if system == "windows":
        for name in _PODS_NOT_ON_WINDOWS:
            if pod.get(name) is not None:
                yield (name,), _NOT_ON_WINDOWS
        for steps, security in _security_contexts(pod):
            for name in _SECURITY_NOT_ON_WINDOWS:
                if security.get(name) is not None:
                    yield (*steps, name), _NOT_ON_WINDOWS


def host_processes(pod: Mapping[str, Any]) -> Wrong:
    """On Windows, either all containers are processes of their node or none is."""
    of_pod = _is_host_process(pod)
    own = [(steps, _is_host_process(container)) for steps, container in containers(pod)]
    place = ("securityContext", "windowsOptions", "hostProcess")
    for steps, said in own:
        if None not in (said, of_pod) and said != of_pod:
            yield (*steps, *place), "must be the same as for the pod"
    each = [of_pod if said is None else said for _, said in own]
    if any(each):
        if not all(each):
            yield place, "must be true for all containers, or for none"
        if not pod.get("hostNetwork"):
            yield ("hostNetwork",), "must be true with hostProcess"


def _is_host_process(struct: Mapping[str, Any]) -> bool | None:
    options = (struct.get("securityContext") or {}).get("windowsOptions") or {}
    found: bool | None = options.get("hostProcess")
    return found


def _security_contexts(pod: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    for steps, struct in (((), pod), *containers(pod)):
        yield (*steps, "securityContext"), struct.get("securityContext") or {}


def containers(pod: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    """The containers of a pod, those for its start included, and the steps to each."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(field) or ()):
            yield (field, index), container
