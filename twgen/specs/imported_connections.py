"""Import the Connections of unversioned workers: one for each address and its credentials."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

from twgen.model.paths import value_at
from twgen.specs.connections import NO_ADDRESS
from twgen.specs.imported_pods import Origin
from twgen.specs.imported_workers import FieldPath, Imported, Manifest, Running
from twgen.specs.kinds import CONNECTION
from twgen.versioning.names import CONTROLLER_API

_USUAL = "temporal"
"""The name of the Connection if the namespace needs only one."""


def connections_of(
    workers: Sequence[Running], existing: Mapping[str, Manifest], namespace: str
) -> list[Imported]:
    """The Connection of each of these workers, which are in the same namespace.

    Workers share a Connection if they have the same address and the same credentials. `existing` has the
    `spec` of each Connection that the namespace already has, by name.
    """
    addresses = {worker.pods.address.value for worker in workers} - {""}
    # a worker without an address gets the only address that there is
    only = addresses.pop() if len(addresses) == 1 else ""
    keys = [_key(worker, only, is_known=bool(addresses)) for worker in workers]
    made: dict[tuple[str, ...], Imported] = {}
    for first, key in zip(workers, keys, strict=True):
        if key in made:
            continue
        sharing = [worker for worker, other in zip(workers, keys, strict=True) if other == key]
        own = first.value["metadata"]["name"]
        spec, comment = _spec(sharing, only)
        usual = [_USUAL] if len(set(keys)) == 1 else []
        names = chain(usual, [own, f"{own}-{_USUAL}"], (f"{own}-{_USUAL}-{number}" for number in count(2)))
        # an address that a person must fill in can differ from every other
        is_known = spec["hostPort"] != NO_ADDRESS
        name = next(item for item in names if item not in existing or (is_known and existing[item] == spec))
        made[key] = _connection(name, first.place(namespace), spec, comment)
    return [made[key] for key in keys]


def _key(worker: Running, only: str, *, is_known: bool) -> tuple[str, ...]:
    """The address and credentials. Workers with the same key share a Connection."""
    pods = worker.pods
    address = pods.address.value or only
    # unknown addresses can differ
    unknown = () if address else (worker.value["metadata"]["name"] if is_known else pods.address.hint,)
    return (address, *unknown, *pods.key.values(), pods.certificate, pods.other_credentials)


def _spec(sharing: Iterable[Running], only: str) -> tuple[dict[str, Any], str]:
    """The `spec` of the Connection that these workers share, and the comment for its address."""
    all_pods = [worker.pods for worker in sharing]
    pods = all_pods[0]
    origins = [item.address if item.address.value or not only else Origin(only) for item in all_pods]
    credentials: dict[str, Any] = {"apiKeySecretRef": pods.key} if pods.key else {}
    if pods.certificate:
        credentials = {"mutualTLSSecretRef": {"name": pods.certificate}}
    needed = "" if credentials else "add apiKeySecretRef or mutualTLSSecretRef if the server needs one"
    said = dict.fromkeys(origin.comment() for origin in origins)
    comment = "; ".join(filter(None, (*said, needed)))
    return {"hostPort": origins[0].value or NO_ADDRESS, **credentials}, comment


def _connection(name: str, where: Manifest, spec: Manifest, comment: str) -> Imported:
    file = f"connection-{name}.yaml"
    head = {"apiVersion": CONTROLLER_API, "kind": CONNECTION, "metadata": {"name": name, **where}}
    missing = () if value_at(spec, "hostPort") != NO_ADDRESS else (f"{file}: fill in spec.hostPort",)
    comments: dict[FieldPath, str] = {("spec", "hostPort"): comment} if comment else {}
    return Imported(file, {**head, "spec": spec}, comments, missing, is_whole=False)
