"""Read the workers from all documents, and collect all problems."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from json import dumps
from operator import attrgetter
from pathlib import PurePath
from typing import NamedTuple

from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import Policy
from twgen.model.problem import (
    DUPLICATE,
    NO_EFFECT,
    Document,
    Problem,
    Rule,
    did_you_mean,
    most_reported,
    quoted,
)
from twgen.model.rollout import Driver
from twgen.model.spec import AttachedResource, AttachedWhile, Connection, WorkerSpec
from twgen.specs import kinds
from twgen.specs.attached import ATTACHED, parse_attached
from twgen.specs.connections import CONNECTION
from twgen.specs.manifests import hooks_on_versions, marks_on_versions, marks_without_effect, requests_in
from twgen.specs.neighbours import collisions, target_objects, warnings_of_neighbours
from twgen.specs.pod_warnings import warn_of_claims
from twgen.specs.policies import (
    POLICY,
    check_credential_containers,
    check_steps,
    default_policy,
    warn_of_idle_replicas,
)
from twgen.specs.spec_document import NamespaceRule, SpecDocument, read_spec_document
from twgen.specs.together import may_meet, parse_when, warn_of_attached
from twgen.specs.workers import parse_worker
from twgen.versioning.names import TWGEN_API

_GIVEN_WITH = {
    kinds.SNAPSHOT: ": pass it with --snapshot, and the specs' folder as PATH",
    kinds.OPERATOR_CONFIG: ": pass it with --operator-config",
}
_SPEC_KINDS = {kinds.CONNECTION, kinds.CLUSTER_CONNECTION, kinds.POLICY, kinds.ATTACHED, kinds.WORKER}
_RENDERED = (
    "is output of `twgen render` (see its label app.kubernetes.io/managed-by or twgen.io/rollout):"
    " keep it out of the specs' folder"
)
_NOT_A_SPEC = Rule(
    "not-a-spec", "twgen does not read this document as a spec, or leaves it out of its output."
)
_RENDERED_RULE = Rule(
    "rendered-output", "The output of a render is among the specs, so its objects would exist twice."
)
_CONFLICT = Rule("conflicting-templates", "Two attached objects would control the same pods.")
_NO_WORKER = Rule("unknown-worker", "A template or policy names a worker that is not among the documents.")
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 1000, 10_000
_REFERENCES = {kinds.ATTACHED: "workerDeploymentRef", kinds.POLICY: "workerRef"}
_REMEDY = ": write the name of an existing worker, pass the worker's file too, or remove this document"


_Connections = Mapping[tuple[str, str], Mapping[str, Connection]]
"""Connections by kind and namespace, then by name."""


class Specs(NamedTuple):
    """The workers in a set of documents, the documents that are not specs, and all findings."""

    workers: tuple[WorkerSpec, ...]
    passthrough: tuple[Document, ...]
    ledgers: tuple[Document, ...]
    snapshots: tuple[Document, ...] = ()
    manifests: tuple[Document, ...] = ()
    """Rendered manifests, if there are no specs among the documents."""
    problems: tuple[Problem, ...] = ()
    unknown_fields: tuple[Problem, ...] = ()
    """Fields that an API server would drop."""
    warnings: tuple[Problem, ...] = ()
    deprecations: tuple[Problem, ...] = ()


@dataclass(eq=False, repr=False)
class _Sorted:
    """The documents, grouped by their use."""

    specs: list[SpecDocument] = field(default_factory=list)
    passthrough: list[Document] = field(default_factory=list)
    ledgers: list[Document] = field(default_factory=list)
    unmarked: list[Document] = field(default_factory=list)
    records: list[tuple[Document, str]] = field(default_factory=list)
    """Documents that twgen or its operator writes and that are not specs, each with its kind."""
    rendered: list[Document] = field(default_factory=list)
    """Rendered manifests."""
    problems: list[Problem] = field(default_factory=list)
    uncertain: set[str] = field(default_factory=set)
    """The kinds of documents with an invalid name or namespace, and the names of documents with a wrong kind.

    A reference to an unknown object may mean one of these documents, so it is not reported.
    """


def parse_specs(  # noqa: PLR0913 - the differences between a render, an intent and an old commit
    documents: Sequence[Document],
    rule: NamespaceRule,
    attached_kinds: tuple[GroupKind, ...] = (),
    drivers: Collection[Driver] = (),
    *,
    default_driver: Driver = Driver.AUTO,
    some_are_missing: bool = False,
) -> Specs:
    """Read every document. The workers are complete only if there are no problems.

    The operator allows `attached_kinds` in addition to the kinds that twgen knows. Workers whose driver is in
    `drivers` also get objects for their rollout. `default_driver` is for policies without a driver.
    `some_are_missing` means that a file could not be read, which may define names that seem to be missing.
    """
    sorted_documents = _sorted(documents, rule)
    if some_are_missing:
        sorted_documents.uncertain |= _SPEC_KINDS
    workers = _workers(sorted_documents, attached_kinds, default_driver)
    specs = sorted_documents.specs
    warn_of_claims(specs, workers, sorted_documents.passthrough, rule.default)
    # workers with the same name are already reported, so their duplicate objects are not
    first_ones = {worker.worker_deployment: worker for worker in reversed(workers) if worker.name}
    return Specs(
        workers=tuple(sorted(workers, key=attrgetter("worker_deployment"))),
        passthrough=tuple(sorted_documents.passthrough),
        ledgers=tuple(sorted_documents.ledgers),
        snapshots=tuple(document for document, kind in sorted_documents.records if kind == kinds.SNAPSHOT),
        manifests=tuple(sorted_documents.rendered),
        problems=(
            *sorted_documents.problems,
            *(item for spec in specs for item in spec.located(spec.findings.problems)),
            *hooks_on_versions(first_ones.values()),
            *requests_in(sorted_documents.passthrough),
            *collisions(
                (item for spec in reversed(first_ones.values()) for item in target_objects(spec, drivers)),
                sorted_documents.passthrough,
                rule.default,
            ),
        ),
        unknown_fields=tuple(item for spec in specs for item in spec.located(spec.findings.unknown)),
        warnings=(
            *(item for spec in specs for item in spec.located(spec.findings.warnings)),
            *(_left_out(sorted_documents) if sorted_documents.unmarked else ()),
            *(
                Problem.at(document, "", _NOT_A_SPEC(why))
                for document in sorted_documents.passthrough
                if (why := kinds.why_nameless(document.value))
            ),
            *marks_on_versions(first_ones.values()),
            *marks_without_effect(first_ones.values()),
            *warnings_of_neighbours(sorted_documents.passthrough, workers, rule.default),
            *(_records_without_specs(sorted_documents) if not specs else ()),
        ),
        deprecations=tuple(item for spec in specs for item in spec.deprecations()),
    )


def _records_without_specs(documents: _Sorted) -> Iterable[Problem]:
    for document, kind in documents.records:
        why = f"a {kind} is not a spec{_GIVEN_WITH.get(kind, '')}"
        yield Problem.at(document, "kind", _NOT_A_SPEC(why))


def refused_manifests(manifests: Iterable[Document]) -> list[Problem]:
    """A problem for each file of rendered manifests that was given as specs."""
    first_of_file: dict[str, Document] = {}
    for item in manifests:
        first_of_file.setdefault(item.source, item)
    return [Problem(item, "", _RENDERED_RULE(_RENDERED)) for item in first_of_file.values()]


def _sorted(documents: Sequence[Document], rule: NamespaceRule) -> _Sorted:
    result, most = _Sorted(), most_reported(len(documents))
    for document in documents:
        value = document.value
        if kind := kinds.kind_of(value):
            if kind.name == kinds.LEDGER:
                result.ledgers.append(document)
            elif kind.name in _SPEC_KINDS:
                result.specs.append(read_spec_document(document, kind, rule, most))
            else:
                result.records.append((document, kind.name))
        elif message := kinds.render_first(document):
            result.problems.append(Problem.at(document, "", message))
        elif isinstance(value, dict) and (wrong := kinds.wrong_kind(value)):
            result.problems.append(Problem.at(document, wrong.path, wrong.message))
            result.uncertain.add(str(value_at(value, "metadata", "name")))
        elif kinds.is_in_ledger(document.source):
            message = f"is not a {kinds.LEDGER} of {TWGEN_API}: restore it from Git, or remove it"
            result.problems.append(Problem.at(document, "", message))
        elif kinds.is_marked(value) and kinds.is_rendered(value):
            result.rendered.append(document)
        else:
            (result.passthrough if kinds.is_marked(value) else result.unmarked).append(document)
    if result.specs or result.ledgers or result.records:
        result.problems += refused_manifests(result.rendered)
        # rendered output includes the passthrough documents, which would otherwise appear twice
        files = {item.source for item in result.rendered}
        result.passthrough = [item for item in result.passthrough if item.source not in files]
        result.rendered = []
    result.uncertain.update(spec.kind.name for spec in result.specs if not spec.name_is_certain)
    return result


def _workers(
    documents: _Sorted, attached_kinds: tuple[GroupKind, ...], default_driver: Driver
) -> list[WorkerSpec]:
    """The workers, each with its Connection, policy and attached templates."""
    _refuse_repetitions(documents.specs)
    of_kind: dict[str, list[SpecDocument]] = {name: [] for name in _SPEC_KINDS}
    for spec in documents.specs:
        of_kind[spec.kind.name].append(spec)
    connections: dict[tuple[str, str], dict[str, Connection]] = {}
    for spec in (*of_kind[kinds.CONNECTION], *of_kind[kinds.CLUSTER_CONNECTION]):
        of_namespace = connections.setdefault((spec.kind.name, spec.namespace), {})
        of_namespace[spec.name] = replace(
            spec.fields.read(CONNECTION), name=spec.name, document=spec.document
        )
    policies = _policies(of_kind[kinds.POLICY])
    attached = _attached(of_kind[kinds.ATTACHED], attached_kinds)
    workers = []
    for spec in of_kind[kinds.WORKER]:
        key = (spec.namespace, spec.name)
        policy = policies.get(key) or policies.get((spec.namespace, "")) or default_policy()
        if policy.driver is Driver.AUTO:
            policy = replace(policy, driver=default_driver)
        resources = tuple(sorted(attached.get(key, ()), key=attrgetter("name")))
        connection_of = partial(_connection_of, connections, documents.uncertain, spec.namespace)
        workers.append(parse_worker(spec, connection_of, policy, resources))
    warn_of_idle_replicas(of_kind[kinds.POLICY], workers)
    warn_of_attached(of_kind[kinds.ATTACHED], workers)
    right = [
        worker
        for spec, worker in zip(of_kind[kinds.WORKER], workers, strict=True)
        if not spec.fields.findings.problems
    ]
    check_credential_containers(of_kind[kinds.POLICY], right)
    check_steps(of_kind[kinds.POLICY], right)
    _note_orphans(
        documents.specs, documents.uncertain, {(worker.namespace, worker.name) for worker in workers}
    )
    return workers


def _policies(specs: Iterable[SpecDocument]) -> dict[tuple[str, str], Policy]:
    policies: dict[tuple[str, str], Policy] = {}
    first: dict[tuple[str, str], SpecDocument] = {}
    for spec in specs:
        policy = replace(spec.fields.read(POLICY), document=spec.document)
        key = (spec.namespace, policy.worker)
        if key in first:
            whose = f"worker {policy.worker}" if policy.worker else f"namespace {spec.namespace}"
            message = f"there are two policies for {whose}: keep one; the other is at"
            spec.fields.problem("workerRef", DUPLICATE(message), first[key].place("spec.workerRef"))
        first.setdefault(key, spec)
        policies[key] = policy
    return policies


def _attached(
    specs: Iterable[SpecDocument], attached_kinds: tuple[GroupKind, ...]
) -> dict[tuple[str, str], list[AttachedResource]]:
    attached: dict[tuple[str, str], list[AttachedResource]] = {}
    first_ones: dict[tuple[str, str, str], dict[frozenset[AttachedWhile], SpecDocument]] = {}
    # many workers have identical templates, so each valid template is parsed only once
    right: dict[str, AttachedResource] = {}
    for spec in specs:
        worker = spec.fields.read(ATTACHED).worker
        template = dumps(spec.fields.raw("template"))
        resource = right.get(template) or parse_attached(spec.name, spec.fields, attached_kinds)
        findings, key = spec.findings, (spec.namespace, worker)
        is_short = len(template) <= _LONGEST_REMEMBERED and len(right) < _MOST_REMEMBERED
        if is_short and not (findings.problems or findings.unknown or findings.warnings):
            right[template] = resource
        when = parse_when(spec)
        named = replace(resource, name=spec.name, when=when, document=spec.document)
        attached.setdefault(key, []).append(named)
        # Kubernetes cannot evict a pod that two budgets select
        deeds = {"PodDisruptionBudget": "protect the pods"}
        deed = "set the replicas" if resource.autoscales else deeds.get(resource.kind, "")
        alike = first_ones.setdefault((*key, deed), {})
        first = next((item for of, item in alike.items() if may_meet(of, when)), spec)
        alike.setdefault(when, spec)
        # templates with the same name are already reported
        if deed and worker and first.name != spec.name:
            message = f"{spec.name} and {first.name} would both {deed} of {worker}: keep one; the other is at"
            spec.fields.problem("template", _CONFLICT(message), first.place("spec.template"))
    return attached


def _connection_of(
    connections: _Connections,
    uncertain: set[str],
    namespace: str,
    name: str,
    of_kinds: tuple[str, ...],
) -> Connection | str:
    places = ((kind, "" if kind == kinds.CLUSTER_CONNECTION else namespace) for kind in of_kinds)
    here = [connections.get(place, {}) for place in places]
    for known in here:
        if name in known:
            return known[name]
    if not namespace or uncertain & {name, *of_kinds}:
        return Connection(name, "")
    advice = (
        did_you_mean(name, chain.from_iterable(here))
        or ": pass its file too, or put the file next to the spec"
    )
    if of_kinds == (kinds.CLUSTER_CONNECTION,):
        wanted = f"{kinds.CLUSTER_CONNECTION} {quoted(name)}"
    else:
        wanted = f"{kinds.CONNECTION} {quoted(name)} in namespace {quoted(namespace)}"
        elsewhere = [place for (_, place), known in connections.items() if place and name in known]
        if elsewhere:
            advice = f"; the Connection in namespace {quoted(min(elsewhere))} is only for workers there"
    return f"there is no {wanted} among the documents{advice}"


def _refuse_repetitions(specs: Iterable[SpecDocument]) -> None:
    first: dict[tuple[str, str, str], SpecDocument] = {}
    for spec in specs:
        key = (spec.kind.name, spec.namespace, spec.name)
        if spec.name and key in first:
            name = f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name
            message = f"there are two {spec.kind.name} documents {name}: keep one; the other is at"
            spec.findings.problem("metadata.name", DUPLICATE(message), first[key].place("metadata.name"))
        first.setdefault(key, spec)


def _left_out(documents: _Sorted) -> Iterable[Problem]:
    refused = (problem.document for problem in documents.problems)
    charts = {PurePath(document.source).parent for document in refused if kinds.is_chart(document)}
    for document in documents.unmarked:
        file = PurePath(document.source)
        if charts.isdisjoint(file.parents):
            helm = "; Helm values are only for `helm template`" if file.stem.startswith("values") else ""
            yield Problem.at(document, "", _NOT_A_SPEC(f"{kinds.why_left_out(document.value)}{helm}"))


def _note_orphans(
    specs: Iterable[SpecDocument], uncertain: AbstractSet[str], workers: Collection[tuple[str, str]]
) -> None:
    """Report each template and policy whose worker is unknown. `workers` are pairs of namespace and name.

    An unknown worker is an error, because a worker could otherwise silently run without its autoscaler. If
    there are no workers at all, it is only a warning: the user may check a single file, or may have removed
    the last worker. A reference that may mean one of the `uncertain` names or kinds is not reported.
    """
    namespaces = {namespace for namespace, _ in workers}
    for spec in specs:
        path = _REFERENCES.get(spec.kind.name)
        if path is None:
            continue
        worker = value_at(spec.fields.value, path, "name")
        is_of_all = spec.kind.name == kinds.POLICY and not worker
        if is_of_all and namespaces and not uncertain and spec.namespace not in namespaces:
            hint = did_you_mean(spec.namespace, namespaces)
            message = f"there is no worker in namespace {quoted(spec.namespace)}, so this has no effect{hint}"
            spec.findings.warning("metadata.namespace", NO_EFFECT(message))
        if not isinstance(worker, str) or not worker or uncertain & {worker, kinds.WORKER}:
            continue
        if (spec.namespace, worker) in workers:
            continue
        similar = did_you_mean(worker, (name for place, name in workers if place == spec.namespace))
        elsewhere = sorted(place for place, name in workers if name == worker)
        hint = (
            f"; there is a worker with this name in namespace {quoted(elsewhere[0])}"
            if elsewhere
            else similar or _REMEDY
        )
        message = f"there is no worker {quoted(worker)} in namespace {quoted(spec.namespace)}"
        note = spec.fields.problem if workers else spec.fields.warning
        note(f"{path}.name", _NO_WORKER(f"{message} among the documents{hint}"))
