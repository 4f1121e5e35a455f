"""The rules for a worker's pods, in addition to the types of their fields."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from twgen.model.forms import FILLED
from twgen.model.paths import join_path, parse_path
from twgen.model.problem import MISSING_FIELD, NO_EFFECT, NOT_RENDERED, SET_BY_TWGEN, Finding, Rule, quoted
from twgen.model.shapes import UNFILLED
from twgen.model.spec import WorkerSpec
from twgen.specs.attached import refusals_of_version
from twgen.specs.fields import Fields
from twgen.specs.pod_warnings import warn_of_hidden_characters, warnings_beside_others, warnings_of_pod
from twgen.specs.together import unmeasured
from twgen.specs.validation.walk import refusals
from twgen.versioning.build_ids import image_tag, is_image
from twgen.versioning.injection import Identity, Injection, injection, is_ever_injected
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    CONNECTION_HASH,
    DEPLOYMENT_NAME_LABEL,
    OWN_PREFIX,
    PAUSED,
    TEMPLATE_HASH,
    placeholders,
    rollout_name,
    versioned_deployment_name,
)
from twgen.versioning.stored_form import POD_TEMPLATE

_MUTABLE_TAGS = {"latest", "main", "master", "dev", "local", "edge", "nightly", "stable"}
"""Tags that usually move to each new image."""
_PLACEHOLDER = re.compile(
    r"(your[-_])?(image|app|docker|git|release|build|version|new)?[-_]?(tag|placeholder|sha|version)"
    r"|(replace|change|fill|set)[-_]?(me|this|in|with[-_].*|by[-_].*)|todo|fixme|tbd|x{3,}"
    r"|undefined|null|none|__\w+__|([a-z]+-)?(0{40}|0{64})"
    # a variable that CI sets, such as CI_COMMIT_SHA
    r"|(?-i:([A-Z]+_)+(COMMIT|HASH|ID|NUMBER|REF|SHA|TAG|VERSION))",
    re.IGNORECASE,
)
"""Placeholder tags that a program should have replaced."""
_REFERENCE = re.compile(r"\$\$|\$\(([^)]+)\)")
_OF_A_SERVICE = re.compile("_SERVICE_HOST$|_(SERVICE_)?PORT(_|$)")
"""The name suffixes of the variables that a pod gets for each Service in its namespace."""
CHART = "helm.sh/chart"
"""The label that contains a Helm chart's name and version."""
_OF_CHART = re.compile(r".+-v?\d+\.\d+\.\d+.*")
"""A chart's name and version, as in the `chart` label of old Helm charts."""
Values = Mapping[str, str | None]
"""Variables' values by name. None means that only the cluster knows the value."""
_CHART_LABEL = Rule("chart-label", "Each Helm chart release changes this label, and with it the build ID.")
_REFERENCE_LEFT = Rule("unfilled-reference", "Kubernetes does not replace a reference to a variable.")
MOVABLE_TAG = Rule("movable-tag", "An image tag can move to another image, but the build ID stays the same.")
_IMAGE = Rule("image", "A node cannot pull this image.")


def check_template(spec: Fields, worker: WorkerSpec, problems: Sequence[Finding]) -> None:
    """Note problems and warnings about the worker's pods, including errors that an API server would report.

    `problems` were found when the template was converted to its stored form. Their paths are not checked
    again.
    """
    template = worker.template.content
    if not template:
        return
    path, pod = spec.mapping("template").mapping("spec"), template.get("spec") or {}
    who = Identity(worker.temporal_namespace, worker.worker_deployment, worker.build_id)
    injected = injection(worker.connection, who, worker.policy.environment)
    _refuse_injected(path, pod, injected)
    _check_marks(spec, worker)
    # an init container can also mount the injected volume
    own = pod.get("volumes") or []
    names = {volume.get("name") for _, volume in _items(pod, "volumes")}
    volumes = [*own, *(volume for volume in injected.volumes if volume["name"] not in names)]
    whole = {**template, "spec": {**pod, "volumes": volumes}}
    for field in ("initContainers", "containers"):
        for index, container in _items(pod, field):
            check_image(path, f"{field}[{index}].image", container.get("image") or "")
    refused = list(refusals(whole, POD_TEMPLATE, spec.at("template"), spec.findings.most, problems))
    spec.refused(
        wrong._replace(message=MISSING_FIELD("must not be empty")) if _is_empty(spec, wrong) else wrong
        for wrong in refused
    )
    # skip warnings if there are errors, because an error can cause a warning
    warnings = chain(warnings_of_pod(pod), warnings_beside_others(worker))
    for place, warning in () if refused or problems else warnings:
        path.warning(place, warning)
    _warn_of_references(path, pod, injected)
    warn_of_hidden_characters(spec.mapping("template"))
    # an attached template's copy can be invalid because of this version's names
    deployment = versioned_deployment_name(worker.name, worker.build_id)
    fill = placeholders(deployment, worker.build_id, worker.temporal_namespace, worker.worker_deployment)
    for resource in worker.attached if worker.build_id else ():
        for finding in refusals_of_version(resource.template, fill):
            wrong = f"its spec.template.{finding.path} {finding.message}"
            spec.refused([Finding(spec.path, f"{resource.name} cannot be attached: {wrong}")])
        for place, warning in unmeasured(resource, pod) if resource.autoscales else ():
            path.warning(place, warning)
    _warn_of_moving_tag(path, pod, worker)


def _check_marks(spec: Fields, worker: WorkerSpec) -> None:
    """Reject labels and annotations that twgen sets for each version, and warn about some others."""
    metadata = worker.template.content.get("metadata") or {}
    for field, ours in (
        ("labels", (DEPLOYMENT_NAME_LABEL, BUILD_ID_LABEL)),
        ("annotations", (TEMPLATE_HASH, CONNECTION_HASH)),
    ):
        for name in metadata.get(field) or {}:
            if name in ours or (name.startswith(OWN_PREFIX) and name != PAUSED):
                place = join_path(f"metadata.{field}", name)
                how = "for each version" if name in ours else "by twgen"
                spec.mapping("template").problem(place, SET_BY_TWGEN(f"is set {how}: remove it"))
    for name, value in (metadata.get("labels") or {}).items():
        if name == CHART or (name == "chart" and _OF_CHART.fullmatch(str(value))):
            why = "changes with each chart release, so each release makes a new version of the same code"
            place = join_path("metadata.labels", name)
            spec.mapping("template").warning(place, _CHART_LABEL(f"{why}: leave it out"))
    if PAUSED in (metadata.get("annotations") or {}):
        where = f"run `twgen pause`, or annotate ConfigMap {rollout_name(worker.name)} in the cluster"
        place = join_path("metadata.annotations", PAUSED)
        spec.mapping("template").warning(place, NO_EFFECT(f"has no effect on pods: {where}"))


def _warn_of_references(path: Fields, pod: Mapping[str, Any], injected: Injection) -> None:
    """Note each `$(NAME)` that Kubernetes leaves unchanged because no earlier variable has this name."""
    for field, added in (("initContainers", frozenset[str]()), ("containers", injected.names)):
        for index, container in _items(pod, field):
            for place, name, is_late in unfilled_references(container, added):
                why = "no variable has this name"
                if is_late:
                    why = f"{f'twgen sets {name}' if name in added else f'{name} is set'} after it"
                elif name in injected.names:
                    why = f"twgen does not set {name} in init containers"
                warning = f"$({name}) is not replaced: {why}, so the program gets this text unchanged"
                path.warning(f"{field}[{index}].{place}", _REFERENCE_LEFT(warning))


def _warn_of_moving_tag(path: Fields, pod: Mapping[str, Any], worker: WorkerSpec) -> None:
    containers = pod.get("containers") or [{}]
    image = (containers[0] or {}).get("image") or ""
    tag = image_tag(image)
    if image and re.search(FILLED, image) and tag_can_move(image) and not worker.has_custom_build_id:
        why = f"the tag {tag!r} can move" if tag else "there is no tag"
        warning = f"{why}: a changed image keeps its build ID, so nothing would be deployed"
        path.warning("containers[0].image", MOVABLE_TAG(warning))


def _refuse_injected(path: Fields, pod: Mapping[str, Any], injected: Injection) -> None:
    """Reject variables, volumes and mounts that twgen itself adds to the pods."""
    folders = {mount["mountPath"]: mount["name"] for mount in injected.mounts}
    for index, container in _items(pod, "containers"):
        for place, variable in _items(container, "env"):
            if variable.get("name") in injected.names:
                name = f"containers[{index}].env[{place}].name"
                path.problem(name, SET_BY_TWGEN(f"twgen sets {variable['name']}: remove it"))
        for place, mount in _items(container, "volumeMounts"):
            folder = folders.get((mount.get("mountPath") or "").rstrip("/"))
            if folder or mount.get("name") in injected.names:
                name = f"containers[{index}].volumeMounts[{place}]"
                path.problem(name, SET_BY_TWGEN(f"twgen mounts {folder or mount['name']}: remove it"))
    for place, volume in _items(pod, "volumes"):
        if volume.get("name") in injected.names:
            wrong = SET_BY_TWGEN(f"twgen adds {volume['name']}: remove it")
            path.problem(f"volumes[{place}].name", wrong)


def check_image(fields: Fields, place: str, image: str) -> bool:
    """Note why no node can pull the image. Returns True if nodes may be able to, or if there is no image."""
    if wrong := why_no_image(image):
        fields.problem(place, wrong)
        return False
    if image and not is_image(image):
        why = "is not an image that a node can pull, such as registry.example.com/payments:v1"
        fields.warning(place, _IMAGE(f"{quoted(image)} {why}"))
        return False
    # a node ignores the tag if there is a digest
    if (tag := image_tag(image)) and "@" not in image and _PLACEHOLDER.fullmatch(tag):
        why = f"the tag {quoted(tag)} is a placeholder: the file was not rendered"
        fields.warning(place, NOT_RENDERED(why))
        return False
    if image.endswith(f"@sha256:{'0' * 64}"):
        fields.warning(place, NOT_RENDERED("the digest is a placeholder: the file was not rendered"))
        return False
    return True


def tag_can_move(image: str) -> bool:
    """Whether the reference can mean a different image later, as it has neither a digest nor a fixed tag."""
    return "@" not in image and image_tag(image) in {"", *_MUTABLE_TAGS}


def why_no_image(image: str) -> str:
    """Why no node can find the image, although an API server accepts it; empty if a node might find it."""
    if not re.search(FILLED, image):
        return NOT_RENDERED(f"{quoted(image)} {UNFILLED}")
    if image != image.strip() or not (image.isascii() and image.isprintable()):
        wrong = "is not an image: use only letters, digits and - _ . / : @"
    elif not is_image(image) and is_image(image.lower()):
        wrong = "is not an image: only its registry and its tag can have capital letters"
    else:
        return ""
    return f"{quoted(image)} {wrong}"


def _items(holder: Mapping[str, Any], field: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The non-null items of a list, each with its index."""
    for index, item in enumerate(holder.get(field) or ()):
        if item is not None:
            yield index, item


def _is_empty(spec: Fields, wrong: Finding) -> bool:
    """Whether a field that is reported as missing is only empty, because Go's encoder omits empty fields."""
    value: Any = spec.value
    with suppress(LookupError, TypeError):
        for step in parse_path(wrong.path.removeprefix(f"{spec.path}.")):
            value = value[step]
        return wrong.message == "is required" and value in ("", [], {})
    return False


def known_value(variable: Mapping[str, Any], before: Values) -> str | None:
    """A variable's value in its container, or None if unknown.

    `before` has the variables listed before it.
    """
    text = variable.get("value") or ""
    if variable.get("valueFrom") or not isinstance(text, str):
        return None
    if any(before.get(name) is None for name in references(text)):
        return None
    return _REFERENCE.sub(lambda reference: (before[reference[1]] or "") if reference[1] else "$", text)


def references(text: str) -> list[str]:
    """The names of the variables that a text refers to."""
    return [reference[1] for reference in _REFERENCE.finditer(text) if reference[1]]


def with_references(text: str, fill: Callable[[str], str | None]) -> str:
    """Replace each reference by the value that `fill` returns for its name, unless `fill` returns None."""

    def filled(match: re.Match[str]) -> str:
        value = fill(match[1]) if match[1] else None
        return match[0] if value is None else value.replace("$", "$$")

    return _REFERENCE.sub(filled, text)


def unfilled_references(
    container: Mapping[str, Any], added: Collection[str]
) -> Iterator[tuple[str, str, bool]]:
    """Each reference that is not replaced: its path, its name, and whether a later variable has that name.

    `added` are the variables that twgen adds after the container's own. An unknown name is reported only if
    it looks like a Temporal variable, because in a shell, `$(name)` runs a command. With `envFrom`, nothing
    is reported, because the names of its variables are unknown.
    """
    variables = [variable or {} for variable in container.get("env") or ()]
    names = [variable.get("name") for variable in variables]
    texts = [(f"env[{index}].value", item.get("value") or "") for index, item in enumerate(variables)]
    for index, (path, text) in enumerate(() if container.get("envFrom") else texts):
        for name in references(text):
            if name not in names[: index + 1] and (name in added or name in names):
                yield path, name, True
    for field in ("command", "args"):
        texts += [(f"{field}[{index}]", text or "") for index, text in enumerate(container.get(field) or ())]
    for path, text in () if container.get("envFrom") else texts:
        for name in references(text):
            is_misspelt = name.startswith("TEMPORAL_") and not _OF_A_SERVICE.search(name)
            if name not in names and name not in added and (is_misspelt or is_ever_injected(name)):
                yield path, name, False
