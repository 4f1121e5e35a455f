"""A request to a rollout in a cluster, and its answer: an annotation and an entry of its status ConfigMap."""

import json
import re
from collections.abc import Mapping
from typing import Any

from twgen.errors import InvalidInput
from twgen.model.paths import value_at
from twgen.model.record_shapes import record_of
from twgen.model.requests import Answer, PendingRequest, Request
from twgen.model.shapes import Findings, Shape
from twgen.versioning.names import REQUEST

ANSWER_ENTRY = "request.json"
"""The entry of the ConfigMap with the newest answer."""
_LONGEST = 8192
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


def parse_pending(manifest: Mapping[str, Any]) -> PendingRequest | None:
    """The request of a status ConfigMap; None: it has none."""
    asked = value_at(manifest, "metadata", "annotations", REQUEST)
    if asked is None:
        return None
    version = str(value_at(manifest, "metadata", "resourceVersion"))
    answer, wrong = None, ""
    try:
        answer = parse_answer(manifest)
    except InvalidInput as error:
        wrong = f"it may have been done already, since the newest answer cannot be read ({error})"
    try:
        return PendingRequest(_parsed(asked, _REQUEST), wrong, answer, version)
    except InvalidInput as error:
        return PendingRequest(None, f"its annotation {REQUEST} cannot be read: {error}", answer, version)


def parse_answer(manifest: Mapping[str, Any]) -> Answer | None:
    """The newest answer in a status ConfigMap; None: it has none. Raises InvalidInput."""
    written = value_at(manifest, "data", ANSWER_ENTRY)
    if written is None:
        return None
    try:
        answer: Answer = _parsed(written, _ANSWER)
    except InvalidInput as error:
        metadata = manifest["metadata"]
        where = f"ConfigMap {metadata.get('namespace')}/{metadata.get('name')}"
        raise InvalidInput(f"{where}, {ANSWER_ENTRY}: {error}") from error
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
