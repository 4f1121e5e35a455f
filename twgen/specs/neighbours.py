"""Documents next to the specs that scale or select the pods of versions, or carry the labels of one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import join_path, value_at
from twgen.model.problem import Document, Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.attached import KINDS
from twgen.specs.doubts import selects
from twgen.specs.kinds import WORKER_KINDS
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    DEPLOYMENT_NAME_LABEL,
    selector_labels,
    versioned_deployment_name,
)

_BUDGET = GroupKind("policy", "PodDisruptionBudget")
_WITH_PODS = {
    GroupKind("apps", "Deployment"): ("spec", "template"),
    GroupKind("apps", "StatefulSet"): ("spec", "template"),
    GroupKind("apps", "DaemonSet"): ("spec", "template"),
    GroupKind("apps", "ReplicaSet"): ("spec", "template"),
    GroupKind("batch", "Job"): ("spec", "template"),
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    GroupKind("", "Pod"): (),
}
"""Where the pods of each kind stand in it."""
_WITHOUT_PODS = (_BUDGET, GroupKind("autoscaling", "HorizontalPodAutoscaler"))
"""What versions have beside their pods."""
_MOST_COMPARED = 100
"""Workers with the rarest of a selector's labels, or of its namespace: no more are looked through for one."""
_Pods = dict[tuple[str, tuple[str, str] | None], list[tuple[WorkerSpec, Mapping[str, str]]]]


def misplaced_scalers(
    documents: Sequence[Document], workers: Sequence[WorkerSpec], namespace: str
) -> Iterator[Problem]:
    """A warning for each document that scales the Deployment of one version, or one called like a worker.

    `namespace` is that of documents that name none; empty: not known, it may be any worker's.
    """
    kinds = ((document, KINDS.get(GroupKind.of(document.value))) for document in documents)
    scalers = [(document, kind.target) for document, kind in kinds if kind and kind.target]
    places: dict[tuple[str, str], WorkerSpec] = {}
    # a dict keeps what was put in last: the first worker of a name that may be any
    for worker in reversed(workers if scalers else ()):
        names = [worker.name]
        if worker.build_id:
            names.append(versioned_deployment_name(worker.name, worker.build_id))
        places |= {(place, name): worker for place in ("", worker.namespace) for name in names}

    def place(document: Document, name: Any) -> tuple[str, str]:
        return str(value_at(document.value, "metadata", "namespace") or namespace), str(name)

    there = {
        place(document, value_at(document.value, "metadata", "name"))
        for document in documents
        if GroupKind.of(document.value) == GroupKind("apps", "Deployment")
    }
    for document, field in scalers:
        target = value_at(document.value, "spec", field)
        scaled = place(document, value_at(target, "name"))
        found = places.get(scaled)
        kind = value_at(target, "kind") or "Deployment"
        is_there = kind == "Deployment" and scaled in there
        if not found or is_there or kind not in ("Deployment", *WORKER_KINDS):
            continue
        what = "not a version" if kind != "Deployment" or scaled[1] == found.name else "only one version"
        message = (
            f"scales {kind} {scaled[1]}, which is {what} of worker {found.worker_deployment}:"
            " make it a WorkerResourceTemplate"
        )
        yield Problem.at(document, f"spec.{field}.name", message)


def shared_pods(
    documents: Sequence[Document], workers: Sequence[WorkerSpec], namespace: str
) -> Iterator[Problem]:
    """A warning for each budget of the pods of versions, and for each object that passes for a version.

    `namespace` is that of documents that name none; empty: not known, it may be any worker's.
    """
    kinds = ((document, GroupKind.of(document.value)) for document in documents if workers)
    found = [(document, kind) for document, kind in kinds if kind in _WITH_PODS or kind in _WITHOUT_PODS]
    pods = _pods(workers if any(kind == _BUDGET for _, kind in found) else ())
    named = {(place, worker.name): worker for worker in reversed(workers) for place in ("", worker.namespace)}
    for document, kind in found:
        own = str(value_at(document.value, "metadata", "namespace") or namespace)
        if kind == _BUDGET:
            yield from _budget(document, own, pods)
        yield from _marked(document, kind, own, named)


def _pods(workers: Sequence[WorkerSpec]) -> _Pods:
    """The labels of each worker's pods, by namespace ("": any), and there by each of these labels."""
    pods: _Pods = {}
    for worker in workers:
        labels = value_at(worker.template.content, "metadata", "labels") or {}
        labels = labels | selector_labels(worker.name, worker.build_id)
        for place in ("", worker.namespace):
            for label in (None, *labels.items()):
                pods.setdefault((place, label), []).append((worker, labels))
    return pods


def _budget(document: Document, namespace: str, pods: _Pods) -> Iterator[Problem]:
    selector = value_at(document.value, "spec", "selector")
    if not isinstance(selector, dict):
        return
    wanted = selector.get("matchLabels") or {}
    texts = isinstance(wanted, dict) and all(isinstance(value, str) for value in wanted.values())
    candidates = [pods.get((namespace, label), []) for label in (wanted.items() if texts else ())]
    fewest = min(candidates, key=len, default=pods.get((namespace, None), []) if texts else [])
    for worker, labels in fewest[:_MOST_COMPARED]:
        if not selects(selector, labels):
            continue
        attached = next((item for item in worker.attached if item.kind == _BUDGET.kind), None)
        whose = f"the pods of all versions of worker {worker.worker_deployment}"
        message = f"counts {whose} together, so an old version may lose its last pod"
        if BUILD_ID_LABEL in wanted:
            whose = f"the pods of one version of worker {worker.worker_deployment}"
            message = f"selects only {whose}, so the next version has no budget"
        message += ": make it a WorkerResourceTemplate"
        if attached:
            why = "a pod with two budgets cannot be evicted"
            message = f"selects {whose}, like attached template {attached.name}, but {why}: remove it"
        yield Problem.at(document, "spec.selector", message)
        return


def _marked(
    document: Document, kind: GroupKind, namespace: str, named: Mapping[tuple[str, str], WorkerSpec]
) -> Iterator[Problem]:
    """Of an object and its pods the first label that is of a version."""
    for steps in dict.fromkeys(((), _WITH_PODS.get(kind, ()))):
        labels = value_at(document.value, *steps, "metadata", "labels")
        marks = labels if isinstance(labels, dict) else {}
        worker = named.get((namespace, str(marks.get(DEPLOYMENT_NAME_LABEL))))
        if worker:
            whose = "its versions' budgets and metrics count these pods"
            if not steps and kind.kind == "Deployment":
                whose = "it is taken for one of its versions"
            elif kind in _WITHOUT_PODS:
                whose = "removing the objects of its versions removes this too"
            message = f"is the label of worker {worker.worker_deployment}, so {whose}"
            and_other = f" with {BUILD_ID_LABEL}" if BUILD_ID_LABEL in marks else ""
            path = join_path("", *steps, "metadata", "labels", DEPLOYMENT_NAME_LABEL)
            yield Problem.at(document, path, f"{message}: remove it{and_other}")
            return
