"""All documents in; the workers they describe and all that is wrong with them out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from twgen.model.connection import Connection
from twgen.model.document import Document
from twgen.model.policy import Policy
from twgen.model.problem import Finding, Problem
from twgen.model.spec import AttachedResource, WorkerSpec
from twgen.specs import kinds
from twgen.specs.attached import DEFAULT_ATTACHED_KINDS, parse_attached
from twgen.specs.connections import parse_connection
from twgen.specs.opened import NamespaceRule, Opened, open_document
from twgen.specs.policies import default_policy, parse_policy
from twgen.specs.workers import connection_reference, parse_worker

_SPEC_KINDS = (kinds.CONNECTION, kinds.CLUSTER_CONNECTION, kinds.POLICY, kinds.ATTACHED, kinds.WORKER)


@dataclass(frozen=True, slots=True)
class Specs:
    """The workers of a set of documents, the documents that are not twgen's, and what is wrong."""

    workers: tuple[WorkerSpec, ...]
    passthrough: tuple[Document, ...]
    ledgers: tuple[Document, ...]
    problems: tuple[Problem, ...] = ()
    unknown_fields: tuple[Problem, ...] = ()
    """Fields that an API server would drop."""
    warnings: tuple[Problem, ...] = ()
    deprecations: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """What the documents say so far, by namespace and name."""

    kinds: tuple[str, ...]
    connections: dict[tuple[str, str, str], Connection] = field(default_factory=dict)
    policies: dict[tuple[str, str], Policy] = field(default_factory=dict)
    attached: dict[tuple[str, str], list[AttachedResource]] = field(default_factory=dict)
    workers: dict[tuple[str, str], WorkerSpec] = field(default_factory=dict)


def parse_specs(
    documents: Sequence[Document],
    rule: NamespaceRule,
    attached_kinds: tuple[str, ...] = DEFAULT_ATTACHED_KINDS,
) -> Specs:
    """Read every document; the workers are complete only when there are no problems."""
    opened = [
        open_document(document, kind, rule)
        for document in documents
        if (kind := kinds.kind_of(document.value)) and kind.name in _SPEC_KINDS
    ]
    _refuse_repetitions(opened)
    reading = _Reading(attached_kinds)
    for name in _SPEC_KINDS:
        for document in opened:
            if document.kind.name == name:
                _READERS[name](document, reading)
    _warn_about_strays(opened, reading)
    return Specs(
        workers=tuple(sorted(reading.workers.values(), key=attrgetter("worker_deployment"))),
        passthrough=tuple(document for document in documents if _is_passthrough(document)),
        ledgers=tuple(document for document in documents if _is_ledger(document)),
        problems=_collected(opened, "problems"),
        unknown_fields=_collected(opened, "unknown"),
        warnings=_collected(opened, "warnings") + tuple(_nameless(documents)),
        deprecations=tuple(dict.fromkeys(text for document in opened for text in document.deprecations())),
    )


def _read_connection(opened: Opened, reading: _Reading) -> None:
    key = (opened.kind.name, opened.namespace, opened.name)
    reading.connections[key] = parse_connection(opened.name, opened.spec)


def _read_policy(opened: Opened, reading: _Reading) -> None:
    policy = parse_policy(opened.spec)
    key = (opened.namespace, policy.worker)
    if key in reading.policies:
        opened.spec.problem("workerRef", f"{policy.worker or 'the namespace'} has two policies: keep one")
    reading.policies[key] = policy


def _read_attached(opened: Opened, reading: _Reading) -> None:
    reference = opened.spec.mapping("workerDeploymentRef")
    worker = reference.text("name", required=True)
    reference.close()
    resource = parse_attached(opened.name, opened.spec, reading.kinds)
    opened.spec.close()
    reading.attached.setdefault((opened.namespace, worker), []).append(resource)


def _read_worker(opened: Opened, reading: _Reading) -> None:
    key = (opened.namespace, opened.name)
    policy = reading.policies.get(key) or reading.policies.get((opened.namespace, "")) or default_policy()
    attached = tuple(sorted(reading.attached.get(key, ()), key=attrgetter("name")))
    connection = _connection_of(opened, reading)
    reading.workers[key] = parse_worker(opened, connection, policy, attached)


def _connection_of(opened: Opened, reading: _Reading) -> Connection:
    name, kind = connection_reference(opened.spec)
    for place in ((kinds.CONNECTION, opened.namespace), (kinds.CLUSTER_CONNECTION, "")):
        if kind in {"", place[0]} and (found := reading.connections.get((*place, name))):
            return found
    if name and opened.namespace:
        place_name = f"Connection {name!r} in namespace {opened.namespace!r}"
        opened.spec.problem(
            "workerOptions.connectionRef.name", f"there is no {place_name} among the documents"
        )
    return Connection(name, "")


_READERS: dict[str, Callable[[Opened, _Reading], None]] = {
    kinds.CONNECTION: _read_connection,
    kinds.CLUSTER_CONNECTION: _read_connection,
    kinds.POLICY: _read_policy,
    kinds.ATTACHED: _read_attached,
    kinds.WORKER: _read_worker,
}


def _refuse_repetitions(opened: Iterable[Opened]) -> None:
    seen: dict[tuple[str, str, str], Opened] = {}
    for document in opened:
        key = (document.kind.name, document.namespace, document.name)
        if document.name and key in seen:
            again = f"{document.kind.name} {document.name} is also in {seen[key].document.source}"
            document.findings.problems.append(Finding("metadata.name", again))
        seen.setdefault(key, document)


def _warn_about_strays(opened: Iterable[Opened], reading: _Reading) -> None:
    for document in opened:
        reference = {kinds.ATTACHED: "workerDeploymentRef", kinds.POLICY: "workerRef"}.get(document.kind.name)
        if not reference:
            continue
        worker = document.spec.mapping(reference).raw("name")
        if isinstance(worker, str) and worker and (document.namespace, worker) not in reading.workers:
            document.spec.warning(f"{reference}.name", f"there is no worker {worker!r} here: no effect")


def _collected(opened: Iterable[Opened], which: str) -> tuple[Problem, ...]:
    return tuple(
        problem for document in opened for problem in document.problems(getattr(document.findings, which))
    )


def _is_passthrough(document: Document) -> bool:
    value = document.value
    return _is_named(value) and kinds.kind_of(value) is None and not kinds.is_ours(value)


def _is_ledger(document: Document) -> bool:
    kind = kinds.kind_of(document.value)
    return kind is not None and kind.name == kinds.LEDGER


def _is_named(value: object) -> bool:
    return isinstance(value, dict) and bool(value.get("apiVersion")) and bool(value.get("kind"))


def _nameless(documents: Iterable[Document]) -> Iterable[Problem]:
    for document in documents:
        if document.value is not None and not _is_named(document.value):
            yield Problem(document, "", "has no apiVersion and kind: left out")
