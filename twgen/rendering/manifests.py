"""All manifests of a render, in the order in which they are printed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from twgen.errors import InvalidInput
from twgen.model.paths import value_at
from twgen.model.plan import VersionAction, WorkerVersions
from twgen.model.policy import Driver, Policy
from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.model.temporal import VersionStatus
from twgen.planning.version_status import IN_ROUTING
from twgen.planning.versions.references import ObjectName
from twgen.rendering.attached import Copies, attached_manifests
from twgen.rendering.deployments import version_deployment
from twgen.rendering.jobs import RolloutJobs, replay_manifests
from twgen.rendering.rollout import rollout_manifests
from twgen.specs.kinds import RENDER_FAILED
from twgen.versioning.names import HOOK, LINK, NOT_PRUNED, SYNC_OPTIONS, SYNC_WAVE, TWGEN_API
from twgen.yaml.writer import encode_documents, write_documents

Manifest = dict[str, Any]

_APPLY_ORDER = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Deployment")
"""A kind that is not named comes after those that are."""
_CONFIG = {"ConfigMap", "Secret"}
_HEALTHY_AT_ONCE = {"Deployment", "PodDisruptionBudget"}
"""Beside a Deployment what Argo CD takes for healthy soon: no sync waits for it in vain."""


def render_manifests(
    workers: Sequence[WorkerVersions],
    passthrough: Sequence[Document],
    identity_of: Callable[[Policy], str],
    jobs: RolloutJobs | None = None,
    temporal_ui: str = "",
) -> list[Manifest]:
    """The passthrough documents in their order, then all that twgen makes, sorted.

    With `temporal_ui`, Argo CD shows links to the workflows of workers and versions. Without `jobs` there are
    no objects of rollouts. Raises InvalidInput if there is nothing to render.
    """
    made: list[Manifest] = []
    copies = Copies()
    for worker in workers:
        copies.take(worker)
        made += _manifests(worker, identity_of, jobs, temporal_ui)
    made.sort(key=_place)
    if not made and not passthrough:
        reasons = "; ".join(filter(None, (worker.not_created for worker in workers)))
        why = f" ({reasons})" if reasons else ""
        raise InvalidInput(f"the documents render to nothing{why}: an empty output would delete everything")
    _refuse_jobs_of(made, passthrough)
    return [*(document.value for document in passthrough), *made]


def config_objects(passthrough: Iterable[Document], namespace: str) -> Iterator[ObjectName]:
    """The ConfigMaps and Secrets that Argo CD prunes when they are gone; `namespace` is the default."""
    for document in passthrough:
        name, own = (value_at(document.value, "metadata", field) for field in ("name", "namespace"))
        options = value_at(document.value, "metadata", "annotations", SYNC_OPTIONS)
        is_config = document.value["kind"] in _CONFIG and document.value["apiVersion"] == "v1"
        if is_config and isinstance(name, str) and NOT_PRUNED not in str(options):
            yield ObjectName(document.value["kind"], str(own or namespace), name)


def _manifests(
    worker: WorkerVersions,
    identity_of: Callable[[Policy], str],
    jobs: RolloutJobs | None,
    temporal_ui: str,
) -> Iterator[Manifest]:
    spec, identity = worker.spec, identity_of(worker.spec.policy)
    has_hook = jobs and jobs.driver is Driver.HOOK and spec.policy.driver is not Driver.NONE
    for manifest in rollout_manifests(worker, identity, jobs) if jobs else ():
        if manifest["kind"] == "ConfigMap":
            manifest["metadata"]["annotations"] |= _link(temporal_ui, spec)
        yield manifest
    for manifest in replay_manifests(worker, jobs) if jobs else ():
        if has_hook:
            # at the same time as the hook, which waits for it only if necessary
            manifest["metadata"]["annotations"][SYNC_WAVE] = "1"
        yield manifest
    at_once = _applied_with_target(worker)
    for version in worker.versions:
        made = [version_deployment(spec, version, identity)] if version.is_rendered else []
        for manifest in made:
            manifest["metadata"]["annotations"] |= _link(temporal_ui, spec, version.build_id)
        made += attached_manifests(spec, version, has_hook=bool(has_hook))
        for manifest in made:
            is_first = version.build_id in at_once and manifest["kind"] in _HEALTHY_AT_ONCE
            if has_hook and not is_first and HOOK not in manifest["metadata"]["annotations"]:
                # the hook starts once the target is healthy, even if others are not
                manifest["metadata"]["annotations"][SYNC_WAVE] = "2"
            yield manifest


def _link(temporal_ui: str, spec: WorkerSpec, build_id: str = "") -> dict[str, str]:
    """The annotation with which Argo CD links an object to the workflows of a worker, or of one version."""
    if not temporal_ui:
        return {}
    query = f'TemporalWorkerDeployment="{spec.worker_deployment}"'
    if build_id:
        query = f'TemporalWorkerDeploymentVersion="{spec.worker_deployment}:{build_id}"'
    path = f"namespaces/{quote(spec.temporal_namespace, safe='')}/workflows?query={quote(query, safe='')}"
    return {LINK: f"Workflows in Temporal|{temporal_ui}/{path}"}


def _applied_with_target(worker: WorkerVersions) -> set[str]:
    """The target, and versions with traffic and without pods: they must not wait for a target that may crash.

    On the way back to a target that was active before, there is no such wait.
    """
    target = next((version for version in worker.versions if version.build_id == worker.spec.build_id), None)
    goes_back = target is not None and target.status in {VersionStatus.DRAINING, VersionStatus.DRAINED}
    without_pods = {
        version.build_id
        for version in worker.versions
        if version.action is VersionAction.CREATE and version.status in IN_ROUTING and not goes_back
    }
    return {worker.spec.build_id, *without_pods}


def _refuse_jobs_of(made: Iterable[Manifest], passthrough: Iterable[Document]) -> None:
    """Of two Jobs with one name Argo CD applies only the last; the names are only known here."""
    names = {manifest["metadata"]["name"] for manifest in made if manifest["kind"] == "Job"}
    for document in passthrough:
        name = value_at(document.value, "metadata", "name")
        if document.value["kind"] == "Job" and isinstance(name, str) and name in names:
            raise InvalidInput(f"{document.source}: Job {name} has the name of a rollout's Job: rename it")


def _place(manifest: Manifest) -> tuple[str, int, str, str]:
    kind, metadata = manifest["kind"], manifest["metadata"]
    order = _APPLY_ORDER.index(kind) if kind in _APPLY_ORDER else len(_APPLY_ORDER)
    return metadata["namespace"], order, kind, metadata["name"]


def failed_render(line: str, lines: int) -> Manifest:
    """The document of a failed render in a pipe: no API server has its kind, and kubectl quotes its name."""
    more = f" (the first of {lines} lines on stderr)" if lines > 1 else ""
    message = line.removeprefix("twgen: ") + more
    return {"apiVersion": TWGEN_API, "kind": RENDER_FAILED, "metadata": {"name": message}, "message": message}


def _as_list(manifests: Sequence[Manifest]) -> bytes:
    # one document: a list cut short can never be a valid shorter one
    encode = json.JSONEncoder(ensure_ascii=False).encode
    items = [encode(manifest).encode() for manifest in manifests]
    return b'{"apiVersion": "v1", "kind": "List", "items": [' + b", ".join(items) + b"]}\n"


def one_document(document: Any, output: str) -> str:
    """One document as `yaml` or `json`."""
    if output == "json":
        return json.dumps(document, ensure_ascii=False) + "\n"
    return write_documents([document])


FORMATS: Mapping[str, Callable[[Sequence[Manifest]], bytes]] = {"yaml": encode_documents, "json": _as_list}
"""How a render is printed: `---`-led YAML documents, or one JSON List."""
