"""Reading the live Deployments of workers: one LIST for each namespace."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twgen.clients.kubernetes import KubernetesClient
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment, WorkerWorld
from twgen.records.deployments import live_deployments
from twgen.versioning.names import BUILD_ID_LABEL, DEPLOYMENT_NAME_LABEL, selector_labels

LiveByWorker = Mapping[str, tuple[LiveDeployment, ...]]
"""Live Deployments by what Temporal calls the worker; one without any has an empty tuple."""


def read_deployments(
    specs: Sequence[WorkerSpec], client: KubernetesClient
) -> tuple[LiveByWorker, list[WorkerWorld]]:
    """The live Deployments of the workers, and the workers of the same namespaces that no spec names.

    Raises StateUnavailable or OutOfTime when one namespace cannot be read.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for namespace in sorted({spec.namespace for spec in specs}):
        for manifest in client.deployments(namespace, BUILD_ID_LABEL):
            found[namespace, manifest["metadata"]["labels"].get(DEPLOYMENT_NAME_LABEL, "")].append(manifest)
    named = {spec.worker_deployment: tuple(live_deployments(found.pop(_place(spec), ()))) for spec in specs}
    return named, [stray for manifests in found.values() for stray in _strays(manifests)]


def _place(spec: WorkerSpec) -> tuple[str, str]:
    return spec.namespace, selector_labels(spec.name, spec.build_id)[DEPLOYMENT_NAME_LABEL]


def _strays(manifests: Iterable[Mapping[str, Any]]) -> list[WorkerWorld]:
    by_worker: dict[tuple[str, str], list[LiveDeployment]] = defaultdict(list)
    for live in live_deployments(manifests):
        by_worker[live.recorded.worker_deployment, live.recorded.temporal_namespace].append(live)
    return [
        WorkerWorld(name, temporal_namespace, temporal_was_read=False, deployments=tuple(deployments))
        for (name, temporal_namespace), deployments in by_worker.items()
        if name
    ]
