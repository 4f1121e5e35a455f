"""Reading the operator's configuration."""

from collections.abc import Iterator
from typing import Any

from twgen.model.operator import ClusterOfApplications, GroupKind, Operator, ProfileGrant
from twgen.model.problem import Finding
from twgen.specs.attached import NEVER_ATTACHED
from twgen.specs.fields import Diagnostics, Fields
from twgen.specs.kinds import TWGEN_API

KIND = "OperatorConfig"


def parse_operator(document: Any) -> tuple[Operator, list[Finding]]:
    """The Operator of a document, and all that is wrong with it, unknown fields included."""
    findings = Diagnostics()
    top = Fields(document, "", findings)
    if (top.raw("apiVersion"), top.raw("kind")) != (TWGEN_API, KIND):
        top.problem("", f"must be {KIND} of {TWGEN_API}")
    temporal, attached = top.mapping("temporal"), top.mapping("attached")
    operator = Operator(
        instance=top.text("instance"),
        temporal_config_file=temporal.text("configFile"),
        grants=tuple(_grants(temporal)),
        clusters=tuple(_clusters(top)),
        attached_kinds=tuple(_attached_kinds(attached)),
    )
    temporal.close()
    attached.close()
    top.close("metadata")
    return operator, [*findings.problems, *findings.unknown]


def _grants(temporal: Fields) -> Iterator[ProfileGrant]:
    for item in temporal.mappings("profiles"):
        yield ProfileGrant(item.text("name", required=True), item.texts("projects"))
        item.close()


def _clusters(top: Fields) -> Iterator[ClusterOfApplications]:
    for item in top.mappings("clusters"):
        kubeconfig, in_cluster = item.text("kubeconfig"), item.raw("inCluster")
        if in_cluster not in {None, True, False}:
            item.problem("inCluster", "must be true or false")
        if bool(kubeconfig) is bool(in_cluster):
            item.problem("", "needs kubeconfig or `inCluster: true`, and not both")
        yield ClusterOfApplications(
            project=item.text("project", required=True),
            application=item.text("application", "*"),
            kubeconfig=kubeconfig,
            context=item.text("context", required=bool(kubeconfig)),
        )
        item.close()


def _attached_kinds(attached: Fields) -> Iterator[GroupKind]:
    for item in attached.mappings("kinds"):
        kind = item.text("kind", required=True)
        if kind in NEVER_ATTACHED:
            item.problem("kind", f"{kind} can never be attached to a version: remove it")
        yield GroupKind(item.text("group"), kind)
        item.close()
