"""Read one spec: its name, its namespace, and its fields under their current names."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.errors import InvalidInput
from twgen.model.forms import LABEL, LONGEST_LABEL, NAME
from twgen.model.paths import join_path, value_at
from twgen.model.problem import (
    CONFLICT,
    DEPRECATED,
    NO_EFFECT,
    REQUIRED,
    UNKNOWN_FIELD,
    Document,
    DocumentPath,
    Finding,
    Problem,
    did_you_mean,
    noun,
    path_in_file,
    quoted,
    shortened,
    wrong_type,
)
from twgen.model.shapes import Findings, fits
from twgen.model.values import dataclass
from twgen.specs import kinds
from twgen.specs.fields import Fields
from twgen.versioning.names import OWN_PREFIX, PAUSED, WHEN, rollout_name

OLD_NAMES = {
    kinds.WORKER: {
        "spec.cutover": "spec.rollout",
        "spec.workerOptions.connection": "spec.workerOptions.connectionRef.name",
        "spec.workerOptions.customBuildID": "spec.workerOptions.unsafeCustomBuildID",
        "spec.workerOptions.buildID": "spec.workerOptions.unsafeCustomBuildID",
    },
    kinds.ATTACHED: {
        "spec.temporalWorkerDeploymentRef": "spec.workerDeploymentRef",
        "spec.workerRef": "spec.workerDeploymentRef",
        "spec.object": "spec.template",
    },
}
"""Old field names. A SpecDocument contains only the new names."""
_NUMBERS = ("replicas", "minReadySeconds", "progressDeadlineSeconds")
_MOVED = {kinds.WORKER: {f"spec.deployment.{name}": f"spec.{name}" for name in ("template", *_NUMBERS)}}
"""Paths that controller 1.13 added, each with the older path of the field.

A SpecDocument contains only the older paths.
"""
STORED_DEFAULTS: Mapping[str, int] = {"minReadySeconds": 0, "progressDeadlineSeconds": 600}
"""Defaults that the controller's CRD adds to the `spec` of each WorkerDeployment, even with `deployment`."""
_ONE_DEPLOYMENT = (
    "several kinds of pods in one version are not supported yet: write spec.deployment for one {0}; use"
    " another WorkerDeployment for each further {0} only if no pinned workflow runs activities or child"
    " workflows there"
)
_OF_DEPLOYMENTS = "set deploymentLabels and deploymentAnnotations in a RolloutPolicy"
_OTHERWISE = {
    kinds.WORKER: {
        "spec.workerGroups": ("spec.template", _ONE_DEPLOYMENT.format("group")),
        "spec.pools": ("spec.template", _ONE_DEPLOYMENT.format("pool")),
        "spec.taskQueue": ("spec.workerOptions.taskQueue", "write spec.workerOptions.taskQueue"),
        "spec.object": (
            "spec.template",
            "write spec.deployment, and a WorkerResourceTemplate for an attached object",
        ),
        "spec.deployment.metadata": ("", f"a Deployment's spec has no metadata; {_OF_DEPLOYMENTS}"),
        "spec.deployment.labels": ("", _OF_DEPLOYMENTS),
        "spec.deployment.annotations": ("", _OF_DEPLOYMENTS),
        "spec.deploymentLabels": ("", _OF_DEPLOYMENTS),
        "spec.deployment.spec": ("spec.deployment.template", "write its fields directly in spec.deployment"),
        "spec.deploymentStrategy": ("", "write spec.deployment.strategy"),
        "spec.strategy": (
            "",
            "write spec.deployment.strategy; spec.rollout.strategy controls how traffic moves",
        ),
        "spec.revisionHistoryLimit": ("", "write spec.deployment.revisionHistoryLimit"),
        "spec.drainingReplicas": ("", "set drainingReplicas in a RolloutPolicy"),
        "spec.sunset.drainingReplicas": ("", "set drainingReplicas in a RolloutPolicy"),
    },
    kinds.CONNECTION: {"spec.caCertSecretRef": ("", "write spec.tls.caCertSecretRef")},
    kinds.CLUSTER_CONNECTION: {"spec.caCertSecretRef": ("", "write spec.tls.caCertSecretRef")},
    kinds.ATTACHED: {"spec.workerGroup": ("", "a version has one Deployment")},
}
"""Fields of other controller releases, and misplaced fields, each with the intended field and the advice.

https://github.com/temporalio/temporal-worker-controller/tree/main/docs"""
_MARKS = {kinds.ATTACHED: {WHEN}}
"""twgen's annotations that have an effect on a document, by the document's kind."""
_OBJECT_META = ("finalizers", "generateName", "ownerReferences", "creationTimestamp", "generation",
                "managedFields", "resourceVersion", "uid")  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """The Kubernetes namespaces that documents can be in. An invalid default raises InvalidInput."""

    default: str = ""
    """The default namespace. If it is empty, every document must specify its namespace."""
    only: bool = False
    """Whether all documents must be in the default namespace."""

    def __post_init__(self) -> None:
        if self.default and not fits(LABEL, self.default):
            raise InvalidInput(
                f"{quoted(self.default)} is not a valid Kubernetes namespace: at most"
                f" {LONGEST_LABEL} lower-case letters, digits and -"
            )


class SpecDocument(NamedTuple):
    """A document of a kind that twgen reads, with its problems in `findings`."""

    document: Document
    kind: kinds.Kind
    namespace: str
    name: str
    fields: Fields
    """The fields of the document's `spec`."""
    findings: Findings
    old_paths: Mapping[str, str]
    """The fields whose path differs in the file: the path here, and the path in the file."""

    @property
    def name_is_certain(self) -> bool:
        """Whether the document's name and namespace are valid, so that other documents can refer to it."""
        return not any(finding.path.startswith("metadata") for finding in self.findings.problems)

    def place(self, path: str) -> DocumentPath:
        """The location of a field in its file."""
        return DocumentPath(self.document, path_in_file(self.document, self._as_written(path)))

    def located(self, findings: Sequence[Finding]) -> Iterator[Problem]:
        """Convert findings to problems, with the paths in the file."""
        for item in shortened(findings, self.findings.most):
            yield Problem.at(self.document, *item._replace(path=self._as_written(item.path)))

    def deprecations(self) -> list[Problem]:
        """Warnings about old field names and an old kind."""
        old_names = OLD_NAMES.get(self.kind.name, {})
        renamed = {old: f"is now {new}" for new, old in self.old_paths.items() if old in old_names}
        if self.kind.written != self.kind.name:
            renamed = {"kind": f"{self.kind.written} is now {self.kind.name}", **renamed}
        return [Problem.at(self.document, path, DEPRECATED(message)) for path, message in renamed.items()]

    def _as_written(self, path: str) -> str:
        for new, old in self.old_paths.items():
            if path == new or path.startswith((f"{new}.", f"{new}[")):
                return old + path[len(new) :]
        return path


def read_spec_document(document: Document, kind: kinds.Kind, rule: NamespaceRule, most: int) -> SpecDocument:
    """Read the parts that all kinds have in common. The caller reads the fields of `spec`.

    At most `most` problems, unknown fields and warnings are reported.
    """
    findings = Findings(most)
    value, old_paths = _in_todays_spelling(kind, document, findings)
    for path, (instead_of, advice) in _OTHERWISE.get(kind.name, {}).items():
        if value_at(value, *path.split(".")) is not None:
            value = _without(value, path.split("."))
            finding = Finding(path, UNKNOWN_FIELD(f"is not read: {advice}"), instead_of=instead_of)
            findings.add_problems([finding])
    top = Fields(value, "", findings)
    metadata = top.mapping("metadata")
    if kind.name == kinds.WORKER:
        written = metadata.raw("name")
        if isinstance(written, str) and "." in written:
            instead = quoted(written.replace(".", "-"))
            metadata.problem("name", f"Temporal rejects dots in the names of workers: write {instead}")
        name = metadata.text("name", LABEL, required=True)
    else:
        name = metadata.text("name", NAME, required=True)
    namespace = ""
    if kind.name != kinds.CLUSTER_CONNECTION:
        namespace = metadata.text("namespace", LABEL)
        if not namespace and not rule.default:
            metadata.problem("namespace", "is missing: write it here, or pass -n NAMESPACE")
        if namespace and rule.only and namespace != rule.default:
            not_own = f"{quoted(namespace)} is not {rule.default!r}, the application's own namespace"
            metadata.problem("namespace", not_own)
        namespace = namespace or rule.default
    _check_marks(metadata, kind, name)
    metadata.close("namespace", *_OBJECT_META)
    if not top.has("spec"):
        top.problem("spec", REQUIRED)
    spec = top.mapping("spec")
    top.close("apiVersion", "kind", "status", elsewhere="spec")
    return SpecDocument(document, kind, namespace, name, spec, findings, old_paths)


def _check_marks(metadata: Fields, kind: kinds.Kind, name: str) -> None:
    """Reject labels and annotations that are not strings, and warn about any that this kind ignores."""
    own = {"labels": set[str](), "annotations": {PAUSED, *_MARKS.get(kind.name, ())}}
    for field, ours in own.items():
        texts = metadata.mapping(field)
        for key in texts.value:
            if texts.has(key) and not isinstance(texts.value[key], str):
                wrong = wrong_type(noun(str), texts.value[key])
                metadata.findings.problem((texts.path, key), wrong)
            if key.startswith(OWN_PREFIX) and key not in ours:
                hint = (
                    did_you_mean(key, ours - {PAUSED})
                    or f": {kind.name} has no such {field.removesuffix('s')}"
                )
                metadata.warning(join_path(field, key), NO_EFFECT(f"has no effect{hint}"))
    if isinstance(metadata.mapping("annotations").value.get(PAUSED), str):
        where = (
            f"ConfigMap {rollout_name(name)} in the cluster"
            if kind.name == kinds.WORKER
            else "the intent of its rollout"
        )
        why = f"has no effect on a spec: run `twgen pause`, or annotate {where}"
        metadata.warning(join_path("annotations", PAUSED), NO_EFFECT(why))


def _in_todays_spelling(
    kind: kinds.Kind, document: Document, findings: Findings
) -> tuple[dict[str, Any], dict[str, str]]:
    """The document with the current names of its fields, and the old path of each renamed field."""
    value: dict[str, Any] = document.value
    old_paths: dict[str, str] = {}
    moved = _MOVED.get(kind.name, {})
    if moved and isinstance(value_at(value, "spec", "deployment"), dict):
        value = _without_overridden_numbers(document, findings)
    for old, new in {**OLD_NAMES.get(kind.name, {}), **moved}.items():
        item = value_at(value, *old.split("."))
        if item is None:
            holder, _, name = old.rpartition(".")
            fields = value_at(value, *holder.split("."))
            if old not in moved and isinstance(fields, dict) and name in fields:
                # null means absent, and a missing required field is reported under its name in the file
                value = _without(value, old.split("."))
                if value_at(value, *new.split(".")) is None:
                    old_paths[new] = old
            continue
        value, (*owner, last) = _without(value, old.split(".")), new.split(".")
        place = value_at(value, *owner)
        if place is None or (isinstance(place, dict) and place.get(last) is None):
            value = _with(value, new.split("."), item)
            old_paths[new] = old
        else:
            written = old_paths.get(new, new)
            message = f"means the same as {written}, which is set too: keep one; the other is at"
            other = DocumentPath(document, path_in_file(document, written))
            findings.problem(old, CONFLICT(message), other)
    return value, old_paths


def _without_overridden_numbers(document: Document, findings: Findings) -> dict[str, Any]:
    """The worker without the older fields that `deployment` overrides under the controller's rules."""
    value: dict[str, Any] = document.value
    spec = Fields(value["spec"], "spec", findings)
    deployment = spec.mapping("deployment")
    if spec.has("template") and not deployment.has("template"):
        wrong = "conflicts with spec.deployment: write spec.deployment.template"
        spec.problem("template", CONFLICT(wrong))
    for name in filter(spec.has, _NUMBERS):
        beside, inside = spec.raw(name), deployment.raw(name)
        value = _without(value, ["spec", name])
        if _as_text(beside) in {_as_text(inside), _as_text(STORED_DEFAULTS.get(name))}:
            continue
        if inside is None:
            why = NO_EFFECT(f"has no effect if spec.deployment is set: write {deployment.at(name)}")
            finding = Finding(f"spec.{name}", why)
        else:
            other = DocumentPath(document, path_in_file(document, f"spec.{name}"))
            message = NO_EFFECT(f"overrides spec.{name}: remove that field, at")
            finding = Finding(deployment.at(name), message, other)
        findings.warnings.append(finding)
    return value


def _as_text(value: Any) -> str:
    """A value's JSON, for comparisons in which 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True)


def _without(value: dict[str, Any], path: list[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: item for name, item in value.items() if name != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}


def _with(value: Any, path: list[str], item: Any) -> dict[str, Any]:
    fields = value if isinstance(value, dict) else {}
    return {**fields, path[0]: _with(fields.get(path[0]), path[1:], item) if len(path) > 1 else item}
