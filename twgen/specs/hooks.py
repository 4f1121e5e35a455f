"""Find annotations that a render must not have: hooks and waves of Argo CD, and marks of other programs."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twgen.model.paths import join_path, value_at
from twgen.model.problem import Document, Problem
from twgen.model.spec import WorkerSpec
from twgen.specs.deployments import RESOURCE_POLICY, why_not_of_versions
from twgen.specs.kinds import WORKER_KINDS
from twgen.versioning.names import HELM_HOOK, HOOK, REQUEST_ANNOTATIONS, SYNC_WAVE

_TESTS = {"test", "test-success"}
"""The hooks of `helm test`: today's name, and the name in Helm 2."""


def hooks_on_versions(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A problem for each hook in a template: Argo CD deletes a hook with its pods before it creates it again.

    A Deployment has the annotations of its pod template.
    """
    message = "Argo CD would delete this object, pods included, in every sync: remove the annotation"
    for document, path, annotations in _templates(workers):
        for name in (HOOK, HELM_HOOK):
            if name in annotations:
                yield Problem.at(document, join_path(path, name), message)


def marks_on_versions(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each annotation in a template that lets another program change a version's objects."""
    for document, path, annotations in _templates(workers):
        is_worker = document.value.get("kind") in WORKER_KINDS
        for name in annotations:
            # an annotation that only acts on Deployments does nothing in other kinds
            if (is_worker or name == RESOURCE_POLICY) and (why := why_not_of_versions(name)):
                yield Problem.at(document, join_path(path, name), why)


def requests_in(passthrough: Iterable[Document]) -> Iterator[Problem]:
    """A problem for each request to a rollout: applied again and again, nobody would have made it."""
    for document in passthrough:
        annotations = value_at(document.value, "metadata", "annotations")
        for name in REQUEST_ANNOTATIONS:
            if isinstance(annotations, dict) and name in annotations:
                why = "is a request to a rollout, which a manifest cannot make: remove it"
                yield Problem.at(document, join_path("metadata.annotations", name), why)


def hooks_beside_jobs(passthrough: Iterable[Document], workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A problem for each hook and wave: with one, a sync waits until all its Jobs have ended."""
    waits = "a sync with hooks or waves waits until every rollout has ended, which can take hours"
    for document in passthrough:
        if is_test_of_helm(document.value):
            continue
        annotations = value_at(document.value, "metadata", "annotations")
        for name in (HOOK, SYNC_WAVE, HELM_HOOK):
            if isinstance(annotations, dict) and annotations.get(name) not in {None, "0"}:
                message = (
                    f"{waits}: move this document to its own application, or set spec.driver of a"
                    " RolloutPolicy to None or Hook"
                )
                yield Problem.at(document, join_path("metadata.annotations", name), message)
    for document, path, annotations in _templates(workers):
        if annotations.get(SYNC_WAVE) not in {None, "0"}:
            yield Problem.at(document, join_path(path, SYNC_WAVE), f"{waits}: remove it")


def is_test_of_helm(value: Any) -> bool:
    """Only `helm test` creates the object: Argo CD has no phase for such a hook, and never applies it.

    If an object has a hook of Argo CD too, Argo CD ignores the one of Helm
    (https://github.com/argoproj/gitops-engine/tree/master/pkg/sync/hook).
    """
    annotations = value_at(value, "metadata", "annotations")
    if not isinstance(annotations, dict) or HOOK in annotations:
        return False
    return {hook.strip() for hook in str(annotations.get(HELM_HOOK)).split(",")} <= _TESTS


def _templates(workers: Iterable[WorkerSpec]) -> Iterator[tuple[Document, str, Mapping[str, Any]]]:
    """Each document with a template for versions, and the template's annotations with their path."""
    for worker in workers:
        templates = [(worker.document, worker.template.content)]
        for document, template in templates + [(item.document, item.template) for item in worker.attached]:
            annotations = value_at(template, "metadata", "annotations")
            is_inside = value_at(document.value, "spec", "template") is None
            path = f"spec.{'deployment.' if is_inside else ''}template.metadata.annotations"
            yield document, path, annotations if isinstance(annotations, dict) else {}
