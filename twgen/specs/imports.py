"""Making specs of what runs already: the controller's own objects, and Deployments that have no versions."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from twgen.cluster.server_defaults import without_server_fields
from twgen.errors import InvalidInput
from twgen.model.paths import value_at
from twgen.model.problem import Document
from twgen.specs.kinds import ATTACHED, CLUSTER_CONNECTION, CONNECTION, WORKER, kind_of
from twgen.versioning.injection import is_ever_injected, place_of
from twgen.versioning.names import BUILD_ID_LABEL, CONTROLLER_API, DEPLOYMENT_API

_OF_TOOLS = ("kubectl.kubernetes.io/", "argocd.argoproj.io/", "meta.helm.sh/", "deployment.kubernetes.io/")
_OF_OTHERS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart"}
"""Labels by which a tool knows what it made; whoever makes it next has its own."""
_POD_HASH = "pod-template-hash"
_PREFIXES = {WORKER: "", CONNECTION: "connection-", CLUSTER_CONNECTION: "connection-", ATTACHED: "template-"}

Place = tuple[str, ...]
"""A field of a document, by the names that lead to it."""


class Imported(NamedTuple):
    """One spec, and the file that it belongs into."""

    file: str
    document: Mapping[str, Any]
    comments: Mapping[Place, str]
    """What stands beside some of its fields."""
    missing: tuple[str, ...]
    """What a person has to fill in."""
    told: tuple[Place, ...] | None = None
    """The fields that what runs tells, the others being a person's to decide; None: all of them."""

    def over(self, existing: Any) -> Mapping[str, Any]:
        """The same, where a file has such a document already: of it stays what a person decides."""
        is_other = not isinstance(existing, dict) or existing.get("kind") != self.document["kind"]
        if self.told is None or is_other:
            return self.document
        kept: dict[str, Any] = deepcopy(existing)
        for *above, name in self.told:
            outer, new = kept, value_at(self.document, *above)
            for step in above:
                outer[step] = outer[step] if isinstance(outer.get(step), dict) else {}
                outer = outer[step]
            if name in new:
                outer[name] = new[name]
        return kept


def imported(documents: Iterable[Document], namespace: str) -> tuple[list[Imported], list[str]]:
    """The specs of what runs, each for a file of its own, and why other documents are none.

    `namespace` is that of documents that name none. Raises InvalidInput where two belong into one file.
    """
    found: dict[str, Imported] = {}
    left: list[str] = []
    for document in documents:
        specs = list(_specs(document, namespace))
        if not specs:
            left.append(f"{document.source}: {_why_not(document.value)}")
        for spec in specs:
            if found.setdefault(spec.file, spec) != spec:
                raise InvalidInput(f"two objects belong into {spec.file}: import one namespace at a time")
    return list(found.values()), left


def _specs(document: Document, namespace: str) -> Iterator[Imported]:
    value = document.value
    kind = kind_of(value)
    if kind and kind.name in _PREFIXES and value.get("apiVersion") == CONTROLLER_API:
        name = str(value_at(value, "metadata", "name"))
        essence = {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": _metadata(value)}
        yield Imported(f"{_PREFIXES[kind.name]}{name}.yaml", essence | {"spec": value.get("spec")}, {}, ())
    elif _is_plain_deployment(value):
        yield from _of_deployment(value, namespace)


def _metadata(value: Mapping[str, Any]) -> dict[str, Any]:
    """Name and namespace, and of labels and annotations what no tool has put there."""
    metadata = value["metadata"]
    kept: dict[str, Any] = {name: metadata[name] for name in ("name", "namespace") if metadata.get(name)}
    for name in ("labels", "annotations"):
        texts = {
            key: text
            for key, text in (metadata.get(name) or {}).items()
            if not key.startswith(_OF_TOOLS) and key not in _OF_OTHERS
        }
        if texts:
            kept[name] = texts
    return kept


def _is_plain_deployment(value: Mapping[str, Any]) -> bool:
    is_deployment = (value.get("apiVersion"), value.get("kind")) == (DEPLOYMENT_API, "Deployment")
    labels = value_at(value, "metadata", "labels") or {}
    return (
        is_deployment and BUILD_ID_LABEL not in labels and bool(value_at(value, "spec", "template", "spec"))
    )


def _of_deployment(value: Mapping[str, Any], namespace: str) -> Iterator[Imported]:
    """A worker and its connection; what a Deployment does not tell is left to be filled in."""
    metadata = _metadata(value)
    name, where = metadata["name"], {"namespace": metadata.get("namespace", namespace)}
    manifest = without_server_fields({"metadata": metadata, "spec": dict(value["spec"])})
    pods, place = manifest["spec"]["template"], place_of(manifest["spec"]["template"]["spec"])
    selected = value_at(value, "spec", "selector", "matchLabels") or {}
    labels = {
        key: text
        for key, text in (value_at(pods, "metadata", "labels") or {}).items()
        # the old Deployment, and what scales or guards it, would take the new pods for its own
        if key not in selected and key not in _OF_OTHERS and key != _POD_HASH
    }
    template: dict[str, Any] = {"metadata": {"labels": labels}} if labels else {}
    template["spec"] = _without_places(pods["spec"])
    worker: dict[str, Any] = {
        "apiVersion": CONTROLLER_API,
        "kind": WORKER,
        "metadata": {"name": name, **{key: text for key, text in where.items() if text}},
        "spec": {
            **({"replicas": value["spec"]["replicas"]} if value["spec"].get("replicas") is not None else {}),
            "workerOptions": {
                "connectionRef": {"name": "temporal"},
                "temporalNamespace": place.temporal_namespace or "default",
            },
            "rollout": {"strategy": "AllAtOnce"},
            "template": template,
        },
    }
    comments: dict[Place, str] = {("spec", "rollout", "strategy"): "or Progressive, with steps and a gate"}
    missing = []
    if not place.temporal_namespace:
        comments["spec", "workerOptions", "temporalNamespace"] = "fill in: none of its variables says it"
        missing.append(f"{name}.yaml: spec.workerOptions.temporalNamespace, if it is not default")
    comments["spec", "template"] = "its code turns versioning on first: docs/workers.md"
    told: tuple[Place, ...] = (("spec", "replicas"), ("spec", "template", "spec"))
    yield Imported(f"{name}.yaml", worker, comments, tuple(missing), told)
    address: dict[str, Any] = {"hostPort": place.address or "temporal.example.com:7233"}
    connection = {
        "apiVersion": CONTROLLER_API,
        "kind": CONNECTION,
        "metadata": {"name": "temporal", **{key: text for key, text in where.items() if text}},
        "spec": address,
    }
    beside = "and apiKeySecretRef or mutualTLSSecretRef, if it needs credentials"
    if not place.address:
        beside = f"fill in: none of its variables says it; {beside}"
    unknown = () if place.address else ("connection-temporal.yaml: spec.hostPort",)
    known: tuple[Place, ...] = (("spec", "hostPort"),) if place.address else ()
    yield Imported("connection-temporal.yaml", connection, {("spec", "hostPort"): beside}, unknown, known)


def _without_places(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pods without the plain variables that twgen sets itself."""
    containers = []
    for container in pod.get("containers") or ():
        kept = [
            variable
            for variable in container.get("env") or ()
            if not is_ever_injected(variable.get("name", "")) or "valueFrom" in variable
        ]
        rest = {name: value for name, value in container.items() if name != "env"}
        containers.append({**rest, **({"env": kept} if kept else {})})
    return {**pod, "containers": containers}


def _why_not(value: Mapping[str, Any]) -> str:
    told = f"{value.get('kind')} {value_at(value, 'metadata', 'name')} is not taken"
    if value.get("kind") == "Deployment":
        return f"{told}: it is that of a version"
    return f"{told}: it is neither the controller's nor a Deployment"
