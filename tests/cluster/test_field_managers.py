"""Which annotations a manifest has, and which ones a program or a person has set."""

import json
from typing import Any

import pytest

from twgen.cluster.field_managers import is_from_manifest, replicas_are_external
from twgen.versioning.names import LAST_APPLIED, REQUEST


def metadata(manager: str, operation: str = "Update", last_applied: str | None = None) -> dict[str, Any]:
    """Of an object whose annotation this manager has set."""
    fields = {"f:metadata": {"f:annotations": {".": {}, f"f:{REQUEST}": {}}}}
    return {
        "annotations": {REQUEST: "pressed", **({LAST_APPLIED: last_applied} if last_applied else {})},
        "managedFields": [
            {"manager": "twgen", "operation": "Apply", "fieldsV1": {"f:data": {"f:phase": {}}}},
            {"manager": manager, "operation": operation, "fieldsV1": fields},
        ],
    }


def written(manager: str) -> dict[str, Any]:
    """Of an object that this manager has created or replaced as a whole."""
    found = metadata(manager)
    found["managedFields"][1]["fieldsV1"]["f:data"] = {"f:a": {}}
    return found


def applied(annotations: Any) -> str:
    return json.dumps({"metadata": {"annotations": annotations}})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (metadata("argocd"), False),
        (metadata("argocd-server"), False),
        (metadata("twgen-person"), False),
        (metadata("kubectl-annotate"), False),
        (metadata("argocd-controller"), True),
        (metadata("argocd-controller", "Apply"), True),
        (metadata("kustomize-controller", "Apply"), True),
        (metadata("kubectl-client-side-apply", last_applied=applied({REQUEST: "pressed"})), True),
        (metadata("an-old-kubectl", last_applied=applied({REQUEST: "pressed"})), True),
        (written("velero-server"), True),
        (written("kubectl-create"), True),
        (metadata("twgen-person", last_applied=applied({REQUEST: "another"})), False),
        (metadata("twgen-person", last_applied=applied(None)), False),
        (metadata("twgen-person", last_applied="["), False),
        ({"annotations": {REQUEST: "pressed"}}, False),
    ],
)
def test_annotation_is_a_manifests_if_an_apply_has_given_it_its_value(
    found: dict[str, Any], *, expected: bool
) -> None:
    assert is_from_manifest(found, REQUEST) is expected


def holds(manager: str, operation: str = "Update", subresource: str = "", *more: str) -> dict[str, Any]:
    fields = {"f:spec": {field: {} for field in ("f:replicas", *more)}}
    found = {"manager": manager, "operation": operation, "fieldsV1": fields}
    return {**found, "subresource": subresource} if subresource else found


APPLIES = ("argocd-controller", "kubectl", "kustomize-controller", "helm", "Terraform", "my-ci")


@pytest.mark.parametrize("manager", APPLIES)
def test_replicas_that_a_manifest_applies_are_not_external_whoever_applies_it(manager: str) -> None:
    applied = holds(manager, "Apply", "", "f:template")
    assert not replicas_are_external({"managedFields": [applied]}, 3)
    whole = holds(manager, "Update", "", "f:template")
    assert not replicas_are_external({"managedFields": [whole]}, 3)
    assert replicas_are_external({"managedFields": [applied, holds("twgen", "Apply")]}, 3)
    scaled = holds("kube-controller-manager", "Update", "scale")
    assert replicas_are_external({"managedFields": [applied, scaled]}, 3)


@pytest.mark.parametrize("manager", ["kubectl-edit", "kubectl-patch", "an-autoscaler-of-a-team"])
def test_replicas_that_somebody_sets_alone_are_external(manager: str) -> None:
    assert replicas_are_external({"managedFields": [holds(manager)]}, 3)
