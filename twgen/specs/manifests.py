"""Check manifests of a render, and the Pods of rollouts in an OperatorConfig, as an API server would."""

from collections.abc import Iterator, Sequence
from typing import Any

from twgen.model.operator import GroupKind, Operator
from twgen.model.paths import join_path, value_at
from twgen.model.problem import Document, Finding, Problem, most_told
from twgen.specs.attached import KINDS
from twgen.specs.templates import why_no_image
from twgen.specs.validation.walk import refusals
from twgen.versioning.kubernetes_types import POD_TEMPLATE
from twgen.versioning.names import CONTROLLER_API, INTENT_HASH, MANAGED_BY, ROLLOUT
from twgen.versioning.stored_form import stored_struct

_NEVER_WRITTEN = {"ownerReferences"}
"""Fields of metadata that specs must not have, so the table of types lacks them."""
_WITH_PODS = {GroupKind("apps", "Deployment"), GroupKind("batch", "Job")}
_WHERE = "rollout"
_RESERVED = {CONTROLLER_API.partition("/")[0]}
_OURS = {"labels": {ROLLOUT, *MANAGED_BY}, "annotations": {INTENT_HASH}}


def manifest_problems(documents: Sequence[Document]) -> Iterator[Problem]:
    """The problems that an API server would find in the manifests, as far as twgen knows their fields."""
    most = most_told(len(documents))
    for document in documents:
        kind = document.value["kind"]
        for path, struct in _known_parts(document.value):
            value = value_at(document.value, *path.split("."))
            if path == "metadata" and isinstance(value, dict):
                value = {name: item for name, item in value.items() if name not in _NEVER_WRITTEN}
            stored = stored_struct({} if value is None else value, struct, path, f"a {kind}", most)
            refused = refusals(stored.template, struct, path, most, stored.problems)
            for wrong in (*stored.problems, *stored.unknown, *refused):
                # the rules are those of a Deployment's pods
                if kind != "Job" or wrong.path != "spec.template.spec.restartPolicy":
                    yield Problem.at(document, wrong.path, wrong.message)


def _known_parts(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of a manifest whose types twgen knows, and the name of each type in kubernetes_types."""
    yield "metadata", "ObjectMeta"
    group_kind = GroupKind.of(value)
    if group_kind in _WITH_PODS:
        yield "spec.template", POD_TEMPLATE
    elif (kind := KINDS.get(group_kind)) and (
        struct := kind.structs.get(value["apiVersion"].rpartition("/")[2])
    ):
        yield "spec", struct


def refusals_of_pod(operator: Operator) -> list[Finding]:
    """The problems of the Pods of rollouts, with their paths in the OperatorConfig."""
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
            Finding(join_path(f"{_WHERE}.labels", name), "is reserved for the pods of versions: remove it")
            for name in reserved
        ),
        *(
            Finding(join_path(f"{_WHERE}.{field}", name), "is set by twgen: remove it")
            for field, names in _OURS.items()
            for name in sorted(names & metadata[field].keys())
        ),
    ]
