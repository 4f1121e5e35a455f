"""The namespaces that `-n` fills in, of documents that are passed through."""

from typing import Any

from twgen.model.problem import Document
from twgen.specs.namespaces import with_namespaces


def filled(*values: Any) -> tuple[list[Any], list[str]]:
    """The namespace of each document, and the warnings."""
    found, warnings = with_namespaces([Document("-", at, value) for at, value in enumerate(values)], "shop")
    return [item.value.get("metadata", {}).get("namespace") for item in found], [w.message for w in warnings]


def named(api_version: str, kind: str, **metadata: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", **metadata}}


def test_object_of_a_kind_that_has_a_namespace_gets_it() -> None:
    assert filled(
        named("v1", "ConfigMap"),
        named("keda.sh/v1alpha1", "TriggerAuthentication"),
        named("v1", "Secret", namespace="other"),
        {"apiVersion": "v1", "kind": "Service"},
    ) == (["shop", "shop", "other", "shop"], [])


def test_cluster_scoped_object_gets_none() -> None:
    assert filled(
        named("v1", "Namespace"),
        named("rbac.authorization.k8s.io/v1", "ClusterRole"),
        named("keda.sh/v1alpha1", "ClusterTriggerAuthentication"),
        named("cert-manager.io/v1", "ClusterIssuer"),
        named("constraints.gatekeeper.sh/v1beta1", "RequiredLabels"),
    ) == ([None] * 5, [])


def test_kind_that_is_not_known_is_named_once() -> None:
    gadget = named("example.com/v1", "Gadget")
    own = named("example.com/v1", "Gadget", namespace="shop")
    warning = (
        "example.com/Gadget may be cluster-scoped, so -n does not set the namespace of its objects:"
        " write metadata.namespace"
    )
    assert filled(gadget, gadget, own) == ([None, None, "shop"], [warning])


def test_definition_among_the_documents_says_whether_its_kind_has_a_namespace() -> None:
    def definition(kind: str, scope: str) -> dict[str, Any]:
        value = named("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        return value | {"spec": {"group": "example.com", "names": {"kind": kind}, "scope": scope}}

    assert filled(
        definition("Gadget", "Namespaced"),
        definition("Region", "Cluster"),
        named("example.com/v1", "Gadget"),
        named("example.com/v1", "Region"),
    ) == ([None, None, "shop", None], [])


def test_object_that_names_its_namespace_is_kept_at_any_place_of_the_documents() -> None:
    own, gadget = named("v1", "ConfigMap", namespace="own"), named("example.com/v1", "Gadget")
    names_no_namespace = "example.com/Gadget may be cluster-scoped, so -n does not set the namespace"
    assert filled(own, own) == (["own", "own"], [])
    for values, namespaces in (((own, gadget), ["own", None]), ((gadget, own), [None, "own"])):
        found, [warning] = filled(*values)
        assert found == namespaces
        assert warning.startswith(names_no_namespace)
