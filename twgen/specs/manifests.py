"""Check rendered manifests, and the Pods of rollouts in an OperatorConfig.

The checks apply the rules of an API server. They also find annotations that manifests must not have: Argo CD
hooks and sync waves, rollout requests, and annotations for other programs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from twgen.model.operator import GroupKind, Operator
from twgen.model.paths import join_path, value_at
from twgen.model.problem import NO_EFFECT, SET_BY_TWGEN, Document, Finding, Problem, Rule, most_reported
from twgen.model.spec import WorkerSpec
from twgen.specs.attached import KINDS
from twgen.specs.deployments import RESOURCE_POLICY, why_not_of_versions
from twgen.specs.kinds import WORKER_KINDS
from twgen.specs.templates import why_no_image
from twgen.specs.validation.walk import refusals
from twgen.versioning.names import (
    CONTROLLER_API,
    HELM_HOOK,
    HOOK,
    INTENT_HASH,
    MANAGED_BY,
    REQUEST_ANNOTATIONS,
    ROLLOUT,
    SYNC_WAVE,
)
from twgen.versioning.stored_form import POD_TEMPLATE, stored_struct

_NEVER_WRITTEN = {"ownerReferences"}
"""Metadata fields that are not allowed in specs, so the table of types does not include them."""
_WITH_PODS = {GroupKind("apps", "Deployment"), GroupKind("batch", "Job")}
_WHERE = "rollout"
_RESERVED = {CONTROLLER_API.partition("/")[0]}
_OURS = {"labels": {ROLLOUT, *MANAGED_BY}, "annotations": {INTENT_HASH}}
_TESTS = {"test", "test-success"}
"""The hook name of `helm test`, and its name in Helm 2."""
_OF_NO_SYNC = {
    HOOK: {"PreDelete", "PostDelete", "Skip"},
    HELM_HOOK: {*_TESTS, *("pre-delete", "post-delete", "pre-rollback", "post-rollback")},
}
"""The hooks that do not run during an Argo CD sync."""
_OF_ARGOCD = {HOOK, SYNC_WAVE}
_OF_RESTARTERS = {f"{kind}reloader.stakater.com" for kind in ("", "configmap.", "secret.")} | {
    "wave.pusher.com"
}
"""The prefixes of annotations for programs that restart Deployments."""
_NO_HOOK = {"crd-install"}
"""Argo CD applies objects with these hooks like ordinary objects."""
_ARGOCD_HOOK = Rule(
    "argocd-hook", "A hook or sync wave deletes pods in each sync, or makes a sync wait for rollouts."
)
_REQUEST = Rule(
    "request-in-manifest",
    "A manifest contains a request to a rollout, so every sync would repeat the request.",
)
_HELM_HOOK = Rule("helm-hook", "A Helm hook is left out, because only Helm knows when to apply it.")


def manifest_problems(
    documents: Sequence[Document], has_schema: Callable[[Mapping[str, Any]], bool]
) -> Iterator[Problem]:
    """The errors that an API server would report about rendered manifests.

    Field types are checked here only in manifests without a schema.
    """
    most = most_reported(len(documents))
    for document in documents:
        kind = document.value["kind"]
        for path, struct in _known_parts(document.value):
            value = value_at(document.value, *path.split("."))
            if path == "metadata" and isinstance(value, dict):
                value = {name: item for name, item in value.items() if name not in _NEVER_WRITTEN}
            stored = stored_struct({} if value is None else value, struct, path, f"a {kind}", most)
            wrong_fields = () if has_schema(document.value) else (*stored.problems, *stored.unknown)
            refused = refusals(stored.value, struct, path, most, stored.problems)
            for wrong in (*wrong_fields, *refused):
                # the rule about restartPolicy applies only to pods of Deployments
                if kind != "Job" or wrong.path != "spec.template.spec.restartPolicy":
                    yield Problem.at(document, wrong.path, wrong.message)


def _known_parts(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The paths of a manifest's fields whose type is in kubernetes_types, each with the type's name."""
    yield "metadata", "ObjectMeta"
    group_kind = GroupKind.of(value)
    if group_kind in _WITH_PODS:
        yield "spec.template", POD_TEMPLATE
    elif (kind := KINDS.get(group_kind)) and (
        struct := kind.structs.get(value["apiVersion"].rpartition("/")[2])
    ):
        yield "spec", struct


def refusals_of_pod(operator: Operator) -> list[Finding]:
    """The problems with the Pods of rollouts. Each problem has its path in the OperatorConfig."""
    pod = operator.rollout
    metadata = {"labels": dict(pod.labels), "annotations": dict(pod.annotations)}
    image = operator.rollout.image or "twgen"
    spec = {
        "containers": [{"name": "rollout", "image": image, "resources": dict(pod.resources)}],
        "nodeSelector": dict(pod.node_selector),
        "tolerations": list(pod.tolerations),
        "imagePullSecrets": list(pod.image_pull_secrets),
    }
    wrong_image = [Finding(f"{_WHERE}.image", wrong)] if (wrong := why_no_image(image)) else []
    reserved = [
        name
        for name in metadata["labels"]
        if name.partition("/")[0] in _RESERVED and name not in _OURS["labels"]
    ]
    refused = [*refusals(metadata, "ObjectMeta", _WHERE), *refusals(spec, "PodSpec", _WHERE)]
    return [
        *wrong_image,
        *(Finding(item.path.replace("containers[0].", "", 1), item.message) for item in refused),
        *(
            Finding(
                join_path(f"{_WHERE}.labels", name),
                SET_BY_TWGEN("is reserved for the pods of versions: remove it"),
            )
            for name in reserved
        ),
        *(
            Finding(join_path(f"{_WHERE}.{field}", name), SET_BY_TWGEN("is set by twgen: remove it"))
            for field, names in _OURS.items()
            for name in sorted(names & metadata[field].keys())
        ),
    ]


def hooks_on_versions(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A problem for each hook annotation in a template, because each sync deletes and recreates hooks.

    A Deployment gets its pod template's annotations, so it would be deleted together with its pods.
    """
    message = "Argo CD would delete this object, pods included, in every sync: remove the annotation"
    for document, path, annotations in _templates(workers):
        for name in (HOOK, HELM_HOOK):
            if name in annotations:
                yield Problem.at(document, join_path(path, name), _ARGOCD_HOOK(message))


def marks_on_versions(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each annotation in a template that would make another program change a version."""
    for document, path, annotations in _templates(workers):
        is_worker = document.value.get("kind") in WORKER_KINDS
        for name in annotations:
            # most of these annotations have an effect only on Deployments
            if (is_worker or name == RESOURCE_POLICY) and (why := why_not_of_versions(name)):
                yield Problem.at(document, join_path(path, name), why)


def marks_without_effect(workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A warning for each annotation on a worker's document that has an effect only on rendered objects."""
    for worker in workers:
        annotations = value_at(worker.document.value, "metadata", "annotations")
        for name in annotations if isinstance(annotations, dict) else ():
            remedy = ""
            if name in _OF_ARGOCD:
                remedy = "remove it; with hooks or waves, each sync would wait for the rollout"
            elif str(name).partition("/")[0] in _OF_RESTARTERS:
                remedy = "write it into spec.deploymentAnnotations of a RolloutPolicy"
            if remedy:
                why = "has no effect, because this document itself is not applied"
                path = join_path("metadata.annotations", name)
                yield Problem.at(worker.document, path, NO_EFFECT(f"{why}: {remedy}"))


def requests_in(passthrough: Iterable[Document]) -> Iterator[Problem]:
    """A problem for each rollout request in a manifest, because every sync would repeat the request."""
    for document in passthrough:
        annotations = value_at(document.value, "metadata", "annotations")
        for name in REQUEST_ANNOTATIONS:
            if isinstance(annotations, dict) and name in annotations:
                why = "is a request to a rollout, which must not be in a manifest: remove it"
                yield Problem.at(document, join_path("metadata.annotations", name), _REQUEST(why))


def hooks_beside_jobs(passthrough: Iterable[Document], workers: Iterable[WorkerSpec]) -> Iterator[Problem]:
    """A problem for each hook and sync wave: with them, a sync waits until all rollout Jobs have ended."""
    waits = "a sync with hooks or waves waits until every rollout has ended, which can take hours"
    for document in passthrough:
        hook, hooks = _hooks(document.value)
        if hooks and hooks <= _OF_NO_SYNC[hook]:
            continue
        wave = value_at(document.value, "metadata", "annotations", SYNC_WAVE)
        for name, is_set in ((hook, bool(hooks)), (SYNC_WAVE, wave not in (None, "0"))):
            if is_set:
                message = (
                    f"{waits}: move this document to its own application, or set spec.driver of a"
                    " RolloutPolicy to None or Hook"
                )
                path = join_path("metadata.annotations", name)
                yield Problem.at(document, path, _ARGOCD_HOOK(message))
    for document, path, annotations in _templates(workers):
        if annotations.get(SYNC_WAVE) not in {None, "0"}:
            yield Problem.at(document, join_path(path, SYNC_WAVE), _ARGOCD_HOOK(f"{waits}: remove it"))


def _hooks(value: Any) -> tuple[str, set[str]]:
    """The annotation that makes an object a hook, and the hooks that it names.

    If an object has the annotations of both Argo CD and Helm, Argo CD ignores Helm's
    (https://github.com/argoproj/argo-cd/tree/master/gitops-engine/pkg/sync/hook).
    """
    annotations = value_at(value, "metadata", "annotations")
    if not isinstance(annotations, dict):
        return "", set()
    name = HOOK if HOOK in annotations else HELM_HOOK
    return name, {hook.strip() for hook in str(annotations.get(name, "")).split(",")} - {"", *_NO_HOOK}


def without_hooks_of_helm(passthrough: Iterable[Document]) -> tuple[tuple[Document, ...], list[Problem]]:
    """Omit Helm hooks, with a warning for each, because kubectl and Flux would apply them immediately.

    A `helm test` hook is omitted without a warning, because a deployment does not need it.
    """
    kept: list[Document] = []
    warnings: list[Problem] = []
    for document in passthrough:
        name, hooks = _hooks(document.value)
        if name != HELM_HOOK or not hooks:
            kept.append(document)
        elif not hooks <= _TESTS:
            why = (
                "is left out, because kubectl and Flux would apply this Helm hook immediately"
                f" ({', '.join(sorted(hooks))}): if Argo CD applies this output, set {HOOK} too"
            )
            path = join_path("metadata.annotations", HELM_HOOK)
            warnings.append(Problem.at(document, path, _HELM_HOOK(why)))
    return tuple(kept), warnings


def _templates(workers: Iterable[WorkerSpec]) -> Iterator[tuple[Document, str, Mapping[str, Any]]]:
    """Each document with a template for versions, and the path and value of the template's annotations."""
    for worker in workers:
        templates = [(worker.document, worker.template.content)]
        for document, template in templates + [(item.document, item.template) for item in worker.attached]:
            annotations = value_at(template, "metadata", "annotations")
            is_inside = value_at(document.value, "spec", "template") is None
            path = f"spec.{'deployment.' if is_inside else ''}template.metadata.annotations"
            yield document, path, annotations if isinstance(annotations, dict) else {}
