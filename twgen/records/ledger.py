"""The ledger: every version's Deployment as it was rendered, kept in Git beside the specs.

It is a folder with one file for each worker: branches that lock different workers never change the same file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from twgen.cluster.deployments import DEPLOYMENT, recorded_deployment
from twgen.model.paths import Path, parse_path
from twgen.model.problem import MOST_TOLD_IN_ALL, Document, Finding, Place, Problem, path_in_file
from twgen.model.record_shapes import Field, excerpt, record
from twgen.model.shapes import TIME, Findings, Shape, constant, listing, mapping, refuse, text
from twgen.model.world import RecordedDeployment
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    TEMPLATE_HASH,
    TWGEN_API,
    selector_labels,
)
from twgen.versioning.pod_templates import annotation_of, fits_hash, injected_names
from twgen.versioning.stored_form import stored_template

KIND = "Ledger"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A version of a worker (`<Kubernetes namespace>/<worker>`), with its Deployment as it was rendered."""

    worker: str
    build_id: str
    deployment: Mapping[str, Any]
    recorded_at: datetime | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The worker and the build ID."""
        return self.worker, self.build_id


class LedgerPlace(NamedTuple):
    """An entry, and the document that it stands in."""

    entry: LedgerEntry
    document: Document
    path: str


@dataclass(frozen=True, slots=True)
class _Ledger:
    versions: tuple[LedgerEntry, ...] = ()
    api_version: str = TWGEN_API
    kind: str = KIND
    metadata: Any = None


_MANIFEST = excerpt(
    Field("apiVersion", constant(DEPLOYMENT_API), required=True),
    Field("kind", constant("Deployment"), required=True),
)


def _read_deployment(value: Any, path: Path, findings: Findings) -> Any:
    before = len(findings)
    _MANIFEST.read(value, path, findings)
    DEPLOYMENT.read(value, path, findings)
    if len(findings) > before:
        return value
    spec = value["spec"]
    stored = stored_template(spec["template"], "")
    for finding in (*stored.problems, *stored.unknown):
        place: Path = ((path, "spec"), "template")
        for step in parse_path(finding.path):
            place = (place, step)
        refuse(findings, place, finding.message)
    if annotation_of(spec["template"], TEMPLATE_HASH) and len(findings) == before:
        names = injected_names(value)
        if names is None or not fits_hash(spec["template"], names):
            told = (
                f"is not the pod template that its {TEMPLATE_HASH} tells of: it was changed by hand;"
                " take it back from Git, or remove the entry"
            )
            refuse(findings, ((path, "spec"), "template"), told)
    return value


_POD_TEMPLATE = {"properties": {"template": {"$ref": "podtemplate.json"}}}
_DEPLOYMENT = Shape(
    _read_deployment,
    dict,
    {
        "$ref": "deployment.json",
        **_MANIFEST.schema,
        "properties": _MANIFEST.schema["properties"] | {"spec": _POD_TEMPLATE},
    },
)
_ENTRY = record(
    LedgerEntry,
    Field("worker", text(r"^[^/]+/[^/]+$(?!\n)", "<Kubernetes namespace>/<worker>")),
    Field("buildID", text(least=1)),
    Field("recordedAt", TIME),
    Field("deployment", _DEPLOYMENT),
)
LEDGER = record(
    _Ledger,
    Field("apiVersion", constant(TWGEN_API), required=True),
    Field("kind", constant(KIND), required=True),
    Field("metadata", mapping()),
    Field("versions", listing(_ENTRY, least=1), required=True),
)


def write_entry(entry: LedgerEntry) -> dict[str, Any]:
    """One entry of a Ledger document."""
    item: dict[str, Any] = _ENTRY.write(entry)
    return item


def parse_ledgers(
    documents: Iterable[Document],
) -> tuple[dict[tuple[str, str], LedgerPlace], list[Problem]]:
    """The entries of Ledger documents by worker and build ID, and what is wrong with them, as far as is told.

    A version that is there twice is a problem when its Deployments differ: one of them never ran.
    """
    places: dict[tuple[str, str], LedgerPlace] = {}
    problems: list[Problem] = []
    for document in documents:
        if len(problems) > MOST_TOLD_IN_ALL:
            break
        findings: list[Finding] = []
        ledger = LEDGER.read(document.value, None, findings)
        problems += (
            Problem.at(document, finding.path, finding.message) for finding in dict.fromkeys(findings)
        )
        for index, entry in enumerate(() if findings else ledger.versions):
            place = LedgerPlace(entry, document, f"versions[{index}]")
            first = places.setdefault(entry.key, place)
            if first.entry.deployment != entry.deployment:
                said = f"{' '.join(entry.key)} is there with another Deployment: keep the one that ran;"
                other = Place(first.document, path_in_file(first.document, first.path))
                problems.append(Problem.at(document, place.path, f"{said} the other is at", other))
            problems += _wrong_labels(place)
    return places, problems


def recorded_versions(
    places: Mapping[tuple[str, str], LedgerPlace],
) -> dict[tuple[str, str], RecordedDeployment]:
    """What the entries record, by worker and build ID."""
    return {key: recorded_deployment(place.entry.deployment) for key, place in places.items()}


def _wrong_labels(place: LedgerPlace) -> Iterable[Problem]:
    """What an entry says of its Deployment, and that says otherwise of itself."""
    entry, metadata = place.entry, place.entry.deployment["metadata"]
    selector = (entry.deployment["spec"].get("selector") or {}).get("matchLabels") or {}
    namespace, _, worker = entry.worker.partition("/")
    wanted = selector_labels(worker, entry.build_id)
    label = selector.get(DEPLOYMENT_NAME_LABEL) or wanted[DEPLOYMENT_NAME_LABEL]
    own = metadata.get("namespace") or namespace
    if (own, label) != (namespace, wanted[DEPLOYMENT_NAME_LABEL]):
        said = f"the Deployment is {own}/{label}'s, not {entry.worker}'s: take the entry back from Git"
        yield Problem.at(place.document, f"{place.path}.worker", f"{said}, or remove it")
    elif selector.get(BUILD_ID_LABEL, wanted[BUILD_ID_LABEL]) != wanted[BUILD_ID_LABEL]:
        path = f"{place.path}.deployment.spec.selector.matchLabels['{BUILD_ID_LABEL}']"
        yield Problem.at(place.document, path, f"is not {entry.build_id}, the entry's own build ID")
