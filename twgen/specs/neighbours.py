"""Warn of documents next to the specs that scale or select pods of versions, or have the labels of one."""

from collections.abc import Iterator, Mapping, Sequence

from twgen.model.operator import GroupKind
from twgen.model.paths import join_path, value_at
from twgen.model.problem import Document, Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.attached import BUDGET, HPA, KINDS
from twgen.specs.doubts import selects
from twgen.specs.kinds import WORKER_KINDS
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    DEPLOYMENT_NAME_LABEL,
    selector_labels,
    versioned_deployment_name,
)

_DEPLOYMENT = GroupKind("apps", "Deployment")
_APPS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_WITH_PODS = {
    **{GroupKind("apps", kind): ("spec", "template") for kind in _APPS},
    GroupKind("batch", "Job"): ("spec", "template"),
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    GroupKind("", "Pod"): (),
}
"""The path of the pod template in each kind."""
_WITHOUT_PODS = (BUDGET, HPA)
"""Kinds that versions have besides their Deployments."""
_MOST_COMPARED = 100
"""A selector is compared with at most so many workers: those with its rarest label, or of its namespace."""
_Pods = dict[tuple[str, tuple[str, str] | None], list[tuple[WorkerSpec, Mapping[str, str]]]]


def warnings_of_neighbours(
    documents: Sequence[Document], workers: Sequence[WorkerSpec], namespace: str
) -> Iterator[Problem]:
    """A warning for each document that scales or selects pods of versions, or looks like a version.

    `namespace` is for documents without one; empty: it is not known, and may be any worker's.
    """
    placed = [
        (
            document,
            GroupKind.of(document.value),
            str(value_at(document.value, "metadata", "namespace") or namespace),
        )
        for document in documents
        if workers
    ]
    yield from _misplaced_scalers(placed, workers)
    pods = _pods(workers if any(kind == BUDGET for _, kind, _ in placed) else ())
    named = {(place, worker.name): worker for worker in reversed(workers) for place in ("", worker.namespace)}
    for document, kind, own in placed:
        if kind == BUDGET:
            yield from _budget(document, own, pods)
        if kind in _WITH_PODS or kind in _WITHOUT_PODS:
            yield from _marked(document, kind, own, named)


def _misplaced_scalers(
    placed: Sequence[tuple[Document, GroupKind, str]], workers: Sequence[WorkerSpec]
) -> Iterator[Problem]:
    """A warning for each document that scales the Deployment of a version, or one named like a worker."""
    scalers = [
        (document, own, KINDS[kind].target)
        for document, kind, own in placed
        if kind in KINDS and KINDS[kind].target
    ]
    places: dict[tuple[str, str], WorkerSpec] = {}
    # in reverse, since a dict keeps the last value: the first worker of a name counts
    for worker in reversed(workers if scalers else ()):
        names = [worker.name]
        if worker.build_id:
            names.append(versioned_deployment_name(worker.name, worker.build_id))
        places |= {(place, name): worker for place in ("", worker.namespace) for name in names}
    deployments = {
        (own, str(value_at(document.value, "metadata", "name")))
        for document, kind, own in placed
        if kind == _DEPLOYMENT
    }
    for document, own, field in scalers:
        target = value_at(document.value, "spec", field)
        name, kind = str(value_at(target, "name")), value_at(target, "kind") or "Deployment"
        owner = places.get((own, name))
        is_other = kind == "Deployment" and (own, name) in deployments
        if owner and not is_other and kind in ("Deployment", *WORKER_KINDS):
            versions = "not a version" if kind != "Deployment" or name == owner.name else "only one version"
            message = (
                f"scales {kind} {name}, which is {versions} of worker {owner.worker_deployment}:"
                " make it a WorkerResourceTemplate"
            )
            yield Problem.at(document, f"spec.{field}.name", message)


def _pods(workers: Sequence[WorkerSpec]) -> _Pods:
    """The labels of each worker's pods, by namespace ("": any) and by label."""
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
        attached = next((item for item in worker.attached if item.kind == BUDGET.kind), None)
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
    """The first label of an object or of its pods that marks a version."""
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
