"""Import an unversioned worker: its Deployment or Argo Rollout, its autoscaler and its budget."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from twgen.cluster.server_defaults import without_server_fields
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.problem import quoted
from twgen.specs.attached import BUDGET, KINDS, SCALED_OBJECT
from twgen.specs.connections import FILL_IN
from twgen.specs.imported_pods import Configurations, ImportedPods, imported_pods
from twgen.specs.imported_rollouts import ROLLOUT, Traffic, traffic_of
from twgen.specs.imported_selectors import OldPods, labels_of, selected_by
from twgen.specs.keda import REMOVED, VERSION_FIELDS
from twgen.specs.kinds import ATTACHED, POLICY, WORKER, kind_of
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

_OF_TOOLS = ("kubectl.kubernetes.io/", "argocd.argoproj.io/", "meta.helm.sh/", "deployment.kubernetes.io/")
_OF_OTHERS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", CHART, RESTARTED_AT}
"""Labels and annotations by which tools recognize their objects.

The tool that applies the new specs sets its own.
"""
_POD_HASHES = {"pod-template-hash", "rollouts-pod-template-hash"}
_PACE = ("minReadySeconds", "progressDeadlineSeconds", "strategy", "revisionHistoryLimit")


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


def identity_of(document: Any, namespace: str = "") -> tuple[str, str, str]:
    """The kind, namespace and name of a document. `namespace` is for a document without one."""
    own, name = (value_at(document, "metadata", field) for field in ("namespace", "name"))
    # specs of an older release have other kinds
    kind = kind_of(document)
    return kind.name if kind else str(value_at(document, "kind")), str(own or namespace), str(name or "")


@dataclass(frozen=True)
class Running:
    """A running, unversioned worker, and the other objects in its namespace."""

    value: Manifest
    """The worker's Deployment, which can be converted from an Argo Rollout."""
    beside: Sequence[Manifest]
    configurations: Configurations
    elsewhere: Sequence[Manifest] = ()
    """The objects in other namespaces."""
    strategy: Any = None
    """The strategy if the worker was an Argo Rollout."""

    @cached_property
    def spec(self) -> Manifest:
        """The `spec` of the worker's Deployment, without fields that a server has added."""
        bare = {"metadata": {"annotations": {}}, "spec": dict(self.value["spec"])}
        spec: Manifest = without_server_fields(bare)["spec"]
        return spec

    def place(self, namespace: str) -> dict[str, str]:
        """The namespace in the metadata of the worker's specs; `namespace` if the Deployment has none."""
        own = self.value["metadata"].get("namespace") or namespace
        return {"namespace": own} if own else {}

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


def attached_to(running: Running) -> list[Manifest]:
    """The objects that scale the worker, or protect its pods."""
    return [item for item in running.beside if is_of(item, running.value)]


def specs_of(
    running: Running,
    namespace: str,
    connection: Imported | None,
    templates: Mapping[tuple[int, str], str],
) -> Iterator[Imported]:
    """The specs of a worker, its Connection and its attached objects. A person may have to complete them.

    `connection` is None if the folder already has the worker, so that its spec is not written. `templates`
    has the names of the attached objects' templates, as in `template_names`.
    """
    value, pods = running.value, running.pods
    name = value["metadata"]["name"]
    where = running.place(namespace)
    traffic = traffic_of(running.strategy)
    yield _worker(running, pods, where, connection.identity[2] if connection else "", traffic)
    if connection:
        yield connection
    for item in attached_to(running):
        yield _attached(item, templates[id(item), name], name, where)
    if traffic.by_hand:
        spec = {
            "workerRef": {"name": name},
            "steps": [{"rampPercentage": share, "until": "Promoted"} for share in traffic.by_hand],
        }
        head = {"apiVersion": TWGEN_API, "kind": POLICY, "metadata": {"name": name, **where}}
        yield Imported(f"policy-{name}.yaml", {**head, "spec": spec}, is_whole=False)


def _worker(
    running: Running, pods: ImportedPods, where: Manifest, connection: str, traffic: Traffic
) -> Imported:
    value, spec = running.value, running.value["spec"]
    name, pod_template = value["metadata"]["name"], spec["template"]
    attached = attached_to(running)
    budgets = [item for item in attached if GroupKind.of(item) == BUDGET]
    old_labels = value_at(pod_template, "metadata", "labels") or {}
    # with these labels, the old Deployment, its autoscaler and its budget would also select the new pods
    selectors = [value_at(item, "spec", "selector") for item in (value, *budgets)]
    gone = _POD_HASHES.union(*map(labels_of, selectors))
    labels = {key: text for key, text in _of_people(old_labels).items() if key not in gone}
    marks = {"labels": labels, "annotations": _of_people(value_at(pod_template, "metadata", "annotations"))}
    of_pods = {field: texts for field, texts in marks.items() if texts}
    pace = _pace(running.spec)
    autoscales = any(KINDS[GroupKind.of(item)].autoscales for item in attached)
    has_size = spec.get("replicas") is not None and not autoscales
    left_out = {key: text for key, text in old_labels.items() if key not in labels}
    template = {**({"metadata": of_pods} if of_pods else {}), "spec": _with_values(pods.spec, left_out)}
    body = {**({"replicas": spec["replicas"]} if has_size else {}), **pace, "template": template}
    document: dict[str, Any] = {
        "workerOptions": {
            "connectionRef": {"name": connection},
            "temporalNamespace": pods.temporal_namespace.value or FILL_IN,
            **({"taskQueue": pods.task_queue} if pods.task_queue else {}),
        },
        "rollout": traffic.rollout,
        **({"deployment": body} if pace else body),
    }
    field = "deployment" if pace else "template"
    comments: dict[FieldPath, str] = {("spec", field): "enable versioning in its code: docs/workers.md"}
    if traffic.rollout == {"strategy": "AllAtOnce"}:
        comments["spec", "rollout", "strategy"] = "or Progressive, with steps and a gate"
    if pods.worker:
        containers = ("spec", *(("deployment",) if pace else ()), "template", "spec", "containers")
        first = quoted(pods.worker)
        comments[containers] = (
            f"the first container, {first}, is probably the worker: the build ID comes from its image"
        )
    missing = [f"{name}.yaml: {note}" for note in (*pods.notes, *traffic.notes)]
    lasting = {key: text for key, text in old_labels.items() if key not in _POD_HASHES}
    new_labels = {**labels, **selector_labels(name, "")}
    old_pods = OldPods(name, where.get("namespace", ""), lasting, new_labels)
    missing += selected_by(old_pods, pods.spec, (*running.beside, *running.elsewhere))
    missing += _selecting_both(running.beside if budgets else (), new_labels)
    if comment := pods.temporal_namespace.comment(
        "no variable of the pods contains it; SDKs then use namespace default"
    ):
        comments["spec", "workerOptions", "temporalNamespace"] = comment
    if not pods.temporal_namespace.value:
        missing.append(f"{name}.yaml: fill in spec.workerOptions.temporalNamespace")
    head = {"apiVersion": CONTROLLER_API, "kind": WORKER, "metadata": {"name": name, **where}}
    return Imported(f"{name}.yaml", {**head, "spec": document}, comments, tuple(missing), is_whole=False)


def _selecting_both(objects: Iterable[Manifest], new_labels: Mapping[str, str]) -> Iterator[str]:
    """A note for each existing budget that selects the new pods, which get a budget of their own."""
    for budget in (item for item in objects if GroupKind.of(item) == BUDGET):
        selector = value_at(budget, "spec", "selector")
        if isinstance(selector, dict) and selects(selector, new_labels):
            yield (
                f"PodDisruptionBudget {budget['metadata']['name']} also selects the new pods, which cannot be"
                f" evicted if two budgets select them: add {{key: {DEPLOYMENT_NAME_LABEL}, operator:"
                " DoesNotExist} to its matchExpressions"
            )


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


def _pace(spec: Manifest) -> dict[str, Any]:
    """The fields that control how the pods of a version are replaced."""
    pace = {field: spec[field] for field in _PACE if spec.get(field) is not None}
    if isinstance(strategy := pace.get("strategy"), dict):
        # a Deployment can omit the default type, but the controller ignores a strategy without a type
        pace["strategy"] = {"type": "RollingUpdate", **strategy}
    return pace


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


def template_names(
    attached: Iterable[tuple[Manifest, str]], taken: Iterable[str], existing: Mapping[str, Any]
) -> dict[tuple[int, str], str]:
    """The name of the template for each object and worker in a namespace, by the object's `id()` and worker.

    It is the object's own name, unless `taken` or another template has this name. Then the short name of the
    kind, the worker's name, or both follow. `existing` has the `spec` of each template in the folder, by
    name. An object of the same kind and worker keeps such a name.
    """
    owners = {
        name: (value_at(spec, "template", "kind"), value_at(spec, "workerDeploymentRef", "name"))
        for name, spec in existing.items()
    }
    forms = {}
    for manifest, worker in attached:
        name = manifest["metadata"]["name"]
        short = "".join(filter(str.isupper, manifest["kind"])).lower()  # hpa, pdb, so, vpa
        candidates = [name, f"{name}-{short}", f"{name}-{worker}", f"{name}-{worker}-{short}"]
        own = manifest["kind"], worker
        fitting = [item for item in candidates if owners.get(item, own) == own]
        forms[id(manifest), worker] = fitting or candidates[-1:]
    names: dict[tuple[int, str], str] = {}
    used = set(taken)
    while len(names) < len(forms):
        left = {key: candidates for key, candidates in forms.items() if key not in names}
        number = Counter(candidates[0] for candidates in left.values())
        for key, candidates in left.items():
            if len(candidates) == 1 or (number[candidates[0]] == 1 and candidates[0] not in used):
                names[key] = candidates[0]
            else:
                del candidates[0]
        used |= set(names.values())
    return names


def _attached(manifest: Manifest, name: str, worker: str, where: Manifest) -> Imported:
    """A WorkerResourceTemplate that gives each version a copy of the object."""
    group_kind = GroupKind.of(manifest)
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
