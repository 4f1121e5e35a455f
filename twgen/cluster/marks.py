"""What twgen puts on a version's Deployment beside its pods, and what of it a live one does not have."""

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

_OURS = {
    *(IDENTITY, SYNC_OPTIONS, SYNC_WAVE, ATTACHED, GONE, INJECTED, PATCHED),
    *(COMPARE_OPTIONS, HOOK, HELM_HOOK),
}
"""Ours to decide: a hook stays on no version, since Argo CD deletes it before it makes it again."""
_ON_DELETE = {OnDelete.CONFIRM: ",Delete=confirm", OnDelete.ORPHAN: ",Delete=false", OnDelete.DELETE: ""}


def own_labels(spec: WorkerSpec, build_id: str) -> dict[str, str]:
    """The labels of a version's Deployment."""
    return {**spec.policy.deployment_labels, **selector_labels(spec.name, build_id), **MANAGED_BY}


def own_annotations(spec: WorkerSpec, version: VersionPlan, identity: str) -> dict[str, str]:
    """The annotations that a version's Deployment gets for what becomes of it; an empty identity: none."""
    own = dict(spec.policy.deployment_annotations)
    # what goes is named until it is gone: nothing else remembers it
    names = [f"{item.kind}/{item.name}" for item in (*version.attached, *version.replaced)]
    if names or (version.live and version.live.attached):
        # empty, and not left out: to Argo CD what nobody renders is no difference
        own[ATTACHED] = ",".join(names)
    if version.live and not set(version.live.gone).isdisjoint(names):
        own[GONE] = ""  # it is there again
    if identity:
        own[IDENTITY] = identity
    return own | protection(spec, is_protected=version.protected)


def protection(spec: WorkerSpec, *, is_protected: bool) -> dict[str, str]:
    """Annotations: how Argo CD applies a Deployment or what is attached to it, and when it leaves them."""
    if not is_protected:
        return {SYNC_OPTIONS: APPLIED_BY_SERVER}
    options = f"{APPLIED_BY_SERVER},{NOT_PRUNED}{_ON_DELETE[spec.policy.on_delete]}"
    return {SYNC_OPTIONS: options, COMPARE_OPTIONS: "IgnoreExtraneous"}


def own_pace(spec: WorkerSpec, live: LiveDeployment | None) -> dict[str, Any]:
    """The fields by which the target's pods are replaced, those that follow its spec: None takes one away.

    What the spec does not say a team may have set; only the seconds have always been the spec's.
    """
    pace = {"minReadySeconds": None, **spec.pace}
    if live and waits_to_recreate(spec, live):
        pace["strategy"] = live.manifest["spec"]["strategy"]
    return pace


def waits_to_recreate(spec: WorkerSpec, live: LiveDeployment) -> bool:
    """The spec's strategy is Recreate, and no apply can be trusted to make it so."""
    return value_at(spec.pace, "strategy", "type") == "Recreate" and keeps_rolling(live.manifest)


def described_annotations(spec: WorkerSpec) -> dict[str, str]:
    """The annotations that the target's Deployment has from its spec, and what is injected into its pods."""
    who = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    names = injection(spec.connection, who, spec.policy.environment).names
    described = (spec.template.content.get("metadata") or {}).get("annotations") or {}
    return {**described, INJECTED: ",".join(sorted(names))}


def recorded_annotations(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The annotations that a recorded Deployment keeps, with what was injected into its pods."""
    found = manifest["metadata"].get("annotations") or {}
    injected = {INJECTED: found[INJECTED]} if INJECTED in found else {}
    return {name: text for name, text in found.items() if name not in _OURS} | injected


def changed_marks(spec: WorkerSpec, version: VersionPlan, identity: str) -> Iterator[str]:
    """What applying a version's manifest changes of its live Deployment beside pods and replicas, in words.

    An empty identity is not compared.
    """
    live = version.live.recorded.manifest if version.live else {}
    metadata, body = live.get("metadata") or {}, live.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if not own_labels(spec, version.build_id).items() <= labels.items():
        yield "labels"
    recorded = version.recorded.manifest if version.recorded else None
    wanted = own_annotations(spec, version, identity)
    # what is rendered as it is live keeps all but our own marks
    if recorded is not live:
        kept = recorded_annotations(recorded) if recorded else described_annotations(spec)
        wanted = kept | wanted
    gone = COMPARE_OPTIONS in annotations and COMPARE_OPTIONS not in wanted
    attached = wanted.pop(ATTACHED, "")
    is_otherwise = bool(version.patch) != (PATCHED in annotations)
    if gone or is_otherwise or not wanted.items() <= annotations.items():
        yield "annotations"
    if (there := annotations.get(ATTACHED, "")) != attached:
        going = set(filter(None, there.split(","))) - set(attached.split(","))
        names = ", ".join(sorted(item.replace("/", " ", 1) for item in going))
        yield "attached objects" + (
            f" ({names} {'is' if len(going) == 1 else 'are'} removed)" if going else ""
        )
    said: Mapping[str, Any] = {}
    if version.build_id == spec.build_id:
        said = own_pace(spec, version.live)
    elif recorded:
        said = {name: recorded["spec"].get(name) for name in PACE_DEFAULTS}
    for name, value in said.items():
        default: Any = PACE_DEFAULTS[name]
        follows = default if value is None else value
        if less_defaults(body.get(name, default), default) != less_defaults(follows, default):
            yield f"{name} ({follows})" if isinstance(follows, int) else name
