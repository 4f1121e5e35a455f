"""Checking an API server's answers: whether they fit the path, and have the fields that twgen reads."""

import re
from collections.abc import Mapping
from typing import Any

from twgen.cluster.deployments import DEPLOYMENT, METADATA
from twgen.model.paths import value_at
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import FLAG, TEXT, TEXTS, TIME, Findings, Shape, listing, whole_number
from twgen.versioning.names import resource_of_kind

_PATH = re.compile(
    r"/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+/[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?"
)
_LIST = "List"
_CREATED = Field("metadata", excerpt(Field("creationTimestamp", TIME, required=True)), required=True)
_STATE = excerpt(Field("reason", TEXT), Field("message", TEXT), Field("exitCode", whole_number()))
_STATES = excerpt(Field("waiting", _STATE), Field("terminated", _STATE))
_CONTAINER = excerpt(Field("state", _STATES), Field("lastState", _STATES))
_CONDITION = excerpt(
    Field("type", TEXT, required=True),
    Field("status", TEXT, required=True),
    Field("reason", TEXT),
    Field("message", TEXT),
    Field("lastTransitionTime", TEXT),
)
_POD_STATUS = excerpt(
    Field("phase", TEXT),
    Field("conditions", listing(_CONDITION)),
    Field("initContainerStatuses", listing(_CONTAINER)),
    Field("containerStatuses", listing(_CONTAINER)),
)
_JOB_STATUS = excerpt(Field("conditions", listing(_CONDITION)))
_RESOURCE = excerpt(Field("kind", TEXT, required=True), Field("namespaced", FLAG))
_OBJECT = excerpt(Field("metadata", METADATA, required=True))
_SHAPES: Mapping[str, Shape] = {
    "Deployment": DEPLOYMENT,
    "Pod": excerpt(_CREATED, Field("status", _POD_STATUS)),
    "Job": excerpt(_CREATED, Field("status", _JOB_STATUS)),
    "ConfigMap": excerpt(Field("data", TEXTS), Field("binaryData", TEXTS)),
    "Secret": excerpt(Field("data", TEXTS)),
}
"""The fields that twgen reads in addition to the metadata, by kind; a snapshot's Deployment has the same."""
_VERSIONS = listing(excerpt(Field("groupVersion", TEXT, required=True)))
_SERVED: Mapping[str, tuple[re.Pattern[str], Shape]] = {
    "APIGroup": (re.compile("/apis/[^/]+"), excerpt(Field("versions", _VERSIONS, required=True))),
    "APIResourceList": (
        re.compile("/(api|apis/[^/]+)/[^/]+"),
        excerpt(Field("resources", listing(_RESOURCE), required=True)),
    ),
}
"""The answers in which an API server lists its kinds."""


def wrong_answer(path: str, answer: Mapping[str, Any]) -> str:
    """Why this is not an answer for the path; empty: it is, or that is unknown. Items are not checked."""
    kind, api_version = answer.get("kind"), answer.get("apiVersion")
    if not (parts := _PATH.fullmatch(path)):
        for expected, (form, shape) in _SERVED.items():
            if form.fullmatch(path):
                return (
                    _problem(shape, answer) if kind == expected else f"it is of kind {kind!r}, not {expected}"
                )
        return ""
    is_list, version = not parts["name"], parts["core"] or parts["group"]
    item_kind = str(kind).removesuffix(_LIST) if is_list else str(kind)
    is_kind = resource_of_kind(item_kind) == parts["resource"] and (not is_list or str(kind) != item_kind)
    if not is_kind or api_version != version:
        expected = f"{'a list of ' if is_list else ''}{parts['resource']} of {version}"
        return f"it is of kind {kind!r} of {api_version!r}, not {expected}"
    return "" if is_list else wrong_object(path, answer)


def wrong_object(path: str, value: Any) -> str:
    """Why this is not an object of that path, or of a list there; empty: it is one."""
    parts = _PATH.fullmatch(path)
    resource = parts["resource"] if parts else ""
    if problem := _problem(_OBJECT, value):
        name = value_at(value, "metadata", "name")
        return f"{f'{name!r} of ' if isinstance(name, str) else ''}{resource}: {problem}"
    metadata = value["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")
    place = f"{namespace}/{name}" if namespace else name
    if parts and parts["namespace"] and namespace != parts["namespace"]:
        return f"{place} is not in namespace {parts['namespace']}"
    if parts and parts["name"] and name != parts["name"]:
        return f"{place} is another object"
    # the items of a list leave it out
    if (kind := value.get("kind")) is not None and resource_of_kind(str(kind)) != resource:
        return f"{place} is of kind {kind!r}, not one of {resource}"
    for shape_kind, shape in _SHAPES.items():
        if resource_of_kind(shape_kind) == resource and (problem := _problem(shape, value)):
            return f"{shape_kind} {place}: {problem}"
    return ""


def _problem(shape: Shape, value: Any) -> str:
    """The first problem; empty: none."""
    findings = Findings()
    shape.read(value, None, findings)
    return next((f"{path} {message}".strip() for path, message, *_ in findings.problems), "")
