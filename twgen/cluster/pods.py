"""Finds the pod template that was applied for a deployed version, and the manual changes made since then."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from twgen.cluster.server_defaults import Comparison, compare, without_server_fields
from twgen.model.spec import WorkerSpec
from twgen.model.world import LiveDeployment, RecordedDeployment
from twgen.versioning.build_ids import connection_hash
from twgen.versioning.injection import (
    DEPLOYMENT,
    NAMESPACE,
    Identity,
    Injection,
    connection_fits,
    generation_of,
    injection,
    injection_found,
    names_found,
    possible_names,
    with_injection,
)
from twgen.versioning.names import (
    CONNECTION_HASH,
    CREDENTIAL_CONTAINERS,
    INJECTED,
    RESTARTED_AT,
    TEMPLATE_HASH,
)
from twgen.versioning.pod_templates import (
    annotation_of,
    content_of,
    fits_hash,
    fits_injection,
    holders_of,
    injected_names,
    marked_template,
)


class Applied(NamedTuple):
    """The pod template that was applied for a live Deployment, found by its hash in the spec or in Git."""

    template: Mapping[str, Any]
    injected: frozenset[str]
    """The names that twgen injected into the template."""
    since: Comparison
    """The differences between the applied template and the live template."""
    in_order: bool
    """Whether both templates list their items in the same order. A different order would replace the pods."""

    def fits(self, template: Mapping[str, Any]) -> bool:
        """Whether `template` was applied and is unchanged in the cluster, so applying it changes nothing."""
        return self.template == template and self.in_order and not self.since.added and not self.since.changed

    def restored(self, live: LiveDeployment) -> RecordedDeployment:
        """The live Deployment with the applied template."""
        manifest = without_server_fields(live.recorded.manifest)
        annotations = manifest["metadata"]["annotations"] | {INJECTED: ",".join(sorted(self.injected))}
        metadata, spec = {"annotations": annotations}, {**manifest["spec"], "template": self.template}
        return replace(live.recorded, manifest={"metadata": metadata, "spec": spec})


def applied_template(
    spec: WorkerSpec, live: LiveDeployment, remembered: RecordedDeployment | None
) -> Applied | None:
    """The template that was applied for a live Deployment.

    Returns None if neither the spec nor the remembered Deployment has the template hash that the live
    Deployment records.
    """
    recorded = live.recorded
    content = _content(spec, live, remembered)
    if content is None:
        return None
    template = recorded.manifest["spec"]["template"]
    team_names = names_found(content["spec"])
    annotations = recorded.manifest["metadata"].get("annotations") or {}
    if INJECTED in annotations:
        injected = frozenset(annotations[INJECTED].split(",")) - team_names
    else:
        candidates = names_found(template["spec"]) - team_names
        possible = (names for names in possible_names(template["spec"]) if names <= candidates)
        fitting = (
            names for names in possible if connection_fits(template["spec"], names, recorded.connection_hash)
        )
        injected = next(fitting, candidates)
    pod = with_injection(content["spec"], _injection(spec, live, injected))
    own = (CONNECTION_HASH, TEMPLATE_HASH, CREDENTIAL_CONTAINERS)
    marks = {name: text for name in own if (text := annotation_of(template, name))}
    applied = marked_template(spec, live.build_id, content, marks, pod)
    in_order = _order(applied["spec"]) == _order(template["spec"])
    return Applied(applied, injected, compare(applied, template), in_order)


def replaceable_injection(
    spec: WorkerSpec, live: LiveDeployment, applied: Applied | None
) -> frozenset[str] | None:
    """The injected names in a live Deployment that twgen may replace to apply the spec's connection.

    Returns None if it is unknown which names the team set itself, or if the connection needs a name that the
    team uses.
    """
    manifest = without_server_fields(live.recorded.manifest)
    injected = applied.injected if applied else injected_names(manifest)
    if injected is None:
        return None
    team_names = names_found(manifest["spec"]["template"]["spec"]) - injected
    identity = Identity(spec.temporal_namespace, spec.worker_deployment, live.build_id)
    new_injection = injection(spec.connection, identity, generation_of(injected) or spec.policy.environment)
    return None if team_names & new_injection.names else injected


def as_written(spec: WorkerSpec, live: LiveDeployment) -> RecordedDeployment | None:
    """The live Deployment without the API server's defaults, or None if its recorded hash does not match.

    If the target's template contains a default explicitly, earlier templates may have contained it too.
    """
    for written in (None, spec.template.content):
        manifest = without_server_fields(live.recorded.manifest, written)
        template = manifest["spec"]["template"]
        injected = injected_names(manifest)
        if injected is None or not fits_hash(template, injected):
            continue
        if not fits_injection(template, injected, spec.worker_deployment, live.build_id):
            return None
        described = content_of(template, frozenset())["metadata"].get("annotations") or {}
        annotations = {**described, INJECTED: ",".join(sorted(injected))}
        return replace(
            live.recorded, manifest={"metadata": {"annotations": annotations}, "spec": manifest["spec"]}
        )
    return None


def fits_its_hash(live: LiveDeployment) -> bool:
    """Whether the live pod template matches the recorded hash. Returns True if no hash is recorded."""
    if not live.recorded.template_hash:
        return True
    manifest = without_server_fields(live.recorded.manifest)
    template, recorded = manifest["spec"]["template"], manifest["metadata"]["annotations"].get(INJECTED)
    metadata, pod = template["metadata"], template["spec"]
    names = [frozenset(recorded.split(","))] if recorded else possible_names(pod) or [frozenset[str]()]
    annotations = {name: text for name, text in metadata["annotations"].items() if name != RESTARTED_AT}
    template = {**template, "metadata": {**metadata, "annotations": annotations}}
    return any(
        injected <= names_found(pod)
        and injection_found(pod, injected) == injection_found(pod, injected).of_build_id(live.build_id)
        and fits_hash(template, injected)
        for injected in names
    )


def _order(pod: Mapping[str, Any]) -> list[list[Any]]:
    """The names of the items, in order, of each list that injection changes."""
    owners = [(pod, ("volumes",)), *((item, ("env", "volumeMounts")) for item in pod.get("containers") or ())]
    return [
        [item.get("name") for item in owner.get(field) or ()] for owner, fields in owners for field in fields
    ]


def _content(
    spec: WorkerSpec, live: LiveDeployment, remembered: RecordedDeployment | None
) -> Mapping[str, Any] | None:
    recorded = live.recorded.template_hash
    if recorded and live.build_id == spec.build_id and recorded == spec.template.hash:
        return spec.template.content
    if recorded and remembered and recorded == remembered.template_hash:
        injected = injected_names(remembered.manifest)
        if injected is not None:
            return content_of(remembered.manifest["spec"]["template"], injected)
    return None


def _injection(spec: WorkerSpec, live: LiveDeployment, injected: frozenset[str]) -> Injection:
    """The injection for the spec's connection if the template records that connection's hash.

    Otherwise, returns the injection that is found in the template.
    """
    recorded = live.recorded
    template = recorded.manifest["spec"]["template"]
    holders = holders_of(template)
    generation = generation_of(injected)
    if generation and recorded.connection_hash == connection_hash(spec.connection):
        identity = Identity(
            (NAMESPACE not in live.edited_variables and recorded.temporal_namespace)
            or spec.temporal_namespace,
            (DEPLOYMENT not in live.edited_variables and recorded.worker_deployment)
            or spec.worker_deployment,
            live.build_id,
        )
        return injection(spec.connection, identity, generation, holders)
    found = injection_found(template["spec"], injected)
    return replace(found.of_build_id(live.build_id), holders=holders)
