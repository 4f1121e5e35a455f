"""Documents of one worker, and what is made of them."""

from collections.abc import Sequence
from typing import Any

from twgen.model.problem import Document, Problem
from twgen.specs.parse import Specs, parse_specs
from twgen.specs.spec_document import NamespaceRule

CONNECTION = {
    "apiVersion": "temporal.io/v1alpha1",
    "kind": "Connection",
    "metadata": {"name": "temporal", "namespace": "shop"},
    "spec": {"hostPort": "temporal.example.com:7233"},
}


def worker(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerDeployment",
        "metadata": {"name": "payments", "namespace": "shop"},
        "spec": {
            "workerOptions": {"connectionRef": {"name": "temporal"}, "temporalNamespace": "default"},
            "rollout": {"strategy": "AllAtOnce"},
            "template": {"spec": {"containers": [{"name": "w", "image": "payments:v3"}]}},
            **changes,
        },
    }


def budget(**spec: Any) -> dict[str, Any]:
    limits = {"maxUnavailable": 1, "selector": {"matchLabels": {}}}
    whole = attach({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": limits}, "budget")
    return whole | {"spec": whole["spec"] | spec}


def attach(template: dict[str, Any], name: str = "scaler") -> dict[str, Any]:
    return {
        "apiVersion": "temporal.io/v1alpha1",
        "kind": "WorkerResourceTemplate",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"workerDeploymentRef": {"name": "payments"}, "template": template},
    }


def told(problems: Sequence[Problem]) -> list[str]:
    return [f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems]


def parsed(*values: Any, rule: NamespaceRule | None = None) -> Specs:
    documents = [Document("f.yaml", index, value) for index, value in enumerate(values)]
    return parse_specs(documents, rule or NamespaceRule())


def policy(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "twgen.io/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "policy", "namespace": "shop"},
        "spec": spec,
    }


def scaler(name: str, kind: str, api: str, **spec: Any) -> dict[str, Any]:
    template = {"apiVersion": api, "kind": kind, "spec": {"scaleTargetRef": {}, **spec}}
    return {**budget(template=template), "metadata": {"name": name, "namespace": "shop"}}
