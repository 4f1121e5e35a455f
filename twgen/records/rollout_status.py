"""The status of a rollout in a cluster: entries of a ConfigMap, readable without Git and Temporal."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.plan import Phase
from twgen.model.record_shapes import document_of
from twgen.model.report import Report
from twgen.model.requests import Verb
from twgen.model.shapes import Findings
from twgen.model.status import RolloutStatus
from twgen.model.times import format_time, parse_time
from twgen.records.intent import Intent
from twgen.records.requests import parse_answers, parse_pending
from twgen.versioning.names import TWGEN_API, is_dns_name, rollout_status_name
from twgen.yaml.limits import Budget
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError

_ALL = 100
"""Percent."""
REPORT = document_of(TWGEN_API, "Status", Report, shapes={})
_UNREAD = "the version data in its status cannot be read"


def write_rollout_status(status: RolloutStatus) -> dict[str, str]:
    """The entries of the ConfigMap."""
    return {
        "worker": status.worker,
        "phase": status.phase.value,
        "reason": str(status.reason),
        "message": status.message,
        "target": status.target,
        **({} if status.current is None else {"current": status.current}),
        **({} if status.percentage is None else {"percentage": f"{status.percentage:g}"}),
        "since": format_time(status.since),
        "intent": status.intent,
        "failing": status.failing,
        # always in the same order: Argo CD's Lua can only compare the whole text
        "permits": " ".join(verb for verb in Verb if verb in status.permits),
        # one entry for one condition: the phase alone may be about an earlier intent
        "settled": status.intent if status.phase is Phase.SETTLED else "",
        "status.json": json.dumps(status.document, ensure_ascii=False, indent=1) + "\n",
    }


def parse_rollout_status(manifest: Mapping[str, Any], budget: Budget | None = None) -> RolloutStatus:
    """Read the status in a ConfigMap. Raises InvalidInput if it has none, or another worker's."""
    data, metadata = manifest.get("data") or {}, manifest["metadata"]
    where = f"ConfigMap {metadata.get('namespace')}/{metadata.get('name')}"
    try:
        [document] = read_documents(data["status.json"], budget)
        status = RolloutStatus(
            worker=data["worker"],
            phase=Phase(data["phase"]),
            reason=data["reason"],
            message=data["message"],
            target=data["target"],
            current=data.get("current"),
            percentage=float(data["percentage"]) if "percentage" in data else None,
            since=parse_time(data["since"]),
            document=document,
            intent=data.get("intent", ""),
            failing=data.get("failing", ""),
            permits=tuple(verb for verb in Verb if verb in data.get("permits", "").split()),
            answers=parse_answers(manifest),
            pending=parse_pending(manifest),
            intent_uid=next((owner["uid"] for owner in metadata.get("ownerReferences") or ()), ""),
            resource_version=metadata.get("resourceVersion", ""),
        )
        namespace, _, worker = status.worker.partition("/")
        is_its_own = (namespace, rollout_status_name(worker)) == (metadata["namespace"], metadata["name"])
        if is_its_own and is_dns_name(worker) and 0 <= (status.percentage or 0) <= _ALL:
            if document == {} or _is_whole(document, status.worker):
                return status
            return replace(status, document={}, message=f"{status.message}; {_UNREAD}")
        why = None
    except (KeyError, ValueError, YamlError) as error:
        if budget and budget.is_spent:
            raise InvalidInput(f"{where}: {error}") from error
        why = error
    raise InvalidInput(f"{where} does not hold the status of a rollout: delete it") from why


def is_of(status: RolloutStatus, intent: Intent) -> bool:
    """The status is about this intent, not an earlier one. A missing entry fits any intent."""
    return status.intent in {"", intent.hash} and status.intent_uid in {"", intent.uid}


def _is_whole(document: Any, worker: str) -> bool:
    """The entry has the form that this release writes: a ConfigMap of one namespace misleads no reader."""
    findings = Findings(most=1)
    report = REPORT.read(document, None, findings)
    return not findings.count and [told.worker for told in report.workers] == [worker]
