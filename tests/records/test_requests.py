"""Requests and answers that anybody may have written."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.planning.test_requests import MOVING
from tests.strategies import NOW
from twgen.model.requests import Answer, AnswerState, Request, Verb
from twgen.model.times import format_time
from twgen.records.requests import ANSWER_ENTRY, parse_answer, parse_pending, write_answer, write_request
from twgen.records.rollout_status import parse_rollout_status, write_rollout_status
from twgen.reporting.json_text import json_text
from twgen.reporting.status.fleet import fleet_document, request_phrase
from twgen.versioning.names import REQUEST

ASKED = Request("r1", Verb.ABORT, "v2", NOW)
BY_HAND = {
    "request": {"id": "r0", "verb": "Abort", "target": "v2", "at": format_time(NOW)},
    "state": "Done",
    "message": "it was done",
}


def status_map(annotation: str, **answer: Any) -> dict[str, Any]:
    name = "pay-rollout-status"
    metadata = {
        "namespace": "shop",
        "name": name,
        "resourceVersion": "7",
        "annotations": {REQUEST: annotation},
    }
    entries = write_rollout_status(MOVING) | {ANSWER_ENTRY: json.dumps(BY_HAND | answer)}
    return {"metadata": metadata, "data": entries}


@pytest.mark.parametrize(
    "changes",
    [{"percentage": 10**400}, {"message": "\ud800"}, {"\ud800": 1}, {"state": ["Done"]}, {"request": None}],
)
def test_answer_that_nobody_can_read_leaves_the_status_readable(changes: dict[str, Any]) -> None:
    status = parse_rollout_status(status_map(write_request(ASKED), **changes))
    assert status.answer is None
    assert status.pending is not None, "the request waits unseen"
    assert json_text(fleet_document([status], NOW)).encode()


def test_permitted_verbs_have_the_order_that_the_buttons_of_argo_cd_know() -> None:
    permits = (Verb.RETRY, Verb.PROMOTE, Verb.RETRY)
    assert write_rollout_status(replace(MOVING, permits=permits))["permits"] == "Promote Retry"


@pytest.mark.parametrize(
    ("name", "read"),
    [("josé@laptop", "jos?@laptop"), ("an\na", "an?a"), ("\ud800", "?"), ("a" * 300, "a" * 200)],
)
def test_request_of_a_person_of_any_name_can_be_read(name: str, read: str) -> None:
    pending = parse_pending(status_map(write_request(ASKED._replace(by=name))))
    assert pending
    assert pending.wrong == ""
    assert pending.request == ASKED._replace(by=read)


@pytest.mark.parametrize("message", ["x" * 9000, "\x01" * 9000, "\ud800"])
def test_answer_can_be_read_however_long_its_sentence_is(message: str) -> None:
    answer = Answer(ASKED._replace(by="b" * 200), AnswerState.DONE, message)
    manifest = status_map(write_request(ASKED))
    manifest["data"][ANSWER_ENTRY] = write_answer(answer)
    read = parse_answer(manifest)
    assert read
    assert read._replace(message="") == answer._replace(message="")


@pytest.mark.parametrize("text", ['{"\\ud800": 1}', '{"id": "\\ud800"}', "[" * 8000, '{"at": 1e999}'])
def test_what_is_said_of_an_annotation_can_be_printed(text: str) -> None:
    status = parse_rollout_status(status_map(text))
    assert request_phrase(status, NOW).encode()
