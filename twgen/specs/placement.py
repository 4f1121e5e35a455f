"""Find the right place for a field of a pod template that is one level too deep or too high."""

import re
from collections.abc import Mapping

from twgen.model.problem import UNKNOWN_FIELD, Finding
from twgen.versioning.stored_form import struct_fields

_POD, _CONTAINER = "spec", "spec.containers[0]"
_LEVELS: Mapping[str, str] = {
    "": "PodTemplateSpec",
    _POD: "PodSpec",
    _CONTAINER: "Container",
    f"{_POD}.securityContext": "PodSecurityContext",
    f"{_CONTAINER}.securityContext": "SecurityContext",
}
"""The parts of a pod template whose fields are often confused: each path with its struct."""
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "": (_POD, _CONTAINER),
    _POD: (_CONTAINER, "", f"{_POD}.securityContext"),
    _CONTAINER: (_POD, f"{_CONTAINER}.securityContext", f"{_POD}.securityContext"),
    f"{_POD}.securityContext": (f"{_CONTAINER}.securityContext",),
    f"{_CONTAINER}.securityContext": (f"{_POD}.securityContext",),
}
_WHOLE = re.compile(r"(?P<above>.*?template)(?P<level>(\.[^\s']+)*)\.(?P<name>\w+)")
_INDEX = re.compile(r"\.(initContainers|containers)\[[0-9]+\]")


def in_its_place(finding: Finding) -> Finding:
    """A finding about an unknown field. If another level has this field, the message shows its path there."""
    match = _WHOLE.fullmatch(finding.path)
    if not match:
        return finding
    level = _INDEX.sub(".containers[0]", match["level"]).removeprefix(".")
    for place in _ELSEWHERE.get(level, ()):
        if any(field.name == match["name"] for field in struct_fields(_LEVELS[place])):
            right = ".".join(filter(None, (match["above"], place, match["name"])))
            return Finding(finding.path, UNKNOWN_FIELD(f"belongs elsewhere: write it as {right}"))
    return finding
