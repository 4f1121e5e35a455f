"""Import an unversioned worker: its Deployment or Argo Rollout, its autoscaler and its budget."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from twgen.cluster.server_defaults import without_server_fields
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.problem import quoted
from twgen.model.times import go_duration
from twgen.specs.attached import BUDGET, KINDS, SCALED_OBJECT
from twgen.specs.connections import FILL_IN, NO_ADDRESS
from twgen.specs.imported_pods import Configurations, ImportedPods, Origin, imported_pods
from twgen.specs.keda import REMOVED, VERSION_FIELDS
from twgen.specs.kinds import ATTACHED, CONNECTION, POLICY, WORKER
from twgen.specs.pod_warnings import label_at, selects
from twgen.specs.templates import CHART
from twgen.versioning.names import (
    CONTROLLER_API,
    DEPLOYMENT_NAME_LABEL,
    RESTARTED_AT,
    TWGEN_API,
    selector_labels,
)

Manifest = Mapping[str, Any]
FieldPath = tuple[str, ...]
"""The path of a field in a document."""

ROLLOUT = GroupKind("argoproj.io", "Rollout")
_OF_TOOLS = ("kubectl.kubernetes.io/", "argocd.argoproj.io/", "meta.helm.sh/", "deployment.kubernetes.io/")
_OF_OTHERS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", CHART, RESTARTED_AT}
"""Labels and annotations by which tools recognize their objects.

The tool that applies the new specs sets its own.
"""
_POD_HASHES = {"pod-template-hash", "rollouts-pod-template-hash"}
_PACE = ("minReadySeconds", "progressDeadlineSeconds", "strategy", "revisionHistoryLimit")
_SCHEDULING = ("affinity", "topologySpreadConstraints")
_SELECTORS: Mapping[GroupKind, str] = {
    GroupKind("", "Service"): "selector",
    GroupKind("networking.k8s.io", "NetworkPolicy"): "podSelector",
    GroupKind("cilium.io", "CiliumNetworkPolicy"): "endpointSelector",
    GroupKind("monitoring.coreos.com", "PodMonitor"): "selector",
}
"""The `spec` field with which objects of each kind select pods."""
_LEAST_PAUSE = "30s"
"""A step's shortest allowed pause, used if the Rollout does not specify a duration."""


class Imported(NamedTuple):
    """One imported spec, and the file for it."""

    file: str
    document: Manifest
    comments: Mapping[FieldPath, str] = {}
    """Comments for some of the spec's fields."""
    missing: tuple[str, ...] = ()
    """Sentences about fields that a person must fill in or check."""
    is_whole: bool = True
    """Whether the spec is complete. An incomplete spec does not overwrite an existing file."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """The spec's kind, namespace and name."""
        return identity_of(self.document)


def identity_of(document: Any) -> tuple[str, str, str]:
    """The kind, namespace and name of a document. A missing value is empty."""
    kind, *rest = (
        str(value_at(document, *path) or "")
        for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))
    )
    return kind, rest[0], rest[1]


@dataclass(frozen=True)
class Running:
    """A running, unversioned worker, and the other objects in its namespace."""

    value: Manifest
    """The worker's Deployment, which can be converted from an Argo Rollout."""
    beside: Sequence[Manifest]
    configurations: Configurations
    steps: Sequence[Any] = ()
    """The canary steps if the worker was an Argo Rollout."""

    @cached_property
    def spec(self) -> Manifest:
        """The `spec` of the worker's Deployment, without fields that a server has added."""
        bare = {"metadata": {"annotations": {}}, "spec": dict(self.value["spec"])}
        spec: Manifest = without_server_fields(bare)["spec"]
        return spec

    @cached_property
    def pods(self) -> ImportedPods:
        """The worker's pods, with the Temporal settings from their environment variables."""
        return imported_pods(self.spec["template"]["spec"], self.configurations)


def metadata_of_people(value: Manifest) -> dict[str, Any]:
    """The name, the namespace, and the labels and annotations that no tool has set."""
    metadata = value["metadata"]
    kept: dict[str, Any] = {name: metadata[name] for name in ("name", "namespace") if metadata.get(name)}
    for name in ("labels", "annotations"):
        if texts := _of_people(metadata.get(name)):
            kept[name] = texts
    return kept


def _of_people(texts: Manifest | None) -> dict[str, Any]:
    return {
        key: text
        for key, text in (texts or {}).items()
        if not key.startswith(_OF_TOOLS) and key not in _OF_OTHERS
    }


def specs_of(running: Running, namespace: str, addresses: set[str]) -> Iterator[Imported]:
    """The specs of a worker, its Connection and its attached objects. A person may have to complete them.

    `addresses` has the addresses of all workers in the namespace. If the addresses differ, each worker gets
    its own Connection.
    """
    value, pods = running.value, running.pods
    name = value["metadata"]["name"]
    where = {"namespace": text} if (text := value["metadata"].get("namespace") or namespace) else {}
    connection = "temporal" if len(addresses) <= 1 else name
    attached = [item for item in running.beside if is_of(item, value)]
    autoscales = any(KINDS[GroupKind.of(item)].autoscales for item in attached)
    yield _worker(running, pods, where, connection, autoscales=autoscales)
    yield _connection(pods, where, connection, addresses)
    for item in attached:
        yield _attached(item, name, where)
    if by_hand := [step["rampPercentage"] for step in _steps(running.steps)[0] if step.get("until")]:
        spec = {
            "workerRef": {"name": name},
            "steps": [{"rampPercentage": share, "until": "Promoted"} for share in by_hand],
        }
        head = {"apiVersion": TWGEN_API, "kind": POLICY, "metadata": {"name": name, **where}}
        yield Imported(f"policy-{name}.yaml", {**head, "spec": spec}, is_whole=False)


def _worker(
    running: Running, pods: ImportedPods, where: Manifest, connection: str, *, autoscales: bool
) -> Imported:
    value, spec = running.value, running.value["spec"]
    name, pod_template = value["metadata"]["name"], spec["template"]
    selecting = value_at(value, "spec", "selector", "matchLabels") or {}
    old_labels = value_at(pod_template, "metadata", "labels") or {}
    # with these labels, the old Deployment, its autoscaler and its budget would also select the new pods
    gone = {*selecting, *_POD_HASHES}
    labels = {key: text for key, text in _of_people(old_labels).items() if key not in gone}
    marks = {"labels": labels, "annotations": _of_people(value_at(pod_template, "metadata", "annotations"))}
    of_pods = {field: texts for field, texts in marks.items() if texts}
    pace = _pace(running.spec)
    has_size = spec.get("replicas") is not None and not autoscales
    left_out = {key: text for key, text in old_labels.items() if key not in labels}
    template = {**({"metadata": of_pods} if of_pods else {}), "spec": _with_values(pods.spec, left_out)}
    body = {**({"replicas": spec["replicas"]} if has_size else {}), **pace, "template": template}
    steps, of_steps = _steps(running.steps)
    shown = [{name: item for name, item in step.items() if name != "until"} for step in steps]
    document: dict[str, Any] = {
        "workerOptions": {
            "connectionRef": {"name": connection},
            "temporalNamespace": pods.temporal_namespace.value or FILL_IN,
            **({"taskQueue": pods.task_queue} if pods.task_queue else {}),
        },
        "rollout": {"strategy": "Progressive", "steps": shown} if shown else {"strategy": "AllAtOnce"},
        **({"deployment": body} if pace else body),
    }
    field = "deployment" if pace else "template"
    comments: dict[FieldPath, str] = {("spec", field): "enable versioning in its code: docs/workers.md"}
    if not shown:
        comments["spec", "rollout", "strategy"] = "or Progressive, with steps and a gate"
    if pods.worker:
        containers = ("spec", *(("deployment",) if pace else ()), "template", "spec", "containers")
        first = quoted(pods.worker)
        comments[containers] = (
            f"the first container, {first}, is probably the worker: the build ID comes from its image"
        )
    missing = [f"{name}.yaml: {note}" for note in (*pods.notes, *of_steps)]
    missing += _selected_by(running, pods, left_out.keys() - _POD_HASHES, old_labels)
    if comment := _comment(
        pods.temporal_namespace, "no variable of the pods contains it; SDKs then use namespace default"
    ):
        comments["spec", "workerOptions", "temporalNamespace"] = comment
    if not pods.temporal_namespace.value:
        missing.append(f"{name}.yaml: fill in spec.workerOptions.temporalNamespace")
    head = {"apiVersion": CONTROLLER_API, "kind": WORKER, "metadata": {"name": name, **where}}
    return Imported(f"{name}.yaml", {**head, "spec": document}, comments, tuple(missing), is_whole=False)


def _with_values(pod: Manifest, labels: Manifest) -> dict[str, Any]:
    """The pod. If a variable refers to one of these labels, the label's value replaces the reference."""

    def known(variable: Manifest) -> Manifest:
        label = label_at(value_at(variable, "valueFrom", "fieldRef", "fieldPath"))
        return {"name": variable["name"], "value": labels[label]} if label in labels else variable

    lists = {
        field: [
            {**item, "env": [*map(known, item["env"])]} if item.get("env") else item for item in pod[field]
        ]
        for field in ("initContainers", "containers")
        if pod.get(field)
    }
    return {**pod, **lists}


def _comment(origin: Origin, unsaid: str = "no variable of the pods contains it") -> str:
    """A comment with the source of a value; empty if the value comes from a variable that twgen sets."""
    if not origin.value:
        return f"fill in: {origin.hint or unsaid}"
    if not origin.name:
        return ""
    return f"from {origin.name}, which stays in the pods: change both together"


def _connection(pods: ImportedPods, where: Manifest, name: str, addresses: set[str]) -> Imported:
    origin = pods.address
    if not origin.value and len(addresses) == 1:
        origin = Origin(next(iter(addresses)))
    file = f"connection-{name}.yaml"
    credentials: dict[str, Any] = {"apiKeySecretRef": pods.key} if pods.key else {}
    if pods.certificate:
        credentials = {"mutualTLSSecretRef": {"name": pods.certificate}}
    needed = "" if credentials else "add apiKeySecretRef or mutualTLSSecretRef if the server needs one"
    comment = "; ".join(filter(None, (_comment(origin), needed)))
    head = {"apiVersion": CONTROLLER_API, "kind": CONNECTION, "metadata": {"name": name, **where}}
    document = {**head, "spec": {"hostPort": origin.value or NO_ADDRESS, **credentials}}
    missing = () if origin.value else (f"{file}: fill in spec.hostPort",)
    comments: dict[FieldPath, str] = {("spec", "hostPort"): comment} if comment else {}
    return Imported(file, document, comments, missing, is_whole=False)


def _pace(spec: Manifest) -> dict[str, Any]:
    """The fields that control how the pods of a version are replaced."""
    pace = {field: spec[field] for field in _PACE if spec.get(field) is not None}
    if isinstance(strategy := pace.get("strategy"), dict):
        # a Deployment can omit the default type, but the controller ignores a strategy without a type
        pace["strategy"] = {"type": "RollingUpdate", **strategy}
    return pace


def _steps(steps: Sequence[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """A canary's steps converted to twgen's steps, and notes about steps that a person must replace.

    A pause without a duration becomes `until: Promoted` in a RolloutPolicy.
    """
    found: list[dict[str, Any]] = []
    notes = []
    for at, step in enumerate(steps):
        weight, pause = value_at(step, "setWeight"), value_at(step, "pause")
        if isinstance(weight, int | float) and 0 < weight < 100:
            found.append({"rampPercentage": weight, "pauseDuration": _LEAST_PAUSE})
        elif isinstance(pause, dict) and found:
            duration = pause.get("duration")
            text = f"{duration}s" if isinstance(duration, int) else str(duration or "")
            if length := go_duration(text) or text:
                found[-1]["pauseDuration"] = length
            else:
                found[-1]["until"] = "Promoted"
        elif not isinstance(weight, int | float):
            kind = ", ".join(step) if isinstance(step, dict) else str(step)
            notes.append(
                f"step {at + 1} of the Rollout ({kind}) is left out: use a gate or an analysis instead"
            )
    return found, notes


def is_of(manifest: Manifest, deployment: Manifest) -> bool:
    """Whether the object scales the Deployment, or protects its pods."""
    kind = KINDS.get(group_kind := GroupKind.of(manifest))
    if value_at(manifest, "metadata", "ownerReferences"):
        return False  # such as the HPA that KEDA creates for a ScaledObject
    if not kind or manifest["apiVersion"].rpartition("/")[2] not in kind.structs:
        return False
    if group_kind == BUDGET:
        selector = value_at(manifest, "spec", "selector")
        labels = value_at(deployment, "spec", "template", "metadata", "labels") or {}
        return isinstance(selector, dict) and bool(selector) and selects(selector, labels)
    target = value_at(manifest, "spec", kind.target)
    names_it = value_at(target, "name") == deployment["metadata"]["name"]
    return bool(names_it and (value_at(target, "kind") or "Deployment") in {"Deployment", ROLLOUT.kind})


def _attached(manifest: Manifest, worker: str, where: Manifest) -> Imported:
    """A WorkerResourceTemplate that gives each version a copy of the object."""
    group_kind, name = GroupKind.of(manifest), manifest["metadata"]["name"]
    spec = dict(manifest["spec"])
    if target := KINDS[group_kind].target:
        spec[target] = {}
    if group_kind == BUDGET:
        spec["selector"] = {"matchLabels": {}}
    if group_kind == SCALED_OBJECT:
        spec["triggers"] = [_trigger(item) for item in spec.get("triggers") or ()]
    marks = {
        field: texts
        for field in ("labels", "annotations")
        if (texts := _of_people(manifest["metadata"].get(field)))
    }
    template = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        **({"metadata": marks} if marks else {}),
        "spec": spec,
    }
    head = {"apiVersion": CONTROLLER_API, "kind": ATTACHED, "metadata": {"name": name, **where}}
    body = {"workerDeploymentRef": {"name": worker}, "template": template}
    return Imported(f"template-{name}.yaml", {**head, "spec": body}, is_whole=False)


def _trigger(trigger: Any) -> Any:
    """The trigger. The fields of a `temporal` trigger that differ for each version become empty."""
    if str(value_at(trigger, "type")).strip().lower() != "temporal":
        return trigger
    metadata = value_at(trigger, "metadata") or {}
    own = {name: text for name, text in metadata.items() if name not in REMOVED}
    return {**trigger, "metadata": {**own, **dict.fromkeys(VERSION_FIELDS, "")}}


def _selected_by(
    running: Running, pods: ImportedPods, left_out: set[str], old_labels: Manifest
) -> Iterable[str]:
    """A note for each object that selects the old pods by labels that the new pods do not have."""
    name = running.value["metadata"]["name"]
    instead = f"write {DEPLOYMENT_NAME_LABEL}: {selector_labels(name, '')[DEPLOYMENT_NAME_LABEL]} there"
    by_pods = _selecting_labels([pods.spec.get(field) for field in _SCHEDULING])
    for label in sorted(left_out & by_pods):
        why = "is left out, but the pods' affinity or topologySpreadConstraints use it"
        yield f"{name}.yaml: label {label} {why}: {instead}"
    for manifest in running.beside:
        field = _SELECTORS.get(GroupKind.of(manifest))
        selector = value_at(manifest, "spec", field) if field else None
        if not isinstance(selector, dict):
            continue
        whole = {"matchLabels": selector} if manifest["kind"] == "Service" else selector
        labels = sorted(left_out & _selecting_labels({"labelSelector": whole}))
        if labels and selects(whole, old_labels):
            shown = f"{manifest['kind']} {value_at(manifest, 'metadata', 'name')}"
            why = f"selects the pods by {', '.join(labels)}, which the new pods do not have"
            yield f"{shown} {why}: {instead}"


def _selecting_labels(rules: Any) -> set[str]:
    """The labels by which scheduling rules select pods, at any depth below this value."""
    if isinstance(rules, list):
        return {name for rule in rules for name in _selecting_labels(rule)}
    if not isinstance(rules, dict):
        return set()
    selector = rules.get("labelSelector")
    expressions = value_at(selector, "matchExpressions")
    labels = value_at(selector, "matchLabels")
    names = [*labels] if isinstance(labels, dict) else []
    names += (
        [value_at(expression, "key") for expression in expressions] if isinstance(expressions, list) else []
    )
    return {str(name) for name in names}.union(*(_selecting_labels(rule) for rule in rules.values()))
