"""Finds the fields that differ between a new target and the current version, to explain the new build ID."""

from collections.abc import Iterator, Mapping
from typing import Any

from twgen.cluster.server_defaults import compare, without_server_fields
from twgen.model.paths import join_path, value_at
from twgen.model.plan import WorkerVersions
from twgen.model.temporal import VersionStatus
from twgen.versioning.injection import names_found
from twgen.versioning.pod_templates import content_of, injected_names

_LONGEST = 40
"""The maximum length of a value that is shown."""


def differing_fields(worker: WorkerVersions) -> tuple[str, ...]:
    """The paths of the differing fields in the pod template.

    Values are shown only for labels and images, so that no secret can appear. The result is empty if the
    target is current, or if the current version's pod template is unknown.
    """
    current = next((item for item in worker.versions if item.status is VersionStatus.CURRENT), None)
    if not current or current.build_id == worker.spec.build_id:
        return ()
    recorded = current.live.recorded if current.live else current.recorded
    if not recorded:
        return ()
    after = worker.spec.template.content
    manifest = without_server_fields(recorded.manifest, after)
    template, injected = manifest["spec"]["template"], injected_names(manifest)
    if injected is None:
        injected = names_found(template["spec"]) - names_found(after["spec"])
    before = content_of(template, injected)
    difference, old, new = compare(after, before), dict(_shown(before)), dict(_shown(after))
    paths = (*difference.changed, *difference.added)
    values = {path: (old.get(path), new.get(path)) for path in paths}
    return tuple(
        f"{path} ({was} → {is_now})" if was and is_now and was != is_now else path
        for path, (was, is_now) in values.items()
    )


def _shown(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The paths and values of labels and images, without long values and without the images' repositories."""
    values = {
        join_path("metadata.labels", name): value
        for name, value in (value_at(template, "metadata", "labels") or {}).items()
    }
    for field in ("initContainers", "containers"):
        for container in template["spec"].get(field) or ():
            image = container.get("image") or ""
            values[f"spec.{field}[{container['name']}].image"] = image.rpartition("/")[2]
    return ((path, value) for path, value in values.items() if 0 < len(value) <= _LONGEST)
