"""Find the objects that select a worker's old pods by labels that the new pods do not have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.model.operator import GroupKind
from twgen.model.paths import list_at, value_at
from twgen.specs.pod_warnings import selects
from twgen.versioning.names import DEPLOYMENT_NAME_LABEL, selector_labels

_SCHEDULING = ("affinity", "topologySpreadConstraints")
_ISTIO = "security.istio.io"
_SELECTORS: Mapping[GroupKind, Sequence[tuple[str, ...]]] = {
    GroupKind("", "Service"): [("selector",)],
    GroupKind("networking.k8s.io", "NetworkPolicy"): [
        ("podSelector",),
        ("ingress", "from", "podSelector"),
        ("egress", "to", "podSelector"),
    ],
    GroupKind("cilium.io", "CiliumNetworkPolicy"): [("endpointSelector",)],
    GroupKind("monitoring.coreos.com", "PodMonitor"): [("selector",)],
    **{
        GroupKind(_ISTIO, kind): [("selector",)]
        for kind in ("AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication")
    },
}
"""The paths in `spec`, through mappings and lists, with which objects of each kind select pods.

A ServiceMonitor selects Services, whose labels stay the same.
"""
_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"


class OldPods(NamedTuple):
    """The pods of the old Deployment, and the labels that the new pods do not have."""

    worker: str
    namespace: str
    labels: Mapping[str, str]
    left_out: set[str]


def selected_by(pods: OldPods, spec: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A note for each rule and object that selects the old pods by labels that the new pods do not have.

    `spec` is the `spec` of the new pods. `others` are objects of any namespace; one without a namespace is in
    the namespace of the pods.
    """
    label = selector_labels(pods.worker, "")[DEPLOYMENT_NAME_LABEL]
    instead = f"write {DEPLOYMENT_NAME_LABEL}: {label} there"
    by_pods = _selecting_labels([spec.get(field) for field in _SCHEDULING])
    for name in sorted(pods.left_out & by_pods):
        why = "is left out, but the pods' affinity or topologySpreadConstraints use it"
        yield f"{pods.worker}.yaml: label {name} {why}: {instead}"
    for manifest in others:
        namespace = value_at(manifest, "metadata", "namespace") or pods.namespace
        labels: set[str] = set()
        for path in _SELECTORS.get(GroupKind.of(manifest), ()):
            for holder in _mappings(value_at(manifest, "spec"), path[:-1]):
                selector = holder.get(path[-1])
                if isinstance(selector, dict) and _reaches(manifest, holder, namespace, pods.namespace):
                    whole = {"matchLabels": selector} if manifest["kind"] == "Service" else selector
                    names = pods.left_out & labels_of(whole)
                    labels |= names if selects(whole, pods.labels) else set()
        if labels:
            name = value_at(manifest, "metadata", "name")
            shown = f"{manifest['kind']} {name}"
            shown += f" in namespace {namespace}" if namespace != pods.namespace else ""
            why = f"selects the pods by {', '.join(sorted(labels))}, which the new pods do not have"
            yield f"{shown} {why}: {instead}"


def _mappings(value: Any, path: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The mappings at this path. A list along the path stands for each of its items."""
    if isinstance(value, list):
        for item in value:
            yield from _mappings(item, path)
    elif isinstance(value, dict):
        if path:
            yield from _mappings(value.get(path[0]), path[1:])
        else:
            yield value


def _reaches(manifest: Mapping[str, Any], holder: Mapping[str, Any], own: str, namespace: str) -> bool:
    """Whether a selector of an object in namespace `own` can select pods in the other namespace.

    `holder` is the mapping with the selector. It can have a selector of namespaces as well.
    """
    others = holder.get("namespaceSelector")
    if manifest["kind"] == "PodMonitor":
        names = value_at(others, "matchNames")
        is_any = value_at(others, "any") is True
        return is_any or namespace in (names if isinstance(names, list) and names else [own])
    if not isinstance(others, dict):
        return own == namespace
    # only one label of a namespace is known: the others may match
    labels, expressions = others.get("matchLabels"), list_at(others, "matchExpressions")
    written = labels.get(_NAME_OF_NAMESPACE, namespace) if isinstance(labels, dict) else namespace
    known = [item for item in expressions if value_at(item, "key") == _NAME_OF_NAMESPACE]
    return written == namespace and selects({"matchExpressions": known}, {_NAME_OF_NAMESPACE: namespace})


def labels_of(selector: Any) -> set[str]:
    """The names of the labels by which a label selector selects."""
    labels = value_at(selector, "matchLabels")
    names = [value_at(expression, "key") for expression in list_at(selector, "matchExpressions")]
    return {str(name) for name in (*(labels if isinstance(labels, dict) else ()), *names)}


def _selecting_labels(rules: Any) -> set[str]:
    """The labels by which scheduling rules select pods, at any depth below this value."""
    if isinstance(rules, list):
        return {name for rule in rules for name in _selecting_labels(rule)}
    if not isinstance(rules, dict):
        return set()
    return labels_of(rules.get("labelSelector")).union(*map(_selecting_labels, rules.values()))
