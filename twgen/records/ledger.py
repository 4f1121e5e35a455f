"""The ledger: every version's Deployment as it was rendered, kept in Git beside the specs."""

from collections.abc import Iterable, Mapping
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.document import Document
from twgen.model.world import RecordedDeployment
from twgen.records.deployments import recorded_deployment

API_VERSION = "twgen.io/v1alpha1"
KIND = "Ledger"
FILE_NAME = "twgen.lock.yaml"


def read_ledgers(documents: Iterable[Document]) -> dict[tuple[str, str], RecordedDeployment]:
    """The recorded Deployments by worker and build ID; raises InvalidInput for a ledger that is none."""
    recorded: dict[tuple[str, str], RecordedDeployment] = {}
    for document in documents:
        if document.value.get("apiVersion") != API_VERSION:
            raise InvalidInput(f"{document.source}: this twgen reads ledgers of {API_VERSION}: upgrade it")
        try:
            entries = [_entry(item) for item in document.value.get("versions") or ()]
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"{document.source}: not a ledger: {error!r}") from error
        recorded.update(entries)
    return recorded


def ledger_entry(
    worker: str, build_id: str, recorded_at: str, deployment: Mapping[str, Any]
) -> dict[str, Any]:
    """One version of a ledger; `worker` is `<Kubernetes namespace>/<worker>`."""
    return {"worker": worker, "buildID": build_id, "recordedAt": recorded_at, "deployment": deployment}


def _entry(item: Mapping[str, Any]) -> tuple[tuple[str, str], RecordedDeployment]:
    deployment = item["deployment"]
    if not deployment["spec"]["template"]["spec"].get("containers"):
        raise KeyError("containers")
    return (item["worker"], item["buildID"]), recorded_deployment(deployment)
