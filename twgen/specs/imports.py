"""Make specs from running workers: from the controller's objects, and from unversioned Deployments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from twgen.cluster.deployments import DEPLOYMENT, METADATA, live_deployment
from twgen.model.forms import LABEL
from twgen.model.operator import GroupKind
from twgen.model.paths import list_at, value_at
from twgen.model.problem import MISSING_FIELD, Document, Finding, rule_of
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import FLAG, Findings, listing, mapping, whole_number
from twgen.model.world import LiveDeployment
from twgen.specs.attached import BUDGET, KINDS
from twgen.specs.imported_connections import connections_of
from twgen.specs.imported_pods import Configurations, knows_temporal
from twgen.specs.imported_rollouts import ROLLOUT, as_deployment
from twgen.specs.imported_workers import (
    Imported,
    Manifest,
    Running,
    attached_to,
    identity_of,
    metadata_of_people,
    specs_of,
    template_names,
)
from twgen.specs.kinds import ATTACHED, CLUSTER_CONNECTION, CONNECTION, WORKER, kind_of
from twgen.specs.spec_document import STORED_DEFAULTS
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    CONTROLLER_API,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    selector_labels,
)
from twgen.versioning.stored_form import stored_struct, stored_template

_PREFIXES = {WORKER: "", CONNECTION: "connection-", CLUSTER_CONNECTION: "connection-", ATTACHED: "template-"}
_FOLDER = excerpt(Field("metadata", excerpt(Field("namespace", LABEL))))
_OBJECT = excerpt(Field("metadata", METADATA, required=True), Field("spec", mapping(), required=True))
_STRATEGY = excerpt(
    Field("canary", excerpt(Field("steps", listing(mapping())), Field("analysis", mapping()))),
    Field("blueGreen", excerpt(Field("autoPromotionEnabled", FLAG))),
)
_OF_ROLLOUT = (
    Field("replicas", whole_number()),
    Field("strategy", _STRATEGY),
    Field("workloadRef", mapping()),
)
_ROLLOUT = excerpt(
    Field("metadata", METADATA, required=True), Field("spec", excerpt(*_OF_ROLLOUT), required=True)
)
_DEPLOYMENT = GroupKind("apps", "Deployment")
_STATEFUL = GroupKind("apps", "StatefulSet")
_CONFIG_MAP = GroupKind("", "ConfigMap")
_RBAC = "rbac.authorization.k8s.io"
_MOST_NAMED = 3
"""The maximum number of names in one message about objects that are not imported."""
_NO_NEWS = {
    *(GroupKind("", kind) for kind in ("ConfigMap", "Namespace", "Pod", "Secret", "ServiceAccount")),
    *(GroupKind(_RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    GroupKind("apps", "ReplicaSet"),
}
"""Kinds of objects that stay unchanged next to the new worker, so the report does not list them."""
_OF_TEMPORAL = re.compile(
    r"(.*/)?temporalio/(admin-tools|auto-setup|cli|server|tctl|ui|web|base-[a-z-]+)([:@].*)?"
)
"""The images of Temporal's own programs, whose environment variables look like a worker's."""


def imported(
    documents: Sequence[Document], namespace: str, folder: Sequence[Document] = ()
) -> tuple[list[Imported], list[str]]:
    """The specs of the running workers, one for each file, and why other documents are not imported.

    `namespace` is for documents without one. `folder` has the documents of the folder for the specs. The
    source of each is its path in the folder.
    """
    left: dict[tuple[str, str, str], list[str]] = {}
    documents = _once_each(documents, namespace, left)
    running, used = _running(documents, namespace, left)
    connections, templates = _beside_workers(documents, running, namespace, folder)
    workers = {
        selector_labels(name, "")[DEPLOYMENT_NAME_LABEL]
        for document in documents
        if (kind := kind_of(document.value)) and kind.name == WORKER
        if isinstance(name := value_at(document.value, "metadata", "name"), str)
    }
    found: list[tuple[Document, Imported]] = []
    for document in documents:
        value = document.value
        label = value_at(value, "metadata", "labels", DEPLOYMENT_NAME_LABEL)
        if id(document) in used or (is_of_a_version(value) and label in workers):
            continue  # another spec or the ledger already covers this document
        if plain := running.get(id(document)):
            specs = specs_of(plain, namespace, connections.get(id(document)), templates)
            found += [(document, spec) for spec in specs]
        elif not (why := _why_not(value)):
            found.append((document, _of_controller(value)))
        elif GroupKind.of(value) not in _NO_NEWS:
            _leave(left, document, why)
    return _files(found, namespace, left, folder), [_not_imported(*key, names) for key, names in left.items()]


def _once_each(
    documents: Iterable[Document], namespace: str, left: dict[tuple[str, str, str], list[str]]
) -> list[Document]:
    """The documents without objects that appear again later, as kubectl would apply them."""
    last: dict[tuple[GroupKind, str, str], Document] = {}
    kept: dict[int, Document] = {}
    for document in documents:
        kind, name = GroupKind.of(document.value), value_at(document.value, "metadata", "name")
        kept[id(document)] = document
        is_used = _is_ours(document.value) or kind in {_DEPLOYMENT, ROLLOUT, _CONFIG_MAP, *KINDS}
        if not name or not is_used:
            continue
        key = kind, _namespace(document.value, namespace), str(name)
        if earlier := last.get(key):
            del kept[id(earlier)]
            if any(value_at(earlier.value, at) != value_at(document.value, at) for at in ("spec", "data")):
                _leave(left, earlier, "it is there twice, and twgen reads the last one: remove one of them")
        last[key] = document
    return list(kept.values())


def _beside_workers(
    documents: Sequence[Document],
    running: Mapping[int, Running],
    namespace: str,
    folder: Sequence[Document],
) -> tuple[dict[int, Imported], dict[tuple[int, str], str]]:
    """The Connection of each worker, by its document's `id()`, and the names of the workers' templates.

    A worker that the folder has keeps its Connection, so it has none here.
    """
    known = {identity_of(document.value, namespace) for document in folder}
    by_namespace: dict[str, dict[int, Running]] = {}
    for key, worker in running.items():
        by_namespace.setdefault(_namespace(worker.value, namespace), {})[key] = worker
    connections: dict[int, Imported] = {}
    templates: dict[tuple[int, str], str] = {}
    for own, workers in by_namespace.items():
        specs, specs_of_folder = (_by_kind(items, own, namespace) for items in (documents, folder))
        new = {
            key: worker
            for key, worker in workers.items()
            if (WORKER, own, worker.value["metadata"]["name"]) not in known
        }
        existing = specs_of_folder[CONNECTION] | specs[CONNECTION]
        connections |= zip(new, connections_of(list(new.values()), existing, namespace), strict=True)
        attached = [
            (item, worker.value["metadata"]["name"])
            for worker in workers.values()
            for item in attached_to(worker)
        ]
        templates |= template_names(attached, specs[ATTACHED], specs_of_folder[ATTACHED])
    return connections, templates


def _by_kind(documents: Iterable[Document], own: str, namespace: str) -> dict[str, dict[str, Any]]:
    """The `spec` of each Connection and template in namespace `own`, by kind and name."""
    specs: dict[str, dict[str, Any]] = {CONNECTION: {}, ATTACHED: {}}
    for value in (item.value for item in documents if _namespace(item.value, namespace) == own):
        if _is_ours(value) and (kind := kind_of(value)) and kind.name in specs:
            specs[kind.name][str(value_at(value, "metadata", "name"))] = value_at(value, "spec")
    return specs


def _leave(left: dict[tuple[str, str, str], list[str]], document: Document, why: str) -> None:
    """Note why a document is not imported. Documents with the same file, kind and reason share an entry."""
    kind, name = str(value_at(document.value, "kind")), str(value_at(document.value, "metadata", "name"))
    left.setdefault((document.source, kind, why), []).append(name)


def _not_imported(source: str, kind: str, why: str, names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    named = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    if len(names) == 1:
        return f"{source}: {kind} {named} is not imported: {why}"
    return f"{source}: {kind} {named} are not imported: {re.sub('^it ', 'each ', why)}"


def _files(
    found: Iterable[tuple[Document, Imported]],
    namespace: str,
    left: dict[tuple[str, str, str], list[str]],
    folder: Iterable[Document],
) -> list[Imported]:
    """One spec for each file.

    A file name begins with the namespace if there are several namespaces, or if another spec has the file. It
    can also end with the kind.
    """
    found = list(found)
    several = len({_namespace(spec.document, namespace) for _, spec in found}) > 1
    # if a file contains anything but a spec, `import` refuses to write it
    taken = {item.source: identity_of(item.value, namespace) for item in folder if kind_of(item.value)}
    by_file: dict[str, Imported] = {}
    for document, spec in found:
        kind, own, _ = identity = identity_of(spec.document, namespace)
        names = [spec.file, f"{own}.{spec.file}"] if own else [spec.file]
        with_kind = spec.file.replace(".yaml", f"-{kind.lower()}.yaml")
        names = [*(reversed(names) if several else names), with_kind]
        fitting = [name for name in names if taken.get(name, identity) == identity]
        if not fitting:
            _leave(left, document, f"{names[0]} is the file of another object as well: rename one")
            continue
        # a spec that is already there keeps its file
        file = next((name for name in fitting if name in taken), fitting[0])
        taken[file] = identity
        if file not in by_file or (by_file[file].missing and not spec.missing):
            missing = tuple(item.replace(spec.file, file, 1) for item in spec.missing)
            by_file[file] = spec._replace(file=file, missing=missing)
    return list(by_file.values())


def _running(
    documents: Sequence[Document], namespace: str, left: dict[tuple[str, str, str], list[str]]
) -> tuple[dict[int, Running], set[int]]:
    """The unversioned workers by their document's `id()`, and the `id()` of each document that they use."""
    sound = {id(document): document for document in documents if not _why_unsound(document.value)}
    objects: dict[str, list[Document]] = {}
    configurations: dict[str, dict[str, Mapping[str, Any]]] = {}
    for document in documents:
        kind, own = GroupKind.of(document.value), _namespace(document.value, namespace)
        name, data = (value_at(document.value, *path) for path in (("metadata", "name"), ("data",)))
        if kind == _CONFIG_MAP and isinstance(name, str) and isinstance(data, dict):
            configurations.setdefault(own, {})[name] = data
        elif (
            (isinstance(value_at(document.value, "spec"), dict) or list_at(document.value, "specs"))
            and isinstance(name, str)
            and (kind not in KINDS or id(document) in sound)
        ):
            objects.setdefault(own, []).append(document)
    beside = {own: [item.value for item in items] for own, items in objects.items()}
    elsewhere = {own: [item for other in beside if other != own for item in beside[other]] for own in beside}
    plain: dict[tuple[str, str], tuple[Document, Running]] = {}
    used: set[int] = set()
    # Argo Rollouts come last, because a Rollout can refer to a Deployment
    for document in sorted(sound.values(), key=lambda item: GroupKind.of(item.value) == ROLLOUT):
        value, own, strategy = document.value, _namespace(document.value, namespace), None
        if GroupKind.of(value) == ROLLOUT:
            strategy = value_at(value, "spec", "strategy")
            referred = value_at(value, "spec", "workloadRef", "name")
            if (key := (own, str(referred))) in plain:
                first, worker = plain[key]
                size = {"replicas": value["spec"].get("replicas", 1)}
                body = {**worker.value, "spec": {**worker.value["spec"], **size}}
                plain[key] = first, replace(worker, value=body, strategy=strategy)
                used.add(id(document))
                continue
            value = as_deployment(value)
            if _why_unsound(value):
                continue
        if _is_plain(value):
            worker = Running(value, beside[own], configurations.get(own, {}), elsewhere[own], strategy)
            key = own, value["metadata"]["name"]
            if key in plain:
                used.add(id(plain[key][0]))
                why = "a Rollout of the same name is imported: remove one of them"
                _leave(left, plain[key][0], why)
            plain[key] = document, worker
    workers = {
        id(document): worker
        for document, worker in plain.values()
        if not _own_program(worker.value)
        and (len(plain) == 1 or _knows_temporal(worker.value, worker.configurations))
    }
    attached = {id(item) for worker in workers.values() for item in attached_to(worker)}
    used |= {id(item) for items in objects.values() for item in items if id(item.value) in attached}
    return workers, used


def _namespace(value: Any, namespace: str) -> str:
    return str(value_at(value, "metadata", "namespace") or namespace)


def _containers(value: Any) -> list[Any]:
    return list_at(value, "spec", "template", "spec", "containers")


def _knows_temporal(deployment: Manifest, configurations: Configurations) -> bool:
    return any(knows_temporal(container, configurations) for container in _containers(deployment))


def _own_program(value: Any) -> str:
    """The image of one of Temporal's own programs in the pods; empty if there is none."""
    images = (str(value_at(container, "image")) for container in _containers(value))
    return next((image for image in images if _OF_TEMPORAL.fullmatch(image)), "")


def _why_not(value: Any) -> str:
    """Why a document is not imported; empty if it is."""
    is_ours, group_kind, unsound = _is_ours(value), GroupKind.of(value), _why_unsound(value)
    if not is_ours and group_kind in KINDS and not unsound:
        served = [f"{group_kind.group}/{version}" for version in KINDS[group_kind].structs]
        if value["apiVersion"] not in served:
            return f"twgen does not know {value['apiVersion']}: use {' or '.join(served)}"
        if group_kind == BUDGET and value["spec"].get("selector") == {}:
            return "it selects all pods of the namespace, so the new pods need no other budget"
        return f"each version needs its own copy: put the object into a {ATTACHED}"
    if group_kind == _STATEFUL:
        return (
            "each of its pods has its own name and claims (volumeClaimTemplates), which a version's pods"
            f" cannot have: if the worker needs neither, copy its spec.template into a {WORKER}"
        )
    if not is_ours and group_kind not in {_DEPLOYMENT, ROLLOUT, *KINDS}:
        return "it is neither an object of the controller nor a Deployment"
    if unsound:
        return unsound
    if is_ours:
        return ""
    if is_of_a_version(value):
        return "it is a version's Deployment, but its worker is missing"
    if image := _own_program(value):
        return f"{image} is one of Temporal's own programs, not a worker"
    if value_at(value, "spec", "workloadRef"):
        return "the Deployment that its workloadRef names is missing"
    return "it has no Temporal variables"


def live_versions(documents: Iterable[Document]) -> tuple[dict[str, list[LiveDeployment]], list[str]]:
    """The versions' Deployments by namespace, and the reasons why other Deployments cannot be read."""
    by_namespace: dict[str, list[LiveDeployment]] = {}
    left = []
    for document in documents:
        if not is_of_a_version(document.value):
            continue
        unsound = _why_unsound(document.value)
        if not unsound and (live := live_deployment(document.value)):
            by_namespace.setdefault(value_at(document.value, "metadata", "namespace") or "", []).append(live)
        else:
            name = value_at(document.value, "metadata", "name")
            left.append(f"{document.source}: Deployment {name} is not imported: {unsound}")
    return by_namespace, left


def is_of_a_version(value: Any) -> bool:
    """Whether the object is the Deployment of a version."""
    return _is_deployment(value) and not _is_plain(value)


def _is_deployment(value: Any) -> bool:
    return (value_at(value, "apiVersion"), value_at(value, "kind")) == (DEPLOYMENT_API, "Deployment")


def _is_plain(value: Any) -> bool:
    return _is_deployment(value) and not value_at(value, "metadata", "labels", BUILD_ID_LABEL)


def _is_ours(value: Any) -> bool:
    kind = kind_of(value)
    return kind is not None and kind.name in _PREFIXES and value_at(value, "apiVersion") == CONTROLLER_API


def _why_unsound(value: Any) -> str:
    """Why a name cannot be a file name, or which field has the wrong type; empty if the object is valid."""
    findings, kind = Findings(), GroupKind.of(value)
    shapes = {_DEPLOYMENT: DEPLOYMENT, ROLLOUT: _ROLLOUT}
    shapes.get(kind, _OBJECT).read(value, None, findings)
    _FOLDER.read(value, None, findings)
    stored: Iterable[Finding] = ()
    structs = KINDS[kind].structs if kind in KINDS else {}
    if findings.problems:
        pass  # the object cannot be read further
    elif _is_plain(value):
        stored = stored_template(value["spec"]["template"], "spec.template").problems
    elif struct := structs.get(str(value.get("apiVersion")).rpartition("/")[2]):
        stored = stored_struct(value["spec"], struct, "spec", f"a {kind.kind}").problems
    # a missing field can be added to the spec, and `validate` reports it
    findings.add_problems(one for one in stored if rule_of(one.message) != MISSING_FIELD)
    if not findings.problems:
        return ""
    path, message, *_ = findings.problems[0]
    return f"it is not a valid Kubernetes object: {f'{path} {message}'.strip()}"


def _of_controller(value: Manifest) -> Imported:
    """The spec made from one of the controller's objects."""
    kind, name, spec = kind_of(value), value["metadata"]["name"], value["spec"]
    head = {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": metadata_of_people(value)}
    prefix = _PREFIXES[kind.name] if kind else ""
    if "deployment" in spec:
        spec = {field: item for field, item in spec.items() if (field, item) not in STORED_DEFAULTS.items()}
    return Imported(f"{prefix}{name}.yaml", head | {"spec": spec})
