"""Which kinds twgen reads, and what they used to be called."""

from dataclasses import dataclass
from typing import Any

CONTROLLER_API = "temporal.io/v1alpha1"
TWGEN_API = "twgen.io/v1alpha1"

WORKER = "WorkerDeployment"
CONNECTION = "Connection"
CLUSTER_CONNECTION = "ClusterConnection"
ATTACHED = "WorkerResourceTemplate"
POLICY = "RolloutPolicy"
SNAPSHOT = "Snapshot"
LEDGER = "Ledger"
PLAN = "Plan"
TIMELINE = "Timeline"
STATUS = "Status"

_OLD_KINDS = {
    "TemporalWorkerDeployment": WORKER,
    "TemporalWorker": WORKER,
    "TemporalConnection": CONNECTION,
    "TemporalWorkerOwnedResource": ATTACHED,
}
_KINDS = {
    CONTROLLER_API: {WORKER, CONNECTION, CLUSTER_CONNECTION, ATTACHED, *_OLD_KINDS},
    TWGEN_API: {POLICY, SNAPSHOT, LEDGER, PLAN, STATUS, TIMELINE},
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a document is: today's name of its kind, and the name it goes by in the file."""

    name: str
    written: str


def kind_of(value: Any) -> Kind | None:
    """The kind of a document that twgen reads, old names included; None: it is somebody else's."""
    if not isinstance(value, dict):
        return None
    written = value.get("kind")
    if not isinstance(written, str) or written not in _KINDS.get(str(value.get("apiVersion")), ()):
        return None
    return Kind(_OLD_KINDS.get(written, written), written)


def is_ours(value: dict[str, Any]) -> bool:
    """The document belongs to twgen's own API group, so it must never reach a cluster."""
    return str(value.get("apiVersion")).partition("/")[0] == TWGEN_API.partition("/")[0]
