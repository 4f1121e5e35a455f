"""Check manifests that a render printed: their pods and the objects attached to versions."""

from collections.abc import Iterator, Sequence
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.problem import Document, Problem, most_told
from twgen.specs.attached import KINDS
from twgen.specs.validation.walk import refusals
from twgen.versioning.kubernetes_types import POD_TEMPLATE
from twgen.versioning.stored_form import stored_struct

_NEVER_WRITTEN = {"ownerReferences"}
"""Fields of metadata that specs must not have, so the table of types lacks them."""
_WITH_PODS = {GroupKind("apps", "Deployment"), GroupKind("batch", "Job")}


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
