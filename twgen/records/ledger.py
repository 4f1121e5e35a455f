"""Reads and writes the ledger: the rendered Deployment of each version, kept in Git next to the specs.

The ledger is a folder with one file for each worker, so branches that change different workers never edit the
same file. People can edit the files, so twgen preserves comments, order and other entries. Each version is
one line of JSON, so that Git can merge branches that add versions.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from twgen.cluster.deployments import DEPLOYMENT, recorded_deployment
from twgen.cluster.marks import recorded_annotations
from twgen.errors import InvalidInput
from twgen.model.paths import Path, parse_path, value_at
from twgen.model.problem import MOST_REPORTED_IN_ALL, Document, DocumentPath, Problem, path_in_file
from twgen.model.record_shapes import Each, Field, FieldRule, Name, document_of, excerpt, fields_of, record_of
from twgen.model.shapes import (
    AS_WRITTEN,
    INT32,
    MOST_OF_A_RECORD,
    POSITIVE,
    TEXTS,
    Findings,
    Shape,
    constant,
    mapping,
    text,
)
from twgen.model.values import dataclass
from twgen.model.world import RecordedDeployment
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    CONNECTION_HASH,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    INJECTED,
    TEMPLATE_HASH,
    TWGEN_API,
    selector_labels,
)
from twgen.versioning.pod_templates import (
    annotation_of,
    content_of,
    fits_hash,
    fits_injection,
    injected_names,
)
from twgen.versioning.stored_form import stored_template
from twgen.yaml.editing import edited
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError
from twgen.yaml.writer import in_one_line

KIND = "Ledger"
_NEW = {"apiVersion": TWGEN_API, "kind": KIND}


_PERCENT = text(r"^[0-9]+%$(?!\n)", "a percentage")
_PODS = Shape(
    lambda value, *more: (_PERCENT if isinstance(value, str) else INT32).read(value, *more),
    schema={"anyOf": [INT32.schema, _PERCENT.schema]},
)


class _RollingUpdate(NamedTuple):
    max_surge: Annotated[Any, _PODS] = None
    """The maximum number of pods beyond the desired replicas."""
    max_unavailable: Annotated[Any, _PODS] = None
    """The maximum number of unavailable pods."""


class _Strategy(NamedTuple):
    type: Annotated[str, text(r"^(RollingUpdate|Recreate)$(?!\n)", "RollingUpdate or Recreate")] = ""
    """RollingUpdate or Recreate."""
    rolling_update: _RollingUpdate | None = None
    """How many pods Kubernetes replaces at the same time."""


class _Selector(NamedTuple):
    match_labels: Annotated[Mapping[str, str], TEXTS]
    """The labels for the Worker Deployment's name and the build ID."""


# the whole spec is rendered again, so it must contain only fields that twgen writes
class _Spec(NamedTuple):
    replicas: Annotated[int | None, INT32] = None
    """The number of replicas when the version was recorded. Each render sets the replicas again."""
    min_ready_seconds: Annotated[int, INT32] = 0
    """How many seconds a pod must be ready before it counts as available."""
    progress_deadline_seconds: Annotated[int, POSITIVE] = 600
    """The number of seconds without progress after which the Deployment counts as stalled."""
    revision_history_limit: Annotated[int | None, INT32] = None
    """How many old ReplicaSets Kubernetes keeps."""
    strategy: _Strategy | None = None
    """How Kubernetes replaces the pods."""
    selector: Annotated[_Selector | None, FieldRule.REQUIRED] = None
    """The selector of this version's pods."""
    template: Annotated[Any, AS_WRITTEN._replace(schema={"$ref": "podtemplate.json"}), FieldRule.REQUIRED] = (
        None
    )
    """The version's pod template, which must match its recorded hash."""


class _Deployment(NamedTuple):
    spec: _Spec
    """The Deployment's fields, which twgen renders. Only fields that `twgen lock` writes are allowed."""


_MANIFEST = excerpt(
    Field("apiVersion", constant(DEPLOYMENT_API), required=True),
    Field("kind", constant("Deployment"), required=True),
    *fields_of(_Deployment, shapes={}, otherwise=record_of),
)


def _read_deployment(value: Any, path: Path, findings: Findings) -> Any:
    before = findings.count
    _MANIFEST.read(value, path, findings)
    DEPLOYMENT.read(value, path, findings)
    if findings.count > before:
        return value
    spec = value["spec"]
    stored = stored_template(spec["template"], "")
    for finding in (*stored.problems, *stored.unknown):
        place: Path = ((path, "spec"), "template")
        for step in parse_path(finding.path):
            place = (place, step)
        findings.problem(place, finding.message)
    names = injected_names(value)
    if findings.count == before and (names is None or not fits_hash(spec["template"], names)):
        message = f"has no annotation {TEMPLATE_HASH}, so twgen cannot know whether it ever ran"
        if annotation_of(spec["template"], TEMPLATE_HASH):
            message = f"does not match its {TEMPLATE_HASH}"
        findings.problem(((path, "spec"), "template"), f"{message}: it {_CHANGED_BY_HAND}")
    return value


_CHANGED_BY_HAND = "was changed by hand; restore it from Git, or remove the entry"
_DEPLOYMENT = Shape(_read_deployment, dict, {"$ref": "deployment.json", **_MANIFEST.schema})


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A version of a worker, as `twgen lock` recorded it."""

    worker: Annotated[str, text(r"^[^/]+/[^/]+$(?!\n)", "<Kubernetes namespace>/<worker>")]
    """The worker as namespace/worker, such as shop/payments."""
    build_id: Name
    """The version's build ID."""
    deployment: Annotated[Mapping[str, Any], _Deployment, _DEPLOYMENT]
    """The version's Deployment, which twgen renders as long as the version may have work."""
    recorded_at: datetime | None = None
    """When `twgen lock` recorded the version."""

    @property
    def key(self) -> tuple[str, str]:
        """The worker and build ID, which identify the entry."""
        return self.worker, self.build_id


class LedgerPlace(NamedTuple):
    """An entry and its place in a document."""

    entry: LedgerEntry
    document: Document
    path: str
    again: tuple[Document, ...] = ()
    """Other documents that contain the same entry."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all documents that contain the entry, without duplicates."""
        return tuple(dict.fromkeys(document.source for document in (self.document, *self.again)))


@dataclass(frozen=True, slots=True)
class Ledger:
    """The recorded versions of workers, kept in Git."""

    versions: Annotated[tuple[LedgerEntry, ...], Each(least=1)]
    """One entry for each version of each worker."""


_ENTRY = record_of(LedgerEntry, "worker", "build_id", "recorded_at", "deployment")
LEDGER = document_of(
    TWGEN_API,
    KIND,
    Ledger,
    Field("metadata", mapping(), "A name for people. A ledger is never applied to a cluster."),
    shapes={LedgerEntry: _ENTRY},
)


def write_entry(entry: LedgerEntry) -> dict[str, Any]:
    """Convert an entry to an item of a Ledger document."""
    item: dict[str, Any] = _ENTRY.write(entry)
    return item


def why_unreadable(entry: LedgerEntry) -> str:
    """Why a ledger with this entry would be rejected, or empty if it is valid."""
    value = {**_NEW, "versions": [write_entry(entry)]}
    problems = parse_ledgers([Document("", 0, value)])[1]
    return f"{problems[0].path} {problems[0].message}" if problems else ""


def parse_ledgers(
    documents: Iterable[Document],
) -> tuple[dict[tuple[str, str], LedgerPlace], list[Problem]]:
    """Read the entries of Ledger documents, by worker and build ID. Also returns the first problems.

    If a version appears twice with different Deployments, this is a problem, because only one of them ran.
    """
    places: dict[tuple[str, str], LedgerPlace] = {}
    problems: list[Problem] = []
    for document in documents:
        if len(problems) > MOST_REPORTED_IN_ALL:
            break
        findings = Findings(MOST_OF_A_RECORD)
        ledger = LEDGER.read(document.value, None, findings)
        problems += (Problem.at(document, finding.path, finding.message) for finding in findings.shown())
        for index, entry in enumerate(() if findings.problems else ledger.versions):
            place = LedgerPlace(entry, document, f"versions[{index}]")
            first = places.setdefault(entry.key, place)
            if first is not place:
                places[entry.key] = first._replace(again=(*first.again, document))
            if first.entry.deployment != entry.deployment:
                twice = f"{' '.join(entry.key)} appears twice, with different Deployments"
                message = f"{twice}: keep the one that ran; the other is at"
                other = DocumentPath(first.document, path_in_file(first.document, first.path))
                problems.append(Problem.at(document, place.path, message, other))
            if wrong := _contradiction(entry):
                problems.append(Problem.at(document, f"{place.path}.{wrong[0]}", wrong[1]))
    return places, problems


def recorded_versions(
    places: Mapping[tuple[str, str], LedgerPlace],
) -> dict[tuple[str, str], RecordedDeployment]:
    """The entries' recorded Deployments, by worker and build ID."""
    return {key: recorded_deployment(place.entry.deployment) for key, place in places.items()}


def _contradiction(entry: LedgerEntry) -> tuple[str, str] | None:
    """The first field of an entry's Deployment that does not match the entry's version, and a message."""
    manifest, metadata, spec = entry.deployment, entry.deployment["metadata"], entry.deployment["spec"]
    namespace, _, worker = entry.worker.partition("/")
    wanted, template = selector_labels(worker, entry.build_id), spec["template"]
    selected = spec["selector"]["matchLabels"]
    own = f"{metadata.get('namespace') or namespace}/{selected.get(DEPLOYMENT_NAME_LABEL) or '(no label)'}"
    if own != f"{namespace}/{wanted[DEPLOYMENT_NAME_LABEL]}":
        restore = "restore the entry from Git, or remove it"
        return "worker", f"the Deployment belongs to {own}, not to {entry.worker}: {restore}"
    labels_path = "deployment.spec.selector.matchLabels"
    if selected.get(BUILD_ID_LABEL) != wanted[BUILD_ID_LABEL]:
        return f"{labels_path}['{BUILD_ID_LABEL}']", f"is not {entry.build_id}, the entry's own build ID"
    if selected != wanted or not wanted.items() <= (template["metadata"].get("labels") or {}).items():
        return labels_path, f"does not select this version's pods: it {_CHANGED_BY_HAND}"
    if not fits_injection(template, injected_names(manifest) or frozenset(), entry.worker, entry.build_id):
        differs = (
            f"the injected variables and volumes do not match its {CONNECTION_HASH}, worker and build ID"
        )
        return "deployment.spec.template.spec", f"{differs}: one {_CHANGED_BY_HAND}"
    described = recorded_annotations({"metadata": content_of(template, frozenset())["metadata"]})
    injected = (metadata.get("annotations") or {}).get(INJECTED)
    if recorded_annotations(manifest).items() - {(INJECTED, injected)} != described.items():
        return "deployment.metadata.annotations", f"do not match its pod template: one {_CHANGED_BY_HAND}"
    return None


def updated_text(text: str, entries: Iterable[LedgerEntry], source: str) -> str:
    """Replace changed entries in a ledger's text, and append new ones. An empty text becomes a new ledger.

    Raises InvalidInput if the text is not a ledger or cannot be edited.
    """
    new = {entry.key: write_entry(entry) for entry in entries}
    if not new:
        return text
    document: dict[str, Any] = {**_NEW, "versions": []}
    if text:
        try:
            documents = read_documents(text)
        except YamlError as error:
            raise InvalidInput(f"{source}: {error}: restore the file from Git") from error
        if len(documents) != 1 or value_at(documents[0], "kind") != KIND:
            raise InvalidInput(f"{source} is not a ledger: restore it from Git, or move it elsewhere")
        [document] = documents
    as_written = _as_written(document)
    # a version may be listed twice, if two branches that recorded it were merged
    recorded: Any = document["versions"]
    versions = [new.get((item["worker"], item["buildID"]), item) for item in recorded]
    known = {(item["worker"], item["buildID"]) for item in recorded}
    added = [item for key, item in new.items() if key not in known]
    result = {**document, "versions": [*versions, *added]}
    # text that no person has edited is rewritten, because preserving the layout would take 20 times as long
    if text in ("", as_written):
        return _as_written(result)
    written = edited(text, result, in_one_line)
    if written is not None:
        return written
    raise InvalidInput(
        f"{source} cannot be edited without losing its layout: write `versions` as a list of `- {{...}}`,"
        " without anchors or tags"
    )


def _as_written(document: Mapping[str, Any]) -> str:
    fields = "".join(f"{name}: {value}\n" for name, value in _NEW.items())
    return f"{fields}versions:\n" + "".join(f"- {in_one_line(item)}\n" for item in document["versions"])
