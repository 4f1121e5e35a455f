"""Distinguish documents for twgen from files of Helm, kustomize and other programs."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

from twgen.model.paths import value_at
from twgen.model.problem import (
    MISSING_FIELD,
    Document,
    Finding,
    did_you_mean,
    noun,
    path_in_file,
    quoted,
    wrong_type,
)
from twgen.versioning.names import CONTROLLER_API, MANAGED_BY, ROLLOUT, TWGEN_API

WORKER = "WorkerDeployment"
CONNECTION = "Connection"
CLUSTER_CONNECTION = "ClusterConnection"
ATTACHED = "WorkerResourceTemplate"
POLICY = "RolloutPolicy"
SNAPSHOT = "Snapshot"
LEDGER = "Ledger"
PLAN = "Plan"
TIMELINE = "Timeline"
STATUS = "Status"
VALIDATION = "Validation"
DRAIN_REPORT = "DrainReport"
FORGET_REPORT = "ForgetReport"
DIAGNOSIS = "Diagnosis"
OPERATOR_CONFIG = "OperatorConfig"
RENDER_FAILED = "RenderFailed"
"""The kind of the document that a failed render writes to a pipe, so that kubectl applies nothing."""

CHART_FILE = "Chart.yaml"
"""The file in a Helm chart's folder that describes the chart."""
LEDGER_FOLDER = "twgen.lock"
RENDERED_BY = "rendered by "
"""The prefix of a document's source if kustomize or helm rendered the document for twgen."""

_OLD_KINDS = {
    "TemporalWorkerDeployment": WORKER,
    "TemporalWorker": WORKER,
    "TemporalConnection": CONNECTION,
    "TemporalWorkerOwnedResource": ATTACHED,
}
WORKER_KINDS = (WORKER, *(old for old, new in _OLD_KINDS.items() if new == WORKER))
"""All names of the worker's kind, starting with the current name."""
_KINDS = {
    CONTROLLER_API: {WORKER, CONNECTION, CLUSTER_CONNECTION, ATTACHED, *_OLD_KINDS},
    TWGEN_API: {
        *(POLICY, SNAPSHOT, LEDGER, OPERATOR_CONFIG),
        *(PLAN, STATUS, TIMELINE, VALIDATION, DRAIN_REPORT, FORGET_REPORT, DIAGNOSIS),
    },
}
APIS = {kind: api for api, kinds in _KINDS.items() for kind in kinds}
"""The apiVersion of the documents of each kind."""
_GROUPS = {api.partition("/")[0]: api for api in _KINDS}
_OF_THE_TEMPORAL_OPERATOR = {
    "TemporalCluster",
    "TemporalClusterClient",
    "TemporalNamespace",
    "TemporalSchedule",
    "TemporalWorkerProcess",
}
"""Another project's kinds in the same API group: https://github.com/alexandrevilain/temporal-operator."""
_HELM_TEMPLATE = r"\{\{-?\s*(?!\.(?:DeploymentName|BuildID|TemporalNamespace)\b)[\w.$/(]"
_KUSTOMIZE = "kustomize.config.k8s.io"


class Kind(NamedTuple):
    """A document's kind: its current name, and the name in the file."""

    name: str
    written: str


def kind_of(value: Any) -> Kind | None:
    """A document's kind, which may have an old name in the file; None if twgen does not read the document."""
    if not isinstance(value, dict):
        return None
    written, api = value.get("kind"), value.get("apiVersion")
    if not isinstance(written, str) or not isinstance(api, str) or written not in _KINDS.get(api, ()):
        return None
    return Kind(_OLD_KINDS.get(written, written), written)


def names_of_kind(kind: str) -> tuple[str, ...]:
    """A kind's current name, then the older names that documents and clusters may still use."""
    return (kind, *(old for old, new in _OLD_KINDS.items() if new == kind))


def wrong_kind(value: dict[str, Any]) -> Finding | None:
    """The problem with the apiVersion or kind of a document that is meant for twgen but cannot be read.

    Returns None if the document can be read, or is not meant for twgen.
    """
    api, kind = value.get("apiVersion"), value.get("kind")
    for name, item in (("apiVersion", api), ("kind", kind)):
        if item is not None and not isinstance(item, str):
            return Finding(name, wrong_type(noun(str), item))
    api, kind = api or "", kind or ""
    is_list = (api, kind) == ("v1", "List")
    if is_list or (is_marked(value) and "items" in value):
        # without_lists replaces a List by its items; other programs treat any object with items as a List:
        # https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/unstructured/unstructured.go
        why = "makes kubectl and Argo CD treat this document as a List: write kind: List, or remove items"
        return Finding("items", "must be a list" if is_list else why)
    group = api.partition("/")[0]
    if group in _GROUPS:
        if kind in _KINDS.get(api, ()) or (api != CONTROLLER_API and kind in _OF_THE_TEMPORAL_OPERATOR):
            return None
        if (api, kind) == (TWGEN_API, RENDER_FAILED):
            return Finding("", f"a render failed: {value.get('message')}")
        if not kind:
            return Finding("kind", MISSING_FIELD(f"is required{_instead_of('kind', value)}"))
        if kind not in APIS:
            right = _GROUPS[group]
            hint = did_you_mean(kind, _KINDS[right]) or did_you_mean(kind, APIS)
            return Finding("kind", f"{right} has no kind {quoted(kind)}{hint}")
        return Finding("apiVersion", f"{quoted(api)} has no {kind} that twgen reads: write {APIS[kind]}")
    # API groups without a dot belong to Kubernetes itself, which has none of these kinds
    if kind not in APIS or ("." in group and not did_you_mean(group, _GROUPS)):
        return None
    if not api:
        wrong = MISSING_FIELD(f"is required: {APIS[kind]}{_instead_of('apiVersion', value)}")
        return Finding("apiVersion", wrong)
    return Finding("apiVersion", f"{quoted(api)} has no {kind} that twgen reads: write {APIS[kind]}")


def is_file(source: str) -> bool:
    """Whether the document comes from a file, not from stdin, kustomize or helm."""
    return source != "-" and not source.startswith(RENDERED_BY)


def is_in_ledger(source: str) -> bool:
    """Whether the file is in a ledger's folder."""
    return LEDGER_FOLDER in PurePath(source).parts[:-1]


def is_marked(value: Any) -> bool:
    """Whether the document has an apiVersion and a kind."""
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(name), str) for name in ("apiVersion", "kind"))
        and bool(value["apiVersion"] and value["kind"])
    )


def is_rendered(value: Any) -> bool:
    """Whether a label shows that twgen rendered the document, even if it was later exported from a cluster.

    The label of a rollout's objects also counts, because tick treats a ConfigMap with this label as an
    intent.
    """
    # if an earlier render were read along with the specs, versions that are no longer planned would be kept
    labels = value_at(value, "metadata", "labels")
    if not isinstance(labels, dict):
        return False
    return ROLLOUT in labels or any(labels.get(name) == by for name, by in MANAGED_BY.items())


def why_left_out(value: Any) -> str:
    """The message about a document that is omitted because it has no apiVersion or kind."""
    fields = value if isinstance(value, dict) else {}
    missing = [name for name in ("apiVersion", "kind") if not fields.get(name)]
    hints = "".join(_instead_of(name, fields) for name in missing)
    return f"has no {' and '.join(missing)}, so it is left out{hints}"


def why_nameless(value: Any) -> str:
    """The message about a document without a name, which an API server rejects; empty if it has one."""
    if any(value_at(value, "metadata", name) for name in ("name", "generateName")):
        return ""
    hint = "" if "metadata" in value else _instead_of("metadata", value)
    return f"has no metadata.name: an API server rejects it{hint}"


def render_first(document: Document) -> str:
    """For a Kustomization or Helm chart, a message with the command to run before twgen; otherwise empty."""
    value = document.value
    is_for_kustomize = is_marked(value) and value["apiVersion"].partition("/")[0] == _KUSTOMIZE
    if not isinstance(value, dict) or (is_marked(value) and not is_for_kustomize):
        return ""
    from shlex import quote  # imported here because most runs have no such file

    file = PurePath(document.source)
    folder = quote(str(file.parent))
    if is_for_kustomize or file.stem == "kustomization":
        return f"is for kustomize: {_rendering('Kustomize', 'kustomize build', folder)}"
    return f"is a Helm chart: {_rendering('Helm', 'helm template', folder)}" if is_chart(document) else ""


def _rendering(kind: str, command: str, folder: str) -> str:
    here = f"pass only {folder}, with --input {kind} (in Argo CD, parameter input)"
    return f"{here}, or run `{command} {folder} | twgen render -`"


def is_chart(document: Document) -> bool:
    """Whether the document is the Chart.yaml of a Helm chart."""
    return document.source.rpartition("/")[2] == CHART_FILE and "kind" not in document.value


def template_of_helm(source: str, text: bytes) -> str:
    """If invalid YAML is a Helm template, a message with the command to run before twgen; otherwise empty."""
    if b"{{" not in text or not re.search(_HELM_TEMPLATE, text.decode(errors="replace")):
        return ""
    from shlex import quote

    return f"is a Helm template: {_rendering('Helm', 'helm template', quote(str(chart_of(source))))}"


def chart_of(source: str) -> PurePath:
    """The folder of the Helm chart that a template belongs to; otherwise the file's own folder."""
    folders = PurePath(source).parents
    return next((folder.parent for folder in folders if folder.name == "templates"), folders[0])


def without_lists(document: Document) -> Iterator[Document]:
    """The items of a list such as `List` or `ServiceList`, as in kubectl; otherwise the document itself.

    The items of a `ServiceList` can omit apiVersion and kind
    (https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/unstructured/helpers.go).
    """
    value = document.value
    if not is_marked(value) or not value["kind"].endswith("List") or not isinstance(value.get("items"), list):
        yield document
        return
    kind = value["kind"].removesuffix("List")
    for index, item in enumerate(value["items"]):
        says_nothing = isinstance(item, dict) and not item.get("apiVersion") and not item.get("kind")
        marks = {"apiVersion": value["apiVersion"], "kind": kind} if kind and says_nothing else None
        path = path_in_file(document, f"items[{index}]")
        whole = {**item, **marks} if marks else item
        yield from without_lists(Document(document.source, document.index, whole, path))


def _instead_of(name: str, value: dict[str, Any]) -> str:
    similar = next((key for key in value if key != name and key.lower().startswith(name[:2].lower())), "")
    close = similar and did_you_mean(similar, (name,))
    return f"; did you mean {name} instead of {quoted(similar)}?" if close else ""
