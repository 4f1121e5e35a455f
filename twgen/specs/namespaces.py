"""Set the namespace of documents that twgen passes through.

In a terminal, `-n` sets the namespace. In Argo CD, the namespace is the Application's destination namespace.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from twgen.model.operator import CLUSTER_SCOPED, GroupKind
from twgen.model.paths import value_at
from twgen.model.problem import Document, Problem
from twgen.specs.attached import KINDS, definitions

_OF_KUBERNETES = {
    *(kind.group for kind in CLUSTER_SCOPED if kind.group != "keda.sh"),
    *("apps", "autoscaling", "batch", "policy", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"),
}
"""API groups whose cluster-scoped kinds are all in CLUSTER_SCOPED."""
_OFTEN_USED = {
    "argoproj.io": (
        "AnalysisTemplate Rollout WorkflowTemplate",
        "ClusterAnalysisTemplate ClusterWorkflowTemplate",
    ),
    "bitnami.com": ("SealedSecret", ""),
    "cert-manager.io": ("Certificate Issuer", "ClusterIssuer"),
    "cilium.io": ("CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"),
    "external-secrets.io": (
        "ExternalSecret PushSecret SecretStore",
        "ClusterExternalSecret ClusterPushSecret ClusterSecretStore",
    ),
    "gateway.networking.k8s.io": ("GRPCRoute Gateway HTTPRoute ReferenceGrant", "GatewayClass"),
    "karpenter.k8s.aws": ("", "EC2NodeClass"),
    "karpenter.sh": ("", "NodeClaim NodePool"),
    "keda.sh": ("ScaledJob TriggerAuthentication", ""),
    "kyverno.io": ("CleanupPolicy Policy PolicyException", "ClusterCleanupPolicy ClusterPolicy"),
    "monitoring.coreos.com": ("PodMonitor Probe PrometheusRule ServiceMonitor", ""),
    "networking.istio.io": ("DestinationRule EnvoyFilter ServiceEntry Sidecar VirtualService", ""),
    "secrets-store.csi.x-k8s.io": ("SecretProviderClass", ""),
    "security.istio.io": ("AuthorizationPolicy PeerAuthentication RequestAuthentication", ""),
    "snapshot.storage.k8s.io": ("VolumeSnapshot", "VolumeSnapshotClass VolumeSnapshotContent"),
    "telemetry.istio.io": ("Telemetry", ""),
    "templates.gatekeeper.sh": ("", "ConstraintTemplate"),
}
"""The namespaced and the cluster-scoped kinds, from other API groups, that are often used with workers."""
_NAMESPACED, _CLUSTER_WIDE = (
    {GroupKind(group, kind) for group, kinds in _OFTEN_USED.items() for kind in kinds[at].split()}
    for at in range(2)
)
_CONSTRAINTS = "constraints.gatekeeper.sh"
"""The API group of Gatekeeper. It has a cluster-scoped kind for each ConstraintTemplate."""


def with_namespaces(
    passthrough: Iterable[Document], namespace: str
) -> tuple[tuple[Document, ...], list[Problem]]:
    """Add the namespace to namespaced documents that do not specify one.

    If twgen does not know whether a kind is namespaced, it sets no namespace for the kind, and returns a
    warning.
    """
    documents = tuple(passthrough)
    defined = definitions(documents)
    filled: list[Document] = []
    unknown: dict[GroupKind, Problem] = {}
    for document in documents:
        value, kind = document.value, GroupKind.of(document.value)
        is_namespaced = not value_at(value, "metadata", "namespace") and _is_namespaced(kind, defined)
        if is_namespaced is None and kind not in unknown:
            why = f"{kind} may be cluster-scoped, so -n does not set the namespace of its objects"
            unknown[kind] = Problem.at(document, "metadata", f"{why}: write metadata.namespace")
        if is_namespaced:
            value = {**value, "metadata": {**(value.get("metadata") or {}), "namespace": namespace}}
        filled.append(replace(document, value=value))
    return tuple(filled), list(unknown.values())


def _is_namespaced(kind: GroupKind, defined: Mapping[GroupKind, Any]) -> bool | None:
    """Whether objects of the kind have a namespace, or None if it is unknown."""
    if kind in defined:
        return bool(defined[kind] == "Namespaced")
    if kind in CLUSTER_SCOPED or kind in _CLUSTER_WIDE or kind.group == _CONSTRAINTS:
        return False
    return True if kind.group in _OF_KUBERNETES or kind in _NAMESPACED or kind in KINDS else None
