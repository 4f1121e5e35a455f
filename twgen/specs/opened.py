"""One document of a kind that twgen reads, opened: its name, its namespace and the fields of its spec."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twgen.model.document import Document
from twgen.model.problem import Finding, Problem
from twgen.specs import kinds
from twgen.specs.fields import Fields, Findings
from twgen.specs.spellings import modernise

_LONGEST_NAME = 63
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_CLUSTER_WIDE = {kinds.CLUSTER_CONNECTION}
_OBJECT_META = ("labels", "annotations", "finalizers", "generateName", "ownerReferences", "creationTimestamp",
                "generation", "managedFields", "resourceVersion", "uid")  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """The namespace of documents that name none (empty: they must), and whether others may be named."""

    default: str = ""
    only: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A document of ours; what is wrong with it collects in `findings`."""

    document: Document
    kind: kinds.Kind
    namespace: str
    name: str
    spec: Fields
    findings: Findings
    written_as: Mapping[str, str]

    def problems(self, findings: Iterable[Finding]) -> list[Problem]:
        """The findings as problems of the document, at the paths that its file has."""
        return [Problem(self.document, self._written(item.path), item.message) for item in findings]

    def deprecations(self) -> list[str]:
        """What is called otherwise today, in one sentence each."""
        renamed = {old: new for new, old in self.written_as.items()}
        if self.kind.written != self.kind.name:
            renamed[f"kind {self.kind.written}"] = self.kind.name
        return [f"{old} is now {new}" for old, new in renamed.items()]

    def _written(self, path: str) -> str:
        for new, old in self.written_as.items():
            if path == new or path.startswith((f"{new}.", f"{new}[")):
                return old + path[len(new) :]
        return path


def open_document(document: Document, kind: kinds.Kind, rule: NamespaceRule) -> Opened:
    """Open a document that `kind_of` knows."""
    modern = modernise(kind, document.value)
    findings = Findings(problems=list(modern.problems))
    top = Fields(modern.value, "", findings)
    metadata = top.mapping("metadata")
    name = _name(top, metadata)
    namespace = "" if kind.name in _CLUSTER_WIDE else _namespace(metadata, rule)
    metadata.close("namespace", *_OBJECT_META)
    if not top.has("spec") and kind.name != kinds.POLICY:
        top.problem("spec", "is required")
    spec = top.mapping("spec")
    top.close("apiVersion", "kind", "status")
    return Opened(document, kind, namespace, name, spec, findings, modern.written_as)


def _name(top: Fields, metadata: Fields) -> str:
    name = metadata.text("name")
    if not name:
        if not any(finding.path.startswith("metadata") for finding in top.findings.problems):
            top.problem("metadata.name", "is required")
    elif len(name) > _LONGEST_NAME:
        metadata.problem("name", f"{name!r} is longer than {_LONGEST_NAME} characters")
    elif not _NAME.fullmatch(name):
        metadata.problem("name", f"{name!r} is not a lower-case DNS name")
    return name


def _namespace(metadata: Fields, rule: NamespaceRule) -> str:
    namespace = metadata.text("namespace")
    if not namespace and not rule.default:
        metadata.problem("namespace", "is missing: name it here, or give -n NAMESPACE")
    if namespace and rule.only and namespace != rule.default:
        metadata.problem("namespace", f"{namespace!r} is not {rule.default!r}, the application's own")
    return namespace or rule.default
