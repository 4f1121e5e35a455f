"""Find the objects that select a worker's old pods, but not its new pods, or the reverse."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.model.operator import GroupKind
from twgen.model.paths import list_at, value_at
from twgen.specs.pod_warnings import selects
from twgen.versioning.names import DEPLOYMENT_NAME_LABEL

_SCHEDULING = ("affinity", "topologySpreadConstraints")
_SERVICE, _POD_MONITOR = GroupKind("", "Service"), GroupKind("monitoring.coreos.com", "PodMonitor")
_CLUSTERWIDE = GroupKind("cilium.io", "CiliumClusterwideNetworkPolicy")
_CILIUM = {_CLUSTERWIDE, GroupKind("cilium.io", "CiliumNetworkPolicy")}
_NETWORK_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")
_SELECTORS: Mapping[GroupKind, str] = {
    _NETWORK_POLICY: "podSelector ingress.from.podSelector egress.to.podSelector",
    **dict.fromkeys(_CILIUM, "endpointSelector ingress.fromEndpoints egress.toEndpoints"),
    _POD_MONITOR: "selector",
    GroupKind("extensions.istio.io", "WasmPlugin"): "selector",
    GroupKind("networking.istio.io", "DestinationRule"): "workloadSelector",
    GroupKind("telemetry.istio.io", "Telemetry"): "selector",
    **{
        GroupKind("security.istio.io", kind): "selector"
        for kind in ("AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication")
    },
}
"""The paths in `spec`, through mappings and lists, of the label selectors with which objects select pods.

A ServiceMonitor selects Services, whose labels stay the same.
"""
_LABELS: Mapping[GroupKind, str] = {
    _SERVICE: "selector",
    **{
        GroupKind("networking.istio.io", kind): "workloadSelector.labels"
        for kind in ("EnvoyFilter", "ServiceEntry", "Sidecar")
    },
}
"""The paths in `spec` of the labels with which objects select pods."""
_ROOT_OF_ISTIO = "istio-system"
"""Istio's usual root namespace: its objects there select pods of all namespaces."""
_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"
_NAMESPACE_OF_CILIUM = "io.kubernetes.pod.namespace"


class OldPods(NamedTuple):
    """The worker and the namespace of the old pods, their labels, and the labels of the new pods."""

    worker: str
    namespace: str
    labels: Mapping[str, str]
    new_labels: Mapping[str, str]


def selected_by(pods: OldPods, spec: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A note for each rule and object that selects only the old pods, or only the new pods.

    `spec` is the `spec` of the new pods. `others` are objects of any namespace; one without a namespace is in
    the namespace of the pods.
    """
    label = pods.new_labels[DEPLOYMENT_NAME_LABEL]
    instead = f"write {DEPLOYMENT_NAME_LABEL}: {label} there"
    by_pods = _selecting_labels([spec.get(field) for field in _SCHEDULING])
    left_out = pods.labels.keys() - pods.new_labels.keys()
    for name in sorted(left_out & by_pods):
        why = "is left out, but the pods' affinity or topologySpreadConstraints use it"
        yield f"{pods.worker}.yaml: label {name} {why}: {instead}"
    for manifest in others:
        namespace = value_at(manifest, "metadata", "namespace") or pods.namespace
        selectors = list(_selectors(manifest, namespace, pods.namespace))
        shown = f"{manifest['kind']} {value_at(manifest, 'metadata', 'name')}"
        shown += f" in namespace {namespace}" if namespace != pods.namespace else ""
        lost, gained = (
            ", ".join(sorted(left_out & names))
            for names in (
                _labels_between(selectors, pods.labels, pods.new_labels),
                _labels_between(selectors, pods.new_labels, pods.labels),
            )
        )
        if lost:
            yield f"{shown} selects the pods by {lost}, which the new pods do not have: {instead}"
        if gained:
            yield (
                f"{shown} selects the new pods, but not the old ones, because the new pods do not have"
                f" {gained}: if that is wrong, add {{key: {DEPLOYMENT_NAME_LABEL}, operator: NotIn, values:"
                f" [{label}]}} to its matchExpressions"
            )


def _labels_between(
    selectors: Iterable[Any], labels: Mapping[str, str], other_labels: Mapping[str, str]
) -> set[str]:
    """The names in each selector that matches only the first of two sets of labels."""
    found = [item for item in selectors if selects(item, labels) and not selects(item, other_labels)]
    return set[str]().union(*map(labels_of, found))


def _selectors(manifest: Mapping[str, Any], own: str, namespace: str) -> Iterator[Mapping[str, Any]]:
    """The label selectors with which an object in namespace `own` can select pods in the other namespace."""
    kind = GroupKind.of(manifest)
    paths = (_LABELS.get(kind) or _SELECTORS.get(kind) or "").split()
    for spec in (value_at(manifest, "spec"), *list_at(manifest, "specs")):
        for *path, field in (item.split(".") for item in paths):
            for holder in _mappings(spec, path):
                for selector in _mappings(holder.get(field), ()):
                    if kind in _CILIUM:
                        yield from _of_cilium(selector, "" if kind == _CLUSTERWIDE else own, namespace)
                    elif _reaches(kind, holder, own, namespace):
                        yield {"matchLabels": selector} if kind in _LABELS else selector


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


def _of_cilium(selector: Mapping[str, Any], own: str, namespace: str) -> Iterator[Mapping[str, Any]]:
    """The selector without the sources of its labels, such as `k8s:`; nothing if it selects pods elsewhere.

    `own` is the namespace of a policy that selects only pods there, unless it names another namespace.
    https://docs.cilium.io/en/stable/network/kubernetes/policy/#namespaces
    """
    labels, expressions = selector.get("matchLabels"), list_at(selector, "matchExpressions")
    named = {_bare(name): text for name, text in (labels if isinstance(labels, dict) else {}).items()}
    ruled = [{**item, "key": _bare(item.get("key"))} for item in expressions if isinstance(item, dict)]
    names_namespace = _NAMESPACE_OF_CILIUM in {*named, *(item["key"] for item in ruled)}
    rest = [item for item in ruled if item["key"] != _NAMESPACE_OF_CILIUM]
    of_namespace = [item for item in ruled if item["key"] == _NAMESPACE_OF_CILIUM]
    is_here = named.pop(_NAMESPACE_OF_CILIUM, namespace) == namespace and selects(
        {"matchExpressions": of_namespace}, {_NAMESPACE_OF_CILIUM: namespace}
    )
    if is_here and (names_namespace or own in {"", namespace}):
        yield {"matchLabels": named, "matchExpressions": rest}


def _bare(name: Any) -> str:
    return str(name).removeprefix("k8s:").removeprefix("any:")


def _reaches(kind: GroupKind, holder: Mapping[str, Any], own: str, namespace: str) -> bool:
    """Whether a selector of an object in namespace `own` can select pods in the other namespace.

    `holder` is the mapping with the selector. It can have a selector of namespaces as well.
    """
    if own == _ROOT_OF_ISTIO and kind.group.endswith(".istio.io"):
        return True
    others = holder.get("namespaceSelector")
    if kind == _POD_MONITOR:
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
