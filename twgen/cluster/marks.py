"""Decides the labels and annotations of a version's Deployment, and compares them with the live object's."""

from collections.abc import Iterator, Mapping
from typing import Any

from twgen.cluster.field_managers import keeps_rolling
from twgen.cluster.server_defaults import PACE_DEFAULTS, less_defaults
from twgen.model.paths import value_at
from twgen.model.plan import VersionPlan
from twgen.model.policy import OnDelete
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment
from twgen.versioning.injection import Identity, injection
from twgen.versioning.names import (
    ADDED,
    APPLIED_BY_SERVER,
    ATTACHED,
    COMPARE_OPTIONS,
    GONE,
    HELM_HOOK,
    HOOK,
    IDENTITY,
    INJECTED,
    MANAGED_BY,
    NOT_PRUNED,
    PATCHED,
    SYNC_OPTIONS,
    SYNC_WAVE,
    selector_labels,
)

_OWN_ANNOTATIONS = {
    *(IDENTITY, SYNC_OPTIONS, SYNC_WAVE, ATTACHED, ADDED, GONE, INJECTED, PATCHED),
    *(COMPARE_OPTIONS, HOOK, HELM_HOOK),
}
"""Annotations that only twgen may set. A version must not be a hook, because Argo CD deletes hooks before it
recreates them."""
_ON_DELETE = {OnDelete.CONFIRM: ",Delete=confirm", OnDelete.ORPHAN: ",Delete=false", OnDelete.DELETE: ""}


def own_labels(spec: WorkerSpec, build_id: str) -> dict[str, str]:
    """The labels of a version's Deployment, including the policy's."""
    return {**spec.policy.deployment_labels, **selector_labels(spec.name, build_id), **MANAGED_BY}


def own_annotations(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, str]:
    """The annotations that twgen and the policy set. An empty identity is not recorded."""
    annotations = dict(spec.policy.deployment_annotations)
    live, named_before = version.live, version.live.attached if version.live else ()
    # an object that is being removed remains in the annotation until it is gone, because nothing else
    # records the object
    unclear = [item for item in version.following if str(item) in named_before]
    names = [str(item) for item in (*version.attached, *version.replaced, *unclear)]
    if names or named_before:
        # the annotation is rendered even if it is empty: Argo CD does not notice an annotation's removal
        annotations[ATTACHED] = ",".join(names)
    if live and not set(live.gone).isdisjoint(names):
        annotations[GONE] = ""  # the object exists again
    if identity:
        annotations[IDENTITY] = identity
    return annotations | protection(spec, is_protected=version.protected)


def protection(spec: WorkerSpec, *, is_protected: bool) -> dict[str, str]:
    """The annotations that control how Argo CD applies, prunes and deletes an object."""
    if not is_protected:
        return {SYNC_OPTIONS: APPLIED_BY_SERVER}
    options = f"{APPLIED_BY_SERVER},{NOT_PRUNED}{_ON_DELETE[spec.policy.on_delete]}"
    return {SYNC_OPTIONS: options, COMPARE_OPTIONS: "IgnoreExtraneous"}


def own_pace(spec: WorkerSpec, live: LiveDeployment | None) -> dict[str, Any]:
    """The fields that control how the target's pods are replaced. The value None removes a field.

    If the spec omits a field, the live field is kept, because the team may have set it. `minReadySeconds` is
    the exception: it always comes from the spec.
    """
    pace = {"minReadySeconds": None, **spec.pace}
    if live and waits_to_recreate(spec, live):
        pace["strategy"] = live.manifest["spec"]["strategy"]
    return pace


def waits_to_recreate(spec: WorkerSpec, live: LiveDeployment) -> bool:
    """Whether the spec's strategy is Recreate, but the API server might reject this change."""
    return value_at(spec.pace, "strategy", "type") == "Recreate" and keeps_rolling(live.manifest)


def described_annotations(spec: WorkerSpec) -> dict[str, str]:
    """The annotations that the spec sets on the target's Deployment, and the list of injected names."""
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    names = injection(spec.connection, identity, spec.policy.environment).names
    described = (spec.template.content.get("metadata") or {}).get("annotations") or {}
    return {**described, INJECTED: ",".join(sorted(names))}


def recorded_annotations(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The annotations that a rendered, recorded Deployment keeps, including the list of injected names."""
    annotations = manifest["metadata"].get("annotations") or {}
    injected = {INJECTED: annotations[INJECTED]} if INJECTED in annotations else {}
    return {name: text for name, text in annotations.items() if name not in _OWN_ANNOTATIONS} | injected


def changed_marks(spec: WorkerSpec, version: VersionPlan, identity: str) -> Iterator[str]:
    """Describe how applying a version's manifest would change its live Deployment.

    Changes to pods and replicas are left out. An empty identity is not compared.
    """
    live = version.live.recorded.manifest if version.live else {}
    metadata, body = live.get("metadata") or {}, live.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if not own_labels(spec, version.build_id).items() <= labels.items():
        yield "labels"
    recorded = version.recorded.manifest if version.recorded else None
    rendered = own_annotations(spec, version, identity)
    # a live manifest that is rendered again keeps all annotations except twgen's own
    if recorded is not live:
        base = recorded_annotations(recorded) if recorded else described_annotations(spec)
        rendered = base | rendered
    is_dropped = COMPARE_OPTIONS in annotations and COMPARE_OPTIONS not in rendered
    attached = rendered.pop(ATTACHED, "")
    is_patch_changed = bool(version.patch) != (PATCHED in annotations)
    if is_dropped or is_patch_changed or not rendered.items() <= annotations.items():
        yield "annotations"
    if (live_attached := annotations.get(ATTACHED, "")) != attached:
        removed = set(filter(None, live_attached.split(","))) - set(attached.split(","))
        names = ", ".join(sorted(item.replace("/", " ", 1) for item in removed))
        yield "attached objects" + (
            f" ({names} {'is' if len(removed) == 1 else 'are'} removed)" if removed else ""
        )
    pace: Mapping[str, Any] = {}
    if version.build_id == spec.build_id:
        pace = own_pace(spec, version.live)
    elif recorded:
        pace = {name: recorded["spec"].get(name) for name in PACE_DEFAULTS}
    for name, value in pace.items():
        default: Any = PACE_DEFAULTS[name]
        rendered_value = default if value is None else value
        if less_defaults(body.get(name, default), default) != less_defaults(rendered_value, default):
            yield f"{name} ({rendered_value})" if isinstance(rendered_value, int) else name
