"""The marks that twgen puts on a version's Deployment, and those that a live one lacks."""

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
"""twgen decides these: no version stays a hook, since Argo CD deletes a hook before it creates it again."""
_ON_DELETE = {OnDelete.CONFIRM: ",Delete=confirm", OnDelete.ORPHAN: ",Delete=false", OnDelete.DELETE: ""}


def own_labels(spec: WorkerSpec, build_id: str) -> dict[str, str]:
    """The labels of a version's Deployment."""
    return {**spec.policy.deployment_labels, **selector_labels(spec.name, build_id), **MANAGED_BY}


def own_annotations(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, str]:
    """The annotations of a version's Deployment that decide its future; an empty identity adds none."""
    annotations = dict(spec.policy.deployment_annotations)
    live, named_before = version.live, version.live.attached if version.live else ()
    # an object that is being removed, or may be gone, is named until it is: it is recorded nowhere else
    unclear = [item for item in version.following if str(item) in named_before]
    names = [str(item) for item in (*version.attached, *version.replaced, *unclear)]
    if names or named_before:
        # empty, not left out: Argo CD sees no difference in an annotation that is not rendered
        annotations[ATTACHED] = ",".join(names)
    if live and not set(live.gone).isdisjoint(names):
        annotations[GONE] = ""  # the object exists again
    if identity:
        annotations[IDENTITY] = identity
    return annotations | protection(spec, is_protected=version.protected)


def protection(spec: WorkerSpec, *, is_protected: bool) -> dict[str, str]:
    """Annotations for how Argo CD applies a Deployment or its attached objects, and when it keeps them."""
    if not is_protected:
        return {SYNC_OPTIONS: APPLIED_BY_SERVER}
    options = f"{APPLIED_BY_SERVER},{NOT_PRUNED}{_ON_DELETE[spec.policy.on_delete]}"
    return {SYNC_OPTIONS: options, COMPARE_OPTIONS: "IgnoreExtraneous"}


def own_pace(spec: WorkerSpec, live: LiveDeployment | None) -> dict[str, Any]:
    """The fields of the spec that control how the target's pods are replaced; None removes a field.

    A team may have set fields that the spec leaves out; only the seconds have always come from the spec.
    """
    pace = {"minReadySeconds": None, **spec.pace}
    if live and waits_to_recreate(spec, live):
        pace["strategy"] = live.manifest["spec"]["strategy"]
    return pace


def waits_to_recreate(spec: WorkerSpec, live: LiveDeployment) -> bool:
    """The spec's strategy is Recreate, but an apply might not set it."""
    return value_at(spec.pace, "strategy", "type") == "Recreate" and keeps_rolling(live.manifest)


def described_annotations(spec: WorkerSpec) -> dict[str, str]:
    """The annotations of the target's Deployment from its spec, with the names injected into its pods."""
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    names = injection(spec.connection, identity, spec.policy.environment).names
    described = (spec.template.content.get("metadata") or {}).get("annotations") or {}
    return {**described, INJECTED: ",".join(sorted(names))}


def recorded_annotations(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The annotations that a recorded Deployment keeps, with the names injected into its pods."""
    annotations = manifest["metadata"].get("annotations") or {}
    injected = {INJECTED: annotations[INJECTED]} if INJECTED in annotations else {}
    return {name: text for name, text in annotations.items() if name not in _OWN_ANNOTATIONS} | injected


def changed_marks(spec: WorkerSpec, version: VersionPlan, identity: str) -> Iterator[str]:
    """The changes to a live Deployment when its manifest is applied, other than pods and replicas, in words.

    An empty identity is not compared.
    """
    live = version.live.recorded.manifest if version.live else {}
    metadata, body = live.get("metadata") or {}, live.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if not own_labels(spec, version.build_id).items() <= labels.items():
        yield "labels"
    recorded = version.recorded.manifest if version.recorded else None
    rendered = own_annotations(spec, version, identity)
    # a version that is rendered as it is live keeps all annotations except twgen's own
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
