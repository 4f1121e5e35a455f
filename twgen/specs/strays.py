"""Find templates and policies whose worker is not among the documents."""

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from twgen.model.paths import value_at
from twgen.model.problem import Finding, did_you_mean, quoted
from twgen.specs import kinds
from twgen.specs.spec_document import SpecDocument

_REFERENCES = {kinds.ATTACHED: "workerDeploymentRef", kinds.POLICY: "workerRef"}
_REMEDY = ": write the name of an existing worker, give its file too, or remove this document"


def note_strays(
    specs: Iterable[SpecDocument], uncertain: AbstractSet[str], workers: Collection[tuple[str, str]]
) -> None:
    """Note each template and policy that names no worker; `workers` are pairs of namespace and name.

    It is an error, because a worker would run without its autoscaler and nobody would notice. If there is no
    worker at all, it is a warning: somebody checks a single file, or removed the last worker. A reference
    that may mean one of the `uncertain` names or kinds is not reported.
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
            spec.findings.warnings.append(Finding("metadata.namespace", message))
        if not isinstance(worker, str) or not worker or uncertain & {worker, kinds.WORKER}:
            continue
        if (spec.namespace, worker) in workers:
            continue
        similar = did_you_mean(worker, (name for place, name in workers if place == spec.namespace))
        elsewhere = sorted(place for place, name in workers if name == worker)
        hint = f"; there is one in namespace {quoted(elsewhere[0])}" if elsewhere else similar or _REMEDY
        message = f"there is no worker {quoted(worker)} in namespace {quoted(spec.namespace)}"
        note = spec.fields.problem if workers else spec.fields.warning
        note(f"{path}.name", f"{message} among the documents{hint}")
