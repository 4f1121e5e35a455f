"""The requests to a rollout in a cluster, and their answers: annotations and entries of its status ConfigMap.

An abort has an annotation and an entry of its own. So has everything else together.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from twgen.cluster.field_managers import is_from_manifest
from twgen.errors import InvalidInput
from twgen.model.paths import value_at
from twgen.model.record_shapes import record_of
from twgen.model.requests import Answer, PendingRequest, Request, Verb
from twgen.model.shapes import Findings, Shape
from twgen.versioning.names import ABORT_REQUEST, REQUEST, REQUEST_ANNOTATIONS

ANSWER_ENTRIES = {ABORT_REQUEST: "abort-request.json", REQUEST: "request.json"}
"""The entry of the ConfigMap with the newest answer to the requests of an annotation."""
_LONGEST = 16_384
"""Characters of a request or an answer: anyone who may patch the ConfigMap writes them."""
_LONGEST_NAME = 200
_LONGEST_MESSAGE = 1000
"""Characters, each of which JSON may write as six."""
_REQUEST = record_of(Request)
_ANSWER = record_of(Answer)


def write_request(request: Request) -> str:
    """The value of the annotation, with the requester's name in the characters that requests can have."""
    name = re.sub("[^ -~]", "?", request.by)[:_LONGEST_NAME]
    return json.dumps(_REQUEST.write(request._replace(by=name)))


def write_answer(answer: Answer) -> str:
    """The entry of the ConfigMap, with as much of its sentence as can be read again."""
    message = answer.message[:_LONGEST_MESSAGE].encode(errors="backslashreplace").decode()
    return json.dumps(_ANSWER.write(answer._replace(message=message)), ensure_ascii=False, indent=1) + "\n"


def annotation_of(verb: Verb) -> str:
    """The annotation that a request of this verb is written to."""
    return ABORT_REQUEST if verb is Verb.ABORT else REQUEST


def written_requests(metadata: Mapping[str, Any]) -> str:
    """What people request by annotations of this object, or have tried to; empty: nothing."""
    annotations = value_at(metadata, "annotations") or {}
    return "; ".join(
        f"{name}: {annotations[name]}"
        for name in REQUEST_ANNOTATIONS
        if name in annotations and not is_from_manifest(metadata, name)
    )


def parse_pending(manifest: Mapping[str, Any]) -> tuple[PendingRequest, ...]:
    """The requests of a status ConfigMap, in the order in which they are answered."""
    annotations = value_at(manifest, "metadata", "annotations") or {}
    return tuple(
        _pending(manifest, name, annotations[name]) for name in REQUEST_ANNOTATIONS if name in annotations
    )


def _pending(manifest: Mapping[str, Any], name: str, written: Any) -> PendingRequest:
    request: Request | None = None
    metadata, is_ignored = manifest["metadata"], is_from_manifest(manifest["metadata"], name)
    answer, wrong = None, ""
    try:
        answer = parse_answer(manifest, name)
    except InvalidInput as error:
        wrong = f"it may have been done already, since the newest answer cannot be read ({error})"
    try:
        request = _parsed(written, _REQUEST)
    except InvalidInput as error:
        wrong = f"its annotation {name} cannot be read: {error}"
    if request and name == ABORT_REQUEST and request.verb is not Verb.ABORT:
        wrong = f"its annotation {name} asks for {request.verb}"
        request = None
    if is_ignored:
        wrong = f"its annotation {name} is ignored: it is from a manifest, not from a person"
        request = None
    return PendingRequest(name, request, wrong, answer, str(metadata.get("resourceVersion")), is_ignored)


def parse_answers(manifest: Mapping[str, Any]) -> tuple[Answer, ...]:
    """The newest answers in a status ConfigMap that can be read, the one to the newest request first."""
    answers = []
    for name in REQUEST_ANNOTATIONS:
        with suppress(InvalidInput):
            answers.append(parse_answer(manifest, name))
    return tuple(sorted(filter(None, answers), key=lambda answer: answer.request.at, reverse=True))


def parse_answer(manifest: Mapping[str, Any], annotation: str) -> Answer | None:
    """The newest answer to the requests of an annotation; None: there is none. Raises InvalidInput."""
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
        # half a surrogate pair can be neither printed nor written
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidInput("it must be JSON") from error
    findings = Findings(most=1)
    parsed = shape.read(value, "", findings)
    if findings.problems:
        finding = findings.problems[0]
        raise InvalidInput(f"{finding.path} {finding.message}".strip())
    return parsed
