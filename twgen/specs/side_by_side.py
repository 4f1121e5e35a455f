"""What the pods of two versions cannot both have, though an old one keeps its own until it is drained."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twgen.model.operator import GroupKind
from twgen.model.paths import value_at
from twgen.model.problem import Document
from twgen.model.spec import WorkerSpec
from twgen.specs.doubts import running_containers
from twgen.specs.selectors import selects
from twgen.specs.spec_document import SpecDocument
from twgen.versioning.names import BUILD_ID_LABEL, selector_labels

_CLAIM = GroupKind("", "PersistentVolumeClaim")
_OF_ONE_POD, _OF_ONE_NODE = "ReadWriteOncePod", "ReadWriteOnce"
_OF_MANY = ("ReadWriteMany", "ReadOnlyMany")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HOST_NAME = "kubernetes.io/hostname"
_HASH = "pod-template-hash"
"""What a Deployment labels the pods of each template with."""
_UNTIL = " until it is drained"


def doubts_beside_others(worker: WorkerSpec) -> Iterator[tuple[str, str]]:
    """What keeps a new version's pods off the nodes of an old one's, each with its path in the pod."""
    pod = worker.template.content.get("spec") or {}
    for index, term in enumerate(value_at(pod, "affinity", "podAntiAffinity", _REQUIRED) or ()):
        if _keeps_off(term, worker):
            why = f"keeps a new version's pods off each {term['topologyKey']} where an old version runs"
            remedy = f"{_UNTIL}: add matchLabelKeys: [{BUILD_ID_LABEL}]"
            yield f"affinity.podAntiAffinity.{_REQUIRED}[{index}]", f"{why}{remedy}"
    on_host = pod.get("hostNetwork")
    for place, container in running_containers(pod):
        for index, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort") or (on_host and port["containerPort"])
            if number:
                why = f"{number} keeps a new version's pods off each node where an old version runs"
                field = "hostPort" if port.get("hostPort") else "containerPort"
                remedy = f"{_UNTIL}: remove {'hostNetwork' if on_host else 'it'}"
                yield f"{place}.ports[{index}].{field}", f"{why}{remedy}"


def _keeps_off(term: Mapping[str, Any], worker: WorkerSpec) -> bool:
    """A term of an anti-affinity is about the pods of other versions too.

    https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
    """
    selector, spaces = term.get("labelSelector"), term.get("namespaces") or []
    is_here = worker.namespace in spaces or term.get("namespaceSelector") == {}
    if selector is None or not (is_here or not (spaces or term.get("namespaceSelector"))):
        return False
    own = value_at(worker.template.content, "metadata", "labels") or {}
    ours, theirs = ({**own, **selector_labels(worker.name, name), _HASH: name} for name in "ab")
    same, other = (term.get(field) or () for field in ("matchLabelKeys", "mismatchLabelKeys"))
    return (
        selects(selector, theirs)
        and all(ours[key] == theirs[key] for key in same if key in ours)
        and all(ours[key] != theirs[key] for key in other if key in ours)
    )


def warn_of_claims(
    specs: Iterable[SpecDocument],
    workers: Iterable[WorkerSpec],
    documents: Iterable[Document],
    namespace: str,
) -> None:
    """Note each volume of a worker whose claim, one of these documents, only one pod or one node mounts.

    `namespace` is that of documents that name none; empty: not known, it may be any worker's.
    """
    # from the documents only: no Role of twgen reads claims, and a warning does not justify another right
    claims = {
        (str(value_at(document.value, "metadata", "namespace") or namespace), name): modes
        for document in documents
        if GroupKind.of(document.value) == _CLAIM
        and isinstance(name := value_at(document.value, "metadata", "name"), str)
        and isinstance(modes := value_at(document.value, "spec", "accessModes"), list)
    }
    fields = {id(spec.document): spec.fields for spec in specs} if claims else {}
    for worker in workers if claims else ():
        # without a hash the pod template has errors, which are reported already
        pod = worker.template.content["spec"] if worker.template.hash else {}
        for index, volume in enumerate(pod.get("volumes") or ()):
            name = value_at(volume, "persistentVolumeClaim", "claimName")
            modes = claims.get((worker.namespace, name)) or claims.get(("", name)) or []
            may_be_shared = any(mode in modes for mode in _OF_MANY) or _is_on_one_node(pod)
            if _OF_ONE_POD in modes:
                why = f"{_OF_ONE_POD}, so no pod of a new version starts while an old version has one"
            elif _OF_ONE_NODE in modes and not may_be_shared:
                why = (
                    f"{_OF_ONE_NODE}, so a new version's pods start only on the node of the old"
                    " version's pods"
                )
            else:
                continue
            place = f"template.spec.volumes[{index}].persistentVolumeClaim.claimName"
            doubt = f"claim {name} is {why}: use a ReadWriteMany claim"
            fields[id(worker.document)].warning(place, doubt)


def _is_on_one_node(pod: Mapping[str, Any]) -> bool:
    """All pods of the worker may be meant for one node."""
    nodes = value_at(pod, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms") or ()
    keys = {item.get("key") for term in nodes for item in term.get("matchExpressions") or ()}
    near = value_at(pod, "affinity", "podAffinity", _REQUIRED) or ()
    keys |= {term.get("topologyKey") for term in near} | (pod.get("nodeSelector") or {}).keys()
    return bool(pod.get("nodeName")) or _HOST_NAME in keys
