"""Requests and answers that anybody may have written."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.planning.test_requests import MOVING
from tests.strategies import NOW
from twgen.model.rollout import Answer, AnswerState, Request, Verb
from twgen.model.times import format_time
from twgen.records.rollout_status import (
    ANSWER_ENTRIES,
    STATUS,
    parse_answer,
    parse_pending,
    parse_rollout_status,
    write_answer,
    write_request,
    write_rollout_status,
)
from twgen.reporting.json_text import json_text
from twgen.reporting.status.lines import fleet_status, request_phrase
from twgen.versioning.names import ABORT_REQUEST, REQUEST

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
    entries = write_rollout_status(MOVING) | {ANSWER_ENTRIES[REQUEST]: json.dumps(BY_HAND | answer)}
    return {"metadata": metadata, "data": entries}


@pytest.mark.parametrize(
    "changes",
    [{"percentage": 10**400}, {"message": "\ud800"}, {"\ud800": 1}, {"state": ["Done"]}, {"request": None}],
)
def test_answer_that_nobody_can_read_leaves_the_status_readable(changes: dict[str, Any]) -> None:
    status = parse_rollout_status(status_map(write_request(ASKED), **changes))
    assert status.answers == ()
    assert status.pending, "the request waits unseen"
    assert json_text(STATUS.write(fleet_status([status], NOW))).encode()


def test_permitted_verbs_have_the_order_that_the_buttons_of_argo_cd_know() -> None:
    permits = (Verb.RETRY, Verb.PROMOTE, Verb.RETRY)
    assert write_rollout_status(replace(MOVING, permits=permits))["permits"] == "Promote Retry"


@pytest.mark.parametrize(
    ("name", "read"),
    [("josé@laptop", "jos?@laptop"), ("an\na", "an?a"), ("\ud800", "?"), ("a" * 300, "a" * 200)],
)
def test_request_of_a_person_of_any_name_can_be_read(name: str, read: str) -> None:
    [pending] = parse_pending(status_map(write_request(ASKED._replace(by=name))))
    assert pending.wrong == ""
    assert pending.request == ASKED._replace(by=read)


@pytest.mark.parametrize("message", ["x" * 9000, "\x01" * 9000, "\ud800"])
def test_answer_can_be_read_however_long_its_sentence_is(message: str) -> None:
    answer = Answer(ASKED._replace(by="b" * 200), AnswerState.DONE, message)
    manifest = status_map(write_request(ASKED))
    manifest["data"][ANSWER_ENTRIES[REQUEST]] = write_answer(answer)
    read = parse_answer(manifest, REQUEST)
    assert read
    assert read._replace(message="") == answer._replace(message="")


@pytest.mark.parametrize("text", ['{"\\ud800": 1}', '{"id": "\\ud800"}', "[" * 8000, '{"at": 1e999}'])
def test_what_is_said_of_an_annotation_can_be_printed(text: str) -> None:
    status = parse_rollout_status(status_map(text))
    assert request_phrase(status, NOW).encode()


def test_annotation_of_aborts_takes_nothing_else() -> None:
    manifest = status_map(write_request(ASKED._replace(verb=Verb.PROMOTE)))
    annotations = manifest["metadata"]["annotations"]
    annotations[ABORT_REQUEST] = annotations[REQUEST]
    abort, other = parse_pending(manifest)
    assert (abort.request, abort.wrong) == (None, f"its annotation {ABORT_REQUEST} asks for Promote")
    assert other.request


def test_abort_is_before_the_other_request_and_each_has_the_answer_to_its_own_annotation() -> None:
    manifest = status_map(write_request(ASKED._replace(id="r0")))
    manifest["metadata"]["annotations"][ABORT_REQUEST] = write_request(ASKED._replace(id="r0"))
    abort, other = parse_pending(manifest)
    assert [each.annotation for each in (abort, other)] == [ABORT_REQUEST, REQUEST]
    assert (abort.waiting is not None, other.waiting) == (True, None)


def test_request_that_a_manifest_has_is_shown_as_ignored() -> None:
    manifest = status_map(write_request(ASKED))
    fields = {"f:metadata": {"f:annotations": {f"f:{REQUEST}": {}}}}
    manager = {"manager": "argocd-controller", "operation": "Update", "fieldsV1": fields}
    manifest["metadata"]["managedFields"] = [manager]
    status = parse_rollout_status(manifest)
    [pending] = status.pending
    assert (pending.is_ignored, pending.waiting) == (True, None)
    assert "is ignored: it is from a manifest" in request_phrase(status, NOW)


def test_answers_are_read_newest_request_first() -> None:
    manifest = status_map(write_request(ASKED))
    for name, hours in ((REQUEST, 1), (ABORT_REQUEST, 0)):
        answer = Answer(ASKED._replace(at=NOW - timedelta(hours=hours)), AnswerState.DONE, name)
        manifest["data"][ANSWER_ENTRIES[name]] = write_answer(answer)
    assert [answer.message for answer in parse_rollout_status(manifest).answers] == [ABORT_REQUEST, REQUEST]
