"""Build a version's pod template from the spec, and find the spec's part of an existing pod template."""

from collections.abc import Mapping
from typing import Any

from twgen.model.paths import value_at
from twgen.model.spec import WorkerSpec
from twgen.versioning.build_ids import connection_hash, pod_template_hash
from twgen.versioning.injection import (
    Identity,
    Injection,
    connection_fits,
    generation_of,
    injection,
    is_injected_throughout,
    names_found,
    possible_names,
    with_injection,
)
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    CONNECTION_HASH,
    CREDENTIAL_CONTAINERS,
    DEPLOYMENT_NAME_LABEL,
    INJECTED,
    TEMPLATE_HASH,
    selector_labels,
)
from twgen.versioning.stored_form import stored_template, template_json

Template = Mapping[str, Any]


def described_template(spec: WorkerSpec) -> dict[str, Any]:
    """The pod template of the spec's target, with everything that the controller would add."""
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, spec.build_id)
    holders = holders_wanted(spec)
    new = injection(spec.connection, identity, spec.policy.environment, holders)
    pod = with_injection(spec.template.content["spec"], new)
    hashes = {CONNECTION_HASH: connection_hash(spec.connection), TEMPLATE_HASH: spec.template.hash}
    if holders is not None:
        hashes[CREDENTIAL_CONTAINERS] = ",".join(sorted(holders))
    return marked_template(spec, spec.build_id, spec.template.content, hashes, pod)


def holders_wanted(spec: WorkerSpec) -> frozenset[str] | None:
    """The only containers of the target that get credentials from its policy; None if all of them do."""
    wanted = spec.policy.credential_containers
    if wanted is None:
        return None
    containers = spec.template.content["spec"]["containers"]
    return frozenset(container["name"] for container in containers).intersection(wanted)


def holders_of(template: Template) -> frozenset[str] | None:
    """The only containers of a recorded template that get credentials; None if all containers get them."""
    recorded = value_at(template, "metadata", "annotations", CREDENTIAL_CONTAINERS)
    return None if recorded is None else frozenset(recorded.split(","))


def pod_labels(content: Template, worker: str, build_id: str) -> dict[str, str]:
    """The labels of a version's pods: the template's labels, and the labels that select the version."""
    return (value_at(content, "metadata", "labels") or {}) | selector_labels(worker, build_id)


def marked_template(
    spec: WorkerSpec, build_id: str, content: Template, annotations: dict[str, str], pod: Mapping[str, Any]
) -> dict[str, Any]:
    """A pod template with this content and pod, with the version's labels and these annotations added."""
    metadata = content.get("metadata") or {}
    return {
        "metadata": {
            "labels": pod_labels(content, spec.name, build_id),
            "annotations": (metadata.get("annotations") or {}) | annotations,
        },
        "spec": pod,
    }


def reconnected(
    spec: WorkerSpec, build_id: str, manifest: Mapping[str, Any], replaced: frozenset[str]
) -> dict[str, Any]:
    """The recorded Deployment with the spec's connection instead of the injected names in `replaced`."""
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, build_id)
    # keep the set of variable names, because the image's code may read only this set
    template, metadata = manifest["spec"]["template"], manifest["spec"]["template"]["metadata"]
    generation = generation_of(replaced) or spec.policy.environment
    new = injection(spec.connection, identity, generation, holders_of(template))
    hashes = {**metadata["annotations"], CONNECTION_HASH: connection_hash(spec.connection)}
    pod = with_injection(template["spec"], new, replaced)
    connected = {"metadata": {**metadata, "annotations": hashes}, "spec": pod}
    marks = {**(manifest["metadata"].get("annotations") or {}), INJECTED: ",".join(sorted(new.names))}
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "annotations": marks},
        "spec": {**manifest["spec"], "template": connected},
    }


def content_of(template: Template, injected: frozenset[str]) -> dict[str, Any]:
    """The part of a version's pod template that comes from the spec, without the `injected` names."""
    metadata = dict(template.get("metadata") or {})
    for field, own in (
        ("labels", {DEPLOYMENT_NAME_LABEL, BUILD_ID_LABEL}),
        ("annotations", {TEMPLATE_HASH, CONNECTION_HASH, CREDENTIAL_CONTAINERS}),
    ):
        others = {name: value for name, value in (metadata.pop(field, None) or {}).items() if name not in own}
        if others:
            metadata[field] = others
    return {"metadata": metadata, "spec": with_injection(template["spec"], Injection(()), injected)}


def injected_names(manifest: Mapping[str, Any]) -> frozenset[str] | None:
    """The names that were injected into a Deployment's pods, found with its annotation or its hash.

    None if neither identifies the names, because the team itself may have written these variables. `manifest`
    must not contain defaults that an API server has added.
    """
    template = manifest["spec"]["template"]
    names = value_at(manifest, "metadata", "annotations", INJECTED)
    if names is not None:
        return frozenset(names.split(",")) & names_found(template["spec"])
    recorded = annotation_of(template, CONNECTION_HASH)
    possible = (
        names
        for names in possible_names(template["spec"])
        if connection_fits(template["spec"], names, recorded)
    )
    return next((names for names in possible if fits_hash(template, names)), None)


def fits_hash(template: Template, injected: frozenset[str]) -> bool:
    """Whether the recorded hash matches the template without these injected names."""
    stored = stored_template(content_of(template, injected), "")
    recorded = annotation_of(template, TEMPLATE_HASH)
    return not stored.problems and pod_template_hash(template_json(stored.value)) == recorded


def fits_injection(
    template: Template, injected: frozenset[str], worker_deployment: str, build_id: str
) -> bool:
    """Whether these names have the recorded connection's and this version's values in every container.

    The recorded hash covers the address, the TLS server name and the Secret, but not the Temporal namespace.
    """
    pod, recorded = template["spec"], annotation_of(template, CONNECTION_HASH)
    is_whole = is_injected_throughout(pod, injected, worker_deployment, build_id, holders_of(template))
    return is_whole and bool(recorded) and connection_fits(pod, injected, recorded)


def annotation_of(template: Template, name: str) -> str:
    """The value of a pod template's annotation; empty if there is none."""
    return value_at(template, "metadata", "annotations", name) or ""
