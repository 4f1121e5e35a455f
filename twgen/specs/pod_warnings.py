"""Warnings about pod settings that an API server accepts, but that are probably mistakes.

Some settings keep the pods of two versions apart. A new version could then not start, because an old version
has pods until it is drained.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from json import dumps
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import Path, value_at, written_path
from twgen.model.problem import UNLIKELY, Document, Message, Rule, hidden_character, quoted
from twgen.model.spec import WorkerSpec
from twgen.specs.fields import Fields
from twgen.specs.spec_document import SpecDocument
from twgen.versioning.names import BUILD_ID_LABEL, selector_labels
from twgen.versioning.pod_templates import pod_labels
from twgen.versioning.quantities import quantity_nanos

_BYTES = ("memory", "ephemeral-storage")
# larger machines exist, so the limits are high: --strict must not reject a worker that really needs one
_MANY_CORES, _MUCH_MEMORY, _WHOLE_MACHINE = 100, 4 * 2**40, 100 * 2**30
"""From these amounts on, the unit is probably wrong, unless the container gets a whole machine's memory."""
_LONG_GRACE = 30 * 86_400
"""Activities can take days, but a number this large is probably in milliseconds."""
_LONGEST_SHORT_TEXT = 253
_MODES, _LIKE_OCTAL = ("defaultMode", "mode"), (400, 440, 444, 500)
"""The fields for file modes in volumes, and decimal numbers that were probably meant to be octal."""
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ACTIONS = ("httpGet", "tcpSocket")
_CLAIM = GroupKind("", "PersistentVolumeClaim")
_OF_ONE_POD, _OF_ONE_NODE = "ReadWriteOncePod", "ReadWriteOnce"
_OF_MANY = ("ReadWriteMany", "ReadOnlyMany")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HOST_NAME = "kubernetes.io/hostname"
_HASH = "pod-template-hash"
"""The label that a Deployment adds to the pods of each pod template."""
_LABEL = re.compile(r"metadata\.labels\['(.+)'\]")
_UNTIL = " until it is drained"
_PROBE = Rule(
    "probe-port", "A probe always fails, because its container has no port with the probe's port name."
)
_INVISIBLE = Rule(
    "invisible-character", "A text contains an invisible character, so it differs from what you see."
)
_APART = Rule("versions-kept-apart", "A new version's pods cannot start while an old version has pods.")
_NO_LABEL = Rule(
    "missing-label", "A variable is empty, because it refers to a label that the pods do not have."
)
_SPREAD = Rule(
    "pod-spread", "A spread constraint selects none of the worker's own pods, so they are not spread."
)


def warnings_of_pod(pod: Mapping[str, Any]) -> Iterator[tuple[str, Message]]:
    """The warnings about a pod in its stored form, each with the path inside the pod."""
    grace = pod.get("terminationGracePeriodSeconds") or 0
    if grace >= _LONG_GRACE:
        why = f"a node waits {grace // 86_400} days for such a pod to end"
        yield "terminationGracePeriodSeconds", UNLIKELY(f"{why}: check the number of seconds")
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(field) or ()):
            for place, warning in warnings_of_container(container):
                yield f"{field}[{index}].{place}", warning
    for path, mode in entries(pod.get("volumes") or []):
        if path[1] in _MODES and mode in _LIKE_OCTAL:
            why = f"{mode} is decimal, so the files get 0{mode:o}"
            warning = UNLIKELY(f"{why}: write {int(str(mode), 8)}, which is 0{mode}")
            yield f"volumes{written_path(path)}", warning


def warnings_of_container(container: Mapping[str, Any]) -> Iterator[tuple[str, Message]]:
    """The warnings about one container in its stored form, each with the path inside the container."""
    resources = container.get("resources") or {}
    for field, warned in product(("limits", "requests"), (too_small, too_large)):
        for name, warning in warned(resources.get(field) or {}):
            yield f"resources.{field}.{name}", warning
    ports = {port.get("name") for port in container.get("ports") or ()}
    for probe, action in product(_PROBES, _ACTIONS):
        port = value_at(container, probe, action, "port")
        if isinstance(port, str) and port not in ports:
            why = f"there is no port named {quoted(port)}: the probe always fails"
            yield f"{probe}.{action}.port", _PROBE(why)


def too_small(amounts: Mapping[str, Any]) -> Iterator[tuple[str, Message]]:
    """A warning for each amount of a container's resources that is too little for any container."""
    for name in _BYTES:
        if 0 < _units(amounts, name) < 2**20:
            why = "is less than a mebibyte, too little for any container: write Mi or Gi"
            yield name, UNLIKELY(f"{amounts[name]} {why}")


def too_large(amounts: Mapping[str, Any]) -> Iterator[tuple[str, Message]]:
    """A warning if a container's resources are more than a node has."""
    cores, memory = _units(amounts, "cpu"), _units(amounts, "memory")
    if memory >= _MUCH_MEMORY:
        yield "memory", UNLIKELY(f"{amounts['memory']} is more than a node has: write Mi or Gi")
    elif cores >= _MANY_CORES and memory < _WHOLE_MACHINE:
        amount = str(amounts["cpu"])
        meant = amount.lower() if amount.endswith("M") else f"{int(cores)}m"
        yield "cpu", UNLIKELY(f"is {int(cores)} whole cores: write {meant} for millicores")


def _units(amounts: Mapping[str, Any], name: str) -> float:
    return quantity_nanos(amounts.get(name) or 0) / 10**9


def running_containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The containers and sidecars that run for the pod's whole lifetime, each with its path in the pod."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(field) or ()):
            if container and (field == "containers" or container.get("restartPolicy") == "Always"):
                yield f"{field}[{index}]", container


def warn_of_hidden_characters(template: Fields) -> None:
    """Note invisible characters in a template, except in values that already have a problem.

    Text with ordinary spaces is skipped: people read it, so it can also contain non-breaking spaces.
    """
    if "\\u" not in dumps(template.value):  # all characters are ASCII
        return
    wrong = {finding.path for finding in (*template.findings.problems, *template.findings.unknown)}
    for path, item in entries(template.value):
        is_text = isinstance(item, str) and len(item) <= _LONGEST_SHORT_TEXT and " " not in item
        if is_text and hidden_character(item) and template.at(written_path(path)) not in wrong:
            why = f"{quoted(item)} contains an invisible character: retype it"
            template.warning(written_path(path), _INVISIBLE(why))


def entries(value: Any, path: Path = None) -> Iterator[tuple[tuple[Path, str | int], Any]]:
    """Every nested value at any depth, with its path."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (path, key), item
        if isinstance(item, dict | list):
            yield from entries(item, (path, key))


def warnings_beside_others(worker: WorkerSpec) -> Iterator[tuple[str, Message]]:
    """The warnings about settings that keep new versions off old versions' nodes, each with its path."""
    pod = worker.template.content.get("spec") or {}
    for index, term in enumerate(value_at(pod, "affinity", "podAntiAffinity", _REQUIRED) or ()):
        if _keeps_off(term, worker):
            why = f"keeps a new version's pods off each {term['topologyKey']} where an old version runs"
            remedy = f"{_UNTIL}: add matchLabelKeys: [{BUILD_ID_LABEL}]"
            yield f"affinity.podAntiAffinity.{_REQUIRED}[{index}]", _APART(f"{why}{remedy}")
    for index, constraint in enumerate(pod.get("topologySpreadConstraints") or ()):
        if warning := _warning_of_spread(constraint, worker):
            yield f"topologySpreadConstraints[{index}]", warning
    labels = {_HASH, *pod_labels(worker.template.content, worker.name, worker.build_id)}
    on_host = pod.get("hostNetwork")
    for place, container in running_containers(pod):
        for index, variable in enumerate(container.get("env") or ()):
            label = label_at(value_at(variable, "valueFrom", "fieldRef", "fieldPath"))
            if label and label not in labels:
                why = f"the pods have no label {label}, so {variable['name']} is empty: write its value"
                yield f"{place}.env[{index}].valueFrom.fieldRef.fieldPath", _NO_LABEL(why)
        for index, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort") or (on_host and port["containerPort"])
            if number:
                why = f"{number} keeps a new version's pods off each node where an old version runs"
                field = "hostPort" if port.get("hostPort") else "containerPort"
                remedy = f"{_UNTIL}: remove {'hostNetwork' if on_host else 'it'}"
                yield f"{place}.ports[{index}].{field}", _APART(f"{why}{remedy}")


def label_at(path: Any) -> str:
    """The label that a field reference refers to; empty if it refers to something else."""
    match = _LABEL.fullmatch(path) if isinstance(path, str) else None
    return match[1] if match else ""


def _warning_of_spread(constraint: Mapping[str, Any], worker: WorkerSpec) -> Message | None:
    """The warning about a constraint that spreads no pods, or that also counts old versions' pods.

    https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
    """
    selector, labels = constraint.get("labelSelector"), _labels_of(worker, worker.build_id)
    # without a selector, a constraint selects no pods; with an empty one, all pods of the namespace
    if selector is None or not selects(selector, labels):
        [(name, value)] = list(selector_labels(worker.name, "").items())[:1]
        return _SPREAD(f"selects none of this worker's pods, so they are not spread: select {name}: {value}")
    if constraint.get("whenUnsatisfiable") != "DoNotSchedule" or not _selects_others(constraint, worker):
        return None
    why = "also counts the pods of draining versions, so pods of a new version may stay Pending"
    return _APART(f"{why}: add matchLabelKeys: [{BUILD_ID_LABEL}]")


def _keeps_off(term: Mapping[str, Any], worker: WorkerSpec) -> bool:
    """Whether an anti-affinity term also selects the pods of other versions.

    https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
    """
    selector, spaces = term.get("labelSelector"), term.get("namespaces") or []
    is_here = worker.namespace in spaces or term.get("namespaceSelector") == {}
    if selector is None or not (is_here or not (spaces or term.get("namespaceSelector"))):
        return False
    return _selects_others(term, worker)


def _labels_of(worker: WorkerSpec, build_id: str) -> dict[str, str]:
    """The labels of a version's pods, including the label that a ReplicaSet adds."""
    return {**pod_labels(worker.template.content, worker.name, build_id), _HASH: build_id}


def _selects_others(rule: Mapping[str, Any], worker: WorkerSpec) -> bool:
    """Whether a rule's labelSelector, with its matchLabelKeys, also selects the pods of other versions."""
    labels, other_labels = (_labels_of(worker, name) for name in "ab")
    same, other = (rule.get(field) or () for field in ("matchLabelKeys", "mismatchLabelKeys"))
    return (
        selects(rule["labelSelector"], other_labels)
        and all(labels[key] == other_labels[key] for key in same if key in labels)
        and all(labels[key] != other_labels[key] for key in other if key in labels)
    )


def warn_of_claims(
    specs: Iterable[SpecDocument],
    workers: Iterable[WorkerSpec],
    documents: Iterable[Document],
    namespace: str,
) -> None:
    """Note each volume whose PersistentVolumeClaim allows only one pod or node.

    Claims are found among `documents`. A document without a namespace is in `namespace`. If that is empty
    too, any worker can use its claim.
    """
    # twgen has no permission to read claims in the cluster, and a warning does not justify that permission
    claims = {
        (str(value_at(document.value, "metadata", "namespace") or namespace), name): modes
        for document in documents
        if GroupKind.of(document.value) == _CLAIM
        and isinstance(name := value_at(document.value, "metadata", "name"), str)
        and isinstance(modes := value_at(document.value, "spec", "accessModes"), list)
    }
    fields = {id(spec.document): spec.fields for spec in specs} if claims else {}
    for worker in workers if claims else ():
        # a pod template has no hash if it has errors, which are already reported
        pod = worker.template.content["spec"] if worker.template.hash else {}
        for index, volume in enumerate(pod.get("volumes") or ()):
            name = value_at(volume, "persistentVolumeClaim", "claimName")
            modes = claims.get((worker.namespace, name)) or claims.get(("", name)) or []
            may_be_shared = any(mode in modes for mode in _OF_MANY) or _is_on_one_node(pod)
            why = ""
            if _OF_ONE_POD in modes:
                why = f"{_OF_ONE_POD}, so no pod of a new version starts while an old version has one"
            elif _OF_ONE_NODE in modes and not may_be_shared:
                so = "so a new version's pods can start only on the node of the old version's pods"
                why = f"{_OF_ONE_NODE}, {so}"
            if why:
                place = f"template.spec.volumes[{index}].persistentVolumeClaim.claimName"
                warning = f"claim {name} is {why}: use a ReadWriteMany claim"
                fields[id(worker.document)].warning(place, _APART(warning))


def _is_on_one_node(pod: Mapping[str, Any]) -> bool:
    """Whether the spec seems to place all of the worker's pods on one node."""
    nodes = value_at(pod, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms") or ()
    keys = {item.get("key") for term in nodes for item in term.get("matchExpressions") or ()}
    near = value_at(pod, "affinity", "podAffinity", _REQUIRED) or ()
    keys |= {term.get("topologyKey") for term in near} | (pod.get("nodeSelector") or {}).keys()
    return bool(pod.get("nodeName")) or _HOST_NAME in keys


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether the selector matches the labels.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
    """
    wanted, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    return (
        isinstance(wanted, dict)
        and isinstance(expressions, list)
        and all(labels.get(name) == value for name, value in wanted.items())
        and all(_fits(expression, labels) for expression in expressions)
    )


def _fits(expression: Any, labels: Mapping[str, str]) -> bool:
    name, values = str(value_at(expression, "key")), value_at(expression, "values")
    within = isinstance(values, list) and labels.get(name) in values
    fits = {"In": within, "NotIn": not within, "Exists": name in labels, "DoesNotExist": name not in labels}
    return fits.get(str(value_at(expression, "operator")), False)
