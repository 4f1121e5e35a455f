"""Make specs of running workers: of the controller's own objects, and of Deployments without versions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twgen.cluster.deployments import DEPLOYMENT, METADATA, live_deployment
from twgen.cluster.server_defaults import without_server_fields
from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.policy import EnvironmentNames
from twgen.model.problem import Document, quoted
from twgen.model.record_shapes import Field, excerpt
from twgen.model.shapes import Findings, mapping
from twgen.model.spec import Connection, SecretKey
from twgen.model.world import LiveDeployment
from twgen.specs.attached import KINDS
from twgen.specs.kinds import ATTACHED, CLUSTER_CONNECTION, CONNECTION, WORKER, kind_of
from twgen.specs.spec_document import STORED_DEFAULTS
from twgen.specs.templates import CHART, Values, known_value, references, with_references
from twgen.versioning.injection import (
    ADDRESS,
    NAMESPACE,
    TASK_QUEUE,
    Identity,
    Place,
    injection,
    is_ever_injected,
    place_of,
)
from twgen.versioning.names import (
    BUILD_ID_LABEL,
    CONTROLLER_API,
    DEPLOYMENT_API,
    DEPLOYMENT_NAME_LABEL,
    RESTARTED_AT,
    selector_labels,
)

_OF_TOOLS = ("kubectl.kubernetes.io/", "argocd.argoproj.io/", "meta.helm.sh/", "deployment.kubernetes.io/")
_OF_OTHERS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", CHART, RESTARTED_AT}
"""Labels and annotations by which a tool recognizes its objects. The next tool sets its own."""
_POD_HASH = "pod-template-hash"
_PREFIXES = {WORKER: "", CONNECTION: "connection-", CLUSTER_CONNECTION: "connection-", ATTACHED: "template-"}
_PACE = ("minReadySeconds", "progressDeadlineSeconds", "strategy", "revisionHistoryLimit")
_SCHEDULING = ("affinity", "topologySpreadConstraints")
_NO_ADDRESS = "temporal.example.com:7233"

_Field = tuple[str, ...]
"""A field of a document, by the names that lead to it."""
_KEY = "TEMPORAL_API_KEY"
_OF_CONNECTION = ("TEMPORAL_API", "TEMPORAL_TLS")
"""Prefixes of the variables that hold credentials: a Connection names a Secret in their place."""

_OBJECT = excerpt(Field("metadata", METADATA, required=True), Field("spec", mapping(), required=True))

Container = Mapping[str, Any]


class Imported(NamedTuple):
    """One spec, and the file for it."""

    file: str
    document: Mapping[str, Any]
    comments: Mapping[_Field, str] = {}
    """Comments for some of its fields."""
    missing: tuple[str, ...] = ()
    """Sentences for a person: what to fill in or to check."""
    is_whole: bool = True
    """The spec is complete. False: a person must decide much of it, so a file that exists stays."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return identity_of(self.document)


def identity_of(document: Any) -> tuple[str, str, str]:
    """Kind, namespace and name of a document; empty where it lacks one."""
    kind, *rest = (
        str(value_at(document, *path) or "")
        for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))
    )
    return kind, rest[0], rest[1]


def imported(documents: Sequence[Document], namespace: str) -> tuple[list[Imported], list[str]]:
    """The specs of the running workers, each for its own file, and why other documents gave no spec.

    `namespace` is for documents without one.
    """
    plain = [document for document in documents if _is_plain(document.value) and _is_sound(document.value)]
    ours = [
        document
        for document in plain
        if len(plain) == 1
        or any(map(_knows_temporal, document.value["spec"]["template"]["spec"]["containers"]))
    ]
    pods = (imported_pods(document.value["spec"]["template"]["spec"]) for document in ours)
    addresses = {pod.place.address for pod in pods} - {""}
    specs_by_file: dict[str, Imported] = {}
    left: list[str] = []
    workers = {
        selector_labels(name, "")[DEPLOYMENT_NAME_LABEL]
        for document in documents
        if (kind := kind_of(document.value)) and kind.name == WORKER
        if isinstance(name := value_at(document.value, "metadata", "name"), str)
    }
    for document in documents:
        label = value_at(document.value, "metadata", "labels", DEPLOYMENT_NAME_LABEL)
        if is_of_a_version(document.value) and label in workers:
            continue  # it is not the spec that tells of it, but the ledger
        why = _why_not(document.value, is_one_of_ours=any(document is own for own in ours))
        specs = [] if why else list(_specs(document.value, namespace, addresses))
        for spec in specs:
            known = specs_by_file.setdefault(spec.file, spec)
            if known.identity != spec.identity:
                why = f"{spec.file} is the file of another object as well: import one namespace at a time"
            elif known.missing and not spec.missing:
                specs_by_file[spec.file] = spec
        if why:
            named = f"{value_at(document.value, 'kind')} {value_at(document.value, 'metadata', 'name')}"
            left.append(f"{document.source}: {named} is not imported: {why}")
    return list(specs_by_file.values()), left


def _why_not(value: Any, *, is_one_of_ours: bool) -> str:
    """Why a document gives no spec; empty: it gives one."""
    kind = kind_of(value)
    is_ours = kind is not None and kind.name in _PREFIXES and value["apiVersion"] == CONTROLLER_API
    if not is_ours and GroupKind.of(value) in KINDS:
        return f"each version needs one of its own: put a copy into a {ATTACHED}"
    if not is_ours and not _is_deployment(value):
        return "it is neither an object of the controller nor a Deployment"
    if not _is_sound(value):
        return "it is not a valid Kubernetes object"
    if is_ours or is_one_of_ours:
        return ""
    if is_of_a_version(value):
        return "it belongs to a version, but its worker is missing"
    return "it has no Temporal variables"


def live_versions(documents: Iterable[Document]) -> tuple[dict[str, list[LiveDeployment]], list[str]]:
    """The Deployments of versions, by namespace, and why others cannot be read."""
    by_namespace: dict[str, list[LiveDeployment]] = {}
    left = []
    for document in documents:
        if not is_of_a_version(document.value):
            continue
        if _is_sound(document.value) and (live := live_deployment(document.value)):
            by_namespace.setdefault(value_at(document.value, "metadata", "namespace") or "", []).append(live)
        else:
            name = value_at(document.value, "metadata", "name")
            left.append(
                f"{document.source}: Deployment {name} is not imported: it is not a valid Kubernetes object"
            )
    return by_namespace, left


def is_of_a_version(value: Any) -> bool:
    """The object is the Deployment of a version."""
    return _is_deployment(value) and not _is_plain(value)


def _is_deployment(value: Any) -> bool:
    return (value_at(value, "apiVersion"), value_at(value, "kind")) == (DEPLOYMENT_API, "Deployment")


def _is_plain(value: Any) -> bool:
    return _is_deployment(value) and not value_at(value, "metadata", "labels", BUILD_ID_LABEL)


def _is_sound(value: Any) -> bool:
    """The name can be a file name, and the fields that twgen reads have the right types."""
    findings = Findings()
    (DEPLOYMENT if _is_deployment(value) else _OBJECT).read(value, None, findings)
    return not findings.problems


def _specs(value: Mapping[str, Any], namespace: str, addresses: set[str]) -> Iterator[Imported]:
    if not _is_deployment(value):
        kind = kind_of(value)
        name = value["metadata"]["name"]
        essence = {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": _metadata(value)}
        prefix = _PREFIXES[kind.name] if kind else ""
        spec = value["spec"]
        if "deployment" in spec:
            spec = {
                field: item for field, item in spec.items() if (field, item) not in STORED_DEFAULTS.items()
            }
        yield Imported(f"{prefix}{name}.yaml", essence | {"spec": spec})
        return
    yield from _of_deployment(value, namespace, addresses)


def _metadata(value: Mapping[str, Any]) -> dict[str, Any]:
    """Name, namespace, and the labels and annotations that no tool has set."""
    metadata = value["metadata"]
    kept: dict[str, Any] = {name: metadata[name] for name in ("name", "namespace") if metadata.get(name)}
    for name in ("labels", "annotations"):
        if texts := _of_people(metadata.get(name)):
            kept[name] = texts
    return kept


def _of_people(texts: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        key: text
        for key, text in (texts or {}).items()
        if not key.startswith(_OF_TOOLS) and key not in _OF_OTHERS
    }


def _of_deployment(value: Mapping[str, Any], namespace: str, addresses: set[str]) -> Iterator[Imported]:
    """A worker and its Connection. A person fills in what the Deployment does not say."""
    metadata, pod_template = _metadata(value), value["spec"]["template"]
    name = metadata["name"]
    where = {"namespace": text} if (text := metadata.get("namespace") or namespace) else {}
    spec = without_server_fields({"metadata": {"annotations": {}}, "spec": dict(value["spec"])})["spec"]
    pods = imported_pods(spec["template"]["spec"])
    place, key = pods.place, pods.key
    # workers on several servers have a Connection each
    connection = "temporal" if len(addresses) <= 1 else name
    address = place.address or (next(iter(addresses)) if len(addresses) == 1 else "")
    labels = {
        key: text
        for key, text in _of_people(value_at(pod_template, "metadata", "labels")).items()
        # the old Deployment, its autoscaler and its budget would take the new pods for its own
        if key not in (value_at(value, "spec", "selector", "matchLabels") or {}) and key != _POD_HASH
    }
    marks = {"labels": labels, "annotations": _of_people(value_at(pod_template, "metadata", "annotations"))}
    of_pods = {field: texts for field, texts in marks.items() if texts}
    pace = _pace(spec)
    size = {"replicas": value["spec"]["replicas"]} if value["spec"].get("replicas") is not None else {}
    template = {**({"metadata": of_pods} if of_pods else {}), "spec": pods.spec}
    body = {**size, **pace, "template": template}
    worker: dict[str, Any] = {
        "workerOptions": {
            "connectionRef": {"name": connection},
            "temporalNamespace": place.temporal_namespace or "default",
            **({"taskQueue": pods.task_queue} if pods.task_queue else {}),
        },
        "rollout": {"strategy": "AllAtOnce"},
        **({"deployment": body} if pace else body),
    }
    comments: dict[_Field, str] = {("spec", "rollout", "strategy"): "or Progressive, with steps and a gate"}
    comments["spec", "deployment" if pace else "template"] = "enable versioning in its code: docs/workers.md"
    if pods.worker:
        containers = ("spec", *(("deployment",) if pace else ()), "template", "spec", "containers")
        first = quoted(pods.worker)
        comments[containers] = (
            f"the first, {first}, is taken as the worker: the build ID comes from its image"
        )
    missing = [f"{name}.yaml: {note}" for note in pods.notes]
    left_out = (value_at(pod_template, "metadata", "labels") or {}).keys() - labels.keys() - {_POD_HASH}
    for label in sorted(left_out & _selecting_labels([pods.spec.get(field) for field in _SCHEDULING])):
        instead = f"write {DEPLOYMENT_NAME_LABEL}: {selector_labels(name, '')[DEPLOYMENT_NAME_LABEL]} there"
        why = "is left out, but the pods' affinity or topologySpreadConstraints use it"
        missing.append(f"{name}.yaml: label {label} {why}: {instead}")
    if not place.temporal_namespace:
        comments["spec", "workerOptions", "temporalNamespace"] = "fill in: the Deployment does not contain it"
        missing.append(f"{name}.yaml: spec.workerOptions.temporalNamespace, if it is not default")
    head = {"apiVersion": CONTROLLER_API, "kind": WORKER, "metadata": {"name": name, **where}}
    yield Imported(f"{name}.yaml", {**head, "spec": worker}, comments, tuple(missing), is_whole=False)
    file = f"connection-{connection}.yaml"
    beside = "and apiKeySecretRef or mutualTLSSecretRef, if it needs credentials"
    if not address:
        beside = f"fill in: the Deployment does not contain it; {beside}"
    reached = {"hostPort": address or _NO_ADDRESS, **({"apiKeySecretRef": key} if key else {})}
    head = {"apiVersion": CONTROLLER_API, "kind": CONNECTION, "metadata": {"name": connection, **where}}
    unknown = () if address else (f"{file}: spec.hostPort",)
    place_of_comment: dict[_Field, str] = {} if key and address else {("spec", "hostPort"): beside}
    yield Imported(file, {**head, "spec": reached}, place_of_comment, unknown, is_whole=False)


def _pace(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say how the pods of a version are replaced."""
    pace = {field: spec[field] for field in _PACE if spec.get(field) is not None}
    if isinstance(strategy := pace.get("strategy"), dict):
        # the type is a default and was left out, but the controller ignores a strategy without a type
        pace["strategy"] = {"type": "RollingUpdate", **strategy}
    return pace


def _selecting_labels(rules: Any) -> set[str]:
    """The labels by which scheduling rules select pods, at any depth below this value."""
    if isinstance(rules, list):
        return {name for rule in rules for name in _selecting_labels(rule)}
    if not isinstance(rules, dict):
        return set()
    selector = rules.get("labelSelector")
    expressions = value_at(selector, "matchExpressions")
    labels = value_at(selector, "matchLabels")
    names = [*labels] if isinstance(labels, dict) else []
    names += (
        [value_at(expression, "key") for expression in expressions] if isinstance(expressions, list) else []
    )
    return {str(name) for name in names}.union(*(_selecting_labels(rule) for rule in rules.values()))


class ImportedPods(NamedTuple):
    """The `spec` of a pod template, and the settings that its variables had."""

    spec: Mapping[str, Any]
    place: Place
    task_queue: str
    """Empty: no variable names it, or the variable stays in the pods."""
    key: Mapping[str, str]
    """The key of the Secret that holds the API key; empty: there is none."""
    notes: tuple[str, ...]
    """Sentences for the person who imports: what to check."""
    worker: str
    """The container in the first place, since it seems to be the worker. Empty: there is no other."""


def _knows_temporal(container: Container) -> bool:
    """One of its variables has the prefix TEMPORAL_."""
    return any(str(variable.get("name")).startswith("TEMPORAL_") for variable in container.get("env") or ())


def imported_pods(pod: Mapping[str, Any]) -> ImportedPods:
    """Import a pod template. If containers disagree on a variable of Temporal, the first container counts."""
    containers: list[Container] = list(pod["containers"])
    # the worker's container becomes the first, since the image of the first one names the version; a
    # sidecar may be listed before it, or have variables of Temporal too
    containers.sort(
        key=lambda container: (TASK_QUEUE not in _told(container), not _knows_temporal(container))
    )
    all_values = [_told(container) for container in containers]
    plain = ({name: text for name, text in values.items() if text} for values in all_values)
    place = place_of(
        {
            "containers": [
                {"env": [{"name": name, "value": text} for name, text in values.items()]} for values in plain
            ]
        }
    )
    variables = [variable for container in containers for variable in container.get("env") or ()]
    keys = (
        value_at(variable, "valueFrom", "secretKeyRef")
        for variable in variables
        if variable.get("name") == _KEY
    )
    key: Mapping[str, Any] = next(
        (reference for reference in keys if value_at(reference, "name") and value_at(reference, "key")), {}
    )
    queues = {values[TASK_QUEUE] for values in all_values if TASK_QUEUE in values}
    is_used = any(TASK_QUEUE in references(str(variable.get("value"))) for variable in variables)
    # a task queue that other variables refer to, or on which containers differ, stays a variable of the pods
    queue = "" if is_used or len(queues) != 1 else queues.pop() or ""
    secret = SecretKey(str(key["name"]), str(key["key"])) if key else None
    connection = Connection("", place.address, api_key_secret=secret)
    injected = injection(connection, Identity("", "", ""), EnvironmentNames.CURRENT).names
    gone = injected | ({TASK_QUEUE} if queue else set())
    gone |= {name for values in all_values for name in values if name.startswith(_OF_CONNECTION)}
    gone = frozenset(name for name in gone if is_ever_injected(name))
    notes = [
        note for pair in zip(containers, all_values, strict=True) for note in _notes(*pair, place, gone, key)
    ]
    return ImportedPods(
        spec={**pod, "containers": [_without(container, gone) for container in containers]},
        place=place,
        task_queue=queue,
        key={"name": secret.name, "key": secret.key} if secret else {},
        notes=tuple(dict.fromkeys(notes)),
        worker=str(containers[0].get("name")) if len(containers) > 1 else "",
    )


def _told(container: Container) -> dict[str, str | None]:
    """The variables of a container by name; None: the value comes from a Secret, a field or the like."""
    values: dict[str, str | None] = {}
    for variable in container.get("env") or ():
        values[str(variable.get("name"))] = known_value(variable, values)
    return values


def _without(container: Container, gone: frozenset[str]) -> dict[str, Any]:
    """The container without these variables; references to them are replaced by their values."""
    kept, before = [], dict[str, str | None]()
    for variable in container.get("env") or ():
        name, text = str(variable.get("name")), variable.get("value")
        if name not in gone:
            # twgen sets its variables after those of the pods, and Kubernetes fills in only earlier ones
            known = {name: value for name, value in before.items() if name in gone and name != _KEY}
            filled = isinstance(text, str) and with_references(text, known.get)
            kept.append({**variable, "value": filled} if filled else variable)
        before[name] = known_value(variable, before)
    rest = {field: item for field, item in container.items() if field != "env"}
    return {**rest, **({"env": kept} if kept else {})}


def _notes(
    container: Container, values: Values, place: Place, gone: frozenset[str], key: Mapping[str, Any]
) -> Iterator[str]:
    places = {ADDRESS: place.address, NAMESPACE: place.temporal_namespace}
    before = dict[str, str | None]()
    for variable in container.get("env") or ():
        name = str(variable.get("name"))
        is_key = name == _KEY and key and value_at(variable, "valueFrom", "secretKeyRef") == key
        if name in gone and name.startswith(_OF_CONNECTION) and not is_key:
            yield f"{name} is left out: the Connection sets it"
        elif name in places and values[name] is None:
            is_for = "the Connection" if name == ADDRESS else "temporalNamespace"
            yield f"{name} is left out: {is_for} sets it"
        elif name in places and values[name] != places[name]:
            whose = f"{name} of container {quoted(str(container.get('name')))}"
            yield (
                f"{whose} is left out: it is {quoted(str(values[name]))} here, but all containers get"
                " the same value"
            )
        elif name not in gone:
            for reference in references(str(variable.get("value") or "")):
                if (
                    reference in gone
                    and reference in before
                    and (before[reference] is None or reference == _KEY)
                ):
                    yield f"{name} refers to {reference}, which is left out: write the value itself"
        before[name] = known_value(variable, before)
