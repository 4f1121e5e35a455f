"""The pods of a deployed version: what they were applied as, and what somebody changed since by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from twgen.cluster.comparison import Comparison, compare
from twgen.cluster.server_defaults import without_server_fields
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
from twgen.versioning.names import CONNECTION_HASH, INJECTED, RESTARTED_AT, TEMPLATE_HASH
from twgen.versioning.pod_templates import (
    content_of,
    described_template,
    fits_hash,
    fits_injection,
    injected_names,
    marked_template,
)


class Applied(NamedTuple):
    """The pod template that a live Deployment was applied with, as spec or Git tell of the same hash."""

    template: Mapping[str, Any]
    injected: frozenset[str]
    """The names that were injected into it."""
    since: Comparison
    """What is otherwise in the live one."""
    in_order: bool
    """The live one has all that it has in the same order: another one would be other pods."""

    @property
    def is_as_live(self) -> bool:
        """Applying it changes nothing."""
        return self.in_order and not self.since.added and not self.since.changed

    def is_described_by(self, spec: WorkerSpec) -> bool:
        """The live Deployment still is what the spec describes for its target."""
        return self.is_as_live and self.template == described_template(spec)

    def is_remembered(self, remembered: RecordedDeployment) -> bool:
        """The live Deployment still is what Git remembers."""
        return self.is_as_live and self.template == remembered.manifest["spec"]["template"]

    def restored(self, live: LiveDeployment) -> RecordedDeployment:
        """The live Deployment with this template."""
        manifest = without_server_fields(live.recorded.manifest)
        annotations = manifest["metadata"]["annotations"] | {INJECTED: ",".join(sorted(self.injected))}
        metadata, spec = {"annotations": annotations}, {**manifest["spec"], "template": self.template}
        return replace(live.recorded, manifest={"metadata": metadata, "spec": spec})


def applied_template(
    spec: WorkerSpec, live: LiveDeployment, remembered: RecordedDeployment | None
) -> Applied | None:
    """What a live Deployment was applied with; None: neither spec nor Git holds a template of its hash."""
    recorded = live.recorded
    content = _content(spec, live, remembered)
    if content is None:
        return None
    template = recorded.manifest["spec"]["template"]
    own, said = names_found(content["spec"]), recorded.manifest["metadata"].get("annotations") or {}
    if INJECTED in said:
        injected = frozenset(said[INJECTED].split(",")) - own
    else:
        found = names_found(template["spec"]) - own
        possible = (names for names in possible_names(template["spec"]) if names <= found)
        fitting = (
            names for names in possible if connection_fits(template["spec"], names, recorded.connection_hash)
        )
        injected = next(fitting, found)
    pod = with_injection(content["spec"], _injection(spec, live, injected))
    hashes = {CONNECTION_HASH: recorded.connection_hash, TEMPLATE_HASH: recorded.template_hash}
    applied = marked_template(
        spec, live.build_id, content, {name: text for name, text in hashes.items() if text}, pod
    )
    in_order = _order(applied["spec"]) == _order(template["spec"])
    return Applied(applied, injected, compare(applied, template), in_order)


def replaceable_injection(
    spec: WorkerSpec, live: LiveDeployment, applied: Applied | None
) -> frozenset[str] | None:
    """The names that make room for the spec's connection in a live Deployment.

    None: nobody knows what of them is the team's own, or the connection needs a name that the team uses.
    """
    manifest = without_server_fields(live.recorded.manifest)
    injected = applied.injected if applied else injected_names(manifest)
    if injected is None:
        return None
    own = names_found(manifest["spec"]["template"]["spec"]) - injected
    who = Identity(spec.temporal_namespace, spec.worker_deployment, live.build_id)
    wanted = injection(spec.connection, who, generation_of(injected) or spec.policy.environment)
    return None if own & wanted.names else injected


def as_written(spec: WorkerSpec, live: LiveDeployment) -> RecordedDeployment | None:
    """The live Deployment as it was deployed, less what an API server fills in; None: no hash vouches for it.

    Who wrote the target's template is taken to have written the same defaults out before.
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
    """The live pod template is the one that the recorded hash is of; True where none is recorded."""
    if not live.recorded.template_hash:
        return True
    manifest = without_server_fields(live.recorded.manifest)
    template, said = manifest["spec"]["template"], manifest["metadata"]["annotations"].get(INJECTED)
    metadata, pod = template["metadata"], template["spec"]
    names = [frozenset(said.split(","))] if said else possible_names(pod) or [frozenset[str]()]
    annotations = {name: text for name, text in metadata["annotations"].items() if name != RESTARTED_AT}
    template = {**template, "metadata": {**metadata, "annotations": annotations}}
    return any(
        injected <= names_found(pod)
        and injection_found(pod, injected) == injection_found(pod, injected).of_build_id(live.build_id)
        and fits_hash(template, injected)
        for injected in names
    )


def _order(pod: Mapping[str, Any]) -> list[list[Any]]:
    """The names in the lists that are injected into."""
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
    """What was injected: of the spec's connection where the hash says so, else what is there."""
    recorded = live.recorded
    generation = generation_of(injected)
    if generation and recorded.connection_hash == connection_hash(spec.connection):
        who = Identity(
            (NAMESPACE not in live.edited_variables and recorded.temporal_namespace)
            or spec.temporal_namespace,
            (DEPLOYMENT not in live.edited_variables and recorded.worker_deployment)
            or spec.worker_deployment,
            live.build_id,
        )
        return injection(spec.connection, who, generation)
    return injection_found(recorded.manifest["spec"]["template"]["spec"], injected).of_build_id(live.build_id)
