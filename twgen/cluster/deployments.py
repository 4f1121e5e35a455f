"""Derives facts about a version from its live or recorded Deployment.

This module also checks whether Jobs have ended, and sorts Jobs by age.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from twgen.cluster.field_managers import (
    DEFAULT_REPLICAS,
    edited_variables,
    replicas_are_external,
    replicas_are_synced,
    template_is_as_applied,
)
from twgen.cluster.patches import without_patch
from twgen.model.paths import value_at
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import FLAG, TEXT, TEXTS, TIME, listing, mapping, text, whole_number
from twgen.model.times import parse_time
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.versioning.injection import build_ids_in_pod, place_of
from twgen.versioning.names import (
    ADDED,
    ATTACHED,
    BUILD_ID_LABEL,
    CONNECTION_HASH,
    GONE,
    IDENTITY,
    NOT_PRUNED,
    PATCHED,
    SYNC_OPTIONS,
    TEMPLATE_HASH,
    TRACKING_ID,
)

_LARGEST_INT32 = 2**31 - 1
_NAMED = excerpt(Field("name", TEXT, required=True))
_CONTAINER = excerpt(
    Field("name", TEXT, required=True),
    "image",
    Field("env", listing(excerpt(Field("name", TEXT, required=True), "value"))),
    Field("ports", listing(excerpt(Field("containerPort", whole_number()), "protocol"))),
    Field("volumeMounts", listing(excerpt(Field("name", TEXT, required=True), "mountPath"))),
    Field("volumeDevices", listing(excerpt("devicePath"))),
)
_POD = excerpt(
    Field("containers", listing(_CONTAINER, least=1), required=True),
    Field("initContainers", listing(_CONTAINER)),
    Field("volumes", listing(_NAMED)),
    Field("imagePullSecrets", listing(excerpt("name"))),
    Field("hostAliases", listing(excerpt("ip"))),
)
_SPEC = excerpt(
    Field("replicas", whole_number(most=_LARGEST_INT32)),
    Field("paused", FLAG),
    Field("selector", excerpt(Field("matchLabels", TEXTS))),
    Field(
        "template",
        excerpt(
            Field("metadata", excerpt(Field("labels", TEXTS), Field("annotations", TEXTS))),
            Field("spec", _POD, required=True),
        ),
        required=True,
    ),
)
_OWNED_FIELDS = excerpt(
    *("manager", "operation", "subresource"), Field("fieldsV1", excerpt(Field("f:spec", mapping())))
)
METADATA = excerpt(
    Field(
        "name",
        text(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$(?!\n)", "a valid Kubernetes name"),
        required=True,
    ),
    *("namespace", "uid"),
    Field("generation", whole_number()),
    Field("creationTimestamp", TIME),
    Field("deletionTimestamp", TIME),
    Field("labels", TEXTS),
    Field("annotations", TEXTS),
    Field("ownerReferences", listing(excerpt("kind", "name"))),
    Field("managedFields", listing(_OWNED_FIELDS)),
)
_STATUS = excerpt(
    Field("observedGeneration", whole_number()),
    Field("replicas", whole_number(most=_LARGEST_INT32)),
    Field("updatedReplicas", whole_number(most=_LARGEST_INT32)),
    Field("availableReplicas", whole_number(most=_LARGEST_INT32)),
    Field("conditions", listing(excerpt("type", "status", "reason", "message"))),
)
DEPLOYMENT = excerpt(
    Field("metadata", METADATA, required=True), Field("spec", _SPEC, required=True), Field("status", _STATUS)
)
"""The Deployment fields that twgen reads. `schemas/deployment.json` describes the same fields."""


def recorded_deployment(manifest: Mapping[str, Any]) -> RecordedDeployment:
    """Derive facts from a Deployment's manifest, and from the annotations and variables of its pod template.

    The manifest must have the shape DEPLOYMENT.
    """
    template = manifest.get("spec", {}).get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    place = place_of(template.get("spec") or {})
    return RecordedDeployment(
        manifest=manifest,
        template_hash=annotations.get(TEMPLATE_HASH, ""),
        connection_hash=annotations.get(CONNECTION_HASH, ""),
        address=place.address,
        temporal_namespace=place.temporal_namespace,
        worker_deployment=place.worker_deployment,
        replicas=(manifest.get("spec") or {}).get("replicas"),
    )


def live_deployments(manifests: Iterable[Mapping[str, Any]]) -> Iterator[LiveDeployment]:
    """The versions' Deployments among these live manifests. The manifests must have the shape DEPLOYMENT."""
    return (live for manifest in manifests if (live := live_deployment(manifest)))


def live_deployment(manifest: Mapping[str, Any]) -> LiveDeployment | None:
    """Derive facts from a live Deployment's manifest. Returns None if it is not the Deployment of a version.

    The manifest must have the shape DEPLOYMENT.
    """
    metadata: Mapping[str, Any] = manifest.get("metadata") or {}
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    label = (metadata.get("labels") or {}).get(BUILD_ID_LABEL, "")
    # a person can remove the Deployment's label, but cannot change its selector
    selected = (value_at(spec, "selector", "matchLabels") or {}).get(BUILD_ID_LABEL, "")
    written_build_ids = build_ids_in_pod(value_at(spec, "template", "spec") or {})
    build_id = selected or label or next(iter(written_build_ids), "")
    if not build_id:
        return None
    annotations = metadata.get("annotations") or {}
    gone = _names(annotations, GONE)
    replicas = DEFAULT_REPLICAS if spec.get("replicas") is None else spec["replicas"]
    patch = None
    if PATCHED in annotations:
        template, patch = without_patch(spec["template"], annotations[PATCHED])
        manifest = {**manifest, "spec": {**spec, "template": template}}
    return LiveDeployment(
        build_id=build_id,
        recorded=recorded_deployment(manifest),
        name=metadata.get("name", ""),
        uid=metadata.get("uid") or "",
        replicas=replicas,
        replicas_are_external=replicas_are_external(metadata, replicas),
        replicas_are_synced=replicas_are_synced(metadata),
        serving=_is_serving(metadata, status),
        replacing=_is_replacing(status),
        protected=NOT_PRUNED in annotations.get(SYNC_OPTIONS, ""),
        identity=annotations.get(IDENTITY, ""),
        created_at=created_at(manifest),
        terminating=bool(metadata.get("deletionTimestamp")),
        paused=bool(spec.get("paused")),
        stalled=_why_stalled(status),
        lost_labels=label != build_id,
        template_is_as_applied=template_is_as_applied(metadata),
        edited_variables=edited_variables(metadata),
        other_build_id=next(iter(written_build_ids), "") if build_id not in written_build_ids else "",
        attached=tuple(item for item in _names(annotations, ATTACHED) if item not in gone),
        added=tuple(item for item in _names(annotations, ADDED) if item not in gone),
        gone=gone,
        owners=tuple(
            f"{owner.get('kind')}/{owner.get('name')}" for owner in metadata.get("ownerReferences") or ()
        ),
        tracked_by=annotations.get(TRACKING_ID, "").partition(":")[0],
        available_replicas=status.get("availableReplicas") or 0,
        resource_version=metadata.get("resourceVersion") or "",
        patch=patch,
    )


def _names(annotations: Mapping[str, str], annotation: str) -> tuple[str, ...]:
    return tuple(filter(None, annotations.get(annotation, "").split(",")))


def _is_serving(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    conditions = {item.get("type"): item.get("status") for item in status.get("conditions") or ()}
    is_newest = (status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0)
    is_available = conditions.get("Available") == "True" and bool(status.get("availableReplicas"))
    return is_newest and is_available


def _is_replacing(status: Mapping[str, Any]) -> bool:
    """Whether all available pods might still run an older pod template."""
    replicas, updated, available = (
        status.get(name) or 0 for name in ("replicas", "updatedReplicas", "availableReplicas")
    )
    # updatedReplicas is reported with a delay, and a hand-written manifest may not have it
    return bool(updated and available <= replicas - updated)


def _why_stalled(status: Mapping[str, Any]) -> str:
    for item in status.get("conditions") or ():
        if (item.get("type"), item.get("status")) in {("Progressing", "False"), ("ReplicaFailure", "True")}:
            parts = (item.get("reason") or item["type"], item.get("message") or "")
            return " ".join(": ".join(filter(None, parts)).split())
    return ""


Job = Mapping[str, Any]

_ENDS = ("Complete", "Failed")


class JobEnd(NamedTuple):
    """The outcome of a Job that has ended."""

    type: str
    """`Complete` or `Failed`."""
    why: str
    at: datetime


def end_of_job(job: Job) -> JobEnd | None:
    """The outcome of a Job, or None if the Job has not ended.

    If the Job's status has no end time, the Job's creation time is used instead.
    """
    conditions = value_at(job, "status", "conditions") or ()
    ends = (item for item in conditions if item["type"] in _ENDS and item["status"] == "True")
    if not (end := next(ends, None)):
        return None
    why = " ".join(filter(None, (end.get("reason"), end.get("message"))))
    try:
        at = parse_time(end.get("lastTransitionTime") or "")
    except ValueError:
        at = parse_time(job["metadata"]["creationTimestamp"])
    return JobEnd(end["type"], why, at)


def created_at(item: Mapping[str, Any]) -> datetime | None:
    """The creation time of an object, or None if it is unknown."""
    try:
        return parse_time(str(value_at(item, "metadata", "creationTimestamp")))
    except ValueError:
        return None


def is_older(job: Job, than: Mapping[str, Any]) -> bool:
    """Whether the Job was created before another object. Returns False if a creation time is unknown."""
    created, other = created_at(job), created_at(than)
    return bool(created and other and created < other)


def oldest_first(jobs: Iterable[Job]) -> list[Job]:
    """Sort Jobs by creation time. Jobs created in the same second are sorted by UID."""
    return sorted(
        jobs,
        key=lambda job: (
            str(value_at(job, "metadata", "creationTimestamp")),
            str(value_at(job, "metadata", "uid")),
        ),
    )
