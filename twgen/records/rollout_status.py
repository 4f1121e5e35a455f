"""Reads and writes the Status document, and the ConfigMap with a rollout's status, requests and answers.

People send requests as annotations of the ConfigMap, and twgen writes the answers into the ConfigMap's data.
Abort requests have an annotation and a data entry of their own.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeGuard

from twgen.cluster.field_managers import is_from_manifest
from twgen.errors import InvalidInput
from twgen.model.analysis import Judgement
from twgen.model.draining import BatchAction, DrainingAction, ScheduledAction
from twgen.model.paths import value_at
from twgen.model.plan import Phase
from twgen.model.record_shapes import document_of, record_of
from twgen.model.rollout import Answer, PendingRequest, Request, Verb
from twgen.model.shapes import Findings, Shape
from twgen.model.status import RolloutStatus, Status
from twgen.model.times import format_time, parse_time
from twgen.records.intent import Intent
from twgen.versioning.names import (
    ABORT_REQUEST,
    REQUEST,
    REQUEST_ANNOTATIONS,
    TWGEN_API,
    is_dns_name,
    rollout_status_name,
)
from twgen.yaml.reader import read_documents
from twgen.yaml.source import Budget, YamlError

ANSWER_ENTRIES = {ABORT_REQUEST: "abort-request.json", REQUEST: "request.json"}
"""The ConfigMap entry with the newest answer to the requests in each annotation."""
_LONGEST = 16_384
"""The maximum length of a request or an answer, because anyone who can patch the ConfigMap can write them."""
_REQUEST = record_of(Request)
_ANSWER = record_of(Answer)


def write_request(request: Request) -> str:
    """The annotation's value for a request, without invalid characters in the requester's name."""
    name = re.sub("[^ -~]", "?", request.by)[:200]
    return json.dumps(_REQUEST.write(request._replace(by=name)))


def write_answer(answer: Answer) -> str:
    """The ConfigMap entry's value for an answer. A long message is cut, so that twgen can read the entry."""
    # in JSON, one character can become an escape sequence of six characters
    message = answer.message[:1000].encode(errors="backslashreplace").decode()
    return json.dumps(_ANSWER.write(answer._replace(message=message)), ensure_ascii=False, indent=1) + "\n"


def annotation_of(verb: Verb) -> str:
    """The annotation for requests with this verb."""
    return ABORT_REQUEST if verb is Verb.ABORT else REQUEST


def written_requests(metadata: Mapping[str, Any]) -> str:
    """All request annotations that people have set, valid or not, as one text for comparison."""
    annotations = value_at(metadata, "annotations") or {}
    return "; ".join(
        f"{name}: {annotations[name]}"
        for name in REQUEST_ANNOTATIONS
        if name in annotations and not is_from_manifest(metadata, name)
    )


def parse_pending(manifest: Mapping[str, Any]) -> tuple[PendingRequest, ...]:
    """The requests in a status ConfigMap, in the order in which twgen answers them."""
    annotations = value_at(manifest, "metadata", "annotations") or {}
    return tuple(
        _pending(manifest, name, annotations[name]) for name in REQUEST_ANNOTATIONS if name in annotations
    )


def _pending(manifest: Mapping[str, Any], name: str, written: Any) -> PendingRequest:
    metadata, answer, wrong = manifest["metadata"], None, ""
    request: Request | None = None
    try:
        answer = parse_answer(manifest, name)
    except InvalidInput as error:
        wrong = f"it may already have been carried out, because the newest answer cannot be read ({error})"
    try:
        request = _parsed(written, _REQUEST)
    except InvalidInput as error:
        wrong = f"its annotation {name} cannot be read: {error}"
    if request and name == ABORT_REQUEST and request.verb is not Verb.ABORT:
        wrong, request = f"its annotation {name} asks for {request.verb}", None
    if is_ignored := is_from_manifest(metadata, name):
        wrong, request = f"its annotation {name} is ignored: it is from a manifest, not from a person", None
    return PendingRequest(name, request, wrong, answer, str(metadata.get("resourceVersion")), is_ignored)


def parse_answers(manifest: Mapping[str, Any]) -> tuple[Answer, ...]:
    """The readable answers in a status ConfigMap, beginning with the answer to the newest request."""
    answers = []
    for name in REQUEST_ANNOTATIONS:
        with suppress(InvalidInput):
            answers.append(parse_answer(manifest, name))
    return tuple(sorted(filter(None, answers), key=lambda answer: answer.request.at, reverse=True))


def parse_answer(manifest: Mapping[str, Any], annotation: str) -> Answer | None:
    """The newest answer to an annotation's requests, or None. Raises InvalidInput if it cannot be read."""
    entry = ANSWER_ENTRIES[annotation]
    written = value_at(manifest, "data", entry)
    if written is None:
        return None
    try:
        answer: Answer = _parsed(written, _ANSWER)
    except InvalidInput as error:
        metadata = manifest["metadata"]
        where = f"ConfigMap {metadata.get('namespace')}/{metadata.get('name')}"
        raise InvalidInput(f"{where}, {entry}: {error}") from error
    return answer


def _parsed(text: Any, shape: Shape) -> Any:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InvalidInput(f"it must be JSON of at most {_LONGEST} characters")
    try:
        value = json.loads(text)
        # raises ValueError for a lone surrogate, which cannot be encoded
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidInput("it must be JSON") from error
    findings = Findings(most=1)
    parsed = shape.read(value, "", findings)
    if findings.problems:
        finding = findings.problems[0]
        raise InvalidInput(f"{finding.path} {finding.message}".strip())
    return parsed


def _scheduled_action(
    build_id: str, action: BatchAction, workflow_types: tuple[str, ...], at: datetime, **more: Any
) -> ScheduledAction:
    """Make an action from a document, which does not contain the policy entry that the action comes from."""
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
"""The shapes of the values that both Plan and Status documents contain."""
STATUS = document_of(TWGEN_API, "Status", Status, shapes=REPORTED, is_printed=True)


def write_rollout_status(status: RolloutStatus) -> dict[str, str]:
    """The entries of the status ConfigMap."""
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
        # the verbs are in a fixed order, because Argo CD's Lua scripts can only compare the whole text
        "permits": " ".join(verb for verb in Verb if verb in status.permits),
        # this entry alone indicates success, because the phase may still belong to an earlier intent
        "settled": status.intent if status.phase is Phase.SETTLED else "",
        "status.json": json.dumps(document, ensure_ascii=False, indent=1) + "\n",
    }


def parse_rollout_status(manifest: Mapping[str, Any], budget: Budget | None = None) -> RolloutStatus:
    """Read the status in a ConfigMap. Raises InvalidInput if it is missing or is another worker's status."""
    data, metadata = manifest.get("data") or {}, manifest["metadata"]
    where = f"ConfigMap {metadata.get('namespace')}/{metadata.get('name')}"
    unusable = f"{where} does not contain the status of a rollout: delete it"
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
    except (KeyError, ValueError, YamlError) as error:
        raise InvalidInput(f"{where}: {error}" if budget and budget.is_spent else unusable) from error
    if not (is_its_own and is_dns_name(worker) and 0 <= (status.percentage or 0) <= 100):
        raise InvalidInput(unusable)
    if document == {}:
        return status
    findings = Findings(most=1)
    report: Status = STATUS.read(document, None, findings)
    if findings.count or [reported.worker for reported in report.workers] != [status.worker]:
        # a person or another twgen release wrote the document
        return replace(status, message=f"{status.message}; the version data in its status cannot be read")
    return replace(status, report=report)


def is_of(status: RolloutStatus | None, intent: Intent) -> TypeGuard[RolloutStatus]:
    """Whether there is a status for this intent. A status that names no intent matches any intent."""
    if not status:
        return False
    return status.intent in {"", intent.hash} and status.intent_uid in {"", intent.uid}
