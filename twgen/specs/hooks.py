"""Documents that make a sync of Argo CD wait, where a rollout is a tracked Job of the same render."""

from collections.abc import Iterable, Iterator

from twgen.model.paths import join_path, value_at
from twgen.model.problem import Document, Problem
from twgen.versioning.names import HOOK, SYNC_WAVE

_HELM_HOOK = "helm.sh/hook"
"""Argo CD takes it for one of its own."""


def hooks_beside_jobs(passthrough: Iterable[Document]) -> Iterator[Problem]:
    """A problem for each hook and wave: a sync that has one waits until every Job of it has ended."""
    for document in passthrough:
        annotations = value_at(document.value, "metadata", "annotations")
        for name in (HOOK, SYNC_WAVE, _HELM_HOOK):
            if isinstance(annotations, dict) and annotations.get(name) not in {None, "0"}:
                message = (
                    "a sync with hooks or waves waits until every rollout has ended, which can take hours:"
                    " move this document to an application of its own, or set spec.driver of a RolloutPolicy"
                    " to None or Hook"
                )
                yield Problem.at(document, join_path("metadata.annotations", name), message)
