"""The rules for annotations that Kubernetes itself reads from a pod template."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from twgen.model.problem import did_you_mean, quoted
from twgen.specs.validation.hosts import containers
from twgen.specs.validation.rules import Wrong
from twgen.specs.validation.syntax import inner_path

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_LOCAL = "localhost/"
_TYPES = {"runtime/default": "RuntimeDefault", "docker/default": "RuntimeDefault", "unconfined": "Unconfined"}
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,9}")
_INT32 = range(-(2**31), 2**31)

Profile = tuple[str, str]
"""A type and, of a local one, the file: as the fields appArmorProfile and seccompProfile have it."""


def annotations_of_pods(template: Mapping[str, Any]) -> Wrong:
    """The values of annotations, and whether they say the same as the field that took their place."""
    found: Mapping[str, str] = (template.get("metadata") or {}).get("annotations") or {}
    pod = template.get("spec") or {}
    for name, value in found.items():
        if wrong := "".join(
            [*_apparmor(name, value, pod), *_seccomp(name, value, pod), *_other(name, value, pod)]
        ):
            yield ("metadata", "annotations", name), wrong


def _apparmor(name: str, value: str, pod: Mapping[str, Any]) -> Iterator[str]:
    if not name.startswith(_APPARMOR):
        return
    by_name = {container["name"]: container for _, container in containers(pod)}
    container = by_name.get(name.removeprefix(_APPARMOR))
    if container is None:
        yield f"there is no such container{did_you_mean(name.removeprefix(_APPARMOR), by_name)}"
    elif value and (value == "docker/default" or not _profile(value)):
        yield f"{quoted(value)} is not one of runtime/default, unconfined, localhost/NAME"
    elif value:
        yield from _other_field(value, "appArmorProfile", container, pod)


def _seccomp(name: str, value: str, pod: Mapping[str, Any]) -> Iterator[str]:
    if name != _SECCOMP_OF_POD and not name.startswith(_SECCOMP):
        return
    if not _profile(value):
        yield f"{quoted(value)} is not one of runtime/default, unconfined, localhost/FILE"
    elif wrong := inner_path(value.removeprefix(_LOCAL)):
        yield wrong
    elif name == _SECCOMP_OF_POD:
        yield from _other_field(value, "seccompProfile", pod)
    else:
        named = (item for _, item in containers(pod) if item["name"] == name.removeprefix(_SECCOMP))
        yield from _other_field(value, "seccompProfile", *named)


def _profile(value: str) -> Profile | None:
    if value.startswith(_LOCAL):
        return "Localhost", value.removeprefix(_LOCAL)
    return (_TYPES[value], "") if value in _TYPES else None


def _other_field(value: str, field: str, *structs: Mapping[str, Any]) -> Iterator[str]:
    """That the first of these structs that has the field says something else there."""
    fields = ((struct.get("securityContext") or {}).get(field) for struct in structs)
    found = next((item for item in fields if item), None)
    if found and (found["type"], found.get("localhostProfile") or "") != _profile(value):
        yield f"{quoted(value)} differs from {field}: remove the annotation"


def _other(name: str, value: str, pod: Mapping[str, Any]) -> Iterator[str]:
    if name == _DELETION_COST and not (_WHOLE_NUMBER.fullmatch(value) and int(value) in _INT32):
        yield f"{quoted(value)} is not a whole number of 32 bits"
    if name == _MIRROR and not pod.get("nodeName"):
        yield "must be left out: it is only for pods that a node makes by itself"
    if name == _TOLERATIONS and value:
        try:
            is_list = isinstance(json.loads(value), list)
        except ValueError:
            is_list = False
        if not is_list:
            yield "is not a list in JSON: write tolerations in the spec"
