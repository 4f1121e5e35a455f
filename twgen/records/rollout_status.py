"""The Status document, and the status of a rollout in a cluster: a ConfigMap that has one."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.analysis import Judgement
from twgen.model.draining import BatchAction, DrainingAction, ScheduledAction
from twgen.model.plan import Phase
from twgen.model.record_shapes import document_of, record_of
from twgen.model.requests import Verb
from twgen.model.shapes import Findings
from twgen.model.status import RolloutStatus, Status
from twgen.model.times import format_time, parse_time
from twgen.records.intent import Intent
from twgen.records.requests import parse_answers, parse_pending
from twgen.versioning.names import TWGEN_API, is_dns_name, rollout_status_name
from twgen.yaml.limits import Budget
from twgen.yaml.reader import read_documents
from twgen.yaml.source import YamlError

_ALL = 100
"""Percent."""
_UNREAD = "the version data in its status cannot be read"


def _scheduled_action(
    build_id: str, action: BatchAction, workflow_types: tuple[str, ...], at: datetime, **more: Any
) -> ScheduledAction:
    """As far as a document has it: it identifies no entry of a policy."""
    return ScheduledAction(build_id, DrainingAction(action, workflow_types), "", "", at, at, **more)


REPORTED = {
    Judgement: record_of(Judgement, "metric", "verdict", "value", "bound", "because", is_printed=True),
    ScheduledAction: record_of(
        ScheduledAction,
        *("build_id", "action", "workflow_types", "at", "is_begun", "workflows", "repeats", "held_by"),
        make=_scheduled_action,
        is_printed=True,
    ),
}
"""How documents for people and programs have what a plan and a status share."""
STATUS = document_of(TWGEN_API, "Status", Status, shapes=REPORTED, is_printed=True)


def write_rollout_status(status: RolloutStatus) -> dict[str, str]:
    """The entries of the ConfigMap."""
    document = STATUS.write(status.report) if status.report else {}
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
        "status.json": json.dumps(document, ensure_ascii=False, indent=1) + "\n",
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
            report=None,
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
            if document == {}:
                return status
            findings = Findings(most=1)
            report: Status = STATUS.read(document, None, findings)
            if findings.count or [reported.worker for reported in report.workers] != [status.worker]:
                # a person or another release wrote it
                return replace(status, message=f"{status.message}; {_UNREAD}")
            return replace(status, report=report)
        why = None
    except (KeyError, ValueError, YamlError) as error:
        if budget and budget.is_spent:
            raise InvalidInput(f"{where}: {error}") from error
        why = error
    raise InvalidInput(f"{where} does not hold the status of a rollout: delete it") from why


def is_of(status: RolloutStatus, intent: Intent) -> bool:
    """The status is about this intent, not an earlier one. A missing entry fits any intent."""
    return status.intent in {"", intent.hash} and status.intent_uid in {"", intent.uid}
